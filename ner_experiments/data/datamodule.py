"""The corpus as Lightning asks for it: batches for each epoch, gathered from tensors on the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lightning.pytorch import LightningDataModule, Trainer

from ner_experiments.data.batches import Batching, Plan, TokenBudget
from ner_experiments.data.encoder import Batch, Encoded, Encoder
from ner_experiments.data.sentence import Corpus

EVALUATION = TokenBudget(2048)


class Batches:
    """A split's batches in a given order."""

    def __init__(self, split: Encoded, plan: Plan) -> None:
        self.split, self.plan = split, plan

    def __len__(self) -> int:
        return len(self.plan)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.split.batch, self.plan)


class CorpusModule(LightningDataModule):
    """Train in an order that (seed, epoch) alone decides; dev and test from short to long.

    Lightning must ask anew in each epoch: reload_dataloaders_every_n_epochs=1.
    """

    def __init__(self, corpus: Corpus, encoder: Encoder, batching: Batching, *, seed: int) -> None:
        super().__init__()
        self.corpus, self.encoder, self.batching, self.seed = corpus, encoder, batching, seed
        self._encoded: dict[str, Encoded] = {}

    def train_dataloader(self) -> Batches:
        split = self.encoded("train")
        rng = np.random.default_rng((self.seed, self._trainer.current_epoch))
        return Batches(split, self.batching.plan(split.lengths, rng))

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

    def _in_order(self, split: str) -> Batches:
        encoded = self.encoded(split)
        return Batches(encoded, EVALUATION.in_order(encoded.lengths))

    @property
    def _trainer(self) -> Trainer:
        assert self.trainer is not None
        return self.trainer
