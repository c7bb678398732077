"""Two toy corpora, English and Chinese, made by the grammars of `toy_words`: the same everywhere, always."""

from __future__ import annotations

import random
import re
import zlib
from typing import Literal, get_args

from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span, encode
from ner_experiments.data.toy_words import GRAMMARS, HELD_OUT

Language = Literal["en", "zh"]
Split = Literal["train", "dev", "test"]

TYPES = ("PER", "LOC", "ORG", "PROD")
SPLITS: tuple[Split, ...] = get_args(Split)

_LENGTHS = range(3, 36)
_HELD_OUT_SHARE = 0.2
_SLOT = re.compile(r"\{([^}]+)\}")


def sentences(language: Language, split: Split, count: int) -> list[Sentence]:
    """The first `count` sentences of a split, tagged in BIOES; the tokens of Chinese are its characters.

    3 to 35 tokens; no sentence comes twice, in one split or in two. Names in dev and test are in part made of
    words that train never has.
    """
    if language not in GRAMMARS or split not in SPLITS:
        raise ValueError(
            f"toy corpora: language must be one of {', '.join(get_args(Language))} and split one of "
            f"{', '.join(SPLITS)}, got {language!r} and {split!r}"
        )
    writer = _Writer(language, split)
    found: dict[tuple[str, ...], Sentence] = {}
    while len(found) < count:
        sentence = writer.sentence()
        if len(sentence) in _LENGTHS and _home(sentence.words) == split:
            found.setdefault(sentence.words, sentence)
    return list(found.values())


def _home(words: tuple[str, ...]) -> str:
    """The only split that may hold the sentence, whatever the sizes of the splits."""
    return SPLITS[zlib.crc32(" ".join(words).encode()) % len(SPLITS)]


class _Writer:
    """Expands a grammar from the symbol `sentence`, and keeps the mentions as it goes."""

    def __init__(self, language: Language, split: Split) -> None:
        self.tokenize = str.split if language == "en" else list
        self.known = _alternatives(GRAMMARS[language])
        self.held_out = _alternatives(HELD_OUT[language].get(split, {}))
        self.draws = random.Random(f"{language} {split}")

    def sentence(self) -> Sentence:
        self.words: list[str] = []
        self.spans: list[Span] = []
        self._write(self._choose("sentence"))
        self.words[0] = self.words[0][0].upper() + self.words[0][1:]
        return Sentence(tuple(self.words), encode(self.spans, len(self.words), "bioes"))

    def _write(self, pattern: str) -> None:
        for index, piece in enumerate(_SLOT.split(pattern)):
            if index % 2 == 0:
                self.words += self.tokenize(piece)
            elif piece[0].isupper():
                self._mention(*piece.partition("=")[::2])
            else:
                self._write(self._choose(piece))

    def _mention(self, type_: str, symbol: str) -> None:
        start = len(self.words)
        self.words += self.tokenize(self._name(symbol or type_))
        self.spans.append((start, len(self.words), type_))

    def _name(self, symbol: str) -> str:
        return _SLOT.sub(lambda slot: self._name(slot[1]), self._choose(symbol))

    def _choose(self, symbol: str) -> str:
        options = self.known[symbol]
        if symbol in self.held_out and self.draws.random() < _HELD_OUT_SHARE:
            options = self.held_out[symbol]
        # Only random() draws the same numbers in every version of Python.
        return options[int(self.draws.random() * len(options))]


def _alternatives(grammar: dict[str, str]) -> dict[str, list[str]]:
    return {
        symbol: [option for option in map(str.strip, re.split(r"[|\n]", text)) if option]
        for symbol, text in grammar.items()
    }
