"""A file with a given text, and the message of the reader that refuses it."""

from pathlib import Path
from typing import Any

import pytest

from ner_experiments.data.files import ColumnFiles, ConlluFiles, Files, GoldConllFiles
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats import columns
from ner_experiments.data.remarks import Remarks

WORD_TAG = {"word": 0, "tag": -1}
CLASSES = {"conllu": ConlluFiles, "ontonotes": GoldConllFiles}


def source(format: str, folder: Path, splits: dict[str, Any], **settings: Any) -> Files:
    """A corpus in a format, whose splits have these contents: text, bytes, or files of a folder by their names."""
    for split, content in splits.items():
        files = (
            {f"{split}/{name}": it for name, it in content.items()}
            if isinstance(content, dict)
            else {split: content}
        )
        for name, it in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(it if isinstance(it, bytes) else it.encode())
    about: dict[str, Any] = {"name": "mine", "folder": str(folder), "files": {it: it for it in splits}}
    if format == "conll":
        return ColumnFiles(**about, **({"columns": WORD_TAG} | settings))
    if format in CLASSES:
        return CLASSES[format](**about, **settings)
    return AnnotatedFiles(**about, format=format, **settings)


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
