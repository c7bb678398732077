"""`Annotated`, the sentence that formats write, made from a text and its mentions by characters, or from tags."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ner_experiments.data.formats.options import Nested, Offsets, TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.scripts import WITHOUT_SPACES
from ner_experiments.data.sentence import Gaps, Sentence, Unreachable, intern_all
from ner_experiments.data.tags import Span, encode, spans
from ner_experiments.data.tokenize import tokenize
from ner_experiments.utils.text import truncated_repr

DISAGREE = "disagree with their text"
CROSS = "cross the end of a sentence"
FILE = "file"
"""Key of the name of a sentence's file, among the sentences of several files."""
Pair = tuple[int, int]
"""The first character of a token, and the one after its last."""


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """A sentence as a file annotates it.

    mentions: (first token, one after the last, type), in order of their starts, the longer first. They may be nested.
    text, offsets: the sentence's text, and each token's first character in it and the one after its last.
    place, line: where it is in its file, such as train.jsonl:7, for messages.
    keys: what else the file says about it, such as id and meta; formats that have keys write them back.
    document: name of the document that it is from; empty if the file has none.
    unreachable, scored, gaps: as in `Sentence`.
    """

    words: tuple[str, ...]
    mentions: tuple[Span, ...]
    text: str
    offsets: tuple[tuple[int, int], ...]
    place: str = ""
    line: int = 0
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    document: str = ""
    unreachable: tuple[Unreachable, ...] = ()
    scored: tuple[Annotated, ...] = field(default=(), compare=False)
    gaps: Gaps = field(default=(), compare=False)

    def tags(self) -> tuple[str, ...]:
        """IOB2 tags. Raises ValueError for nested mentions."""
        return encode(self.mentions, len(self.words), "iob2")

    def characters(self) -> list[Characters]:
        """The mentions by their characters in `text`."""
        return [
            Characters(self.offsets[first][0], self.offsets[last - 1][1], type_)
            for first, last, type_ in self.mentions
        ]

    def texts(self) -> list[tuple[str, str]]:
        """Type of each mention and its text without white space, by which two formats can be compared."""
        return [(type_, "".join(self.text[start:end].split())) for start, end, type_ in self.characters()]


class Characters(NamedTuple):
    """A mention by characters: its first, the one after its last, and its type."""

    start: int
    end: int
    type: str


class Stated(NamedTuple):
    """A mention as a file states it, by characters, and its place for messages.

    written: the text that the file repeats for it, if it does.
    in_pieces: whether these are the first and the last character of a mention that leaves out characters in between.
    """

    start: int
    end: int
    type: str
    place: str
    written: str | None = None
    in_pieces: bool = False


def in_order(mentions: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(sorted(set(mentions), key=lambda it: (it[0], -it[1], it[2])))


# Sentences of words


def of_words(words: Sequence[str], mentions: Iterable[Span], *, joint: str = " ", **about: Any) -> Annotated:
    """A sentence of words whose text is not known: the words joined by `joint`, which is empty for characters."""
    starts = accumulate((len(word) + len(joint) for word in words), initial=0)
    offsets = tuple((start, start + len(word)) for start, word in zip(starts, words, strict=False))
    return Annotated(
        words=tuple(words), mentions=in_order(mentions), text=joint.join(words), offsets=offsets, **about
    )


def of_sentence(sentence: Sentence, *, joint: str = " ", place: str = "") -> Annotated:
    """A sentence of a corpus, whose tags may be of any scheme."""
    about: dict[str, Any] = {"columns": sentence.columns, "line": sentence.line, "gaps": sentence.gaps}
    if isinstance(sentence, Tagged):
        place, about["keys"] = sentence.at[0], sentence.keys
    return of_words(sentence.words, spans(sentence.tags), joint=joint, place=place, **about)


@dataclass(frozen=True)
class Tagged(Sentence):
    """A sentence with the tags of its file, of which not every line is a token.

    at: where each token is, such as train.csv:7. keys: as in `Annotated`.
    """

    at: Sequence[str] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)

    def place(self, token: int) -> str:
        return self.at[token]


def of_tokens(words: Sequence[str], tags: Sequence[str], at: Sequence[str], **about: Any) -> Tagged:
    return Tagged(intern_all(words), intern_all(tags), at=at, **about)


# Sentences of a text


def of_text(
    text: str,
    mentions: Iterable[Stated],
    options: TextOptions,
    remarks: Remarks,
    *,
    place: str,
    tokens: Sequence[Sequence[Pair]] | None = None,
    **about: Any,
) -> Iterator[Annotated]:
    """The sentences of a text, with their mentions. White space at the ends of a mention does not count.

    tokens: the offsets of the tokens of each sentence, if the file has them; those of white space are left out.
    Dev and test (`options.gold`) have the tokens and sentences that `predict` makes. In train, no sentence ends
    inside a mention, and `options.misaligned` may change tokens and mentions. Faults, see `Remarks.fault`, are mentions
    outside the text, those with another text than the file repeats, and in train those that are misaligned.
    """
    sentences = _sentences(text, options, tokens)
    every = [pair for sentence in sentences for pair in sentence]
    gold, faulty = _sound(text, [] if options.gold == "none" else mentions, every, options, remarks)
    if options.nested:  # before they are aligned with tokens, on which it does not depend which are kept

        def length(it: Stated) -> int:
            first, last = _inside(every, it)
            return last - first

        gold = _without_overlap(gold, options.nested, remarks, lambda it: text[it.start : it.end], length)
    if not every:
        if gold or faulty:
            remarks.fault(f"{(*gold, *faulty)[0].place}: a mention in a text without a token")
        return
    about = {"place": place, "own_tokens": tokens is not None, **about}
    scored = partial(_scored, text, sentences, gold, faulty, **about)
    if options.gold != "train":
        yield from scored()
        return
    kept, cuts = _aligned(text, gold, every, options, remarks)
    ends = {sentence[-1][1] for sentence in sentences}
    tokens_of = [_inside(every, it) for it in kept]
    inner = {end for first, last in tokens_of for _, end in every[first : last - 1]}
    expanded = any(not _is_aligned(every, it) for it in kept)
    decided = bool(cuts or faulty or expanded or len(kept) < len(gold) or not inner.isdisjoint(ends))
    plain = list(zip(sentences, scored(), strict=True)) if decided else []
    every = list(_cut(every, cuts))
    covered = sorted((*_inside(every, it), it.type) for it in kept)
    ends -= inner
    begin = 0
    for number, (_, end) in enumerate(every, 1):
        if end not in ends:
            continue
        start, offsets = every[begin][0], every[begin:number]
        found = []
        while covered and covered[0][0] < number:
            first, last, type_ = covered.pop(0)
            found.append((first - begin, last - begin, type_))
        begin = number
        it = _sentence(text, offsets, found, **about)
        there = tuple(other for tokens, other in plain if start <= tokens[0][0] < end)
        yield it if there in ((), (it,)) else replace(it, scored=there)


def _sentence(
    text: str, offsets: Sequence[Pair], mentions: Iterable[Span], *, own_tokens: bool, **about: Any
) -> Annotated:
    """own_tokens: whether the file has the tokens."""
    start, end = offsets[0][0], offsets[-1][1]
    between = (text[one:other] for (_, one), (other, _) in pairwise(offsets))
    return Annotated(
        words=tuple(text[one:other] for one, other in offsets),
        mentions=in_order(mentions),
        text=text[start:end],
        offsets=tuple((one - start, other - start) for one, other in offsets),
        gaps=intern_all(("", *between, "")) if own_tokens else None,
        **about,
    )


def _sentences(
    text: str, options: TextOptions, tokens: Sequence[Sequence[Pair]] | None
) -> list[Sequence[Pair]]:
    """The offsets of the tokens of each sentence."""
    if tokens is None:
        return [sentence.offsets for sentence in tokenize(text, options.tokens, lines=options.lines)]
    visible = [[(start, end) for start, end in it if text[start:end].strip(" \t\r\n")] for it in tokens]
    return [it for it in visible if it]


def _inside(tokens: Sequence[Pair], it: Stated) -> tuple[int, int]:
    """The first token that has a character of the mention, and the token after the last such one."""
    first = bisect_right(tokens, it.start, key=lambda token: token[1])
    return first, max(first, bisect_left(tokens, it.end, key=lambda token: token[0]))


def _is_aligned(tokens: Sequence[Pair], it: Stated) -> bool:
    first, last = _inside(tokens, it)
    return first < last and tokens[first][0] >= it.start and tokens[last - 1][1] <= it.end


def _sound(
    text: str, mentions: Iterable[Stated], tokens: Sequence[Pair], options: TextOptions, remarks: Remarks
) -> tuple[list[Stated], list[Stated]]:
    """The mentions whose offsets may be right, each once and without white space at its ends, and the others."""
    sound: dict[tuple[int, int, str, bool], Stated] = {}
    faulty = []
    for it in mentions:
        if not (fault := _fault(text, it)):
            first, last = _inside(tokens, it)
            if first < last:
                start, end = max(it.start, tokens[first][0]), min(it.end, tokens[last - 1][1])
                it = it._replace(start=start, end=end)
            sound.setdefault((it.start, it.end, it.type, it.in_pieces), it)
        elif options.misaligned == "skip":
            faulty.append(it)
            if options.gold == "train":
                remarks.add(f"mentions that {DISAGREE}, skipped", it.place, fault)
        else:
            as_utf16 = _fits_as_utf16(text, it, tokens, options)
            remarks.fault(f"{it.place}: {fault}", [("offsets", "utf16")] if as_utf16 else skip(options))
    return sorted(sound.values(), key=lambda it: (it.start, -it.end, it.type)), faulty


def skip(options: TextOptions) -> list[tuple[str, str]]:
    """The setting that skips faulty mentions; none where another is stated, whose mentions it would skip as well."""
    return [("misaligned", "skip")] if options.misaligned == "refuse" else []


def _fault(text: str, it: Stated) -> str:
    """The rule that the offsets of a mention break whatever the tokens are; empty if they break none."""
    if not 0 <= it.start < it.end <= len(text):
        return f"mention {it[:3]} is not within the {len(text)} characters of its text"
    there = text[it.start : it.end]
    if it.written is not None and not it.in_pieces and there.split() != it.written.split():
        written = truncated_repr(it.written)
        return f"a mention has the text {written}, but its offsets give {truncated_repr(there)}"
    return ""


def to_characters(text: str, offsets: Offsets) -> Callable[[int], int]:
    """A function from offsets in a text to characters. It raises ValueError for the second half of a character."""
    if offsets == "characters" or max(text, default="") <= "\uffff":
        return lambda place: place
    starts = [*accumulate((1 + (it > "\uffff") for it in text), initial=0)]

    def character(place: int) -> int:
        if not 0 <= place <= starts[-1]:
            return place
        number = bisect_left(starts, place)
        if starts[number] != place:
            raise ValueError(f"offset {place} is inside a character")
        return number

    return character


def _fits_as_utf16(text: str, it: Stated, tokens: Sequence[Pair], options: TextOptions) -> bool:
    """Whether the offsets of a mention that does not fit would do so in units of UTF-16."""
    if options.offsets == "utf16" or max(text, default="") <= "\uffff":
        return False
    character = to_characters(text, "utf16")
    try:
        moved = it._replace(start=character(it.start), end=character(it.end))
    except ValueError:
        return False
    return not _fault(text, moved) and (it.written is not None or _is_aligned(tokens, moved))


def _scored(
    text: str,
    sentences: Sequence[Sequence[Pair]],
    gold: Iterable[Stated],
    faulty: Iterable[Stated],
    **about: Any,
) -> Iterator[Annotated]:
    """The sentences as they are, with those of the mentions that they can express; the others are unreachable."""
    starts = [tokens[0][0] for tokens in sentences]
    every = [pair for tokens in sentences for pair in tokens]
    found: list[list[Span]] = [[] for _ in sentences]
    unreachable: list[list[Unreachable]] = [[] for _ in sentences]
    for it in gold:
        number = max(0, bisect_right(starts, it.start) - 1)
        tokens = sentences[number]
        first, last = _inside(tokens, it)
        if not (reason := _reason(tokens, it)):
            found[number].append((first, last, it.type))
            continue
        touched = [every[token] for token in range(*_inside(every, it))] or [(it.start, it.end)]
        parts = (text[max(start, it.start) : min(end, it.end)] for start, end in touched)
        unreachable[number].append(
            Unreachable(it.type, tuple(" ".join(part.split()) for part in parts), reason)
        )
    for it in faulty:
        number = max(0, bisect_right(starts, it.start) - 1)
        words = tuple((it.written or text[max(0, it.start) : max(0, it.end)]).split()) or ("",)
        unreachable[number].append(Unreachable(it.type, words, DISAGREE))
    for tokens, mentions, others in zip(sentences, found, unreachable, strict=True):
        yield _sentence(text, tokens, mentions, unreachable=tuple(others), **about)


def _reason(tokens: Sequence[Pair], it: Stated) -> str:
    """The reason why a mention that starts in a sentence with these tokens is unreachable; empty if it is not."""
    first, last = _inside(tokens, it)
    if it.in_pieces:
        return "are in pieces"
    if it.end > tokens[-1][1] and first < last:
        return CROSS
    if first == last:
        return "cover no token"
    return "" if _is_aligned(tokens, it) else "start or end inside a token"


def _aligned(
    text: str, mentions: Iterable[Stated], tokens: Sequence[Pair], options: TextOptions, remarks: Remarks
) -> tuple[list[Stated], set[int]]:
    """The mentions of train to keep, and where tokens are to be split for them."""
    kept, cuts = [], set()
    for it in mentions:
        if not it.in_pieces and _is_aligned(tokens, it):
            kept.append(it)
            continue
        first, last = _inside(tokens, it)
        shown = f"{it.type} {truncated_repr(text[it.start : it.end])}"
        choices = (
            ["skip"] if first == last else ["expand", "skip"] if it.in_pieces else ["split", "expand", "skip"]
        )
        if options.misaligned not in choices:
            rule = "covers no token" if first == last else "starts or ends inside a token"
            settings = [*(("misaligned", choice) for choice in choices if choice != "skip"), *skip(options)]
            if _fits_as_utf16(text, it, tokens, options):
                settings = [("offsets", "utf16"), *settings]
            elif options.tokens == "words" and any(
                WITHOUT_SPACES.search(text, *token) for token in tokens[first:last]
            ):
                settings = [("tokens", "characters"), *settings]
            remarks.fault(
                f"{it.place}: mention {shown} at {it.start} {'is in pieces' if it.in_pieces else rule}",
                settings,
            )
            continue
        what = "in pieces" if it.in_pieces else "inside a token"
        done = {"split": "tokens split for it", "expand": "expanded to whole tokens", "skip": "skipped"}
        remarks.add(f"mentions {what}, {done[options.misaligned]}", it.place, shown)
        if options.misaligned == "split":
            cuts |= {it.start, it.end}
        if options.misaligned != "skip":
            kept.append(it)
    return kept, cuts


def _cut(offsets: Iterable[Pair], cuts: set[int]) -> Iterator[Pair]:
    at = sorted(cuts)
    for start, end in offsets:
        yield from pairwise((start, *at[bisect_right(at, start) : bisect_left(at, end)], end))


# Flat mentions


def flat(sentence: Annotated, nested: Nested, remarks: Remarks) -> Annotated:
    """The sentence without overlapping mentions, as `_without_overlap`. Lengths are those in tokens."""
    kept = _without_overlap(
        [Stated(*it, sentence.place) for it in sentence.mentions],
        nested,
        remarks,
        lambda it: " ".join(sentence.words[it.start : it.end]),
        lambda it: it.end - it.start,
    )
    return replace(sentence, mentions=in_order((it.start, it.end, it.type) for it in kept))


def _without_overlap(
    mentions: list[Stated],
    nested: Nested,
    remarks: Remarks,
    shown: Callable[[Stated], str],
    length: Callable[[Stated], int],
) -> list[Stated]:
    """The mentions to keep: only the outermost, or only the innermost, of nested ones.

    Of two that overlap without nesting, "outermost" keeps the first and "innermost" the shorter. Of two with the same
    tokens, the first is kept. Overlapping mentions are a fault, see `Remarks.fault`, if `nested` is "refuse".
    mentions: in order, so that of nested ones the outer comes first.
    """
    if all(one.end <= other.start for one, other in pairwise(mentions)):
        return mentions
    innermost = sorted(mentions, key=lambda it: (length(it), it.start, it.end))
    kept: list[Stated] = []
    for it in innermost if nested == "innermost" else mentions:
        clash = next((other for other in kept if it.start < other.end and other.start < it.end), None)
        if clash is None:
            kept.append(it)
        elif nested == "refuse":
            both = (
                f"{truncated_repr(shown(it))} ({it.type}) and {truncated_repr(shown(clash))} ({clash.type})"
            )
            settings = [("nested", "outermost"), ("nested", "innermost")]
            remarks.fault(f"{it.place}: nested or overlapping mentions: {both}", settings)
        else:
            remarks.add(f"mentions left out beside the {nested}", it.place, shown(it))
    return [it for it in mentions if it in kept]
