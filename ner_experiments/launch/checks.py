"""The checks of all jobs before the first is started: their settings, files and devices, then their parts."""

from __future__ import annotations

from collections.abc import Sequence

from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.config.job import CommandLine
from ner_experiments.config.processes import num_processes
from ner_experiments.experiment_data import init_config

HERE = CommandLine((), {}, ())


def check_jobs(jobs: Sequence[Sequence[str]], line: CommandLine = HERE, *, files: bool = True) -> None:
    """Raise ValueError for the first job, given by its overrides, that the launcher of `line` cannot run.

    GPUs and files are looked for only if the jobs run on this machine, and files only if `files`.
    Only jobs with a penalty need PyTorch, which is slow to import.
    """
    here = not line.is_on_a_cluster
    values.check_jobs(jobs, files=files and here, devices=here)
    for cfg in map(compose, jobs):
        if line.launcher == "basic" and num_processes(cfg) > 1:
            devices, nodes = cfg.trainer.devices, cfg.trainer.num_nodes
            raise ValueError(
                f"trainer.devices={devices}, trainer.num_nodes={nodes}: a sweep whose jobs have several "
                "processes requires hydra/launcher=local or slurm"
            )
        for stage in (cfg, init_config(cfg)) if cfg.init_from else (cfg,):
            if stage.penalty:
                from ner_experiments.build import check_penalty

                check_penalty(stage)
