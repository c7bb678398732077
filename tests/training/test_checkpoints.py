"""Checkpoints at the right moments; best weights of the first epoch with the highest dev score, all of them finite."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from ner_experiments.training.checkpoints import BestWeights, LastCheckpoint, refuse_infinite
from ner_experiments.training.early_stopping import DelayedEarlyStopping
from ner_experiments.training.preemption import Sigterm


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(value: float) -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    refuse_infinite(module, epoch=3)
    with torch.no_grad():
        module[1].weight[0, 1] = value
    with pytest.raises(ValueError, match=r"^after epoch 3 some weights are not finite: 1\.weight$"):
        refuse_infinite(module, epoch=3)


def test_of_epochs_with_equal_scores_the_first_is_kept() -> None:
    best, module = BestWeights("dev/f1"), nn.Linear(1, 1)
    for epoch, score in enumerate([0.0, 0.25, 0.5, 0.5, 0.25]):
        with torch.no_grad():
            module.weight.fill_(epoch + 1)
        trainer: Any = SimpleNamespace(callback_metrics={"dev/f1": torch.tensor(score)}, current_epoch=epoch)
        best.on_train_epoch_end(trainer, module)  # type: ignore[arg-type]
    assert (best.epoch, best.score) == (3, 0.5)
    assert best.weights["weight"].item() == 3
    resumed = BestWeights("dev/f1")
    resumed.load_state_dict(best.state_dict())
    resumed.on_train_epoch_end(trainer, module)  # type: ignore[arg-type]
    assert (resumed.epoch, resumed.weights["weight"].item()) == (3, 3)


def test_a_signal_in_the_last_batch_of_an_epoch_waits_for_the_end_of_the_epoch(tmp_path: Path) -> None:
    """Lightning would resume a checkpoint from between the last batch and the validation without the validation."""
    progress = SimpleNamespace(is_last_batch=False)
    saved: list[str] = []
    trainer: Any = SimpleNamespace(
        fit_loop=SimpleNamespace(epoch_loop=SimpleNamespace(batch_progress=progress)),
        strategy=SimpleNamespace(
            reduce_boolean_decision=lambda decision, all: decision, broadcast=lambda it: it
        ),
        world_size=1,
        save_checkpoint=lambda path: saved.append(path.name),
    )
    sigterm = Sigterm()
    callback = LastCheckpoint(tmp_path, seconds=1000, sigterm=sigterm)
    callback.on_train_batch_end(trainer)
    assert saved == []
    sigterm.received = True
    progress.is_last_batch = True
    callback.on_train_batch_end(trainer)
    assert saved == []
    with pytest.raises(SystemExit):
        callback.on_train_epoch_end(trainer, nn.Linear(1, 1))  # type: ignore[arg-type]
    assert saved == ["last.ckpt"]
    progress.is_last_batch = False
    with pytest.raises(SystemExit):
        callback.on_train_batch_end(trainer)
    assert saved == ["last.ckpt"] * 2


@pytest.mark.parametrize(("waited", "stops"), [(1, False), (2, True)])
def test_a_resumed_run_stops_at_once_if_it_had_used_up_its_patience(waited: int, stops: bool) -> None:
    resumed = DelayedEarlyStopping("dev/f1", patience=2)
    resumed.load_state_dict(resumed.state_dict() | {"wait_count": waited})
    trainer: Any = SimpleNamespace(should_stop=False)
    resumed.on_fit_start(trainer, nn.Linear(1, 1))  # type: ignore[arg-type]
    assert trainer.should_stop is stops
