"""Sentence splitting and tokenization of raw text, with character offsets, line by line and in linear time.

English follows rules close to those of the English corpora. Words are split as in CoNLL-2003 (`do n't`, `Ann 's`,
`U.S.`, `Mr.`, `US$ 3.50`, quotes and brackets as written), but addresses, @names, #tags and emoticons stay whole,
as in tweets. In Chinese, each character except white space is a token, as in the Chinese corpora. Whether a sentence
ends is decided from the tokens before and one token after.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, NamedTuple

from ner_experiments.data.sentence import Tokens


class Token(NamedTuple):
    """A token. `before` is the white space in front of it, `start` its 0-based offset, `line` 1-based."""

    before: str
    text: str
    start: int
    line: int


@dataclass(frozen=True, slots=True)
class TokenizedSentence:
    """A sentence of a document and the offsets of its tokens.

    Offsets are 0-based characters of the document: token i is document[begin:end] for `offsets[i]`, and
    `text` is document[start:start + len(text)]. `line` is the 1-based input line of its start. `columns`
    holds further layers, such as parts of speech, with one value per token. `keys` is what else a record of the input
    says, such as id and meta.
    """

    text: str
    start: int
    offsets: tuple[tuple[int, int], ...]
    line: int
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text[begin - self.start : end - self.start] for begin, end in self.offsets)


def tokenize(text: str, tokens: Tokens, *, lines: bool = False) -> Iterator[TokenizedSentence]:
    """The sentences of a document; see `tokenize_lines`."""
    return tokenize_lines(StringIO(text, newline="\n"), tokens, lines=lines)


def tokenize_lines(
    document: Iterable[str], tokens: Tokens, *, lines: bool = False
) -> Iterator[TokenizedSentence]:
    """The sentences of a document, which is passed as lines with their line ends. No token crosses a line end.

    A blank line always ends a sentence. Any other line end is plain white space, unless `lines` makes each line
    a sentence.
    """
    find_tokens, ends = _RULES[tokens]
    sentence: list[Token] = []
    for token in _tokens(document, find_tokens):
        if sentence:
            line_ends = token.line - sentence[-1].line
            if line_ends > 1 or (line_ends if lines else ends(sentence, token)):
                yield _sentence(sentence)
                sentence = []
        sentence.append(token)
    if sentence:
        yield _sentence(sentence)


def _tokens(
    document: Iterable[str], find_tokens: Callable[[str], Iterator[tuple[int, int]]]
) -> Iterator[Token]:
    start, before = 0, ""
    for number, line in enumerate(document, 1):
        done = 0
        for begin, end in find_tokens(line):
            yield Token(before + line[done:begin], line[begin:end], start + begin, number)
            before, done = "", end
        before += line[done:]
        start += len(line)


def _sentence(tokens: Sequence[Token]) -> TokenizedSentence:
    first, *others = tokens
    text = first.text + "".join(token.before + token.text for token in others)
    offsets = tuple((token.start, token.start + len(token.text)) for token in tokens)
    return TokenizedSentence(text, first.start, offsets, first.line)


# English

# Characters that no word contains, except where the pattern of words allows it. The pattern never backtracks, so
# that tokenization is linear. Possessive quantifiers apply to single characters only, because those of groups
# are broken in Python 3.11.2 (Debian 12).
_SYMBOLS = "\xa9\xae\u20e3\u2117\u2120\u2122\u2190-\u23ff\u2500-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff"
"""Emoji, arrows, boxes, signs such as © and ™. Each is a token, with what modifies or joins it."""
_FLAG = "\U0001f1e6-\U0001f1ff"
_MODIFIERS = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
_APART = rf"""\s"“”„«»‹›()\[\]{{}}<>;!?…,:$£€¥%*=|~^\\`'’‘/{_SYMBOLS}"""
_TOKEN = re.compile(
    rf"""
      (?<!\S) (?: [:;=8][-o'^]?[()\[\]DPpOo3/\\|*]{{1,4}} | [xX]D | <3 | \^_?\^ | -_+-) (?!\S)
    | (?P<address> (?:https?://|www\.) [^\s<>"“”]++ )
    | &(?:amp|lt|gt|quot|apos);
    | [{_FLAG}]{{2}} | [0-9\#*]\ufe0f?\u20e3 | [{_SYMBOLS}][{_MODIFIERS}]*+ (?: \u200d[{_SYMBOLS}][{_MODIFIERS}]*+ )*
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
_CLITIC_LENGTHS = (3, 2)
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
"""Before a full stop, this is more often a word than an initial."""

_STOPS = frozenset((".", "…"))
_CLOSES = frozenset("\"'”’»)]}")
_ENDS = _CLOSES.union(".…!?")
"""Last characters of tokens that may end a sentence."""
_GOES_ON = frozenset(",;:)]}%")
_BEGINS = re.compile(
    """The|An?|This|That|These|Those|He|She|It|We|You|They|I|But|And|In|On|At|For|If|As|When|While|After|Before
    |There|Its|His|Her|Their|Our|My|What|Who|How|Why|No|Yes|Not""",
    re.VERBOSE,
)
_LOOK_BACK = 4


def words(line: str) -> Iterator[tuple[int, int]]:
    """Start and end of each token of a line. No token contains white space."""
    end = 0
    while match := _TOKEN.search(line, end):
        begin, end = match.span()
        if match["address"]:
            while line[end - 1] in _AFTER_ADDRESS:
                end -= 1
        elif word := match["word"]:
            if line.startswith(".", end) and _takes_full_stop(word, line, end):
                end += 1
            elif ("'" in word or "’" in word) and (clitic := _clitic_length(word)):
                yield begin, end - clitic
                begin = end - clitic
        yield begin, end


def _takes_full_stop(word: str, line: str, end: int) -> bool:
    """Whether the full stop at `end` belongs to the word before it, as in abbreviations; not in `...`."""
    if line.startswith("..", end):
        return False
    if word.lower() == "no":
        return _NUMBER_AHEAD.match(line, end) is not None
    if _TITLE.fullmatch(word) or _ABBREVIATION.fullmatch(word):
        return True
    return word != _PRONOUN and _INITIALS.fullmatch(word) is not None


def _clitic_length(word: str) -> int:
    """Length of a clitic at the word's end, as in `ca n't` and `Ann 's`; 0 if there is none."""
    sizes = (
        size for size in _CLITIC_LENGTHS if size < len(word) and _CLITIC.fullmatch(word, len(word) - size)
    )
    return next(sizes, 0)


def ends_sentence(sentence: Sequence[Token], following: Token) -> bool:
    """Whether the sentence ends before the token `following`.

    It ends after `.`, `!`, `?` or dots, and the quotes and brackets that close there, if white space follows
    and the next token does not start with a lower-case letter. After an abbreviation it ends only before
    words such as `The`, and never after a title or a single initial.
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


# Chinese

_CHARACTER = re.compile(r"\S")
_CHINESE_STOPS = frozenset("。！？!?…")
_CHINESE_CLOSES = frozenset("”’」』）)】》\"'")


def _characters(line: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _CHARACTER.finditer(line))


def _ends_sentence_of_characters(sentence: Sequence[Token], following: Token) -> bool:
    """Whether the sentence ends, which it does after `。！？!?…` and the quotes and brackets that close there."""
    if following.text in _CHINESE_STOPS or (following.text in _CHINESE_CLOSES and not following.before):
        return False
    last = (token.text for token in reversed(sentence[-_LOOK_BACK:]))
    return next((text in _CHINESE_STOPS for text in last if text not in _CHINESE_CLOSES), False)


_RULES = {
    "words": (words, ends_sentence),
    "characters": (_characters, _ends_sentence_of_characters),
}
"""Unit of tokenization -> functions that find the tokens of a line and decide where sentences end."""
