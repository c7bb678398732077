"""The times of a resumed epoch, which include those before the interruption, and the random numbers of each step."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ner_experiments.training import callbacks
from ner_experiments.training.callbacks import EpochLog, StepSeeds


def test_a_resumed_epoch_has_the_seconds_before_and_after_the_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(callbacks.clock, "now", lambda: now)
    module: Any = SimpleNamespace(report={"f1": 0.5, "types": {}})
    trainer: Any = SimpleNamespace(
        current_epoch=0,
        is_global_zero=True,
        optimizers=[SimpleNamespace(param_groups=[{"lr": 0.1}])],
        train_dataloader=SimpleNamespace(tokens=80),
    )
    batch: Any = SimpleNamespace(sentences=[0, 1])

    def step(log: EpochLog, loss: float) -> None:
        log.on_train_batch_end(trainer, module, {"loss": torch.tensor(loss)}, batch, 0)

    log = EpochLog(tmp_path)
    now = 100.0
    log.on_train_start(trainer, module)
    log.on_train_epoch_start(trainer, module)
    now = 103.0
    step(log, 1.0)
    now = 104.0
    state = log.state_dict()

    resumed = EpochLog(tmp_path)
    resumed.load_state_dict(state)
    now = 500.0
    resumed.on_train_start(trainer, module)
    now = 505.0
    step(resumed, 2.0)
    now = 507.0  # validation
    resumed.on_train_epoch_end(trainer, module)
    (row,) = resumed.rows
    assert (row["train_seconds"], row["seconds"]) == (3 + 5, 4 + 7)
    assert row["train_loss"] == 1.5
    assert resumed.tokens_per_second == 10
    resumed.on_train_epoch_start(trainer, module)
    now = 509.0
    step(resumed, 1.0)
    resumed.on_train_epoch_end(trainer, module)
    assert (resumed.rows[1]["train_seconds"], resumed.rows[1]["seconds"]) == (2, 2)


def test_every_step_of_a_run_draws_numbers_of_its_own_whatever_was_drawn_before() -> None:
    """In its second epoch too, where the batches are numbered from 0 again."""
    module: Any = SimpleNamespace(device=torch.device("cpu"))

    def drawn(seed: int, rank: int, step: int) -> float:
        trainer: Any = SimpleNamespace(global_rank=rank, global_step=step)
        StepSeeds(seed).on_train_batch_start(trainer, module, None, step % 3)  # type: ignore[arg-type]
        return torch.rand(()).item()

    steps = [(seed, rank, step) for seed in (1, 2) for rank in (0, 1) for step in range(6)]
    numbers = [drawn(*it) for it in steps]
    assert len({*numbers}) == len(steps)
    assert [drawn(*it) for it in reversed(steps)] == numbers[::-1]
