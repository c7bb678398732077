"""The number of processes that train one model together, and whether this is the first of them."""

from __future__ import annotations

import os

from omegaconf import DictConfig


def num_processes(cfg: DictConfig) -> int:
    """Number of processes that train one model together, each on its share of the batches."""
    return cfg.trainer.devices * cfg.trainer.num_nodes


def is_first_process(cfg: DictConfig) -> bool:
    """Whether this process has rank 0, whoever started the processes: Lightning, torchrun or SLURM."""
    ranks = ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID")
    return num_processes(cfg) == 1 or all(int(os.environ.get(rank, 0)) == 0 for rank in ranks)
