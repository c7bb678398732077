"""Runs outside published tables in the report: their selection, the labels of their rows, and their pages."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from in_process import Ner
from places import RESULTS
from toy_rows import TOY, finish

from ner_experiments.config.compose import jobs
from ner_experiments.main import cli
from ner_experiments.report import own_runs, table_page
from ner_experiments.report.entries import Entry
from ner_experiments.runs.run import open_run
from ner_experiments.tables import spec, sweeps
from ner_experiments.tables.scores import Page, Result


def sweep(folder: Path, *choices: list[str], seeds: tuple[int, ...] = (1,)) -> list[Path]:
    """Runs of each choice of settings with each seed, as they leave their folders."""
    return [
        finish([*TOY, f"output_dir={folder}", *choice], seed, seed) for choice in choices for seed in seeds
    ]


def labels(entry: Entry) -> list[str]:
    return [result.row.label for result in entry.page.results]


def test_experiments_are_rows_called_by_the_settings_in_which_they_differ(tmp_path: Path) -> None:
    layers = [["model=residual", f"layers={number}"] for number in (1, 2, 10)]
    folders = sweep(tmp_path / "outputs" / "demo", *layers, seeds=(1, 2))
    (entry,) = own_runs.own_entries(tmp_path / "outputs", [])
    assert entry.page.table.title == "Experiments on toy_zh in outputs/demo"
    assert labels(entry) == ["model.num_layers=1", "model.num_layers=2", "model.num_layers=10"]
    for result in entry.page.results:
        assert result.scores == {seed: run.score for seed, run in result.runs.items()}
        assert [*result.runs] == [1, 2]
    assert {run.folder for run in entry.runs} == set(folders)
    (table,) = table_page.results_section(entry.view, {}).grids
    assert table.headings == ["", "mean", "95 %", "parameters", "s per epoch"]
    assert [line[0] for line in table.lines] == labels(entry)
    assert (entry.missing, entry.off, entry.page.places) == (0, 0, ("outputs/demo",))
    assert entry.origin is not None
    assert entry.origin.command == ""


def test_of_parts_that_differ_it_is_said_which_they_are(tmp_path: Path) -> None:
    choices = [
        ["model=residual", "chars=none"],
        ["model=stacked", "chars=none"],
        ["model=stacked", "features=case"],
    ]
    sweep(tmp_path, *choices)
    (entry,) = own_runs.own_entries(tmp_path, [])
    assert set(labels(entry)) == {
        "chars=none features=none model=ResidualBiLSTM",
        "chars=none features=none model=StackedBiLSTM",
        "chars=Characters+CharCNN features=Case+OneHot model=StackedBiLSTM",
    }


def test_what_labels_do_not_tell_apart_is_called_by_its_folder(tmp_path: Path) -> None:
    folders = sweep(tmp_path, ["model=residual"])
    (entry,) = own_runs.own_entries(tmp_path, [])
    assert labels(entry) == [folders[0].parent.name]


def test_runs_of_a_table_are_left_to_it_and_damaged_ones_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, theirs, damaged = sweep(tmp_path, *(["model=residual", f"layers={number}"] for number in (1, 2, 3)))
    table = spec.load("yang2020_table12")
    claimed = Entry(Page(table, (Result(table.rows[0], {1: 50.0}, {1: open_run(theirs)}),)))
    (damaged / "metrics.json").write_text("{")
    (entry,) = own_runs.own_entries(tmp_path, [claimed])
    assert [run.folder for run in entry.runs] == [own]
    assert f"{damaged / 'metrics.json'} is damaged" in caplog.text


def test_runs_on_other_sentences_are_other_tables(tmp_path: Path) -> None:
    for folder, data in (("a", TOY), ("a", [*TOY, "data.max_sentences=10"]), ("b", TOY)):
        finish([*data, "model=residual", f"output_dir={tmp_path / folder}"], 1, 2)
    found = own_runs.own_entries(tmp_path, [])
    assert sorted(entry.page.places[0] for entry in found) == sorted(
        f"{tmp_path.name}/{folder}" for folder in "aab"
    )
    assert len({entry.name for entry in found}) == 3


def test_a_report_shows_them_unless_tables_are_named(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    sweep(outputs, *(["model=residual", f"layers={layers}"] for layers in (1, 2)))
    arguments = ["--runs", str(outputs), "--results", str(tmp_path / "none"), "--output"]
    assert cli(["report", *arguments, str(tmp_path / "all")]) == 0
    index = (tmp_path / "all" / "index.html").read_text(encoding="utf-8")
    (link,) = re.findall(r'<a href="(runs_\w+\.html)">Experiments on toy_zh in outputs</a>', index)
    page = (tmp_path / "all" / link).read_text(encoding="utf-8")
    rows = set(re.findall(r'<a href="(runs-\w+\.html)">model\.num_layers=[12]</a>', page))
    assert rows == {path.name for path in (tmp_path / "all").glob("runs-*.html")}
    assert len(rows) == 2
    sections = re.findall(r'<h2 id="([\w-]+)"', page)
    assert sections == ["results", "varied", "differences", "curves", "cost", "errors-0", "pairs", "made"]
    assert "python run.py" not in page
    assert cli(["report", "xor", *arguments, str(tmp_path / "named")]) == 0
    assert {path.name for path in (tmp_path / "named").iterdir()} == {"charts.js", "index.html", "xor.html"}


def test_the_page_of_a_running_sweep_reloads_itself_until_all_runs_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = [*TOY, "model=residual", "layers=1,2", "seed=1,2"]
    sweeps.record(sweeps.of_jobs(jobs(typed), "mine", typed), Path("outputs"))
    page, seen = Path("outputs/report/mine.html"), list[str]()

    def sleep(seconds: float) -> None:
        seen.append(page.read_text(encoding="utf-8"))
        layers = len(seen)
        sweep(Path("outputs"), ["model=residual", f"layers={layers}"], seeds=(1, 2))

    monkeypatch.setattr("ner_experiments.commands.report.time", SimpleNamespace(sleep=sleep))
    assert cli(["report", "mine", "--every", "30"]) == 0
    for text, done in zip(seen, ("0 of 4 done at", r"2 of 4 done, about 0:\d\d left at"), strict=True):
        assert re.search(f"Not finished: {done}", text)
        assert '<meta http-equiv="refresh" content="30.0">' in text
    assert "mine, 2 of 4 done, about " in capsys.readouterr().err
    plain = page.read_text(encoding="utf-8")
    assert ("Not finished" in plain, 'http-equiv="refresh"' in plain) == (False, False)
    assert cli(["report", "mine"]) == 0
    assert page.read_text(encoding="utf-8") == plain


def test_a_run_a_row_and_a_folder_of_rows_have_a_report_of_these_runs_alone(tmp_path: Path, ner: Ner) -> None:
    outputs, site = tmp_path / "outputs", tmp_path / "site"
    first, second, other = sweep(outputs, ["model=residual"], seeds=(1, 2)) + sweep(outputs, ["model=bilstm"])
    (outputs / "empty").mkdir()

    def shown(*items: str | Path) -> list[str]:
        """The numbers of runs of the rows; the index and the page of their folder are the only other pages."""
        ner("report", *map(str, items), "--output", str(site))
        (page,) = {*site.glob("*.html")} - {site / "index.html", *site.glob("*-*.html")}
        assert "Experiments on toy_zh in outputs" in page.read_text(encoding="utf-8")
        texts = (path.read_text(encoding="utf-8") for path in site.glob("runs-*.html"))
        return sorted(number for text in texts for number in re.findall(r"(\w+ runs?) on toy_zh", text))

    for run, row in (([first], [first.parent]), (["--runs", first], ["--runs", first.parent])):
        assert (shown(*run), shown(*row)) == (["One run"], ["2 runs"])
    assert shown(second, other.parent) == ["One run", "One run"]
    assert shown(outputs) == ["2 runs", "One run"]
    for name, reason in {
        "empty": "no run in it is finished",
        "none": "there is no such folder of runs",
    }.items():
        assert ner.error("report", str(outputs / name)) == f"{outputs / name}: {reason}\n"


def test_overrides_leave_the_runs_with_these_settings_alone(
    tmp_path: Path, ner: Ner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spec, "names", lambda: ["xor", "yang2020_table12"])  # all take minutes
    outputs, site = tmp_path / "outputs", tmp_path / "site"
    sweep(outputs, ["model=residual", "layers=2"], ["model=residual", "layers=3"], ["data.max_sentences=10"])

    def shown(*overrides: str) -> tuple[int, list[str]]:
        """The number of pages of rows and, without their hashes, the names of the pages of tables."""
        ner("report", *overrides, "--runs", str(outputs), "--results", str(RESULTS), "--output", str(site))
        rows = {*site.glob("runs-*.html")}
        others = {*site.glob("*.html")} - rows - {site / "index.html", *site.glob("*-pairs-*.html")}
        return len(rows), sorted(path.name.partition("_")[0] for path in others)

    assert shown("data=toy_zh", "data.sentences={train: 20, dev: 5, test: 30}") == (2, ["runs"])
    assert shown(*TOY, "model=residual", "layers=3") == (1, ["runs"])
    assert shown(*TOY, "model=bilstm", "data.max_sentences=10") == (1, ["runs"])
    assert shown("data=weibo", "trainer.max_epochs=3") == (8, ["yang2020"])
