"""Raw text cut into sentences and tokens that know their places, line by line, in time linear in the text.

Where a sentence ends is told by rules, from what stands before and one token after. Those of words are in
`raw_words`; of Chinese each character is a token unless it is white space, as in its corpora.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import NamedTuple

from ner_experiments.data import raw_words
from ner_experiments.data.sentence import Tokens

_CHARACTER = re.compile(r"\S")
_CHINESE_STOPS = frozenset("。！？!?…")
_CHINESE_CLOSES = frozenset("”’」』）)】》\"'")


class Token(NamedTuple):
    """`before` is the white space in front of it; `start` counts characters from 0, `line` lines from 1."""

    before: str
    text: str
    start: int
    line: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A sentence as it stands in its document, and its tokens.

    Offsets count the characters of the document from 0: token i is document[begin:end] for `places[i]`, and
    `text` is document[start:start + len(text)]. `line`, from 1, is the one of the input where it begins.
    `columns` holds further layers, such as parts of speech, one symbol a token.
    """

    text: str
    start: int
    places: tuple[tuple[int, int], ...]
    line: int
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text[begin - self.start : end - self.start] for begin, end in self.places)


def cut(text: str, tokens: Tokens, *, lines: bool = False) -> Iterator[Cut]:
    """The sentences of a document; see `sentences`."""
    return sentences(StringIO(text, newline="\n"), tokens, lines=lines)


def sentences(document: Iterable[str], tokens: Tokens, *, lines: bool = False) -> Iterator[Cut]:
    """The sentences of a document that comes line by line, each with its end; no token reaches beyond one.

    A blank line always ends a sentence. A line end is white space as any other, or with `lines` the only
    thing that ends one.
    """
    find, ends = _RULES[tokens]
    inside: list[Token] = []
    for token in _tokens(document, find):
        if inside:
            apart = token.line - inside[-1].line
            if apart > 1 or (apart if lines else ends(inside, token)):
                yield _sentence(inside)
                inside = []
        inside.append(token)
    if inside:
        yield _sentence(inside)


def _tokens(document: Iterable[str], find: Callable[[str], Iterator[tuple[int, int]]]) -> Iterator[Token]:
    start, before = 0, ""
    for number, line in enumerate(document, 1):
        done = 0
        for begin, end in find(line):
            yield Token(before + line[done:begin], line[begin:end], start + begin, number)
            before, done = "", end
        before += line[done:]
        start += len(line)


def _sentence(tokens: Sequence[Token]) -> Cut:
    first, *others = tokens
    text = first.text + "".join(token.before + token.text for token in others)
    places = tuple((token.start, token.start + len(token.text)) for token in tokens)
    return Cut(text, first.start, places, first.line)


def _characters(line: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in _CHARACTER.finditer(line))


def _ends_characters(sentence: Sequence[Token], following: Token) -> bool:
    """Behind the last of `。！？!?…` in a row, and of the quotes and brackets that close there."""
    if following.text in _CHINESE_STOPS or (following.text in _CHINESE_CLOSES and not following.before):
        return False
    behind = (token.text for token in reversed(sentence[-raw_words._LOOK_BACK:]))
    return next((text in _CHINESE_STOPS for text in behind if text not in _CHINESE_CLOSES), False)


_RULES = {"words": (raw_words.words, raw_words.ends), "characters": (_characters, _ends_characters)}
