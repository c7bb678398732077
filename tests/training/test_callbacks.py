"""The times of log.csv: those of a resumed epoch include what was spent on it before the interruption."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ner_experiments.training import callbacks
from ner_experiments.training.callbacks import EpochLog


def test_a_resumed_epoch_has_the_seconds_before_and_after_the_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: now)
    module: Any = SimpleNamespace(penalty=None, report={"f1": 0.5, "types": {}})
    trainer: Any = SimpleNamespace(
        current_epoch=0,
        is_global_zero=True,
        optimizers=[SimpleNamespace(param_groups=[{"lr": 0.1}])],
        train_dataloader=SimpleNamespace(tokens=80),
    )
    batch: Any = SimpleNamespace(lengths=[3, 2])

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
