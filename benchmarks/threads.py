"""When threads pay: training steps of small and large models with one thread and with several.

    python benchmarks/threads.py [--threads N] [--rounds N] [--output FILE]

Each number of threads, up to N (by default, the number of processors), has a process of its own in each round.
Numbers above 1 have another with OMP_WAIT_POLICY=passive, under which PyTorch's threads sleep while they wait.
`runtime.threads` in conf/config.yaml is the number of threads of a run by default.
"""

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from typing import NamedTuple

import timing
from tables import CRF_MODULES, LSTM_MODULES, Result, ms, table
from taggers import Trial, made_up

from ner_experiments.config.compose import compose

MEASURES = (*LSTM_MODULES, *CRF_MODULES)

SECONDS, STEPS = 0.5, 50
"""Seconds for which a case is trained after its first steps, and the maximum number of steps."""


class Case(NamedTuple):
    overrides: list[str]
    sentences: int
    length: int


CASES = {
    "bilstm of 25, 8 x 10 tokens": Case(["model=bilstm", "model.hidden_size=25", "chars=none"], 8, 10),
    "bilstm of 100, 8 x 10 tokens": Case(["model=bilstm", "model.hidden_size=100"], 8, 10),
    "bilstm of 300, 32 x 20 tokens": Case(["model=bilstm"], 32, 20),
    "parallel, 16 x 64, 32 x 20 tokens": Case(["model=parallel"], 32, 20),
    "residual, 4 x 300, 32 x 20 tokens": Case(["model=residual", "layers=4"], 32, 20),
}


def main() -> None:
    parser = timing.options(__doc__, rounds=3)
    parser.set_defaults(threads=os.cpu_count())
    parser.add_argument("--alone", nargs="+", choices=CASES, help=argparse.SUPPRESS)
    arguments = timing.begin(parser)
    if arguments.alone:
        print(json.dumps({name: step_seconds(CASES[name]) for name in arguments.alone}))
        return
    cases = list(CASES)[: 1 if arguments.tiny else None]
    seconds: dict[str, dict[str, list[float]]] = {name: {} for name in cases}
    for _ in range(arguments.rounds):
        for threads, policy in settings(arguments.threads):
            for name, measured in in_a_process(threads, policy, arguments.clock, cases).items():
                seconds[name].setdefault(f"{threads} {policy}".strip(), []).append(measured)
    summaries = {
        name: {kind: timing.summary(times) for kind, times in of_case.items()}
        for name, of_case in seconds.items()
    }
    for name, of_case in summaries.items():
        timing.say(name, of_case)
    result = {"rounds": arguments.rounds, "default": compose([]).runtime.threads, "cases": summaries}
    timing.write("threads", result, arguments.output)


def settings(most: int) -> list[tuple[int, str]]:
    """Pairs of a number of threads (1, 2, 4, ... and `most`) and how threads wait: OMP_WAIT_POLICY, or "" if unset."""
    counts = sorted({*(2**power for power in range(most.bit_length())), most})
    return [(1, ""), *((count, policy) for count in counts[1:] for policy in ("", "passive"))]


def in_a_process(threads: int, policy: str, clock: str, cases: list[str]) -> dict[str, float]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    environment.pop("OMP_WAIT_POLICY", None)
    if policy:
        environment["OMP_WAIT_POLICY"] = policy
    command = [sys.executable, __file__, "--threads", str(threads), "--clock", clock, "--alone", *cases]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def step_seconds(case: Case) -> float:
    trial = Trial(made_up(case.sentences, case.length), [*case.overrides, "batches=random"])
    (batch,) = trial.batches()
    step = partial(trial.step, batch)
    step()
    once = timing.measure({"step": step}, 1)["step"]["median"]
    steps = max(2, min(STEPS, int(SECONDS / once)))
    return timing.measure({"step": step}, steps)["step"]["median"]


def tables(result: Result) -> list[str]:
    kinds = list(next(iter(result["cases"].values())))
    rows = [[name, *(ms(found[kind]) for kind in kinds)] for name, found in result["cases"].items()]
    return [table("a step, ms", *(f"threads: {kind}" for kind in kinds), rows=rows)]


if __name__ == "__main__":
    main()
