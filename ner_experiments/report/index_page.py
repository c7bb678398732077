"""Index page: for every table, how much is measured or missing, and how many rows are off the published number."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.report.entries import Entry
from ner_experiments.report.site import Site
from ner_experiments.tables.origin import cost, hours
from ner_experiments.view.table import Grid

STATES = {
    "measured": "has results",
    "complete": "all rows measured",
    "missing": "rows missing",
    "off": "rows that differ from the paper",
    "deviating": "not the paper's settings",
}
LEAD = "Tables of four papers on named entity recognition, beside the results of runs of this suite."
AFTER_YEAR = re.compile(r"(?<=\(\d{4}\)).*")
NO_PAPERS = {"xor": "The XOR limit", "ours": "Ours"}


def write(
    site: Site,
    entries: Sequence[Entry],
    results: Path | None,
    own: Sequence[Entry] = (),
    searches: Sequence[dict[str, Any]] = (),
) -> None:
    """Write the page. `own` are entries of runs that belong to no published table, `searches` lines of searches."""
    everything = [*entries, *own]
    runs = {(run.metrics["identity"], run.metrics["seed"]): run for entry in everything for run in entry.runs}
    tables = {entry.page.table.name for entry in entries}
    measured = {
        entry.page.table.name for entry in entries if any(result.scores for result in entry.page.results)
    }
    papers = {paper(entry): AFTER_YEAR.sub("", entry.page.table.source) for entry in entries}
    facts: list[tuple[str, object]] = []
    if entries:
        facts += [("tables", len(tables)), ("tables with results", len(measured))]
    if everything:
        facts += [("finished runs", len(runs)), ("hours of training", f"{hours(runs.values()):.1f}")]
    else:
        facts += [("searches", len(searches))]
    site.write(
        "index.html",
        "index.html",
        {
            "heading": heading(entries, own, searches),
            "lead": LEAD if entries and not own else "",
            "facts": facts,
            "papers": [(key, NO_PAPERS.get(key, name)) for key, name in papers.items()],
            "states": list(STATES.items()),
            "lines": [index_line(entry) for entry in sorted(entries, key=is_unmeasured)],
            "own": [index_line(entry) for entry in own],
            "searches": searches,
            "others": single_runs(results) if results else Grid((), []),
        },
    )


def heading(entries: Sequence[Entry], own: Sequence[Entry], searches: Sequence[Any]) -> str:
    if own:
        return "Your experiments and published tables" if entries else "Your experiments"
    return "Your searches" if searches and not entries else "Published tables and our results"


def paper(entry: Entry) -> str:
    """Key of the paper, such as yang2020 for yang2020_table12."""
    return entry.page.table.name.partition("_")[0]


def index_line(entry: Entry) -> dict[str, Any]:
    """Variables of the template for one table."""
    page, rows = entry.page, len(entry.to_measure)
    measured = rows - entry.missing
    states = [name for name, holds in states_of(entry, measured).items() if holds]
    state, color, order = summary(rows, measured, entry.off)
    number, time = cost(entry.runs, page.trials)
    seeds = sorted({len(result.scores) for result in page.results if result.scores})
    return {
        "title": page.table.title,
        "link": f"{entry.name}.html",
        "source": page.table.source,
        "sweep": page.table.name if page.table.is_sweep else "",
        "verdict": entry.view.verdict if page.table.is_sweep else "",
        "settings": " ".join(page.deviations),
        "stand_ins": page.stand_ins,
        "paper": paper(entry),
        "states": " ".join(states),
        "state": state,
        "color": color,
        "order": order,
        "measured": measured,
        "rows": rows,
        "missing": entry.missing or "",
        "off": entry.off or "",
        "seeds": " to ".join(dict.fromkeys(f"{count}" for count in (*seeds[:1], *seeds[-1:]))),
        "runs": number or "",
        "hours": f"{time:.1f}" if number else "",
    }


def is_unmeasured(entry: Entry) -> bool:
    """Whether the table has no results; such tables come last."""
    return not any(result.scores for result in entry.page.results)


def states_of(entry: Entry, measured: int) -> dict[str, bool]:
    return {
        "measured": measured > 0,
        "complete": measured > 0 and not entry.missing,
        "missing": entry.missing > 0,
        "off": entry.off > 0,
        "deviating": bool(entry.page.deviations),
    }


def summary(rows: int, measured: int, off: int) -> tuple[str, str, int]:
    """State of a table in words, the class of its color, and its sort key."""
    if not rows:
        return "no numbers", "", 4
    if off:
        return f"{off} {'differs' if off == 1 else 'differ'} from the paper", "bad", 0
    if measured == rows:
        return "all rows measured", "good", 1
    return ("some rows measured", "good", 2) if measured else ("not measured", "", 3)


def single_runs(results: Path) -> Grid:
    """Archived runs that belong to no table."""
    lines = []
    for path in sorted(results.glob("*.json")):
        metrics = json.loads(path.read_text(encoding="utf-8")).get("metrics", {})
        if "task" not in metrics:
            continue
        key = PRIMARY_METRIC[metrics["task"]][0]
        scores = [f"{100 * metrics[part][key]:.2f}" if part in metrics else "" for part in ("dev", "test")]
        seconds = f"{metrics['seconds'] / metrics['epochs']:.1f}"
        lines.append(
            [
                path.stem,
                *scores,
                f"{metrics['best_epoch']}",
                f"{metrics['epochs']}",
                f"{metrics['parameters']:,}",
                seconds,
            ]
        )
    headings = ("run", "dev", "test", "best epoch", "epochs", "parameters", "s per epoch")
    return Grid(headings, lines, "One seed each, archived in results/.")
