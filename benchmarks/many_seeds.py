"""K seeds of a BiLSTM-CRF trained as one model over K seeds, against K models that take turns, in one process.

    python benchmarks/many_seeds.py [--threads N] [--rounds N] [--output FILE]

This is a prototype, not part of the suite. The stacked model has a dimension of K before the others in its word
vectors, LSTM weights and output layer, so that one call of the suite's LSTM kernels, one product per layer and one step
of Adam serve all seeds; each seed has gradients clipped by a norm of its own. The weights of both after three steps are
first checked to be equal up to rounding; `equal_bits` says whether they are the same.

All seeds read the same sentences, which favors the stack. With separate batches, sentences of different lengths would
share a step; `own_batches` is the resulting number of tokens, padding included, per real token.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import timing
import torch
from hydra.utils import instantiate
from tables import LSTM_MODULES, Result, ms, ratio, table
from taggers import Trial, made_up
from torch import Tensor, nn

from ner_experiments.data.encoder import Batch
from ner_experiments.modules.lstm import Weights, lstm_states

MEASURES = LSTM_MODULES

SIZES, BATCHES, SEEDS = (25, 50, 100, 300), (10, 32), (2, 8)
"""Units for each direction, sentences per batch, and seeds."""
SENTENCES, LENGTHS = 320, range(2, 29)
STEPS = 3
"""Steps after which the weights are compared."""


class Stack:
    """K taggers as one: parameters stacked along a first dimension, and the optimizer of all."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.clip = float(trials[0].cfg.trainer.gradient_clip)
        taggers = [trial.tagger for trial in trials]
        self.words = stacked([tagger.get_parameter("inputs.words.vectors") for tagger in taggers])
        cells = [module for tagger in taggers for module in tagger.modules() if isinstance(module, nn.LSTM)]
        layers = [cell.all_weights[0] for cell in cells]  # of each seed forward, then backward
        self.input, self.recurrent, *self.biases = (
            stacked([layer[part] for layer in layers]) for part in range(4)
        )
        self.output = stacked([tagger.output.weight for tagger in taggers])
        self.bias = stacked([tagger.output.bias for tagger in taggers])
        self.decoders = [tagger.decoder for tagger in taggers]
        of_seed = [self.words, self.input, self.recurrent, *self.biases, self.output, self.bias]
        crfs = [parameter for decoder in self.decoders for parameter in decoder.parameters()]
        self.of_seed = of_seed
        self.parameters = [*of_seed, *crfs]
        self.optimizer = trials[0].tagger.optimizer_of(self.parameters)

    def scores(self, batch: Batch) -> Tensor:
        """Tag scores of every seed: [seed batch time tags]."""
        seeds, words, size = self.words.shape
        rows = batch.inputs["words"] + words * torch.arange(seeds)[:, None]
        x = nn.functional.embedding(rows, self.words.flatten(0, 1))[:, batch.places["words"]]
        shape = batch.mask.shape
        both = x[:, None].expand(-1, 2, *shape, size).flatten(0, 1)
        parts = (self.input, self.recurrent, self.biases[0] + self.biases[1])
        weights = Weights(*(part[:, None] for part in parts))
        states = lstm_states(both, batch.lengths, weights, backwards=(False, True) * seeds)[..., 0, :]
        states = states.view(seeds, 2, *shape, -1).movedim(1, 3).flatten(3)
        return torch.baddbmm(self.bias[:, None], states.flatten(1, 2), self.output.mT).view(seeds, *shape, -1)

    def step(self, batch: Batch) -> None:
        self.optimizer.zero_grad()
        scores = self.scores(batch)
        losses = [
            decoder.loss(of_seed, batch.tags, batch.mask)
            for decoder, of_seed in zip(self.decoders, scores, strict=True)
        ]
        torch.stack(losses).sum().backward()
        self.clip_gradients()
        self.optimizer.step()

    def clip_gradients(self) -> None:
        """Clip the gradients of each seed by their norm, as `nn.utils.clip_grad_norm_` does for one seed."""
        seeds = len(self.decoders)
        parts = [parameter.grad.view(seeds, -1) for parameter in self.of_seed if parameter.grad is not None]
        norms = [part.norm(dim=1) for part in parts]
        crfs = [[p.grad for p in decoder.parameters() if p.grad is not None] for decoder in self.decoders]
        norms.append(torch.stack([torch.nn.utils.get_total_norm(gradients) for gradients in crfs]))
        factors = (self.clip / (torch.stack(norms).norm(dim=0) + 1e-6)).clamp(max=1)
        for part in parts:
            part *= factors[:, None]
        for gradients, factor in zip(crfs, factors, strict=True):
            torch._foreach_mul_(gradients, factor)


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=7))
    cases = []
    for size, batch, seeds in [(4, 10, 2)] if arguments.tiny else itertools.product(SIZES, BATCHES, SEEDS):
        sentences = 30 if arguments.tiny else SENTENCES
        cases.append(measure_case(size, batch, seeds, sentences, arguments.rounds))
        timing.say(f"{size} units, {batch} sentences, {seeds} seeds", cases[-1]["train"])
    timing.write("many_seeds", {"rounds": arguments.rounds, "cases": cases}, arguments.output)


def measure_case(size: int, batch: int, seeds: int, sentences: int, rounds: int) -> dict[str, Any]:
    """Seconds of an epoch of all seeds: in turns, and stacked."""
    make = partial(make_trials, size, batch, seeds, sentences)
    trials, stack = make(), Stack(make())
    batches = trials[0].batches()
    equal = compare(trials, stack, batches[:STEPS])
    runs = {
        "in turns": partial(epoch, [trial.step for trial in trials], batches),
        "stacked": partial(epoch, [stack.step], batches),
    }
    return {
        "size": size,
        "sentences": batch,
        "seeds": seeds,
        "equal_bits": equal,
        "own_batches": with_own_batches(trials),
        "train": timing.measure(runs, rounds),
    }


def make_trials(size: int, batch: int, seeds: int, sentences: int) -> list[Trial]:
    """Taggers that differ in their seed. No dropout, since the stack would draw its masks in another order."""
    overrides = [
        *("chars=none", "words.module.replace_singletons=0", "batches=sentences"),
        f"batches.sentences={batch}",
        *("model=bilstm", f"model.hidden_size={size}", "model.dropout=0"),
    ]
    corpus = made_up(sentences, LENGTHS)
    return [Trial(corpus, overrides, seed=seed) for seed in range(seeds)]


def compare(alone: Sequence[Trial], stack: Stack, batches: Sequence[Batch]) -> bool:
    """Whether the steps of both give equal bits. Raises AssertionError if they differ by more than rounding."""
    epoch([trial.step for trial in alone], batches)
    epoch([stack.step], batches)
    expected = Stack(alone)
    torch.testing.assert_close(stack.parameters, expected.parameters, rtol=1e-3, atol=1e-4)
    return all(map(torch.equal, stack.parameters, expected.parameters))


def with_own_batches(trials: Sequence[Trial]) -> float:
    """Processed tokens per real token if each seed drew its own batches.

    The n-th longest sentences of all seeds are then padded to one length.
    """
    plans = []
    for seed, trial in enumerate(trials):
        lengths = trial.split.lengths
        plan = instantiate(trial.cfg.batches).plan(lengths, np.random.default_rng(seed))
        plans.append([sorted(lengths[sentences], reverse=True) for sentences in plan])
    steps = [list(itertools.zip_longest(*batches, fillvalue=0)) for batches in zip(*plans, strict=True)]
    longest = sum(max(place) for step in steps for place in step)
    return float(len(trials) * longest / sum(sum(place) for step in steps for place in step))


def epoch(steps: Sequence[Any], batches: Sequence[Batch]) -> None:
    for step in steps:
        for batch in batches:
            step(batch)


def stacked(parameters: Sequence[Tensor]) -> nn.Parameter:
    return nn.Parameter(torch.stack([*parameters]).detach())


def tables(result: Result) -> list[str]:
    rows = [
        [
            *(str(case[key]) for key in ("size", "sentences", "seeds")),
            *(ms(case["train"][name]) for name in ("in turns", "stacked")),
            ratio(case["train"]["in turns"], case["train"]["stacked"]),
            "yes" if case["equal_bits"] else "no",
            f"{case['own_batches']:.2f}",
        ]
        for case in result["cases"]
    ]
    head = ("units", "sentences", "seeds", "in turns, ms", "stacked, ms", "gain", "equal bits", "own batches")
    return [table(*head, rows=rows)]


if __name__ == "__main__":
    main()
