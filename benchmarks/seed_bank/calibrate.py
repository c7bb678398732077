"""Calibration of intervals and tests over seeds on the seed bank: coverage, false claims, power and width.

    python benchmarks/seed_bank/calibrate.py [--seeds N] [--draws N] [--runs DIR] [--output DIR]

A cell with N seeds is taken as a population. Samples of 2, 3 and 5 seeds are drawn from it without replacement, the
same seeds for all rows of a corpus, as in a table. Each method gives the standard error and the degrees of freedom of
the difference of two rows, hence an interval and a test. Written are calibration.json, a picture, and a page.

Coverage is the share of the 95 % intervals that contain the difference of the population's means. A sample that is
drawn without replacement is closer to its population than one of new seeds: its error has 1 - n/N of the variance. The
errors are scaled up accordingly. False claims are the shares of p <= 5 % for two samples of one cell without a common
seed, whose difference needs no such correction. Power is the share of claims in the direction of the population's
difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from cells import FOLDER, ROWS, Cell

from ner_experiments.utils.files import write_json
from ner_experiments.utils.text import markdown_table
from ner_experiments.view.charts import Value, dots
from ner_experiments.view.vega import SERIES, Chart, Look, domain_of

SAMPLES, DRAWS, SEEDS = (2, 3, 5), 10_000, 30
PAIRED, USED = "paired t", "Welch t"
"""The reference for widths, and the method of the tables."""
COVERAGE, FALSE_CLAIMS, WIDTH = (0.93, 0.97), 0.05, 0.65
"""Bounds: coverage of each pair of rows, false claims of each cell, and width as a share of the paired t's."""

TITLE = """# Calibration of error bars on a bank of seeds

Written by `python benchmarks/seed_bank/calibrate.py` from [runs/](runs), which `python benchmarks/seed_bank/train.py`
trains."""
LEGEND = (
    "Coverage: the share of 95 % intervals that contain the difference of the bank's means, averaged over the pairs, "
    "with the lowest and the highest pair. False claims: between two samples of one cell at 5 %, averaged over the "
    "cells, with the highest. Power: claims in the direction of the bank's difference. Width: of the interval, as a "
    "share of the paired t's. Bounds: coverage of each pair from "
    f"{100 * COVERAGE[0]:.0f} to {100 * COVERAGE[1]:.0f} %, false claims of each cell at most "
    f"{100 * FALSE_CLAIMS:.0f} %, width at most {WIDTH}."
)
ROBUST = (
    "The moderated t is that of limma (Smyth 2004). Its robust form (Phipson et al. 2016) is no further method here: "
    "with three or four rows, limma 3.54 gave the same variances by both forms in all of 18,000 of these samples."
)
HEADINGS = ("seeds", "method", "coverage, %", "false claims, %", "power, %", "width", "within bounds")


@dataclass(frozen=True)
class Samples:
    """The same draws for two rows and their table: scores in points.

    table: [rows, draws, seeds]; a, b: the numbers of the two rows.
    """

    table: np.ndarray
    a: int
    b: int

    @property
    def num_seeds(self) -> int:
        return self.table.shape[2]

    @property
    def gap(self) -> np.ndarray:
        """[draws]: mean of row a minus mean of row b."""
        return np.asarray(self.table[self.a].mean(axis=-1) - self.table[self.b].mean(axis=-1))

    @property
    def variances(self) -> np.ndarray:
        """[rows, draws]"""
        return np.asarray(self.table.var(axis=-1, ddof=1))


Method = Callable[[Samples], tuple[np.ndarray, np.ndarray]]
"""Standard errors and degrees of freedom of the gaps, [draws] each."""


def paired(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    gaps = samples.table[samples.a] - samples.table[samples.b]
    n = samples.num_seeds
    return gaps.std(axis=-1, ddof=1) / np.sqrt(n), np.full(len(gaps), n - 1.0)


def welch(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    return unpaired(samples, samples.variances, np.full(samples.variances.shape, samples.num_seeds - 1.0))


def pooled_pair(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Student's t with the pooled variance of the two rows."""
    pooled = samples.variances[[samples.a, samples.b]].mean(axis=0)
    return np.sqrt(2 * pooled / samples.num_seeds), np.full(len(pooled), 2.0 * (samples.num_seeds - 1))


def pooled_table(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Student's t with the pooled variance of all rows of the table."""
    pooled = samples.variances.mean(axis=0)
    freedom = float(len(samples.table) * (samples.num_seeds - 1))
    return np.sqrt(2 * pooled / samples.num_seeds), np.full(len(pooled), freedom)


def normal(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """The standard error of Welch's test with the quantiles of the normal distribution."""
    error, freedom = welch(samples)
    return error, np.full(freedom.shape, 1e9)


def moderated(cap: float) -> Method:
    """The moderated t of Smyth (2004), with at most `cap` prior degrees of freedom.

    The variances of a table's rows are taken as draws from a scaled inverse chi-squared distribution. A row's variance
    becomes the mean of its own and of the prior one, weighted by their degrees of freedom.
    """

    def method(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        own = samples.num_seeds - 1.0
        prior_freedom, prior_variance = priors(samples.variances, own)
        weight = np.minimum(prior_freedom, cap)
        variances = (weight * prior_variance + own * samples.variances) / (weight + own)
        return unpaired(samples, variances, np.broadcast_to(weight + own, variances.shape))

    return method


def unpaired(samples: Samples, variances: np.ndarray, freedoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors of differences of means, with Welch's degrees of freedom. variances, freedoms: [rows, draws]."""
    pair = [samples.a, samples.b]
    parts = variances[pair] / samples.num_seeds
    total = parts.sum(axis=0)
    return np.sqrt(total), total**2 / (parts**2 / freedoms[pair]).sum(axis=0)


def priors(variances: np.ndarray, freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """Degrees of freedom and variance of the prior of each draw. variances: [rows, draws].

    They are estimated from the mean and the variance of the variances' logarithms, as by limma's `fitFDist`; its
    robust form gives the same with so few rows. Variances near 0 are raised to 1e-5 of the median, as there. If
    variances differ by no more than chance, the degrees of freedom are infinite and the variance is the mean.
    """
    digamma, polygamma = scipy.special.digamma, scipy.special.polygamma
    variances = np.maximum(variances, 1e-5 * np.median(variances, axis=0))
    logs = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    excess = logs.var(axis=0, ddof=1) - polygamma(1, freedom / 2)
    half = inverse_trigamma(np.maximum(excess, 1e-8))
    finite = np.exp(logs.mean(axis=0) + digamma(half) - np.log(half))
    return np.where(excess > 0, 2 * half, np.inf), np.where(excess > 0, finite, variances.mean(axis=0))


def inverse_trigamma(values: np.ndarray) -> np.ndarray:
    """The x with trigamma(x) = value, by Newton's iteration for 1 / trigamma (limma's trigammaInverse)."""
    polygamma = scipy.special.polygamma
    x = 0.5 + 1 / values
    for _ in range(50):
        trigamma = polygamma(1, x)
        x = x + trigamma * (1 - trigamma / values) / polygamma(2, x)
    return np.asarray(x)


METHODS: Mapping[str, Method] = {
    PAIRED: paired,
    USED: welch,
    "Student t, two rows": pooled_pair,
    "Student t, all rows of the table": pooled_table,
    "moderated t, prior capped at 10": moderated(10.0),
    "moderated t, prior capped at 4": moderated(4.0),
    "moderated t, no cap": moderated(1e6),
    "normal quantiles": normal,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="cells with fewer seeds are left out")
    parser.add_argument("--draws", type=int, default=DRAWS, help="samples of each size and pair of rows")
    parser.add_argument("--runs", type=Path, default=FOLDER, help="folder of the bank")
    parser.add_argument("--output", type=Path, default=FOLDER.parent, help="folder of what is written")
    arguments = parser.parse_args()
    tables = complete_tables(arguments.runs, arguments.seeds)
    if not tables:
        parser.error(f"{arguments.runs}: no corpus has two cells with {arguments.seeds} seeds")
    result = calibrate(tables, arguments.draws)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_json(arguments.output / "calibration.json", result)
    (arguments.output / "calibration.svg").write_text(picture(result), encoding="utf-8")
    (arguments.output / "README.md").write_text(page(result), encoding="utf-8")


def complete_tables(folder: Path, seeds: int) -> dict[str, dict[str, np.ndarray]]:
    """Test F1 in points by corpus and row, for the first `seeds` seeds. Left out: corpora with fewer than two rows."""
    tables = {}
    for corpus, names in ROWS.items():
        rows = {}
        for name in names:
            scores = {run["seed"]: 100 * run["f1"] for run in Cell(corpus, name).runs(folder)}
            if all(seed in scores for seed in range(1, seeds + 1)):
                rows[name] = np.array([scores[seed] for seed in range(1, seeds + 1)])
        if len(rows) > 1:
            tables[corpus] = rows
    return tables


def calibrate(tables: Mapping[str, Mapping[str, np.ndarray]], draws: int) -> dict[str, Any]:
    """Figures of each method at each sample size, for each pair of rows and each cell."""
    figures = []
    for n in SAMPLES:
        pairs = [it for corpus, rows in tables.items() for it in pair_figures(corpus, rows, n, draws)]
        cells = [it for corpus, rows in tables.items() for it in cell_figures(corpus, rows, n, draws)]
        figures.append({"seeds": n, "pairs": pairs, "cells": cells})
    return {
        "draws": draws,
        "bank": {
            corpus: {
                row: {"seeds": len(scores), "mean": float(scores.mean()), "sd": float(scores.std(ddof=1))}
                for row, scores in rows.items()
            }
            for corpus, rows in tables.items()
        },
        "samples": figures,
    }


def pair_figures(corpus: str, rows: Mapping[str, np.ndarray], n: int, draws: int) -> Iterator[dict[str, Any]]:
    """Coverage, power and median width of the intervals of each method, for each pair of rows."""
    names, scores = list(rows), np.stack([*rows.values()])
    table = scores[:, without_replacement(scores.shape[1], n, draws)]
    scale = np.sqrt(1 - n / scores.shape[1])
    for a, b in combinations(range(len(names)), 2):
        samples = Samples(table, a, b)
        truth = float(scores[a].mean() - scores[b].mean())
        found = {}
        for name, method in METHODS.items():
            error, freedom = method(samples)
            half = scipy.stats.t.ppf(0.975, freedom) * error
            found[name] = {
                "coverage": float((np.abs(samples.gap - truth) / scale <= half).mean()),
                "power": float(((np.abs(samples.gap) > half) & (samples.gap * truth > 0)).mean()),
                "width": float(np.median(2 * half)),
            }
        yield {"corpus": corpus, "rows": [names[a], names[b]], "difference": truth, "methods": found}


def cell_figures(corpus: str, rows: Mapping[str, np.ndarray], n: int, draws: int) -> Iterator[dict[str, Any]]:
    """False claims of each method between two samples of one cell, the second of them in the place of another row."""
    names, scores = list(rows), np.stack([*rows.values()])
    chosen = without_replacement(scores.shape[1], 2 * n, draws)
    table, other = scores[:, chosen[:, :n]], scores[:, chosen[:, n:]]
    for cell, name in enumerate(names):
        second = (cell + 1) % len(names)
        with_twin = table.copy()
        with_twin[second] = other[cell]
        samples = Samples(with_twin, cell, second)
        found = {}
        for label, method in METHODS.items():
            error, freedom = method(samples)
            half = scipy.stats.t.ppf(0.975, freedom) * error
            found[label] = float((np.abs(samples.gap) > half).mean())
        yield {"corpus": corpus, "row": name, "false_claims": found}


def without_replacement(population: int, n: int, draws: int) -> np.ndarray:
    """[draws, n]: distinct numbers below `population`."""
    rng = np.random.default_rng(0)
    return rng.permuted(np.tile(np.arange(population), (draws, 1)), axis=1)[:, :n]


def summary(figures: Mapping[str, Any], method: str) -> dict[str, Any]:
    """A method's figures at one sample size: coverage by pair, false claims by cell, mean power, and width.

    within: whether all bounds are met. valid: whether no pair is covered too rarely and no cell has too many false
    claims; intervals may be wide.
    """
    of_pairs = [pair["methods"][method] for pair in figures["pairs"]]
    of_paired = [pair["methods"][PAIRED]["width"] for pair in figures["pairs"]]
    coverage = [it["coverage"] for it in of_pairs]
    false_claims = [cell["false_claims"][method] for cell in figures["cells"]]
    width = float(np.mean([it["width"] / now for it, now in zip(of_pairs, of_paired, strict=True)]))
    low, high = COVERAGE
    valid = low <= min(coverage) and max(false_claims) <= FALSE_CLAIMS
    return {
        "coverage": (min(coverage), float(np.mean(coverage)), max(coverage)),
        "false_claims": (float(np.mean(false_claims)), max(false_claims)),
        "power": float(np.mean([it["power"] for it in of_pairs])),
        "width": width,
        "valid": valid,
        "within": valid and max(coverage) <= high and width <= WIDTH,
    }


def narrowest_width(figures: Mapping[str, Any], bank: Mapping[str, Any]) -> float:
    """Width, as in `summary`, of the intervals with the bank's own standard deviations and normal quantiles."""
    quantile = scipy.stats.norm.ppf(0.975)
    widths = []
    for pair in figures["pairs"]:
        deviations = [bank[pair["corpus"]][row]["sd"] for row in pair["rows"]]
        known = 2 * quantile * np.hypot(*deviations) / np.sqrt(figures["seeds"])
        widths.append(known / pair["methods"][PAIRED]["width"])
    return float(np.mean(widths))


def valid_methods(result: Mapping[str, Any]) -> list[str]:
    """The methods that are valid at each sample size, the one with the narrowest intervals first."""
    of_method = {name: [summary(figures, name) for figures in result["samples"]] for name in METHODS}
    valid = [name for name, sizes in of_method.items() if all(it["valid"] for it in sizes)]
    return sorted(valid, key=lambda name: sum(it["width"] for it in of_method[name]))


def page(result: Mapping[str, Any]) -> str:
    """The page: what is in the bank, a table of all methods at all sample sizes, and the picture."""
    bank = [
        [corpus, row, f"{it['seeds']}", f"{it['mean']:.2f}", f"{it['sd']:.2f}"]
        for corpus, rows in result["bank"].items()
        for row, it in rows.items()
    ]
    lines = [line(figures, method) for figures in result["samples"] for method in METHODS]
    kept = ", ".join(
        name for name in METHODS if all(summary(figures, name)["within"] for figures in result["samples"])
    )
    parts = [
        TITLE,
        markdown_table(("corpus", "row", "seeds", "mean F1", "sd"), [":--", ":--", *["--:"] * 3], *bank),
        f"{result['draws']:,} samples of 2, 3 and 5 seeds were drawn for each pair of rows of a corpus. {LEGEND}",
        markdown_table(HEADINGS, ["--:", ":--", *["--:"] * 5], *lines),
        f"{f'All bounds: {kept}.' if kept else 'No method keeps all bounds.'} {limit_of_width(result)}",
        f"Valid at each number of seeds, with a coverage of at least {100 * COVERAGE[0]:.0f} % in each pair and at "
        f"most {100 * FALSE_CLAIMS:.0f} % false claims in each cell: {', '.join(valid_methods(result)) or 'none'}. "
        f"The tables use {USED}.",
        ROBUST,
        "![Coverage of 95 % intervals, by method and number of seeds](calibration.svg)",
    ]
    return "\n\n".join(parts) + "\n"


def limit_of_width(result: Mapping[str, Any]) -> str:
    """Sentence on the least width that a method with a coverage of 95 % can have."""
    widths = {figures["seeds"]: narrowest_width(figures, result["bank"]) for figures in result["samples"]}
    text = ", ".join(f"{width:.2f} with {seeds} seeds" for seeds, width in widths.items())
    wide = ", ".join(f"{seeds}" for seeds, width in widths.items() if width > WIDTH)
    rule = (
        f"; so no method with a coverage of 95 % keeps the bound on the width with {wide} seeds"
        if wide
        else ""
    )
    return f"If the standard deviations were known, the width would be {text}{rule}."


def line(figures: Mapping[str, Any], method: str) -> list[str]:
    """A line of the page's table: a method at one sample size."""
    it = summary(figures, method)
    low, mean, high = (f"{100 * share:.1f}" for share in it["coverage"])
    return [
        f"{figures['seeds']}",
        method + (" (used)" if method == USED else ""),
        f"{mean} ({low} to {high})",
        f"{100 * it['false_claims'][0]:.1f} (at most {100 * it['false_claims'][1]:.1f})",
        f"{100 * it['power']:.0f}",
        f"{it['width']:.2f}",
        "yes" if it["within"] else "no",
    ]


def picture(result: Mapping[str, Any]) -> str:
    """Coverage of each pair of rows, by method and sample size, with the bounds as a band."""
    looks = {"other": Look(SERIES[0], filled=False), "used": Look(SERIES[1], filled=False)}
    values = {
        f"coverage with {figures['seeds']} seeds, %": [
            Value(
                method,
                100 * pair["methods"][method]["coverage"],
                series="used" if method == USED else "other",
            )
            for method in METHODS
            for pair in figures["pairs"]
        ]
        for figures in result["samples"]
    }
    domain = domain_of([value.value for of_size in values.values() for value in of_size])
    band = [100 * share for share in COVERAGE]
    panels = [
        dots(of_size, label, look_of=looks, domain=domain, band=band, rule=95, apart=False)
        for label, of_size in values.items()
    ]
    text = "A point for each pair of rows of the seed bank; the band is from 93 to 97 %."
    return Chart("Coverage of 95 % intervals", text, tuple(panels)).svg(1000)


if __name__ == "__main__":
    main()
