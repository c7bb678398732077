"""Learning-rate schedules: the factor of the optimizer's learning rate by the share of training that is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ner_experiments.utils.ranges import RATE

Schedule = Callable[[float], float]
"""From the share of all steps that precede a step, in [0, 1), to the factor of its learning rate."""


@dataclass(frozen=True)
class LinearWarmupDecay:
    """Linear warm-up from 0 to 1 over the first `warmup` of all steps, then linear decay to 0 (Devlin et al. 2019).

    It is continuous, as in transformers. Google's BERT decays from the first step on, and so its rate drops by the
    share `warmup` where the warm-up ends.
    """

    warmup: float

    def __post_init__(self) -> None:
        RATE.check("schedule.warmup", self.warmup)

    def __call__(self, done: float) -> float:
        return done / self.warmup if done < self.warmup else (1 - done) / (1 - self.warmup)
