"""Measurement and experiment for many architectures, in several processes, and what they found."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ner_experiments.results import commit, machine
from ner_experiments.sealed import seal
from ner_experiments.xor import architectures
from ner_experiments.xor.certificate import Certificate, to_json
from ner_experiments.xor.experiment import Outcome
from ner_experiments.xor.measurement import ROUNDING
from ner_experiments.xor.trials import Trials

DECODERS = tuple(architectures.TRAINED)
HEADINGS = ("model", "layers", "interaction", "best softmax", "best CRF", "seeds with 4", "limited?")
"""Of `lines`; the seeds are those of softmax, then those of the CRF."""
THREADS = 1
"""Of each process."""
Task = partial[Any]


@dataclass
class Found:
    """Of one architecture: interactions of each draw of weights, and the outcome of each decoder and seed."""

    layers: int | None
    interactions: list[float] = field(default_factory=list)
    outcomes: dict[str, dict[int, Outcome]] = field(default_factory=lambda: {name: {} for name in DECODERS})

    @property
    def interaction(self) -> float:
        return max(self.interactions)

    @property
    def limited(self) -> bool:
        """Whether the scores are sums of past and future, to rounding."""
        return self.interaction < ROUNDING

    def right(self, decoder: str) -> list[int]:
        """The most phrases right at once, seed by seed."""
        return [outcome.right for outcome in self.by_seed(decoder)]

    def by_seed(self, decoder: str) -> list[Outcome]:
        return [outcome for _, outcome in sorted(self.outcomes[decoder].items())]

    def all_right(self) -> list[int]:
        """The same of every decoder."""
        return [right for decoder in DECODERS for right in self.right(decoder)]

    def best(self, decoder: str) -> int:
        return max(self.right(decoder))

    def record(self) -> dict[str, Any]:
        """As JSON; seed by seed right_*, the most phrases right at once, and steps_*, when they were."""
        return {
            "interaction": self.interaction,
            **{f"best_{decoder}": self.best(decoder) for decoder in DECODERS},
            "seeds": len(self.right(DECODERS[0])),
            "limited": self.limited,
            "layers": self.layers,
            "interactions": self.interactions,
            **{f"right_{decoder}": self.right(decoder) for decoder in DECODERS},
            **{
                f"steps_{decoder}": [outcome.step for outcome in self.by_seed(decoder)]
                for decoder in DECODERS
            },
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Found:
        """What `record` was made of."""
        outcomes = {
            decoder: dict(
                enumerate(
                    map(Outcome, record[f"right_{decoder}"], record[f"steps_{decoder}"]),
                )
            )
            for decoder in DECODERS
        }
        return cls(record["layers"], list(record["interactions"]), outcomes)


def trials(
    names: Sequence[str], proved: Sequence[Certificate], *, num_seeds: int, num_processes: int
) -> Trials:
    """What was proved, what `examine` finds of the named architectures, and how it was made."""
    started = time.perf_counter()
    code = {**machine(torch.device("cpu")), "threads": THREADS, "commit": commit()}  # before it changes
    found = examine(names, num_seeds=num_seeds, num_processes=num_processes)
    content = {
        "config": architectures.config(names, num_seeds),
        "models": {name: model.record() for name, model in found.items()},
        "certificates": [to_json(certificate) for certificate in proved],
        "seconds": round(time.perf_counter() - started, 1),
        "processes": num_processes,
        **code,
    }
    return Trials(seal(content))


def examine(names: Sequence[str], *, num_seeds: int, num_processes: int) -> dict[str, Found]:
    """Everything about the named architectures, the limited ones first. Progress goes to stderr."""
    found = {name: Found(architectures.num_layers(name)) for name in names}
    tasks: list[Task] = [partial(architectures.measure, name, architectures.DRAWS) for name in names]
    for name in names:
        for decoder in DECODERS:
            tasks += [partial(architectures.trial, name, decoder, seed) for seed in range(num_seeds)]
    with progress_bar() as bar:
        row = bar.add_task("", total=len(tasks))
        for task, result in finished(tasks, num_processes):
            if task.func is architectures.measure:
                found[task.args[0]].interactions = result
            else:
                name, decoder, seed = task.args
                found[name].outcomes[decoder][seed] = result
            bar.update(row, advance=1, description=" ".join(map(str, task.args[:2])))
    return dict(sorted(found.items(), key=lambda item: (not item[1].limited, item[0])))


def finished(tasks: Sequence[Task], num_processes: int) -> Iterator[tuple[Task, Any]]:
    """Each task with its result, as they come."""
    if num_processes == 1:
        torch.set_num_threads(THREADS)
        yield from ((task, task()) for task in tasks)
        return
    context = get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(num_processes, context, torch.set_num_threads, (THREADS,)) as pool:
        running = {pool.submit(task): task for task in tasks}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C the rest is not waited for


def progress_bar() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def lines(found: Mapping[str, Found]) -> list[list[str]]:
    """A line of a table for each architecture."""
    return [
        [
            name,
            "" if model.layers is None else f"{model.layers}",
            f"{model.interaction:.1e}",
            *(f"{model.best(decoder)} of 4" for decoder in DECODERS),
            ", ".join(f"{model.right(decoder).count(4)}" for decoder in DECODERS),
            "yes" if model.limited else "no",
        ]
        for name, model in found.items()
    ]


def disagreements(found: dict[str, Found]) -> tuple[list[str], list[str]]:
    """Where training and measurement differ: limited but learned, which cannot be; free but not learned."""
    broken = [name for name, model in found.items() if model.limited and max(map(model.best, DECODERS)) > 3]
    missed = [
        name for name, model in found.items() if not model.limited and min(map(model.best, DECODERS)) < 4
    ]
    return broken, missed
