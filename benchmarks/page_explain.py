"""The page's section on where the time goes: shares of what was measured, and what would be left of it."""

from typing import Any

from page_parts import Section, figure, table

Result = dict[str, Any]
TITLES = {"train": "training", "decode": "decoding"}


def explain(result: Result) -> Section:
    lines = []
    for name, found in result["models"].items():
        lines += of_model(name, found, result["rate"])
    return Section([*lines, *of_crf(*result["crf"]), *of_units(result)], [])


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
    lightning = found["loops"]["Lightning"]["median"] / found["loops"]["bare"]["median"] - 1
    tokens = found["tokens"] / found["batches"]
    text = (
        f"If all but the recurrent layers cost nothing, a training step would be "
        f"{train['whole'] / layers:.2f} times as fast. Their products at the machine's rate of "
        f"{rate / 1e9:.0f} GFLOP/s would take {products / layers:.0%} of their time. Lightning's loop, with "
        f"the suite's callbacks and the making of batches, takes {lightning:+.0%} beside a bare one."
    )
    return ["", *table([f"{name}: {tokens:.0f} tokens a batch", "ms a batch", "share"], rows), "", text]


def of_crf(smallest: Result, *shapes: Result) -> list[str]:
    rows = []
    for task, title in (("loss", "loss and gradient"), ("decode", "decoding")):
        fixed = smallest["seconds"][task]["median"]
        ranked = sorted(shapes, key=lambda shape, task=task: shape["seconds"][task]["median"])
        for place, kind in ((0, "shortest"), (len(ranked) // 2, "median"), (-1, "longest")):
            sentences, length, tags = ranked[place]["shape"]
            call = ranked[place]["seconds"][task]["median"]
            name = f"{title}, {kind}: {sentences} sentences of up to {length}, {tags} tags"
            rows.append([name, figure(1e6 * call), f"{fixed / call:.0%}"])
    loss, decoding = (1e6 * smallest["seconds"][task]["median"] for task in ("loss", "decode"))
    text = (
        f"Fixed is what a call takes for one token of two tags, {loss:.0f} microseconds for a loss with its "
        f"gradient and {decoding:.0f} for decoding: PyTorch's bookkeeping and Python around the kernel. It "
        "bounds the ratio where there is little to compute."
    )
    return ["", *table(["a call of the CRF", "microseconds", "fixed"], rows), "", text]


def of_units(result: Result) -> list[str]:
    rows = []
    for found in result["units"]:
        seconds = {part: times["median"] for part, times in found["seconds"].items()}
        least = found["operations"] / result["rate"]
        times = (seconds["whole"], seconds["input's products"], least)
        rows.append([f"{found['units']} x {found['size']}", *(figure(1e3 * time) for time in times)])
        rows[-1].append(f"{least / seconds['whole']:.0%}")
    head = ["units, even, forward and backward", "ms", "of it, products with the input"]
    text = (
        "The last two columns are all products, with the input and with the states, at the machine's rate: "
        "more could not be gained by any means."
    )
    return ["", *table([*head, "all products at best", "share"], rows), "", text]
