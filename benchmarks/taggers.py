"""Taggers built from the suite's config on generated sentences, and the operations of their training steps."""

import copy
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import timing
import torch
from hydra.utils import instantiate
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ner_experiments.build import build
from ner_experiments.config.compose import compose
from ner_experiments.data.encoder import Batch, EncodedSplit
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.experiment_data import make_encoder
from ner_experiments.modules.peephole import PeepholeLSTM
from ner_experiments.modules.recurrent import UniRNN
from ner_experiments.modules.units import BiLSTMUnits
from ner_experiments.modules.variational_lstm import VariationalLSTMs
from ner_experiments.tagger import Tagger
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.utils.machine import keep_freed_memory

CPU = torch.device("cpu")
WORDS = 5000
RECURRENT = (UniRNN, nn.LSTM, nn.GRU, PeepholeLSTM, BiLSTMUnits, VariationalLSTMs)


class Trial:
    """A tagger, its optimizer and a split, for training steps as Lightning takes them, without its logging.

    With `trainer.precision=bf16-mixed`, forward passes run under autocast, as in Lightning.
    """

    def __init__(self, corpus: Corpus, overrides: Sequence[str], *, seed: int = 0) -> None:
        keep_freed_memory()
        torch.manual_seed(seed)
        self.cfg = compose(overrides)
        encoder = make_encoder(self.cfg)
        encoder.fit(corpus)
        self.tagger = build(self.cfg, encoder)
        self.optimizer = self.tagger.configure_optimizers()
        self.split: EncodedSplit = encoder.encode(corpus.splits["train"], CPU)

    def batches(self) -> list[Batch]:
        """Batches of the first epoch."""
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


class Clocked(EpochLog):
    """Callback that stores the seconds of the last epoch's training steps, by the benchmark's clock, in `spent`."""

    def on_train_epoch_start(self, *about: Any) -> None:
        super().on_train_epoch_start(*about)
        self.begun = timing.now()

    def on_validation_start(self, *about: Any) -> None:
        self.spent = timing.now() - self.begun


def made_up(sentences: int, length: int | range, types: int = 4, forms: int = WORDS) -> Corpus:
    """A corpus of random words and tags, with `length` tokens per sentence, or lengths drawn uniformly from a range.

    forms: number of word forms that are drawn; fewer are distinct.
    """
    draws = random.Random(0)
    words = ["".join(draws.choices("etaoinshrdlu", k=draws.randint(2, 10))) for _ in range(forms)]
    tags = ["O", *(f"{prefix}-T{kind}" for kind in range(types) for prefix in "BIES")]
    lengths = [length] * sentences if isinstance(length, int) else draws.choices(length, k=sentences)
    train = [
        Sentence(tuple(draws.choices(words, k=size)), tuple(draws.choices(tags, k=size))) for size in lengths
    ]
    return Corpus("made_up", "mentions", {"train": train}, "")


def operations(tagger: Tagger, batch: Batch) -> int:
    """Multiplications and additions in the matrix products of a training step, on a batch without padding.

    A recurrent layer takes two operations for each weight, token and direction forward. Backward it takes twice as
    many, for the gradients of its input and of its weights: 3 x 2 x 4n(n + m) per token in all, for an LSTM of n units
    that reads m numbers. All other operations are counted by PyTorch's counter, which does not see compiled kernels, so
    the CRF counts as 0.
    """
    tagger = copy.deepcopy(tagger).train()
    layers = outermost(tagger)
    of_layers = [replace(layer) for layer in layers]
    tagger(batch)
    with FlopCounterMode(display=False) as counter:
        tagger.decoder.loss(tagger(batch), batch.tags, batch.mask).backward()
    return sum(of_layer["operations"] for of_layer in of_layers) + counter.get_total_flops()


def outermost(module: nn.Module) -> list[nn.Module]:
    """The recurrent layers that are not part of another one."""
    if isinstance(module, RECURRENT):
        return [module]
    return [layer for child in module.children() for layer in outermost(child)]


def replace(layer: nn.Module) -> dict[str, int]:
    """Make the layer repeat its first output at no cost. Returns a dict that receives the operations of that call."""
    compute, about = layer.forward, {}
    weights = sum(weight.numel() for name, weight in layer.named_parameters() if "weight" in name)

    def forward(x: Tensor, *lengths: Tensor, **ways: bool) -> Any:
        if not about:
            output = compute(x, *lengths, **ways)
            about["states"] = (output[0] if isinstance(output, tuple) else output).detach()
            directions = len(x) if isinstance(layer, VariationalLSTMs) else 1
            about["operations"] = 3 * 2 * weights * (x.numel() // x.shape[-1] // directions)
        states = about["states"] + 0 * x.sum()  # depends on x, so that gradients reach the layers before
        return (states, None) if isinstance(layer, nn.RNNBase) else states

    layer.forward = forward
    return about
