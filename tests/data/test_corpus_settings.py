"""Settings of a corpus: what is held out, where a limit counts, and which values are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from corpus_files import DEV, TEST, TRAIN, columns

from ner_experiments.data.corpus import load


def numbered(count: int) -> str:
    return "".join(f"word{number} O\n\n" for number in range(count))


def test_without_dev_the_end_of_train_is_held_out(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": numbered(1995), "test": TEST}, held_out=0.1))
    words = {split: [s.words[0] for s in sentences] for split, sentences in corpus.splits.items()}
    assert list(words) == ["train", "dev", "test"]
    assert words["train"] == [f"word{number}" for number in range(1795)]
    assert words["dev"] == [f"word{number}" for number in range(1795, 1995)]  # 199.5, rounded to even
    assert corpus.notes == (
        "dev: the last 200 of train's 1,995 sentences, as the corpus has no development set",
    )


def test_dev_is_not_held_out_where_there_is_one(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": numbered(10), "dev": DEV}, held_out=0.5))
    assert [len(corpus.splits[split]) for split in ("train", "dev")] == [10, 1]
    assert corpus.notes == ()


def test_the_limit_comes_after_holding_out(tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": numbered(2000), "test": TEST}, held_out=0.5, max_sentences=999)
    corpus = load(source)
    assert {split: len(sentences) for split, sentences in corpus.splits.items()} == {
        "train": 999,
        "dev": 999,
        "test": 1,
    }
    assert corpus.splits["dev"][0].words == ("word1000",)
    assert corpus.notes[1] == "limited to the first 999 sentences of each split"
    assert all(len(source.read()[split]) == count for split, count in (("train", 2000), ("test", 1)))


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (
            {"train": numbered(4)},
            {},
            "mine: there is no development set; set data.files.dev to its file, or hold out the end of train, such as "
            "data.held_out=0.1",
        ),
        (
            {"train": numbered(1)},
            {"held_out": 0.9},
            "mine: there is no development set, and held_out=0.9 of train's 1 sentences leaves train empty; "
            "set data.files.dev to a file, or hold out less (data.held_out)",
        ),
        ({"train": TRAIN}, {"held_out": 1.0}, "mine: held_out must be at least 0 and less than 1, got 1.0"),
        ({"train": TRAIN}, {"held_out": -0.1}, "mine: held_out must be at least 0 and less than 1, got -0.1"),
        (
            {"train": TRAIN, "dev": DEV},
            {"max_sentences": 0},
            "mine: max_sentences must be null or a whole number from 1, got 0",
        ),
        (
            {"train": TRAIN, "dev": DEV},
            {"max_sentences": "few"},
            "mine: max_sentences must be null or a whole number from 1, got 'few'",
        ),
        ({"dev": DEV, "test": TEST}, {}, "mine: there is no train split, only dev, test"),
        ({"train": TRAIN, "dev": "\n\n"}, {}, "mine: dev has no sentence: dev.txt"),
        ({}, {}, "mine: no file is named; set data.files.train, .dev and .test"),
        (
            {"train": TRAIN},
            {"scheme": "bio"},
            "mine: scheme must be one of auto, iob1, iob2, bioes, bmes, bilou, got 'bio'",
        ),
        (
            {"train": TRAIN},
            {"tokens": "chars"},
            "mine: tokens must be one of words, characters, icu, fugashi, kiwipiepy, got 'chars'",
        ),
        ({"train": TRAIN}, {"task": "ner"}, "mine: task must be one of mentions, tags, got 'ner'"),
        (
            {"train": TRAIN},
            {"columns": {"word": 0}},
            "mine: columns must name at least word and tag, got word",
        ),
        ({"train": TRAIN}, {"columns": {}}, "mine: columns must name at least word and tag, got none"),
        (
            {"train": TRAIN, "valid": DEV},
            {"held_out": 0.1},
            "mine: a split must be one of train, dev, test, got 'valid'",
        ),
        (
            {"train": TRAIN, "dev": DEV, "tets": TEST},
            {},
            "mine: a split must be one of train, dev, test, got 'tets'",
        ),
    ],
)
def test_settings_out_of_range(
    texts: Mapping[str, str], settings: Mapping[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        load(columns(tmp_path, texts, **settings))
