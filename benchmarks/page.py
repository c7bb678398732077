"""Writes benchmarks/README.md and benchmarks/plots/ from the results that there are.

    python benchmarks/page.py [--results FOLDER] [--output FOLDER]

Reads nothing but the results and the first lines of the scripts that made them, and measures nothing.
"""

import argparse
import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import page_plots
import page_tables
import timing
from page_explain import explain
from page_parts import Section, table
from page_units import units

SECTIONS: dict[str, Callable[[Any], Section]] = {**vars(page_tables), "explain": explain, "units": units}
MODELS = ("explain", "end_to_end", "crf", "units", "peephole", "limit", "growth", "threads", "bf16")
AROUND = ("batches", "startup", "vectors", "scoring")
INTRODUCTION = """\
# Speed and memory

Each script writes a result into `results/` (`make bench` runs them all), and `page.py` makes this page of
them. Ratios compare runs that took turns, round after round, in one sitting. Figures are medians, the
quartiles in brackets. "Times ours" is what another takes over what ours takes. Peers that are not installed
are left out and named. What was equal, and what not, stands in each section. Each was measured in one go, but
not all on one machine: figures of two sections compare only where these name the same."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, default=timing.RESULTS)
    parser.add_argument("--output", type=Path, default=timing.FOLDER)
    arguments = parser.parse_args()
    results = {path.stem: timing.read(path) for path in sorted(arguments.results.glob("*.json"))}
    plots = arguments.output / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "README.md"
    path.write_text("\n".join(page(results, plots)) + "\n", encoding="utf-8")
    print(path)


def page(results: dict[str, dict[str, Any]], plots: Path) -> Iterator[str]:
    known = [name for name in (*MODELS, *AROUND) if name in results]
    sections = {name: SECTIONS[name](results[name]) for name in known}
    yield INTRODUCTION
    yield from bars(sections, {name: results[name]["cpu"] for name in known})
    for name, section in sections.items():
        title, *about = docstring(name)
        yield from ["", f"## {title}", "", *about, "", circumstances(name, results[name])]
        yield from section.lines
        if name in page_plots.PLOTS:
            draw, caption = page_plots.PLOTS[name]
            draw(results[name], plots / f"{name}.png")
            yield from ["", f"![{caption}](plots/{name}.png)", "", caption]


def bars(sections: dict[str, Section], machines: dict[str, str]) -> Iterator[str]:
    rows = [
        [bar.what, bar.asked, bar.measured, "yes" if bar.met else "**no**", machines[name]]
        for name, section in sections.items()
        for bar in section.bars
    ]
    if rows:
        yield from ["", "## What was asked for, and whether it is met", ""]
        yield from table(["", "asked", "measured", "met", "on"], rows)


def docstring(name: str) -> list[str]:
    """Of the script: its first line, and the paragraphs that are neither its usage nor its result's keys."""
    text = ast.get_docstring(ast.parse((timing.FOLDER / f"{name}.py").read_text(encoding="utf-8")))
    assert text
    title, *paragraphs = text.split("\n\n")
    prose = [part for part in paragraphs if not part.startswith(" ") and not part.endswith(":")]
    return [title.rstrip("."), *"\n\n".join(prose).splitlines()]


def circumstances(name: str, result: dict[str, Any]) -> str:
    """When, with what code, where; of the versions those that matter for speed."""
    shown = ("torch", "numba", *timing.PEERS)
    versions = [f"{package} {version}" for package, version in result["versions"].items() if package in shown]
    commit = result["commit"] or "unknown"
    changed = ", changed since" if commit.endswith("+") else ""
    clock = result.get("clock", "wall")
    options = f"--threads {result['threads']} --rounds {result['rounds']}"
    options += "" if clock == "wall" else f" --clock {clock}"
    left_out = f" Left out: {', '.join(result['left_out'])}." if result.get("left_out") else ""
    return (
        f"`python benchmarks/{name}.py {options}`, {result['date'][:10]}, commit {commit[:12]}{changed}; "
        f"{result['cpu']}{', seconds of a processor that others used too' if clock == 'processor' else ''}; "
        f"Python {result['python']}, {', '.join(versions)}.{left_out}"
    )


if __name__ == "__main__":
    main()
