"""The command line as users meet it: refusals, the folder of a run, the report of a sweep."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from forked import run
from places import ROOT
from seqeval.metrics import f1_score
from torch import Tensor

from ner_experiments.main import cli, usage
from ner_experiments.models.bilstm import BiLSTM

SMALL = [
    "model.hidden_size=16",
    "chars.module.num_filters=5",
    "data.max_sentences=80",
    "trainer.max_epochs=2",
]


def read_conll(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Gold and predicted tags of each sentence."""
    blocks = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
    rows = [[line.split(" ") for line in block.split("\n")] for block in blocks]
    return [[row[1] for row in block] for block in rows], [[row[2] for row in block] for block in rows]


@pytest.mark.parametrize("overrides", ["words=bert", "data=conll2003", "layers=3 model=residual"])
def test_a_config_without_its_files_is_printed(overrides: str) -> None:
    result = run("--cfg", "job", *overrides.split())
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("seed: 1\n")


@pytest.mark.parametrize("options", [[], ["-m"], ["-m", "hydra/launcher=basic"]], ids=" ".join)
def test_relative_paths_start_where_the_command_was_started(options: list[str], tmp_path: Path) -> None:
    """Also with `hydra.job.chdir`, which changes the folder of the process that runs the job."""
    (tmp_path / "corpus").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "corpus" / f"{split}.conll").write_text("Ann B-PER\nleft O\n\n")
    mine = ["data=conll", "data.name=mine", "data.folder=corpus"]
    files = "data.files={train: train.conll, dev: dev.conll, test: test.conll}"
    smoke = ["trainer=smoke", "hydra.job.chdir=true", "output_dir=runs/o"]
    result = run(*options, *mine, files, *smoke, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (written,) = tmp_path.glob("**/metrics.json")
    assert written.parents[2] == tmp_path / "runs" / "o"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A sweep of two rows and two seeds, in which one row diverges."""
    outputs = tmp_path_factory.mktemp("outputs")
    arguments = ["-m", *SMALL, "optimizer.lr=0.001,1e30", "seed=1,2", f"output_dir={outputs}"]
    return run(*arguments), outputs


def test_a_failed_job_stops_no_other_and_is_reported(
    sweep: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    result, outputs = sweep
    assert result.returncode == 1
    assert "2 of 4 jobs failed" in result.stdout
    assert "the loss is " in result.stdout
    assert len(list(outputs.glob("*/*/metrics.json"))) == 2
    failed = list(outputs.glob("*/*/error.txt"))
    assert len(failed) == 2
    assert all("Traceback" in path.read_text() and path.name in result.stdout for path in failed)


def test_the_table_has_a_line_per_row_with_its_seeds(
    sweep: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    result, outputs = sweep
    lines = [line for line in result.stdout.splitlines() if line.strip().startswith("optimizer.lr=0.001 ")]
    line = lines[0]  # the plot and the differences between rows come after
    scores = [json.loads(path.read_text())["test"]["f1"] for path in outputs.glob("*/*/metrics.json")]
    assert line.split()[1] == "2"
    assert f"{50 * sum(scores):.2f} ±" in line


def test_what_a_run_leaves_behind_agrees_with_itself(
    sweep: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    _, outputs = sweep
    for path in outputs.glob("*/*/metrics.json"):
        metrics, folder = json.loads(path.read_text()), path.parent
        for split in ("dev", "test"):
            gold, predicted = read_conll(folder / "predictions" / f"{split}.conll")
            assert f1_score(gold, predicted, zero_division=0) == pytest.approx(
                metrics[split]["f1"], abs=1e-12
            )
            types = metrics[split]["types"].values()
            assert sum(kind["gold"] for kind in types) == metrics[split]["gold"]
        rows = list(csv.DictReader((folder / "log.csv").read_text().splitlines()))
        assert len(rows) == metrics["epochs"] == 2
        best = max(rows, key=lambda row: float(row["dev_f1"]))
        assert float(best["dev_f1"]) == metrics["dev"]["f1"]
        assert int(best["epoch"]) == metrics["best_epoch"]
        assert metrics["parameters"] > 0
        assert metrics["peak_memory_bytes"]["main"] > 0


def test_a_finished_run_is_not_run_again(sweep: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    _, outputs = sweep
    before = {path: path.stat().st_mtime_ns for path in outputs.glob("*/seed-1/metrics.json")}
    result = run(*SMALL, f"output_dir={outputs}")
    assert result.returncode == 0
    assert "is finished" in result.stdout + result.stderr
    assert {path: path.stat().st_mtime_ns for path in outputs.glob("*/seed-1/metrics.json")} == before


def test_an_error_in_a_run_is_one_line_and_leaves_its_traceback(tmp_path: Path) -> None:
    result = run("optimizer.lr=1e30", *SMALL, "runtime.progress=false", f"output_dir={tmp_path}/outputs")
    assert result.returncode == 1
    assert "the loss is " in result.stderr
    (file,) = tmp_path.glob("outputs/*/*/error.txt")
    assert str(file) in result.stderr
    for wrapper in ("Traceback", "Error executing job", "HYDRA_FULL_ERROR"):
        assert wrapper not in result.stderr


def test_an_error_in_an_own_layer_shows_its_line_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forward(self: BiLSTM, x: Tensor, lengths: Tensor) -> Tensor:
        return torch.stack(x)

    monkeypatch.setattr(BiLSTM, "forward", forward)
    assert cli(["train", *SMALL, "runtime.progress=false", f"output_dir={tmp_path}/outputs"]) == 1
    said = capsys.readouterr().err
    assert "in forward\n    return torch.stack(x)\n" in said
    (file,) = tmp_path.glob("outputs/*/*/error.txt")
    error = said.splitlines()[-1]
    assert error.startswith("TypeError: stack()")
    assert error.endswith(f"(traceback: {file})")
    assert said.count("File ") == 1


def test_ctrl_c_ends_any_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ner_experiments.commands import table

    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "run", interrupted)
    assert cli(["table"]) == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "from ner_experiments.training.preemption import sigterm_handler\n"
        "with sigterm_handler() as sigterm:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    assert sigterm.received\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=50
    )
    assert result.returncode == -2
    assert "Press Ctrl-C again to stop at once" in result.stderr


def test_the_package_shows_its_api() -> None:
    import ner_experiments

    assert dir(ner_experiments) == ["__version__", "compare", "load"]


def test_the_package_runs_the_commands() -> None:
    command = [sys.executable, "-m", "ner_experiments"]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert printed == f"{usage()}\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("--help", 1), ("data --help", 0), ("data check toy_en --json", 1)],  # argparse ignores a closed pipe
)
def test_a_reader_of_the_output_may_leave(arguments: str, status: int) -> None:
    read, write = os.pipe()
    os.close(read)
    code = "import sys; from ner_experiments.main import cli; sys.exit(cli(sys.argv[1:]))"
    with os.fdopen(write, "w") as gone:
        command = [sys.executable, "-c", code, *arguments.split()]
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (status, "")
