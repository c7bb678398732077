"""`python run.py -m table=...` and `ner-experiments smoke`, as users meet them."""

from pathlib import Path

import forked
import pytest
from cases import refused
from in_process import Ner

from ner_experiments.commands.smoke import write_corpus
from ner_experiments.config import values
from ner_experiments.config.job import CommandLine
from ner_experiments.launch.sweeper import planned, table_sweep
from ner_experiments.main import run_command
from ner_experiments.tables import spec

TABLE = "yang2020_table7"
TINY = [
    "data=toy_zh",
    "data.max_sentences=30",
    "model.hidden_size=4",
    "model.dense_size=4",
    "words.module.dim=4",
    "trainer.max_epochs=1",
]


@pytest.mark.slow
def test_a_sweep_does_what_is_left_and_prints_the_table(tmp_path: Path, ner: Ner) -> None:
    """The first seed is run by hand; with the second the table's sweep is complete; then nothing is left."""
    by_hand = forked.run("paper=yang2020", *TINY, "seed=1", f"output_dir={tmp_path}")
    assert by_hand.returncode == 0, by_hand.stderr
    sweep = ["-m", f"table={TABLE}", *TINY, "seeds=1,2", f"output_dir={tmp_path}", "hydra.job.chdir=false"]
    first = forked.run(*sweep)
    assert first.returncode == 0, first.stderr
    assert f"{TABLE}: 1 runs to do, 1 finished" in first.stdout
    assert f"`{' '.join(TINY)}`" in first.stdout
    assert "(2)" in next(line for line in first.stdout.splitlines() if line.startswith("| residual, 4"))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/seed-*/metrics.json")}
    assert len(files) == 2
    again = forked.run(*sweep)
    assert f"{TABLE}: 0 runs to do, 2 finished" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in files} == files
    (row,) = [
        row for row in ner.json("table", TABLE, *TINY, "--output", str(tmp_path))["rows"] if row["measured"]
    ]
    assert row["measured"]["n"] == 2
    assert row["published"] == 92.17


def test_a_table_without_the_corpus_of_any_row_is_refused(tmp_path: Path, ner: Ner) -> None:
    arguments = ["-m", f"table={TABLE}", f"data_dir={tmp_path}", f"output_dir={tmp_path}/out", "seeds=[1]"]
    assert "msra: not found in" in ner.error("train", *arguments)
    assert not (tmp_path / "out").exists()


def test_rows_whose_files_are_missing_are_named_before_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = ["seed=1"]

    def check_files(settings: dict[str, object], seen: set[str]) -> None:
        if lacking:
            raise ValueError(f"no file {lacking.pop()}")

    monkeypatch.setattr(values, "check_files", check_files)
    assert planned(CommandLine.of(["table=yang2020_table12"])).table.name == "yang2020_table12"
    assert "rows lack their files: no file seed=1" in capsys.readouterr().err


REFUSED = refused("""
table=yang2020_table7 -> table=yang2020_table7 requests a sweep: add -m
hydra/launcher=slurm seed=2 -> hydra/launcher=slurm launches the jobs of a sweep: add -m
-m tabel=yang2020_table7 -> there is no setting 'tabel'; did you mean 'table'?
-m table=yang2020_table7 seed=3 -> seed=3: a table takes its seeds as seeds=1,2,3
-m table=yang2020_table7 seeds=3 -> seeds=3: expected distinct integers from 0: seeds=1,2,3 for three seeds, seeds=[1]
-m table=yang2020_table7 seeds=[1,1] -> seeds=[1,1]: expected distinct integers
-m table=yang2020_table7 seeds=1,1 -> seeds=1,1: expected distinct integers
-m table=yang2020_table7 seeds=glob(*) -> seeds=glob(*): expected distinct integers
-m table=yang2020_table7 seeds=interval(1,3) -> seeds=interval(1,3): expected distinct integers
-m table=yang2020_table7 sweep.looks=glob(*) -> sweep.looks=glob(*): expected numbers of seeds
-m table=yang2020_table7 seeds=a,b -> seeds=a,b: expected distinct integers
-m table=yang2020_table7 seeds=[1,2 -> seeds=[1,2: not a valid list or mapping: close all brackets
-m table=yang2020_table7 layers=[2 -> layers=[2: not a valid list or mapping
-m table=yang2020_table7 layer=2 -> row 'residual, 4 layers': layer=2: there is no setting
-m table=xor -> xor: its rows are no training runs; `ner-experiments xor` measures them
-m seeds=[1] -> seeds=[1] requires table=NAME; otherwise write seed=1,2,3
""")


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_a_wrong_table_is_refused_before_anything_starts(arguments: str, message: str, ner: Ner) -> None:
    error = ner.error("train", *arguments.split())
    assert message in error
    assert error.endswith("Nothing was started.\n")


@pytest.mark.parametrize("name", ["huang2015_table6", "li2020_table1"])
def test_smoke_trains_each_row_on_generated_files(name: str, ner: Ner) -> None:
    printed = ner("smoke", name)
    rows = spec.load(name).rows
    assert f"{len(rows)} rows, {sum(row.run is not None for row in rows):>2} run" in printed
    assert "all rows train, decode and are aggregated" in printed
    assert "the scores are meaningless" in printed


@pytest.mark.parametrize(
    ("name", "of"), [("huang2015_table6", "huang2015_table6"), ("li2020_table3", "li2020_table1")]
)
def test_smoke_counts_rows_that_fail(
    name: str, of: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ner_experiments import train

    def fails(cfg: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(train, "train", fails)
    assert run_command("smoke", [name]) == 1
    captured = capsys.readouterr()
    rows = [row for row in spec.load(of).rows if row.run is not None]
    assert f"{len(rows)} rows failed" in captured.out
    assert f"{name}, {rows[0].label}: RuntimeError: on purpose" in captured.err


def test_smoke_says_where_to_add_a_format() -> None:
    data = {"name": "letters", "_target_": "package.LetterFiles", "folder": "x", "files": {"train": "y"}}
    with pytest.raises(
        ValueError, match=r"^letters: smoke writes no files for LetterFiles; add a writer to FORMATS in "
    ):
        write_corpus(data)


@pytest.mark.parametrize("values", ["2,3,5", "[2,3,5]", "choice(2,3,5)"])
def test_seeds_and_looks_are_written_as_a_list_or_as_choices(values: str) -> None:
    seeds, looks = (
        table_sweep(CommandLine.of(["table=yang2020_table12", f"{key}={values}"]))
        for key in ("seeds", "sweep.looks")
    )
    assert seeds is not None
    assert looks is not None
    assert (seeds.seeds, looks.looks) == ([2, 3, 5], [2, 3, 5])


def test_seeds_can_be_a_range() -> None:
    request = table_sweep(CommandLine.of(["table=yang2020_table12", "seeds=range(1,4)"]))
    assert request is not None
    assert request.seeds == [1, 2, 3]
