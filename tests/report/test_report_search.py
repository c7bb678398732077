"""The report's pages of searches, made of search.json alone."""

import dataclasses
import html
import json
import logging
import re
from pathlib import Path

import pytest
from html_tables import rows

from ner_experiments.analysis import search_trials
from ner_experiments.analysis.search_trials import Search, Trial, expected_best
from ner_experiments.main import cli
from ner_experiments.report import search_page
from ner_experiments.tables import sweeps

SCORES = [0.41, 0.72, 0.55, 0.72, 0.6, 0.11, 0.35, 0.66, 0.58, 0.7, 0.69, 0.71]
RATES = [0.001 * (number + 1) for number in range(len(SCORES))]


def trials(seeds: int = 1) -> tuple[Trial, ...]:
    """Twelve complete trials with two settings, one that failed, and one that is running."""
    complete = [
        Trial(
            number=number,
            state="complete",
            overrides=(f"optimizer.lr={rate:.4g}", f"chars={['none', 'cnn', 'lstm'][number % 3]}"),
            score=score,
            scores=(score,) * seeds,
            folders=tuple(f"outputs/run-{number}/seed-{seed}" for seed in range(1, seeds + 1)),
            seconds=300.0,
        )
        for number, (score, rate) in enumerate(zip(SCORES, RATES, strict=True))
    ]
    failed = Trial(12, "failed", ("optimizer.lr=0.5", "chars=<cnn>"), error="loss is <nan>")
    return (*complete, failed, Trial(13, "running", ("optimizer.lr=0.6", "chars=cnn")))


MADE_UP = Search(
    name="lr-chars-12345678",
    metric="F1",
    fixed=("data=toy_en", "model=stacked"),
    ranges=("optimizer.lr=tag(log,interval(0.001,0.1))", "chars=none,cnn,lstm"),
    seeds=(1,),
    n_trials=14,
    sampler="TPESampler, seed 1",
    trials=trials(),
    importance={"chars": 0.25, "optimizer.lr": 0.5},
)


def report(folder: Path, *found: Search) -> Path:
    """The folder of the report of these searches alone."""
    for number, each in enumerate(found):
        place = folder / "outputs" / f"part-{number}" / "searches" / each.name
        place.mkdir(parents=True)
        search_trials.write(each, place / "search.json")
    arguments = [
        "--results",
        str(folder / "none"),
        "--runs",
        str(folder / "outputs"),
        "--output",
        str(folder / "r"),
    ]
    assert cli(["report", *arguments]) == 0
    return folder / "r"


def page_of(folder: Path) -> str:
    (path,) = folder.glob("search-*.html")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(tmp_path_factory.mktemp("search"), MADE_UP)


def test_the_trials_stand_in_the_order_of_their_dev_scores(written: Path) -> None:
    heading, *lines = rows(page_of(written), "Trials by dev score")
    assert heading == ["rank", "dev F1", "optimizer.lr", "chars", "trial", "runs"]
    order = sorted(range(len(SCORES)), key=lambda number: (-SCORES[number], number))
    assert [int(line[4]) for line in lines] == order
    for rank, line in enumerate(lines, 1):
        number = order[rank - 1]
        values = [item.partition("=")[2] for item in MADE_UP.trials[number].overrides]
        score, run = f"{100 * SCORES[number]:.2f}", f"outputs/run-{number}/seed-1"
        expected = [str(rank), score, *values, str(number), run]
        assert line == expected


def test_plots_have_the_numbers_of_the_trials(written: Path) -> None:
    page = page_of(written)
    (_, *history) = rows(page, "Dev score of each trial, and the best so far")
    best = [max(SCORES[: number + 1]) for number in range(len(SCORES))]
    assert history == [
        [str(number), f"{100 * score:.2f}", f"{100 * so_far:.2f}"]
        for number, (score, so_far) in enumerate(zip(SCORES, best, strict=True))
    ]
    (_, *expected) = rows(page, "Expected best dev score")
    assert [line[1] for line in expected] == [f"{100 * score:.2f}" for score in expected_best(SCORES)]
    assert rows(page, "Importance of the settings")[1:] == [["optimizer.lr", "50 %"], ["chars", "25 %"]]
    drawn = [
        json.loads(text)[0] for text in re.findall(r'<script type="application/json">(.*?)</script>', page)
    ]
    of_history, lr, chars, of_expected = ([row["y"] for row in it["data"]["values"]] for it in drawn)
    assert of_history[::2] == pytest.approx([100 * score for score in SCORES], rel=1e-4)
    assert of_history[1::2] == pytest.approx([100 * score for score in best], rel=1e-4)
    assert sorted(lr) == sorted(chars) == sorted(of_history[::2])
    assert of_expected == pytest.approx([100 * score for score in expected_best(SCORES)], rel=1e-4)
    assert drawn[1]["encoding"]["x"]["scale"]["type"] == "log"
    assert drawn[2]["encoding"]["x"]["scale"]["domain"] == sorted(("none", "cnn", "lstm"))


def test_a_failed_trial_is_shown_with_its_reason_as_text(written: Path) -> None:
    page = page_of(written)
    assert rows(page, "Failed trials")[1:] == [["12", "0.5", "<cnn>", "loss is <nan>"]]
    assert "<nan>" not in page
    assert "<cnn>" not in page


def test_the_page_says_what_was_run_and_how_to_score_test(written: Path) -> None:
    page = html.unescape(page_of(written))
    assert "and not scored on test" in page
    assert "python run.py data=toy_en model=stacked optimizer.lr=0.002 chars=cnn seed=1" in page
    assert "Range: <code>optimizer.lr=tag(log,interval(0.001,0.1))</code>." in page
    assert "Sampler: TPESampler, seed 1; 14 trials were requested." in page
    assert "1.0 hours of training." in page


def test_the_index_has_a_line_that_leads_to_the_page(written: Path) -> None:
    page = (written / "index.html").read_text(encoding="utf-8")
    (line,) = re.findall(r'<tr><th scope="row"><a href="(search-[^"]+)">(.*?)</a>.*?</th>(.*?)</tr>', page)
    assert (written / line[0]).exists()
    assert line[1] == "Search over optimizer.lr, chars"
    assert re.findall("<td>(.*?)</td>", line[2]) == ["72.00", "12", "1", "1.0"]


def test_scores_of_several_seeds_are_shown(tmp_path: Path) -> None:
    page = page_of(report(tmp_path, dataclasses.replace(MADE_UP, seeds=(1, 2), trials=trials(2))))
    assert rows(page, "Trials by dev score")[1][1] == "72.00 (72.00 72.00)"
    assert "Seeds of each trial: 1, 2; a trial" in page


def test_a_search_is_refused_where_a_table_is_expected(written: Path) -> None:
    with pytest.raises(ValueError, match=f"{MADE_UP.name} is a search; only `ner-experiments table`"):
        sweeps.find(MADE_UP.name, written.parent / "outputs" / "part-0")


EQUAL = tuple(
    dataclasses.replace(trial, score=0.5, overrides=MADE_UP.trials[0].overrides) for trial in trials()[:12]
)


@pytest.mark.parametrize(
    ("made", "plots"), [(trials()[-2:], 0), ((trials()[0], *trials()[-2:]), 0), (EQUAL, 4)]
)
def test_hardly_a_trial_and_equal_ones_have_a_page(
    made: tuple[Trial, ...], plots: int, tmp_path: Path
) -> None:
    page = page_of(report(tmp_path, dataclasses.replace(MADE_UP, trials=made, importance={})))
    assert ("Failed trials" in page) == (made != EQUAL)
    assert ("Trials by dev score" in page) == (made[0].state == "complete")
    assert page.count('class="charts"') == plots


@pytest.mark.parametrize("name", ["mine", "x" * 70])
def test_searches_of_one_name_have_pages_of_their_own(name: str) -> None:
    pages = {search_page.FoundSearch(f"outputs/{part}/searches/{name}", MADE_UP).page for part in "ab"}
    assert len(pages) == 2


def test_a_file_that_is_no_search_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "searches" / "mine" / "search.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"trials": [{"number": 1}]}))
    with caplog.at_level(logging.WARNING):
        assert search_page.find(tmp_path) == []
    assert f"left out of the report: {path}: name is missing" in caplog.text
