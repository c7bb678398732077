"""Tag schemes as tables: mentions from tags, tags from mentions, and the allowed transitions.

A tag is `O`, or a letter, a hyphen and a type (`B-PER`, `I-creative-work`: the first hyphen separates).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Literal

from ner_experiments.utils.text import truncated_repr

Span = tuple[int, int, str]
"""A mention: its first token, the token after its last one, and its type."""

Window = tuple[str, str, str]
"""A tag between those before and after it, or `O` at the ends of a sentence.

It determines, as the whole sentence does, whether its middle tag starts a mention, whether it is legal, and its
counterpart in another scheme. A corpus has a few hundred distinct windows.
"""

Scheme = Literal["iob1", "iob2", "bioes", "bmes", "bilou"]
"""bilou is also called BIOLU."""

CHUNK_TAGS = ("O", "S", "B", "I", "E")
"""The letters of BIOES tags."""

LENGTHS = ("1", "2", "3", "more than 3")
"""Bins of mention lengths in tokens."""

# The letters of a mention's first token, its inner tokens, its last token, and of a single-token mention.
# iob1 writes B on a first token directly after another mention of the same type.
_TABLE: dict[Scheme, tuple[str, str, str, str]] = {
    "iob1": ("I", "I", "I", "I"),
    "iob2": ("B", "I", "I", "B"),
    "bioes": ("B", "I", "E", "S"),
    "bmes": ("B", "M", "E", "S"),
    "bilou": ("B", "I", "L", "U"),
}
_LETTERS: dict[Scheme, str] = {"iob1": "IB", "iob2": "BI", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}
_ANY_LETTER = "BIMESLU"
_OPENS = frozenset("BSU")
_CLOSES = frozenset("ESLU")


def spans(tags: Iterable[str]) -> list[Span]:
    """Mentions of tags in any scheme, in order, as conlleval reads them. Gold tags are read this way.

    Every tag but `O` belongs to exactly one mention, whether the tags are legal or not. B and S always start
    a mention; so does I, M or E after `O`, after E or S, or after another type. E and S always end one. L and U are
    read as E and S.

    Source: conlleval.pl (Tjong Kim Sang), with S and with B after E as its successors read them (seqeval's
    default mode). Raises ValueError for a string that is no tag: an unknown letter, or no type.
    """
    mentions: list[Span] = []
    start, inside = 0, ""
    for position, tag in enumerate((*tags, "O")):
        if tag == "O" and not inside:  # most tags
            continue
        letter, type_ = _split(tag, _ANY_LETTER)
        if inside and (type_ != inside or letter in _OPENS):
            mentions.append((start, position, inside))
            inside = ""
        if type_ and not inside:
            start, inside = position, type_
        if letter in _CLOSES:
            mentions.append((start, position + 1, inside))
            inside = ""
    return mentions


def strict_spans(tags: Iterable[str]) -> list[Span]:
    """Mentions of BIOES tags that are exactly S, or B I* E of one type, in order; all else counts as `O`.

    Equal to seqeval's `mode="strict", scheme=IOBES`. Predictions are scored this way (Li et al. 2020).
    Raises ValueError for a string that is no BIOES tag.
    """
    mentions: list[Span] = []
    start, inside = 0, ""
    for position, tag in enumerate(tags):
        if tag == "O":  # most tags
            inside = ""
            continue
        letter, type_ = _split(tag, _LETTERS["bioes"])
        if letter == "B":
            start, inside = position, type_
        elif letter == "S":
            mentions.append((position, position + 1, type_))
            inside = ""
        elif type_ != inside:
            inside = ""
        elif letter == "E":
            mentions.append((start, position + 1, type_))
            inside = ""
    return mentions


def encode(spans: Iterable[Span], length: int, scheme: Scheme) -> tuple[str, ...]:
    """Tags of a sentence of `length` tokens with these mentions, given in any order.

    Raises ValueError for a mention that is empty, outside the sentence, or overlaps another one.
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
    """Convert tags of any scheme to scheme `to`, with the same mentions as read by `spans`."""
    mentions = spans(tags)
    converted = encode(mentions, len(tags), to)
    assert spans(converted) == mentions, f"converting {tags} to {to} changed the mentions"
    return converted


def illegal_positions(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """Positions of the tags that break the scheme: those that `convert` to the same scheme would change.

    iob2: I where no mention of its type is open. bioes, bmes and bilou: also E (L) there, and B or I (M) whose mention
    does not continue. iob1: B that does not separate two mentions of one type (CoNLL-2003's train has two); I may
    start a mention anywhere. Raises ValueError for a letter outside the scheme, or a tag without type.
    """
    for tag in dict.fromkeys(tags):
        _split(tag, _LETTERS[scheme])
    legal = encode(spans(tags), len(tags), scheme)
    if legal == tuple(tags):
        return []
    return [position for position, tag in enumerate(tags) if tag != legal[position]]


def windows_of(tags: tuple[str, ...]) -> Iterator[Window]:
    """The window of each tag."""
    return zip(("O", *tags), tags, (*tags[1:], "O"), strict=False)


def count_windows(sequences: Iterable[tuple[str, ...]]) -> Counter[Window]:
    """Number of occurrences of each window in sequences of tags."""
    return Counter(chain.from_iterable(map(windows_of, sequences)))


def distinct_tags(windows: Iterable[Window]) -> set[str]:
    return {tag for _, tag, _ in windows}


def count_mentions(counts: Counter[Window]) -> Counter[str]:
    """Number of mentions of each type, as `spans` reads them, from the number of each window."""
    mentions: Counter[str] = Counter()
    for window, number in counts.items():
        mentions.update({type_: number for start, _, type_ in spans(window) if start == 1})
    return mentions


def count_illegal(counts: Counter[Window], scheme: Scheme) -> int:
    """Number of tags that break the scheme, from the number of each window.

    Raises ValueError as `illegal_positions`.
    """
    return sum(number for window, number in counts.items() if 1 in illegal_positions(window, scheme))


@dataclass(frozen=True, slots=True)
class Allowed:
    """Masks over labels: which may start a sentence, which may follow which, and which may end a sentence."""

    start: tuple[bool, ...]
    pairs: tuple[tuple[bool, ...], ...]
    """`pairs[i][j]`: whether label j may follow label i."""
    end: tuple[bool, ...]


def allowed_transitions(labels: Sequence[str]) -> Allowed:
    """Transitions of legal BIOES tags over these labels, indexed in their order.

    A sentence follows them if and only if `strict_spans` accepts every one of its tags. Raises ValueError
    as `strict_spans` does.
    """
    split = [_split(label, _LETTERS["bioes"]) for label in labels]
    # The type of the mention that is open before each label, and after it; "" if there is none.
    opened = ["" if letter in "OBS" else type_ for letter, type_ in split]
    still_open = ["" if letter in "OES" else type_ for letter, type_ in split]
    return Allowed(
        start=tuple(type_ == "" for type_ in opened),
        pairs=tuple(tuple(after == before for before in opened) for after in still_open),
        end=tuple(type_ == "" for type_ in still_open),
    )


def length_group(mention: Span) -> str:
    """Number of tokens of a mention, binned as one of `LENGTHS`."""
    return LENGTHS[min(mention[1] - mention[0], len(LENGTHS)) - 1]


@cache  # a corpus has a few dozen distinct tags and millions of occurrences
def _split(tag: str, letters: str) -> tuple[str, str]:
    """Letter and type of a tag. Only `O` has the type ""."""
    if tag == "O":
        return "O", ""
    letter, _, type_ = tag.partition("-")
    if not type_ or len(letter) != 1 or letter not in letters:
        prefixes = ", ".join(f"{allowed}-" for allowed in letters)
        raise ValueError(f"tag {truncated_repr(tag)} is neither O nor one of {prefixes} followed by a type")
    return letter, type_
