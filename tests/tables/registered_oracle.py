"""Registered verdicts by the rules of results/replication.md, from raw archived runs, with no code of the package.

`python tests/tables/registered_oracle.py results` prints them as JSON, by paper and claim. It reads registration.yaml,
claims.yaml, the archived runs, and the published numbers in sweeps/. The p over seeds and sentences and the order of
commits are not recomputed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy import stats

SWEEPS = Path(__file__).parents[2] / "sweeps"


def verdicts(results: Path) -> dict[str, dict[str, str]]:
    registration = yaml.safe_load((results / "registration.yaml").read_text())["papers"]
    claims = {it["id"]: it for it in yaml.safe_load((results / "claims.yaml").read_text())["claims"]}
    sources = yaml.safe_load((results / "claims.yaml").read_text())["sources"]
    return {
        paper: of_paper(results, paper, content, claims, sources) for paper, content in registration.items()
    }


def of_paper(results: Path, paper: str, content: Any, claims: Any, sources: Any) -> dict[str, str]:
    text = json.dumps([paper, content], sort_keys=True)
    registered = hashlib.sha256(text.encode()).hexdigest()[:12]
    tests = [test for test in content["tests"] if test["seeds"] > 0]
    values = {}
    for test in tests:
        seeds = range(101, 101 + test["seeds"])
        a, b = sides(results, test, content["overrides"], registered)
        if all(seed in side for seed in seeds for side in (a, b)):
            values[test["claim"]] = [[side[seed] for seed in seeds] for side in (a, b)]
    p = {name: stats.ttest_ind(*values[name], equal_var=False).pvalue if name in values else 1.0 for name in
         (test["claim"] for test in tests)}  # fmt: skip
    adjusted, running = {}, 0.0
    for place, name in enumerate(sorted(p, key=lambda name: p[name])):
        running = max(running, min(1.0, (len(p) - place) * p[name]))
        adjusted[name] = running
    found = {}
    for test in content["tests"]:
        name = test["claim"]
        if test["seeds"] == 0:
            found[name] = "not testable"
        elif name not in values:
            found[name] = "needs a GPU" if "gpu_hours" in content else "not run"
        elif too_weak(results, test, content["overrides"]):
            found[name] = "undecided"
        else:
            claimed = published(claims[name], sources)
            settled = len(values) == len(tests) or p[name] > 0.05
            found[name] = said(*values[name], claimed, adjusted[name], settled=settled)
    return found


def said(a: list[float], b: list[float], published: float, p: float, *, settled: bool) -> str:
    """Rule 5, with Welch's interval written out."""
    x, y = np.array(a), np.array(b)
    gap, va, vb = x.mean() - y.mean(), x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    freedom = (va + vb) ** 2 / (va**2 / (len(x) - 1) + vb**2 / (len(y) - 1))
    half = stats.t.ppf(0.975, freedom) * np.sqrt(va + vb)
    low, high = gap - half, gap + half
    if p <= 0.05:
        if gap * published < 0:
            return "opposite"
        if low <= published <= high:
            return "replicates"
        return "smaller" if abs(published) > abs(gap) else "larger"
    within = -abs(published) / 2 <= low and high <= abs(published) / 2
    return "no such difference" if within and settled else "undecided"


def published(claim: Any, sources: Any) -> float:
    """The paper's difference: the ledger's, or that of the rows' published numbers."""
    if "published" in claim:
        return float(claim["published"])
    numbers = [
        row_of(sources[source]["table"], label)["published"]
        for name in ("a", "b")
        for source, label in claim.get(name, {}).items()
    ]
    return float(numbers[0] - sum(numbers[1:]))


def row_of(table: str, label: str) -> Any:
    """A row of a table, with the published numbers of the row that it repeats, if it does."""
    content = yaml.safe_load((SWEEPS / f"{table}.yaml").read_text())
    row = next(row for row in content["rows"] if row["label"] == label)
    return {**row_of(*row["repeats"]), **row} if "repeats" in row else row


def rows_of(test: Any) -> list[list[tuple[str, str]]]:
    """Sides as lists of table and label."""
    entries = [test["a"], test.get("b", [])]
    each = [side if isinstance(side, list) else [side] for side in entries]
    return [[item for entry in side for item in entry.items()] for side in each]


def runs_of(results: Path, table: str, label: str, overrides: list[str]) -> list[Any]:
    """The archived runs of a row with these overrides, whatever folders their files are in.

    They are those of the folder's table.json, but for overrides that the configs of its runs have anyway.
    """

    def short(items: list[str]) -> set[str]:
        return {f"{item.split('=')[0]}={item.split('=', 1)[1].rpartition('/')[2]}" for item in items}

    found = []
    for stored in (results / table).rglob("table.json"):
        own = short(json.loads(stored.read_text())["overrides"])
        runs = [json.loads(path.read_text()) for path in sorted((stored.parent / "runs").glob("*.json"))]
        if own <= short(overrides):
            others = short(overrides) - own
            found += [run for run in runs if all(is_setting(run["config"], item) for item in others)]
    return [run for run in found if run["label"] == label]


def is_setting(config: Any, override: str) -> bool:
    """Whether a config has the value of an override."""
    key, text = override.split("=", 1)
    for name in key.split("."):
        config = config.get(name) if isinstance(config, dict) else None
    return config is not None and yaml.safe_load(text) == config


def sides(results: Path, test: Any, overrides: list[str], registered: str) -> list[dict[int, float]]:
    """Scores in points by seed, of the runs that recorded the registration."""

    def scores(table: str, label: str, measure: Any = None) -> dict[int, float]:
        by_seed = {}
        for run in runs_of(results, table, label, overrides):
            metrics = run["metrics"]
            if metrics.get("registration") == registered:
                score = metrics["test"]["f1" if metrics["task"] == "mentions" else "accuracy"]
                if measure:
                    bucket = run["errors"]["breakdown"][measure["figure"]][measure["key"]]
                    score = 2 * bucket["correct"] / (bucket["predicted"] + bucket["gold"])
                by_seed[metrics["seed"]] = 100 * score
        return by_seed

    a, b = rows_of(test)
    if not b:  # a row of an analysis: the difference of two rows
        ((table, label),) = a
        measure, analyzed = measured(table, label)
        return [scores(analyzed, measure[name], measure) for name in ("of", "over")]
    found = []
    for side in (a, b):
        rows = [scores(*row) for row in side]
        found.append(
            rows[0]
            if len(rows) == 1
            else {seed: rows[0][seed] - rows[1][seed] for seed in rows[0] if seed in rows[1]}
        )
    return found


def measured(table: str, label: str) -> tuple[Any, str]:
    return row_of(table, label)["measure"], yaml.safe_load((SWEEPS / f"{table}.yaml").read_text())["analysis"]


def too_weak(results: Path, test: Any, overrides: list[str]) -> bool:
    """Whether a row is below half of the paper's score, or a run found fewer than 30 of the mentions."""
    a, b = rows_of(test)
    rows, measure = [*a, *b], None
    if not b:
        measure, analyzed = measured(*a[0])
        rows = [(analyzed, measure["of"]), (analyzed, measure["over"])]
    for table, label in rows:
        runs = [
            run
            for run in runs_of(results, table, label, overrides)
            if run["metrics"]["seed"] in range(101, 101 + test["seeds"])
        ]
        scores = [100 * run["metrics"]["test"].get("f1", 1.0) for run in runs]
        if np.mean(scores) < row_of(table, label)["published"] / 2:
            return True
        for run in runs:
            found = run["metrics"]["test"]
            if measure:
                found = run["errors"]["breakdown"][measure["figure"]][measure["key"]]
            if run["metrics"]["task"] == "mentions" and found["correct"] < 30:
                return True
    return False


if __name__ == "__main__":
    print(json.dumps(verdicts(Path(sys.argv[1])), indent=2))
