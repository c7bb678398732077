"""Which finished runs belong to a published table, and what is left to do."""

import json
import re
from pathlib import Path

import pytest
from tiny_runs import METRICS
from toy_rows import TABLE, TEST, TOY, finish, page_of

from ner_experiments.config.identity import identity, run_folder
from ner_experiments.config.row_settings import joined
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.main import cli
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.store import Archive, in_output_dir
from ner_experiments.tables import results_folder, spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.experiments import compose, deviations, experiments, unfinished
from ner_experiments.tables.pairs import compare_rows
from ner_experiments.tables.scores import Page
from ner_experiments.tables.table_view import TableView


@pytest.fixture
def here(tmp_path: Path) -> str:
    return f"output_dir={tmp_path}"


@pytest.fixture
def page(here: str) -> Page:
    return page_of(here)


def test_a_run_belongs_to_a_row_if_and_only_if_their_identities_agree(page: Page, here: str) -> None:
    found = {result.row.label: sorted(result.runs) for result in page.results if result.runs}
    assert found == {"residual, 4 layers": [1, 2, 3], "stacked, 2 layers": [1, 9]}
    other = collect(spec.load(TABLE), [*TOY, here, "optimizer.lr=0.002"])
    assert not any(result.runs for result in other.results)


def test_a_run_whose_folder_only_looks_right_does_not_count(here: str) -> None:
    row = ["paper=yang2020", *TOY, here, "model=stacked", "layers=2"]
    folder = finish(row, 1, 0)
    (experiment, *_) = experiments(spec.load(TABLE), [*TOY, here])
    assert in_output_dir(Fingerprints())(experiment.cfg, "").keys() == {1}
    metrics = json.loads((folder / "metrics.json").read_text())
    changed = metrics | {"identity": metrics.pop("identity")[::-1]}
    del changed["sha256"]
    (folder / "metrics.json").write_text(json.dumps(add_checksum(changed)))
    assert not in_output_dir(Fingerprints())(experiment.cfg, "")


def test_a_row_whose_files_have_changed_names_its_own_run(
    tmp_path: Path, here: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, word in (("train", "Ann"), ("a", "Bob"), ("b", "Eve")):
        (tmp_path / f"{name}.conll").write_text(f"{word} B-PER\n\n")
    files = [f"data.files.{split}={tmp_path}/train.conll" for split in ("train", "dev")]
    rows = [
        ["data=conll", "data.name=mine", *files, f"data.files.test={tmp_path}/{test}.conll", here]
        for test in ("a", "b")
    ]
    folders = [finish(row, 1, 0) for row in rows]
    (tmp_path / "train.conll").write_text("Joe B-PER\n\n")
    for row, folder in zip(rows, folders, strict=True):
        checksum = json.loads((folder / "metrics.json").read_text())["checksum"]
        message = f"{folder} read other files: their checksum was {checksum}, now it is "
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            in_output_dir(Fingerprints())(compose(row), "")
        assert cli(["table", "--over", *row]) == 0
        assert f"has these settings.\nall: {message}" in capsys.readouterr().err


def test_only_what_is_unfinished_is_left_to_do(page: Page, here: str) -> None:
    jobs, finished = unfinished(spec.load(TABLE), [*TOY, here], [1, 2])
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
    jobs, finished = unfinished(spec.load("yang2020_table7"), further, [])
    assert (len(jobs), finished) == (5, 0)  # the table's own seeds
    assert collect(spec.load("yang2020_table7"), further).results[-1].measured is None


def test_runs_that_cannot_be_identified_are_named_with_the_reason(tmp_path: Path) -> None:
    """A row's, whose corpus is gone; what is there of another experiment needs no corpus."""
    table, further = spec.load("yang2020_table7"), [f"data_dir={tmp_path}", f"output_dir={tmp_path}"]
    experiment = experiments(table, further)[0]
    cfg = experiment.cfg
    for number, name in enumerate((identity(cfg, "old"), "0123")):
        folder = run_folder(cfg, str(number)).parent / "seed-1"
        folder.mkdir(parents=True)
        metrics = METRICS | {"identity": name, "checksum": "old"}
        (folder / "metrics.json").write_text(json.dumps(add_checksum(metrics)))
    page = collect(table, further)
    assert [result.row for result in page.results if result.missing] == [experiment.row]
    assert ": msra: not found in" in TableView(page).markdown()


def test_runs_that_read_different_files_are_not_put_together() -> None:
    """The corpus changes between two halves of a sweep: both checksums and both folders are reported."""
    cfg = compose(["paper=yang2020", *TOY], "test")
    archive = Archive(Path(), TABLE, ())
    archive.runs[:] = [
        ArchivedRun(
            Path(read), {"seed": seed, "checksum": read, "identity": identity(cfg, read)}, {"label": label}
        )
        for seed, read, label in ((1, "old", "a"), (1, "old", "b"), (2, "new", "b"))
    ]
    assert archive.finished(cfg, "a").keys() == {1}
    with pytest.raises(ValueError, match="old and new read different files: old, new"):
        archive.finished(cfg, "b")


def test_archived_runs_make_the_same_page_as_their_folders(page: Page, tmp_path: Path) -> None:
    """Without the corpus, and without a word of it."""
    folder = results_folder.add(page, tmp_path / "results")
    again = results_folder.write(folder)
    ours, theirs = (
        [(it.row.label, it.scores, it.cost(), it.oracle_epoch_gain()) for it in one.results]
        for one in (page, again)
    )
    assert ours == theirs
    assert [it.comparison() for it in compare_rows(again)] == [it.comparison() for it in compare_rows(page)]
    text = "".join(path.read_text() for path in folder.rglob("*.json"))
    assert str(tmp_path) not in text.replace(str(folder), "")
    assert not any(word in text for sentence in TEST for word in sentence.words if not word.isascii())
    assert [folder] == results_folder.write_all(tmp_path / "results")
    assert "5 |" in (tmp_path / "results" / "TABLES.md").read_text()


def test_an_analysis_has_the_runs_of_the_table_it_analyses() -> None:
    assert experiments(spec.load("li2020_table4")) == experiments(spec.load("li2020_table1"))
    page = collect(spec.load("li2020_table4"))
    assert "Computed from the runs of li2020_table1" in TableView(page).markdown()
    assert not any(result.measured for result in page.results)


@pytest.mark.parametrize("override", ["data.files.test=/x/my_test.txt", "data.files={train: a, test: b}"])
def test_other_files_of_the_corpus_make_other_experiments(override: str, tmp_path: Path) -> None:
    page = collect(spec.load("huang2015_table2"), [override, f"output_dir={tmp_path}"])
    assert page.deviations == (override,)
    assert not any(result.comparable for result in page.results)


def test_an_override_that_is_forced_is_of_the_same_setting(tmp_path: Path) -> None:
    page = collect(spec.load(TABLE), [f"output_dir={tmp_path}", "++data.max_sentences=80"])
    assert not any(result.comparable for result in page.results)
    assert joined(["layers=2", "seed=1"], ["++layers=3"]) == ("++layers=3", "seed=1")


OTHER_BERT = "words.input.path=google-bert/bert-large-cased"
"""Its name on a hub is no path, and its checksum is not known before it is read."""
DEVIATIONS = [
    ("yang2020_table7", [], ["output_dir=x", "runtime.threads=2", "data_dir=y"]),
    ("yang2020_table7", [], ["layers=4", "data.folder=z"]),  # as the paper has it; elsewhere
    ("yang2020_table7", ["trainer.max_epochs=5"], ["output_dir=x"]),
    ("yang2020_table7", ["++layers=2"], ["++output_dir=x"]),
    ("yang2020_table6", [OTHER_BERT], ["data_dir=y"]),
    ("yang2020_table6", [OTHER_BERT, "words.stand_in=BERT-Large in place of BERT-Base"], ["data_dir=y"]),
]


@pytest.mark.parametrize(("table", "deviating", "others"), DEVIATIONS)
def test_the_overrides_that_make_other_experiments_are_shown(
    table: str, deviating: list[str], others: list[str]
) -> None:
    assert deviations(spec.load(table), [*deviating, *others]) == deviating


def test_overrides_that_make_two_rows_one_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"'stacked, 2 layers' and 'stacked, 3 layers' are one experiment with layers=3"
    ):
        experiments(spec.load(TABLE), ["layers=3"])


def test_a_row_that_does_not_compose_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"yang2020_table13, row 'without dense layer': .*model/dense"):
        experiments(spec.load("yang2020_table13"), ["model=bilstm"])
