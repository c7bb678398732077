"""The corpus as Lightning asks for it: batches for each epoch, gathered from tensors on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lightning.pytorch import LightningDataModule, Trainer

from ner_experiments.data.batches import Batching, Plan, TokenBudget, at_least
from ner_experiments.data.encoder import Batch, Encoded, Encoder
from ner_experiments.data.sentence import Corpus

EVALUATION = TokenBudget(2048)


class Batches:
    """A process's batches of a split in a given order, without the `done` ones that it has had before.

    tokens: of all processes together. To share is to have all forms of the split as inputs of each batch.
    """

    def __init__(
        self, split: Encoded, plan: Plan, *, tokens: int, done: int = 0, share: bool = False
    ) -> None:
        self.split, self.plan, self.tokens, self.done, self.share = split, plan, tokens, done, share

    def __len__(self) -> int:
        """The done ones too: Lightning counts on from where an epoch was cut off, and ends at this number."""
        return len(self.plan)

    def __iter__(self) -> Iterator[Batch]:
        return (self.split.batch(numbers, share=self.share) for numbers in self.plan[self.done :])


class CorpusModule(LightningDataModule):
    """Train in an order that (seed, epoch) alone decides; dev and test from short to long.

    Of several processes each has every n-th batch: in training all the same number of them, in evaluation
    every sentence once. At most `train_batches` a process make an epoch, if that is not 0.

    Lightning must ask anew in each epoch: reload_dataloaders_every_n_epochs=1.
    """

    def __init__(
        self, corpus: Corpus, encoder: Encoder, batching: Batching, *, seed: int, train_batches: int = 0
    ) -> None:
        super().__init__()
        self.corpus, self.encoder, self.batching = corpus, encoder, batching
        self.seed, self.train_batches = seed, train_batches
        self._encoded: dict[str, Encoded] = {}

    def train_dataloader(self) -> Batches:
        """Of an epoch that was cut off, what is left of it."""
        split, loop = self.encoded("train"), self._trainer.fit_loop
        progress: Any = loop.epoch_progress.current
        rng = np.random.default_rng((self.seed, progress.processed))
        plan = at_least(self._world, self.batching.plan(split.lengths, rng), "train")
        steps = len(plan) // self._world
        if self.train_batches:
            steps = min(steps, self.train_batches)
        cut_off = progress.started > progress.processed
        batches: Any = loop.epoch_loop.batch_progress.current
        done = batches.processed if cut_off else 0
        return self._part(split, plan[: steps * self._world], done=done)

    def val_dataloader(self) -> Batches:
        return self._in_order("dev")

    def test_dataloader(self) -> Batches:
        return self._in_order("test")

    def encoded(self, split: str) -> Encoded:
        """The split in flat tensors, encoded when it is first asked for."""
        if split not in self._encoded:
            device = self._trainer.strategy.root_device
            self._encoded[split] = self.encoder.encode(self.corpus.splits[split], device)
        return self._encoded[split]

    def _in_order(self, name: str) -> Batches:
        split = self.encoded(name)
        plan = at_least(self._world, EVALUATION.in_order(split.lengths), name)
        return self._part(split, plan, share=True)

    def _part(self, split: Encoded, plan: Plan, *, done: int = 0, share: bool = False) -> Batches:
        tokens = sum(int(split.lengths[batch].sum()) for batch in plan)
        mine = plan[self._trainer.global_rank :: self._world]
        return Batches(split, mine, tokens=tokens, done=done, share=share)

    @property
    def _world(self) -> int:
        return self._trainer.world_size

    @property
    def _trainer(self) -> Trainer:
        assert self.trainer is not None
        return self.trainer
