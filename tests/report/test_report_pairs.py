"""The page of pairs of rows: its counts and sentences, against loops over seeds and sentences."""

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
from close_rows import NUM_SENTENCES, length, three_rows

from ner_experiments.report import pair_page
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Result


class Counted(Run):
    def counts(self) -> np.ndarray:
        return np.array(self.metrics["counts"])


def test_pairs_are_counted_as_a_loop_over_seeds_and_sentences_does() -> None:
    rng = np.random.default_rng(3)
    rows = [
        Result(
            row,
            runs={seed: Counted(Path(), {"counts": rng.integers(0, 2, (40, 3))}) for seed in range(count)},
        )
        for row, count in zip(spec.load("yang2020_table13").rows, (1, 2, 3), strict=False)
    ]
    found = pair_page.matrix(pair_page.correct_shares(rows))
    for line, column in itertools.permutations(range(3), 2):
        pairs = list(itertools.product(rows[line].runs.values(), rows[column].runs.values()))
        counted = 0
        for one, other in pairs:
            for a, b in zip(one.counts(), other.counts(), strict=True):
                counted += (a[0] == a[1] == a[2]) and not (b[0] == b[1] == b[2])
        assert found[line][column] == f"{counted / len(pairs):.1f}"
    assert [found[number][number] for number in range(3)] == [None] * 3


class Archived(ArchivedRun):
    def counts(self) -> np.ndarray:
        return np.array(self.metrics["counts"])


class Tagged(Counted):
    def predicted(self) -> list[Predicted]:
        rows = self.metrics["counts"]
        return [Predicted(("a",), ("B-X",), ("B-X",) if row[0] else ("O",)) for row in rows]


def test_archived_runs_count_in_the_pairs_without_their_sentences() -> None:
    right, wrong = [1, 1, 1], [0, 0, 1]
    archived = Archived(Path(), {"counts": [right, wrong]}, {})
    runs = (
        {1: Tagged(Path(), {"task": "mentions", "counts": [right, right]}), 2: archived},
        {1: archived},
        {1: Tagged(Path(), {"task": "mentions", "counts": [wrong, wrong]})},
    )
    rows = spec.load("yang2020_table13").rows[:3]
    found = pair_page.context([Result(row, runs=own) for row, own in zip(rows, runs, strict=True)])
    assert [label for label, _ in found["matrix"]] == [row.label for row in rows]
    assert [counts for _, counts in found["matrix"]] == [
        [None, "0.5", "1.5"],
        ["0.0", None, "1.0"],
        ["0.0", "0.0", None],
    ]
    assert found["rows"] == [(0, rows[0].label), (2, rows[2].label)]
    assert [(case.correct, case.wrong) for case in found["cases"]] == [([0], [2]), ([0], [2])]
    assert found["shown"] == {(0, 2): "2 of 2"}
    assert f": {rows[0].label}, seed 2; {rows[1].label}." in found["texts"][-1]


def weight(right: Result, wrong: Result, sentence: int) -> Fraction:
    """Contribution of a sentence to the count of a pair: the share of pairs of seeds that tag it so."""
    pairs = list(itertools.product(right.runs.values(), wrong.runs.values()))
    counted = sum(sentence in a.metrics["right"] and sentence not in b.metrics["right"] for a, b in pairs)
    return Fraction(counted, len(pairs))


def test_of_each_pair_those_sentences_are_shown_that_count_most() -> None:
    """However far a third row is from two that are close, and however many sentences it gets wrong."""
    rows = three_rows()
    orders = []
    for right, wrong in itertools.permutations(rows, 2):
        weights = {number: weight(right, wrong, number) for number in range(NUM_SENTENCES)}
        orders.append(sorted(filter(weights.get, weights), key=lambda it: (-weights[it], length(it), it)))
    unions = [{it for order in orders for it in order[:each]} for each in range(NUM_SENTENCES)]
    each = max(number for number, union in enumerate(unions) if len(union) <= pair_page.MAX_SENTENCES)
    found = pair_page.context(rows)
    assert {case.number - 1 for case in found["cases"]} == unions[each]
    assert len(unions[-1]) > len(unions[each]) > 0.9 * pair_page.MAX_SENTENCES
    text = " ".join(found["texts"])
    assert f" {len(unions[-1])} are tagged correctly by some of the rows' runs and wrong by others." in text
    assert f"Shown: {len(unions[each])} of these, at least {each} for each pair of rows" in text


def test_each_number_leads_to_sentences_and_says_how_many() -> None:
    rows = three_rows()
    found = pair_page.context(rows)
    numbers = [counts for _, counts in found["matrix"]]
    for line, column in itertools.permutations(range(3), 2):
        weights = [weight(rows[line], rows[column], number) for number in range(NUM_SENTENCES)]
        assert numbers[line][column] == f"{float(sum(weights)):.1f}"
        shown = [case for case in found["cases"] if line in case.correct and column in case.wrong]
        assert all(weights[case.number - 1] for case in shown)
        assert shown
        assert found["shown"][line, column] == f"{len(shown)} of {sum(map(bool, weights))}"


def test_of_many_rows_each_pair_has_its_first_sentences() -> None:
    """Each of 25 rows is alone right in 15 sentences; the first 12 of each are 300."""
    found, lengths = np.repeat(np.eye(25), 15, axis=1), np.arange(375)
    order, each = pair_page.select(found, lengths)
    assert (sorted(order), each) == ([it for it in range(375) if it % 15 < 12], 12)
    every, each = pair_page.select(found[:, ::2], lengths[::2])
    assert (sorted(every), each) == ([*range(188)], 188)


def test_more_pairs_than_a_page_has_room_for_have_one_sentence_each() -> None:
    order, each = pair_page.select(np.repeat(np.eye(310), 2, axis=1), np.tile((9, 4), 310))
    assert (sorted(order), each) == ([*range(1, 620, 2)], 1)
