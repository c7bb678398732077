"""Columns: one token per line, with its word and IOB2 tag separated by a tab. `data/columns.py` reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import truncated_repr


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write the sentences. Raises ValueError for nested mentions, and for a word with a tab or a line end."""
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            for word, tag in zip(sentence.words, sentence.tags(), strict=True):
                if any(character in word for character in "\t\r\n"):
                    raise ValueError(f"{sentence.place}: columns cannot hold the word {truncated_repr(word)}")
                file.write(f"{word}\t{tag}\n")
            file.write("\n")
