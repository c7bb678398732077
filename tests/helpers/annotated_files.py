"""A short text with three mentions, and what is read from files of annotated text."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.data.formats.registry import FORMATS, WRITABLE
from ner_experiments.data.remarks import Remarks

AVAILABLE = [name for name in WRITABLE if not FORMATS[name].package or find_spec(FORMATS[name].package)]
"""The formats whose package is installed."""
TEXT = "Ada Lovelace met Charles in New York. She left."
ADA = [[0, 12, "PER"], [17, 24, "PER"], [28, 36, "LOC"]]
EXPECTED = [("PER", "AdaLovelace"), ("PER", "Charles"), ("LOC", "NewYork")]
TAGS = ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "I-LOC", "O"]
WORDS = ["Ada", "Lovelace", "met", "Charles", "in", "New", "York", "."]
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
NESTED = {"text": "Bank of New York fell", "entities": [[0, 16, "ORG"], [8, 16, "LOC"]]}


def source(path: Path, format: str, **settings: Any) -> AnnotatedFiles:
    return AnnotatedFiles(name="mine", folder="", files={"train": str(path)}, format=format, **settings)


def read(path: Path, format: str, **settings: Any) -> tuple[list[Annotated], list[str]]:
    remarks = Remarks()
    return source(path, format, **settings).annotated(remarks)["train"], remarks.counts()


def message(path: Path, format: str, **settings: Any) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        source(path, format, **settings).read()
    return str(error.value).replace(f"{path.parent}/", "")


def lines_of(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return path
