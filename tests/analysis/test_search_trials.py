"""Statistics of a search, against oracles by brute force."""

import itertools
import random
import statistics
from pathlib import Path

import pytest

from ner_experiments.analysis import search_trials
from ner_experiments.analysis.search_trials import Search, Trial, expected_best


@pytest.mark.parametrize(
    "scores", [[0.3], [0.1, 0.9], [0.5, 0.2, 0.5, 0.1], [0.7] * 3, [0.4, 0.0, 0.8, 0.6, 0.6]]
)
def test_the_expected_best_is_the_mean_over_all_draws(scores: list[float]) -> None:
    """An oracle: the maximum of every n-tuple of scores, of which there are B to the power of n."""
    found = expected_best(scores)
    assert len(found) == len(scores)
    for n, value in enumerate(found, 1):
        every = [max(draw) for draw in itertools.product(scores, repeat=n)]
        assert value == pytest.approx(statistics.fmean(every), abs=1e-12)


def test_the_expected_best_starts_at_the_mean_and_grows_towards_the_best() -> None:
    rng = random.Random(0)
    scores = [rng.random() for _ in range(60)]
    found = expected_best(scores)
    assert found[0] == pytest.approx(statistics.fmean(scores))
    assert found == sorted(found)
    assert found[-1] < max(scores)
    assert expected_best([]) == []


def made_up() -> Search:
    """Two equal trials, one that is better, one that failed and one that is running."""
    trials = [
        Trial(
            0, "complete", ("layers=1", "model.dropout=0.1"), 0.5, (0.4, 0.6), ("a/seed-1", "a/seed-2"), 3.0
        ),
        Trial(1, "failed", ("layers=2", "model.dropout=0.9"), error="out of memory"),
        Trial(
            2, "complete", ("layers=3", "model.dropout=0.2"), 0.7, (0.7, 0.7), ("b/seed-1", "b/seed-2"), 2.0
        ),
        Trial(
            4, "complete", ("layers=1", "model.dropout=0.3"), 0.5, (0.5, 0.5), ("c/seed-1", "c/seed-2"), 2.0
        ),
        Trial(5, "running", ("layers=2", "model.dropout=0.3")),
    ]
    return Search(
        name="mine",
        metric="F1",
        fixed=("data=toy_en", "model=stacked"),
        ranges=("layers=range(1,4)", "model.dropout=interval(0,0.9)"),
        seeds=(1, 2),
        n_trials=5,
        sampler="TPESampler, seed 1",
        trials=tuple(trials),
        importance={"layers": 0.6, "model.dropout": 0.25},
    )


def test_trials_are_ranked_by_score_and_the_earlier_of_equal_ones_is_first() -> None:
    found = made_up()
    assert [trial.number for trial in found.ranked] == [2, 0, 4]
    assert [trial.number for trial in found.failed] == [1]
    assert found.scores == [0.5, 0.7, 0.5]
    assert found.keys == ["layers", "model.dropout"]


def test_a_trial_has_the_command_of_all_its_seeds() -> None:
    found = made_up()
    expected = "python run.py -m data=toy_en model=stacked layers=3 model.dropout=0.2 seed=1,2"
    assert " ".join(found.command(found.ranked[0])) == expected


def test_a_search_is_read_as_it_was_written(tmp_path: Path) -> None:
    search_trials.write(made_up(), tmp_path / "search.json")
    assert search_trials.read(tmp_path / "search.json") == made_up()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"score": 0.5', '"score": "x"', "trial 1: score must be a number or null, got 'x'"),
        ('"seconds": 3.0', '"seconds": null', "trial 1: seconds must be a number, got None"),
        ('"n_trials": 5', '"n_trials": [5]', "n_trials must be a whole number from 0, got [5]"),
        ('"layers": 0.6', '"layers": "x"', "importance must be numbers by setting, got {'layers': 'x'"),
        ('"number": 4', '"numbre": 4', "trial 4: there is no 'numbre'; did you mean 'number'?"),
        ('"seeds": [ 1, 2 ], ', "", "seeds is missing"),
        ("{", "[", "not JSON ("),
    ],
)
def test_a_file_that_is_no_search_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    search_trials.write(made_up(), path)
    text = " ".join(path.read_text().split())
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=f"^{path}: ") as error:
        search_trials.read(path)
    assert str(error.value).startswith(f"{path}: {message}")
