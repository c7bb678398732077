"""Sentence splitting and tokenization of raw text, with character offsets, line by line and in linear time.

Training on annotated texts, `predict` and the service ask `tokenize` or `tokenize_lines`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from typing import Any, Protocol

from ner_experiments.data.character_tokens import Characters
from ner_experiments.data.segmenters import PACKAGES, SEGMENTERS, Segmented, checked, is_installed
from ner_experiments.data.sentence import Tokens, UnitName
from ner_experiments.data.word_tokens import Token, Words
from ner_experiments.utils.text import truncated_repr


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
    unit = _unit(tokens)
    ends = unit.ends
    sentence: list[Token] = []
    for token in _tokens(document, unit.find):
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


class Unit(Protocol):
    """A unit of tokenization in one document, whose lines come in turn."""

    def find(self, line: str) -> Iterator[tuple[int, int]]:
        """Start and end of each token of the document's next line."""
        ...

    def ends(self, sentence: Sequence[Token], following: Token) -> bool:
        """Whether the sentence ends before the token `following`."""
        ...


UNITS: Mapping[UnitName, Callable[[], Unit]] = {
    "words": Words,
    "characters": Characters,
    **{name: partial(Segmented, segment) for name, segment in SEGMENTERS.items()},
}


def check_tokens(setting: str, tokens: Tokens) -> None:
    """Raise ValueError unless the value of a setting is a unit or a segmenter."""
    if not (callable(tokens) or (isinstance(tokens, str) and tokens in UNITS)):
        raise ValueError(f"{setting} must be one of {', '.join(UNITS)}, got {truncated_repr(tokens)}")


def require(tokens: Tokens) -> None:
    """Raise ValueError if a package that the unit needs is not installed."""
    if isinstance(tokens, str) and not is_installed(tokens):
        packages = list(PACKAGES[tokens].values())
        rule = f"data.tokens={tokens} needs {' and '.join(packages)}: pip install {' '.join(packages)}"
        raise ValueError(rule)


def installed() -> list[UnitName]:
    """The units whose packages are installed."""
    return [unit for unit in UNITS if is_installed(unit)]


def joint(tokens: Tokens) -> str:
    """The text between tokens whose own text is not known: none in scripts without spaces, else a space."""
    return "" if tokens in ("characters", "icu", "fugashi") else " "


def _unit(tokens: Tokens) -> Unit:
    require(tokens)
    return Segmented(checked(tokens)) if callable(tokens) else UNITS[tokens]()
