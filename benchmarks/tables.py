"""Text and tables of measured numbers; `python benchmarks/tables.py` writes those of README.md and RESULTS.md.

A table stands between `<!-- NAME -->` and `<!-- end -->`, where NAME is the benchmark's; `targets` is the table of the
speed targets and whether they were met. Each benchmark has a function for its tables, which it prints when it ends, and
may have one for the rows of its targets. A result is stale once the code that it measures has changed.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ner_experiments.runs.code import module_named

FOLDER = Path(__file__).parent
PAGES, RESULTS = (FOLDER / "README.md", FOLDER / "RESULTS.md"), FOLDER / "results.json"
MARKED = re.compile(r"(?<=<!-- )(?!end\b)(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
PACKAGES = ("torch", "triton", "numba", "pytorch-crf", "torch-struct", "flair", "seqeval", "gensim")
LSTM_MODULES = (
    *("modules.lstm", "modules.recurrent", "modules.kernels.lstm_numba", "modules.kernels.numba_ops"),
)
CRF_MODULES = (
    *("modules.crf", "modules.decoding", "modules.forward_backward"),
    *("modules.kernels.crf_numba", "modules.kernels.numba_ops"),
)
"""Modules of the suite: those whose code a benchmark measures are its `MEASURES`."""
TASKS = {
    "loss": "loss and gradient",
    "train": "forward and backward",
    "forward": "forward",
    "decode": "decoding",
}

Result = dict[str, Any]
Cells = Iterable[Sequence[str]]


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


def main() -> None:
    results = read(RESULTS)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        text = MARKED.sub(lambda match: f"{match[1]}{match[2]}\n{marked(match[1], results)}\n\n", text)
        page.write_text(text, encoding="utf-8")


def marked(name: str, results: Mapping[str, Result]) -> str:
    if name != "targets":
        return of(results[name]) if name in results else "Not measured yet."
    rows = []
    for each, result in results.items():
        script = f"[{each}.py]({each}.py)" + ", stale" * bool(changed(result))
        targets = getattr(import_module(each), "targets", lambda _: [])
        rows += [[*row, script] for row in targets(results)]
    return table("", "target", "measured", "limit", "met", "script", rows=rows)


def of(result: Result) -> str:
    """The tables of a result, and the circumstances in which it was measured."""
    return "\n\n".join([*import_module(result["benchmark"]).tables(result), circumstances(result)])


def read(path: Path) -> dict[str, Result]:
    """The results by the names of their benchmarks."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def code(name: str) -> dict[str, str]:
    """Digest of each module of the suite that a benchmark measures, by its name."""
    found = {module: module_named(f"ner_experiments.{module}") for module in import_module(name).MEASURES}
    return {module: it.digest for module, it in found.items() if it}


def changed(result: Result) -> list[str]:
    """The modules whose code has changed since the result was measured."""
    now, then = code(result["benchmark"]), result["code"]
    return [module for module in now | then if now.get(module) != then.get(module)]


def circumstances(result: Result) -> str:
    options = f"--threads {result['threads']} --rounds {result['rounds']}"
    options += " --clock processor" if result.get("clock") == "processor" else ""
    left_out = f" Left out: {'; '.join(result['left_out'])}." if result.get("left_out") else ""
    versions = [f"{name} {result['versions'][name]}" for name in PACKAGES if name in result["versions"]]
    stale = f" **Stale:** {', '.join(names)} changed since." if (names := changed(result)) else ""
    commit = result["commit"] or "unknown"
    machine = "; ".join([*([result["gpu"]] if "gpu" in result else []), result["cpu"]])
    return (
        f"`python benchmarks/{result['benchmark']}.py {options}`, "
        f"{result['date'][:10]}, commit {commit[:12]}{'+' * commit.endswith('+')}; {machine}; "
        f"Python {result['python']}, {', '.join(versions)}.{left_out}{stale}"
    )


if __name__ == "__main__":
    main()
