"""Words of scripts and languages in which white space does not separate them, by optional libraries.

The tokens are those of `words`, and within a word the library decides: ICU in Thai, Lao, Khmer and Burmese (`icu`),
MeCab with UniDic in Japanese (`fugashi`), Kiwi in Korean (`kiwipiepy`). So names, addresses and emoji of other scripts
stay whole, and no library decides about punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from ner_experiments.data.sentence import Segmenter, UnitName
from ner_experiments.data.word_tokens import Words, words
from ner_experiments.utils.text import truncated_repr

PACKAGES = {
    "icu": {"icu4py": "icu4py"},
    "fugashi": {"fugashi": "fugashi", "unidic_lite": "unidic-lite"},
    "kiwipiepy": {"kiwipiepy": "kiwipiepy"},
}
"""Segmenter -> the modules that it needs, each with the name of its package."""


def is_installed(name: str) -> bool:
    """Whether the packages of a unit are installed, of which those of the suite's own need none."""
    return all(find_spec(module) for module in PACKAGES.get(name, {}))


class Segmented(Words):
    """The unit of a segmenter in one document: its tokens, and the ends of sentences of `words`."""

    def __init__(self, segment: Segmenter) -> None:
        super().__init__()
        self._segment = segment

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        self._read_stops(line)
        return iter(self._segment(line))


def checked(segment: Segmenter) -> Segmenter:
    """A segmenter of the user's own whose tokens are cut at white space, and checked.

    It raises ValueError unless they are in order, disjoint, within the line, and cover all of it but white space.
    """

    def find(line: str) -> Iterator[tuple[int, int]]:
        done = 0
        for begin, end in segment(line):
            if not done <= begin < end <= len(line) or line[done:begin].strip():
                raise ValueError(
                    f"data.tokens: expected tokens that cover the line in order, got {(begin, end)} after a token that "
                    f"ends at {done} in {truncated_repr(line)}"
                )
            done = end
            yield from ((begin + it.start(), begin + it.end()) for it in _VISIBLE.finditer(line[begin:end]))
        if line[done:].strip():
            raise ValueError(
                f"data.tokens: expected tokens that cover the line, got none after {done} in {truncated_repr(line)}"
            )

    return find


_VISIBLE = re.compile(r"\S+")


def _cut(
    line: str, letters: re.Pattern[str], ends: Callable[[str], Iterable[int]]
) -> Iterator[tuple[int, int]]:
    """The words of a line, of which those with such letters are cut at these ends of the library's tokens."""
    boundaries = iter(sorted({*ends(line)})) if letters.search(line) else iter(())
    boundary = next(boundaries, len(line))
    for begin, end in words(line):
        if letters.search(line, begin, end):
            while boundary < end:
                if boundary > begin:
                    yield begin, boundary
                    begin = boundary
                boundary = next(boundaries, len(line))
        yield begin, end


# ICU

_DICTIONARIES = re.compile(
    r"[\u0e01-\u0e3a\u0e40-\u0e5b]+|[\u0e80-\u0eff]+|[\u1780-\u17ff]+|[\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f]+"
)
"""Runs of Thai, Lao, Khmer and Burmese. ICU's words of Chinese and Japanese are worse than those of others."""
_ABBREVIATION = re.compile(r"(?<![\u0e01-\u0eff])(?:[\u0e01-\u0e2e\u0e81-\u0eae]{1,4}\.){2}")
"""Such as `พ.ศ.`, which stays whole."""


def icu(line: str) -> Iterator[tuple[int, int]]:
    """Tokens of a line by ICU's dictionaries, which are asked for one script at a time."""
    return _cut(line, _DICTIONARIES, _icu_ends)


def _icu_ends(line: str) -> Iterator[int]:
    from icu4py.breakers import WordBreaker

    whole = {place for it in _ABBREVIATION.finditer(line) for place in range(*it.span())}
    for run in _DICTIONARIES.finditer(line):
        if run.start() in whole:
            continue
        yield run.start()
        # ICU counts UTF-16 units, of which each of these characters is one
        yield from (run.start() + end for _, end in WordBreaker(run[0], "th").segments())


# MeCab

_JAPANESE = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff]"
)


def fugashi(line: str) -> Iterator[tuple[int, int]]:
    """Tokens of a line by MeCab with UniDic."""
    return _cut(line, _JAPANESE, _mecab_ends)


@cache
def _mecab() -> Any:
    from fugashi import Tagger
    from unidic_lite import DICDIR

    return Tagger(f'-r "{DICDIR}/mecabrc" -d "{DICDIR}"')  # the same with another dictionary installed


def _mecab_ends(line: str) -> Iterator[int]:
    done = 0
    for word in _mecab()(line):
        begin = line.index(word.surface, done)
        done = begin + len(word.surface)
        yield from (begin, done)


# Kiwi

_PIECE = re.compile(r".{2000}\S{0,2000}|.+", re.DOTALL)
"""Kiwi's time is quadratic in the length of a line."""
_KOREAN = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]")


def kiwipiepy(line: str) -> Iterator[tuple[int, int]]:
    """Tokens of a line by Kiwi: morphemes, but those that share a syllable are one token, as in `갔`."""
    return _cut(line, _KOREAN, _kiwi_ends)


@cache
def _kiwi() -> Any:
    from kiwipiepy import Kiwi

    return Kiwi(num_workers=1)


def _kiwi_ends(line: str) -> Iterator[int]:
    done = 0
    for piece in _PIECE.finditer(line):
        for morpheme in _kiwi().tokenize(piece[0]):
            start = piece.start() + morpheme.start
            if start >= done:
                yield from (done, start)
            done = max(done, start + morpheme.len)
    yield done


SEGMENTERS: Mapping[UnitName, Segmenter] = {"icu": icu, "fugashi": fugashi, "kiwipiepy": kiwipiepy}
