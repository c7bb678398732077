"""The report's plots: their axes, scales, points and titles, and of which rows and sentences they are."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import drawn
import pytest

from ner_experiments.analysis.row_errors import Mean, MeanBucket
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.report import attention_page, error_tables, run_plots, table_page
from ner_experiments.runs.run import Run
from ner_experiments.tables import plots, spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.view import vega
from ner_experiments.view.mentions import visible


def test_ten_rows_are_drawn_side_by_side_each_with_a_mark_of_its_own() -> None:
    f1 = MeanBucket(Mean(0.8, 0.7, 0.9, 3, "seeds"), 0.8, 0.8, 10)
    plot = error_tables.f1_plot("type", {f"row {number}": {"NP": f1} for number in range(10)})
    assert plot.title == "F1 by type"
    assert drawn.data(plot) == [
        {"row": "NP", "x": 80, "low": 70, "high": 90, "series": f"row {number}"} for number in range(10)
    ]
    looks = {(look.color, look.shape) for look in vega.looks(map(str, range(42))).values()}
    assert len(looks) == 42


@pytest.mark.parametrize("least", [0.001, 0.7])
def test_norms_have_a_logarithmic_axis(least: float) -> None:
    rows = [{"epoch": 1.0, "layer 1": least}, {"epoch": 2.0, "layer 1": 1.0}]
    plot = run_plots.line_plot(rows, "norm", "Gradient of each layer's output")
    assert plot.panels[0]["encoding"]["y"]["scale"]["type"] == "log"
    low, high = drawn.domain(plot, "y")
    assert 0 < low < least < 1 < high
    assert [row["y"] for row in drawn.data(plot)] == [least, 1.0]


class Trained(Run):
    """A run whose dev scores are in its metrics, as is its data."""

    def epochs(self) -> list[dict[str, float]]:
        return [
            {"epoch": float(epoch), "dev_f1": f1} for epoch, f1 in enumerate(self.metrics["curve"], start=1)
        ]


def trained(data: str, *curve: float) -> Mapping[int, Run]:
    metrics = {"task": "mentions", "best_epoch": len(curve), "data": {"name": data, "checksum": data}}
    return {1: Trained(Path(), {**metrics, "curve": curve})}


def test_learning_curves_have_one_scale_for_each_corpus_and_the_page_says_so() -> None:
    """Scores of 92 to 95 and of 79 to 89, in turn: no picture shows what none of its corpus scored."""
    rows = [row for row in spec.load("huang2015_table2").rows if row.run and "POS" not in row.label][:4]
    chunks = [trained("conll2000", 0.92, 0.948), trained("conll2000", 0.93, 0.95)]
    names = [trained("conll2003", 0.79, 0.88), trained("conll2003", 0.80, 0.89)]
    in_turn = [chunks[0], names[0], chunks[1], names[1]]
    results = tuple(Result(row, runs=runs) for row, runs in zip(rows, in_turn, strict=True))
    table = spec.load("huang2015_table2")
    section = table_page.curves_section(TableView(Page(table, results)))
    assert section is not None
    assert [plot.title for plot in section.plots] == [rows[n].label for n in (0, 2, 1, 3)]
    ticks = [drawn.domain(plot, "y") for plot in section.plots]
    assert ticks[0] == ticks[1]
    assert ticks[2] == ticks[3]
    assert min(ticks[0]) >= 90
    assert max(ticks[2]) <= 91
    assert section.texts[0].endswith("Rows on one corpus share one scale: first conll2000, then conll2003.")
    one = table_page.curves_section(TableView(Page(table, results[::2])))
    assert one is not None
    assert one.texts[0].endswith("All rows share one scale.")


def test_a_picture_is_named_after_the_corpus_that_was_scored() -> None:
    """With data=weibo a table of MSRA is no picture of MSRA; rows without runs stand beside the others."""
    table = spec.load("yang2020_table13")
    ran, *others = table.rows
    results = (Result(ran, {1: 50.0}, trained("weibo", 0.5), comparable=False), *map(Result, others))
    assert [group.title for group in plots.row_groups(Page(table, results, ("data=weibo",)))] == ["weibo"]
    assert [it.title for it in plots.row_groups(Page(table, tuple(map(Result, table.rows))))] == ["msra"]
    own = (replace(results[0], runs=trained("my files", 0.5)), *results[1:])
    (group,) = plots.row_groups(Page(table, own, ("data=conll",)))
    assert (group.title, len(group.results)) == ("my files", len(table.rows))
    assert plots.row_plot(group, "test F1").title == "test F1, row by row: my files"


def test_rows_of_the_report_are_drawn_at_their_scores_and_those_of_papers_beside_them() -> None:
    table = spec.load("yang2020_table13")
    results = tuple(Result(row, {1: 90.0, 2: 91.0}) for row in table.rows[:2])
    (rows,) = plots.row_groups(Page(table, results))
    plot = plots.row_plot(rows, "test F1")
    assert drawn.data(plot) == [
        point
        for row in table.rows[:2]
        for point in (
            {"row": row.label, "x": row.published, "series": "published"},
            {"row": row.label, "x": 90.5, "low": 84.1469, "high": 96.8531, "series": "ours"},
        )
    ]
    assert plot.grid.headings == ("row", "published", "ours", "95 %")


def test_seeds_are_points_and_their_interval_is_drawn_as_far_as_there_is_room() -> None:
    """The interval of two seeds is 12.7 times as long as they differ; the axis has three times this difference."""
    table = Table(name="mine", title="t", source="s", rows=(Row(label="layers=1", run=("layers=1",)),))
    page = Page(table, (Result(table.rows[0], {1: 50.0, 2: 51.0}, trained("weibo", 0.5)),))
    (plot,) = plots.seed_plots(page)
    assert [(row["series"], row["x"]) for row in drawn.data(plot)] == [
        ("mean, 95 % t-interval", 50.5),
        ("one seed", 50.0),
        ("one seed", 51.0),
    ]
    assert drawn.domain(plot, "x") == pytest.approx([49 - 0.12, 52 + 0.12])
    assert [*plot.grid.headings] == ["row", "mean", "95 %"]


def test_the_axis_of_a_single_epoch_has_whole_numbers() -> None:
    plot = run_plots.dev_curves(trained("weibo", 0.5), "one epoch", (40.0, 60.0))
    assert drawn.domain(plot, "x") == [0, 2]


def of_seeds(*curves: tuple[float, ...]) -> Mapping[int, Run]:
    return {seed: trained("weibo", *curve)[1] for seed, curve in enumerate(curves, start=1)}


def test_many_seeds_are_a_band_around_their_mean() -> None:
    count = run_plots.MAX_SEEDS + 1
    runs = of_seeds((0.1, 0.4), *((0.3, 0.6) for _ in range(count - 2)), (0.5,))
    plot = run_plots.dev_curves(runs, "many", (0.0, 100.0))
    first, second = (10 + 30 * (count - 2) + 50) / count, (40 + 60 * (count - 2)) / (count - 1)
    assert plot.grid.headings == ["epoch", "lowest", "mean", "highest"]
    assert plot.grid.lines == [
        ["1", "10.00", f"{first:.2f}", "50.00"],
        ["2", "40.00", f"{second:.2f}", "60.00"],
    ]
    mean = f"mean of {count} seeds"
    assert [(row["x"], row["low"], row["high"], row["series"]) for row in drawn.data(plot)] == [
        (1, 10, 50, mean),
        (2, 40, 60, mean),
    ]
    assert "area" in [layer["mark"]["type"] for layer in plot.panels[0]["layer"]]


def test_the_band_of_a_single_epoch_is_an_interval() -> None:
    runs = of_seeds(*((number / 100,) for number in range(20, 40)))
    plot = run_plots.dev_curves(runs, "one epoch", (0.0, 100.0))
    assert "area" not in [layer["mark"]["type"] for layer in plot.panels[0]["layer"]]
    assert [(row["low"], row["high"]) for row in drawn.data(plot)] == [(20, 39)]


def test_up_to_twelve_seeds_have_a_line_each() -> None:
    runs = of_seeds(*((0.1, 0.2) for _ in range(run_plots.MAX_SEEDS)))
    plot = run_plots.dev_curves(runs, "few", (0.0, 100.0))
    assert len(plot.grid.headings) == 1 + run_plots.MAX_SEEDS
    assert len({row["series"] for row in drawn.data(plot)}) == run_plots.MAX_SEEDS
    assert [row["x"] for row in drawn.data(plot) if "marked" not in row] == [2] * run_plots.MAX_SEEDS


def published(name: str) -> Page:
    table = spec.load(name)
    return Page(table, tuple(map(Result, table.rows)))


def test_a_number_that_rows_vary_is_the_axis() -> None:
    """Against the papers: layers of two stacks, units of one size, units and sizes at once, sizes."""
    layers = plots.axis_of(published("yang2020_table12"))
    assert layers is not None
    of_series = {
        series: [point.x for point in layers.points if point.series == series]
        for series in ("stacked", "residual")
    }
    assert (layers.label, of_series) == ("layers", {"stacked": [2, 3, 4], "residual": [2, 3, 4, 5, 6]})
    units = plots.axis_of(published("zukov2018_table2"))
    assert units is not None
    assert (units.label, [point.x for point in units.points]) == ("parallel units", [1, 2, 4, 8, 16, 32])
    both = plots.axis_of(published("zukov2018_table3"))
    assert both is not None
    assert both.label == "parallel units (with size of a unit)"
    assert [point.x for point in both.points] == [2**power for power in range(8)]
    sizes = plots.axis_of(published("zukov2018_table4"))
    assert sizes is not None
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
    assert plots.axis_of(published(name)) is None


def test_rows_are_drawn_beside_those_on_the_same_scale_and_none_is_lost() -> None:
    found = plots.row_groups(published("huang2015_table2"))
    for group, word in zip(found, ("POS", "chunks", "NER"), strict=True):
        assert all(word in result.row.label for result in group.results)
    assert sum(len(group.results) for group in found) == len(spec.load("huang2015_table2").rows)
    heads = plots.row_groups(published("li2020_table5"))
    assert [(group.title, len(group.results)) for group in heads] == [(f"tag {tag}", 9) for tag in "OSBIE"]


def test_the_paper_is_drawn_beside_ours_with_both_numbers_in_the_table() -> None:
    table = spec.load("zukov2018_table4")
    scores = {1: 90.0, 2: 91.0, 3: 92.0}
    page = Page(table, tuple(Result(row, scores if "64" in row.label else {}) for row in table.rows))
    axis = plots.axis_of(page)
    assert axis is not None
    plot = plots.axis_plot(axis, "test F1")
    assert ["size 64", "91.48 ± 0.22 (10)", "91.00 ± 1.00 (3)", "88.52 to 93.48"] in plot.grid.lines
    points = {(row["series"], row["x"]): row["y"] for row in drawn.data(plot)}
    assert points == {("ours", 64): 91.0} | {
        ("published", it.x): it.result.row.published for it in axis.points
    }


def test_what_one_would_not_see_is_written_out() -> None:
    assert visible("a\u202eb\u200b") == "a⟨U+202E⟩b⟨U+200B⟩"
    assert visible("北京 é <b>") == "北京 é <b>"


def test_rows_without_a_published_number_are_drawn_by_ours_alone() -> None:
    """Table 14 publishes sentences."""
    rows = spec.load("yang2020_table14").rows
    group = plots.RowGroup("toy", tuple(Result(row, {1: 50.0, 2: 60.0}, comparable=False) for row in rows))
    plot = plots.row_plot(group, "test F1")
    assert {row["series"] for row in drawn.data(plot)} == {"mean"}
    assert [line[2] for line in plot.grid.lines] == ["55.00 ± 7.07 (2)"] * 3


def test_seconds_per_epoch_are_those_of_the_published_table() -> None:
    metrics = ({"seconds": 10, "epochs": 1}, {"seconds": 90, "epochs": 3})
    same = {"parameters": 5, "parameters_of": {}, "peak_memory_bytes": {"main": 1}, "tokens_per_second": 1.0}
    runs = {seed: Run(Path(), {**same, **it}) for seed, it in enumerate(metrics)}
    result = Result(spec.load("yang2020_table13").rows[0], runs=runs)
    assert table_page.cost_line(result)["s per epoch"] == f"{result.cost()['seconds_per_epoch']:.1f} ± 14.1"


def test_attention_is_drawn_of_no_sentence_longer_than_the_limit() -> None:
    def corpus(*lengths: int) -> Corpus:
        test = [Sentence(("Rome",) * length, ("S-LOC",) * length) for length in lengths]
        return Corpus("mine", "mentions", {"test": test}, "")

    assert [place.number for place in attention_page.sentences_to_draw(corpus(31, 30))] == [2]
    with pytest.raises(
        ValueError, match="mine: no sentence of test or dev with a mention has at most 30 tokens"
    ):
        attention_page.sentences_to_draw(corpus(31, 40))


TABLE = spec.load("huang2015_table2")
ROWS = {row.label: row for row in TABLE.rows}


def measured(label: str, data: str, parameters: int, **seconds: float) -> Result:
    """A row that took so many seconds with each seed; it scored 80 with seed 1, 81 with seed 2."""
    same = {
        "identity": label,
        "task": "tags" if data == "ptb" else "mentions",
        "data": {"name": data, "checksum": data, "gold": data},
        "parameters": parameters,
        "parameters_of": {"model": parameters},
        "peak_memory_bytes": {"main": 2_000_000},
        "tokens_per_second": 500.0,
        "epochs": 2,
        "device": "cpu",
        "threads": 1,
    }
    runs = {int(seed[1:]): Run(Path(label), {**same, "seconds": its}) for seed, its in seconds.items()}
    return Result(ROWS[label], {seed: 79.0 + seed for seed in runs}, runs)


@pytest.fixture
def page() -> Page:
    """Two rows on each of two corpora, and one alone on a third."""
    return Page(
        TABLE,
        (
            measured("random, LSTM, POS", "ptb", 1000, s1=10, s2=30),
            measured("random, LSTM, chunks", "conll2000", 2000, s1=50),
            measured("random, BI-LSTM, POS", "ptb", 1500, s1=40, s2=40),
            measured("random, LSTM, NER", "conll2003", 3000, s1=60),
            measured("random, BI-LSTM, chunks", "conll2000", 2000, s1=50),
        ),
    )


def test_rows_on_one_corpus_are_points_of_one_picture(page: Page) -> None:
    pos, chunks = run_plots.cost_plots(page)
    assert pos.title == "test accuracy against parameters and seconds: ptb"
    assert chunks.title == "test F1 against parameters and seconds: conll2000"
    assert pos.grid.headings == ("", "test accuracy", "trained parameters", "seconds of a run")
    scored = f"80.50 ± {stdev([80, 81]):.2f}"
    assert pos.grid.lines == [
        ["1. random, LSTM, POS", scored, "1,000", f"20 ± {stdev([10, 30]):.0f}"],
        ["2. random, BI-LSTM, POS", scored, "1,500", "40"],
    ]
    assert [line[1:] for line in chunks.grid.lines] == [["80.00", "2,000", "50"]] * 2
    for plot in (pos, chunks):
        for panel in (0, 1):  # against each of the two costs
            points = [(row["series"], row["n"]) for row in drawn.data(plot, panel)]
            assert points == [(line[0], str(place)) for place, line in enumerate(plot.grid.lines, start=1)]


def test_the_cost_of_a_table_is_shown_with_its_scores(page: Page) -> None:
    section = table_page.cost_section(TableView(page), {})
    assert section is not None
    assert [plot.title for plot in section.plots] == [plot.title for plot in run_plots.cost_plots(page)]
    alone = table_page.cost_section(TableView(Page(TABLE, page.results[:2])), {})
    assert alone is not None
    assert alone.plots == []


def test_a_point_lies_at_the_means_with_bars_as_long_as_the_deviations(page: Page) -> None:
    plot, _ = run_plots.cost_plots(page)
    seconds, scores = stdev([10, 30]), stdev([80, 81])
    point = drawn.data(plot, 1)[0]
    assert (point["x"], point["y"]) == (20, 80.5)
    assert [point["left"], point["right"]] == pytest.approx([20 - seconds, 20 + seconds], rel=1e-5)
    assert [point["low"], point["high"]] == pytest.approx([80.5 - scores, 80.5 + scores], rel=1e-5)


@pytest.mark.parametrize(("parameters", "logarithmic"), [((100, 1500), False), ((100, 1600), True)])
def test_costs_that_differ_much_are_shown_on_a_logarithmic_axis(
    parameters: tuple[int, int], logarithmic: bool
) -> None:
    rows = [measured(label, "ptb", count, s1=1) for label, count in zip(ROWS, parameters, strict=False)]
    (plot,) = run_plots.cost_plots(Page(TABLE, tuple(rows)))
    assert (plot.panels[0]["encoding"]["x"]["scale"].get("type") == "log") == logarithmic
    assert "type" not in plot.panels[1]["encoding"]["x"]["scale"]
