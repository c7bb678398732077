"""English text cut into words, and the ends of its sentences, by rules near those of the English corpora.

Words are cut as in CoNLL-2003 (`do n't`, `Ann 's`, `U.S.`, `Mr.`, `US$ 3.50`, quotes and brackets as they are
written), but addresses, @names, #tags and emoticons stay whole, as in tweets.

Raw text cut into sentences and tokens that know their places, line by line, in time linear in the text.

Where a sentence ends is told by rules, from what stands before and one token after. Those of words are in
`raw_words`; of Chinese each character is a token unless it is white space, as in its corpora.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import NamedTuple, Protocol

from ner_experiments.data.sentence import Tokens

# What no word holds, but for a few joints. Nothing is tried twice: no text takes more than linear time.
# Possessive loops are of single characters alone, as those of groups go wrong in Python 3.11.2 (Debian 12).
_APART = r"""\s"“”„«»‹›()\[\]{}<>;!?…,:$£€¥%*=|~^\\`'’‘/"""
_TOKEN = re.compile(
    rf"""
      (?<!\S) (?: [:;=8][-o'^]?[()\[\]DPpOo3/\\|*]{{1,4}} | [xX]D | <3 | \^_?\^ | -_+-) (?!\S)
    | (?P<address> (?:https?://|www\.) [^\s<>"“”]++ )
    | &(?:amp|lt|gt|quot|apos);
    | \.{{2,}}+ | -{{2,}}+ | [!?]++ | (?P<same>[*=~^|\\])(?P=same)* | `` | ''
    | ['’](?i:s|m|re|ve|ll|d|em|tis|twas|\d\ds?)(?!\w)
    | [A-Z]{{1,3}}\$(?=[\d\s])
    | (?P<word> (?: [^{_APART}.-]++ | \.(?=[^{_APART}.-]|-\w) | -(?!-)
                  | (?<=\d)[,:/](?=\d) | (?<=\w)['’](?=\w) )+ )
    | \S
    """,
    re.VERBOSE,
)
_AFTER_ADDRESS = frozenset(".,;:!?'’)]}…")
_CLITIC = re.compile(r"n['’]t|['’](?:s|m|re|ve|ll|d)", re.IGNORECASE)
_CLITICS = (3, 2)
"""How long they are."""
_INITIALS = re.compile(r"[A-Z]|(?:[^\W\d_]\.)+[^\W\d_]")
_NUMBER_AHEAD = re.compile(r"\.\s*\d")
_TITLE = re.compile(
    "mr|mrs|ms|dr|prof|gen|col|lt|sgt|capt|maj|adm|rev|hon|sen|rep|gov|pres|st|mt|ft|vs|messrs",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(
    """inc|corp|co|ltd|bros|dept|univ|assn|etc|al|approx|est|ave|blvd|fig|ed|jr|sr|jan|feb|mar|apr|jun|jul|aug
    |sept?|oct|nov|dec|mon|tues?|wed|thu|thurs|fri|ala|ariz|ark|calif|colo|conn|fla|ga|ill|ky|md|mich|minn|mont
    |neb|nev|okla|ore|penn|tenn|tex|wis|wyo""",
    re.IGNORECASE | re.VERBOSE,
)
_PRONOUN = "I"
"""More often a word than an initial where a sentence may end."""

_STOPS = frozenset((".", "…"))
_CLOSES = frozenset("\"'”’»)]}")
_ENDS = _CLOSES.union(".…!?")
"""The last character of all that may end a sentence."""
_GOES_ON = frozenset(",;:)]}%")
_BEGINS = re.compile(
    """The|An?|This|That|These|Those|He|She|It|We|You|They|I|But|And|In|On|At|For|If|As|When|While|After|Before
    |There|Its|His|Her|Their|Our|My|What|Who|How|Why|No|Yes|Not""",
    re.VERBOSE,
)
_LOOK_BACK = 4


class Placed(Protocol):
    @property
    def before(self) -> str:
        """The white space in front of the token."""
        ...

    @property
    def text(self) -> str: ...


def words(line: str) -> Iterator[tuple[int, int]]:
    """Where each token begins, and where it is over; none holds white space."""
    place = 0
    while found := _TOKEN.search(line, place):
        begin, place = found.span()
        if found["address"]:
            while line[place - 1] in _AFTER_ADDRESS:
                place -= 1
        elif word := found["word"]:
            if line.startswith(".", place) and _takes_full_stop(word, line, place):
                place += 1
            elif ("'" in word or "’" in word) and (clitic := _clitic(word)):
                yield begin, place - clitic
                begin = place - clitic
        yield begin, place


def _takes_full_stop(word: str, line: str, place: int) -> bool:
    """Whether the full stop behind a word, which is no part of `...`, belongs to it."""
    if line.startswith("..", place):
        return False
    if word.lower() == "no":
        return _NUMBER_AHEAD.match(line, place) is not None
    if _TITLE.fullmatch(word) or _ABBREVIATION.fullmatch(word):
        return True
    return word != _PRONOUN and _INITIALS.fullmatch(word) is not None


def _clitic(word: str) -> int:
    """How many characters of a word's end are a token of their own, as in `ca n't` and `Ann 's`."""
    ends = (size for size in _CLITICS if size < len(word) and _CLITIC.fullmatch(word, len(word) - size))
    return next(ends, 0)


def ends(sentence: Sequence[Placed], following: Placed) -> bool:
    """Whether a sentence is over with what stands there of it, before the token that follows.

    It is over behind `.`, `!`, `?`, or dots, and the quotes and brackets that close there, if the next token
    stands apart and begins with no small letter; behind an abbreviation only before such as `The`, and
    never behind a title or a single initial.
    """
    if sentence[-1].text[-1] not in _ENDS:
        return False
    first = following.text[0]
    if not following.before or first.islower() or first in _GOES_ON:
        return False
    place = len(sentence) - 1
    nearest = max(0, len(sentence) - _LOOK_BACK)
    while place > nearest and sentence[place].text in _CLOSES and not sentence[place].before:
        place -= 1
    last = sentence[place].text
    if last[0] in "!?" or last in _STOPS or last.startswith(".."):
        return True
    if len(last) < 3 or not last.endswith("."):
        return False
    return not _TITLE.fullmatch(last[:-1]) and _BEGINS.fullmatch(following.text) is not None


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
    behind = (token.text for token in reversed(sentence[-_LOOK_BACK:]))
    return next((text in _CHINESE_STOPS for text in behind if text not in _CHINESE_CLOSES), False)


_RULES = {"words": (words, ends), "characters": (_characters, _ends_characters)}
