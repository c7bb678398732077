"""Many runs, a large corpus, a long sentence, and many tag types: seconds and memory where others give up.

    python benchmarks/growth.py [--threads N] [--rounds N] [--clock processor] [--output FILE]

- Runs: a sweep of 20 rows is trained for two steps, and each run copied to 100 seeds with other scores. Measured are
  `table`, `watch --once` and `report` of the sweep.
- Corpus: a file of a million sentences of 5 to 20 random words, read, encoded, and held in memory.
- Sentence: one of up to 50,000 tokens, tagged by the default BiLSTM-CRF.
- Types: loss with gradient, and decoding, of the default tagger with up to 1,000 types (4,001 tags in BIOES), on 32
  sentences of 20 tokens.

A process of its own measures each; memory is what its peak adds to the libraries.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timing
import torch
from hydra.utils import instantiate
from tables import Result, at_least, at_most, figure, spread, table
from taggers import CPU, Trial, made_up

from ner_experiments.config.compose import compose
from ner_experiments.data.corpus import load
from ner_experiments.experiment_data import make_encoder
from ner_experiments.runs import artifacts
from ner_experiments.utils.files import sha256

MEASURES = ("data.corpus", "data.encoder", "report.write", "runs.status", "tables.scores")

ROOT = timing.FOLDER.parent
SWEEP = ["model=stacked,residual", "layers=range(1,11)", "model.hidden_size=10", "trainer=smoke"]


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=3))
    tiny, threads = arguments.tiny, arguments.threads
    seeds, sentences = (2, 1000) if tiny else (100, 1_000_000)
    lengths, types = ((100, 200), (1, 2)) if tiny else ((12_500, 25_000, 50_000), (10, 100, 1000))
    with tempfile.TemporaryDirectory() as folder:
        runs = measure_runs(Path(folder) / "outputs", seeds, arguments.rounds)
        corpus = measure_corpus(Path(folder), sentences, threads)
    result = {
        "rounds": arguments.rounds,
        "runs": runs,
        "corpus": corpus,
        "sentence": [{"tokens": n} | timing.alone(prepared_sentence, n, threads=threads) for n in lengths],
        "types": [{"types": n} | timing.alone(prepared_types, n, threads=threads) for n in types],
    }
    timing.write("growth", result, arguments.output)


def measure_runs(output: Path, seeds: int, rounds: int) -> dict[str, Any]:
    settings = [f"output_dir={output}", "runtime.progress=false"]
    run(["run.py", "-m", *SWEEP, *settings, "hydra/launcher=basic"])
    for path in output.glob("*/seed-1"):
        for seed in range(2, 1 + seeds):
            copy_run(path, seed)
    suite, sweep = ["-m", "ner_experiments"], [*SWEEP, f"seed=range(1,{1 + seeds})"]
    commands = {
        "table": [*suite, "table", *sweep, "--output", str(output)],
        "watch --once": [*suite, "watch", *sweep, "--once", "--output", str(output)],
        "report": [
            *suite,
            "report",
            *sweep,
            "--runs",
            str(output),
            "--output",
            str(output.parent / "report"),
        ],
    }
    times = timing.measure({name: partial(run, each) for name, each in commands.items()}, rounds)
    timing.say("runs", times)
    return {"number": len(list(output.glob("*/seed-*"))), "commands": times}


def run(command: list[str]) -> None:
    """Run a command of the suite. A report starts from nothing, as it would otherwise find its pages unchanged."""
    if "report" in command:
        shutil.rmtree(command[-1], ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def copy_run(run: Path, seed: int) -> None:
    """Copy a run to another seed, with scores drawn by the seed."""
    copy = run.with_name(f"seed-{seed}")
    shutil.copytree(run, copy)
    config = copy / artifacts.CONFIG
    config.write_text(
        config.read_text(encoding="utf-8").replace("seed: 1\n", f"seed: {seed}\n"), encoding="utf-8"
    )
    path = copy / artifacts.METRICS_FILE
    metrics = json.loads(path.read_text(encoding="utf-8"))
    metrics.pop(artifacts.CHECKSUM)
    metrics["seed"] = seed
    metrics["files"][artifacts.CONFIG] = sha256(config)
    metrics["test"]["f1"] = metrics["dev"]["f1"] = random.Random(f"{run} {seed}").gauss(0.8, 0.01)
    path.write_text(json.dumps(artifacts.add_checksum(metrics)), encoding="utf-8")


def measure_corpus(folder: Path, sentences: int, threads: int) -> dict[str, Any]:
    draws = random.Random(0)
    lines = [f"{''.join(draws.choices('etaoinshrdlu', k=draws.randint(2, 10)))} " for _ in range(50_000)]
    tags = ["O"] * 17 + ["B-PER", "B-LOC", "B-ORG"]
    for split, number in {"train": sentences, "dev": 100}.items():
        with (folder / f"{split}.conll").open("w", encoding="utf-8") as file:
            for _ in range(number):
                size = draws.randint(5, 20)
                pairs = zip(draws.choices(lines, k=size), draws.choices(tags, k=size), strict=True)
                file.write("\n".join(map("".join, pairs)) + "\n\n")
    measured = timing.alone(prepared_corpus, str(folder), threads=threads)
    result = {
        "sentences": sentences,
        **measured["result"],
        "seconds": measured["seconds"],
        "bytes": measured["bytes"],
    }
    print(f"corpus: {result}", flush=True)
    return result


def prepared_corpus(folder: str) -> Callable[[], dict[str, int]]:
    files = [f"data.files.{split}={folder}/{split}.conll" for split in ("train", "dev")]
    cfg = compose(["data=conll", "data.name=large", *files, "chars=none"])
    before = timing.resident()

    def run() -> dict[str, int]:
        corpus, encoder = load(instantiate(cfg.data)), make_encoder(cfg)
        encoder.fit(corpus)
        split = encoder.encode(corpus.splits["train"], CPU)
        return {"tokens": int(sum(split.lengths)), "held": timing.resident() - before}

    return run


def prepared_sentence(tokens: int) -> Callable[[], None]:
    trial = Trial(made_up(1, tokens), ["model=bilstm"])
    small = Trial(made_up(1, 10), ["model=bilstm"])
    small.decode(small.batches()[0])

    def run() -> None:
        trial.decode(trial.split.batch(np.array([0])))

    return run


def prepared_types(types: int) -> Callable[[], dict[str, float]]:
    trial = Trial(made_up(32, 20, types), ["model=bilstm", "batches=random"])
    (batch,) = trial.batches()
    small = Trial(made_up(1, 10), ["model=bilstm"])
    small.step(small.batches()[0])

    def run() -> dict[str, float]:
        steps = {"step": lambda: trial.step(batch), "decode": lambda: trial.decode(batch)}
        return {name: times["median"] for name, times in timing.measure(steps, 1).items()}

    return run


def tables(result: Result) -> list[str]:
    runs, corpus = result["runs"], result["corpus"]
    rows = [[name, spread(times)] for name, times in runs["commands"].items()]
    rate, share = corpus["tokens"] / corpus["seconds"], corpus["bytes"] / corpus["held"]
    read = [
        [
            f"{corpus['sentences']:,} sentences, {corpus['tokens']:,} tokens",
            figure(corpus["seconds"]),
            figure(rate),
        ]
    ]
    read[0] += [figure(corpus["held"] / 1e6), f"{share:.2f}"]
    sentences = [
        [f"{one['tokens']:,}", figure(one["seconds"]), figure(one["bytes"] / 1e6)]
        for one in result["sentence"]
    ]
    types = [
        [
            f"{one['types']:,}",
            *(figure(1e3 * one["result"][task]) for task in ("step", "decode")),
            figure(one["bytes"] / 1e6),
        ]
        for one in result["types"]
    ]
    return [
        table(f"a sweep of {runs['number']:,} finished runs", "seconds", rows=rows),
        table("reading and encoding", "seconds", "tokens/s", "MB held", "peak over held", rows=read),
        table("tokens of a sentence that is tagged", "seconds", "MB", rows=sentences),
        table("types of a BiLSTM-CRF", "ms a training step", "ms decoding", "MB", rows=types),
    ]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    runs, corpus = (results["growth"][part] for part in ("runs", "corpus"))
    for name, most in (("table", 5), ("watch --once", 3), ("report", 10)):
        what = f"`{name}` of a sweep of {runs['number']:,} finished runs"
        yield at_most(what, most, " s", runs["commands"][name]["median"])
    what, rate = f"a corpus of {corpus['sentences']:,} sentences", corpus["tokens"] / corpus["seconds"]
    yield at_least(f"{what}, read and encoded, thousands of tokens a second", 500, rate / 1000, unit="")
    yield at_most(
        f"{what}, peak memory against the memory kept", 1.5, " times", corpus["bytes"] / corpus["held"]
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
