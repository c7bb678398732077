"""All pairs of rows, corrected for their number, against SciPy, statsmodels' published example and plain loops."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control, nct, t, ttest_ind

from ner_experiments.analysis.randomization import Randomization
from ner_experiments.analysis.statistics import (
    difference,
    holm,
    p_of_equivalence,
    power_of_welch,
    seeds_needed,
)
from ner_experiments.runs.run import Run
from ner_experiments.tables import pairs
from ner_experiments.tables.pairs import Pair, compare_seeds, verdict_text
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table
from ner_experiments.tables.table_view import TableView, strip_plot

LOW, MIDDLE, HIGH = {1: 80.0, 2: 80.5, 3: 80.2}, {1: 84.0, 2: 84.4, 3: 84.1}, {1: 84.3, 2: 84.9, 3: 84.0}


def test_holm_multiplies_the_smallest_by_their_number_and_never_decreases() -> None:
    """The example of Holm's procedure in Wright (1992): 0.005, 0.011, 0.02, 0.04, 0.13 of five hypotheses."""
    assert holm([0.011, 0.005, 0.13, 0.02, 0.04]) == pytest.approx([0.044, 0.025, 0.13, 0.06, 0.08])
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])  # not 0.04: the larger p is never the smaller
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_rejects_what_the_step_down_procedure_rejects() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        p_values = list(rng.uniform(0, 0.1, rng.integers(1, 8)))
        rejected = set()
        for rank, number in enumerate(np.argsort(p_values)):
            if p_values[number] > 0.05 / (len(p_values) - rank):
                break
            rejected.add(int(number))
        assert {number for number, p in enumerate(holm(p_values)) if p <= 0.05} == rejected


def test_equivalence_is_the_larger_of_two_one_sided_welch_tests() -> None:
    for a, b, margin in ((MIDDLE, HIGH, 0.3), (MIDDLE, HIGH, 3.0), (LOW, HIGH, 3.0)):
        first, second = np.array([*a.values()]), np.array([*b.values()])
        below = ttest_ind(first, second + margin, equal_var=False, alternative="less").pvalue
        above = ttest_ind(first, second - margin, equal_var=False, alternative="greater").pvalue
        assert p_of_equivalence(difference(a.values(), b.values()), margin) == pytest.approx(
            max(below, above)
        )
    assert p_of_equivalence(difference([80.0], [80.0, 80.1]), 0.3) is None
    assert p_of_equivalence(difference([80.0, 80.0], [80.1, 80.1]), 0.3) is None


def test_each_pair_is_tested_by_welch_and_corrected() -> None:
    rows = [LOW, MIDDLE, HIGH]
    found = compare_seeds(rows)
    assert compare_seeds([LOW, MIDDLE], alpha=1e-9)[0].verdict == "undecided"
    raw = [
        ttest_ind([*a.values()], [*b.values()], equal_var=False).pvalue
        for a, b in itertools.combinations(rows, 2)
    ]
    assert [test.over_seeds.p for test in found] == pytest.approx(raw)
    assert [test.p_adjusted for test in found] == pytest.approx(holm(raw))
    assert [test.verdict for test in found] == ["behind", "behind", "undecided"]


def test_the_smallest_effect_decides_what_is_equal() -> None:
    rng = np.random.default_rng(0)
    rows = [dict(enumerate(rng.normal(80, 0.05, 10))) for _ in range(3)]
    for smallest_effect, verdict in ((0.01, "undecided"), (0.3, "equal"), (1.0, "equal")):
        found = compare_seeds(rows, smallest_effect=smallest_effect)
        assert {test.verdict for test in found} == {verdict}


def test_an_open_pair_says_what_its_seeds_detect_at_the_strictest_level() -> None:
    tests = compare_seeds([LOW, MIDDLE, HIGH])
    assert [test.detectable is None for test in tests] == [True, True, False]
    ours = tests[2].over_seeds
    assert ours.error is not None
    assert ours.freedom is not None
    assert tests[2].detectable is not None
    shift = tests[2].detectable / ours.error
    critical = t.isf(0.05 / 3 / 2, ours.freedom)
    power = nct.sf(critical, ours.freedom, shift) + nct.sf(critical, ours.freedom, -shift)
    assert power == pytest.approx(0.8)
    assert [test.q for test in tests] == pytest.approx(
        false_discovery_control([it.over_seeds.p for it in tests])
    )


@pytest.mark.parametrize(
    ("a", "b", "seeds", "verdict", "p"),
    [
        (0.0, 0.0, 3, "undecided", 1.0),  # and not equal
        (100.0, 100.0, 3, "undecided", 1.0),
        (3.0, 4.0, 3, "undecided", 1 / 10),
        (3.0, 4.0, 6, "behind", 2 / 924),
    ],
)
def test_without_a_spread_the_p_is_that_of_all_orders_of_the_seeds(
    a: float, b: float, seeds: int, verdict: str, p: float
) -> None:
    (test,) = compare_seeds([dict.fromkeys(range(seeds), score) for score in (a, b)])
    assert (test.verdict, test.over_seeds.p, test.over_seeds.low) == (verdict, pytest.approx(p), None)


def of_scores(**rows: dict[int, float]) -> list[Pair]:
    """Pairs of rows that have scores and no runs."""
    results = [Result(Row(label=label), scores) for label, scores in rows.items()]
    found = list(itertools.combinations(results, 2))
    tests = compare_seeds([result.scores for result in results])
    return [
        Pair(
            a,
            b,
            test,
            Randomization(0.0, 0.001, None, 0.0, 2),
            pairs.seeds_to_detect(
                a.measured, b.measured, test.over_seeds.mean, alpha=0.05 / len(found), most=pairs.MAX_SEEDS
            ),
        )
        for (a, b), test in zip(found, tests, strict=True)
    ]


def test_the_answer_names_what_is_ahead_and_what_is_open() -> None:
    found = of_scores(low=LOW, middle=MIDDLE, high=HIGH)
    text = verdict_text(found)
    assert text == (
        "By F1 over 3 seeds, high is ahead of low (+4.17 points, 3.22 to 5.11, corrected p = 0.001); the order of high "
        "and middle is undecided (+0.23 points, -0.73 to 1.20, corrected p = 0.485): telling them apart would take "
        f"about {found[2].seeds_needed} seeds per row."
    )


def test_the_order_of_rows_with_a_decided_pair_is_not_called_open() -> None:
    text = verdict_text(of_scores(low=LOW, noisy={1: 70.0, 2: 90.0, 3: 99.0}, high=HIGH))
    assert (
        "noisy is not shown to differ from high and low: telling one of the others from noisy would take"
        in text
    )


def test_rows_that_are_equal_have_the_p_of_that() -> None:
    (pair,) = found = of_scores(a={1: 80.0, 2: 80.01, 3: 80.02}, b={1: 80.01, 2: 80.02, 3: 80.03})
    assert pair.test.p_equal is not None
    assert pair.test.p_equal < 0.001 < 0.05 < (pair.test.p_adjusted or 0)
    text = verdict_text(found)
    assert text.startswith("By F1 over 3 seeds, b differs by less than 0.3 points from a (+0.01 points, ")
    assert text.endswith(", corrected p < 0.001).")


def test_no_verdict_rests_on_a_single_seed() -> None:
    """Neither with one seed in each row nor with one against several, however small p over sentences is."""
    for b in ({1: 80.4}, {1: 80.4, 2: 80.5, 3: 80.4}):
        (pair,) = of_scores(a={1: 70.0}, b=b)
        assert (pair.verdict, pair.test.p_adjusted, pair.test.p_equal) == ("undecided", None, None)
        assert pair.record()["p_over_seeds_and_sentences"] is None
        assert pair.record()["p_over_sentences"] == 0.001
        assert "No verdict rests on a single seed" in verdict_text([pair])
    assert verdict_text(of_scores(a={1: 80.0}, b={1: 80.4})).startswith(
        "By F1 over 1 seed, the order of b and a is undecided (+0.40 points). No"
    )


def test_pairs_that_cannot_be_tested_do_not_count_for_the_correction() -> None:
    tests = compare_seeds([LOW, MIDDLE, {1: 84.0}])
    assert tests[0].p_adjusted == tests[0].over_seeds.p
    assert [test.p_adjusted for test in tests[1:]] == [None, None]


def test_the_pairs_on_all_test_sets_are_corrected_together() -> None:
    """The test sets have 4 and 7 sentences; before, one stack was made of the counts of both."""
    english = [Result(Row(label=label), scores) for label, scores in {"low": LOW, "high": HIGH}.items()]
    chinese = [
        Result(Row(label=label), scores) for label, scores in {"a": LOW, "b": MIDDLE, "c": HIGH}.items()
    ]
    for rows, sentences in ((english, 4), (chinese, 7)):
        for result in rows:
            vars(result)["counts"] = np.ones((3, sentences, 3), dtype=np.int64)
    found = pairs.compare_all([english, chinese])
    assert [pair.labels for pair in found] == [("low", "high"), ("a", "b"), ("a", "c"), ("b", "c")]
    p_values = [pair.test.over_seeds.p for pair in found]
    assert [pair.test.p_adjusted for pair in found] == holm([p for p in p_values if p is not None])
    assert {pair.test.number for pair in found} == {4}
    assert [pair.over_sentences.sentences for pair in found] == [4, 7, 7, 7]


def test_a_row_that_an_earlier_look_found_ahead_of_the_leader_is_named() -> None:
    """With three seeds high is ahead of low, whose later seeds it does not have."""
    (first,) = of_scores(high=HIGH, low=LOW)
    (later,) = of_scores(low=LOW | {4: 99.0, 5: 99.2, 6: 99.1}, middle=MIDDLE)
    text = verdict_text([first, later])
    assert text.startswith("By F1 over 3 to 6 seeds, low is behind high (-4.17 points, ")
    assert ", as an earlier look decided; the order of low and middle is undecided" in text


def test_a_row_may_have_more_seeds_in_one_pair_than_in_another() -> None:
    """As after looks: high was ahead of low with three seeds, and of middle with five."""
    (first,) = of_scores(low=LOW, high=HIGH)
    (later,) = of_scores(middle={1: 83.0, 2: 83.2, 3: 83.1, 4: 83.1, 5: 83.0}, high=HIGH | {4: 84.4, 5: 84.2})
    text = verdict_text([first, later])
    assert text.startswith("By F1 over 3 to 5 seeds, high is ahead of low (+4.17 points, ")
    assert " and middle (+" in text


def test_the_leader_has_the_highest_mean_of_all_its_seeds_in_whatever_order_its_pairs_are() -> None:
    """With three seeds high is the best row, with five it is not."""
    (first,) = of_scores(low=LOW, high=HIGH)
    (later,) = of_scores(middle={1: 83.0, 2: 83.2, 3: 83.1, 4: 83.1, 5: 83.0}, high=HIGH | {4: 76.0, 5: 76.2})
    for both in ([first, later], [later, first]):
        assert verdict_text(both).startswith("By F1 over 5 seeds, the order of middle and high is undecided")


def test_each_test_set_has_its_leader() -> None:
    """Scores on different test sets are not compared, however far apart they are."""
    english, chinese = (
        of_scores(low=LOW, high=HIGH),
        of_scores(small={1: 10.0, 2: 10.2}, large={1: 40.0, 2: 40.1}),
    )
    text = verdict_text([*english, *chinese])
    assert text.startswith("By F1 over 3 seeds, high is ahead of low (+4.17 points, ")
    assert " By F1 over 2 seeds, large is ahead of small (+29.95 points, " in text
    leaders = pairs.against_leaders([*chinese, *english])
    assert [[pair.labels for pair in own] for own in leaders] == [[("high", "low")], [("large", "small")]]


def test_there_is_no_answer_without_pairs() -> None:
    assert verdict_text([]) == ""


def test_the_seeds_needed_have_the_power_at_the_corrected_level() -> None:
    (pair,) = of_scores(middle=MIDDLE, high=HIGH)
    a, b = pair.a.measured, pair.b.measured
    assert a is not None
    assert b is not None
    assert a.sd is not None
    assert b.sd is not None
    gap, n = pair.test.over_seeds.mean, pair.seeds_needed
    assert n is not None
    assert power_of_welch(a.sd, b.sd, gap, n, 0.05) >= 0.8 > power_of_welch(a.sd, b.sd, gap, n - 1, 0.05)
    assert seeds_needed(a.sd, b.sd, gap) == n


def test_an_impractical_number_of_seeds_is_not_stated() -> None:
    (pair,) = of_scores(a={1: 80.0, 2: 81.0}, b={1: 80.001, 2: 81.0})
    assert pair.seeds_needed is None
    assert pair.record()["seeds_needed"] is None
    assert pair.seeds_text == "> 1,000"
    assert "): telling them apart would take more than 1,000 seeds per row." in verdict_text([pair])
    mixed = of_scores(a={1: 80.0, 2: 81.0}, b={1: 80.001, 2: 81.0}, c={1: 79.0, 2: 81.5})
    assert " to more than 1,000 seeds per row" in verdict_text(mixed)
    (equal,) = of_scores(a={1: 80.0, 2: 81.0}, b={1: 81.0, 2: 80.0})
    assert equal.seeds_text == ""


def test_without_a_spread_the_number_of_seeds_is_unknown() -> None:
    (pair,) = of_scores(a={1: 80.0, 2: 80.0}, b={1: 81.0, 2: 81.0})
    assert (pair.verdict, pair.seeds_needed, pair.seeds_text) == ("undecided", None, "")
    assert "would take" not in verdict_text([pair])


def test_no_seed_is_hidden_behind_the_mean_or_the_end_of_an_interval() -> None:
    long, other = "a" * 43, "b" * 43
    rows = [Result(Row(label=long), {1: 0.0, 2: 5.0, 3: 10.0}), Result(Row(label=other), {1: 7.0})]
    first, second, *_ = lines = strip_plot(rows)
    assert first.split() == [long, f"<o{11 * '-'}O{10 * '-'}o>", "5.00"]
    assert second.split() == [other, "O", "7.00"]
    assert max(map(len, lines)) <= 76  # and an indent of 4
    assert lines[-1].strip() == "< or >: the interval goes beyond the axis"
    assert lines[-2:-1] == strip_plot(rows[1:])[-1:]  # the legend of a plot that no interval leaves


def test_a_plot_with_long_labels_has_no_line_over_the_width() -> None:
    longest = "model=gated_cnn model.hidden_size=16 layers=3 optimizer.lr=0.001"
    rows = [Result(Row(label=it), {1: 0.0, 2: 100.0, 3: 60.0}) for it in (longest, "model=bilstm")]
    first, second, *_ = lines = strip_plot(rows)
    assert max(map(len, lines)) <= 76
    assert first.split()[-1] == "53.33"
    assert f"{first[: first.index('<')].strip()} {second}" == longest


def test_a_single_score_is_not_drawn() -> None:
    def page(*seeds: int) -> Page:
        runs = {seed: Run(Path("anywhere"), {"data": {"checksum": "a"}}) for seed in seeds}
        row = Row(label="a", run=("layers=2",))
        return Page(
            Table(name="one", title="", source="", rows=(row,)),
            (Result(row, dict.fromkeys(seeds, 80.0), runs),),
        )

    assert TableView(page(1)).answer() == ""
    assert "|" in TableView(page(1, 2)).answer()


def test_a_pair_can_be_read_in_either_order() -> None:
    for pair in of_scores(low=LOW, high=HIGH):
        other = pair.swapped()
        assert (pair.verdict, other.verdict) == ("behind", "ahead")
        ours, theirs = pair.record(), other.record()
        assert (ours["a"], ours["b"]) == (theirs["b"], theirs["a"])
        assert (ours["low"], ours["high"]) == pytest.approx((-theirs["high"], -theirs["low"]))
        assert other.swapped() == pair
