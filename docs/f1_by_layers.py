"""docs/f1-by-layers.svg, the picture of README.md.

Table 12 of Yang & Xu (2020): the published F1 from sweeps/, the measured F1 from the archived runs in results/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

import yaml

from ner_experiments.runs.archived_run import archived_runs
from ner_experiments.view.charts import Point, lines
from ner_experiments.view.vega import SERIES, Chart, Look

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "sweeps/yang2020_table12.yaml"
RUNS = ROOT / "results/yang2020_table12/max_epochs-10/runs"
PICTURE = ROOT / "docs/f1-by-layers.svg"

LABEL = re.compile(r"(?P<model>\w+), (?P<layers>\d) layers")
MODELS = {"residual": (SERIES[0], "circle"), "stacked": (SERIES[1], "square")}
WIDTH = 760

Scores = dict[str, dict[int, float]]
"""F1 in percent by model and number of layers."""


def published() -> Scores:
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    return by_model((row["label"], row["published"]) for row in rows)


def archived() -> dict[str, list[float]]:
    """The test F1 of the archived runs, by row."""
    scores: dict[str, list[float]] = {}
    for run in archived_runs(RUNS):
        scores.setdefault(run.label, []).append(run.score)
    return scores


def measured() -> Scores:
    """The mean test F1 of the archived runs."""
    return by_model((label, fmean(scores)) for label, scores in archived().items())


def runs_per_point() -> str:
    """The number of runs of a row, or the smallest and the largest number: "1 to 5"."""
    numbers = [len(scores) for scores in archived().values()]
    return " to ".join(map(str, sorted({min(numbers), max(numbers)})))


def by_model(labeled: Iterable[tuple[str, float]]) -> Scores:
    scores: Scores = {model: {} for model in MODELS}
    for label, score in labeled:
        match = LABEL.fullmatch(label)
        assert match, label
        scores[match["model"]][int(match["layers"])] = score
    return {model: dict(sorted(points.items())) for model, points in scores.items()}


def drawing() -> str:
    points = [
        Point(layers, f1, f"{model}, {kind}")
        for kind, scores in (("published", published()), ("measured", measured()))
        for model, of_model in scores.items()
        for layers, f1 in of_model.items()
    ]
    looks = {}
    for model, (color, shape) in MODELS.items():
        looks[f"{model}, published"] = Look(color, shape, filled=False, dash=(6, 4))
        looks[f"{model}, measured"] = Look(color, shape)
    panel = lines(points, "BiLSTM layers", "test F1", look_of=looks, height=280)
    title = "Test F1 by BiLSTM layers, MSRA"
    text = f"Yang & Xu (2020), table 12: dashed as published, filled as measured (runs per point: {runs_per_point()})"
    return Chart(title, text, (panel,)).svg(WIDTH, titled=True)
