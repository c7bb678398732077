"""Corpora with hostile contents, and the one-line message in which one is refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ner_experiments.data.corpus import load
from ner_experiments.data.files import ColumnFiles, Files
from ner_experiments.data.remarks import FaultsError

GOOD = "Mia B-PER\nRoe I-PER\nsleeps O\n\nOslo B-LOC\n"
LONG = 10**6


def columns(folder: Path, splits: Mapping[str, str | bytes], **settings: object) -> ColumnFiles:
    """Column files with these contents. Without contents for dev, dev has no mention."""
    contents = {"dev": "x O\n", **splits}
    for split, content in contents.items():
        (folder / split).write_bytes(content if isinstance(content, bytes) else content.encode())
    files = {split: split for split in contents}
    return ColumnFiles(
        name="mine", folder=str(folder), files=files, columns={"word": 0, "tag": -1}, **settings
    )


def refusal(source: Files) -> str:
    """Message in which the corpus is refused, without its folder."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        load(source)
    message = str(error.value)
    assert type(error.value) in (
        ValueError,
        FaultsError,
    )  # no class of Python's own, such as UnicodeDecodeError
    assert message.isprintable()
    return message.replace(f"{source.place}/", "")


CUT = "x" * 77 + "..."
