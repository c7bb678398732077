"""Speed targets of the suite, and whether the results meet them."""

import math
from collections.abc import Iterator

from figures import TASKS, Result


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    """Rows of the targets, with the script that measures each."""
    for name, rows in TARGETS.items():
        for row in rows(results):
            yield [*row, f"[{name}.py]({name}.py)"]


def end_to_end_targets(results: dict[str, Result]) -> Iterator[list[str]]:
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


def machine_limit_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    share = 100 * results["machine_limit"]["models"]["residual"]["share"]
    what = "rate of a training step of `model=residual` (4 layers of size 300), as a share of a large product's rate"
    yield at_least(what, 65, share, 100, unit=" %")


def crf_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    for task, kind, least in (
        ("loss", "worst", 12),
        ("loss", "median", 25),
        ("decode", "worst", 16),
        ("decode", "median", 37),
    ):
        if against := results["crf"]["ratios"][task].get("pytorch-crf"):
            yield at_least(f"CRF against pytorch-crf, {TASKS[task]}, {kind}", least, against[kind])


def units_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    """Limit: as in `end_to_end_targets`."""
    units, parts = results["units"], results["time_breakdown"]
    limits = {
        (case["units"], case["size"]): case["seconds"]["whole"]["median"] * parts["rate"] / case["operations"]
        for case in parts["units"]
    }
    for number, size, least in ((128, 8, 4), (64, 16, 2.5), (16, 64, 1.3)):
        shapes = [
            shape["train"] for shape in units["shapes"] if (shape["units"], shape["size"]) == (number, size)
        ]
        gain = min(fastest_stock(times)["median"] / times["ours"]["median"] for times in shapes)
        limit = gain * limits[number, size]
        yield at_least(f"{number} x {size} units against stock LSTMs, {TASKS['train']}", least, gain, limit)
    cases = [shape[task] for shape in units["shapes"] for task in ("train", "forward")]
    slower = sum(
        case["ours"]["quartiles"][0] > min(t["quartiles"][1] for t in case.values()) for case in cases
    )
    what = "units slower than stock LSTMs or than lock-step by so much that the quartiles do not overlap"
    yield [what, "in no case", f"in {slower} of {len(cases)} cases", "", "**no**" if slower else "yes"]


def batches_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    padding = results["batches"]["corpora"]["conll2003"]["plans"]["batches=tokens"]["processed_per_token"]
    yield at_most("processed tokens per real one on CoNLL-2003, batches=tokens", 1.02, "", padding)


def startup_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    seconds = {name: times["median"] for name, times in results["startup"]["commands"].items()}
    smoke, job = seconds["run.py trainer=smoke data=toy_en"], results["startup"]["further_job"]
    for what, most, measured, against in (
        ("`run.py --help`", 1, seconds["run.py --help"], "import torch"),
        ("a smoke run", 3, smoke, "import torch, lightning"),
        ("`predict`", 2.5, seconds["ner-experiments predict RUN -"], "import torch"),
    ):
        yield at_most(f"{what} against `{against}`", most, " times", measured / seconds[against])
    first = seconds["the first smoke run"] - smoke
    yield at_most("the first smoke run, which compiles the kernels: more than a later one", 12, " s", first)
    yield at_most(
        "a further job of a sweep: more than its training", 0.3, " s", job["seconds"] - job["training"]
    )


def vectors_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    cached = results["vectors"]["readers"]["ours, from the cache"]
    yield at_most("word vectors from the cache", 0.2, " s", cached["median"])
    yield at_most("word vectors from the cache, memory", 100, " MB", cached["bytes"] / 1e6)


def scoring_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    yield at_most("span F1 of 50,000 sentences", 0.5, " s", results["scoring"]["scorers"]["ours"]["median"])


def growth_targets(results: dict[str, Result]) -> Iterator[list[str]]:
    runs, corpus = (results["growth"][part] for part in ("runs", "corpus"))
    for name, most in (("table", 5), ("watch --once", 3), ("report", 10)):
        what = f"`{name}` of a sweep of {runs['number']:,} finished runs"
        yield at_most(what, most, " s", runs["commands"][name]["median"])
    what, rate = f"a corpus of {corpus['sentences']:,} sentences", corpus["tokens"] / corpus["seconds"]
    yield at_least(f"{what}, read and encoded, thousands of tokens a second", 500, rate / 1000, unit="")
    yield at_most(
        f"{what}, peak memory against the memory kept", 1.5, " times", corpus["bytes"] / corpus["held"]
    )


TARGETS = {
    "end_to_end": end_to_end_targets,
    "machine_limit": machine_limit_targets,
    "crf": crf_targets,
    "units": units_targets,
    "batches": batches_targets,
    "startup": startup_targets,
    "vectors": vectors_targets,
    "scoring": scoring_targets,
    "growth": growth_targets,
}
"""The targets of each script, in the order of the page."""


def at_best(model: Result, task: str, rate: float) -> float:
    """Gain of the whole if the products of its recurrent layers ran at the rate of two large matrices.

    A forward pass has a third of the products of training.
    """
    whole, layers = (model[task][part]["median"] for part in ("whole", "recurrent layers"))
    products = model["operations"] / rate / (1 if task == "train" else 3)
    return whole / (whole - layers + products)


def fastest_stock(times: Result) -> Result:
    return min(
        (found for name, found in times.items() if name.startswith("stock")),
        key=lambda found: found["median"],
    )


def at_least(
    what: str, least: float, measured: float, limit: float | None = None, *, unit: str = " times"
) -> list[str]:
    met = measured >= least
    shown = measured if met else math.floor(100 * measured) / 100  # 15.995 is not 16.00
    return [
        what,
        f"at least {least}{unit}",
        f"{shown:.2f}",
        "" if limit is None else f"{limit:.1f}",
        "yes" if met else "**no**",
    ]


def at_most(what: str, most: float, unit: str, measured: float) -> list[str]:
    met = measured <= most
    number = f"{measured:.3g}" if unit else f"{measured:.3f}"
    if not met and float(number) <= most:
        number = f"{measured}"
    return [what, f"at most {most}{unit}", f"{number}{unit}", "", "yes" if met else "**no**"]
