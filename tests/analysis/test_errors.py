"""Errors by kind: the cases of their definition, brute force over all pairings, and what has to add up."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
import random_tags
from analyzed import errors_of
from hypothesis import given
from hypothesis import strategies as st

from ner_experiments.analysis import bootstrap
from ner_experiments.analysis.errors import KINDS, Alignment, Confusion, Pair, compare, confusion
from ner_experiments.data.tags import Span, spans
from ner_experiments.runs.predictions import Predicted

TEST = random_tags.sentences(2, 200)


@st.composite
def mentions(draw: st.DrawFn) -> list[Span]:
    """Mentions that do not overlap each other, in at most ten tokens."""
    cuts = sorted(draw(st.sets(st.integers(0, 10), max_size=7)))
    found = [(a, b, draw(st.sampled_from(["X", "Y"]))) for a, b in pairwise(cuts)]
    return [mention for mention in found if draw(st.booleans())]


CASES = {
    # what Manning (2006) tells apart, each with his name for it
    "right": ("The [First Bank of Chicago]ORG", "The [First Bank of Chicago]ORG", []),
    "label error": ("in [Phoenix]LOC today", "in [Phoenix]ORG today", ["type"]),
    "boundary error": ("The [First Bank of Chicago]ORG", "The First [Bank of Chicago]ORG", ["boundary"]),
    "label-boundary error": ("[First Bank of Chicago]ORG", "First Bank of [Chicago]LOC", ["both"]),
    "false negative": ("[Ann]PER saw it", "Ann saw it", ["missing"]),
    "false positive": ("It rained", "[It]PER rained", ["spurious"]),
    # of several that overlap, the one with most tokens in common stands for it, and the others are alone
    "split": ("[a b c]PER", "[a]PER [b c]PER", ["boundary", "spurious"]),
    "joined": ("[a b]PER [c]PER", "[a b c]PER", ["boundary", "missing"]),
    "of equals one of its type": ("[a b]PER", "[a]ORG [b]PER", ["boundary", "spurious"]),
    "of equals the first": ("[a b]PER", "[a]ORG [b]LOC", ["both", "spurious"]),
    "more in common, another type": ("[a b c]PER", "[a]PER [b c]ORG", ["both", "spurious"]),
    "beside each other": ("[a]PER b", "a [b]PER", ["missing", "spurious"]),
    "a chain": ("[a b]PER [c d]PER", "[a]PER [b c]PER [d]PER", ["boundary", "boundary", "spurious"]),
}


def marked(text: str) -> list[Span]:
    words = text.split()
    starts = [place for place, word in enumerate(words) if word.startswith("[")]
    ends = [(place + 1, word.partition("]")[2]) for place, word in enumerate(words) if "]" in word]
    return [(start, *end) for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_kinds_are_those_of_the_literature(name: str) -> None:
    gold, predicted, expected = CASES[name]
    assert compare(marked(gold), marked(predicted)).kinds() == expected


def test_a_spurious_mention_may_overlap_an_aligned_one() -> None:
    found = compare([(0, 3, "PER")], [(0, 1, "PER"), (1, 3, "PER")])
    assert found == Alignment([((0, 3, "PER"), (1, 3, "PER"))], [], [(0, 1, "PER")])


def common(gold: Span, predicted: Span) -> int:
    return len(set(range(*gold[:2])) & set(range(*predicted[:2])))


def pairings(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[list[Pair]]:
    """All ways to pair some of them one to one."""
    if not gold:
        yield []
        return
    first, *rest = gold
    yield from pairings(rest, predicted)
    for other in predicted:
        if common(first, other):
            left = [it for it in predicted if it != other]
            yield from ([(first, other), *pairs] for pairs in pairings(rest, left))


def rank(pairs: list[Pair]) -> list[tuple[int, bool, int, int]]:
    """Its pairs from the best on; of two pairings the better one has the smaller list, or goes on longer."""
    keys = [(-common(a, b), a[2] != b[2], a[0], b[0]) for a, b in pairs]
    return [*sorted(keys), (1, True, 0, 0)]


@given(mentions(), mentions())
def test_the_pairing_is_the_best_of_all(gold: list[Span], predicted: list[Span]) -> None:
    assert compare(gold, predicted).pairs == sorted(min(pairings(gold, predicted), key=rank))
    assert compare(gold[::-1], predicted[::-1]) == compare(gold, predicted)


@given(mentions(), mentions())
def test_each_mention_is_in_one_kind(gold: list[Span], predicted: list[Span]) -> None:
    found = compare(gold, predicted)
    assert sorted([*found.missing, *(one for one, _ in found.pairs)]) == gold
    assert sorted([*found.spurious, *(other for _, other in found.pairs)]) == predicted
    right, count = len(set(gold) & set(predicted)), Counter(found.kinds())
    paired = count["boundary"] + count["type"] + count["both"]
    assert count["missing"] + paired == len(gold) - right
    assert count["spurious"] + paired == len(predicted) - right


def test_rates_are_of_the_gold_mentions_with_the_interval_of_the_same_draws() -> None:
    found = errors_of(TEST, None).kinds
    errors = [compare(spans(it.gold), spans(it.predicted)).kinds() for it in TEST]
    gold = np.array([len(spans(it.gold)) for it in TEST])
    times = bootstrap.draw_multiplicities(len(TEST), bootstrap.DRAWS, 0).astype(int)
    assert list(found) == list(KINDS)
    for name, it in found.items():
        count = np.array([kinds_.count(name) for kinds_ in errors])
        assert it.count == count.sum() > 0
        assert it.rate == pytest.approx(count.sum() / gold.sum())
        rates = sorted(float(row @ count / (row @ gold)) for row in times)
        assert (it.low, it.high) == (
            pytest.approx(rates[25], abs=0.002),
            pytest.approx(rates[974], abs=0.002),
        )


def test_without_a_gold_mention_there_are_no_rates() -> None:
    assert errors_of([Predicted(("a",), ("O",), ("B-X",))], None).kinds == {}


def test_confusion_adds_up_to_the_mentions_of_each_type() -> None:
    found = confusion(TEST)
    counts = np.array(found.counts)
    assert found.names == ("LOC", "ORG", "PER", "none")
    for place, kind in enumerate(found.types):
        assert counts[place].sum() == sum(it[2] == kind for one in TEST for it in spans(one.gold))
        assert counts[:, place].sum() == sum(it[2] == kind for one in TEST for it in spans(one.predicted))
    errors = {name: it.count for name, it in errors_of(TEST, None).kinds.items()}
    right = sum(len(set(spans(it.gold)) & set(spans(it.predicted))) for it in TEST)
    diagonal = int(counts.trace())
    assert diagonal == right + errors["boundary"]
    assert (counts[:, -1].sum(), counts[-1].sum()) == (errors["missing"], errors["spurious"])
    assert counts.sum() - diagonal - errors["missing"] - errors["spurious"] == errors["type"] + errors["both"]


def test_a_type_may_be_called_none() -> None:
    test = [
        Predicted(("a", "b"), ("B-none", "O"), ("B-X", "O")),
        Predicted(("a", "b"), ("B-X", "I-X"), ("B-X", "O")),
        Predicted(("a", "b"), ("B-X", "O"), ("O", "B-none")),
    ]
    found = confusion(test)
    assert found == Confusion(("X", "none"), ((1, 0, 1), (1, 0, 0), (0, 1, 0)))
    assert Confusion.from_record(found.record()) == found


def test_tags_of_single_tokens_are_confused_token_by_token() -> None:
    found = confusion([Predicted(("a", "b", "c"), ("NN", "VB", "NN"), ("NN", "NN", "DT"))], "tags")
    assert found == Confusion(("DT", "NN", "VB"), ((0, 0, 0, 0), (1, 1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 0)))
