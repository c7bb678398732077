"""LightningDataModule of a corpus: the batches of each epoch, gathered from tensors on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lightning.pytorch import LightningDataModule, Trainer

from ner_experiments.data.batches import EVALUATION, Batching, Plan, at_least
from ner_experiments.data.encoder import Batch, EncodedSplit, Encoder
from ner_experiments.data.indexed_text import EXACT
from ner_experiments.data.sentence import Corpus


def refuse_few_sentences(corpus: Corpus, processes: int) -> None:
    """Raise ValueError for a split with fewer sentences than the processes that train together, which share it."""
    for split, sentences in corpus.splits.items():
        if len(sentences) < processes:
            raise ValueError(
                f"{corpus.name}: {split} has {len(sentences)} sentence{'s' * (len(sentences) > 1)}, too few for "
                f"{processes} processes; with trainer.devices={len(sentences)} each would have one"
            )


def refuse_train_without_mentions(corpus: Corpus) -> None:
    """Raise ValueError for a corpus annotated with mentions that has none in train: nothing can be learned from it."""
    train = corpus.splits["train"]
    if corpus.task == "mentions" and all(tag == "O" for sentence in train for tag in sentence.tags):
        raise ValueError(
            f"{corpus.name}: train has no mentions (sentences: {len(train):,}); `ner-experiments data check` shows how "
            "its files are read"
        )


class Batches:
    """The batches of a split for one process, in the order of `plan`, skipping the first `done`.

    tokens: number of tokens in the batches of all processes. how: further arguments of `EncodedSplit.batch`.
    """

    def __init__(self, split: EncodedSplit, plan: Plan, *, tokens: int, done: int = 0, **how: Any) -> None:
        self.split, self.plan, self.tokens, self.done, self.how = split, plan, tokens, done, how

    def __len__(self) -> int:
        """Number of batches, skipped ones included: Lightning resumes its count where the epoch stopped."""
        return len(self.plan)

    def __iter__(self) -> Iterator[Batch]:
        return (self.split.batch(numbers, **self.how) for numbers in self.plan[self.done :])


class CorpusModule(LightningDataModule):
    """Train batches in an order that (seed, epoch) alone decides; dev and test from short to long.

    Each of n processes gets every n-th batch. In training, all get the same number of batches; in evaluation, each
    sentence is in exactly one batch. `train_batches` limits the batches per process and epoch, if not 0.

    Requires `reload_dataloaders_every_n_epochs=1` of the Trainer.
    """

    def __init__(
        self, corpus: Corpus, encoder: Encoder, batching: Batching, *, seed: int, train_batches: int = 0
    ) -> None:
        super().__init__()
        self.corpus, self.encoder, self.batching = corpus, encoder, batching
        self.seed, self.train_batches = seed, train_batches
        self.multiples = EXACT
        """Numbers of which the sizes of train batches are multiples."""
        self._encoded: dict[str, EncodedSplit] = {}

    def train_dataloader(self) -> Batches:
        """Batches of the current epoch; after an interruption, the remaining ones."""
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
        return self._part(split, plan[: steps * self._world], done=done, multiples=self.multiples)

    def val_dataloader(self) -> Batches:
        return self._in_order("dev")

    def test_dataloader(self) -> Batches:
        return self._in_order("test")

    def encoded(self, split: str) -> EncodedSplit:
        """The split as flat tensors, encoded on first use."""
        if split not in self._encoded:
            device = self._trainer.strategy.root_device
            self._encoded[split] = self.encoder.encode(self.corpus.splits[split], device)
        return self._encoded[split]

    def _in_order(self, name: str) -> Batches:
        split = self.encoded(name)
        plan = at_least(self._world, EVALUATION.in_order(split.lengths), name)
        return self._part(split, plan, share=True)

    def _part(self, split: EncodedSplit, plan: Plan, **how: Any) -> Batches:
        tokens = sum(int(split.lengths[batch].sum()) for batch in plan)
        own = plan[self._trainer.global_rank :: self._world]
        return Batches(split, own, tokens=tokens, **how)

    @property
    def _world(self) -> int:
        return self._trainer.world_size

    @property
    def _trainer(self) -> Trainer:
        assert self.trainer is not None
        return self.trainer
