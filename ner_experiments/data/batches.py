"""Batching of sentences: plans that are a pure function of lengths, seed and epoch.

A plan has numbers of sentences alone; `encoder.EncodedSplit.batch` gathers and pads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

Plan = list[np.ndarray]
"""The sentence numbers of each batch, in the order of the batches."""


class Batching(Protocol):
    """Interface of a batching method."""

    def plan(self, lengths: np.ndarray, rng: np.random.Generator) -> Plan:
        """Batches that together hold every sentence once, in an order drawn from `rng`."""


@dataclass(frozen=True)
class TokenBudget:
    """Batches of similar length, with at most `tokens` tokens including padding. A longer sentence is a batch alone.

    Sentences of one length are shuffled, and the first batch has a random size, so that most batch boundaries
    change from epoch to epoch.
    """

    tokens: int

    def __post_init__(self) -> None:
        check_tokens(self.tokens)

    def plan(self, lengths: np.ndarray, rng: np.random.Generator) -> Plan:
        order = np.lexsort((rng.random(len(lengths)), lengths))
        return shuffled(self._cut(order, lengths, rng.uniform(0, self.tokens)), rng)

    def in_order(self, lengths: np.ndarray) -> Plan:
        """A deterministic plan from short to long, for evaluation."""
        return self._cut(np.argsort(lengths, kind="stable"), lengths, self.tokens)

    def _cut(self, order: np.ndarray, lengths: np.ndarray, budget: float) -> Plan:
        batches: Plan = []
        first = 0
        for place, longest in enumerate(lengths[order].tolist()):  # sorted: the last is the longest
            if longest * (place + 1 - first) > budget and place > first:
                batches.append(order[first:place])
                first, budget = place, self.tokens
        return [*batches, order[first:]]


@dataclass(frozen=True)
class SentenceCount:
    """Batches of `sentences` sentences, sorted by length within random pools of `pool` batches (1: no sorting)."""

    sentences: int
    pool: int

    def __post_init__(self) -> None:
        if self.sentences < 1 or self.pool < 1:
            raise ValueError(
                f"sentences per batch and pool must be at least 1, got {self.sentences}, {self.pool}"
            )

    def plan(self, lengths: np.ndarray, rng: np.random.Generator) -> Plan:
        order = rng.permutation(len(lengths))
        size = self.sentences * self.pool
        for first in range(0, len(order), size):
            pool = order[first : first + size]
            order[first : first + size] = pool[np.argsort(lengths[pool], kind="stable")]
        return shuffled(np.split(order, range(self.sentences, len(order), self.sentences)), rng)


@dataclass(frozen=True)
class TokenTotal:
    """Batches in random order, with at most `tokens` tokens without padding. A longer sentence is a batch alone.

    Huang, Xu & Yu (2015), section 3: "Batch size of 100 [...] means to include sentences whose total length
    is no greater than 100". Our reading: each epoch draws new batches. `TokenBudget` pads less, but groups
    sentences of one length.
    """

    tokens: int

    def __post_init__(self) -> None:
        check_tokens(self.tokens)

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


def check_tokens(tokens: int) -> None:
    if tokens < 1:
        raise ValueError(f"tokens per batch must be at least 1, got {tokens}")


def shuffled(batches: Plan, rng: np.random.Generator) -> Plan:
    return [batches[number] for number in rng.permutation(len(batches))]


def at_least(number: int, plan: Plan, split: str) -> Plan:
    """The plan with its largest batches halved until it has at least `number`.

    Raises ValueError if there are too few sentences.
    """
    while len(plan) < number:
        largest = max(range(len(plan)), key=lambda place: len(plan[place]))
        batch = plan[largest]
        if len(batch) < 2:
            raise ValueError(f"{split} has {len(plan)} sentences, too few for {number} processes")
        plan = [*plan[:largest], *np.array_split(batch, 2), *plan[largest + 1 :]]
    return plan


EVALUATION = TokenBudget(2048)
"""How sentences are grouped to be tagged."""
