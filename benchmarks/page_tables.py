"""A section of the page for each benchmark: its tables, and the bars that were set, from its result."""

from statistics import mean, variance
from typing import Any

from page_parts import (
    TASKS,
    Bar,
    Section,
    at_least,
    milliseconds,
    ratio_table,
    seconds,
    table,
    times_of,
    under,
)

Result = dict[str, Any]


def crf(result: Result) -> Section:
    asked = {"loss": {"worst": 12, "median": 25}, "decode": {"worst": 16, "median": 37}}
    bars = [
        at_least(f"CRF against pytorch-crf, {TASKS[task]}, {kind}", least, found["pytorch-crf"][kind])
        for task, kinds in asked.items()
        for kind, least in kinds.items()
        if (found := result["ratios"][task]).get("pytorch-crf")
    ]
    lines = [line for task, found in result["ratios"].items() for line in ["", *ratio_table(task, found)]]
    return Section(lines, bars)


def peephole(result: Result) -> Section:
    rows = [
        [
            f"{found['size']}, {TASKS[task]}",
            *(milliseconds(found[task][name]) for name in ("ours", "loop", "stock")),
        ]
        for found in result["sizes"]
        for task in ("train", "forward")
    ]
    head = ["units", "ours, ms", "the loop, ms", "stock LSTM, without peepholes, ms"]
    return Section(["", *table(head, rows)], [])


def limit(result: Result) -> Section:
    rows = [
        [
            name,
            f"{found['operations'] / 1e9:.2f}",
            milliseconds(found["seconds"]["train"]),
            f"{found['rate'] / 1e9:.0f}",
            f"{found['share']:.0%}",
            f"{found['tokens_per_second']['train']:,.0f}",
            f"{found['tokens_per_second']['decode']:,.0f}",
        ]
        for name, found in result["models"].items()
    ]
    head = [
        "model",
        "GFLOP a step",
        "step, ms",
        "limit, GFLOP/s",
        "share of it",
        "tokens/s, training",
        "decoding",
    ]
    return Section(["", *table(head, rows)], [])


def growth(result: Result) -> Section:
    rows = [
        [
            line["name"],
            ", ".join(map(str, line["values"])),
            *(
                f"{line['slopes'][what][which]:.2f}"
                for what in ("seconds", "bytes")
                for which in ("all", "last")
            ),
            GROWTH[name],
        ]
        for name, line in result["lines"].items()
    ]
    head = ["knob", "values", "slope of time", "at its end", "slope of memory", "at its end", "why"]
    return Section(["", *table(head, rows)], [])


GROWTH = {
    "length": "Each time step costs the same, and its states are kept for the backward pass.",
    "types": "The CRF's work is quadratic in the tags, but small beside the LSTMs'.",
    "units": "The weights are quadratic in the units; narrow layers do not fill the processor, wide ones do.",
    "layers": "Each layer adds the same, and the first one reads fewer numbers.",
    "sentences": "Twice the sentences are twice the steps; the batches in memory stay as large as they are.",
    "processes": "Seconds for 1,000 tokens: on n free processors, without an exchange, an n-th.",
}


def threads(result: Result) -> Section:
    kinds = list(next(iter(result["cases"].values())))
    rows = [[name, *(milliseconds(found[kind]) for kind in kinds)] for name, found in result["cases"].items()]
    said = f"`runtime.threads` is {result['default']} if nothing is said."
    return Section(["", *table(["a step, ms", *(f"threads: {kind}" for kind in kinds)], rows), "", said], [])


def bf16(result: Result) -> Section:
    rows = []
    for name, found in result["models"].items():
        for task in ("train", "decode"):
            full, half = found[task]["float32"], found[task]["bf16"]
            gain = times_of(full["median"] / half["median"])
            rows.append([f"{name}, {TASKS[task]}", milliseconds(full), milliseconds(half), gain])
    scores = []
    for name, found in result["scores"].items():
        full, half = found["float32"], found["bf16"]
        difference = f"{100 * (mean(half) - mean(full)):+.2f}"
        scores.append(
            [name, *(", ".join(f"{100 * f1:.2f}" for f1 in kind) for kind in (full, half)), difference]
        )
    lines = ["", *table(["model", "float32, ms", "bf16, ms", "gain"], rows), ""]
    lines += table(["test F1, seed by seed", "float32", "bf16", "mean difference"], scores)
    return Section([*lines, *(["", in_words(result["scores"])] if scores else [])], [])


def in_words(scores: dict[str, dict[str, list[float]]]) -> str:
    """A difference between two means of n seeds is noise up to two of its standard errors."""
    found = []
    for name, kinds in scores.items():
        full, half = kinds["float32"], kinds["bf16"]
        noise = 2 * (variance(full) / len(full) + variance(half) / len(half)) ** 0.5
        within = "within" if abs(mean(half) - mean(full)) <= noise else "beyond"
        found.append(f"on {name} {within} the {100 * noise:.1f} points that seeds alone may make")
    return f"The difference that bf16 makes is {', and '.join(found)} (two standard errors)."


def batches(result: Result) -> Section:
    lines, bars = [], []
    for corpus, found in result["corpora"].items():
        rows = [
            [
                name,
                f"{plan['batches']:,}",
                f"{plan['processed_per_token']:.3f}",
                milliseconds(plan["seconds_per_1000"]),
                f"{plan['together']:.2%} ({plan['chance']:.2%})",
                f"{plan['again']}",
            ]
            for name, plan in found["plans"].items()
        ]
        title = f"{corpus}: {found['sentences']:,} sentences, {found['tokens']:,} tokens"
        head = [title, "batches", "processed tokens per real one", "ms per 1,000 sentences"]
        lines += ["", *table([*head, "pairs that stay together (chance)", "batches that come again"], rows)]
    if "conll2003" in result["corpora"]:
        padding = result["corpora"]["conll2003"]["plans"]["batches=tokens"]["processed_per_token"]
        what = "processed tokens per real one on CoNLL-2003, batches=tokens"
        bars.append(Bar(what, "at most 1.02", f"{padding:.3f}", padding <= 1.02))
    return Section(lines, bars)


def startup(result: Result) -> Section:
    bare = result["commands"]["python -c pass"]["median"]
    rows = [
        [f"`{name}`", seconds(times), times_of(times["median"] / bare)]
        for name, times in result["commands"].items()
    ]
    lines = ["", *table(["command", "seconds", "times `python -c pass`"], rows)]
    for name, parts in result["imports"].items():
        largest = ", ".join(f"{part} {spent:.2f}" for part, spent in parts.items() if spent >= 0.01)
        whole = result["commands"][name]["median"]
        share = f"{sum(parts.values()):.2f} of {whole:.2f}"
        lines += ["", f"Seconds of `{name}` in imports, {share} in all: {largest}."]
    helped, smoke = (
        result["commands"][name] for name in ("run.py --help", "run.py trainer=smoke data=toy_en")
    )
    return Section(lines, [under("run.py --help", 1, helped), under("a smoke run", 6, smoke)])


def vectors(result: Result) -> Section:
    rows = [
        [name, seconds(found), f"{found['bytes'] / 1e6:.0f}"] for name, found in result["readers"].items()
    ]
    size = f"{result['lines']:,} x {result['width']}, {result['file_bytes'] / 1e6:.0f} MB"
    cached = result["readers"]["ours, from the cache"]
    megabytes = cached["bytes"] / 1e6
    memory = Bar("vectors from the cache, memory", "under 100 MB", f"{megabytes:.0f} MB", megabytes < 100)
    head = [f"{size}; {result['words']:,} words kept", "seconds", "MB"]
    return Section(["", *table(head, rows)], [under("vectors from the cache", 0.2, cached), memory])


def scoring(result: Result) -> Section:
    rows = [
        [name, seconds(found), times_of(found["median"] / result["scorers"]["ours"]["median"])]
        for name, found in result["scorers"].items()
    ]
    title = f"{result['sentences']:,} sentences, {result['tokens']:,} tokens, {result['mentions']:,} mentions"
    bar = under(f"span F1 of {result['sentences']:,} sentences", 0.5, result["scorers"]["ours"])
    return Section(["", *table([title, "seconds", "times ours"], rows)], [bar])


def end_to_end(result: Result) -> Section:
    rows = [
        [
            name,
            *(seconds(found[f"{task}_tokens_per_second"]) for task in ("train", "decode")),
            f"{found['peak_memory_bytes']['median'] / 1e6:,.0f}",
        ]
        for name, found in result["contestants"].items()
    ]
    lines = ["", *table(["", "training, tokens/s", "decoding, tokens/s", "peak memory, MB"], rows)]
    for title in ("equal", "different"):
        lines += ["", f"{title.capitalize()}:", "", *(f"- {line}" for line in result[title])]
    asked = {("train", "ncrfpp"): 6, ("train", "flair"): 10, ("decode", "ncrfpp"): 8, ("decode", "flair"): 8}
    titles, gains = {"train": "training", "decode": "decoding"}, result["ratios"]["ours"]
    bars = [
        at_least(f"end to end against {peer}, {titles[task]}", least, gains[task][peer])
        for (task, peer), least in asked.items()
        if peer in gains[task]
    ]
    return Section(lines, bars)
