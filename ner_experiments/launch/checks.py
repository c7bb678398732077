"""The checks of all jobs before the first is started: their settings, files and devices, then their parts."""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import DictConfig

from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.config.job import CommandLine
from ner_experiments.config.launch_settings import composed
from ner_experiments.config.processes import num_processes
from ner_experiments.experiment_data import init_config
from ner_experiments.tables.sweeps import without_seed


def check_jobs(jobs: Sequence[Sequence[str]], line: CommandLine | None = None, *, files: bool = True) -> None:
    """Raise ValueError for the first job, given by its overrides, that the launcher of `line` cannot run.

    Without `line`, no launcher is to run them. GPUs and files are looked for only if the jobs run on this machine, and
    files only if `files`.
    """
    here = line is None or not line.is_on_a_cluster
    values.check_jobs(jobs, files=files and here, devices=here)
    configs = [compose(job) for job in {without_seed(job): job for job in jobs}.values()]
    if line is not None:
        for cfg in configs:
            check_processes(cfg, line)
    from ner_experiments.build import check_parts  # slow to import: PyTorch

    for cfg in configs:
        for stage in (cfg, init_config(cfg)) if cfg.init_from else (cfg,):
            check_parts(stage)


def check_processes(cfg: DictConfig, line: CommandLine) -> None:
    """Raise ValueError unless the launcher starts each process of a job, and has a GPU for each if they use GPUs."""
    devices, nodes = cfg.trainer.devices, cfg.trainer.num_nodes
    job, several = f"trainer.devices={devices}, trainer.num_nodes={nodes}", num_processes(cfg) > 1
    if line.launcher == "basic" and several:
        raise ValueError(
            f"{job}: a sweep whose jobs have several processes requires hydra/launcher=local or slurm"
        )
    if not (several or line.is_on_a_cluster):
        return
    settings = composed(line.hydra).launcher
    started = {"nodes": nodes, "tasks_per_node": devices} if line.is_on_a_cluster else {}
    for name, number in started.items():
        if settings[name] != number:
            raise ValueError(f"{job}: hydra.launcher.{name} must be {number}, got {settings[name]}")
    name = "gpus_per_node" if line.is_on_a_cluster else "gpus_per_job"
    on_gpus = cfg.runtime.accelerator != "cpu" and (line.is_on_a_cluster or not values.lack_of_gpu())
    if on_gpus and (gpus := settings.get(name)) is not None and gpus < devices:
        raise ValueError(
            f"{job}: each process needs a GPU, so hydra.launcher.{name} must be at least {devices}, got {gpus}"
        )
