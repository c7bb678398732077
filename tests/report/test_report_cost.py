"""The report's plots of score against cost: which points they have, and where."""

from pathlib import Path
from statistics import stdev

import drawn
import pytest

from ner_experiments.report import run_plots, table_page
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.table_view import TableView

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
            points = [(row["series"], row["n"]) for row in drawn.data(plot.chart, panel)]
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
    point = drawn.data(plot.chart, 1)[0]
    assert (point["x"], point["y"]) == (20, 80.5)
    assert [point["left"], point["right"]] == pytest.approx([20 - seconds, 20 + seconds], rel=1e-5)
    assert [point["low"], point["high"]] == pytest.approx([80.5 - scores, 80.5 + scores], rel=1e-5)


@pytest.mark.parametrize(("parameters", "logarithmic"), [((100, 1500), False), ((100, 1600), True)])
def test_costs_that_differ_much_are_shown_on_a_logarithmic_axis(
    parameters: tuple[int, int], logarithmic: bool
) -> None:
    rows = [measured(label, "ptb", count, s1=1) for label, count in zip(ROWS, parameters, strict=False)]
    (plot,) = run_plots.cost_plots(Page(TABLE, tuple(rows)))
    assert (plot.chart.panels[0]["encoding"]["x"]["scale"].get("type") == "log") == logarithmic
    assert "type" not in plot.chart.panels[1]["encoding"]["x"]["scale"]
