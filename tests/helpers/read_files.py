"""A file with a given text, and the message of the reader that refuses it."""

from pathlib import Path

import pytest

from ner_experiments.data.formats import columns
from ner_experiments.data.remarks import Remarks

WORD_TAG = {"word": 0, "tag": -1}


def written(folder: Path, content: str | bytes) -> Path:
    """A file with these bytes or this text, with line ends unchanged."""
    path = folder / "corpus.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(sentences):
    return [list(zip(sentence.words, sentence.tags, strict=True)) for sentence in sentences]


def message_of(read, path, **options) -> str:
    """Message of the ValueError that reading raises, without the folder."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        list(read(path, **options))
    return str(error.value).replace(f"{path}:", "corpus.txt:")


def read_columns(path, remarks=None, **settings):
    """Sentences of a column file by these settings of `ColumnOptions`."""
    return columns.read_columns(path, columns.ColumnOptions(**settings), remarks or Remarks())


def read_untagged(path, **settings):
    return read_columns(path, gold="none", **settings)
