"""A few trials of each fast fault; `make faults` runs all faults, with more trials."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faults_disks
import faults_files
import faults_runs
import pytest
import torch
from faults import CAMPAIGN, Trials, survived

from ner_experiments.training.callbacks import FiniteLoss

SHORT: dict[Trials, int] = {
    faults_files.killed_downloads: 1,
    faults_files.killed_vector_caches: 2,
    faults_files.killed_bert_caches: 1,
    faults_files.damaged_vector_caches: 10,
    faults_files.damaged_bert_caches: 10,
    faults_files.damaged_kernel_caches: 5,
    faults_files.damaged_checkpoints: 10,
    faults_files.damaged_results: 20,
    faults_disks.full_disks: 1,
    faults_disks.read_only: 2,
    faults_runs.no_numbers: 1,
    faults_runs.changed_data: 1,
}
LONG = (faults_files.killed_downloads, faults_files.killed_vector_caches, faults_files.damaged_results)
LONG += (faults_disks.full_disks, faults_disks.read_only, faults_runs.no_numbers, faults_runs.changed_data)
TRIALS = [
    pytest.param(trials, number, id=trials.__name__, marks=[pytest.mark.slow] * (trials in LONG))
    for trials, number in SHORT.items()
]


@pytest.mark.parametrize(("trials", "number"), TRIALS)
def test_a_fault_loses_nothing_and_lets_nothing_wrong_count(
    trials: Trials, number: int, tmp_path: Path
) -> None:
    try:
        assert survived(trials, number, tmp_path, seed=2).total() == number
    except faults_disks.Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.campaign
@pytest.mark.parametrize("trials", CAMPAIGN, ids=[trials.__name__ for trials in CAMPAIGN])
def test_the_campaign(trials: Trials, tmp_path: Path) -> None:
    try:
        survived(trials, CAMPAIGN[trials], tmp_path)
    except faults_disks.Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_check_of_several_steps_names_the_first_that_went_wrong(loss: float) -> None:
    callback, trainer = FiniteLoss(steps=50), SimpleNamespace(current_epoch=0, global_step=0)
    for step, value in enumerate([1.0, loss, float("nan")]):
        batch: Any = SimpleNamespace(sentences=torch.tensor([step, 7 + step]))
        trainer.global_step = step
        callback.on_train_batch_start(trainer, None, batch, step)
        callback.on_before_backward(trainer, None, torch.tensor(value))
    with pytest.raises(ValueError, match=f"^the loss is {loss} in epoch 1, step 2, on sentences 2, 9 of"):
        callback.on_validation_start(trainer, None)
