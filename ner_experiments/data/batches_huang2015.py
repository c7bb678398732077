"""The batches of Huang, Xu & Yu (2015), section 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ner_experiments.data.batches import Plan


@dataclass(frozen=True)
class TokenTotal:
    """Sentences in random order, as many as have `tokens` in all without padding; a longer one comes alone.

    "Batch size of 100 [...] means to include sentences whose total length is no greater than 100". Reading:
    each epoch draws them anew. `TokenBudget` pads less, but puts sentences of one length together.
    """

    tokens: int

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"tokens per batch must be at least 1, got {self.tokens}")

    def plan(self, lengths: np.ndarray, rng: np.random.Generator) -> Plan:
        order = rng.permutation(len(lengths))
        batches: Plan = []
        first = total = 0
        for place, length in enumerate(lengths[order].tolist()):
            if total + length > self.tokens and place > first:
                batches.append(order[first:place])
                first, total = place, 0
            total += length
        return [*batches, order[first:]]
