"""Tables of the result of gpu.py: one function per part that was measured."""

from statistics import mean

from figures import TASKS, Result, figure, ms, ratio, table
from result_tables import units

GPU_LOAD = {"utilization.gpu": "utilization, %", "clocks.sm": "clock, MHz", "power.draw": "power, W"}


def gpu(result: Result) -> list[str]:
    """Tables of the parts that were measured. Each part maps a measurement's name to the results of its processes."""
    makers = (gpu_epochs, gpu_crf, gpu_units, gpu_seeds, gpu_determinism)
    return [text for make in makers if (text := make(result))]


def gpu_epochs(result: Result) -> str:
    rows = []
    for name, (one,) in result.get("epochs", {}).items():
        whole = figure(one["seconds"] * one["of"] / one["tokens"])
        cut_off = (
            "" if one["tokens"] == one["of"] else f" (from {one['tokens'] / one['of']:.0%} of its tokens)"
        )
        memory = figure(one["bytes"] / 1e6) if one["bytes"] else ""
        rows.append([name, whole + cut_off, figure(one["tokens"] / one["seconds"]), memory, *gpu_load([one])])
    head = ("an epoch", "seconds", "tokens/s", "GPU memory, MB", *GPU_LOAD.values())
    return table(*head, rows=rows) if rows else ""


def gpu_load(processes: list[Result]) -> list[str]:
    """Cells of the GPU's utilization, clock and power: means over the concurrent processes."""
    means = [[one["load"][query] for one in processes if query in one["load"]] for query in GPU_LOAD]
    return [figure(mean(values)) if values else "" for values in means]


def gpu_crf(result: Result) -> str:
    shapes = {name: shape for name, (shape,) in result.get("crf", {}).items()}
    others = ("PyTorch", "pytorch-crf", "torch-struct")
    rows = []
    for name, shape in shapes.items():
        for task in ("loss", "decode"):
            times = shape[task]
            gains = [ratio(times[other], times["ours"]) if other in times else "" for other in others]
            rows.append([f"{name}, {TASKS[task]}", ms(times["ours"]), *gains])
    return table("CRF", "ours, ms", *(f"{other}, times ours" for other in others), rows=rows) if rows else ""


def gpu_units(result: Result) -> str:
    shapes = [shape for (both,) in result.get("units", {}).values() for shape in both]
    return units({"shapes": shapes})[0] if shapes else ""


def gpu_seeds(result: Result) -> str:
    rates = {
        name: sum(one["tokens"] / one["seconds"] for one in processes)
        for name, processes in result.get("seeds", {}).items()
    }
    rows = [
        [
            name,
            figure(rate),
            f"{rate / rates['1']:.2f}" if "1" in rates else "",
            *gpu_load(result["seeds"][name]),
        ]
        for name, rate in rates.items()
    ]
    head = ("processes at once", "tokens/s, in all", "times one process", *GPU_LOAD.values())
    return table(*head, rows=rows) if rows else ""


def gpu_determinism(result: Result) -> str:
    ways = ("as trained", "deterministic")
    rows = []
    for name in {name: None for way in ways for name in result.get(way, {})}:
        found = [result.get(way, {}).get(name) for way in ways]
        same = ["" if each is None else "equal" if is_equal(each) else "**differ**" for each in found]
        cost = ""
        if None not in found:
            seconds = [mean(one["seconds"] for one in each) for each in found]
            cost = f"{seconds[1] / seconds[0] - 1:+.0%}"
        rows.append([name, *same, cost])
    head = ("weights of two processes", "by default", "`runtime.deterministic=true`", "its cost in time")
    return table(*head, rows=rows) if rows else ""


def is_equal(processes: list[Result]) -> bool:
    return len({one["weights"] for one in processes}) == 1
