"""Rows of runs: means over seeds, and what each two rows differ in."""

import random
from itertools import product

import numpy as np
import pytest
import random_tags
from analyzed import errors_of
from scipy import stats

from ner_experiments.analysis import disagreements, row_errors
from ner_experiments.analysis.breakdown import dimensions, marked
from ner_experiments.analysis.calibration import calibration
from ner_experiments.analysis.disagreements import Outcomes, outcomes
from ner_experiments.analysis.errors import confusion
from ner_experiments.data.tags import encode, spans
from ner_experiments.runs.predictions import Predicted

TRAIN = random_tags.train(1, 40)


def tagged(seed: int) -> list[Predicted]:
    """One test set, tagged by one of several taggers."""
    rng, found = random.Random(seed), []
    for it in random_tags.sentences(0, 120):
        guess = random_tags.disturbed(rng, spans(it.gold), len(it.gold))
        found.append(Predicted(it.words, it.gold, encode(guess, len(it.gold), "iob2")))
    return found


def found_by(seed: int) -> Outcomes:
    return outcomes(marked(tagged(seed), "mentions"), dimensions(TRAIN, "mentions"))


def test_means_over_seeds_have_students_interval() -> None:
    analyzed = [errors_of(tagged(seed), TRAIN) for seed in (1, 2, 3)]
    runs = [it.breakdown for it in analyzed]
    found = row_errors.breakdown(runs)
    assert list(found) == list(runs[0])
    for dimension, groups in found.items():
        for name, group in groups.items():
            of_runs = [run[dimension][name] for run in runs]
            scores = [100 * it.f1 for it in of_runs]
            interval = stats.t.interval(0.95, 2, np.mean(scores), stats.sem(scores))
            assert (100 * group.f1.low, 100 * group.f1.high) == pytest.approx(interval)
            assert (group.f1.runs, group.f1.over) == (3, "seeds")
            assert group.precision == pytest.approx(np.mean([it.precision for it in of_runs]))
            assert group.recall == pytest.approx(np.mean([it.recall for it in of_runs]))
            assert group.gold == of_runs[0].gold
    errors = [it.kinds for it in analyzed]
    for name, mean in row_errors.kinds([{}, *errors]).items():
        assert mean.value == pytest.approx(np.mean([run[name].rate for run in errors]))


def test_one_run_has_the_interval_of_its_sentences() -> None:
    run = errors_of(tagged(1), TRAIN).breakdown
    mean = row_errors.breakdown([{}, run])["type"]["PER"].f1
    bucket = run["type"]["PER"]
    assert (mean.value, mean.low, mean.high) == (bucket.f1, bucket.low, bucket.high)
    assert (mean.runs, mean.over) == (1, "sentences")


def test_groups_without_a_gold_mention_have_no_mean() -> None:
    run = errors_of([Predicted(("a", "b"), ("B-X", "O"), ("O", "B-Y"))], None).breakdown
    assert list(row_errors.breakdown([run])["type"]) == ["X"]


def test_confusion_over_seeds_is_the_mean_of_the_counts() -> None:
    one = confusion([Predicted(("a",), ("B-X",), ("B-Y",))])
    other = confusion([Predicted(("a",), ("B-X",), ("B-Z",))])
    mean = row_errors.confusion([one, None, other])
    assert mean.names == ("X", "Y", "Z", "none")
    assert mean.counts == ((0, 0.5, 0.5, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0))
    assert row_errors.confusion([None]) is None


def test_calibration_over_seeds_has_the_bins_of_all_runs() -> None:
    right, sentence = np.array([True, False]), np.array([0, 1])
    one = calibration(np.array([0.95, 0.55]), right, sentence, 2)
    other = calibration(np.array([0.93, 0.97]), right, sentence, 2)
    mean = row_errors.calibration([one, None, other])
    assert [(it.start, it.count) for it in mean.bins] == [(0.5, 1), (0.9, 3)]
    assert [it.mean for it in mean.bins] == pytest.approx([0.55, (0.95 + 0.93 + 0.97) / 3])
    assert [it.correct.value for it in mean.bins] == [0.0, 0.75]
    assert mean.error.value == pytest.approx((one.error + other.error) / 2)
    assert row_errors.calibration([None]) is None


@pytest.mark.parametrize(("first", "second"), [((1, 2), (1, 2)), ((1, 2), (3, 4, 5)), ((1,), (2,))])
def test_mentions_are_counted_in_pairs_of_runs(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Pairs of equal seeds if both rows have the same seeds, else all pairs. The rows have different taggers."""
    a, b = ({seed: tagged(seed + shift) for seed in seeds} for seeds, shift in ((first, 0), (second, 50)))
    together = [(n, n) for n in first] if first == second else list(product(first, second))
    expected = dict.fromkeys(product(("all", "LOC", "ORG", "PER"), (True, False), (True, False)), 0.0)
    for one, other in together:
        for mine, theirs in zip(a[one], b[other], strict=True):
            for mention in spans(mine.gold):
                outcome = (mention in spans(mine.predicted), mention in spans(theirs.predicted))
                expected["all", *outcome] += 1 / len(together)
                expected[mention[2], *outcome] += 1 / len(together)
    found = disagreements.agreements(
        {seed: found_by(seed) for seed in first}, {seed: found_by(seed + 50) for seed in second}
    )
    assert found.pairs == len(together)
    for name, group in {"all": found.total, **found.groups["type"]}.items():
        counts = (group.both, group.first, group.second, group.neither)
        outcomes_ = product((True, False), (True, False))
        assert counts == pytest.approx([expected[name, *outcome] for outcome in outcomes_])


def test_rows_of_other_mentions_are_refused() -> None:
    one = {1: found_by(1)}
    short = outcomes(marked(tagged(1)[:50], "mentions"), dimensions(None, "mentions"))
    with pytest.raises(ValueError, match=r"expected equal numbers of gold mentions, got \[\d+, \d+\]"):
        disagreements.agreements(one, {1: short})
    words = [Predicted(("a", *it.words[1:]), it.gold, it.predicted) for it in tagged(1)]
    other = outcomes(marked(words, "mentions"), dimensions(TRAIN, "mentions"))
    with pytest.raises(ValueError, match="rows on one test set: their gold mentions differ in seen"):
        disagreements.agreements(one, {1: other})
    with pytest.raises(
        ValueError, match="expected two rows with at least one run each, got a row without runs"
    ):
        disagreements.agreements(one, {})


def test_cases_are_sentences_that_one_row_gets_right_more_often() -> None:
    first, second = [tagged(1), tagged(2)], [tagged(3)]
    found = disagreements.cases(first, second)
    gaps = []
    for number, (a, b, c) in enumerate(zip(*first, *second, strict=True), start=1):
        gap = ((a.predicted == a.gold) + (b.predicted == a.gold)) / 2 - (c.predicted == a.gold)
        if gap:
            gaps.append((-abs(gap), len(a.words), number))
    assert [case.number for case in found] == [number for _, _, number in sorted(gaps)]
    assert len({gap for gap, _, _ in gaps}) == 2
    case = found[0]
    assert case.predicted == tuple(run[case.number - 1].predicted for run in (*first, *second))
