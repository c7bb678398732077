"""One job of a sweep, in whatever process a launcher chose for it, and what the sweep is told of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.utils import JobReturn, JobStatus, configure_log
from omegaconf import DictConfig, OmegaConf

from ner_experiments import settings


class RefusedError(Exception):
    """Why a job failed, in a line."""


def python_path() -> str:
    """PYTHONPATH for the process of a job: it runs this code, from wherever the sweep was started."""
    root = str(Path(__file__).parent.parent)
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def run(overrides: Sequence[str]) -> dict[str, Any]:
    """What `train.train` returns, which does not wait where another process works on the same run."""
    from ner_experiments.train import train

    return train(compose(overrides), wait=False)


def compose(overrides: Sequence[str]) -> DictConfig:
    """The job's config; sets up the log as Hydra does."""
    with settings.conf():
        cfg = hydra.compose(settings.ROOT, overrides=list(overrides), return_hydra_config=True)
    configure_log(cfg.hydra.job_logging, cfg.hydra.verbose)
    return OmegaConf.masked_copy(cfg, [str(name) for name in cfg if name != "hydra"])


def finished(overrides: Sequence[str], result: dict[str, Any]) -> JobReturn:
    return JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED, _return_value=result)


def failed(overrides: Sequence[str], reason: str) -> JobReturn:
    return JobReturn(overrides=list(overrides), status=JobStatus.FAILED, _return_value=RefusedError(reason))


def reason(error: BaseException) -> str:
    """An error in one line, and where its traceback lies."""
    text = str(error) if isinstance(error, RefusedError) else f"{type(error).__name__}: {error}"
    return " ".join([text, *getattr(error, "__notes__", [])])


def busy(job: JobReturn) -> str | None:
    """The run's folder, if another process is working on it."""
    return job._return_value.get("busy") if job.status is JobStatus.COMPLETED else None
