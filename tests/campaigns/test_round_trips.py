"""A short run of tests/campaigns/round_trips.py, and a check that it finds what a format loses."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import round_trips
from places import ROOT
from round_trips import AVAILABLE, Outcome, round_trip

from ner_experiments.data.formats.registry import WRITABLE

SMALL = ["data.sentences={train: 40, dev: 10, test: 10}"]


@pytest.mark.parametrize("corpus", ["toy_en", "toy_zh"])
@pytest.mark.parametrize("format", AVAILABLE)
def test_a_corpus_comes_back_from_every_format(format: str, corpus: str, tmp_path: Path) -> None:
    outcome = round_trip(corpus, format, tmp_path, SMALL)
    assert outcome.sentences == 60
    assert outcome.mentions > 30
    assert (outcome.other_sentences, outcome.other_mentions) == (0, 0)


def test_a_changed_mention_and_a_changed_word_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = round_trip("toy_en", "jsonl", tmp_path / "a", SMALL)
    columns = round_trips.columns
    changes = {"I-PER": "O"}

    def changed(path: Path):
        for words, tags in columns(path):
            yield ["x", *words[1:]], [changes.get(tag, tag) for tag in tags]

    monkeypatch.setattr(round_trips, "columns", changed)
    outcome = round_trip("toy_en", "jsonl", tmp_path / "b", SMALL)
    assert outcome == Outcome(60, before.mentions, 60, outcome.other_mentions)
    assert outcome.other_mentions > 10


def test_a_conversion_that_says_that_it_loses_something_ends_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = round_trips.FORMATS["conll"].write
    monkeypatch.setitem(
        round_trips.FORMATS,
        "conll",
        replace(round_trips.FORMATS["conll"], write=lambda it, path: write(list(it)[:-1], path)),
    )
    with pytest.raises(RuntimeError, match="not kept: "):
        round_trip("toy_en", "conll", tmp_path, SMALL)


def test_the_page_on_corpora_lists_each_format() -> None:
    page = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8").split("\n## Formats\n")[1]
    assert sorted(re.findall(r"^\| `(\w+)` \| `\w+` \| ", page, re.MULTILINE)) == sorted(WRITABLE)
