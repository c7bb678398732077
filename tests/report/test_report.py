"""The report's pages: their statements about results, their regeneration, and their refusals."""

import json
import shutil
from pathlib import Path

import pytest
from html_tables import rows
from in_process import Ner
from places import RESULTS

from ner_experiments.main import cli
from ner_experiments.report import write
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.run import Run
from ner_experiments.tables import collecting
from ner_experiments.tables.table_view import TableView
from ner_experiments.view.table import Grid

WEIBO = "yang2020_table12-data-weibo-trainer.max-epochs-3"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the report on the only table with runs in results/."""
    folder = tmp_path_factory.mktemp("report") / "site"
    arguments = ["report", "yang2020_table12", "--results", str(RESULTS), "--output", str(folder)]
    assert cli(arguments) == 0
    return folder


def test_a_tables_page_says_what_its_markdown_says(report: Path) -> None:
    folder = RESULTS / "yang2020_table12" / "weibo-max_epochs-3"
    expected = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (folder / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and ":--" not in line
    ]
    found = rows((report / f"{WEIBO}.html").read_text(encoding="utf-8"))
    assert len(expected) == 17
    for line in expected:
        shown = [line[0] or "row", *line[1:]]
        assert shown in found or [shown[0], shown[-1], *shown[1:-1]] in found  # differences: verdict first


def test_a_table_that_is_not_measured_leads_to_its_other_settings(report: Path) -> None:
    page = (report / "yang2020_table12.html").read_text(encoding="utf-8")
    assert f'<li><a href="{WEIBO}.html">data=weibo trainer.max_epochs=3</a></li>' in page


def test_a_rows_page_says_what_its_runs_scored(report: Path) -> None:
    (page,) = report.glob("runs-81bdb11b9442.html")
    found = rows(page.read_text(encoding="utf-8"))
    for path in RESULTS.rglob("81bdb11b9442-seed-*.json"):
        run = json.loads(path.read_text())["metrics"]
        scores = [f"{100 * run['test'][name]:.2f}" for name in ("precision", "recall", "f1")]
        assert [str(run["seed"]), f"{100 * run['dev']['f1']:.2f}", *scores] in [line[:5] for line in found]
    assert "<code>data=weibo trainer.max_epochs=3</code>" in page.read_text(encoding="utf-8")


def test_the_index_counts_what_is_measured_and_what_is_missing(report: Path) -> None:
    lines = rows((report / "index.html").read_text(encoding="utf-8"))
    ours = [line for line in lines if "Number of BiLSTM layers" in line[0]]
    on_weibo, of_ten_epochs = ["8 of 8", "", "", "3", "24"], ["8 of 8", "", "4", "1 to 5", "22"]
    assert [line[2:7] for line in ours] == [on_weibo, of_ten_epochs, ["0 of 8", "8", "", "", ""]]


@pytest.mark.slow
def test_the_same_results_make_the_same_bytes(report: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    cli(["report", "yang2020_table12", "--results", str(RESULTS), "--output", str(again)])
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in report.iterdir()
    }


def test_a_report_is_made_anew_and_nothing_else_is_written_over(
    report: Path, tmp_path: Path, ner: Ner
) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(report, folder)
    (folder / "older.html").write_text("a page of a table that is gone")
    arguments = ["report", "xor", "--results", str(tmp_path), "--output", str(folder)]
    ner(*arguments)
    assert sorted(path.name for path in folder.iterdir()) == ["charts.js", "index.html", "xor.html"]
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "index.html").write_text("my own")
    assert f"{other}: expected a new folder, an empty one, or an older report" in ner.error(
        *arguments[:-1], str(other)
    )
    assert f"--runs: expected a folder of runs, got {tmp_path / 'none'}" in ner.error(
        *arguments, "--runs", str(tmp_path / "none")
    )


def test_with_overrides_only_runs_with_these_settings_are_shown(tmp_path: Path, ner: Ner) -> None:
    arguments = ["report", "yang2020_table12", "--results", str(RESULTS), "--output", str(tmp_path / "site")]
    first = Path(ner(*arguments, "trainer.max_epochs=3", "data=weibo").strip())
    assert first.name == f"{WEIBO}.html"
    assert [path.name for path in first.parent.glob("yang2020_table12*") if "pairs" not in path.name] == [
        first.name
    ]
    text = Path(ner(*arguments, "trainer.max_epochs=7").strip()).read_text(encoding="utf-8")
    assert "No run of this table is finished" in text
    assert "trainer.max_epoch=7: there is no setting 'trainer.max_epoch'" in ner.error(
        *arguments, "trainer.max_epoch=7"
    )
    assert (
        ner.error(*arguments, "--runs", str(tmp_path), "output_dir=x")
        == f"--runs {tmp_path}, output_dir=x: expected one folder of runs\n"
    )


def test_after_an_error_the_older_report_is_as_it_was(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken")

    folder = tmp_path / "mine"
    shutil.copytree(report, folder)
    monkeypatch.setattr(write.index_page, "write", broken)
    arguments = ["yang2020_table12", "data=weibo", "--results", str(RESULTS), "--output", str(folder)]
    assert cli(["report", *arguments]) == 1
    assert [*tmp_path.iterdir()] == [folder]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in report.iterdir()
    }


def test_a_table_that_cannot_be_read_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sections = write.table_page.sections

    def broken(view: TableView, links: dict[str, str]) -> object:
        if view.page.table.name == "yang2020_table12":
            raise ValueError("broken")
        return sections(view, links)

    monkeypatch.setattr(write.table_page, "sections", broken)
    tables = ["yang2020_table12", "yang2020_table13"]
    assert (
        cli(["report", *tables, "--results", str(tmp_path / "none"), "--output", str(tmp_path / "site")]) == 0
    )
    assert "left out of the report: yang2020_table12: broken" in caplog.text
    assert {path.name for path in (tmp_path / "site").glob("yang*")} == {"yang2020_table13.html"}


def test_numbers_of_a_long_training_are_thinned_out(report: Path) -> None:
    from ner_experiments.report.run_plots import MAX_EPOCHS, curve_grid

    class Long(Run):
        def epochs(self) -> list[dict[str, float]]:
            return [{"epoch": float(number), "dev_f1": number / 1000} for number in range(1, 601)]

    found = curve_grid({7: Long(Path(), {"task": "mentions"})})
    assert isinstance(found, Grid)
    assert (len(found.lines), found.lines[-1]) == (MAX_EPOCHS, ["600", "60.00"])


def test_archived_runs_are_refused_where_weights_are_needed() -> None:
    (path, *_) = RESULTS.rglob("81bdb11b9442-seed-1.json")
    content = json.loads(path.read_text())
    with pytest.raises(
        ValueError, match="parts of a model are measured on its weights, and archived runs have none"
    ):
        collecting.figures_by_seed("chunk", {1: ArchivedRun(path, content["metrics"], content)}, None)
