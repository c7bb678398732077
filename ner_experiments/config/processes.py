"""The number of processes that train one model together, and whether this is the first of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from omegaconf import DictConfig

from ner_experiments.config.values import lack_of_gpu
from ner_experiments.utils.machine import usable_cores

RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID")
"""Environment variables of a process that Lightning, torchrun or SLURM has started."""


def num_processes(cfg: DictConfig) -> int:
    """Number of processes that train one model together, each on its share of the batches."""
    return cfg.trainer.devices * cfg.trainer.num_nodes


def processes_note(cfg: DictConfig) -> str:
    """Note on how many processes train the model together and what a step then is; empty for one process."""
    number, devices, nodes = num_processes(cfg), cfg.trainer.devices, cfg.trainer.num_nodes
    if number == 1:
        return ""
    machines = f" on {nodes} machines" if nodes > 1 else ""
    text = (
        f"{number} processes{machines} train this model together: a step takes {number} batches, one of each"
    )
    cores = usable_cores()
    on_cpu = cfg.runtime.accelerator == "cpu" or (cfg.runtime.accelerator == "auto" and lack_of_gpu())
    if on_cpu and devices > cores:
        text += f"; this machine has {cores} cores for {devices} processes, so fewer would be as fast"
    return text


def is_first_process(cfg: DictConfig) -> bool:
    """Whether this process has rank 0, whoever started the processes: Lightning, torchrun or SLURM."""
    return num_processes(cfg) == 1 or all(int(os.environ.get(rank, 0)) == 0 for rank in RANKS)


def check_program(cfg: DictConfig) -> None:
    """Raise ValueError if the processes that train the model together cannot all be started from this command.

    Lightning starts those of one machine. They rerun the program, which they cannot if it comes from `python -c`,
    standard input or a notebook.
    """
    if num_processes(cfg) < 2 or any(rank in os.environ for rank in RANKS):
        return
    if cfg.trainer.num_nodes > 1:
        raise ValueError(
            f"trainer.num_nodes={cfg.trainer.num_nodes}: the command must be started on each machine, by torchrun "
            "(docs/clusters.md shows how) or by SLURM with hydra/launcher=slurm"
        )
    if not Path(sys.argv[0]).is_file() or hasattr(sys, "ps1"):
        raise ValueError(
            f"trainer.devices={cfg.trainer.devices}: each process reruns the program, but it is not in a file; save "
            "it as a script, or use `python run.py`"
        )
