"""Which finished runs belong to a published table, what is left to do, and what the table then prints."""

import csv
import io
import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from seqeval.metrics import f1_score

from ner_experiments import pages, table_page, table_records, tables
from ner_experiments.data import toy
from ner_experiments.data.sentence import Sentence
from ner_experiments.identity import identity, run_folder
from ner_experiments.main import cli
from ner_experiments.results import write_predictions
from ner_experiments.runs import Run, finished, finished_once
from ner_experiments.table_runs import compose, deviations, experiments, unfinished
from ner_experiments.table_scores import Page, Result, collect
from ner_experiments.train import identify

TABLE = "yang2020_table12"
TOY = ["data=toy_zh", "data.sentences={train: 20, dev: 5, test: 30}"]
TEST = toy.sentences("zh", "test", 30)


@pytest.fixture
def here(tmp_path: Path) -> str:
    return f"output_dir={tmp_path}"


def finish(overrides: list[str], seed: int, num_wrong: int, known: dict[str, str]) -> Path:
    """What a run leaves behind that found no name in the first `num_wrong` test sentences, all in others."""
    cfg = compose([*overrides, f"seed={seed}"], "test")
    name = identify(cfg, known)
    folder = run_folder(cfg, name)
    predicted = [["O"] * len(it) if number < num_wrong else it.tags for number, it in enumerate(TEST)]
    folder.mkdir(parents=True)
    write_predictions(folder / "predictions" / "test.conll", "mentions", TEST, predicted)
    f1 = float(f1_score([list(it.tags) for it in TEST], [list(tags) for tags in predicted]))
    (read,) = known.values()
    metrics = {
        "identity": name,
        "checksum": read,
        "seed": seed,
        "task": "mentions",
        "data": {"name": "toy_zh", "checksum": "abc", "notes": ["a note"]},
        "test": {"f1": f1, "precision": 1.0, "recall": 0.5},
        "parameters": 1234,
        "seconds": 6.0,
        "epochs": 3,
        "versions": {"torch": "2"},
        "commit": "abc",
        "code": "def",
        "device": "test",
        "threads": 1,
    }
    OmegaConf.save(cfg, folder / "config.yaml", resolve=True)
    (folder / "log.csv").write_text("epoch,dev_f1\n1,0.5\n")
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder


@pytest.fixture
def page(here: str) -> Page:
    """Two rows, three and two seeds; one of the runs made by hand, in other words."""
    known: dict[str, str] = {}
    row = ["paper=yang2020", *TOY, here]
    for seed, num_wrong in ((1, 2), (2, 3), (3, 5)):
        finish([*row, "model=residual", "layers=4"], seed, num_wrong, known)
    finish([*row, "model=stacked", "model.num_layers=2"], 1, 15, known)
    finish([*row, "model=stacked", "layers=2", "runtime.threads=3", "logger=tensorboard"], 9, 18, known)
    return collect(tables.load(TABLE), [*TOY, here])


def test_a_run_belongs_to_a_row_if_and_only_if_their_identities_agree(page: Page, here: str) -> None:
    found = {result.row.label: sorted(result.runs) for result in page.results if result.runs}
    assert found == {"residual, 4 layers": [1, 2, 3], "stacked, 2 layers": [1, 9]}
    other = collect(tables.load(TABLE), [*TOY, here, "optimizer.lr=0.002"])
    assert not any(result.runs for result in other.results)


def test_a_run_whose_folder_only_looks_right_does_not_count(here: str) -> None:
    row = ["paper=yang2020", *TOY, here, "model=stacked", "layers=2"]
    folder = finish(row, 1, 0, {})
    (experiment, *_) = experiments(tables.load(TABLE), [*TOY, here])
    assert finished(experiment.cfg, {}).keys() == {1}
    metrics = json.loads((folder / "metrics.json").read_text())
    (folder / "metrics.json").write_text(json.dumps(metrics | {"identity": metrics["identity"][::-1]}))
    assert not finished(experiment.cfg, {})


def test_only_what_is_unfinished_is_left_to_do(page: Page, here: str) -> None:
    jobs, finished = unfinished(tables.load(TABLE), [*TOY, here], [1, 2])
    assert finished == 3
    assert len(jobs) == 8 * 2 - 3
    base = {"paper=yang2020", *TOY, here}
    assert all(base < set(job) for job in jobs)
    rest = [" ".join(item for item in job if item not in base) for job in jobs]
    assert rest[:3] == [
        "model=stacked layers=2 seed=2",
        "model=stacked layers=3 seed=1",
        "model=stacked layers=3 seed=2",
    ]
    assert not any("model=residual layers=4" in job for job in rest)


def test_rows_without_their_files_are_left_to_fail_by_themselves(tmp_path: Path) -> None:
    further = [f"data_dir={tmp_path}/nothing", f"output_dir={tmp_path}"]
    jobs, finished = unfinished(tables.load("yang2020_table7"), further, [])
    assert (len(jobs), finished) == (5, 0)  # the table's own seeds
    assert collect(tables.load("yang2020_table7"), further).results[-1].measured is None


def test_runs_that_cannot_be_told_are_named_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "msra-residualbilstm-crf-0123" / "seed-1"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text('{"identity": "0123", "seed": 1}')
    page = collect(tables.load("yang2020_table7"), [f"data_dir={tmp_path}", f"output_dir={tmp_path}"])
    assert "Not measured: msra: not found in" in table_page.markdown(page)


def test_runs_that_read_different_files_are_not_put_together() -> None:
    """The corpus changes between two halves of a sweep: both checksums are told, and both folders."""
    cfg = compose(["paper=yang2020", *TOY], "test")
    first, second = (
        Run(Path(read), {"seed": seed, "checksum": read, "identity": identity(cfg, read)})
        for seed, read in ((1, "old"), (2, "new"))
    )
    assert finished_once(cfg, [first]).keys() == {1}
    with pytest.raises(ValueError, match="old and new read different files: old, new"):
        finished_once(cfg, [first, second])


def test_kept_runs_make_the_page_of_the_runs_themselves(page: Page, tmp_path: Path) -> None:
    """Without the corpus, and without a word of it."""
    folder = pages.add(page, tmp_path / "results")
    again = pages.write(folder)
    ours, theirs = (
        [(it.row.label, it.scores, it.cost(), it.price_of_peeking()) for it in one.results]
        for one in (page, again)
    )
    assert ours == theirs
    assert [table_records.compared_record(it) for it in again.comparisons()] == [
        table_records.compared_record(it) for it in page.comparisons()
    ]
    text = "".join(path.read_text() for path in folder.rglob("*.json"))
    assert str(tmp_path) not in text.replace(str(folder), "")
    assert not any(word in text for sentence in TEST for word in sentence.words if not word.isascii())
    assert [folder] == pages.write_all(tmp_path / "results")
    assert "5 |" in (tmp_path / "results" / "TABLES.md").read_text()


def test_an_analysis_has_the_runs_of_the_table_it_analyses() -> None:
    assert experiments(tables.load("li2020_table4")) == experiments(tables.load("li2020_table1"))
    page = collect(tables.load("li2020_table4"))
    assert "Made from the runs of li2020_table1" in table_page.markdown(page)
    assert not any(result.measured for result in page.results)


def test_the_overrides_that_make_other_experiments_are_shown() -> None:
    table = tables.load("yang2020_table7")
    assert deviations(table, ["output_dir=x", "runtime.threads=2", "data_dir=y"]) == []
    assert deviations(table, ["layers=4", "data.folder=z"]) == []  # as the paper has it; elsewhere
    assert deviations(table, ["output_dir=x", "trainer.max_epochs=5"]) == ["trainer.max_epochs=5"]


def test_overrides_that_make_two_rows_one_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"'stacked, 2 layers' and 'stacked, 3 layers' are one experiment with layers=3"
    ):
        experiments(tables.load(TABLE), ["layers=3"])


def test_a_row_that_does_not_compose_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"yang2020_table13, row 'without dense layer': .*model/dense"):
        experiments(tables.load("yang2020_table13"), ["model=bilstm"])


def test_scores_are_summed_up_and_compared_with_the_best_published_row(page: Page) -> None:
    by_label = {result.row.label: result for result in page.results}
    ours = by_label["residual, 4 layers"]
    scores = [100 * run.metrics["test"]["f1"] for run in ours.runs.values()]
    assert ours.measured is not None
    assert ours.measured.mean == pytest.approx(statistics.fmean(scores))
    assert ours.measured.sd == pytest.approx(statistics.stdev(scores))
    assert ours.against is None  # other data than the published number's
    (compared,) = page.comparisons()
    assert (compared.row.label, compared.reference.label) == ("stacked, 2 layers", "residual, 4 layers")
    assert compared.over_seeds.test == "Welch t"
    assert compared.over_sentences.difference == pytest.approx(compared.over_seeds.mean / 100)


def test_the_price_of_peeking_is_shown_of_runs_that_peeked(page: Page, here: str) -> None:
    assert "peeking" not in table_page.markdown(page)
    ours = page.results[5].runs[2]
    (ours.folder / "peek.csv").write_text("epoch,test_f1\n1,0.25\n2,0.999\n")
    (row,) = [line for line in table_page.markdown(page).splitlines() if line.startswith("| residual, 4")]
    assert row.endswith(f"| {99.9 - ours.score:+.2f} |")
    assert page.results[0].price_of_peeking() is None


def test_published_numbers_are_compared_where_the_data_are_theirs() -> None:
    (row,) = [row for row in tables.load("zukov2018_table1").rows if row.run is not None]
    against = Result(row, {1: 90.0, 2: 92.0}).against
    assert against is not None
    assert against.difference == pytest.approx(91.0 - 91.48)
    assert against.inside
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


def test_json_has_what_was_published_and_what_was_measured(page: Page) -> None:
    content: Any = json.loads(table_records.as_json(page))
    assert content["deviations"] == TOY
    assert [row["published"] for row in content["rows"]] == [
        90.55,
        90.69,
        90.53,
        91.38,
        91.85,
        92.22,
        91.8,
        91.62,
    ]
    assert not any(row["cited"] for row in content["rows"])
    measured = content["rows"][0]["measured"]
    assert measured["n"] == 2
    assert measured["mean"] == pytest.approx(statistics.fmean(measured["scores"].values()))
    assert measured["sd"] == pytest.approx(statistics.stdev(measured["scores"].values()))
    assert content["rows"][1]["measured"] is None


def test_csv_and_markdown_and_latex_agree_with_json(page: Page) -> None:
    rows: Any = json.loads(table_records.as_json(page))["rows"]
    lines = list(csv.DictReader(io.StringIO(table_records.as_csv(page))))
    assert [line["label"] for line in lines] == [row["label"] for row in rows]
    measured = rows[5]["measured"]
    assert float(lines[5]["mean"]) == measured["mean"]
    assert lines[1]["mean"] == ""
    figure = f"{measured['mean']:.2f} ± {measured['sd']:.2f} (3)"
    assert f"| residual, 4 layers [1] | 92.22 | {figure} |" in table_page.markdown(page)
    in_latex = figure.replace("±", r"$\pm$")
    assert f"residual, 4 layers [1] & 92.22 & {in_latex} &" in table_page.latex(page)
    assert "**Not the paper's settings:** `data=toy_zh" in table_page.markdown(page)
    assert "[1] table 7 says 92.17 of the same model" in table_page.markdown(page)
    assert r"data=toy\_zh" in table_page.latex(page)


def test_the_xor_table_reads_what_its_command_wrote(tmp_path: Path) -> None:
    (tmp_path / "xor").mkdir()
    models = {"baseline": {"right_softmax": [3, 3], "right_crf": [3, 2]}}
    (tmp_path / "xor" / "xor.json").write_text(json.dumps({"models": models}))
    page = collect(tables.load("xor"), [f"output_dir={tmp_path}"])
    assert "| Baseline, CRF | 3 | 2.50 ± 0.71 (2) |" in table_page.markdown(page)
    assert page.results[2].measured is None
    with pytest.raises(
        ValueError, match="xor: its rows are no training runs and take no overrides: layers=3"
    ):
        collect(tables.load("xor"), ["layers=3"])


def test_the_command_lists_prints_and_refuses(
    page: Page, here: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["table"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == tables.names()
    output = here.partition("=")[2]
    assert cli(["table", TABLE, "--json", *TOY, "--output", output]) == 0
    assert capsys.readouterr().out == table_records.as_json(page)
    assert cli(["table", "yang2020_table99"]) == 1
    assert "there is no table 'yang2020_table99'; did you mean" in capsys.readouterr().err
    assert cli(["table", TABLE, "layer=3"]) == 1
    assert "row 'stacked, 2 layers': layer=3: there is no setting 'layer'" in capsys.readouterr().err
