"""A published table beside what was measured, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from ner_experiments.table_page import notes
from ner_experiments.table_scores import Comparison, Page, Result


def as_csv(page: Page) -> str:
    """One line a row, a column each figure; empty where there is none."""
    lines = records(page)
    file = io.StringIO()
    own = [key for key in lines[0] if key not in ("measured", "also", "reads")]
    writer = csv.writer(file, lineterminator="\n")
    measured = ("mean", "sd", "n", "low", "high", "difference", "expected")
    writer.writerow([*own, *measured])
    for line in lines:
        ours = line["measured"] or {}
        writer.writerow([line[key] for key in own] + [ours.get(key) for key in measured])
    return file.getvalue()


def as_json(page: Page) -> str:
    content = {
        "name": page.table.name,
        "title": page.table.title,
        "source": page.table.source,
        "deviations": list(page.deviations),
        "rows": records(page),
        "comparisons": [compared_record(item) for item in page.comparisons()],
        "notes": notes(page),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def records(page: Page) -> list[dict[str, Any]]:
    return [
        {
            "label": result.row.label,
            "published": result.row.published,
            "published_sd": result.row.sd,
            "published_runs": result.row.runs,
            "also": dict(result.row.also),
            "cited": result.row.cited,
            "reads": list(result.reads),
            "measured": measured_record(result),
        }
        for result in page.results
    ]


def measured_record(result: Result) -> dict[str, Any] | None:
    ours, against = result.measured, result.against
    if ours is None:
        return None
    return {
        "mean": ours.mean,
        "sd": ours.sd,
        "n": ours.n,
        "low": ours.low,
        "high": ours.high,
        "difference": against.difference if against else None,
        "expected": against.inside if against else None,
        "also": result.also(),
        "cost": result.cost(),
        "price_of_peeking": result.price_of_peeking(),
        "scores": dict(result.scores),
        "folders": {seed: str(run.folder) for seed, run in result.runs.items()},
    }


def compared_record(item: Comparison) -> dict[str, Any]:
    return {
        "row": item.row.label,
        "reference": item.reference.label,
        "difference": item.over_seeds.mean,
        "low": item.over_seeds.low,
        "high": item.over_seeds.high,
        "test_over_seeds": item.over_seeds.test,
        "p_over_seeds": item.over_seeds.p,
        "p_over_seeds_and_sentences": item.over_sentences.p,
        "seeds_needed": item.seeds,
    }
