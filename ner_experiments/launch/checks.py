"""The checks of all jobs before the first is started: their settings, files and devices, then their parts."""

from __future__ import annotations

from collections.abc import Sequence

from ner_experiments.config import launch_settings
from ner_experiments.config.compose import compose
from ner_experiments.experiment_data import init_config


def check_jobs(jobs: Sequence[Sequence[str]], overrides: Sequence[str], *, files: bool = True) -> None:
    """Raise ValueError for the first job that cannot be run, as `launch_settings.check_jobs` and `check_penalty`.

    Only jobs with a penalty need PyTorch for that, which is slow to import.
    """
    launch_settings.check_jobs(jobs, overrides, files=files)
    for cfg in map(compose, jobs):
        for stage in (cfg, init_config(cfg)) if cfg.init_from else (cfg,):
            if stage.penalty:
                from ner_experiments.build import check_penalty

                check_penalty(stage)
