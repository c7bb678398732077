"""A table with runs: its means and comparisons, what every output has of them, and its command."""

import html
import re
import statistics
from dataclasses import replace
from pathlib import Path

import made_up_trials
import pytest
from in_process import Ner
from places import ROOT
from toy_rows import TABLE, TEST, TOY, page_of

from ner_experiments.data.sentence import Sentence
from ner_experiments.report.entries import Entry
from ner_experiments.report.write import write_report
from ner_experiments.runs.predictions import write_predictions
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.pairs import compare_rows
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.table_view import ORACLE_EPOCH, TableView
from ner_experiments.utils.text import listed

FIGURES = ("markdown", "latex", "report")
"""Outputs that print figures as text."""
SAID = (
    *TOY,
    "MiniLM in place of BERT-Base",
    "[1] table 7 says 92.17 of the same model",
    "50 % of weibo_2 & msra",
    "stacked, 3 layers: a remark.",
    "Not counted: stacked, 3 layers: msra: not found",
)
"""Sentences on the table of `full`."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"output_dir={tmp_path_factory.mktemp('runs')}"


@pytest.fixture(scope="module")
def page(here: str) -> Page:
    return page_of(here)


@pytest.fixture(scope="module")
def full(page: Page) -> Page:
    """The page with a row of one seed, an oracle epoch, a stand-in, and reasons why rows are not measured."""
    plain = TableView(page)
    assert plain.differences is not None
    unused = {"oracle-epoch gain", "p over sentences alone", "95 %, spread assumed", "detectable"}
    assert not unused & {*plain.results.headings, *plain.differences.grid.headings}
    one, second, *others = page.results
    one = replace(one, runs={1: one.runs[1]}, scores={1: one.scores[1]})
    second = replace(second, missing="msra: not found", remark="a remark")
    (others[3].runs[2].folder / "test_every_epoch.csv").write_text("epoch,test_f1\n1,0.25\n2,0.999\n3,0.5\n")
    all_rows = [replace(it, stand_ins=("MiniLM in place of BERT-Base",)) for it in (one, second, *others)]
    table = replace(page.table, notes=("50 % of weibo_2 & msra",))
    return replace(page, table=table, results=tuple(all_rows))


@pytest.fixture(scope="module")
def outputs(full: Page, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The words of each output, without its markup."""
    view = TableView(full)
    report = write_report([Entry(full)], None, tmp_path_factory.mktemp("report") / "report", None)
    signs = {r"$\pm$": "±", "$<$": "<", "$>$": ">"} | {f"\\{sign}": sign for sign in "&%$#_{}"}
    latex = view.latex()
    for written, sign in signs.items():
        latex = latex.replace(written, sign)
    markup = re.compile(r"<style>.*?</style>|<script.*?</script>|<[^>]+>", re.DOTALL)
    return {
        "markdown": view.markdown().replace("**", "").replace("`", ""),
        "latex": latex,
        "json": view.json(),
        "report": html.unescape(markup.sub("", report.read_text(encoding="utf-8"))),
    }


@pytest.mark.parametrize("output", ["markdown", "latex", "json", "report"])
def test_every_output_says_all_that_is_known_of_a_table(output: str, outputs: dict[str, str]) -> None:
    assert [text for text in SAID if text not in outputs[output]] == []


@pytest.mark.parametrize("output", FIGURES)
def test_every_output_has_all_cells_and_explains_their_columns(
    output: str, outputs: dict[str, str], full: Page
) -> None:
    view = TableView(full)
    assert view.differences is not None
    assert {"oracle-epoch gain", "expected"} <= {*view.results.headings}
    assert {"p over sentences alone", "95 %, spread assumed"} <= {*view.differences.grid.headings}
    grids = (view.results, view.differences.grid)
    cells_of_both = {cell for grid in grids for line in (grid.headings, *grid.lines) for cell in line}
    assert [cell for cell in cells_of_both if cell not in outputs[output]] == []
    assert [text for text in view.differences.inline if text not in outputs[output]] == []
    assert ORACLE_EPOCH in outputs[output] or output == "latex"


def test_a_pair_with_a_single_run_has_an_interval_with_the_spread_of_the_other_rows(full: Page) -> None:
    (compared,) = compare_rows(full)
    assert compared.verdict == "undecided"
    assert compared.assumed is not None
    record = compared.comparison()
    assert record["assumed"] == {"low": compared.assumed.low, "high": compared.assumed.high}
    assert record["p_over_seeds_and_sentences"] is None
    assert record["p_over_sentences"] == compared.over_sentences.p


def test_every_comparison_has_a_verdict_and_an_open_one_what_would_be_detected(page: Page) -> None:
    (compared,) = compare_rows(page)
    assert compared.comparison()["verdict"] == compared.verdict == "behind"
    assert compared.comparison()["detectable"] is None
    wide = replace(page, table=replace(page.table, smallest_effect=1e6))
    assert compare_rows(wide)[0].verdict == "behind"  # that is the stronger claim
    scores = iter([{1: 50.0, 2: 90.0}, {1: 80.0, 2: 61.0}])
    noisy = replace(
        page, results=tuple(replace(it, scores=next(scores)) if it.runs else it for it in page.results)
    )
    (compared,) = compare_rows(noisy)
    assert compared.verdict == "undecided"
    assert compared.test.detectable is not None
    found = TableView(noisy).differences
    assert found is not None
    line = dict(zip(found.grid.headings, found.grid.lines[0], strict=True))
    assert line["detectable"] == f"{compared.test.detectable:.2f}"
    assert compare_rows(replace(noisy, table=replace(page.table, smallest_effect=1e6)))[0].verdict == "equal"


def test_the_oracle_epoch_gain_is_that_of_the_runs_that_scored_test_every_epoch(full: Page) -> None:
    ours = full.results[5]
    gain = 99.9 - ours.runs[2].score
    assert ours.oracle_epoch_gain() == pytest.approx(gain)
    assert full.results[0].oracle_epoch_gain() is None


def test_stand_ins_are_those_of_the_settings_and_name_their_rows(here: str) -> None:
    def stand_ins(table: str, *overrides: str) -> list[str]:
        return collect(spec.load(table), [here, *overrides]).stand_ins

    assert stand_ins("yang2020_table9") == ["random character vectors in place of those of Li et al. (2018)"]
    assert stand_ins("yang2020_table9", "words=vectors", "words.input.path=sgns.char") == []
    small = ["words.input.path=minilm", "words.stand_in=MiniLM in place of BERT-Base"]
    assert stand_ins("yang2020_table6", *small) == ["MiniLM in place of BERT-Base"]
    assert stand_ins("yang2020_table6") == []
    of_ontonotes, nadam = stand_ins("li2020_table1")
    assert "Nadam" in nadam
    assert not nadam.endswith(")")
    assert of_ontonotes.endswith('("OntoNotes, Baseline", "OntoNotes, Cross", "OntoNotes, Att")')


def test_p_values_are_corrected_within_the_table(page: Page) -> None:
    third = replace(page.results[0], row=replace(page.results[0].row, label="again"))
    compared = compare_rows(replace(page, results=(*page.results, third)))
    raw = [it.test.over_seeds.p for it in compared]
    assert None not in raw
    assert len(raw) == 2
    assert [it.test.p_adjusted for it in compared] == [min(1, 2 * p) for p in raw if p is not None]
    assert "| p corrected |" in TableView(page).markdown()


def test_scores_are_summed_up_and_compared_with_the_best_published_row(page: Page) -> None:
    by_label = {result.row.label: result for result in page.results}
    ours = by_label["residual, 4 layers"]
    scores = [100 * run.metrics["test"]["f1"] for run in ours.runs.values()]
    assert ours.measured is not None
    assert ours.measured.mean == pytest.approx(statistics.fmean(scores))
    assert ours.measured.sd == pytest.approx(statistics.stdev(scores))
    assert ours.against is None  # other data than the published number's
    (compared,) = compare_rows(page)
    assert (compared.labels[0], compared.labels[1]) == ("stacked, 2 layers", "residual, 4 layers")
    assert compared.test.over_seeds.test == "Welch t"
    assert compared.over_sentences.difference == pytest.approx(compared.test.over_seeds.mean / 100)


def test_a_line_has_the_published_number_then_ours_and_the_gap_between_them() -> None:
    table = spec.load("zukov2018_table1")
    (row,) = [row for row in table.rows if row.run is not None]
    grid = TableView(Page(table, (Result(row, {1: 90.0, 2: 92.0}),))).results
    line = dict(zip(grid.headings, grid.lines[0], strict=True))
    assert line["published"].startswith("91.48")
    assert line["ours"].startswith("91.00 ± 1.41 (2)")
    half = 12.7062  # Student's t with one degree of freedom times the standard error, which is 1
    assert line["95 %"] == f"{91 - half:.2f} to {91 + half:.2f}"
    assert (line["ours - published"], line["expected"]) == ("-0.48", "yes")
    assert Result(row, {1: 90.0, 2: 90.01}).against.inside is False  # type: ignore[union-attr]
    assert Result(row, {1: 90.0}, comparable=False).against is None


def test_counts_of_each_sentence_add_up_to_the_score(page: Page) -> None:
    for result in page.results:
        for run in result.runs.values():
            found = run.counts()
            assert found.shape == (len(TEST), 3)
            correct, predicted, gold = found.sum(0).tolist()
            assert 2 * correct / (predicted + gold) == pytest.approx(run.metrics["test"]["f1"])


def test_tags_are_counted_by_tokens(tmp_path: Path) -> None:
    sentences = [Sentence(("a", "b c"), ("X", "Y")), Sentence(("d",), ("X",))]
    write_predictions(tmp_path / "predictions" / "test.conll", "tags", sentences, [["X", "X"], ["X"]])
    assert Run(tmp_path, {"task": "tags"}).counts().tolist() == [[1, 2], [1, 1]]


def test_what_rows_without_runs_read_is_named_unless_it_is_here(tmp_path: Path) -> None:
    def collected() -> Page:
        return collect(spec.load("huang2015_table2"), [f"data_dir={tmp_path}"], lambda cfg, label: {})

    page = collected()
    assert {*page.needs} == {"ptb", "conll2000", "conll2003", "senna.txt", "gazetteer"}
    assert f"The rows that were not run need {listed(page.needs)}." in TableView(page).notes
    cells = {line[0]: line[2] for line in TableView(page).results.lines}
    assert cells["Senna, LSTM, POS"] == "not run"
    assert cells["Senna, Conv-CRF (Collobert et al. 2011), POS, cited"] == ""
    for name in ("conll2000/train.txt", "conll2000/test.txt", "senna/senna.txt", "gazetteer/PER.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    here = collected()
    assert {*here.needs} == {"ptb", "conll2003"}
    assert Entry(here).inputs != Entry(page).inputs


def test_the_xor_table_reads_what_its_command_wrote(tmp_path: Path) -> None:
    made_up_trials.write(tmp_path / "xor", {"baseline": made_up_trials.model([3, 3], [3, 2])})
    page = collect(spec.load("xor"), [f"output_dir={tmp_path}"])
    assert "| Baseline, CRF | 3 | 2.50 ± 0.71 (2) |" in TableView(page).markdown()
    assert page.results[2].measured is None
    with pytest.raises(
        ValueError, match="xor: its rows are no training runs and take no overrides: layers=3"
    ):
        collect(spec.load("xor"), ["layers=3"])


def test_the_nearest_measured_settings_that_include_the_requested_ones(
    monkeypatch: pytest.MonkeyPatch, ner: Ner, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    text = ner("table", TABLE, "data=weibo")
    assert "`data=weibo trainer.max_epochs=3`" in text
    assert "not run" not in text


def test_options_of_one_table_require_its_name(ner: Ner) -> None:
    for options in (["--archive", TABLE], ["--json"], ["--over"]):
        assert "require a table: table NAME" in ner.error("table", *options)
