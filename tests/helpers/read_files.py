"""A file of a text that is given, what a reader makes of it, and the message in which it refuses it."""

from pathlib import Path

import pytest

WORD_TAG = {"word": 0, "tag": -1}


def written(folder: Path, content: str | bytes) -> Path:
    """A file of these bytes or this text, line ends as they stand."""
    path = folder / "corpus.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def pairs(sentences):
    return [list(zip(sentence.words, sentence.tags, strict=True)) for sentence in sentences]


def message_of(read, path, **options) -> str:
    """The message of the ValueError that reading ends in, with the folder cut off."""
    with pytest.raises(ValueError) as error:  # noqa: PT011  callers compare the whole message
        list(read(path, **options))
    return str(error.value).replace(f"{path}:", "corpus.txt:")
