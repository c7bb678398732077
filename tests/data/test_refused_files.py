"""Files that each format refuses: `refused.yaml`, with the message; the settings that it proposes read the file."""

from __future__ import annotations

import gzip
import re
import shlex
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from read_files import source

from ner_experiments.data.corpus import load
from ner_experiments.data.remarks import FaultsError

REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"))
SETTINGS = REFUSED.pop("settings")
CASES = [(name, *case) for name, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{case[-1][:60]}" for case in CASES])
def test_a_file_is_refused_in_one_line_with_its_place(case: tuple[Any, ...], tmp_path: Path) -> None:
    name, content, *settings, message = case
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole message is compared
        source(name, tmp_path, {"train": content}, **(settings[0] if settings else {})).read()
    assert type(error.value) in (ValueError, FaultsError)  # none of Python's own, such as UnicodeDecodeError
    assert str(error.value).replace(f"{tmp_path}/", "") == message
    assert message.isprintable()
    if proposed := re.search(r"\(to read it: (.*)\)$", message):
        pairs = (item.removeprefix("data.").split("=", 1) for item in shlex.split(proposed[1]))
        given = {key: yaml.safe_load(value) for key, value in pairs}
        replace(
            source(name, tmp_path, {"train": content}, **(settings[0] if settings else {})), **given
        ).read()


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("name", REFUSED)
def test_an_empty_split_is_refused_by_its_name(name: str, split: str, tmp_path: Path) -> None:
    empty = "sentence,word,tag\n" if name == "csv" else "\n"
    with pytest.raises(ValueError, match=f"^mine: {split} has no sentence: {split}$"):
        source(name, tmp_path, {split: empty}).read()


@pytest.mark.parametrize(("splits", "settings", "message"), SETTINGS)
def test_settings_out_of_range(
    splits: dict[str, str], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        load(source("conll", tmp_path, splits, **{"scheme": "iob1", **settings}))


TEXTS = {
    "conll": "Émile\tB-PER\nran\tO\n\nOslo\tB-LOC\n",
    "conllu": "1\tÉmile\t_\tX\tNNP" + 5 * "\t_" + "\n2\tran\t_\tX\tVBD" + 5 * "\t_" + "\n",
    "ontonotes": "a 0 0 Émile NNP * - - - - (PERSON) -\na 0 1 ran VBD * - - - - * -\n",
    "jsonl": '{"tokens": ["Émile", "ran"], "ner_tags": ["B-PER", "O"]}\n{"text": "Oslo", "label": []}\n',
    "csv": "sentence,word,tag\n1,Émile,B-PER\n1,ran,O\n2,Oslo,B-LOC\n",
    "conllu_ner": "1\tÉmile" + 7 * "\t_" + "\tNER=B-PER\n2\tran" + 8 * "\t_" + "\n",
}


@pytest.mark.parametrize("name", ["conll", "jsonl", "csv"])
def test_another_encoding_is_named_and_read(name: str, tmp_path: Path) -> None:
    file = source(name, tmp_path, {"train": TEXTS[name].replace("Émile", "Zoé").encode("latin-1")})
    with pytest.raises(ValueError, match=r":\d+: not UTF-8 .*data\.encoding=cp1252\)$"):
        file.read()
    assert replace(file, encoding="cp1252").read()["train"][0].words[0] == "Zoé"


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    "layout", ["CRLF", "CR at the end", "BOM", "no final line end", "gzip", "decomposed"]
)
def test_no_layout_of_lines_changes_what_is_read(layout: str, name: str, tmp_path: Path) -> None:
    composed = "NFD" if layout == "decomposed" else "NFC"
    text = unicodedata.normalize(composed, TEXTS[name])
    changed = {
        "CRLF": text.replace("\n", "\r\n"),
        "CR at the end": text.removesuffix("\n") + "\r",
        "BOM": f"\ufeff{text}",
        "no final line end": text.removesuffix("\n"),
        "gzip": gzip.compress(text.encode()),
        "decomposed": text,
    }[layout]
    plain, other = (source(name, tmp_path, {"train": it}).read()["train"] for it in (text, changed))
    assert other == plain
    assert plain[0].words == (unicodedata.normalize(composed, "Émile"), "ran")  # normalized by nobody
    with (tmp_path / "train").open("rb") as stream:
        assert [it.words for it in source(name, tmp_path, {}).untagged(stream)] == [it.words for it in plain]
