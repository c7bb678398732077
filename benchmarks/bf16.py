"""bfloat16: the speedup of a step and of a decoding pass, and the cost in F1.

    python benchmarks/bf16.py [--threads N] [--rounds N] [--output FILE]

float32 against `trainer.precision=bf16-mixed`, in which forward passes run under autocast and only the CRF stays
in float32. Steps are on 32 sentences of 20 tokens, with models at their papers' sizes. F1 is that of whole runs,
three seeds for each precision, on toy English and, where NER_DATA_DIR has it, on the first sentences of CoNLL-2003.
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import timing
from tables import LSTM_MODULES, TASKS, Result, ms, ratio, table
from taggers import Trial, made_up

from ner_experiments.config.compose import compose
from ner_experiments.train import train

MEASURES = (*LSTM_MODULES, "training.trainer")

MODELS = {
    "bilstm": ["model=bilstm"],
    "parallel": ["model=parallel"],
    "residual": ["model=residual", "layers=4"],
}
PRECISIONS = {"float32": "32-true", "bf16": "bf16-mixed"}
CORPORA = {
    "toy_en": ["data=toy_en", "trainer.max_epochs=6"],
    "conll2003": ["data=conll2003", "data.max_sentences=800", "trainer.max_epochs=8"],
}
SMALL = ["model=bilstm", "model.hidden_size=100", "optimizer.lr=0.003"]
SEEDS = (1, 2, 3)


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    models = {}
    for name, overrides in list(MODELS.items())[: 1 if arguments.tiny else None]:
        models[name] = measure(overrides, arguments.rounds)
        for task in ("train", "decode"):
            timing.say(f"{name} {task}", models[name][task])
    scores = {}
    for name, overrides in CORPORA.items():
        if arguments.tiny:
            overrides = [*overrides, "trainer=smoke", "data.max_sentences=20"]
        try:
            scores[name] = compare([*overrides, f"runtime.threads={arguments.threads}"])
            print(f"{name}: {in_words(scores[name])}", flush=True)
        except (ValueError, OSError) as error:
            print(f"{name} is left out: {error}", flush=True)
    timing.write("bf16", {"rounds": arguments.rounds, "models": models, "scores": scores}, arguments.output)


def measure(overrides: list[str], rounds: int) -> dict[str, dict[str, timing.Times]]:
    corpus = made_up(32, 20)
    trials = {
        name: Trial(corpus, [*overrides, "batches=random", f"trainer.precision={precision}"])
        for name, precision in PRECISIONS.items()
    }
    (batch,) = trials["float32"].batches()
    times = {}
    for task in ("step", "decode"):
        runs = {name: partial(getattr(trial, task), batch) for name, trial in trials.items()}
        for run in runs.values():
            run()
        times["train" if task == "step" else task] = timing.measure(runs, rounds)
    return times


def compare(overrides: list[str]) -> dict[str, Any]:
    """Test F1 of the epoch that dev chose, seed by seed, for each precision."""
    return {
        name: [f1(overrides, precision, seed) for seed in SEEDS] for name, precision in PRECISIONS.items()
    }


def f1(overrides: list[str], precision: str, seed: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        further = [f"trainer.precision={precision}", f"seed={seed}", "runtime.progress=false"]
        cfg = compose([*SMALL, *overrides, *further, f"output_dir={Path(folder)}", "runtime.accelerator=cpu"])
        return float(train(cfg)["test"]["f1"])


def in_words(scores: dict[str, list[float]]) -> str:
    means = (f"{name} {100 * statistics.mean(f1s):.2f}" for name, f1s in scores.items())
    return f"mean test F1 {', '.join(means)}"


def tables(result: Result) -> list[str]:
    rows = [
        [
            f"{name}, {TASKS[task]}",
            ms(times["float32"]),
            ms(times["bf16"]),
            ratio(times["float32"], times["bf16"]),
        ]
        for name, found in result["models"].items()
        for task, times in found.items()
    ]
    scores = []
    for name, found in result["scores"].items():
        seeds = [", ".join(f"{100 * f1:.2f}" for f1 in found[kind]) for kind in ("float32", "bf16")]
        scores.append([name, *seeds, f"{100 * (mean(found['bf16']) - mean(found['float32'])):+.2f}"])
    return [
        table("model", "float32, ms", "bf16, ms", "gain", rows=rows),
        table("test F1, seed by seed", "float32", "bf16", "mean difference", rows=scores),
    ]


if __name__ == "__main__":
    main()
