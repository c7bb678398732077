"""One job of a sweep, in whatever process a launcher chose for it, and what the sweep is told of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import hydra
from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.errors import CompactHydraException
from omegaconf import DictConfig, OmegaConf

from ner_experiments import settings


class RefusedError(CompactHydraException):
    """Why a job failed, in a line. Hydra prints these without a traceback."""


def for_hydra(config: DictConfig) -> list[str]:
    """The overrides of Hydra itself that a sweep was given: each job composes them, as in a sweep in turn."""
    return [str(item) for item in config.hydra.overrides.hydra]


def python_path() -> str:
    """PYTHONPATH for the process of a job: it runs this code, from wherever the sweep was started."""
    root = str(Path(__file__).parent.parent)
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def run(overrides: Sequence[str]) -> dict[str, Any]:
    """What `train.train` returns, which does not wait where another process works on the same run."""
    from ner_experiments.train import train

    return train(compose(overrides), wait=False)


def compose(overrides: Sequence[str]) -> DictConfig:
    """The job's config; sets up the log as Hydra does. Overrides of Hydra itself may stand among them."""
    with settings.conf():
        cfg = hydra.compose(settings.ROOT, overrides=list(overrides), return_hydra_config=True)
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
