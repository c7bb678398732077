"""One model trained and decoded by this suite, by plain PyTorch, by NCRF++ and by flair: tokens per second.

    python benchmarks/end_to_end.py [--ncrfpp CLONE] [--flair-python PYTHON] [--threads N] [--rounds N]

The model has a character BiLSTM and word vectors, a BiLSTM, and a CRF. It is trained by SGD, in batches of 32
sentences, on 2,000 generated sentences, and decodes 2,000 others. Each contestant is a process of its own with its
own unpatched code (see drivers/); all run in turn, round after round. The first epoch of a process and its first
decoding pass are warm-ups, and do not count. NCRF++ (a clone's folder) and flair (the Python of an environment that
has it) are left out if not given, plain PyTorch if there is no pytorch-crf.

The result, apart from where and when it was measured:

    model, data         the settings that all share, and the counts of the corpus
    contestants         by name: train_tokens_per_second, decode_tokens_per_second and peak_memory_bytes, each
                        {median, quartiles, runs}, where runs has a number per round; version; settings
    ratios              by name of one of ours: {train, decode, memory: {name of another: ratio}}: its tokens
                        per second over the other's, and the other's bytes over its own
    load                load of the machine, averaged over a minute, before each round: {median, quartiles, runs}
    equal, different    in what the programs' settings agree and differ, in words
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import timing
from drivers import corpus
from tables import CRF_MODULES, LSTM_MODULES, Result, at_least, spread, table

MEASURES = (*LSTM_MODULES, *CRF_MODULES, "tagger", "train")

DRIVERS = Path(__file__).parent / "drivers"
MODEL = {
    "word_dim": 100,
    "char_dim": 25,
    "char_hidden": 25,  # per direction
    "hidden": 100,  # per direction
    "dropout": 0.5,
    "batch": 32,
    "lr": 0.1,
}
DATA = {"sentences": 2000, "forms": 5000}
EPOCHS = 3
TINY = {"data": {"sentences": 8, "forms": 60}, "epochs": 2}

EQUAL = [
    "corpus; word vectors, all of them trained; characters unchanged, digits included",
    "layers and their widths; SGD without momentum or decay; dropout of the same rate on the BiLSTM's input"
    " and output; float32; 32 sentences a batch",
    "number of threads (OMP_NUM_THREADS); one process per contestant and round",
]
DIFFERENT = [
    "training: ours sorts sentences by length within pools of 20 batches; ours_random and all others do not",
    "decoding: ours, flair and plain PyTorch sort by length; NCRF++ does not, and records a graph for gradients",
    "ours_tokens has the suite's default batches: at most 512 tokens with padding, 2,048 in decoding",
    "decoding: our time includes all of scoring dev, F1 too; that of the others only computing the tags, in flair"
    " the spans",
    "gradients: clipped at a norm of 5 by ours, flair and plain PyTorch, but not by NCRF++",
    "loss: the mean over sentences; in flair the sum",
    "NCRF++ also applies dropout to the characters' vectors, and decodes during training to print an accuracy",
    "NCRF++ also scores a tag for padding; NCRF++ and flair score two more tags, for the start and end of a sentence",
    "words are looked up before the clock starts; flair looks them up in each epoch",
    "memory: ours keeps what a step frees for the next one (glibc's mallopt); the others return it to the kernel",
]


class Contestant(NamedTuple):
    name: str
    python: str
    arguments: list[str]
    """Arguments of the interpreter: the driver first."""


def main() -> None:
    parser = timing.options(__doc__, rounds=3)
    add_peers(parser)
    parser.add_argument(
        "--hidden", type=int, default=MODEL["hidden"], help="units of the BiLSTM per direction"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the contestants, only these")
    arguments, everyone = begin(parser)
    settings = {**MODEL, "hidden": arguments.hidden, "threads": arguments.threads}
    sizes = TINY if arguments.tiny else {"data": DATA, "epochs": EPOCHS}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tokens = corpus.write(place, **sizes["data"], dim=settings["word_dim"])
        (place / "settings.json").write_text(
            json.dumps({**settings, "epochs": sizes["epochs"]}), encoding="utf-8"
        )
        load, outcomes = take_turns(everyone, place, arguments)
    figures = {name: combined(runs, tokens) for name, runs in outcomes.items()}
    result = {
        "rounds": arguments.rounds,
        "model": {**settings, "optimizer": "SGD"},
        "data": {
            **sizes["data"],
            "tokens": tokens,
            "tags": 4 * len(corpus.TYPES) + 1,
            "epochs": sizes["epochs"],
        },
        "contestants": figures,
        "ratios": ratios(figures),
        "load": load,
        "equal": EQUAL,
        "different": DIFFERENT,
    }
    timing.write("end_to_end", result, arguments.output)


def add_peers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ncrfpp", type=Path, help="a clone of github.com/jiesutd/NCRFpp")
    parser.add_argument("--flair-python", type=Path, help="the Python of an environment with flair")


def begin(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[Contestant]]:
    """The options, and the contestants to run."""
    arguments = timing.begin(parser)
    if arguments.clock == "processor":
        parser.error("the drivers measure by the wall clock")
    everyone = contestants(arguments)
    if arguments.only is None:
        return arguments, everyone
    if not arguments.output:
        parser.error("--only measures a part of what results/ has: it takes --output")
    names = [one.name for one in everyone]
    if unknown := [name for name in arguments.only if name not in names]:
        parser.error(f"--only: there is no {unknown[0]}, but {', '.join(names)}")
    return arguments, [one for one in everyone if one.name in arguments.only]


def contestants(arguments: argparse.Namespace, *, on_gpu: bool = False) -> list[Contestant]:
    """The contestants that are installed. on_gpu: those of gpu.py."""
    driver = {path.stem.removeprefix("run_"): str(path) for path in DRIVERS.glob("run_*.py")}
    ours = {"": [], "_random": ["--batches=random"], "_tokens": ["--batches=tokens"]}
    if on_gpu:
        ours = {"": [], ", graphs": ["--graphs"]}
    available = [
        *(Contestant(f"ours{name}", sys.executable, [driver["ours"], *how]) for name, how in ours.items()),
        Contestant("pytorch", sys.executable, [driver["pytorch"]]),
    ]
    if arguments.ncrfpp:
        available.append(
            Contestant("ncrfpp", sys.executable, [driver["ncrfpp"], f"--ncrfpp={arguments.ncrfpp}"])
        )
    if arguments.flair_python:
        available.append(Contestant("flair", str(arguments.flair_python), [driver["flair"]]))
    if importlib.util.find_spec("torchcrf") is None:
        print("pytorch is left out: no pytorch-crf")
        available = [one for one in available if one.name != "pytorch"]
    return available


def take_turns(
    everyone: list[Contestant], folder: Path, arguments: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """The load before each round, and the outcomes of each contestant by round."""
    load: list[float] = []
    outcomes: dict[str, list[dict[str, Any]]] = {one.name: [] for one in everyone}
    for number in range(1, arguments.rounds + 1):
        load.append(os.getloadavg()[0])
        for one in everyone:
            outcome = run(one, folder, arguments.threads)
            outcomes[one.name].append(outcome)
            train, decode = (steady(outcome[key]) for key in ("train_seconds", "decode_seconds"))
            print(f"round {number}: {one.name}: train {train:.2f} s, decode {decode:.2f} s", flush=True)
    return with_runs(load), outcomes


def run(contestant: Contestant, folder: Path, threads: int, limit: float | None = None) -> dict[str, Any]:
    """Run a driver and return its outcome. Raises RuntimeError, with the process's stderr, if it failed.

    limit: seconds after which it is killed.
    """
    output = folder / "outcome.json"
    output.unlink(missing_ok=True)
    driver, *options = contestant.arguments
    command = [contestant.python, driver, str(folder), str(output), *options]
    how = {"env": environment(threads), "capture_output": True, "text": True, "timeout": limit}
    try:
        finished = subprocess.run(command, **how)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{contestant.name} takes more than {limit:.0f} s") from None
    if finished.returncode or not output.exists():
        raise RuntimeError(f"{contestant.name}: {' '.join(command)} failed:\n{finished.stderr}")
    return json.loads(output.read_text(encoding="utf-8"))


def environment(threads: int) -> dict[str, str]:
    """Environment variables of a driver, which imports this checkout's package, whether it is installed or not."""
    numbers = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    return {**os.environ, **numbers, "PYTHONPATH": str(DRIVERS.parent.parent)}


def combined(runs: list[dict[str, Any]], tokens: int) -> dict[str, Any]:
    return {
        "train_tokens_per_second": with_runs([tokens / steady(run["train_seconds"]) for run in runs]),
        "decode_tokens_per_second": with_runs([tokens / steady(run["decode_seconds"]) for run in runs]),
        "peak_memory_bytes": with_runs([run["peak_memory_bytes"] for run in runs]),
        "version": runs[0]["version"],
        "settings": runs[0]["settings"],
    }


def steady(seconds: list[float]) -> float:
    return statistics.median(seconds[1:])


def with_runs(values: list[float]) -> dict[str, Any]:
    return {**timing.summary(values), "runs": values}


def ratios(figures: dict[str, Any]) -> dict[str, Any]:
    def median(name: str, key: str) -> float:
        return figures[name][key]["median"]

    ours = [name for name in figures if name.startswith("ours")]
    others = [name for name in figures if name not in ours]
    return {
        mine: {
            "train": {
                name: median(mine, "train_tokens_per_second") / median(name, "train_tokens_per_second")
                for name in others
            },
            "decode": {
                name: median(mine, "decode_tokens_per_second") / median(name, "decode_tokens_per_second")
                for name in others
            },
            "memory": {
                name: median(name, "peak_memory_bytes") / median(mine, "peak_memory_bytes") for name in others
            },
        }
        for mine in ours
    }


def tables(result: Result) -> list[str]:
    rows = [
        [
            name,
            *(spread(found[f"{task}_tokens_per_second"]) for task in ("train", "decode")),
            f"{found['peak_memory_bytes']['median'] / 1e6:,.0f}",
        ]
        for name, found in result["contestants"].items()
    ]
    lists = [
        "\n".join([f"{title.capitalize()}:", "", *(f"- {line}" for line in result[title])])
        for title in ("equal", "different")
    ]
    return [table("", "training, tokens/s", "decoding, tokens/s", "peak memory, MB", rows=rows), *lists]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    """Limit: the figure if the matrix products of the LSTMs ran at the machine's rate."""
    parts, gains = results["time_breakdown"], results["end_to_end"]["ratios"]["ours"]
    model, rate = parts["models"]["the model of end_to_end.py"], parts["rate"]
    for task, peer, least in (
        ("train", "ncrfpp", 8),
        ("train", "flair", 16),
        ("train", "pytorch", 3),
        ("decode", "ncrfpp", 10),
        ("decode", "flair", 12),
        ("decode", "pytorch", 2),
    ):
        if peer in gains[task]:
            verb = "training" if task == "train" else "decoding"
            gain, limit = gains[task][peer], gains[task][peer] * at_best(model, task, rate)
            yield at_least(f"end to end against {peer}, {verb}", least, gain, limit)


def at_best(model: Result, task: str, rate: float) -> float:
    """Gain of the whole if the products of its recurrent layers ran at the rate of two large matrices.

    A forward pass has a third of the products of training.
    """
    whole, layers = (model[task][part]["median"] for part in ("whole", "recurrent layers"))
    products = model["operations"] / rate / (1 if task == "train" else 3)
    return whole / (whole - layers + products)


if __name__ == "__main__":
    main()
