"""The page's section on units that run side by side."""

from typing import Any

from page_parts import TASKS, Bar, Section, at_least, milliseconds, table, times_of

Result = dict[str, Any]


def units(result: Result) -> Section:
    rows = []
    gains: dict[tuple[int, int], list[float]] = {}
    for shape in result["shapes"]:
        for task in ("train", "forward"):
            gain = {
                name: times["median"] / shape[task]["ours"]["median"] for name, times in shape[task].items()
            }
            if task == "train":
                stock = min(of_name for name, of_name in gain.items() if name.startswith("stock"))
                gains.setdefault((shape["units"], shape["size"]), []).append(stock)
            gained = [times_of(gain.get(other)) for other in ("stock, padded", "stock, packed", "lock-step")]
            rows.append([f"{case(shape)}, {TASKS[task]}", milliseconds(shape[task]["ours"]), *gained])
    bars = [
        at_least(
            f"{units} x {size} units against stock LSTMs, {TASKS['train']}", least, min(gains[units, size])
        )
        for (units, size), least in {(128, 8): 4, (64, 16): 2.5, (16, 64): 1.3}.items()
        if (units, size) in gains
    ]
    head = ["units", "ours, ms", "against stock, padded", "stock, packed", "lock-step"]
    lines = ["", *table(head, rows), "", lock_step(result["shapes"])]
    return Section(lines, [*bars, never_slower(result["shapes"])])


def lock_step(shapes: list[dict[str, Any]]) -> str:
    """What the prototype by which the bars were set comes to on this machine."""
    found = [
        f"{shape['units']} x {shape['size']} {times_of(fastest / shape['train']['lock-step']['median'])}"
        for shape in shapes
        if not shape["ragged"]
        for fastest in [min(t["median"] for name, t in shape["train"].items() if name.startswith("stock"))]
    ]
    return (
        "The bars were set by lock-step on another machine, on even batches. Here it is so many times as "
        f"fast as stock, forward and backward: {', '.join(found)}."
    )


def case(shape: dict[str, Any]) -> str:
    return f"{shape['units']} x {shape['size']}, {'ragged' if shape['ragged'] else 'even'}"


def never_slower(shapes: list[dict[str, Any]]) -> Bar:
    """Slower: the lower quartile is above the other's upper one. Of equal runs chance makes one the first."""
    slower = [
        case(shape)
        for shape in shapes
        for task in ("train", "forward")
        if shape[task]["ours"]["quartiles"][0] > min(times["quartiles"][1] for times in shape[task].values())
    ]
    measured = f"slower in {len(slower)} of {2 * len(shapes)} cases"
    return Bar(
        "units: never slower than stock or lock-step, beyond the quartiles",
        "in no case",
        measured,
        not slower,
    )
