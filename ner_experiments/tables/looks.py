"""Sequential looks: the runs that a table still needs, given the looks that were declared before it started.

The question is which row is best. At each look all pairs of rows are tested at the level that the look may spend
(analysis/sequential.py). A row whose pair with the leader, the row with the highest mean, is decided gets no more
seeds; pairs of two such rows may stay undecided. The decision depends on finished runs alone, so it is the same in the
sweep, after an interruption, and in `ner-experiments table`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ner_experiments.analysis.sequential import levels
from ner_experiments.tables import sweep_registration
from ner_experiments.tables.pairs import Pair, compare_all, mean
from ner_experiments.tables.scores import Page, at_seeds, groups
from ner_experiments.tables.significance import ALPHA, PairVerdict
from ner_experiments.utils.text import listed

Labels = tuple[str, str]


class TestedPair(Protocol):
    """A tested pair of rows."""

    @property
    def verdict(self) -> PairVerdict: ...


P = TypeVar("P", bound=TestedPair)


@dataclass(frozen=True)
class Decision(Generic[P]):
    """State of the looks.

    pairs: all pairs of rows, each as tested at the look that decided it, or else at the last look made.
    to_run: for each row's label, the seeds that the next look needs and that are not finished; empty at the end.
    history: for each look made, what it decided, in one sentence.
    seeds: for each row's label, its seeds at the last look that it took part in; none before the first look.
    """

    pairs: dict[Labels, P]
    to_run: dict[str, list[int]]
    history: list[str]
    seeds: dict[str, Collection[int]]


def at_looks(page: Page) -> Page:
    """The page with the seeds of its registration or its looks alone; a remark names a row's other seeds.

    Its verdict rests on these. Returned as it is if its table has neither, and before a registered run is finished or
    the first look is made.
    """
    if (registered := sweep_registration.of_page(page)) is not None:
        return sweep_registration.at_registered_seeds(page, registered)
    table = page.table
    seeds = decide(page, table.looks, table.seeds[0]).seeds if table.looks else {}
    if not any(seeds.values()):
        return page
    return at_seeds(
        page, lambda label: seeds.get(label, ()), "the verdict is made without {}, which no look has"
    )


def decide(page: Page, looks: Sequence[int], first_seed: int = 1) -> Decision[Pair]:
    """Replay the looks on the finished runs of a table. The seeds are first_seed, first_seed + 1, ..."""
    results = {result.row.label: result for result in page.results if result.row.run is not None}

    def compare(seeds: Mapping[str, Collection[int]], level: float) -> tuple[dict[Labels, Pair], set[str]]:
        by_corpus = groups([result.at(seeds[label]) for label, result in results.items()])
        effect = page.table.smallest_effect
        pairs = compare_all(by_corpus, level, effect)
        return {pair.labels: pair for pair in pairs}, {max(group, key=mean).row.label for group in by_corpus}

    finished = {label: result.runs.keys() for label, result in results.items()}
    return replay(finished, looks, compare, first_seed)


def replay(
    finished: Mapping[str, Collection[int]],
    looks: Sequence[int],
    compare: Callable[[Mapping[str, Collection[int]], float], tuple[Mapping[Labels, P], Set[str]]],
    first_seed: int = 1,
) -> Decision[P]:
    """Replay the looks, given the finished seeds of each row.

    compare: tests all pairs of rows with the given seeds at the given level, and names the leader of each corpus.
    """
    active = set(finished)
    seeds: dict[str, Collection[int]] = dict.fromkeys(finished, ())
    pairs: dict[Labels, P] = {}
    history: list[str] = []
    for count, level in zip(looks, levels(looks, ALPHA), strict=True):
        wanted = range(first_seed, first_seed + count)
        to_run = {
            label: missing
            for label in finished
            if label in active and (missing := [seed for seed in wanted if seed not in finished[label]])
        }
        if to_run:
            return Decision(pairs, to_run, history, seeds)
        seeds |= dict.fromkeys(active, wanted)
        decided = {labels for labels, pair in pairs.items() if pair.verdict != "undecided"}
        tested, leaders = compare(seeds, level)
        pairs |= {labels: pair for labels, pair in tested.items() if labels not in decided}
        contested = open_with(leaders, pairs)
        stopped = [label for label in finished if label in active - contested]
        active &= contested
        num_decided = sum(pair.verdict != "undecided" for pair in pairs.values())
        text = f"Look at {count} seeds (level {level:.4f}): {num_decided} of {len(pairs)} pairs decided"
        history.append(f"{text}; {consequence(stopped, active, last=count == looks[-1])}")
        if not active:
            break
    return Decision(pairs, {}, history, seeds)


def open_with(leaders: Set[str], pairs: Mapping[Labels, P]) -> set[str]:
    """The rows whose pair with a leader is undecided, and that leader."""
    open_pairs = [labels for labels, pair in pairs.items() if pair.verdict == "undecided"]
    return {label for labels in open_pairs if not leaders.isdisjoint(labels) for label in labels}


def consequence(stopped: Sequence[str], active: Collection[str], *, last: bool) -> str:
    """Consequence of a look for the rows that it stopped, and for the sweep."""
    if not active:
        return "the leader is decided, and the sweep ends."
    if last:
        return "the sweep ends, as this was its last look."
    if stopped:
        return f"no more seeds for {listed(stopped)}, whose pair with the leader is decided."
    return "all rows that are not stopped get more seeds."
