"""Properties of the characters of all scripts, from Unicode, as classes of regular expressions.

Categories and names are those of `unicodedata`, which lacks the property Sentence_Terminal: it is written out here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import chain

PLANES = (range(0x80, 0x20000), range(0xE0000, 0xE0200))
"""Where the characters of these categories are, but ASCII: two planes of scripts, and the variation selectors."""
LAST_OF_FIRST_PLANE = "\uffff"

_SENTENCE_TERMINAL = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f"
    "\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u2e60"
    "\u2e61\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0"
    "\uaaf1\uabeb\ufe12\ufe15\ufe16\ufe52\ufe56\ufe57\uff01\uff0e\uff1f\uff61\U00010a56\U00010a57"
    "\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1\U00011141-\U00011143"
    "\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b\U0001123c\U000112a9"
    "\U000113d4\U000113d5\U0001144b\U0001144c\U000115c2\U000115c3\U000115c9-\U000115d7\U00011641\U00011642"
    "\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c\U00011c41\U00011c42"
    "\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37\U00016b38\U00016b44"
    "\U00016d6e\U00016d6f\U00016e98\U0001bc9f\U0001da88"
)
SENTENCE_TERMINAL = frozenset(
    chr(code)
    for first, last in re.findall(r"(.)(?:-(.))?", _SENTENCE_TERMINAL)
    for code in range(ord(first), ord(last or first) + 1)
)
"""Sentence_Terminal of Unicode 17, but ASCII, the Burmese `၊`, which is a comma, and the leader `․`."""

WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Characters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which are written without spaces between words."""

_JAPANESE = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}


def class_of(characters: Iterable[str]) -> str:
    """Characters in ascending order as the inside of a regular expression's [...], in ranges."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@cache
def of_category(kinds: str) -> tuple[str, ...]:
    """All characters but ASCII of the major categories, such as "PS" for punctuation and symbols, in order."""
    codes = chain.from_iterable(PLANES)
    return tuple(each for each in map(chr, codes) if unicodedata.category(each)[0] in kinds)


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """First word of a character's name, which for letters and their signs is the script; CJK for kana as well.

    Empty for the empty string.
    """
    name = unicodedata.name(character, "").partition(" ")[0] if character else ""
    return _JAPANESE.get(name, name)
