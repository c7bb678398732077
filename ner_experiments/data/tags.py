"""Tag schemes as tables: mentions from tags, tags from mentions, and what may follow what.

A tag is `O`, or a letter, a hyphen and a type (`B-PER`, `I-creative-work`: the first hyphen separates).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ner_experiments.utils.text import quoted

Span = tuple[int, int, str]
"""A mention: its first token, the token after its last, its type."""

Scheme = Literal["iob1", "iob2", "bioes", "bmes"]

# The letter of a mention's first token, its inner ones, its last, and of a mention of one token.
# In iob1 a first token takes B instead where the token before it ends a mention of the same type.
_TABLE: dict[Scheme, tuple[str, str, str, str]] = {
    "iob1": ("I", "I", "I", "I"),
    "iob2": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bmes": ("B", "M", "E", "S"),
}
_LETTERS: dict[Scheme, str] = {"iob1": "IB", "iob2": "BI", "bioes": "BIES", "bmes": "BMES"}
_ANY_LETTER = "BIMES"
_OPENS = frozenset("BS")
_CLOSES = frozenset("ES")


def spans(tags: Iterable[str]) -> list[Span]:
    """The mentions that conlleval reads from tags of any scheme, in order; this is how gold tags are read.

    Every tag but `O` is in exactly one mention. B and S always begin one; so does I, M or E after `O`, after
    E or S, or after another type. E and S always end one. Legal or not, no mention is lost.

    Source: conlleval.pl (Tjong Kim Sang), with S and with B after E as its successors read them (seqeval's
    default mode). ValueError for what is no tag: an unknown letter, or no type.
    """
    found: list[Span] = []
    start, inside = 0, ""
    for position, tag in enumerate((*tags, "O")):
        letter, type_ = _split(tag, _ANY_LETTER)
        if inside and (type_ != inside or letter in _OPENS):
            found.append((start, position, inside))
            inside = ""
        if type_ and not inside:
            start, inside = position, type_
        if letter in _CLOSES:
            found.append((start, position + 1, inside))
            inside = ""
    return found


def strict_spans(tags: Iterable[str]) -> list[Span]:
    """The mentions of BIOES tags that are exactly S, or B I* E of one type, in order; the rest counts as `O`.

    Equal to seqeval's `mode="strict", scheme=IOBES`; this is how predictions are scored (Li et al. 2020).
    ValueError for what is no BIOES tag.
    """
    found: list[Span] = []
    start, inside = 0, ""
    for position, tag in enumerate(tags):
        letter, type_ = _split(tag, _LETTERS["bioes"])
        if letter == "B":
            start, inside = position, type_
        elif letter == "S":
            found.append((position, position + 1, type_))
            inside = ""
        elif type_ != inside:
            inside = ""
        elif letter == "E":
            found.append((start, position + 1, type_))
            inside = ""
    return found


def encode(spans: Iterable[Span], length: int, scheme: Scheme) -> tuple[str, ...]:
    """The tags of a sentence of `length` tokens with these mentions, in any order.

    ValueError for a mention that is empty, that reaches out of the sentence, or that overlaps another.
    """
    first, inner, last, single = _TABLE[scheme]
    tags = ["O"] * length
    before, type_before = 0, ""
    for start, end, type_ in sorted(spans):
        if not 0 <= start < end <= length:
            raise ValueError(
                f"mention {(start, end, type_)} is not within the {length} tokens of its sentence"
            )
        if start < before:
            raise ValueError(
                f"mention {(start, end, type_)} overlaps the one before it, which ends at {before}"
            )
        tags[start:end] = [f"{inner}-{type_}"] * (end - start)
        tags[end - 1] = f"{last}-{type_}"
        tags[start] = f"{first if end - start > 1 else single}-{type_}"
        if scheme == "iob1" and (start, type_) == (before, type_before):
            tags[start] = f"B-{type_}"
        before, type_before = end, type_
    return tuple(tags)


def convert(tags: Sequence[str], to: Scheme) -> tuple[str, ...]:
    """The tags, of any scheme, in scheme `to`, with the same mentions (in the reading of `spans`)."""
    mentions = spans(tags)
    converted = encode(mentions, len(tags), to)
    assert spans(converted) == mentions, f"converting {tags} to {to} changed the mentions"
    return converted


def illegal(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """Positions of the tags that break the scheme, which are those that `convert` to it would change.

    iob2: I where no mention of its type is open. bioes and bmes: also E there, and B or I (M) after which its
    mention does not go on. iob1: B that does not separate two mentions of one type (CoNLL-2003's
    train has two); I may begin one anywhere.
    ValueError for a letter that the scheme does not have, or no type.
    """
    for tag in tags:
        _split(tag, _LETTERS[scheme])
    legal = encode(spans(tags), len(tags), scheme)
    return [position for position, tag in enumerate(tags) if tag != legal[position]]


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which labels may begin a sentence, which may follow which, and which may end one."""

    start: tuple[bool, ...]
    pairs: tuple[tuple[bool, ...], ...]
    """`pairs[i][j]`: label j may follow label i."""
    end: tuple[bool, ...]


def allowed_transitions(labels: Sequence[str]) -> Allowed:
    """What legal BIOES tags over these labels, in their order, look like from one token to the next.

    A sentence keeps to it just when `strict_spans` reads every one of its tags. ValueError as there.
    """
    split = [_split(label, _LETTERS["bioes"]) for label in labels]
    # The type of the mention that is open before the label, and after it; none is "".
    opened = ["" if letter in "OBS" else type_ for letter, type_ in split]
    left = ["" if letter in "OES" else type_ for letter, type_ in split]
    return Allowed(
        start=tuple(type_ == "" for type_ in opened),
        pairs=tuple(tuple(after == before for before in opened) for after in left),
        end=tuple(type_ == "" for type_ in left),
    )


@cache  # a corpus has a few dozen different tags, and millions of them
def _split(tag: str, letters: str) -> tuple[str, str]:
    """Letter and type; `O` has the type "", and no other tag does."""
    if tag == "O":
        return "O", ""
    letter, _, type_ = tag.partition("-")
    if not type_ or len(letter) != 1 or letter not in letters:
        prefixes = ", ".join(f"{allowed}-" for allowed in letters)
        raise ValueError(f"tag {quoted(tag)} is neither O nor one of {prefixes} followed by a type")
    return letter, type_


CHUNK_TAGS = ("O", "S", "B", "I", "E")
"""The letters of BIOES tags."""

LENGTHS = ("1", "2", "3", "more than 3")


def length_group(mention: Span) -> str:
    """Number of tokens of a mention, as one of `LENGTHS`."""
    return LENGTHS[min(mention[1] - mention[0], len(LENGTHS)) - 1]
