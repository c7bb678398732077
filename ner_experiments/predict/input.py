"""Sentences that are given to be tagged: raw text, JSON lines, or columns as their corpus has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from ner_experiments.data.columns import Line, PathOrFile, malformed, read_lines, read_text, read_untagged
from ner_experiments.data.corpus import Source
from ner_experiments.data.sentence import Tokens
from ner_experiments.predict import tokenize
from ner_experiments.predict.tokenize import Cut
from ner_experiments.utils.text import json_object

Form = Literal["text", "conll", "jsonl"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How text is read for a run that knows the corpus `source`.

    tokens: what raw text is cut into. lines: each of its lines is a sentence.
    needs: the columns that the run reads besides the words.
    columns: of columns, where each stands if not where the corpus has it, such as {"word": 0, "pos": 2}.
    """

    source: Source
    tokens: Tokens
    needs: Sequence[str] = ()
    lines: bool = False
    columns: Mapping[str, int] | None = None

    def read(self, path: PathOrFile, form: Form) -> Iterator[Cut]:
        """Sentence by sentence, as they are asked for. ValueError, with file and line, for what is malformed.

        Raw text and JSON lines may hold any characters but NUL, in UTF-8; a byte order mark counts as none.
        """
        if form == "text":
            self.check_raw()
            return tokenize.sentences((line for _, line in read_text(path)), self.tokens, lines=self.lines)
        return self._columns(path) if form == "conll" else self._json_lines(path)

    def check_raw(self) -> None:
        """ValueError if the run reads more than words."""
        if self.needs:
            keys = ", ".join(f'"{name}": [...]' for name in self.needs)
            raise ValueError(
                f"the run reads the columns {', '.join(self.needs)} besides the words, which raw text does "
                f'not have: give it columns (conll), or JSON lines as {{"words": [...], {keys}}} (jsonl)'
            )

    def of_words(self, words: Sequence[str], columns: Mapping[str, Sequence[str]], line: int = 0) -> Cut:
        """A sentence that is cut already: its text is the words with a space between, of Chinese without.

        ValueError if a word is empty, is no text, or does not have what the run reads besides.
        """
        check_words("words", words)
        for name in self.needs:
            if name not in columns:
                raise ValueError(f"the run reads the columns {', '.join(self.needs)}, and there is no {name}")
            check_words(name, columns[name])
            if len(columns[name]) != len(words):
                raise ValueError(f"{name} must have one item a word, {len(words)}, got {len(columns[name])}")
        between = " " if self.tokens == "words" else ""
        starts = accumulate((len(word) + len(between) for word in words), initial=0)
        places = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=False))
        kept = {name: tuple(columns[name]) for name in self.needs}
        return Cut(between.join(words), 0, places, line, kept)

    def _columns(self, path: PathOrFile) -> Iterator[Cut]:
        sentences = (
            self.source.untagged(path) if self.columns is None else read_untagged(path, columns=self.columns)
        )
        for sentence in sentences:
            yield self.of_words(sentence.words, sentence.columns, sentence.line)

    def _json_lines(self, path: PathOrFile) -> Iterator[Cut]:
        for line in read_lines(path):
            if line[1].strip(" \t"):
                try:
                    yield from self._of_json(line)
                except ValueError as error:
                    raise malformed(path, line, str(error)) from None

    def _of_json(self, line: Line) -> Iterable[Cut]:
        number, text = line
        given = json_object(text)
        if ("text" in given) == ("words" in given):
            raise ValueError('expected either "text" or "words"')
        if "words" in given:
            if given["words"] == []:
                return []
            columns = {name: given[name] for name in self.needs if name in given}
            return [self.of_words(given["words"], columns, number)]
        self.check_raw()
        check_text("text", given["text"])
        return [replace(it, line=number) for it in tokenize.cut(given["text"], self.tokens, lines=self.lines)]


def check_words(name: str, words: Any) -> None:
    if not isinstance(words, list | tuple):
        raise ValueError(f"{name} must be a list of strings")
    for place, word in enumerate(words, 1):
        if word == "":
            raise ValueError(f"empty word: item {place} of {name}")
        check_text(f"item {place} of {name}", word)


def check_text(name: str, text: Any) -> None:
    """ValueError for what no UTF-8 file without NUL can hold."""
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string")
    if "\0" in text:
        raise ValueError(f"NUL in {name}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half a surrogate pair in {name}, at character {error.start + 1}") from None
