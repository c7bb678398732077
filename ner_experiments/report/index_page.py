"""Index page: for every table, how much is measured or missing, and how many rows are off the published number."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.report.entries import Entry
from ner_experiments.report.site import Site
from ner_experiments.tables.origin import cost, hours
from ner_experiments.utils.text import percent
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
    site: Site, entries: Sequence[Entry], results: Path | None, searches: Sequence[dict[str, Any]] = ()
) -> None:
    """Write the page. results: where single runs are archived. searches: lines of searches."""
    runs = {(run.metrics["identity"], run.metrics["seed"]): run for entry in entries for run in entry.runs}
    own = [entry for entry in entries if entry.is_own]
    published = sorted((entry for entry in entries if not entry.is_own), key=lambda it: not has_scores(it))
    tables, measured = ({it.page.table.name for it in published if test(it)} for test in (bool, has_scores))
    papers = {paper(it): AFTER_YEAR.sub("", it.page.table.source) for it in entries if not it.is_own}
    facts: list[tuple[str, object]] = []
    if published:
        facts += [("tables", len(tables)), ("tables with results", len(measured))]
    if entries:
        facts += [("finished runs", f"{len(runs):,}"), ("hours of training", f"{hours(runs.values()):.1f}")]
    else:
        facts += [("searches", len(searches))]
    if own:
        heading = "Your experiments and published tables" if published else "Your experiments"
    else:
        heading = "Your searches" if searches and not published else "Published tables and our results"
    context = {
        "heading": heading,
        "lead": LEAD if published and not own else "",
        "facts": facts,
        "papers": [(key, NO_PAPERS.get(key, name)) for key, name in papers.items()],
        "states": list(STATES.items()),
        "lines": [*map(index_line, published)],
        "own": [*map(index_line, own)],
        "searches": searches,
        "others": single_runs(results) if results else Grid((), []),
    }
    site.write("index.html", "index.html", context)


def has_scores(entry: Entry) -> bool:
    """Whether the table has results; those without come last."""
    return any(result.scores for result in entry.page.results)


def paper(entry: Entry) -> str:
    """Key of the paper, such as yang2020 for yang2020_table12."""
    return entry.page.table.name.partition("_")[0]


def index_line(entry: Entry) -> dict[str, Any]:
    """Variables of the template for one table."""
    page, rows = entry.page, len(entry.to_measure)
    measured = rows - entry.missing
    holding = (measured, measured and not entry.missing, entry.missing, entry.off, page.deviations)
    states = [name for name, holds in zip(STATES, holding, strict=True) if holds]
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
        lines.append(
            {
                "run": path.stem,
                **{
                    part: percent(metrics[part][key] if part in metrics else None) for part in ("dev", "test")
                },
                "best epoch": f"{metrics['best_epoch']}",
                "epochs": f"{metrics['epochs']}",
                "parameters": f"{metrics['parameters']:,}",
                "s per epoch": f"{metrics['seconds'] / metrics['epochs']:.1f}",
            }
        )
    if not lines:
        return Grid((), [])
    return replace(Grid.by_heading(lines), caption="One seed each, archived in results/.")
