"""Training steps compared with the machine's limit, for each architecture at its paper's sizes.

    python benchmarks/machine_limit.py [--threads N] [--rounds N] [--output FILE]

A step is forward, backward and Adam on 32 sentences of 20 tokens, with word vectors of 100 numbers, a character CNN
and a CRF. The limit is the operations that a product of two large float32 matrices would have done in the time of a
step, measured in the same rounds with the same threads. A step's share of it counts the operations of the step's matrix
products (`taggers.operations`).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import timing
import torch
from tables import LSTM_MODULES, Result, at_least, ms, table
from taggers import Trial, made_up, operations

from ner_experiments.config.config_dirs import names

MEASURES = (*LSTM_MODULES, "models.residual")

SENTENCES, LENGTH = 32, 20
DEEP = 4
"""Number of layers of Yang & Xu's (2020) models. Those of Li et al. (2020) have two, which is the default."""
SQUARE = 2048


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    models = {}
    for name in ["bilstm", "parallel", "cross"] if arguments.tiny else names("model"):
        models[name] = measure_model(name, 128 if arguments.tiny else SQUARE, arguments.rounds)
        figures = models[name]
        print(f"{name}: {in_words(figures)}", flush=True)
    result = {"rounds": arguments.rounds, "tokens": SENTENCES * LENGTH, "models": models}
    timing.write("machine_limit", result, arguments.output)


def measure_model(name: str, square: int, rounds: int) -> dict[str, Any]:
    deep = name.startswith("residual") or name == "stacked"
    corpus = made_up(SENTENCES, LENGTH)
    trial = Trial(
        corpus, [f"model={name}", "batches=random", "chars=cnn", *([f"layers={DEEP}"] if deep else [])]
    )
    (batch,) = trial.batches()
    matrix = torch.randn(square, square)
    runs = {
        "product": partial(torch.mm, matrix, matrix),
        "train": partial(trial.step, batch),
        "decode": partial(trial.decode, batch),
    }
    for run in runs.values():
        run()
    times = timing.measure(runs, rounds)
    useful, rate = operations(trial.tagger, batch), 2 * square**3 / times["product"]["median"]
    return {
        "operations": useful,
        "rate": rate,
        "share": useful / times["train"]["median"] / rate,
        "tokens_per_second": {
            task: int(batch.lengths.sum()) / times[task]["median"] for task in ("train", "decode")
        },
        "seconds": times,
    }


def in_words(figures: dict[str, Any]) -> str:
    tokens = figures["tokens_per_second"]
    return (
        f"{figures['operations'] / 1e9:.2f} GFLOP, {figures['share']:.0%} of {figures['rate'] / 1e9:.0f} GFLOP/s, "
        f"{tokens['train']:,.0f} tokens/s in training, {tokens['decode']:,.0f} in decoding"
    )


def tables(result: Result) -> list[str]:
    rows = [
        [
            name,
            f"{found['operations'] / 1e9:.2f}",
            ms(found["seconds"]["train"]),
            f"{found['rate'] / 1e9:.0f}",
            f"{found['share']:.0%}",
            *(f"{found['tokens_per_second'][task]:,.0f}" for task in ("train", "decode")),
        ]
        for name, found in result["models"].items()
    ]
    head = ("GFLOP a step", "step, ms", "limit, GFLOP/s", "share of it", "tokens/s, training", "decoding")
    return [table("model", *head, rows=rows)]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    share = 100 * results["machine_limit"]["models"]["residual"]["share"]
    what = "rate of a training step of `model=residual` (4 layers of size 300), as a share of a large product's rate"
    yield at_least(what, 65, share, 100, unit=" %")


if __name__ == "__main__":
    main()
