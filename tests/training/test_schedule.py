"""Learning-rate schedules: the rate of every step, against transformers' own schedule."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import TOY
from torch import nn
from transformers import get_linear_schedule_with_warmup

from ner_experiments.config.compose import compose
from ner_experiments.train import train
from ner_experiments.training.callbacks import StepSeeds
from ner_experiments.training.schedule import LinearWarmupDecay

SMALL = [
    TOY,
    "model.hidden_size=8",
    "chars=none",
    "optimizer.lr=0.01",
    "trainer.max_epochs=4",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]
SENTENCES = ["batches=sentences", "batches.sentences=20"]


def transformers_rates(lr: float, steps: int, warmup_steps: int) -> list[float]:
    """The rate of each of `steps` steps by transformers."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = get_linear_schedule_with_warmup(optimizer, warmup_steps, steps)
    rates = []
    for _ in range(steps):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return rates


@pytest.mark.parametrize(("steps", "warmup_steps"), [(10, 1), (40, 4), (30, 0), (8, 7), (1000, 333), (1, 0)])
def test_the_factors_are_those_of_transformers(steps: int, warmup_steps: int) -> None:
    schedule = LinearWarmupDecay(warmup_steps / steps)
    factors = [schedule(step / steps) for step in range(steps)]
    assert factors == pytest.approx(transformers_rates(1.0, steps, warmup_steps), abs=1e-12)
    assert schedule(1.0) == 0


@pytest.mark.parametrize("warmup", [-0.1, 1.0, float("nan")])
def test_a_warm_up_longer_than_training_is_refused(warmup: float) -> None:
    with pytest.raises(ValueError, match=rf"^schedule\.warmup must be at least 0 and below 1, got {warmup}$"):
        LinearWarmupDecay(warmup)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Epoch and learning rate of every step of the test's runs."""
    taken: list[tuple[int, float]] = []

    def note(callback: StepSeeds, trainer: Any, module: Any, optimizer: Any) -> None:
        taken.append((trainer.current_epoch, optimizer.param_groups[0]["lr"]))

    monkeypatch.setattr(StepSeeds, "on_before_optimizer_step", note)
    return taken


def run(outputs: Path, *overrides: str) -> list[float]:
    """The learning rates in log.csv of a run."""
    result = train(compose([*SMALL, *overrides, f"output_dir={outputs}"], "test"))
    with (Path(result["folder"]) / "log.csv").open(encoding="utf-8") as file:
        return [float(row["learning_rate"]) for row in csv.DictReader(file)]


def test_every_step_of_a_run_has_its_rate_and_the_log_that_of_each_epochs_last(
    steps: list[tuple[int, float]], tmp_path: Path
) -> None:
    logged = run(tmp_path, *SENTENCES, "schedule=linear", "schedule.warmup=0.25", "trainer.max_epochs=5")
    expected = transformers_rates(0.01, 40, 10)  # five epochs of eight batches
    assert [rate for _, rate in steps] == pytest.approx(expected, abs=1e-12)
    assert logged == pytest.approx(expected[7::8], abs=1e-12)


def test_epochs_of_unlike_numbers_of_batches_share_the_schedule_equally(
    steps: list[tuple[int, float]], tmp_path: Path
) -> None:
    run(tmp_path, "batches=token_total", "batches.tokens=30", "schedule=linear", "schedule.warmup=0.25")
    by_epoch = [[rate for of, rate in steps if of == epoch] for epoch in range(4)]
    assert len({len(rates) for rates in by_epoch}) > 1
    assert [rates[0] for rates in by_epoch] == pytest.approx([0, 0.01, 0.01 * 2 / 3, 0.01 / 3])
    assert steps[-1][1] == pytest.approx(0.01 / 3 / len(by_epoch[-1]))


def test_the_limit_of_batches_per_epoch_shortens_the_schedule(
    steps: list[tuple[int, float]], tmp_path: Path
) -> None:
    run(tmp_path, *SENTENCES, "schedule=linear", "schedule.warmup=0", "trainer.train_batches=3")
    assert [rate for _, rate in steps] == pytest.approx(transformers_rates(0.01, 12, 0))


def test_a_run_that_stops_early_has_the_rates_of_one_that_does_not(
    steps: list[tuple[int, float]], tmp_path: Path
) -> None:
    """Decay ends at `trainer.max_epochs`, which a run with little patience may not reach."""
    schedule = [
        *SENTENCES,
        "schedule=linear",
        "optimizer.lr=3.0",
        "trainer.gradient_clip=0",
        "trainer.max_epochs=9",
    ]
    epochs = len(run(tmp_path, *schedule, "trainer.patience=1"))
    assert epochs < 9
    assert [rate for _, rate in steps] == pytest.approx(transformers_rates(3.0, 72, 7.2)[: 8 * epochs])


def test_without_a_schedule_every_step_has_the_optimizers_rate(
    steps: list[tuple[int, float]], tmp_path: Path
) -> None:
    assert run(tmp_path, *SENTENCES) == [0.01] * 4
    assert {rate for _, rate in steps} == {0.01}
