"""Each message of docs/troubleshooting.md is one that the suite prints; `...` there stands for any text."""

import dataclasses
import errno
import fcntl
import logging
import os
import re
import shutil
import sys
import threading
from pathlib import Path

import huggingface_hub
import page_commands
import pytest

from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.data import bert_files
from ner_experiments.launch import worker
from ner_experiments.launch.slurm import SlurmLauncher, SlurmLauncherConfig
from ner_experiments.main import cli
from ner_experiments.modules.kernels import compilation, trial
from ner_experiments.train import train
from ner_experiments.training import checkpoints
from ner_experiments.utils import locks

PAGE = page_commands.ROOT / "docs/troubleshooting.md"
ROW = re.compile(r"^\| (`+)(.+?)\1 \| ", re.MULTILINE)
MESSAGES = [message.strip() for _, message in ROW.findall(PAGE.read_text(encoding="utf-8"))]
FILES = {
    "ok.conll": "Ann NNP B-PER\nsat VBD O\n\nBob NNP B-PER\n",
    "uneven.conll": "Ann NNP B-PER\nsat VBD\n",
    "other.conll": "Ann B-PER NNP\nsat O VBD\n",
}
COLUMNS = ["data=conll", "data.name=conll", "data.files.test=ok.conll"]
SMALL = ["trainer=smoke", "runtime.progress=false", "runtime.accelerator=cpu"]
TOY = "data.sentences={train: 20, dev: 5, test: 5}"
BERT = "words.input.path=google-bert/bert-base-cased"
MISTAKES = {
    "modle=residual: there": ["modle=residual"],
    "model=residul: model": ["model=residul"],
    "layers=three: layers": ["layers=three"],
    "layers=3: no": ["layers=3"],
    "words=bert needs": ["words=bert"],
    "trainer.max_epochs must": ["trainer.max_epochs=0"],
    "conll2003: not": ["data=conll2003"],
    "...: no such file": ["words=glove"],
    "...: neither a local folder": ["words=bert", BERT],
    "...:2: expected": [*COLUMNS, "data.files.train=uneven.conll"],
    "...:1: not a tag": [*COLUMNS, "data.files.train=other.conll"],
    "...:1: no column": [*COLUMNS, "data.files.train=ok.conll", "data.columns={word: 0, tag: 7}"],
    "conll: there is no": [*COLUMNS, "data.files.train=ok.conll"],
    "runtime.accelerator=gpu": ["runtime.accelerator=gpu"],
    "the loss is nan": [
        "optimizer=sgd",
        "optimizer.lr=1e30",
        "trainer.gradient_clip=0.0",
        "batches.tokens=30",
    ],
}
"""By the begin of a message, overrides for which it is printed."""
OTHERS = {
    "BERT needs",
    "hydra/launcher=slurm needs",
    "hydra/sweeper=optuna needs",  # read by tests/launch/test_search_space.py
    "hydra/launcher=slurm: SLURM is not",
    "hydra/launcher=slurm: sbatch rejected",  # read by tests/launch/test_slurm_launcher.py
    "compiling",
    "CRF: the compiled kernels",
    "...: files have",
    "CUDA out of memory",  # PyTorch's own
    "worker killed",
    "... is finished (by",
    "... is finished, but",  # read by tests/runs/test_code.py
    "... was written by",
    "... is damaged",
    "... is missing",
    "...: another process",
    "...: this file system",
    "...: expected the folder",
    "there is no table",
}


def met(begin: str, text: str) -> bool:
    """Whether the message of the page that begins so is in the text."""
    (message,) = [each for each in MESSAGES if each.startswith(begin)]
    pattern = ".*".join(map(re.escape, message.split("...")))
    return re.search(pattern, text, re.DOTALL) is not None


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")


def test_each_message_of_the_page_is_tried() -> None:
    begins = {*MISTAKES, *OTHERS}
    assert len(MESSAGES) == len(begins)
    assert all(sum(map(message.startswith, begins)) == 1 for message in MESSAGES)


@pytest.mark.parametrize("begin", MISTAKES)
def test_a_mistake_has_the_message(begin: str) -> None:
    if "gpu" in begin and not values.lack_of_gpu():
        pytest.skip("there is a GPU")
    overrides = MISTAKES[begin]
    small = SMALL if any("data=" in each for each in overrides) else [*SMALL, TOY]

    def run() -> None:
        values.check_jobs([[*small, *overrides]])
        train(compose([*small, *overrides]))

    with pytest.raises(ValueError, match=r"\S") as caught:
        run()
    assert met(begin, str(caught.value))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("transformers", "submitit"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match="BERT") as caught:
        bert_files._transformers()
    assert met("BERT needs", str(caught.value))
    with pytest.raises(Exception, match="submitit") as caught:
        launcher().submit(Path("slurm"), [])
    assert met("hydra/launcher=slurm needs", str(caught.value))


def test_a_missing_slurm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Exception, match="SLURM") as caught:
        launcher().submit(Path("slurm"), [])
    assert met("hydra/launcher=slurm: SLURM is not", str(caught.value))


def launcher() -> SlurmLauncher:
    settings = dataclasses.asdict(SlurmLauncherConfig())
    settings.pop("_target_")
    return SlurmLauncher(**settings)


def test_a_compilation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    compilation.announce.cache_clear()
    with caplog.at_level(logging.INFO):
        compilation.announce("__pycache__")
    assert met("compiling", caplog.text)


def test_kernels_that_fail_are_named(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise RuntimeError("no compiler")

    assert not trial.works("CRF", fails)
    assert met("CRF: the compiled kernels", caplog.text)


def test_a_killed_job_is_named() -> None:
    ended = worker.job_return(Path("none"), [], -9)
    assert met("worker killed", str(ended._return_value))


def test_what_became_of_a_run_is_said(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("train.conll").write_text(20 * "Ann NNP B-PER\nsat VBD O\n\n")
    cfg = compose([*SMALL, *COLUMNS, "data.files.train=train.conll", "model=none", "chars=none"])
    folder = Path(train(cfg)["folder"])
    with caplog.at_level(logging.INFO):
        train(cfg)
    assert met("... is finished (by", caplog.text)
    with (folder / "encoder.json").open("a") as file:
        file.write(" ")
    caplog.clear()
    train(cfg)
    assert met("... is damaged", caplog.text)
    assert "the run is repeated" in caplog.text
    (folder / "log.csv").unlink()
    caplog.clear()
    train(cfg)
    assert met("... is missing", caplog.text)
    assert "the run is repeated" in caplog.text
    Path("train.conll").write_text(30 * "Ann NNP B-PER\nsat VBD O\n\n")
    with pytest.raises(ValueError, match="files have changed") as caught:
        train(cfg)
    assert met("...: files have", str(caught.value))


def test_a_checkpoint_of_other_code_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {"callbacks": {checkpoints.LastCheckpoint.__qualname__: {"made_by": "torch 1"}}}
    checkpoints.AtomicCheckpointIO().save_checkpoint(content, Path(checkpoints.CHECKPOINT))
    assert checkpoints.resumable_checkpoint(Path()) is None
    assert met("... was written by", caplog.text)


def test_a_lock_that_is_held_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def second() -> None:
        with locks.hold_lock(tmp_path, wait=True):
            pass

    other = threading.Thread(target=second)
    with caplog.at_level(logging.INFO):
        with locks.hold_lock(tmp_path, wait=False):
            other.start()
            while "waiting" not in caplog.text:
                other.join(0.01)
        other.join()
    assert met("...: another process", caplog.text)


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", failing)
    with locks.hold_lock(tmp_path, wait=False):
        pass
    assert met("...: this file system", caplog.text)


@pytest.mark.parametrize(
    ("begin", "arguments"),
    [
        ("...: expected the folder", ["predict", ".", "ok.conll"]),
        ("there is no table", ["table", "yang2020_tabel12"]),
    ],
)
def test_a_command_has_the_message(
    begin: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(arguments) == 1
    assert met(begin, capsys.readouterr().err)
