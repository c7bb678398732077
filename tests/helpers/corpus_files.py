"""Column files with a few mentions, and the tags that are read from them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ner_experiments.commands import data
from ner_experiments.data.corpus import Source
from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.sentence import Corpus

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


def refuse(name: str) -> Source:
    raise ValueError(f"no corpus {name!r}; the nearest: weibo")


def data_command(argv: Sequence[str], open_source: Callable[[str], Source] = data.open_source) -> int:
    """Exit status of `ner-experiments data`, with `open_source` to find corpora by name."""
    parser = argparse.ArgumentParser(prog="ner-experiments data")
    data.add_arguments(parser)
    return data.run(parser.parse_args(argv), open_source)
