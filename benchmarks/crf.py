"""The CRF against other libraries': loss with gradient, and decoding, on 24 shapes of ragged batches.

    python benchmarks/crf.py [--threads N] [--rounds N] [--peers NAME ...] [--output FILE]

All run in turn, round after round, in one process with the same number of threads, after their results were
found equal. A ratio is the median of a peer's times over the median of ours.
"""

import argparse
import importlib.metadata
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from crf_peers import PEERS, Contestant, Problem, ours
from torch import Tensor

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Transitions
from ner_experiments.modules.forward_backward import sequence_score

BATCHES, TIMES, TAGS = (16, 64), (16, 50, 128), (9, 17, 37, 73)
LARGEST = 5e6
"""Pairs of tags in a batch; torch-struct, which keeps several arrays of this size, gets no larger ones."""
SLOW = 1.0
"""Seconds above which a peer is run once."""
PACKAGES = ("torch", "numba", "llvmlite", "numpy", "pytorch-crf", "torch-struct", "flair")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    names = [name for name in arguments.peers if is_found(name)]
    shapes = []
    for batch, length, tags in itertools.product(BATCHES, TIMES, TAGS):
        shapes.append({"batch": batch, "time": length, "tags": tags})
        shapes[-1] |= measure_shape(batch, length, tags, names, arguments.rounds)
        print(in_words(shapes[-1]), flush=True)
    ratios = {task: {name: ratios_of(shapes, task, name) for name in names} for task in ("loss", "decode")}
    print_ratios(ratios)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        result = {**circumstances(), "rounds": arguments.rounds, "ratios": ratios, "shapes": shapes}
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def is_found(name: str) -> bool:
    try:
        PEERS[name](CRF(num_tags=2))
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return False
    return True


def measure_shape(batch: int, length: int, tags: int, names: list[str], rounds: int) -> dict[str, Any]:
    """Seconds of each contestant: {"loss": {name: {"median": ..., "quartiles": [...]}}, "decode": ...}."""
    torch.manual_seed(0)
    crf = CRF(num_tags=tags)
    problem = make_problem(batch, length, tags)
    if batch * length * tags**2 > LARGEST:
        names = [name for name in names if name != "torch-struct"]
    contestants = [ours(crf), *(PEERS[name](crf) for name in names)]
    check_equal(crf, problem, contestants)
    losses = {c.name: derived(c, problem) for c in contestants}
    decoders = {c.name: decoded(c, problem) for c in contestants if c.decode}
    return {"loss": measure(losses, rounds), "decode": measure(decoders, rounds)}


def make_problem(batch: int, length: int, tags: int) -> Problem:
    """Lengths are uniform from 1 to `length`, which occurs."""
    lengths = torch.randint(1, length + 1, (batch, 1))
    lengths[0] = length
    scores = torch.randn(batch, length, tags, requires_grad=True)
    return Problem(scores, torch.randint(tags, (batch, length)), torch.arange(length) < lengths)


def derived(contestant: Contestant, problem: Problem) -> Callable[[], Tensor]:
    def run() -> Tensor:
        for tensor in (problem.scores, *contestant.weights):
            tensor.grad = None
        loss = contestant.loss(problem)
        loss.backward()
        return loss

    return run


def decoded(contestant: Contestant, problem: Problem) -> Callable[[], object]:
    @torch.no_grad()
    def run() -> object:
        return contestant.decode(problem)

    return run


def check_equal(crf: CRF, problem: Problem, contestants: list[Contestant]) -> None:
    """Loss, gradient by the scores, and the score of the decoded tags, within float32's rounding."""
    found = []
    for contestant in contestants:
        loss = derived(contestant, problem)()
        found.append([loss.detach(), problem.scores.grad])
        if contestant.decode:
            tags = as_tensor(decoded(contestant, problem)(), problem.mask)
            transitions = Transitions(crf.start, crf.transitions, crf.end)
            found[-1].append(sequence_score(problem.scores, tags, problem.mask, transitions).detach())
        for theirs, right in zip(found[-1], found[0], strict=False):
            torch.testing.assert_close(theirs, right, rtol=1e-4, atol=1e-4, msg=f"{contestant.name} differs")


def as_tensor(tags: Any, mask: Tensor) -> Tensor:
    if not isinstance(tags, Tensor):
        tags = torch.tensor([[*sentence, *[0] * (mask.shape[1] - len(sentence))] for sentence in tags])
    return tags.masked_fill(~mask, 0)


def measure(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            if not (seconds[name] and seconds[name][0] > SLOW):
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
    return {name: summary(times) for name, times in seconds.items()}


def summary(times: list[float]) -> dict[str, Any]:
    quartiles = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return {"median": statistics.median(times), "quartiles": [quartiles[0], quartiles[2]]}


def ratios_of(shapes: list[dict[str, Any]], task: str, name: str) -> dict[str, float] | None:
    pairs = [(shape[task][name], shape[task]["ours"]) for shape in shapes if name in shape[task]]
    ratios = [theirs["median"] / mine["median"] for theirs, mine in pairs]
    if not ratios:
        return None
    return {"worst": min(ratios), "median": statistics.median(ratios), "best": max(ratios)}


def in_words(shape: dict[str, Any]) -> str:
    def parts() -> Iterator[str]:
        yield f"{shape['batch']:3} x {shape['time']:3} x {shape['tags']:2}"
        for task in ("loss", "decode"):
            times = (f"{name} {found['median'] * 1e3:.3g}" for name, found in shape[task].items())
            yield f"{task} [ms]: {', '.join(times)}"

    return " | ".join(parts())


def print_ratios(ratios: dict[str, dict[str, dict[str, float] | None]]) -> None:
    for task, title in {"loss": "loss and gradient", "decode": "decoding"}.items():
        print(f"\nTimes of ours that others take for {title}:  worst  median  best")
        for name, found in ratios[task].items():
            if found:
                print(f"{name:14}" + "".join(f"{found[key]:8.1f}" for key in ("worst", "median", "best")))


def circumstances() -> dict[str, Any]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": cpu(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": versions,
    }


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()


if __name__ == "__main__":
    main()
