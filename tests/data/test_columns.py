"""The reader of columns: how it reads; what it reads from files of every layout is tested in campaigns/test_fuzz.py."""

from functools import partial
from pathlib import Path

import pytest
from fuzz.oracle import mentions
from hostile_corpora import columns
from read_files import WORD_TAG, read_columns, written

from ner_experiments.data.corpus import load
from ner_experiments.data.files import Files


@pytest.fixture
def file(tmp_path):
    return partial(written, tmp_path)


def test_read_columns_reads_no_further_than_asked(file):
    sentences = read_columns(file("a O\n\nb O\n\nbroken\n"), columns=WORD_TAG)
    assert [next(sentences).words, next(sentences).words] == [("a",), ("b",)]
    with pytest.raises(ValueError, match="expected 2 columns, got 1"):
        next(sentences)


def test_tokens_and_tags_that_recur_are_one_object(file):
    first, second = read_columns(file("中国\tB-X\n\n中国\tB-X\n"), columns=WORD_TAG)
    assert first.words[0] is second.words[0]
    assert first.tags[0] is second.tags[0]


def read(source: Files, split: str = "train") -> list[tuple[list[str], list[tuple[int, int, str]]]]:
    """Words and mentions of each sentence as the models get them, read by the fuzzer's own oracle."""
    return [(list(it.words), mentions(list(it.tags))) for it in load(source).splits[split]]


def test_a_sentence_of_a_hundred_thousand_tokens_keeps_its_mentions(tmp_path: Path) -> None:
    ((words, found),) = read(columns(tmp_path, {"train": "a B-PER\nb I-PER\nc O\nd B-PER\n" * 25_000}))
    assert len(words) == 100_000
    assert found == [
        span
        for start in range(0, 100_000, 4)
        for span in ((start, start + 2, "PER"), (start + 3, start + 4, "PER"))
    ]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_type_that_occurs_only_in_dev_or_test_is_not_dropped(split: str, tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": "Mia B-PER\n", split: "Oslo B-LOC\n"})
    assert read(source, split) == [(["Oslo"], [(0, 1, "LOC")])]


@pytest.mark.parametrize("style", ["B-{}", "B_{}", "{}-B", "{}_B"])
def test_a_mention_on_a_docstart_line_is_not_dropped(style: str, tmp_path: Path) -> None:
    text = "Mia -DOCSTART- {}\nx -DOCSTART- O\n-DOCSTART- X {}\n-DOCSTART- X O\ny X {}\n"
    text = text.format(*map(style.format, ("PER", "ORG", "LOC")))
    assert read(columns(tmp_path, {"train": text})) == [
        (["Mia", "x", "-DOCSTART-"], [(0, 1, "PER"), (2, 3, "ORG")]),
        (["y"], [(0, 1, "LOC")]),
    ]
