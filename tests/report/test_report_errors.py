"""The errors on the report's pages, counted by hand: kinds, groups, confusion, differences, gradients."""

import math
from functools import partial
from pathlib import Path

import pytest
from analyzed import errors_of
from scipy.stats import t

from ner_experiments.analysis.archive import Errors
from ner_experiments.analysis.calibration import Bin, Calibration
from ner_experiments.analysis.row_errors import INTERVALS, RowErrors
from ner_experiments.report import error_tables, row_page
from ner_experiments.report.error_tables import (
    NOT_ARCHIVED,
    calibration_section,
    confusion_section,
    group_sections,
    kinds_section,
    row_sections,
)
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run

GOLD = ("B-PER", "I-PER", "O", "B-LOC", "O", "B-PER")
WORDS = ("Ann", "Lee", "saw", "Rome", "with", "Bo")
CORRECT = GOLD
BOUNDARY = ("B-PER", "O", "O", "B-LOC", "O", "B-PER")
TYPE = ("B-PER", "I-PER", "O", "B-PER", "O", "B-PER")
MISSING = ("B-PER", "I-PER", "O", "O", "O", "B-PER")
DATA = {"name": "toy", "checksum": "abc", "gold": "abc"}


BIN = Bin(0.8, 0.9, 4, 0.85, 0.75, 0.5, 1.0)


def archived(*predicted: tuple[str, ...], bins: tuple[Bin, ...] = (BIN,)) -> ArchivedRun:
    """A run of these sentences, which all have the same gold mentions."""
    sentences = [Predicted(WORDS, GOLD, tags) for tags in predicted]
    errors = errors_of(sentences, None)
    content = {"errors": errors.record(), "calibration": Calibration(bins, 0.1, 0.05, 0.2).record()}
    return ArchivedRun(Path("archived"), {"data": DATA, "task": "mentions"}, content)


@pytest.fixture
def row() -> RowErrors:
    """Six gold mentions: the first run has one boundary wrong, the second one type wrong and one mention missing."""
    return RowErrors("a row", {1: archived(CORRECT, BOUNDARY), 2: archived(TYPE, MISSING)})


@pytest.fixture
def other() -> RowErrors:
    return RowErrors("another", {1: archived(CORRECT, CORRECT), 2: archived(CORRECT, CORRECT)})


def student(*values: float, low: float = -math.inf, high: float = math.inf) -> str:
    """The 95 % interval of a mean, as pages print it, within the values that it can have."""
    mean = sum(values) / len(values)
    sd = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = t.ppf(0.975, len(values) - 1) * sd / math.sqrt(len(values))
    return f"{max(low, mean - half):.2f} to {min(high, mean + half):.2f}"


percent = partial(student, low=0.0, high=100.0)


@pytest.mark.parametrize(
    ("a", "b", "cell"),
    [
        ({1: 50.0}, {1: 75.0}, "-25.00 (one seed)"),
        ({1: 50.0, 2: 50.0}, {1: 75.0, 2: 75.0}, "-25.00 (scores do not vary)"),
        ({1: 50.0, 2: 50.0}, {1: 75.0, 2: 75.0, 3: 75.0}, "-25.00 (scores do not vary)"),
        ({1: 50.0, 2: 60.0}, {1: 75.0}, "-20.00 (seeds: 2 against 1)"),
    ],
)
def test_a_difference_without_an_interval_says_why(
    a: dict[int, float], b: dict[int, float], cell: str
) -> None:
    assert error_tables.difference_cell(a, b) == cell


def test_kinds_are_shares_of_the_gold_mentions(row: RowErrors) -> None:
    section = kinds_section(row.kinds())
    assert section is not None
    (plot,) = section.plots
    sixth = 100 / 6
    half = [f"{sixth / 2:.2f}", percent(sixth, 0)]
    none = {key: ["0.00", "0.00 to 0.00"] for key in ("wrong type and boundary", "spurious")}
    found = {name: cells for name, *cells in plot.grid.lines}
    assert found == {"wrong boundary": half, "wrong type": half, "missing": half, **none}


def test_groups_have_the_mean_of_f1_over_seeds(row: RowErrors) -> None:
    (section,) = group_sections(row)
    assert section is not None
    of_type = {name: cells for name, *cells in section.plots[0].grid.lines}
    # LOC: 2 of 2, and none of the 2 with nothing predicted. PER: 3 of 4 both ways; then 4 of 4, with one more
    assert of_type["LOC"] == ["50.00", "50.00", "50.00", percent(100, 0), "2"]
    f1 = (100 * 6 / 8, 100 * 8 / 9)
    assert of_type["PER"][2:] == [f"{sum(f1) / 2:.2f}", percent(*f1), "4"]


def test_confusion_is_a_mean_over_runs_and_coloured_by_share(row: RowErrors) -> None:
    section = confusion_section(row.confusion())
    assert section is not None
    (shown,) = section.grids
    assert shown.headings == ("gold", "LOC", "PER", "none")
    assert shown.lines == [["LOC", "1", "0.5", "0.5"], ["PER", "0", "4", "0"], ["none", "0", "0", "0"]]
    assert shown.heat == [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 0]]


def test_calibration_is_shown_bin_by_bin(row: RowErrors) -> None:
    section = calibration_section(row.calibration(), 2)
    assert section is not None
    assert "Expected calibration error 10.00 %" in section.texts[1]
    (first, error) = section.plots[0].grid.lines
    assert first == ["0.8 to 0.9", "8", "85.00", "75.00", "75.00 to 75.00"]
    assert error == ["expected error", "", "", "10.00", "10.00 to 10.00"]


def test_a_bin_of_one_run_alone_has_the_interval_of_its_sentences(row: RowErrors) -> None:
    more = archived(CORRECT, BOUNDARY, bins=(Bin(0.5, 0.6, 2, 0.55, 0.5, 0.0, 1.0), BIN))
    section = calibration_section(RowErrors("", {1: more, 2: row.runs[2]}).calibration(), 2)
    assert section is not None
    assert section.plots[0].grid.lines[0] == ["0.5 to 0.6", "2", "55.00", "50.00", "0.00 to 100.00"]
    assert section.texts[1].endswith(" ".join(INTERVALS.values()))


def test_only_the_first_models_of_a_row_tag_the_test_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[Path] = []

    def calibrated(run: Run) -> Calibration:
        again.append(run.folder)
        return Calibration((BIN,), 0.1, 0.05, 0.2)

    monkeypatch.setattr("ner_experiments.analysis.row_errors.run_calibration", calibrated)
    runs: dict[int, Run] = {seed: Run(Path(f"seed-{seed}"), {}) for seed in (1, 2, 3)}
    many = RowErrors("many", {**runs, 4: archived(CORRECT)})
    section = calibration_section(many.calibration(2), 4)
    assert again == [Path("archived"), Path("seed-1"), Path("seed-2")]
    assert section is not None
    assert "Of 3 of the 4 runs." in section.texts[1]


def test_differences_of_rows_carry_their_intervals(row: RowErrors, other: RowErrors) -> None:
    grid = error_tables.differences({"ours": row, "best": other}, "type", "best")
    per = (100 * 6 / 8 - 100, 100 * 8 / 9 - 100)
    assert grid.headings == ("type", "ours")
    assert grid.lines == [
        ["LOC", f"-50.00 ({student(0, -100)})"],
        ["PER", f"{sum(per) / 2:+.2f} ({student(*per)})"],
    ]
    assert error_tables.table_section({"ours": row, "best": other}, "best", 0) is not None
    assert error_tables.table_section({"alone": row}, "alone", 0) is None


def test_the_parts_that_runs_were_archived_without_are_named(row: RowErrors) -> None:
    metrics = {"data": DATA, "task": "tags", "test": {}}
    figures = {"type": {"PER": 40.0}, "length": {}}
    content = {"errors": Errors().record(), "calibration": None, "figures": figures}
    old = RowErrors("old", {1: ArchivedRun(Path("archived"), metrics, content)})
    (section,) = (it for it in row_sections(old) if it)
    assert section.texts == [NOT_ARCHIVED]
    assert [plot.grid.lines for plot in section.plots] == [[["PER", "40.00", ""]]]
    assert error_tables.table_section({"old": old, "older": old}, "old", 0) is None


def test_gradients_are_drawn_where_a_run_wrote_them(tmp_path: Path) -> None:
    (tmp_path / "gradients.csv").write_text(
        "epoch,steps,kind,part,norm,by_shortcut,through_block,share\n"
        "1,5,weights,words,0.5,,,\n1,5,layer,1,2.0,1.5,0.5,0.75\n1,5,layer,2,1.0,,,\n"
        "2,5,weights,words,0.25,,,\n2,5,layer,1,3.0,1.5,1.5,0.5\n2,5,layer,2,1.0,,,\n"
    )
    section = row_page.gradients_section({4: Run(tmp_path, {})})
    assert section is not None
    assert [(list(plot.grid.headings), plot.grid.lines) for plot in section.plots] == [
        (["epoch", "words"], [["1", "0.5"], ["2", "0.25"]]),
        (["epoch", "layer 1", "layer 2"], [["1", "2", "1"], ["2", "3", "1"]]),
        (["epoch", "layer 1"], [["1", "0.75"], ["2", "0.5"]]),
    ]
    assert row_page.gradients_section({4: Run(tmp_path / "none", {})}) is None


def test_a_test_set_without_a_mention_has_no_errors_to_show() -> None:
    sentence = Predicted(("a",), ("O",), ("O",))
    errors = errors_of([sentence], None)
    content = {"errors": errors.record(), "calibration": None, "figures": {"type": {}, "length": {}}}
    metrics = {"data": DATA, "task": "mentions", "test": {}}
    found = group_sections(RowErrors("none", {1: ArchivedRun(Path("archived"), metrics, content)}))
    assert found == []


def test_rows_of_one_run_and_of_several_are_explained_differently(row: RowErrors) -> None:
    single = RowErrors("single", {1: row.runs[1]})
    section = error_tables.table_section({"ours": row, "best": single}, "best", 0)
    assert section is not None
    assert section.texts[0].startswith(" ".join(INTERVALS.values()))
    (section,) = (it for it in group_sections(single) if it is not None)
    assert section.texts[0].startswith(INTERVALS["sentences"])


def test_a_test_set_that_was_looked_at_each_epoch_is_not_said_to_be_scored_once() -> None:
    scores = dict.fromkeys(("precision", "recall", "f1"), 0.5)
    metrics = {
        "task": "mentions", "dev": scores, "test": scores, "best_epoch": 1, "epochs": 2, "seconds": 60.0,
        "tokens_per_second": 500.0,
    }  # fmt: skip
    for test_scores, said in (([], "scored once"), ([50.0, 49.0], "also scored after each epoch")):
        (shown,) = row_page.seeds_section(
            {1: ArchivedRun(Path("archived"), metrics, {"test_every_epoch": test_scores})}
        ).grids
        assert said in shown.caption
        assert shown.lines[0][-2:] == ["1.0", "500"]


def test_a_score_that_older_runs_lack_is_empty_for_them() -> None:
    about = {"task": "mentions", "best_epoch": 1, "epochs": 2, "seconds": 60.0, "tokens_per_second": 500.0}
    reports = ({"f1": 0.5, "gold": 4}, {"f1": 0.5, "of_ones_own": 0.75, "gold": 4})
    runs = {
        seed: ArchivedRun(Path("archived"), {**about, "dev": it, "test": it}, {"test_every_epoch": []})
        for seed, it in enumerate(reports)
    }
    (shown,) = row_page.seeds_section(runs).grids
    assert shown.headings[:4] == ["seed", "dev F1", "test F1", "test of_ones_own"]
    assert [line[2:4] for line in shown.lines] == [["50.00", ""], ["50.00", "75.00"]]
