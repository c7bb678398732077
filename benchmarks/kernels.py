"""Rows of the published tables with and without the numba kernels: training and decoding, end to end.

    NER_DATA_DIR=DATA python benchmarks/kernels.py [--threads N] [--rounds N] [--output FILE]

Each row is the paper's experiment at the paper's sizes, except that word vectors are random, on batches sampled from an
epoch of its corpus. One model runs in turn with all kernels, with PyTorch's CRF (`modules/forward_backward.py`,
`modules/decoding.py`), with PyTorch's LSTM (oneDNN where it can compute the layer, else a loop over time steps), and
with both. Losses are checked to be equal first. Rows whose corpus NER_DATA_DIR lacks are left out.
"""

import argparse
import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import timing
import torch
from hydra.utils import instantiate
from tables import CRF_MODULES, LSTM_MODULES, Result, figure, ratio, table
from taggers import Trial, made_up

from ner_experiments.config.compose import compose
from ner_experiments.data.batches import EVALUATION, Plan
from ner_experiments.data.corpus import load
from ner_experiments.data.encoder import Batch
from ner_experiments.modules import lstm
from ner_experiments.modules.kernels import cpu

MEASURES = (*LSTM_MODULES, *CRF_MODULES)

ROWS = {
    "Huang et al. (2015), table 2, BI-LSTM-CRF, NER": ["paper=huang2015", "data=conll2003", "direct=ner"],
    "Huang et al. (2015), table 2, CRF, NER": [
        *("paper=huang2015", "data=conll2003", "direct=ner", "model=none", "words=none")
    ],
    "Huang et al. (2015), table 2, CRF, chunks": [
        *("paper=huang2015", "data=conll2000", "direct=chunking", "model=none", "words=none")
    ],
    "Yang & Xu (2020), table 12, residual, 4 layers, MSRA": ["paper=yang2020", "data=msra"],
    "Yang & Xu (2020), table 4, residual, 4 layers, CoNLL-2003": [
        *("paper=yang2020_en", "data=conll2003", "words=random", "words.module.dim=100")
    ],
    "Li et al. (2020), table 1, Att, WNUT": [
        *("paper=li2020", "data=wnut17", "model=attention", "words=random", "words.module.dim=300")
    ],
    "Zukov-Gregoric et al. (2018), table 3, 16 x 64": [
        *("paper=zukov2018", "data=conll2003", "words=random", "words.module.dim=100")
    ],
}
TRAIN_TOKENS, DECODE_TOKENS = 4_000, 10_000
CONTESTANTS = {
    "kernels": (),
    "PyTorch's CRF": ("crf",),
    "PyTorch's LSTM": ("lstm",),
    "PyTorch's CRF and LSTM": ("crf", "lstm"),
}


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    result: dict[str, Any] = {"rounds": arguments.rounds, "rows": {}, "left_out": []}
    for name, overrides in ROWS.items():
        try:
            result["rows"][name] = measure_row(overrides, arguments)
        except ValueError as error:  # no such file
            print(f"{name} is left out: {error}", flush=True)
            result["left_out"].append(name)
            continue
        for task in ("train", "decode"):
            timing.say(f"{name}, {task}", result["rows"][name][task])
    timing.write("kernels", result, arguments.output)


def measure_row(overrides: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    cfg = compose(overrides)
    corpus = made_up(8, range(2, 9)) if arguments.tiny else load(instantiate(cfg.data))
    trial = Trial(corpus, overrides)
    plan = instantiate(cfg.batches).plan(trial.split.lengths, np.random.default_rng(0))
    train = sample(trial, plan, TRAIN_TOKENS)
    decode = sample(trial, EVALUATION.in_order(trial.split.lengths), DECODE_TOKENS)
    check_losses(trial, train[:2])
    return {
        "tokens": {"train": num_tokens(train), "decode": num_tokens(decode)},
        "train": timing.measure(contestants(trial.step, train), arguments.rounds),
        "decode": timing.measure(contestants(trial.decode, decode), arguments.rounds),
    }


def sample(trial: Trial, plan: Plan, tokens: int) -> list[Batch]:
    """Random batches of the plan, until they have this many tokens in total."""
    batches: list[Batch] = []
    for number in np.random.default_rng(0).permutation(len(plan)):
        if num_tokens(batches) >= tokens:
            break
        batches.append(trial.split.batch(plan[number]))
    return batches


def num_tokens(batches: list[Batch]) -> int:
    return sum(int(batch.lengths.sum()) for batch in batches)


def contestants(run: Callable[[Batch], object], batches: list[Batch]) -> Mapping[str, Callable[[], object]]:
    def epoch(off: tuple[str, ...]) -> None:
        with without(*off):
            for batch in batches:
                run(batch)

    runs = {name: partial(epoch, off) for name, off in CONTESTANTS.items()}
    for each in runs.values():
        each()  # compiles kernels, fills caches
    return runs


@contextmanager
def without(*kernels: str) -> Iterator[None]:
    """Switch off the named kernels, so that PyTorch does their work."""
    available = cpu.supports_crf
    with (
        patch.object(cpu, "supports_lstm", lambda x: "lstm" not in kernels and available(x)),
        patch.object(cpu, "supports_crf", lambda x: "crf" not in kernels and available(x)),
        patch.object(lstm, "onednn_is_faster", onednn_can if "lstm" in kernels else lstm.onednn_is_faster),
    ):
        yield


def onednn_can(x: Any, lengths: Any, weights: lstm.Weights, backwards: Any) -> bool:
    """Whether oneDNN can compute the layer, and faster than a loop, which runs many small units at once."""
    _, units, _, size = weights.recurrent.shape
    return weights.peepholes is None and (units == 1 or size >= 64)


def check_losses(trial: Trial, batches: list[Batch]) -> None:
    tagger = copy.deepcopy(trial.tagger).eval()
    for batch in batches:
        losses = []
        for off in CONTESTANTS.values():
            with without(*off), torch.no_grad():
                losses.append(tagger.decoder.loss(tagger(batch), batch.tags, batch.mask))
        torch.testing.assert_close(losses, len(losses) * [losses[0]], rtol=1e-4, atol=1e-4)


def tables(result: Result) -> list[str]:
    others = ("PyTorch's CRF", "PyTorch's LSTM", "PyTorch's CRF and LSTM")
    rows = []
    for name, row in result["rows"].items():
        for task, title in (("train", "training"), ("decode", "decoding")):
            times = row[task]
            rate = figure(row["tokens"][task] / times["kernels"]["median"])
            rows.append(
                [f"{name}: {title}", rate, *(ratio(times[other], times["kernels"]) for other in others)]
            )
    return [table("", "with kernels, tokens/s", *(f"{other}, times ours" for other in others), rows=rows)]


if __name__ == "__main__":
    main()
