"""Corpora through every format that can hold them and back to columns, every word and mention compared.

What comes back is read by a reader of columns that is written here, and its mentions by the oracle of the fuzzer;
neither shares code with the suite.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from annotated_files import AVAILABLE
from corpus_files import data_command
from fuzz.oracle import mentions
from places import ROOT

from ner_experiments.config.corpora import open_source
from ner_experiments.data.formats.registry import FORMATS, WRITABLE

DATA = Path(os.environ.get("NER_DATA_DIR", "data"))
SMALL = ["data.sentences={train: 40, dev: 10, test: 10}"]
CORPORA = [
    *(pytest.param(name, SMALL, id=name) for name in ("toy_en", "toy_zh")),
    *(
        pytest.param(name, [f"data_dir={DATA}"], marks=pytest.mark.slow, id=name)
        for name in ("conll2003", "weibo", "wnut17")
    ),
]


@pytest.mark.parametrize("name", AVAILABLE)
@pytest.mark.parametrize(("corpus", "overrides"), CORPORA)
def test_a_corpus_comes_back_from_every_format(
    corpus: str, overrides: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if overrides != SMALL and not (DATA / corpus).is_dir():
        pytest.skip(f"{corpus} is not here")
    form, source = FORMATS[name], open_source(corpus, overrides)
    assert data_command(["convert", corpus, f"{tmp_path}/there", *overrides, "--to", name]) == 0
    for split, sentences in source.read().items():
        (there,) = [it for it in (tmp_path / "there").iterdir() if it.name.partition(".")[0] == split]
        back = tmp_path / f"{split}.back"
        settings = [] if form.config == "conll" else [f"data.tokens={source.tokens}"]
        settings += [] if form.has_tokens else ["data.lines=true"]
        command = ["convert", str(there), str(back), *settings, "--from", form.config, "--to", "conll"]
        assert data_command(command) == 0, capsys.readouterr().err
        known, read = [([*it.words], [*it.tags]) for it in sentences], list(columns(back))
        assert [marked(*it) for it in read] == [marked(*it) for it in known]
        if form.has_tokens:
            assert [words for words, _ in read] == [words for words, _ in known]
        else:
            assert [without_space(words) for words, _ in read] == [without_space(words) for words, _ in known]


def columns(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Words and tags of the sentences of a file, between tabs."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line]
        if rows:
            yield [row[0] for row in rows], [row[-1] for row in rows]


def marked(words: list[str], tags: list[str]) -> list[tuple[str, str]]:
    """Type and text of each mention."""
    return [(kind, without_space(words[start:end])) for start, end, kind in mentions(tags)]


def without_space(words: list[str]) -> str:
    return "".join("".join(words).split())


def test_the_page_on_corpora_lists_each_format() -> None:
    page = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8").split("\n## Formats\n")[1]
    assert sorted(re.findall(r"^\| `(\w+)` \| `\w+` \| ", page, re.MULTILINE)) == sorted(WRITABLE)
