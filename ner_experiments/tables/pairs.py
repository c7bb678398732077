"""All pairs of rows on one test set: their differences, corrected for the number of pairs, and a verdict for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, Literal, get_args

from ner_experiments.analysis import statistics
from ner_experiments.analysis.randomization import Randomization
from ner_experiments.analysis.statistics import Difference
from ner_experiments.tables.scores import Page, Result, groups, reference
from ner_experiments.tables.significance import (
    ALPHA,
    PairVerdict,
    Tested,
    assumed_difference,
    correct_together,
    difference_record,
    over_sentences,
    seeds_to_detect,
)
from ner_experiments.tables.spec import SMALLEST_EFFECT
from ner_experiments.utils.text import listed
from ner_experiments.view import cells

MAX_SEEDS = 1000
"""Larger numbers of needed seeds are not computed: nobody would run them."""


@dataclass(frozen=True)
class Pair:
    """Two rows and the tests of their difference.

    over_sentences: the test for new seeds and new sentences; for new sentences alone if a row has one seed.
    seeds_needed: seeds per row with which a difference of this size is detected with 80 % power; None if a row has one
        seed or the means are equal. Of all pairs of rows, at the strictest level of Holm's correction, and None if it
        is more than `MAX_SEEDS`.
    assumed: if a row has one seed, the difference over seeds under the assumption that its scores vary as those of the
        table's other rows on the same data do. Else None, as where no row has several seeds. No verdict rests on it.
    """

    a: Result
    b: Result
    test: Tested
    over_sentences: Randomization
    seeds_needed: int | None
    assumed: Difference | None = None

    @property
    def verdict(self) -> PairVerdict:
        return self.test.verdict

    @property
    def needs_too_many(self) -> bool:
        """Whether more than `MAX_SEEDS` are needed; a difference of exactly 0 needs no number of them."""
        deviations = [it.measured.sd for it in (self.a, self.b) if it.measured]
        is_known = None not in deviations and any(deviations)
        return self.seeds_needed is None and is_known and self.test.over_seeds.mean != 0

    @property
    def seeds_text(self) -> str:
        """The seeds needed as a cell of a table: `12`, `> 1,000`, or nothing if unknown."""
        if self.needs_too_many or (self.seeds_needed or 0) > MAX_SEEDS:
            return f"> {MAX_SEEDS:,}"
        return "" if self.seeds_needed is None else f"{self.seeds_needed:,}"

    @property
    def labels(self) -> tuple[str, str]:
        return self.a.row.label, self.b.row.label

    def swapped(self) -> Pair:
        """The same pair as row b minus row a."""
        ours = self.test.over_seeds
        low, high = (None if end is None else -end for end in (ours.high, ours.low))
        over_seeds = replace(ours, mean=-ours.mean, low=low, high=high)
        return replace(self, a=self.b, b=self.a, test=replace(self.test, over_seeds=over_seeds))

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments table --json`. Differences are in points."""
        return {
            "a": self.a.row.label,
            "b": self.b.row.label,
            **difference_record(self.test, self.over_sentences),
            "p": self.test.over_seeds.p,
            "q": self.test.q,
            "level": self.test.alpha,
            "seeds": [len(self.a.scores), len(self.b.scores)],
            "seeds_needed": self.seeds_needed,
        }

    def comparison(self) -> dict[str, Any]:
        """Its values by name as those of a row and its reference."""
        assumed = self.assumed
        return {
            "row": self.a.row.label,
            "reference": self.b.row.label,
            **difference_record(self.test, self.over_sentences),
            "assumed": {"low": assumed.low, "high": assumed.high} if assumed else None,
            "seeds_needed": self.seeds_needed,
        }


def pairs_of(page: Page) -> list[Pair]:
    """All pairs of rows that were scored on the same data, in the order of the table."""
    return compare_all(groups(page.results), smallest_effect=page.table.smallest_effect)


def compare_all(
    test_sets: Iterable[Sequence[Result]], alpha: float = ALPHA, smallest_effect: float = SMALLEST_EFFECT
) -> list[Pair]:
    """All pairs of rows with runs, test set by test set, corrected for the pairs on all of them together.

    test_sets: the rows of each.
    """
    by_test_set = [list(combinations(rows, 2)) for rows in test_sets]
    level = alpha / max(1, sum(map(len, by_test_set)))
    return compared(by_test_set, smallest_effect, alpha, level=level, most=MAX_SEEDS)


def compare_rows(page: Page) -> list[Pair]:
    """Each row and the reference on its data, the row with the best published number, corrected together."""
    by_test_set, assumed = [], []
    for group in groups(page.results):
        best = reference(group)
        by_test_set.append([(result, best) for result in group if result is not best])
        assumed += [assumed_difference(a, b, group) for a, b in by_test_set[-1]]
    found = compared(by_test_set, page.table.smallest_effect)
    return [replace(pair, assumed=it) for pair, it in zip(found, assumed, strict=True)]


def compared(
    by_test_set: Sequence[Sequence[tuple[Result, Result]]],
    smallest_effect: float,
    alpha: float = ALPHA,
    *,
    level: float = ALPHA,
    most: int | None = None,
) -> list[Pair]:
    """Test pairs of rows on each test set, corrected together. level, most: as in `seeds_to_detect`."""
    pairs = [pair for on_one in by_test_set for pair in on_one]
    sentences = [test for on_one in by_test_set for test in over_sentences(on_one)]
    differences = [statistics.difference(a.scores, b.scores) for a, b in pairs]
    tests = correct_together(differences, smallest_effect, alpha)
    return [
        Pair(
            a,
            b,
            test,
            of_sentences,
            seeds_to_detect(a.measured, b.measured, test.over_seeds.mean, alpha=level, most=most),
        )
        for (a, b), test, of_sentences in zip(pairs, tests, sentences, strict=True)
    ]


def compare_seeds(
    rows: Sequence[Mapping[int, float]], alpha: float = ALPHA, smallest_effect: float = SMALLEST_EFFECT
) -> list[Tested]:
    """Welch's tests of all pairs of rows, given as scores by seed, in the order of `itertools.combinations`."""
    differences = [statistics.difference(a, b) for a, b in combinations(rows, 2)]
    return correct_together(differences, smallest_effect, alpha)


def published_best_holds(page: Page) -> Literal["holds", "does not hold", "undecided", ""]:
    """Whether the row with the paper's best number is also our best, by tests over seeds.

    It holds if that row is ahead of all others on its corpus, and does not if it is behind one. Cited rows do not take
    part. Empty if fewer than two rows with published numbers are measured, if two of them share the best number, or if
    they are of other data.
    """
    verdicts = []
    for group in groups(page.results):
        rows = [it for it in group if isinstance(it.row.published, int | float) and not it.row.cited]
        if len(rows) < 2 or not all(result.comparable for result in rows):
            continue
        best = reference(rows)
        others = [it for it in rows if it is not best]
        if any(it.row.published == best.row.published for it in others):
            continue
        scores = [it.scores for it in (best, *others)]
        tests = compare_seeds(scores, smallest_effect=page.table.smallest_effect)
        verdicts += [test.verdict for test in tests[: len(others)]]  # the pairs of the best come first
    if not verdicts:
        return ""
    if "behind" in verdicts:
        return "does not hold"
    return "holds" if set(verdicts) == {"ahead"} else "undecided"


def against_leaders(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """For each test set with two rows or more: the pairs of its row with the highest mean, as it minus the other."""
    found, left = [], [*pairs]
    while left:
        ordered = sorted((row for pair in left for row in (pair.a, pair.b)), key=lambda it: len(it.scores))
        latest = {result.row.label: result for result in ordered}  # a row has more seeds at later looks
        label = max(latest, key=lambda each: mean(latest[each]))
        against = [
            pair if pair.labels[0] == label else pair.swapped() for pair in left if label in pair.labels
        ]
        found.append(against)
        compared = {name for pair in against for name in pair.labels}  # all rows on its test set
        left = [pair for pair in left if compared.isdisjoint(pair.labels)]
    return found


def verdict_text(pairs: Sequence[Pair]) -> str:
    """Verdicts on the row with the highest mean against all others: a sentence for each test set with two or more."""
    # only before it took the lead can a row have been found behind another
    return " ".join(sentence(it, pairs, ", as an earlier look decided") for it in against_leaders(pairs))


def text_on_references(pairs: Sequence[Pair]) -> str:
    """Verdicts on the reference of each test set against all others, given the pairs of `compare_rows`."""
    by_reference: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_reference.setdefault(pair.labels[1], []).append(pair.swapped())
    return " ".join(sentence(against, pairs) for against in by_reference.values())


def sentence(against: Sequence[Pair], every: Sequence[Pair], behind_why: str = "") -> str:
    """Verdicts on the first row of these pairs, which all have it in common, with unit, seeds, interval and p.

    every: all tested pairs. The other rows may be untested against each other, or decided where the first row's pairs
        are undecided: their order is then not said to be undecided.
    """
    label = against[0].labels[0]
    by_verdict = {name: [it for it in against if it.verdict == name] for name in get_args(PairVerdict)}
    parts = []
    if ahead := by_verdict["ahead"]:
        parts.append(f"{label} is ahead of {with_gaps(ahead)}")
    if behind := by_verdict["behind"]:
        parts.append(f"{label} is behind {with_gaps(behind)}{behind_why}")
    if equal := by_verdict["equal"]:
        effect = equal[0].test.smallest_effect
        parts.append(f"{label} differs by less than {effect:g} points from {with_gaps(equal)}")
    if undecided := sorted(by_verdict["undecided"], key=lambda it: it.test.over_seeds.mean):
        others = [*map(other, undecided)]
        shown = f" ({gap(undecided[0])})" if len(undecided) == 1 else ""
        open_pairs = [it for it in every if it.verdict == "undecided" and {*others}.issuperset(it.labels)]
        order = f"{label} is not shown to differ from {listed(others)}"
        if len(open_pairs) == comb(len(others), 2):
            order = f"the order of {listed([label, *others])} is undecided"
        parts.append(f"{order}{shown}{more_seeds(undecided)}")
    text = f"By {against[0].a.score_name} over {seeds_at_hand(against)}, {'; '.join(parts)}."
    if any(pair.test.over_seeds.p is None for pair in against):
        text += (
            " No verdict rests on a single seed: other seeds may give another order, and how many would be needed is "
            "unknown."
        )
    return text


def mean(result: Result) -> float:
    assert result.measured is not None
    return result.measured.mean


def other(pair: Pair) -> str:
    return pair.b.row.label


def with_gaps(pairs: Iterable[Pair]) -> str:
    return listed([f"{other(pair)} ({gap(pair)})" for pair in pairs])


def gap(pair: Pair) -> str:
    """`+1.20 points, 0.40 to 2.00, corrected p = 0.012`, or the difference alone if a row has one seed.

    The p is that of the verdict: for equal rows, of a difference of the smallest effect or more.
    """
    test = pair.test
    p = cells.probability(test.p_equal if test.verdict == "equal" else test.p_adjusted)
    p = p and f"corrected p {with_sign(p)}"
    return ", ".join(
        filter(None, [f"{test.over_seeds.mean:+.2f} points", cells.interval(test.over_seeds), p])
    )


def with_sign(p: str) -> str:
    """The p of a cell as `= 0.012` or `< 0.001`."""
    return p if p.startswith("<") else f"= {p}"


def seeds_at_hand(pairs: Iterable[Pair]) -> str:
    """`3 seeds`, or `3 to 5 seeds` where rows differ."""
    have = sorted({len(result.scores) for pair in pairs for result in (pair.a, pair.b)})
    return f"{cells.numbers(have)} seed{'' if have == [1] else 's'}"


def more_seeds(undecided: Sequence[Pair]) -> str:
    """`: telling them apart would take about 9 seeds per row`, with a range where pairs differ; empty if unknown."""
    need = sorted({pair.seeds_needed for pair in undecided if pair.seeds_needed})
    about = f"about {cells.numbers(need)}" if need else ""
    if any(pair.needs_too_many for pair in undecided):
        more = f"more than {MAX_SEEDS:,}"
        about = f"about {need[0]} to {more}" if need else more
    leader = undecided[0].labels[0]
    pair = f"one of the others from {leader}" if len(undecided) > 1 else "them apart"
    return f": telling {pair} would take {about} seeds per row" if about else ""
