"""Hints at settings to try, for rows whose runs were short or found nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.tables.spec import named_rows

TOO_FEW_STEPS = (
    "which usually means too few training steps. Try more epochs, smaller batches (batches.tokens, "
    "batches.sentences) or a larger optimizer.lr."
)

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The metrics of finished runs, by the label of their row."""


def hints(rows: Rows) -> list[str]:
    """A line per hint with settings to try, for short runs and those whose dev score is 0; it names the rows."""
    rows_of: dict[str, list[str]] = defaultdict(list)
    for name, runs in rows.items():
        for text, number in Counter(map(hint, runs)).items():
            rows_of[text].append(name if number == len(runs) else f"{number} of {len(runs)} runs of {name}")
    return [f"{named_rows(names)}: {text}" for text, names in rows_of.items() if text]


def hint(run: Mapping[str, Any]) -> str:
    """The hint that a run recorded, or one if its dev score is 0; files of predictions have none."""
    metric, score = PRIMARY_METRIC[run["task"]]
    found_nothing = "dev" in run and run["dev"][metric] == 0
    return run.get("hint") or (f"dev {score} is 0, {TOO_FEW_STEPS}" if found_nothing else "")
