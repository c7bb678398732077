"""Column files with a few mentions, and the tags that are read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ner_experiments.commands import data
from ner_experiments.data.corpus import Source
from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.sentence import Corpus
from ner_experiments.main import answer

TRAIN = "EU I-ORG\nrejects O\nGerman I-MISC\n\nAda I-PER\nLovelace I-PER\nEve B-PER\n"
DEV = "Paris I-LOC\n"
TEST = "Rain O\nin O\nRome I-LOC\n"


def columns(folder: Path, texts: Mapping[str, str], **settings: Any) -> ColumnFiles:
    """A source whose files contain these texts: split -> text."""
    for split, text in texts.items():
        (folder / f"{split}.txt").write_text(text, encoding="utf-8")
    settings = {"columns": {"word": 0, "tag": 1}, "scheme": "iob1"} | settings
    return ColumnFiles(name="mine", folder=str(folder), files={s: f"{s}.txt" for s in texts}, **settings)


def tags(corpus: Corpus) -> dict[str, list[str]]:
    return {split: [" ".join(s.tags) for s in sentences] for split, sentences in corpus.splits.items()}


def data_command(arguments: Sequence[str], source: Source | None = None) -> int:
    """Exit status of `ner-experiments data`; if `source` is given, it is the corpus of every name."""
    with pytest.MonkeyPatch.context() as patch:
        if source is not None:
            patch.setattr(data, "open_source", lambda *_: source)
        return answer(["data", *arguments])
