"""Where the processes of jobs run: on which GPUs, of how many machines, and how they find each other.

There is no GPU here, so PyTorch is made to count some, and what would join the processes is only recorded.
"""

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import refused

from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.config.job import CommandLine
from ner_experiments.config.processes import RANKS
from ner_experiments.launch.checks import check_jobs
from ner_experiments.launch.local import slots
from ner_experiments.training.trainer import make_trainer


@pytest.fixture
def _four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(values, "lack_of_gpu", lambda: "")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("_four_gpus")
@pytest.mark.parametrize(
    ("visible", "gpus", "size", "expected"),
    [
        (None, None, 1, ["0", "1", "2", "3"]),
        (None, None, 2, ["0,1", "2,3"]),
        (None, [3, 1], 1, ["3", "1"]),
        ("4,5,6,7", [0, 3], 2, ["4,7"]),
        ("GPU-8a,GPU-8b,GPU-9a, GPU-9b", None, 2, ["GPU-8a,GPU-8b", "GPU-9a,GPU-9b"]),
        ("MIG-8a,MIG-8b,MIG-9a,MIG-9b", [2], 1, ["MIG-9a"]),
    ],
)
def test_a_slot_is_what_a_job_sees_of_the_gpus(
    visible: str | None,
    gpus: list[int] | None,
    size: int,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert slots(gpus, size) == expected


@pytest.mark.usefixtures("_four_gpus")
def test_gpus_that_cannot_be_divided_are_refused() -> None:
    with pytest.raises(ValueError, match="4 GPUs cannot be divided into slots of 3"):
        slots(None, 3)


GPUS = "each process needs a GPU, so hydra.launcher"
COMMANDS = refused(f"""
trainer.devices=2 -> {GPUS}.gpus_per_job must be at least 2, got 1
trainer.devices=2 hydra.launcher.gpus_per_job=2 -> accepted
trainer.devices=2 runtime.accelerator=cpu -> accepted
hydra/launcher=slurm trainer.devices=2 -> hydra.launcher.tasks_per_node must be 2, got 1
hydra/launcher=slurm trainer.devices=2 hydra.launcher.tasks_per_node=2 -> accepted
hydra/launcher=slurm trainer.num_nodes=2 -> hydra.launcher.nodes must be 2, got 1
hydra/launcher=slurm hydra.launcher.tasks_per_node=4 -> hydra.launcher.tasks_per_node must be 1, got 4
hydra/launcher=slurm hydra.launcher.gpus_per_node=1 hydra.launcher.tasks_per_node=2 trainer.devices=2 -> \
{GPUS}.gpus_per_node must be at least 2, got 1
""")


@pytest.mark.usefixtures("_four_gpus")
@pytest.mark.parametrize(("command", "message"), COMMANDS)
def test_a_launcher_starts_each_process_of_a_job_with_a_gpu(command: str, message: str) -> None:
    line = CommandLine.of(["data=toy_en", *command.split()])
    with pytest.raises(ValueError, match=f": {message}$") if message != "accepted" else nullcontext():
        check_jobs([line.experiment], line)


TORCHRUN = {"TORCHELASTIC_RUN_ID": "1", "RANK": "3", "LOCAL_RANK": "1", "GROUP_RANK": "1", "WORLD_SIZE": "4"}
OF_SLURM = {"NTASKS": "4", "NTASKS_PER_NODE": "2", "JOB_NAME": "a", "JOB_ID": "7", "NODELIST": "a[1-2]"}
OF_SLURM |= {"PROCID": "3", "LOCALID": "1", "NODEID": "1"}


@pytest.mark.usefixtures("_four_gpus")
@pytest.mark.parametrize(
    ("environment", "nodes", "expected"),
    [
        ({"LOCAL_RANK": "1"}, 1, (1, 1, 0)),
        (TORCHRUN, 2, (3, 1, 1)),
        ({f"SLURM_{name}": value for name, value in OF_SLURM.items()}, 2, (3, 1, 1)),
    ],
    ids=["Lightning", "torchrun", "SLURM"],
)
def test_each_process_has_its_rank_and_gpu_and_joins_the_others_by_nccl(
    environment: dict[str, str], nodes: int, expected: tuple[int, int, int], tmp_path: Path, monkeypatch: Any
) -> None:
    """The second process of its machine, which is the last one; two on each."""
    joined: list[Any] = []
    for name in RANKS:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda backend, **how: joined.append((backend, how))
    )
    cfg = compose(["trainer=ddp", f"trainer.num_nodes={nodes}", "runtime.ddp_seconds=77"])
    trainer = make_trainer(cfg, tmp_path, [])
    assert (trainer.global_rank, trainer.local_rank, trainer.node_rank) == expected
    assert (trainer.world_size, trainer.strategy.root_device) == (2 * nodes, torch.device("cuda:1"))
    trainer.strategy.setup_distributed()
    ((backend, how),) = joined
    assert backend == "nccl"
    assert (how["rank"], how["world_size"], how["timeout"]) == (expected[0], 2 * nodes, timedelta(seconds=77))
