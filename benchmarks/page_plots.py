"""The page's plots, one for each benchmark that has something to show."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
Result = dict[str, Any]


def figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def finish(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(across, fontsize=9)
    axes.set_ylabel(up, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)


def crf(result: Result, path: Path) -> None:
    made = figure(11, 4)
    for axes, (task, title) in zip(
        made.subplots(1, 2, sharey=True), (("loss", "loss and gradient"), ("decode", "decoding")), strict=True
    ):
        peers = sorted({name for shape in result["shapes"] for name in shape[task]} - {"ours"})
        for color, name in zip(COLORS, peers, strict=False):
            points = [
                (
                    shape["batch"] * shape["time"] * shape["tags"] ** 2,
                    shape[task][name]["median"] / shape[task]["ours"]["median"],
                )
                for shape in result["shapes"]
                if name in shape[task]
            ]
            axes.scatter(*zip(*points, strict=True), s=22, color=color, label=name, alpha=0.8, linewidths=0)
        axes.axhline(1, color="gray", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        finish(
            axes,
            title,
            "pairs of tags in a batch: sentences x length x tags²",
            "times ours" if task == "loss" else "",
        )
        if peers:
            axes.legend(fontsize=8)
    made.savefig(path, dpi=120)


def units(result: Result, path: Path) -> None:
    made = figure(11, 4)
    kinds = ("ours", "lock-step", "stock, packed", "stock, padded")
    for axes, ragged in zip(made.subplots(1, 2, sharey=True), (False, True), strict=True):
        shapes = [shape for shape in result["shapes"] if shape["ragged"] == ragged]
        shown = kinds[:3] if ragged else kinds
        for number, (name, color) in enumerate(zip(shown, COLORS, strict=False)):
            gains = [fastest_stock(shape) / shape["train"][name]["median"] for shape in shapes]
            places = [place + 0.2 * (number - (len(shown) - 1) / 2) for place in range(len(shapes))]
            axes.bar(places, gains, width=0.18, color=color, label=name)
        axes.axhline(1, color="gray", linewidth=1)
        axes.set_xticks(range(len(shapes)), [f"{shape['units']} x {shape['size']}" for shape in shapes])
        finish(axes, "ragged" if ragged else "even lengths", "units x size", "" if ragged else "speed")
        axes.legend(fontsize=8, frameon=False)
    made.savefig(path, dpi=120)


def fastest_stock(shape: dict[str, Any]) -> float:
    return min(times["median"] for name, times in shape["train"].items() if name.startswith("stock"))


def limit(result: Result, path: Path) -> None:
    models = sorted(result["models"].items(), key=lambda item: item[1]["share"])
    made = figure(8, 1 + 0.3 * len(models))
    axes = made.subplots()
    shares = [100 * found["share"] for _, found in models]
    axes.barh(range(len(models)), shares, color=COLORS[0])
    for row, share in enumerate(shares):
        axes.text(share + 0.7, row, f"{share:.0f}", va="center", fontsize=8)
    axes.set_yticks(range(len(models)), [name for name, _ in models])
    finish(axes, "", "a training step's share of the measured matrix-product rate, %", "")
    axes.grid(visible=False, axis="y")
    made.savefig(path, dpi=120)


def growth(result: Result, path: Path) -> None:
    lines = list(result["lines"].values())
    made = figure(11, 3.1 * ((len(lines) + 2) // 3))
    grid = made.subplots((len(lines) + 2) // 3, 3, squeeze=False).flatten()
    for axes, line in zip(grid, lines, strict=False):
        x, slopes = line["values"], line["slopes"]
        start = line["seconds"][0]["median"]
        low, high = ([times["quartiles"][end] / start for times in line["seconds"]] for end in (0, 1))
        time = [times["median"] / start for times in line["seconds"]]
        memory = [number / line["bytes"][0] for number in line["bytes"]]
        axes.plot(x, time, "o-", color=COLORS[0], label=f"time, slope {slopes['seconds']['all']:.2f}")
        axes.fill_between(x, low, high, color=COLORS[0], alpha=0.2, linewidth=0)
        axes.plot(x, memory, "s--", color=COLORS[1], label=f"memory, slope {slopes['bytes']['all']:.2f}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(x, [f"{value:,}" for value in x])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_ylim(min(0.7, *low, *memory) / 1.1, max(1.5, *high, *memory) * 1.1)  # noise stays small
        finish(axes, "", line["name"], f"times that of {x[0]:,}")
        axes.legend(fontsize=8, frameon=False)
    for axes in grid[len(lines) :]:
        axes.remove()
    made.savefig(path, dpi=120)


def threads(result: Result, path: Path) -> None:
    cases = result["cases"]
    kinds = list(next(iter(cases.values())))
    made = figure(9, 1.2 + 0.35 * len(cases))
    axes = made.subplots()
    for number, kind in enumerate(kinds):
        relative = [found[kind]["median"] / found["1"]["median"] for found in cases.values()]
        axes.scatter(relative, range(len(cases)), s=50, color=COLORS[number % len(COLORS)], label=kind)
    axes.set_yticks(range(len(cases)), list(cases))
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    finish(axes, "", "time of a step, one thread = 1", "")
    axes.grid(visible=False, axis="y")
    axes.legend(
        title="threads", fontsize=8, title_fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1)
    )
    made.savefig(path, dpi=120)


def end_to_end(result: Result, path: Path) -> None:
    names = list(result["contestants"])
    made = figure(10, 1 + 0.4 * len(names))
    for axes, task in zip(made.subplots(1, 2, sharey=True), ("train", "decode"), strict=True):
        speeds = [result["contestants"][name][f"{task}_tokens_per_second"] for name in names]
        axes.barh(range(len(names)), [speed["median"] for speed in speeds], color=COLORS[0])
        for row, speed in enumerate(speeds):
            axes.plot(speed["quartiles"], [row, row], color="black", linewidth=2)
        axes.set_yticks(range(len(names)), names)
        finish(axes, {"train": "training", "decode": "decoding"}[task], "tokens per second", "")
        axes.grid(visible=False, axis="y")
    axes.invert_yaxis()
    made.savefig(path, dpi=120)


PLOTS: dict[str, tuple[Callable[[Result, Path], None], str]] = {
    "crf": (
        crf,
        "Each dot is a shape: how many times as long as ours a peer takes; above the line ours is faster.",
    ),
    "units": (units, "Training: speed, that of the faster kind of stock LSTMs being 1; higher is faster."),
    "limit": (
        limit,
        "The rest of a step goes to gates, states, the CRF, embeddings and the optimizer, or to waiting.",
    ),
    "growth": (
        growth,
        "Time and memory, those of the first value being 1; on logarithmic axes power laws are straight.",
    ),
    "threads": (threads, "Left of the line threads pay; right of it they cost more than they bring."),
    "end_to_end": (end_to_end, "Bars are medians over rounds, black lines go from quartile to quartile."),
}
