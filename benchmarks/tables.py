"""`python benchmarks/tables.py`: write the tables of README.md and RESULTS.md, between markers, from results/*.json.

A table stands between `<!-- NAME -->` and `<!-- end -->`, where NAME is the benchmark's; `targets` is the table of the
speed targets and whether they were met. Each benchmark prints the same tables when it ends.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

FOLDER = Path(__file__).parent
PAGES, RESULTS = (FOLDER / "README.md", FOLDER / "RESULTS.md"), FOLDER / "results"
MARKED = re.compile(r"(?<=<!-- )(?!end\b)(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
TASKS = {
    "loss": "loss and gradient",
    "train": "forward and backward",
    "forward": "forward",
    "decode": "decoding",
}
PACKAGES = ("torch", "triton", "numba", "pytorch-crf", "torch-struct", "flair", "seqeval", "gensim")
GPU_LOAD = {"utilization.gpu": "utilization, %", "clocks.sm": "clock, MHz", "power.draw": "power, W"}
Result = dict[str, Any]
Cells = Iterable[Sequence[str]]


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        text = MARKED.sub(lambda match: f"{match[1]}{match[2]}\n{marked(match[1])}\n\n", text)
        page.write_text(text, encoding="utf-8")


def marked(name: str) -> str:
    if name == "targets":
        return table(
            *("", "target", "measured", "limit", "met", "script"),
            rows=targets({path.stem: read(path) for path in RESULTS.glob("*.json")}),
        )
    path = RESULTS / f"{name}.json"
    if name == "gpu" and not path.exists():
        return "Not measured yet: no GPU was available."
    return of(path)


def of(path: Path) -> str:
    """The tables of a result, and the circumstances in which it was measured."""
    result = read(path)
    return "\n\n".join([*globals()[result["benchmark"]](result), circumstances(result)])


def read(path: Path) -> Result:
    return json.loads(path.read_text(encoding="utf-8"))


def circumstances(result: Result) -> str:
    options = f"--threads {result['threads']} --rounds {result['rounds']}"
    options += " --clock processor" if result.get("clock") == "processor" else ""
    left_out = f" Left out: {'; '.join(result['left_out'])}." if result.get("left_out") else ""
    versions = [f"{name} {result['versions'][name]}" for name in PACKAGES if name in result["versions"]]
    commit = result["commit"] or "unknown"
    machine = "; ".join([*([result["gpu"]] if "gpu" in result else []), result["cpu"]])
    return (
        f"`python benchmarks/{result['benchmark']}.py {options}`, "
        f"{result['date'][:10]}, commit {commit[:12]}{'+' * commit.endswith('+')}; {machine}; "
        f"Python {result['python']}, {', '.join(versions)}.{left_out}"
    )


def table(*head: str, rows: Cells) -> str:
    lines = (head, ["---", *["---:"] * (len(head) - 1)], *rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def figure(number: float) -> str:
    """The number with three significant digits, or as an integer from 100 on."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def spread(measured: Result, unit: float = 1) -> str:
    """Text of the median and, in parentheses, the quartiles."""
    first, third = (figure(unit * value) for value in measured["quartiles"])
    return f"{figure(unit * measured['median'])} ({first}-{third})"


def ms(measured: Result) -> str:
    return spread(measured, 1e3)


def ratio(one: Result, other: Result) -> str:
    return f"{one['median'] / other['median']:.2f}"


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


def end_to_end(result: Result) -> list[str]:
    rows = [
        [
            name,
            *(spread(found[f"{task}_tokens_per_second"]) for task in ("train", "decode")),
            f"{found['peak_memory_bytes']['median'] / 1e6:,.0f}",
        ]
        for name, found in result["contestants"].items()
    ]
    lists = [
        "\n".join([f"{title.capitalize()}:", "", *(f"- {line}" for line in result[title])])
        for title in ("equal", "different")
    ]
    return [table("", "training, tokens/s", "decoding, tokens/s", "peak memory, MB", rows=rows), *lists]


def time_breakdown(result: Result) -> list[str]:
    tables = []
    for name, model in result["models"].items():
        rows = []
        for task, title in (("train", "training"), ("decode", "decoding")):
            seconds = {part: times["median"] for part, times in model[task].items()}
            whole = seconds["whole"]
            seconds["the rest"] = 2 * whole - sum(seconds.values())
            for part, time in seconds.items():
                rows.append(
                    [f"{title}: {part}", figure(1e3 * time / model["batches"]), f"{time / whole:.0%}"]
                )
        least, (bare, lightning) = model["operations"] / result["rate"], model["loops"].values()
        layers = model["train"]["recurrent layers"]["median"]
        at_best = figure(1e3 * least / model["batches"])
        rows.append(
            [
                "training: products of the recurrent layers, at best",
                at_best,
                f"{least / layers:.0%} of the layers",
            ]
        )
        over = lightning["median"] / bare["median"] - 1
        rows.append(
            ["training: Lightning's loop with the suite's callbacks, over a bare one", "", f"{over:+.0%}"]
        )
        tokens = model["tokens"] / model["batches"]
        tables.append(table(f"{name}: {tokens:.0f} tokens a batch", "ms a batch", "share", rows=rows))
    tables += [layer_breakdown(name, layer, result["rate"]) for name, layer in result["layers"].items()]
    fixed, *shapes = result["crf"]
    calls = []
    for task in ("loss", "decode"):
        ranked = sorted(shapes, key=lambda shape: shape["seconds"][task]["median"])
        for shape in (fixed, ranked[0], ranked[len(ranked) // 2], ranked[-1]):
            sentences, length, tags = shape["shape"]
            time = shape["seconds"][task]["median"]
            share = fixed["seconds"][task]["median"] / time
            case = f"{TASKS[task]}, {sentences} x {length} tokens, {tags} tags"
            calls.append([case, figure(1e6 * time), f"{share:.0%}"])
    tables.append(table("a call of the CRF", "microseconds", "fixed", rows=calls))
    rows = []
    for case in result["units"]:
        whole, products = (case["seconds"][part]["median"] for part in ("whole", "input's products"))
        least = case["operations"] / result["rate"]
        times = [figure(1e3 * time) for time in (whole, products, least)]
        rows.append([f"{case['units']} x {case['size']}", *times, f"{least / whole:.0%}"])
    head = (
        "units, even, forward and backward",
        "ms",
        "products with the input",
        "all products at best",
        "share",
    )
    return [*tables, table(*head, rows=rows)]


def layer_breakdown(name: str, layer: Result, rate: float) -> str:
    """The parts of a recurrent layer, and what their products would take at the rate of a large one."""
    seconds = {part: times["median"] for part, times in layer["seconds"].items()}
    whole = seconds.pop("whole")
    at_best = {part: operations / rate for part, operations in layer["operations"].items()}
    at_best["whole"] = sum(at_best.values())
    rows = []
    for part, time in {**seconds, "the rest": whole - sum(seconds.values()), "whole": whole}.items():
        best = at_best.get(part)
        shares = ("", "") if best is None else (figure(1e3 * best), f"{best / time:.0%}")
        rows.append([part, figure(1e3 * time), f"{time / whole:.0%}", *shares])
    what = f"BiLSTM of {name}: {layer['tokens']:,} tokens in {layer['sentences']} sentences, {layer['size']} states"
    return table(what, "ms", "share", "products at best, ms", "of the time", rows=rows)


def crf(result: Result) -> list[str]:
    head = ("worst", "first quartile", "median", "third quartile", "best")
    tables = []
    for task, ratios in result["ratios"].items():
        rows = [
            [
                name,
                *map(
                    figure,
                    (each["worst"], each["quartiles"][0], each["median"], each["quartiles"][1], each["best"]),
                ),
            ]
            for name, each in ratios.items()
            if each
        ]
        tables.append(table(f"{TASKS[task]}: times ours", *head, rows=rows))
    return tables


def units(result: Result) -> list[str]:
    others = ("stock, padded", "stock, packed", "lock-step")
    rows = []
    for shape in result["shapes"]:
        case = f"{shape['units']} x {shape['size']}, {'ragged' if shape['ragged'] else 'even'}"
        for task in ("train", "forward"):
            times = shape[task]
            gains = [ratio(times[other], times["ours"]) if other in times else "" for other in others]
            rows.append([f"{case}, {TASKS[task]}", ms(times["ours"]), *gains])
    return [table("units", "ours, ms", *others, rows=rows)]


def kernels(result: Result) -> list[str]:
    others = ("PyTorch's CRF", "PyTorch's LSTM", "PyTorch's CRF and LSTM")
    rows = []
    for name, row in result["rows"].items():
        for task, title in (("train", "training"), ("decode", "decoding")):
            times = row[task]
            rate = figure(row["tokens"][task] / times["kernels"]["median"])
            rows.append(
                [f"{name}: {title}", rate, *(ratio(times[other], times["kernels"]) for other in others)]
            )
    return [table("", "with kernels, tokens/s", *(f"{other}, times ours" for other in others), rows=rows)]


def fastest_stock(times: Result) -> Result:
    return min(
        (found for name, found in times.items() if name.startswith("stock")),
        key=lambda found: found["median"],
    )


def peephole(result: Result) -> list[str]:
    rows = [
        [f"{case['size']}, {TASKS[task]}", *(ms(case[task][name]) for name in ("ours", "loop", "stock"))]
        for case in result["sizes"]
        for task in ("train", "forward")
    ]
    return [table("units", "ours, ms", "plain loop, ms", "stock LSTM without peepholes, ms", rows=rows)]


def machine_limit(result: Result) -> list[str]:
    rows = [
        [
            name,
            f"{found['operations'] / 1e9:.2f}",
            ms(found["seconds"]["train"]),
            f"{found['rate'] / 1e9:.0f}",
            f"{found['share']:.0%}",
            *(f"{found['tokens_per_second'][task]:,.0f}" for task in ("train", "decode")),
        ]
        for name, found in result["models"].items()
    ]
    head = ("GFLOP a step", "step, ms", "limit, GFLOP/s", "share of it", "tokens/s, training", "decoding")
    return [table("model", *head, rows=rows)]


def scaling(result: Result) -> list[str]:
    rows = [
        [
            line["name"],
            ", ".join(map(str, line["values"])),
            *(
                f"{line['slopes'][what][which]:.2f}"
                for what in ("seconds", "bytes")
                for which in ("all", "last")
            ),
        ]
        for line in result["lines"].values()
    ]
    return [
        table("knob", "values", "slope of time", "at its end", "slope of memory", "at its end", rows=rows)
    ]


def threads(result: Result) -> list[str]:
    kinds = list(next(iter(result["cases"].values())))
    rows = [[name, *(ms(found[kind]) for kind in kinds)] for name, found in result["cases"].items()]
    return [table("a step, ms", *(f"threads: {kind}" for kind in kinds), rows=rows)]


def many_seeds(result: Result) -> list[str]:
    rows = [
        [
            *(str(case[key]) for key in ("size", "sentences", "seeds")),
            *(ms(case["train"][name]) for name in ("in turns", "stacked")),
            ratio(case["train"]["in turns"], case["train"]["stacked"]),
            "yes" if case["equal_bits"] else "no",
            f"{case['own_batches']:.2f}",
        ]
        for case in result["cases"]
    ]
    head = ("units", "sentences", "seeds", "in turns, ms", "stacked, ms", "gain", "equal bits", "own batches")
    return [table(*head, rows=rows)]


def onednn(result: Result) -> list[str]:
    rows = [
        [
            str(case["size"]),
            f"{case['tokens']:.0%}",
            *(
                cell
                for task in ("train", "decode")
                for cell in (
                    ms(case[task]["kernels"]),
                    ms(case[task]["onednn"]),
                    ratio(case[task]["onednn"], case[task]["kernels"]),
                )
            ),
        ]
        for case in result["cases"]
    ]
    kinds = ("kernels, ms", "oneDNN, ms", "times ours")
    head = ("states", "tokens", *(f"{TASKS[task]}: {kind}" for task in ("train", "decode") for kind in kinds))
    return [f"Vector instructions: {result['capability']}.", table(*head, rows=rows)]


def optimizers(result: Result) -> list[str]:
    kinds = ("PyTorch's", "ours")
    rows = [
        [
            f"{case['forms']:,}",
            case["optimizer"],
            *(ms(case["step"][kind]) for kind in kinds),
            ratio(*(case["step"][kind] for kind in kinds)),
        ]
        for case in result["cases"]
    ]
    return [table("forms", "optimizer", *(f"{kind}, ms" for kind in kinds), "gain", rows=rows)]


def bf16(result: Result) -> list[str]:
    rows = [
        [
            f"{name}, {TASKS[task]}",
            ms(times["float32"]),
            ms(times["bf16"]),
            ratio(times["float32"], times["bf16"]),
        ]
        for name, found in result["models"].items()
        for task, times in found.items()
    ]
    scores = []
    for name, found in result["scores"].items():
        seeds = [", ".join(f"{100 * f1:.2f}" for f1 in found[kind]) for kind in ("float32", "bf16")]
        scores.append([name, *seeds, f"{100 * (mean(found['bf16']) - mean(found['float32'])):+.2f}"])
    return [
        table("model", "float32, ms", "bf16, ms", "gain", rows=rows),
        table("test F1, seed by seed", "float32", "bf16", "mean difference", rows=scores),
    ]


def batches(result: Result) -> list[str]:
    head = (
        "batches",
        "processed tokens per real one",
        "ms per 1,000 sentences",
        "pairs that stay together (chance)",
    )
    tables = []
    for corpus, about in result["corpora"].items():
        rows = [
            [
                name,
                f"{plan['batches']:,}",
                f"{plan['processed_per_token']:.3f}",
                ms(plan["seconds_per_1000"]),
                f"{plan['together']:.2%} ({plan['chance']:.2%})",
                str(plan["again"]),
            ]
            for name, plan in about["plans"].items()
        ]
        title = f"{corpus}: {about['sentences']:,} sentences, {about['tokens']:,} tokens"
        tables.append(table(title, *head, "repeated batches", rows=rows))
    return tables


def startup(result: Result) -> list[str]:
    commands = result["commands"]
    bare = commands["python -c pass"]
    rows = [[f"`{name}`", spread(times), ratio(times, bare)] for name, times in commands.items()]
    imports = [
        [f"`{name}`", ", ".join(f"{part} {spent:.2f}" for part, spent in parts.items() if spent >= 0.01)]
        for name, parts in result["imports"].items()
    ]
    job = result["further_job"]
    further = [[figure(job["seconds"]), figure(job["training"])]]
    return [
        table("command", "seconds", "times `python -c pass`", rows=rows),
        table("a further job of a sweep, seconds", "of them training", rows=further),
        table("of it, in imports", "seconds", rows=imports),
    ]


def growth(result: Result) -> list[str]:
    runs, corpus = result["runs"], result["corpus"]
    rows = [[name, spread(times)] for name, times in runs["commands"].items()]
    rate, share = corpus["tokens"] / corpus["seconds"], corpus["bytes"] / corpus["held"]
    read = [
        [
            f"{corpus['sentences']:,} sentences, {corpus['tokens']:,} tokens",
            figure(corpus["seconds"]),
            figure(rate),
        ]
    ]
    read[0] += [figure(corpus["held"] / 1e6), f"{share:.2f}"]
    sentences = [
        [f"{one['tokens']:,}", figure(one["seconds"]), figure(one["bytes"] / 1e6)]
        for one in result["sentence"]
    ]
    types = [
        [
            f"{one['types']:,}",
            *(figure(1e3 * one["result"][task]) for task in ("step", "decode")),
            figure(one["bytes"] / 1e6),
        ]
        for one in result["types"]
    ]
    return [
        table(f"a sweep of {runs['number']:,} finished runs", "seconds", rows=rows),
        table("reading and encoding", "seconds", "tokens/s", "MB held", "peak over held", rows=read),
        table("tokens of a sentence that is tagged", "seconds", "MB", rows=sentences),
        table("types of a BiLSTM-CRF", "ms a training step", "ms decoding", "MB", rows=types),
    ]


def tagging(result: Result) -> list[str]:
    whole, part, contestants = result["whole"], result["part"], result["contestants"]
    ours = contestants["ours"]["seconds"]["median"]
    rows = []
    for name, one in contestants.items():
        seconds = one["seconds"]["median"]
        rates = figure(part["megabytes"] / seconds), figure(part["words"] / seconds), figure(seconds / ours)
        rows.append([f"{name} {one['version']}".strip(), spread(one["seconds"]), *rates])
    title = f"{part['megabytes']:.1f} MB, {part['words']:,} words, by"
    rate = figure(whole["megabytes"] / whole["seconds"])
    size = f"{whole['megabytes']:.0f} MB, {whole['words']:,} words"
    return [
        table(title, "seconds", "MB/s", "words/s", "times our seconds", rows=rows),
        f"`predict` tags {size}, in {whole['seconds']:,.0f} s: {rate} MB/s.",
    ]


def vectors(result: Result) -> list[str]:
    rows = [[name, spread(found), f"{found['bytes'] / 1e6:.0f}"] for name, found in result["readers"].items()]
    size = f"{result['lines']:,} x {result['width']}, {result['file_bytes'] / 1e6:.0f} MB"
    return [table(f"{size}; {result['words']:,} words of the corpus", "seconds", "MB", rows=rows)]


def looks(result: Result) -> list[str]:
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


def scoring(result: Result) -> list[str]:
    scorers = result["scorers"]
    rows = [[name, spread(found), ratio(found, scorers["ours"])] for name, found in scorers.items()]
    title = f"{result['sentences']:,} sentences, {result['tokens']:,} tokens, {result['mentions']:,} mentions"
    return [table(title, "seconds", "times ours", rows=rows)]


if __name__ == "__main__":
    main()
