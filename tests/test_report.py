"""The report's parts: what a table varies, which sentences rows differ on, pictures, and what pages say."""

import itertools
import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as Tree

import numpy as np
import pytest

from ner_experiments import tables
from ner_experiments.analysis import figures
from ner_experiments.analysis.predictions import Predicted
from ner_experiments.main import cli
from ner_experiments.report import cases, entries, plot_scores, site, varied
from ner_experiments.report.svg import drawing, inline
from ner_experiments.runs import KeptRun, Run
from ner_experiments.table_page import Grid
from ner_experiments.table_scores import Page, Result

RESULTS = Path(__file__).parent.parent / "results"
WEIBO = "yang2020_table12-data-weibo-trainer.max-epochs-3"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the one table that results/ has runs of."""
    folder = tmp_path_factory.mktemp("report") / "site"
    arguments = ["report", "yang2020_table12", "--results", str(RESULTS), "--output", str(folder)]
    assert cli(arguments) == 0
    return folder


def published(name: str) -> Page:
    table = tables.load(name)
    return Page(table, tuple(map(Result, table.rows)))


def test_a_number_that_rows_vary_is_the_axis() -> None:
    """Against the papers: layers of two stacks, units of one size, units and sizes at once, sizes."""
    (layers,) = varied.axes(published("yang2020_table12"))
    of_series = {
        series: [point.x for point in layers.points if point.series == series]
        for series in ("stacked", "residual")
    }
    assert (layers.label, of_series) == ("layers", {"stacked": [2, 3, 4], "residual": [2, 3, 4, 5, 6]})
    (units,) = varied.axes(published("zukov2018_table2"))
    assert (units.label, [point.x for point in units.points]) == ("parallel units", [1, 2, 4, 8, 16, 32])
    (both,) = varied.axes(published("zukov2018_table3"))
    assert both.label == "parallel units (with size of a unit)"
    assert [point.x for point in both.points] == [2**power for power in range(8)]
    (sizes,) = varied.axes(published("zukov2018_table4"))
    assert [(point.x, point.result.row.published) for point in sizes.points] == [
        (8, 89.78),
        (16, 89.77),
        (32, 90.26),
        (64, 91.48),
        (128, 89.28),
    ]


@pytest.mark.parametrize(
    "name", ["yang2020_table10", "yang2020_table13", "huang2015_table2", "li2020_table1"]
)
def test_a_number_that_goes_with_a_choice_is_no_axis(name: str) -> None:
    assert varied.axes(published(name)) == []


def test_rows_are_drawn_beside_those_on_the_same_scale_and_none_is_lost() -> None:
    found = varied.panels(published("huang2015_table2"))
    for panel, word in zip(found, ("POS", "chunks", "NER"), strict=True):
        assert all(word in result.row.label for result in panel.results)
    assert sum(len(panel.results) for panel in found) == len(tables.load("huang2015_table2").rows)
    heads = varied.panels(published("li2020_table5"))
    assert [(panel.title, len(panel.results)) for panel in heads] == [(f"tag {tag}", 9) for tag in "OSBIE"]


def test_a_picture_takes_the_pages_colours_and_leaves_the_page_alone() -> None:
    hostile = '<script>alert("$x_{")</script>'

    def drawn(name: str) -> str:
        with drawing(400, 300) as figure:
            axes = figure.subplots()
            axes.plot([1, 2], [3, 4], color="#0072b2", label=hostile)
            axes.set_xlabel(hostile)
            axes.legend()
            return str(inline(figure, name, hostile, "two points"))

    made = [drawn("a"), drawn("b")]
    texts = []
    for text in made:
        root = Tree.fromstring(text)
        assert not [node.tag for node in root.iter() if "script" in node.tag or "style" in node.tag]
        assert "var(--s1)" in text
        assert not re.search(r"#[0-9a-f]{6}", text)
        texts += [node.text for node in root.iter() if node.text and "alert" in node.text]
    assert texts == [hostile] * 6  # title, label and legend, of each of the two
    identifiers = Counter(re.findall(r' id="([^"]+)"', "".join(made)))
    assert set(identifiers.values()) == {1}
    targets = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", "".join(made)))
    assert targets
    assert targets <= identifiers.keys()
    assert made[0] == made[1].replace('"b-', '"a-').replace("#b-", "#a-").replace(" b-desc", " a-desc")


def test_the_paper_is_drawn_beside_ours_with_both_numbers_in_the_table() -> None:
    table = tables.load("zukov2018_table4")
    scores = {1: 90.0, 2: 91.0, 3: 92.0}
    page = Page(table, tuple(Result(row, scores if "64" in row.label else {}) for row in table.rows))
    (axis,) = varied.axes(page)
    plot = plot_scores.along(axis, "axis", "test F1")
    assert ["size 64", "91.48 ± 0.22 (10)", "91.00 ± 1.00 (3)", "88.52 to 93.48"] in plot.grid.lines
    labels = {node.text for node in Tree.fromstring(plot.svg).iter() if node.text}
    assert {"score, published", "score, ours", "8", "16", "32", "64", "128"} <= labels


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
        for row, count in zip(tables.load("yang2020_table13").rows, (1, 2, 3), strict=False)
    ]
    found = cases.matrix(cases.shares(rows))
    for line, column in itertools.permutations(range(3), 2):
        pairs = list(itertools.product(rows[line].runs.values(), rows[column].runs.values()))
        counted = 0
        for one, other in pairs:
            for a, b in zip(one.counts(), other.counts(), strict=True):
                counted += (a[0] == a[1] == a[2]) and not (b[0] == b[1] == b[2])
        assert found[line][column] == f"{counted / len(pairs):.1f}"
    assert [found[number][number] for number in range(3)] == [None] * 3


def test_a_sentence_is_shown_in_stretches_with_their_types() -> None:
    words = ("Ann", "Lee", "saw", "Rome", ".")
    sentence = Predicted(words, ("B-PER", "I-PER", "O", "B-LOC", "O"), ("O",) * 5)
    found = cases.pieces(sentence, sentence.gold)
    assert found == [("PER", "Ann Lee"), ("", "saw"), ("LOC", "Rome"), ("", ".")]
    assert cases.pieces(sentence, sentence.predicted) == [("", "Ann Lee saw Rome .")]
    parts = Predicted(("a", "b"), ("DT", "NN"), ("DT", "VB"))
    assert cases.pieces(parts, parts.predicted) == [("", "a"), ("VB", "b")]


def test_what_one_would_not_see_is_written_out() -> None:
    assert site.visible("a\u202eb\u200b") == "a⟨U+202E⟩b⟨U+200B⟩"
    assert site.visible("北京 é <b>") == "北京 é <b>"


class Rows(HTMLParser):
    """The cells of a page's tables, line by line."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[list[str]] = []
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")
        self.open = self.open or tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.open = self.open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.open:
            self.lines[-1][-1] += data


def test_a_tables_page_says_what_its_markdown_says(report: Path) -> None:
    folder = RESULTS / "yang2020_table12" / "data=weibo,trainer.max_epochs=3"
    expected = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (folder / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and ":--" not in line
    ]
    found = Rows((report / f"{WEIBO}.html").read_text(encoding="utf-8")).lines
    assert len(expected) == 17
    for line in expected:
        assert [line[0] or "row", *line[1:]] in found


def test_a_rows_page_says_what_its_runs_scored(report: Path) -> None:
    (page,) = report.glob("runs-4d998b74d397.html")
    found = Rows(page.read_text(encoding="utf-8")).lines
    for path in RESULTS.rglob("4d998b74d397-seed-*.json"):
        run = json.loads(path.read_text())["metrics"]
        scores = [f"{100 * run['test'][name]:.2f}" for name in ("precision", "recall", "f1")]
        assert [str(run["seed"]), f"{100 * run['dev']['f1']:.2f}", *scores] in [line[:5] for line in found]


def test_the_index_counts_what_is_measured_and_what_is_missing(report: Path) -> None:
    lines = Rows((report / "index.html").read_text(encoding="utf-8")).lines
    ours = [line for line in lines if "Number of BiLSTM layers" in line[0]]
    assert [line[2:7] for line in ours] == [["8 of 8", "", "", "3", "24"], ["0 of 8", "8", "", "", ""]]


def test_the_same_results_make_the_same_bytes(report: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    cli(["report", "yang2020_table12", "--results", str(RESULTS), "--output", str(again)])
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in report.iterdir()
    }


def test_a_report_is_made_anew_and_nothing_else_is_written_over(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(report, folder)
    (folder / "older.html").write_text("a page of a table that is gone")
    arguments = ["report", "xor", "--results", str(tmp_path), "--output", str(folder)]
    assert cli(arguments) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "xor.html"]
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "index.html").write_text("my own")
    assert cli([*arguments[:-1], str(other)]) == 1
    assert f"{other}: expected a new folder, an empty one, or an older report" in capsys.readouterr().err
    assert cli([*arguments, "--runs", str(tmp_path / "none")]) == 1
    assert f"--runs: expected a folder of runs, got {tmp_path / 'none'}" in capsys.readouterr().err


def test_runs_of_both_places_are_one_row_and_files_that_differ_are_not_mixed() -> None:
    row = tables.load("yang2020_table13").rows[0]

    def result(checksum: str, **scores: float) -> Result:
        by_seed = {int(name[1:]): value for name, value in scores.items()}
        runs = {seed: Run(Path(checksum), {"checksum": checksum}) for seed in by_seed}
        return Result(row, by_seed, runs)

    kept, own = result("a", s1=1.0, s2=2.0), result("a", s2=3.0, s4=4.0)
    assert entries.both(kept, own).scores == {1: 1.0, 2: 3.0, 4: 4.0}
    assert entries.both(kept, result("b", s4=4.0)).scores == {4: 4.0}
    assert entries.both(kept, result("b")).scores == {1: 1.0, 2: 2.0}


def test_numbers_of_a_long_training_are_thinned_out(report: Path) -> None:
    from ner_experiments.report.plot_curves import MOST_EPOCHS, grid

    class Long(Run):
        def epochs(self) -> list[dict[str, float]]:
            return [{"epoch": float(number), "dev_f1": number / 1000} for number in range(1, 601)]

    found = grid({7: Long(Path(), {"task": "mentions"})})
    assert isinstance(found, Grid)
    assert (len(found.lines), found.lines[-1]) == (MOST_EPOCHS, ["600", "60.00"])


def test_what_needs_weights_is_refused_of_kept_runs_and_said() -> None:
    (path, *_) = RESULTS.rglob("4d998b74d397-seed-1.json")
    content = json.loads(path.read_text())
    with pytest.raises(
        ValueError, match="parts of a model are measured on its weights, and kept runs have none"
    ):
        figures.by_seed("chunk", {1: KeptRun(path, content["metrics"], content)}, None)


def test_rows_without_a_published_number_are_drawn_by_ours_alone() -> None:
    """Table 14 publishes sentences; warnings, of a legend without entries say, are errors here."""
    rows = tables.load("yang2020_table14").rows
    panel = varied.Panel("toy", tuple(Result(row, {1: 50.0, 2: 60.0}, comparable=False) for row in rows))
    plot = plot_scores.by_row(panel, "rows", "test F1")
    labels = [node.text for node in Tree.fromstring(plot.svg).iter() if node.text]
    assert "ours" in labels
    assert "published" not in labels
    assert [line[2] for line in plot.grid.lines] == ["55.00 ± 7.07 (2)"] * 3
