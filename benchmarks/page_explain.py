"""The page's section on where the time goes: shares of what was measured, and what would be left of it."""

from statistics import median
from typing import Any

from page_parts import Section, figure, table

Result = dict[str, Any]
TITLES = {"train": "training", "decode": "decoding"}
LIBRARIES = "and numba"
"""The last of explain.py's imports: all libraries."""


def explain(result: Result) -> Section:
    lines = []
    for name, found in result["models"].items():
        lines += of_model(name, found, result["rate"])
    return Section([*lines, *of_crf(result["crf"]), *of_units(result), *of_imports(result["imports"])], [])


def of_model(name: str, found: Result, rate: float) -> list[str]:
    rows = []
    for task, title in TITLES.items():
        seconds = {part: times["median"] for part, times in found[task].items()}
        whole = seconds["whole"]
        rest = {"the rest": whole - sum(time for part, time in seconds.items() if part != "whole")}
        for part, time in (seconds | rest).items():
            rows.append([f"{title}: {part}", figure(1e3 * time / found["batches"]), f"{time / whole:.0%}"])
    train = {part: times["median"] for part, times in found["train"].items()}
    layers, products = train["recurrent layers"], found["operations"] / rate
    lightning = found["lightning"]["median"] / train["whole"] - 1
    tokens = found["tokens"] / found["batches"]
    text = (
        f"If all but the recurrent layers cost nothing, a training step would be "
        f"{train['whole'] / layers:.2f} times as fast. Their products at the machine's rate of "
        f"{rate / 1e9:.0f} GFLOP/s would take {products / layers:.0%} of their time. Lightning's loop, with "
        f"the suite's callbacks and the making of batches, takes {lightning:+.0%} beside a bare one."
    )
    return ["", *table([f"{name}: {tokens:.0f} tokens a batch", "ms a batch", "share"], rows), "", text]


def of_crf(shapes: list[Result]) -> list[str]:
    rows = []
    for task, title in (("loss", "loss and gradient"), ("decode", "decoding")):
        ranked = sorted(shapes, key=lambda shape, task=task: -fixed(shape, task))
        for place, kind in ((0, "most"), (len(ranked) // 2, "median"), (-1, "least")):
            sentences, length, tags = ranked[place]["shape"]
            call = ranked[place]["seconds"][f"{task}, call"]["median"]
            name = f"{title}, {kind}: {sentences} sentences of up to {length}, {tags} tags"
            rows.append([name, figure(1e6 * call), f"{fixed(ranked[place], task):.0%}"])
    smallest = median(shape["seconds"]["loss, fixed"]["median"] for shape in shapes)
    decoding = median(shape["seconds"]["decode, fixed"]["median"] for shape in shapes)
    text = (
        f"Fixed is what a call takes for one token of two tags, {1e6 * smallest:.0f} microseconds for a loss "
        f"with its gradient and {1e6 * decoding:.0f} for decoding: PyTorch's bookkeeping and Python around "
        "the kernel. It bounds the ratio where there is little to compute."
    )
    return ["", *table(["a call of the CRF", "microseconds", "fixed"], rows), "", text]


def fixed(shape: Result, task: str) -> float:
    seconds = shape["seconds"]
    return seconds[f"{task}, fixed"]["median"] / seconds[f"{task}, call"]["median"]


def of_units(result: Result) -> list[str]:
    rows = []
    for found in result["units"]:
        seconds = {part: times["median"] for part, times in found["seconds"].items()}
        least = found["operations"] / result["rate"]
        times = (seconds["whole"], seconds["input's products"], least)
        rows.append([f"{found['units']} x {found['size']}", *(figure(1e3 * time) for time in times)])
        rows[-1].append(f"{least / seconds['whole']:.0%}")
    head = ["units, even, forward and backward", "ms", "of it products with the input"]
    text = (
        "The last two columns are all products, with the input and with the states, at the machine's rate: "
        "more could not be gained by any means."
    )
    return ["", *table([*head, "all products at best", "share"], rows), "", text]


def of_imports(commands: dict[str, Any]) -> list[str]:
    seconds = {name: times["median"] for name, times in commands.items()}
    *imports, (smoke, whole) = seconds.items()
    before = [0.0, *(time for _, time in imports)]
    rows = [
        [name, f"{time:.2f}", f"{(time - start) / whole:.0%}"]
        for (name, time), start in zip(imports, before, strict=False)
    ]
    text = (
        f"Libraries alone take {seconds[LIBRARIES]:.2f} of the {whole:.2f} seconds of `{smoke}`. Lightning "
        "imports torchmetrics, and that scipy, transformers and matplotlib where they are installed."
    )
    head = ["a process", "seconds", "adds, of a smoke run"]
    return ["", *table(head, [*rows, [f"`{smoke}`", f"{whole:.2f}", ""]]), "", text]
