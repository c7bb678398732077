"""Characters and sentences of raw text in scripts without spaces between words, in linear time.

A token is what a reader takes for one character, nearly Unicode's grapheme cluster: a letter with its vowel signs, a
syllable of Hangul, an emoji with what modifies or joins it. In Chinese, that is each character but white space, as in
the Chinese corpora.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from ner_experiments.data.scripts import class_of, of_category
from ner_experiments.data.word_tokens import CLOSES, FLAG, LOOK_BACK, NO_SPACE_AFTER, SYMBOLS, Token

_JOINED = "\u0e33\u0eb3\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
"""Characters that belong to the one before them, beside combining marks: vowels, joiners, marks of kana and emoji."""
_INITIAL, _VOWEL, _FINAL = (
    "\u1100-\u115f\ua960-\ua97c",
    "\u1160-\u11a7\ud7b0-\ud7c6",
    "\u11a8-\u11ff\ud7cb-\ud7fb",
)
"""Letters of Hangul, which make up a syllable in this order."""
_STACKS = "\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d\u1039\u17d2"
"""Signs by which the next consonant is written below or beside the one before, in India, Burma and Cambodia."""

_STOPS = NO_SPACE_AFTER.union("!?…")


_CHARACTER = re.compile(r"\S")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of what extends a character, and of all characters, which takes longer than `\\S`."""
    marks = class_of(of_category("M")) + _JOINED
    parts = re.compile(f"[{marks}{_INITIAL}{_VOWEL}{_FINAL}{FLAG}]")
    return parts, re.compile(
        rf"""
          [{FLAG}]{{2}} [{marks}]*+
        | [{SYMBOLS}][{marks}]*+ (?: (?<=\u200d)[{SYMBOLS}][{marks}]*+ )*
        | [{_INITIAL}]++ (?: [가-힣{_VOWEL}][{_VOWEL}]*+ [{_FINAL}]*+ )? [{marks}]*+
        | [가-힣{_VOWEL}][{_VOWEL}]*+ [{_FINAL}]*+ [{marks}]*+
        | \S[{marks}]*+ (?: (?<=[{_STACKS}])(?=[\u0900-\u0d7f\u1000-\u109f\u1780-\u17b3])[^\W\d_][{marks}]*+ )*
        """,
        re.VERBOSE,
    )


class Characters:
    """The unit `characters`, for which a document's lines are independent of each other."""

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        parts, clusters = _patterns()
        pattern = clusters if parts.search(line) else _CHARACTER
        return (match.span() for match in pattern.finditer(line))

    def ends(self, sentence: Sequence[Token], following: Token) -> bool:
        """Whether the sentence ends before the token `following`.

        It ends after `。！？!?…` and the other marks that no white space follows, with the quotes and brackets that
        close there.
        """
        if following.text in _STOPS or (following.text in CLOSES and not following.before):
            return False
        last = (token.text for token in reversed(sentence[-LOOK_BACK:]))
        return next((text in _STOPS for text in last if text not in CLOSES), False)
