"""One job of a sweep, in whatever process a launcher chose for it, and what the sweep is told of it.

`python -m ner_experiments.launch.worker OUTCOME OVERRIDE ...`: one job in a process of its own.

Leaves what came of it in the file OUTCOME, as JSON. Stops, with a checkpoint, when the process that started
it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from threading import Thread
from typing import Any

import hydra
from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.errors import CompactHydraException
from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.compose import ROOT, conf
from ner_experiments.utils.files import replacing


class RefusedError(CompactHydraException):
    """Why a job failed, in a line. Hydra prints these without a traceback."""


def for_hydra(config: DictConfig) -> list[str]:
    """The overrides of Hydra itself that a sweep was given: each job composes them, as in a sweep in turn."""
    return [*map(str, config.hydra.overrides.hydra)]


def python_path() -> str:
    """PYTHONPATH for the process of a job: it runs this code, from wherever the sweep was started."""
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def run(overrides: Sequence[str]) -> dict[str, Any]:
    """What `train.train` returns, which does not wait where another process works on the same run."""
    from ner_experiments.train import train

    return train(compose(overrides), wait=False)


def compose(overrides: Sequence[str]) -> DictConfig:
    """The job's config; sets up the log as Hydra does. Overrides of Hydra itself may stand among them."""
    with conf():
        cfg = hydra.compose(ROOT, overrides=list(overrides), return_hydra_config=True)
    configure_log(cfg.hydra.job_logging, cfg.hydra.verbose)
    return OmegaConf.masked_copy(cfg, [str(name) for name in cfg if name != "hydra"])


def finished(overrides: Sequence[str], result: dict[str, Any]) -> JobReturn:
    return JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED, _return_value=result)


def failed(overrides: Sequence[str], reason: str) -> JobReturn:
    return JobReturn(overrides=list(overrides), status=JobStatus.FAILED, _return_value=RefusedError(reason))


def reason(error: BaseException) -> str:
    """An error in a line of moderate length, and where its traceback lies; what users cause without class."""
    if isinstance(error, RefusedError):
        return str(error)
    text = str(error) if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {error}"
    return " ".join([shorten(text, 600, placeholder=" ..."), *getattr(error, "__notes__", [])])


def busy(job: JobReturn) -> str | None:
    """The run's folder, if another process is working on it."""
    return job._return_value.get("busy") if job.status is JobStatus.COMPLETED else None


def main(arguments: Sequence[str]) -> int:
    outcome, *overrides = arguments
    Thread(target=stop_with_parent, daemon=True).start()
    content: dict[str, Any]
    try:
        content, status = {"result": run(overrides)}, 0
    except Exception as error:
        if not isinstance(error, ValueError | OSError):  # these are what the user can cause
            traceback.print_exc()
        content, status = {"failed": reason(error)}, 1
    if os.environ.get("LOCAL_RANK", "0") == "0":
        with replacing(Path(outcome)) as part:
            part.write_text(json.dumps(content), encoding="utf-8")
    return status


def stop_with_parent() -> None:
    """The other end of stdin is the parent's, and is closed with it, however it dies."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def told(outcome: Path, overrides: Sequence[str], status: int) -> JobReturn:
    """What a sweep is told of a process that ended with `status`, which is -N after signal N."""
    if outcome.exists():
        content = json.loads(outcome.read_text(encoding="utf-8"))
        if "result" in content:
            return finished(overrides, content["result"])
        return failed(overrides, content["failed"])
    if status == 143:
        return failed(overrides, "stopped; it goes on when the command is repeated")
    ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    memory = ", perhaps for want of memory" if status == -signal.SIGKILL else ""
    return failed(overrides, f"its process {ended}{memory}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
