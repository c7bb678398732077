"""Words and sentences of raw text in scripts with spaces between words, in linear time.

English follows rules close to those of the English corpora: words are split as in CoNLL-2003 (`do n't`, `Ann 's`,
`U.S.`, `Mr.`, `US$ 3.50`, quotes and brackets as written), but addresses, @names, #tags and emoticons stay whole,
as in tweets. In every script, punctuation and symbols are tokens of their own inside words too. What else depends on
the language is decided by the script of the word, and for French by the words of the line; nothing is to be set.
Whether a sentence ends is decided from the tokens before, one token after, and the full stops that the document has
had so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple
from unicodedata import name

from ner_experiments.data.scripts import (
    LAST_OF_FIRST_PLANE,
    SENTENCE_TERMINAL,
    class_of,
    of_category,
    script_of,
)


class Token(NamedTuple):
    """A token. `before` is the white space in front of it, `start` its 0-based offset, `line` 1-based."""

    before: str
    text: str
    start: int
    line: int


# Words

SYMBOLS = (
    "\xa9\xae\u203c\u2049\u20e3\u2117\u2120\u2122\u2190-\u23ff\u2500-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
"""Emoji, arrows, boxes, signs such as © and ™. Each is a token, with what modifies or joins it."""
FLAG = "\U0001f1e6-\U0001f1ff"
MODIFIERS = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
_ASCII_APART = r"""\s"()\[\]{}<>;!?,:$%*=|~^\\`'/"""
"""ASCII characters that no word contains, except where the pattern of words allows it."""
_IN_WORDS = frozenset("ʼ՚׳״‐‑־‿_°՛՜՞՟॰૰")
"""Punctuation and symbols that are parts of words: apostrophes, hyphens, accents and signs of abbreviation."""
_NO_APOSTROPHE = "\u0600-\u109f\u1100-\u1bff\u3040-\ud7ff\uf900-\ufaff"
"""Scripts from Arabic to Burmese, Hangul, Ethiopic, kana and Han: before their letters, `'` is a quotation mark."""
_HEBREW = "\u05d0-\u05ea"


@cache
def _pattern(*, ascii: bool) -> re.Pattern[str]:
    """The pattern of tokens, of ASCII alone or of any line.

    It never backtracks, so that tokenization is linear. Alternatives begin with a character or a class where they can,
    because those are skipped at once. Possessive quantifiers apply to single characters only,
    because those of groups are broken in Python 3.11.2 (Debian 12).
    """
    apart, plane, beyond, whole, within = _ASCII_APART, "", "", "", ""
    if not ascii:
        marks = of_category("PS")
        others = class_of(it for it in marks if it > LAST_OF_FIRST_PLANE)
        apart += SYMBOLS + class_of(it for it in marks if it <= LAST_OF_FIRST_PLANE and it not in _IN_WORDS)
        # what is beyond the first plane is compared range by range, which most letters must be spared
        plane = r"\U00010000-\U0010ffff"
        beyond = rf"| (?![{others}{SYMBOLS}])[{plane}]"
        whole = rf"""
        | [{FLAG}]{{2}} | [{SYMBOLS}][{MODIFIERS}]*+ (?: \u200d[{SYMBOLS}][{MODIFIERS}]*+ )*
        | [–—―]{{2,}}+ | ፡፡"""
        within = rf"""
                      | "(?<=[{_HEBREW}].)(?=[{_HEBREW}](?![{_HEBREW}])) | [·‧](?<=[lL].)(?=[lL])"""
    letters = rf"[^{apart}.\-{plane}]"
    return re.compile(
        rf"""
          [:;=8](?<!\S.)[-o'^]?[()\[\]DPpOo3/\\|*]{{1,4}}(?!\S) | [xX](?<!\S.)D(?!\S) | <(?<!\S.)3(?!\S)
        | \^(?<!\S.)_?\^(?!\S) | -(?<!\S.)_+-(?!\S)
        | (?P<address> (?:https?://|www\.) [^\s<>"“”]++ )
        | &(?:amp|lt|gt|quot|apos);
        {whole} | [0-9\#*]\ufe0f?\u20e3
        | \.{{2,}}+ | -{{2,}}+ | [!?]++ | (?P<same>[*=~^|\\])(?P=same)* | `` | ''
        | ['’](?i:s|m|re|ve|ll|d|em|tis|twas|\d\ds?)(?!\w)
        | [A-Z]{{1,3}}\$(?=[\d\s])
        | (?P<word> (?: {letters}++ {beyond} | \.(?={letters}{beyond}|-\w) | -(?!-)
                      | [,:/⁄٫٬．，：／](?<=\d.)(?=\d) | ['’](?<=\w.)(?=\w)(?![{_NO_APOSTROPHE}]) {within} )+ )
        | \S[\ufe00-\ufe0f]*+
        """,
        re.VERBOSE,
    )


_AFTER_ADDRESS = frozenset(".,;:!?'’)]}…").union("،؛؟۔।॥、。！？）」』")
_CLITIC = re.compile(r"n['’]t|['’](?:s|m|re|ve|ll|d)", re.IGNORECASE)
_CLITIC_LENGTHS = (3, 2)
_ELISION = re.compile(
    r"""(?: [jlmnst] | (?-i:d|D(?!['’][A-ZÀ-Þ])) | (?:lors|puis|jus|quoi)?qu )['’](?=[haàâäæeéèêëiîïoôöœuùûüyŷ])
    | [cç]['’](?=[aàâeéèêo])""",
    re.IGNORECASE | re.VERBOSE,
)
"""`l'` before a vowel; not `D'Amato`, and not the Breton letter `c'h`."""
_WITH_ELISION = re.compile(
    r"""\b(?:le|les|des|du|est|une|dans|qui|pour|pas|sur|par|avec|au|aux|et|ce|cette|il|elle|je|nous|vous)\b""",
    re.IGNORECASE,
)
_WITHOUT_ELISION = re.compile(
    r"""\b(?:the|of|and|to|is|was|with|that|for|from|by|at|are|this|have|has|had|be|as|or|it|he|his|my|you|your|we
    |der|die|das|und|nicht|ist|von|mit|ein|den|dem|auf|für|zu|og|det|som|på|av|til|ikke|er|och|är|att|van|het|niet
    |los|las|y|por|para|pero|más)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Frequent words of languages with and without `l'`, which no language of the other kind has as often."""

_DEVANAGARI = (
    r"(?:[\u0915-\u0939\u0958-\u095f]\u093c?\u094d)*"
    r"[\u0904-\u0939\u0958-\u0961\u0972-\u097f][\u0900-\u0903\u093a-\u094c\u0962\u0963]*"
)
"""A letter with the consonants before it and the signs on it."""
_INITIALS = re.compile(rf"[A-Z]|(?:[^\W\d_]\.)+[^\W\d_]|(?:[\u0900-\u097f]+\.)*{_DEVANAGARI}")
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


def words(line: str) -> Iterator[tuple[int, int]]:
    """Start and end of each token of a line. No token contains white space."""
    search = _pattern(ascii=line.isascii()).search
    elides: bool | None = None
    end = 0
    while match := search(line, end):
        begin, end = match.span()
        if match["address"]:
            while line[end - 1] in _AFTER_ADDRESS:
                end -= 1
        elif word := match["word"]:
            if line.startswith(".", end) and _takes_full_stop(word, line, end):
                end += 1
            elif "'" in word or "’" in word:
                if elision := _ELISION.match(word):
                    elides = _has_elisions(line) if elides is None else elides
                    if elides:
                        yield begin, begin + elision.end()
                        begin += elision.end()
                if clitic := _clitic_length(line[begin:end]):
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


def _has_elisions(line: str) -> bool:
    """Whether `l'` is a word of the line's language: it is in French, but English has `coup d'etat`.

    The frequent words of the line decide; without any, it is.
    """
    against = len(_WITHOUT_ELISION.findall(line))
    return not against or len(_WITH_ELISION.findall(line)) > against


# Sentences

_TERMINALS = SENTENCE_TERMINAL | {"፡፡"}
NO_SPACE_AFTER = frozenset("।॥።፧។៕။。！？").union(("፡፡",))
"""Sentences end after these even where no white space follows."""
CLOSES = frozenset("\"'”’»)]}」』）】》〉〕")
_ENDS = CLOSES.union(".…!?:;\u037e፡", SENTENCE_TERMINAL)
"""Last characters of tokens that may end a sentence."""
_GOES_ON = frozenset(",;:)]}%")
_BEGINS = re.compile(
    """The|An?|This|That|These|Those|He|She|It|We|You|They|I|But|And|In|On|At|For|If|As|When|While|After|Before
    |There|Its|His|Her|Their|Our|My|What|Who|How|Why|No|Yes|Not""",
    re.VERBOSE,
)
LOOK_BACK = 4
_BEFORE_CAPITALS = {":": "ARMENIAN", ";": "GREEK", "\u037e": "GREEK"}
"""Marks that end sentences of one script before a capital: a full stop and a question mark."""
_NO_FULL_STOPS = re.compile("QUESTION|EXCLAMATION|INTERROBANG")
_FULL_STOPS = sorted(it for it in SENTENCE_TERMINAL if not _NO_FULL_STOPS.search(name(it, "")))
_OWN_STOP = re.compile(f"[{''.join(_FULL_STOPS)}፡]")
_ARMENIAN_STOP = re.compile(r":(?<=[ա-և]:)\s+[Ա-Ֆ]")
_WITHOUT_OWN_STOP = frozenset(("LATIN", "GREEK", "CYRILLIC", "HANGUL", "DIGIT", "FULLWIDTH", ""))
_GEORGIAN = frozenset(map(chr, range(0x10D0, 0x1100)))
"""Letters of a script without case, which Unicode calls lower-case."""


class Words:
    """The unit `words` in one document, whose lines come in turn."""

    def __init__(self) -> None:
        self._own_stops: set[str] = set()
        """Scripts after whose letters there was a full stop of their own so far."""

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        """Start and end of each token of the document's next line."""
        self._read_stops(line)
        return words(line)

    def ends(self, sentence: Sequence[Token], following: Token) -> bool:
        """Whether the sentence ends before the token `following`.

        It ends after `.`, `!`, `?`, dots and the marks of other scripts, with the quotes and brackets that close
        there, if white space follows and the next token does not start with a lower-case letter. After some marks,
        such as `।` and `。`, no white space is needed. After an abbreviation it ends only before words such as `The`,
        and never after a title or a single initial. A `.` after a script that has had a full stop of its own ends
        nothing.
        """
        if sentence[-1].text[-1] not in _ENDS:
            return False
        first, apart = following.text[0], following.before
        if apart and (first in _GOES_ON or (first.islower() and first not in _GEORGIAN)):
            return False
        place = len(sentence) - 1
        nearest = max(0, len(sentence) - LOOK_BACK)
        while place > nearest and sentence[place].text in CLOSES and not sentence[place].before:
            place -= 1
        last = sentence[place].text
        ahead = sentence[place - 1].text[-1] if place and not sentence[place].before else ""
        if last in NO_SPACE_AFTER:
            return bool(apart) or not (first in CLOSES or first in _TERMINALS or first in ".…!?")
        if not apart:
            return last[0] in "!?" and "CJK" == script_of(ahead) == script_of(first)
        if last == ".":
            return not self._own_stops or script_of(ahead) not in self._own_stops
        if last[0] in "!?…" or last.startswith("..") or last in _TERMINALS:
            return True
        if last in _BEFORE_CAPITALS:
            return first.isupper() and script_of(ahead) == _BEFORE_CAPITALS[last]
        if len(last) < 3 or not last.endswith("."):
            return False
        return not _TITLE.fullmatch(last[:-1]) and _BEGINS.fullmatch(following.text) is not None

    def _read_stops(self, line: str) -> None:
        if line.isascii():
            return
        for match in _OWN_STOP.finditer(line):
            script = script_of(line[match.start() - 1 : match.start()])
            if script not in _WITHOUT_OWN_STOP:
                self._own_stops.add(script)
        if _ARMENIAN_STOP.search(line):
            self._own_stops.add("ARMENIAN")
