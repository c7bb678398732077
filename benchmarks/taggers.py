"""Whole taggers to be timed, as the suite's config makes them, on sentences that a seed makes."""

import random
from collections.abc import Sequence
from typing import Any

import hydra
import numpy as np
import torch
from hydra.utils import instantiate
from torch import nn

from ner_experiments.build import build, make_encoder
from ner_experiments.config import compose
from ner_experiments.data.encoder import Batch, EncodedSplit
from ner_experiments.data.sentence import Corpus, Sentence

CPU = torch.device("cpu")
WORDS = 5000


class Trial:
    """A tagger, its optimizer and a split, to take steps with: what Lightning does, without what it logs.

    `precision` is the trainer's: with "bf16-mixed" forward passes run under autocast, as Lightning runs them.
    """

    def __init__(self, corpus: Corpus, overrides: Sequence[str]) -> None:
        torch.manual_seed(0)
        self.cfg = composed(overrides)
        encoder = make_encoder(self.cfg)
        encoder.fit(corpus)
        self.tagger = build(self.cfg, encoder)
        self.optimizer = self.tagger.configure_optimizers()
        self.split: EncodedSplit = encoder.encode(corpus.splits["train"], CPU)

    def batches(self) -> list[Batch]:
        """Of the first epoch."""
        plan = instantiate(self.cfg.batches).plan(self.split.lengths, np.random.default_rng(0))
        return [self.split.batch(sentences) for sentences in plan]

    def step(self, batch: Batch) -> None:
        self.tagger.train()
        self.optimizer.zero_grad()
        with self.autocast():
            loss = self.tagger.decoder.loss(self.tagger(batch), batch.tags, batch.mask)
            if self.tagger.penalty is not None:
                loss = loss + self.tagger.penalty(self.tagger.model)
        loss.backward()
        if self.cfg.trainer.gradient_clip:
            nn.utils.clip_grad_norm_(self.tagger.parameters(), self.cfg.trainer.gradient_clip)
        self.optimizer.step()

    @torch.no_grad()
    def decode(self, batch: Batch) -> torch.Tensor:
        self.tagger.eval()
        with self.autocast():
            return self.tagger.decoder.decode(self.tagger(batch), batch.mask)

    def autocast(self) -> torch.autocast:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.cfg.trainer.precision == "bf16-mixed")


def composed(overrides: Sequence[str]) -> Any:
    """The config as `python run.py OVERRIDES` has it."""
    compose.check(overrides)
    with compose.hydra_context():
        return hydra.compose(compose.CONFIG_NAME, overrides=[*overrides])


def made_up(sentences: int, length: int | range, types: int = 4) -> Corpus:
    """Sentences of random words and tags: `length` tokens each, or evenly from a range of lengths."""
    draws = random.Random(0)
    words = ["".join(draws.choices("etaoinshrdlu", k=draws.randint(2, 10))) for _ in range(WORDS)]
    tags = ["O", *(f"{prefix}-T{kind}" for kind in range(types) for prefix in "BIES")]
    lengths = [length] * sentences if isinstance(length, int) else draws.choices(length, k=sentences)
    train = [
        Sentence(tuple(draws.choices(words, k=size)), tuple(draws.choices(tags, k=size))) for size in lengths
    ]
    return Corpus("made_up", "mentions", {"train": train}, "")
