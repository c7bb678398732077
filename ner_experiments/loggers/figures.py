"""Charts of scores by type and of the confusion of types."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from ner_experiments.analysis.errors import Confusion

SCORES = ("f1", "precision", "recall", "accuracy")
COLORS = {"f1": "#0072b2", "precision": "#56b4e9", "recall": "#e69f00", "accuracy": "#0072b2"}


def bars(types: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Bar chart of the scores of each type, in percent; `types` as in metrics.json."""
    scores = [name for name in SCORES if all(name in values for values in types.values())]
    height = 0.8 / max(1, len(scores))
    figure = Figure(figsize=(6, 1.2 + 0.45 * len(types)), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(scores):
        centers = [row + height * (number - (len(scores) - 1) / 2) for row in range(len(types))]
        values = [100 * of_type[name] for of_type in types.values()]
        drawn = axes.barh(centers, values, height, color=COLORS[name], label=name.replace("f1", "F1"))
        axes.bar_label(drawn, fmt="%.1f", fontsize=7, padding=2)
    labels = [f"{kind} ({values['gold']:,})" for kind, values in types.items()]
    axes.set_yticks(range(len(types)), labels, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 108)
    axes.set_title(f"{title} (gold)", fontsize=10)
    figure.legend(loc="outside lower center", ncols=max(1, len(scores)), frameon=False, fontsize=8)
    return figure


def matrix(confusion: Confusion, title: str) -> Figure:
    """Confusion matrix: rows are gold, columns predicted, the last of each "none"; shaded by share of the row."""
    names = confusion.names
    side = 1.6 + 0.5 * len(names)
    figure = Figure(figsize=(side + 0.6, side), layout="constrained")
    axes = figure.subplots()
    shares = [[count / max(1, sum(row)) for count in row] for row in confusion.counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, counts in enumerate(confusion.counts):
        for column, count in enumerate(counts):
            color = "white" if shares[row][column] > 0.6 else "black"
            if count:
                axes.text(column, row, f"{count:,}", ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8, parse_math=False)
    axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
    axes.set_xlabel("predicted (none: missing)", fontsize=8)
    axes.set_ylabel("gold (none: spurious)", fontsize=8)
    axes.set_title(title, fontsize=10)
    return figure
