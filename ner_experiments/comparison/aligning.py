"""Mentions of a file in the sentences of gold, by characters, and all files as tags of the same tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import accumulate, chain, groupby, islice, pairwise, takewhile, zip_longest
from operator import itemgetter

from ner_experiments.comparison.reading import Answer, Text, Texts, ends_of, visible
from ner_experiments.data.tags import Span, encode
from ner_experiments.runs.predictions import UNREACHABLE, Predicted, as_field
from ner_experiments.utils.text import truncated_repr

MOST_SHOWN = 3
"""Number of differing sentences that a message names."""
CONTEXT = 30
"""Number of characters that a message quotes before the first difference of two sentences."""


@dataclass(slots=True)
class Found:
    """The mentions that a file has in a sentence of gold, by its characters.

    nowhere: those without a place in it, which are spurious: they cross its end, or their text does not occur in it.
    searched: number of mentions whose place was not stated, but found by their text.
    probabilities: of mentions, by their place, and of those without one, by their text and type.
    """

    mentions: list[Span] = field(default_factory=list)
    nowhere: list[Answer] = field(default_factory=list)
    searched: int = 0
    probabilities: dict[Span | Answer, float] = field(default_factory=dict)

    def add(self, mention: Span | None, answer: Answer, probability: float | None) -> None:
        """Add a mention, with its text and type for one that has no place, and None for an unknown probability."""
        if mention is None:
            self.nowhere.append(answer)
        else:
            self.mentions.append(mention)
        if probability is not None:
            self.probabilities[mention or answer] = probability


@dataclass(frozen=True)
class Aligned:
    """The mentions of a file in each sentence of gold. absent: number of sentences that the file lacks."""

    sentences: Sequence[Found]
    absent: int = 0

    @property
    def nowhere(self) -> list[Answer]:
        return [answer for it in self.sentences for answer in it.nowhere]

    @property
    def searched(self) -> int:
        return sum(it.searched for it in self.sentences)


def align(gold: Texts, file: Texts, *, missing_is_empty: bool = False) -> Aligned:
    """The mentions of a file in the sentences of gold, whose text must be the same but for white space.

    Sentences and tokens may be cut otherwise. missing_is_empty: whether a sentence that the file lacks has no mention.
    ValueError, with the first places, for sentences that are lacking, doubled, in another order or of another text.
    """
    ours, theirs = gold.sentences, file.sentences
    by_order = bool(theirs) and not any(it.words for it in theirs)
    if by_order and len(theirs) != len(ours):
        rule = (
            f"expected a record for each of the {len(ours):,} sentences of {gold.path}, got {len(theirs):,}"
        )
        raise ValueError(f"{file.path}: {rule}; with the sentence as text in each, some may be missing")
    if by_order or (
        len(ours) == len(theirs)
        and all(
            one.words == other.words or one.characters == other.characters
            for one, other in zip(ours, theirs, strict=True)
        )
    ):
        return Aligned([placed(one, other) for one, other in zip(ours, theirs, strict=True)])
    own, others = [it.characters for it in ours], [it.characters for it in theirs]
    if not any(it.answers for it in theirs) and "".join(own) == "".join(others):
        return Aligned([*across(own, theirs)])
    return by_sentence(gold, file, own, others, missing_is_empty=missing_is_empty)


def placed(gold: Text, text: Text) -> Found:
    """The mentions of a sentence with the characters of gold, each answer at its first free occurrence."""
    found = Found([*text.spans()])
    if text.answers:
        characters = gold.characters
        ends = frozenset(ends_of(gold.words))
        for answer, probability in zip_longest(text.answers, text.probabilities):
            surface = visible(answer[0])
            place = first_free(characters, surface, ends, found.mentions)
            mention = None if place is None else (place, place + len(surface), answer[1])
            found.searched += mention is not None
            found.add(mention, answer, probability)
    elif text.probabilities:
        pairs = zip(found.mentions, text.probabilities, strict=True)
        found.probabilities |= {it: probability for it, probability in pairs if probability is not None}
    return found


def first_free(text: str, surface: str, ends: frozenset[int], taken: Sequence[Span]) -> int | None:
    """The first occurrence that overlaps no mention: of whole tokens if there is one, else within tokens; or None."""
    free = [
        start
        for start in occurrences(text, surface)
        if all(start + len(surface) <= first or after <= start for first, after, _ in taken)
    ]
    whole = (start for start in free if start in ends and start + len(surface) in ends)
    return next(whole, free[0] if free else None)


def occurrences(text: str, surface: str) -> Iterator[int]:
    start = text.find(surface) if surface else -1
    while start >= 0:
        yield start
        start = text.find(surface, start + 1)


def across(own: Sequence[str], theirs: Iterable[Text]) -> Iterator[Found]:
    """The mentions of a text that is cut into other sentences than gold."""
    starts = [*accumulate(map(len, own), initial=0)]
    found = [Found() for _ in own]
    begin = 0
    for text in theirs:
        for (start, end, type_), probability in zip_longest(text.spans(), text.probabilities):
            number = min(bisect_right(starts, begin + start), len(own)) - 1
            offset = begin - starts[number]
            is_within = begin + end <= starts[number + 1]
            mention = (start + offset, end + offset, type_) if is_within else None
            found[number].add(mention, (text.characters[start:end], type_), probability)
        begin += len(text.characters)
    yield from found


def by_sentence(
    gold: Texts, file: Texts, own: Sequence[str], others: Sequence[str], *, missing_is_empty: bool
) -> Aligned:
    """As `align`, of files with other sentences."""
    found = [Found() for _ in own]
    faults: list[str] = []
    absent: list[Text] = []
    ours, theirs, in_gold, in_file = gold.sentences, file.sentences, Counter(own), Counter(others)
    for kind, a, b, c, d in SequenceMatcher(None, own, others, autojunk=False).get_opcodes():
        pairs = list(zip(range(a, b), range(c, d), strict=False))
        if kind == "equal":
            for one, other in pairs:
                found[one] = placed(ours[one], theirs[other])
            continue
        altered = {one: other for one, other in pairs if not in_file[own[one]] and not in_gold[others[other]]}
        for one, other in altered.items():
            it, found_there, in_ours = theirs[other], *from_difference(theirs[other], ours[one])
            faults.append(f"{it.place} has {found_there}, where {ours[one].place} has {in_ours}")
        lacking = [
            ours[it] for it in range(a, b) if it not in altered and in_file[own[it]] < in_gold[own[it]]
        ]
        absent += lacking
        if not missing_is_empty:
            faults += (f"{it.place}, {shown(it)}, is missing" for it in lacking)
        for other in range(c, d):
            times, number = in_gold[others[other]], in_file[others[other]]
            if other not in altered.values():
                rule = "stands in another place" if times else "is not in gold"
                if number > times > 0:
                    rule = f"stands there {number} times, in gold {times}"
                faults.append(f"{theirs[other].place}, {shown(theirs[other])}, {rule}")
    if faults:
        lacks = not missing_is_empty and len(absent) == len(faults)
        more = f"; and {len(faults) - MOST_SHOWN:,} more" if len(faults) > MOST_SHOWN else ""
        way_out = " (--missing empty counts missing ones as without a prediction)"
        listed = "; ".join(faults[:MOST_SHOWN])
        raise ValueError(f"{file.path} has other sentences than {gold.path}: {listed}{more}{way_out * lacks}")
    return Aligned(found, len(absent))


def shown(text: Text) -> str:
    return truncated_repr(" ".join(text.words))


def from_difference(*pair: Text) -> Iterator[str]:
    """Two sentences, without what precedes the first difference of their characters by more than `CONTEXT`."""
    same = sum(
        1 for _ in takewhile(lambda it: it[0] == it[1], zip(*(it.characters for it in pair), strict=False))
    )
    for it in pair:
        text = " ".join(it.words)
        visible_before = accumulate(not character.isspace() for character in text)
        start = (
            next((place for place, number in enumerate(visible_before) if number > same), len(text)) - CONTEXT
        )
        yield truncated_repr(f"...{text[start:]}" if start > 0 else text)


# Tagged sentences

Key = tuple[str, str, int, int]
"""A mention outside the tags of its sentence: text, type, start and end; both are -1 if it has no place."""


def tagged(gold: Sequence[Text], files: Sequence[Aligned]) -> list[list[Predicted]]:
    """Each file as sentences with the tags of gold and its own, all on the same words, so that every mention counts.

    Words are the tokens of gold, cut where a mention of any file starts or ends inside one. The tags have no nested
    mentions, so those that overlap a kept one follow as words of their own, as unreachable mentions do: correct if gold
    and the file have the same. So do mentions without a place, which are spurious.
    """
    runs: list[list[Predicted]] = [[] for _ in files]
    for number, text in enumerate(gold):
        for run, it in zip(runs, sentences_of(text, [file.sentences[number] for file in files]), strict=True):
            run.append(it)
    return runs


def sentences_of(text: Text, files: Sequence[Found]) -> list[Predicted]:
    """A sentence of gold as each file tags it. Files that tag it alike share the object."""
    ends: Sequence[int] = ends_of(text.words)
    words = tuple(map(as_field, text.words))
    if not text.mentions and not any(it.mentions or it.nowhere for it in files):
        outside = ("O",) * len(words)
        return [Predicted(words, outside, outside)] * len(files)
    whole, tokens = ends, tuple[int, ...]()
    if cuts := {end for it in files for mention in it.mentions for end in mention[:2]}.difference(ends):
        ends = sorted([*ends, *cuts])
        tokens = tuple(accumulate((end not in cuts for end in ends[1:-1]), initial=0))
        words = tuple(as_field(text.characters[start:end]) or "\u2423" for start, end in pairwise(ends))
    first = {end: number for number, end in enumerate(ends)}
    after = {end: number for number, end in reversed([*enumerate(ends)])}
    gold, nested = without_overlap(text.spans())

    def split(it: Found) -> tuple[list[Span], Counter[Key]]:
        """The mentions in the tags, and the others."""
        own = {*it.mentions}
        kept, others = without_overlap([*own.intersection(gold)], own.difference(gold, nested))
        return kept, keys([*others, *own.intersection(nested)], it.nowhere)

    def keys(mentions: Iterable[Span], nowhere: Iterable[Answer] = ()) -> Counter[Key]:
        placed = ((surface(start, end), type_, start, end) for start, end, type_ in mentions)
        return Counter(chain(placed, ((*answer, -1, -1) for answer in nowhere)))

    def surface(start: int, end: int) -> str:
        if {start, end} <= {*whole}:
            return " ".join(text.words[whole.index(start) : whole.index(end)])
        return text.characters[start:end]

    def tags(mentions: Iterable[Span], others: Counter[Key]) -> tuple[str, ...]:
        spans = [(first[start], after[end], as_field(type_)) for start, end, type_ in mentions]
        return encode(spans, len(words), "iob2") + tuple(tags_of_others(others, every))

    distinct = {(*it.mentions, *it.nowhere): it for it in files}  # most systems tag most sentences alike
    parts = {key: split(it) for key, it in distinct.items()}
    every = keys(nested)
    for _, others in parts.values():
        every |= others
    all_words = words + tuple(
        f"{UNREACHABLE}{as_field(word)}" for key in every.elements() for word in words_of(key)
    )
    gold_tags = tags(gold, keys(nested))
    made = {key: Predicted(all_words, gold_tags, tags(*its), tokens) for key, its in parts.items()}
    return [made[*it.mentions, *it.nowhere] for it in files]


def uncut(gold: Sequence[Text], file: Aligned, sentences: Iterable[Predicted]) -> list[Predicted]:
    """The tagged sentences of a file, without the cuts that the mentions of other files make."""
    return [
        it if it.num_tokens == len(text.words) else sentences_of(text, [found])[0]
        for text, found, it in zip(gold, file.sentences, sentences, strict=True)
    ]


def token_accuracy(gold: Sequence[Text], sentences: Sequence[Predicted]) -> float:
    """Share of the tokens of gold that have its IOB2 tag, as conlleval prints it; all parts of one that was cut."""
    correct = total = 0
    for text, it in zip(gold, sentences, strict=True):
        total += len(text.words)
        if it.gold == it.predicted:  # most sentences
            correct += len(text.words)
            continue
        right = [a == b for a, b in islice(zip(it.gold, it.predicted, strict=True), it.num_tokens)]
        parts = groupby(zip(it.tokens, right, strict=True), key=itemgetter(0)) if it.tokens else ()
        right = [all(it for _, it in of_token) for _, of_token in parts] or right
        correct += sum(right)
    return correct / total if total else 0.0


def without_overlap(first: Iterable[Span], then: Iterable[Span] = ()) -> tuple[list[Span], list[Span]]:
    """The mentions that are not empty and overlap no earlier one, and the others; of nested ones the outer first."""
    kept: list[Span] = []
    left_out: list[Span] = []
    for mentions in (first, then):
        for it in sorted(mentions, key=lambda mention: (mention[0], -mention[1], mention[2])):
            clash = any(it[0] < other[1] and other[0] < it[1] for other in kept)
            (left_out if clash or it[0] == it[1] else kept).append(it)
    return kept, left_out


def tags_of_others(own: Counter[Key], every: Counter[Key]) -> Iterator[str]:
    """The tags of the words that follow a sentence: those of the mentions that it has itself, and O."""
    for key, number in every.items():
        length, type_ = len(words_of(key)), as_field(key[1])
        mention = [f"B-{type_}", *[f"I-{type_}"] * (length - 1)]
        yield from chain.from_iterable(mention if n < own[key] else ["O"] * length for n in range(number))


def words_of(key: Key) -> list[str]:
    return key[0].split() or [""]
