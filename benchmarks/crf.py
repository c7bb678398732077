"""The CRF against other libraries': loss with gradient, and decoding, on 24 shapes of ragged batches.

    python benchmarks/crf.py [--threads N] [--rounds N] [--peers NAME ...] [--output FILE]

All run in turn, round after round, in one process with the same number of threads, after their results were
found equal; a peer with other results is left out of the shape, and named. A ratio is the median of its times
over that of ours.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import timing
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
TASKS = {"loss": "loss and gradient", "decode": "decoding"}


def main() -> None:
    parser = timing.options(__doc__, rounds=15)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    arguments = timing.begin(parser)

    names = timing.present({name: partial(PEERS[name], CRF(num_tags=2)) for name in arguments.peers})
    shapes = []
    for batch, length, tags in shapes_of(arguments.tiny):
        found = measure_shape(batch, length, tags, names, arguments.rounds)
        shapes.append({"batch": batch, "time": length, "tags": tags, **found})
        for task, title in TASKS.items():
            timing.say(f"{batch:3} x {length:3} x {tags:2} {title}", found[task])
    ratios = {
        task: {name: timing.ratios([shape[task] for shape in shapes], name) for name in names}
        for task in TASKS
    }
    print_ratios(ratios)
    left_out = sorted(PEERS.keys() - set(names))
    result = {"rounds": arguments.rounds, "ratios": ratios, "shapes": shapes, "left_out": left_out}
    timing.write("crf", result, arguments.output)


def shapes_of(tiny: bool) -> list[tuple[int, int, int]]:
    shapes = list(itertools.product(BATCHES, TIMES, TAGS))
    return shapes[:1] if tiny else shapes


def measure_shape(batch: int, length: int, tags: int, names: list[str], rounds: int) -> dict[str, Any]:
    """Seconds of each contestant: {"loss": {name: {"median": ..., "quartiles": [...]}}, "decode": ...}."""
    torch.manual_seed(0)
    crf = CRF(num_tags=tags)
    problem = make_problem(batch, length, tags)
    if batch * length * tags**2 > LARGEST:
        names = [name for name in names if name != "torch-struct"]
    contestants = [ours(crf), *(PEERS[name](crf) for name in names)]
    wrong = different(crf, problem, contestants)
    contestants = [contestant for contestant in contestants if contestant.name not in wrong]
    losses = {c.name: derived(c, problem) for c in contestants}
    decoders = {c.name: decoded(c, problem) for c in contestants if c.decode}
    return {
        "wrong": wrong,
        "loss": timing.measure(losses, rounds, slow=SLOW),
        "decode": timing.measure(decoders, rounds, slow=SLOW),
    }


def make_problem(batch: int, length: int, tags: int) -> Problem:
    """Lengths are uniform from 1 to `length`, which occurs."""
    lengths = torch.randint(1, length + 1, (batch, 1))
    lengths[0] = length
    scores = torch.randn(batch, length, tags, requires_grad=True)
    return Problem(scores, torch.randint(tags, (batch, length)), torch.arange(length) < lengths)


def derived(contestant: Contestant, problem: Problem) -> Callable[[], Tensor]:
    return timing.derived(partial(contestant.loss, problem), [problem.scores, *contestant.weights])


def decoded(contestant: Contestant, problem: Problem) -> Callable[[], object]:
    @torch.no_grad()
    def run() -> object:
        return contestant.decode(problem)

    return run


def different(crf: CRF, problem: Problem, contestants: list[Contestant]) -> list[str]:
    """Those of another loss, gradient by the scores, or score of the decoded tags, but for rounding."""
    found, wrong = [], []
    for contestant in contestants:
        loss = derived(contestant, problem)()
        found.append([loss.detach(), problem.scores.grad])
        if contestant.decode:
            tags = as_tensor(decoded(contestant, problem)(), problem.mask)
            transitions = Transitions(crf.start, crf.transitions, crf.end)
            found[-1].append(sequence_score(problem.scores, tags, problem.mask, transitions).detach())
        pairs = zip(found[-1], found[0], strict=False)
        if not all(torch.allclose(theirs, right, rtol=1e-4, atol=1e-4) for theirs, right in pairs):
            wrong.append(contestant.name)
            print(f"{contestant.name} finds other results, and is left out")
    return wrong


def as_tensor(tags: Any, mask: Tensor) -> Tensor:
    if not isinstance(tags, Tensor):
        tags = torch.tensor([[*sentence, *[0] * (mask.shape[1] - len(sentence))] for sentence in tags])
    return tags.masked_fill(~mask, 0)


def print_ratios(ratios: dict[str, dict[str, dict[str, float] | None]]) -> None:
    for task, title in TASKS.items():
        print(f"\nTimes of ours that others take for {title}:  worst  median  best")
        for name, found in ratios[task].items():
            if found:
                print(f"{name:14}" + "".join(f"{found[key]:8.1f}" for key in ("worst", "median", "best")))


if __name__ == "__main__":
    main()
