"""Simulation of sequential looks: false claims, power, and runs saved compared with eight seeds per row.

    python benchmarks/looks.py [--threads N] [--rounds N] [--output FILE]

Scores are drawn from normal distributions, with a mean and a standard deviation for each row. The rule is that of
sweeps (`sweep.looks`), and the tests are those of tables. A round is a thousand sweeps of each scenario. A sweep makes
a false claim if it calls a pair of equal rows ahead or behind, calls the worse of two rows ahead, or calls a pair equal
that differs by the smallest effect or more. Runs saved are the share of the runs with eight seeds per row that were
not needed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import timing
from tables import Result, table

from ner_experiments.tables.looks import Labels, replay
from ner_experiments.tables.pairs import compare_seeds
from ner_experiments.tables.significance import ALPHA, Tested
from ner_experiments.tables.spec import SMALLEST_EFFECT

MEASURES = ("tables.looks",)

LOOKS, FIXED = (3, 5, 8), (8,)
SWEEPS = 1000


@dataclass(frozen=True)
class Scenario:
    """Means of the rows in points, and standard deviations over their seeds."""

    name: str
    means: tuple[float, ...]
    deviations: tuple[float, ...]


SCENARIOS = (
    Scenario("2 equal rows", (0, 0), (0.3, 0.3)),
    Scenario("2 equal rows, one deviation three times the other", (0, 0), (0.2, 0.6)),
    Scenario("5 equal rows", (0,) * 5, (0.3,) * 5),
    Scenario("2 rows, one deviation apart", (0, 0.3), (0.3, 0.3)),
    Scenario("2 rows, two deviations apart", (0, 0.6), (0.3, 0.3)),
    Scenario("2 rows, four deviations apart", (0, 1.2), (0.3, 0.3)),
    Scenario("5 rows, the first three deviations above four equal ones", (0.9, 0, 0, 0, 0), (0.3,) * 5),
    Scenario("5 rows, one deviation from each to the next", (0, 0.3, 0.6, 0.9, 1.2), (0.3,) * 5),
    Scenario("2 rows that differ by the smallest effect, small deviations", (0, 0.3), (0.05, 0.05)),
)


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=4))
    number = 5 if arguments.tiny else SWEEPS * arguments.rounds
    rules = {"looks": LOOKS, "fixed": FIXED}
    scenarios = []
    for scenario in SCENARIOS:
        measured = {name: simulate(scenario, looks, number) for name, looks in rules.items()}
        scenarios.append({"name": scenario.name, "rules": measured})
        print(scenario.name, measured, flush=True)
    result = {
        "rounds": arguments.rounds,
        "sweeps": number,
        "looks": LOOKS,
        "fixed": FIXED,
        "alpha": ALPHA,
        "smallest_effect": SMALLEST_EFFECT,
        "scenarios": scenarios,
    }
    timing.write("looks", result, arguments.output)


def simulate(scenario: Scenario, looks: Sequence[int], number: int) -> dict[str, Any]:
    """Shares of sweeps with a false claim, of differing pairs that were detected, and of runs saved.

    The second is None if all rows are equal.
    """
    rng = np.random.default_rng(0)
    rows = len(scenario.means)
    differing = [
        (str(a), str(b)) for a, b in combinations(range(rows), 2) if scenario.means[a] != scenario.means[b]
    ]
    false = detected = runs = 0
    for _ in range(number):
        scores = rng.normal(
            np.array(scenario.means)[:, None], np.array(scenario.deviations)[:, None], (rows, max(looks))
        )
        verdicts, seeds = sweep(scores, looks)
        false += any(is_false(scenario, labels, verdict) for labels, verdict in verdicts.items())
        detected += sum(verdicts[labels] in ("ahead", "behind") for labels in differing)
        runs += seeds
    return {
        "false": false / number,
        "found": detected / number / len(differing) if differing else None,
        "saved": 1 - runs / number / (rows * max(looks)),
    }


def sweep(scores: np.ndarray, looks: Sequence[int]) -> tuple[dict[Labels, str], int]:
    """Verdicts of all pairs, and the number of runs. scores: [rows, seeds]."""
    labels = [str(number) for number in range(len(scores))]
    used: dict[str, Collection[int]] = {}

    def compare(seeds: Mapping[str, Collection[int]], level: float) -> tuple[dict[Labels, Tested], set[str]]:
        used.update(seeds)
        rows = [{seed: float(scores[int(label), seed]) for seed in seeds[label]} for label in labels]
        leader = max(labels, key=lambda label: fmean(rows[int(label)].values()))
        return dict(zip(combinations(labels, 2), compare_seeds(rows, level), strict=True)), {leader}

    finished = dict.fromkeys(labels, range(max(looks)))
    decision = replay(finished, looks, compare, first_seed=0)
    return {pair: test.verdict for pair, test in decision.pairs.items()}, sum(map(len, used.values()))


def is_false(scenario: Scenario, labels: Labels, verdict: str) -> bool:
    a, b = (scenario.means[int(label)] for label in labels)
    if verdict == "equal":
        return abs(a - b) >= SMALLEST_EFFECT
    return verdict != "undecided" and (a == b or (verdict == "ahead") != (a > b))


def tables(result: Result) -> list[str]:
    def percent(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f} %"

    rows = []
    for scenario in result["scenarios"]:
        ours, fixed = scenario["rules"]["looks"], scenario["rules"]["fixed"]
        figures = [percent(rule[key]) for key in ("false", "found") for rule in (ours, fixed)]
        rows.append([scenario["name"], *figures, percent(ours["saved"])])
    at, last = ", ".join(map(str, result["looks"])), result["fixed"][-1]
    head = (
        f"false claims, looks at {at}",
        f"with {last} seeds",
        "differences found, looks",
        f"with {last} seeds",
    )
    return [table(f"{result['sweeps']:,} sweeps each", *head, "runs saved", rows=rows)]


if __name__ == "__main__":
    main()
