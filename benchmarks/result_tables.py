"""Tables of the results on a CPU: one function per file of results/, by the name of its benchmark."""

from statistics import mean

from figures import TASKS, Result, figure, ms, ratio, spread, table


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


def scoring(result: Result) -> list[str]:
    scorers = result["scorers"]
    rows = [[name, spread(found), ratio(found, scorers["ours"])] for name, found in scorers.items()]
    title = f"{result['sentences']:,} sentences, {result['tokens']:,} tokens, {result['mentions']:,} mentions"
    return [table(title, "seconds", "times ours", rows=rows)]
