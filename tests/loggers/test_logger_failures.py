"""A failing logger ends no run and is reported once; a null logger draws no figure."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import killed
import pytest
from logged import SMALL

from ner_experiments.config.compose import compose
from ner_experiments.loggers.base import Logger, RunInfo, SafeLogger, safe_logger
from ner_experiments.loggers.wandb import wandb
from ner_experiments.main import cli
from ner_experiments.train import train


class Broken(Logger):
    """A logger that fails at its second call."""

    calls = closed = 0

    def scalars(self, values: Any, epoch: int) -> None:
        self.calls += 1
        if self.calls == 2:
            raise RuntimeError("no service")

    def close(self, *, failed: bool) -> None:
        self.closed += 1


def test_the_failure_of_a_logger_is_reported_once_and_closes_it(caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    with safe_logger("A logger", lambda: broken) as logger:
        for epoch in (1, 2, 3):
            logger.scalars({}, epoch)
        logger.picture("x", lambda: pytest.fail("nothing is drawn for a logger that failed"))
    assert [record.message for record in caplog.records] == [
        "A logger failed (RuntimeError: no service); the run continues without it"
    ]
    assert (broken.calls, broken.closed) == (2, 1)


def test_one_that_cannot_begin_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    def begin() -> Logger:
        raise ImportError("no module")

    SafeLogger("A logger", begin).summary({})
    assert "A logger failed (ImportError: no module); the run continues without it" in caplog.text


def test_a_number_of_sentences_is_no_negative_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^logger\.sentences must be at least 0, got -1"):
        train(compose([*SMALL, "logger=tensorboard", "logger.sentences=-1", f"output_dir={tmp_path}"]))


def train_without_drawing(arguments: list[str]) -> None:
    """Run in a process that has imported what trains, and nothing else."""
    assert cli(arguments) == 0
    unwanted = {"wandb", "ner_experiments.loggers.tensorboard", "ner_experiments.analysis.attention"}
    assert not unwanted & set(sys.modules), unwanted & set(sys.modules)


def test_what_logs_nothing_draws_nothing(tmp_path: Path) -> None:
    """Nor does it load what does."""
    arguments = ["train", *SMALL, f"output_dir={tmp_path}"]
    process = killed.CONTEXT.Process(target=train_without_drawing, args=(arguments,))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    assert any(tmp_path.glob("*/seed-1/metrics.json"))


def import_after_wandb_died(folder: Path) -> None:
    """Run in a process that has not imported scikit-learn yet, whose import W&B would report to its own process."""
    os.environ["WANDB_MODE"] = "offline"
    # that of an earlier test; this process starts its own
    os.environ.pop("WANDB_SERVICE", None)
    with wandb(RunInfo(folder, "group", "name"), project="project", sentences=0) as logger:
        logger.scalars({"loss": 1.0}, 0)
        (service,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        os.kill(int(service), signal.SIGKILL)
        os.waitpid(int(service), 0)
        assert "sklearn" not in sys.modules
        import sklearn  # noqa: F401


@pytest.mark.slow
def test_a_run_imports_what_it_needs_after_the_process_of_wandb_has_died(tmp_path: Path) -> None:
    process = killed.CONTEXT.Process(target=import_after_wandb_died, args=(tmp_path,))
    process.start()
    process.join(300)
    assert process.exitcode == 0
