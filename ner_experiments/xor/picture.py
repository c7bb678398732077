"""The XOR limit in one picture: certificates, measured interaction, and trained phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ner_experiments.xor.certificate import Certificate
from ner_experiments.xor.results import DECODERS, ROUNDING, ModelResult

LIMITED, FREE = "#d55e00", "#0072b2"
LABELS = {"softmax": "softmax", "crf": "CRF"}
MARKERS = {"softmax": "o", "crf": "s"}
ZERO = 1e-18
"""Position of 0 on the logarithmic axis."""


def draw(path: Path, certificates: Sequence[Certificate], models: Mapping[str, ModelResult]) -> None:
    """Write the picture in the format of the path's suffix."""
    xor_figure(certificates, models).savefig(path, dpi=150)


def xor_figure(certificates: Sequence[Certificate], models: Mapping[str, ModelResult]) -> Figure:
    """Figure of three panels: certificates, interactions, and trained phrases."""
    figure = Figure(figsize=(14, 1.9 + 0.36 * max(len(models), len(certificates))), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(0.75, 1, 1))
    draw_certificates(left, certificates)
    draw_interactions(middle, models)
    draw_trials(right, models)
    figure.suptitle("The XOR limit of Li, Fu & Ma (2020): can past and future decide a tag together?")
    return figure


def color(limited: bool) -> str:
    return LIMITED if limited else FREE


def draw_certificates(axes: Axes, certificates: Sequence[Certificate]) -> None:
    """Bars: how many of four phrases a sum of past and future can tag."""
    for row, certificate in enumerate(certificates):
        most, verdict = (4, "4 of 4: solution") if certificate.feasible else (3, "at most 3: contradiction")
        axes.barh(row, most, height=0.5, color=color(not certificate.feasible), alpha=0.85)
        axes.text(0.1, row, verdict, va="center", color="white", fontsize=9)
    labels = [case_label(certificate) for certificate in certificates]
    axes.set_yticks(range(len(certificates)), labels, fontsize=9)
    axes.set_xlim(0, 4.05)
    axes.set_xticks(range(5))
    finish(
        axes, "Proved: phrases that a sum s(past) + s(future)\ncan tag, by linear programs", len(certificates)
    )
    axes.set_xlabel("phrases of 4")


def case_label(certificate: Certificate) -> str:
    name, _, rest = certificate.program.name.partition(", ")
    return f"§{certificate.program.section}  {name}\n{rest}"


def draw_interactions(axes: Axes, models: Mapping[str, ModelResult]) -> None:
    """One dot per draw of weights."""
    for row, model in enumerate(models.values()):
        values = [max(value, ZERO) for value in model.interactions]
        axes.scatter(values, [row] * len(values), s=16, color=color(model.limited), alpha=0.5, linewidths=0)
    axes.axvline(ROUNDING, color="gray", linestyle=":", linewidth=1)
    axes.text(ROUNDING / 2, -0.75, "rounding", ha="right", va="center", fontsize=8, color="gray")
    axes.text(ROUNDING * 2, -0.75, "interaction", ha="left", va="center", fontsize=8, color="gray")
    axes.set_xscale("log")
    axes.set_xlim(ZERO / 5, 10)
    axes.set_xticks(
        [ZERO, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1],
        ["0", *(f"$10^{{{power}}}$" for power in (-15, -12, -9, -6, -3)), "1"],
    )
    axes.minorticks_off()
    labels = [model_label(name, model) for name, model in models.items()]
    axes.set_yticks(range(len(models)), labels, fontsize=9)
    draws = len(next(iter(models.values())).interactions)
    finish(
        axes,
        f"Measured: interaction of past and future,\n{draws} draws of random weights (layers in brackets)",
        len(models),
    )
    axes.set_xlabel("mixed second difference / largest score")


def model_label(name: str, model: ModelResult) -> str:
    return name if model.layers is None else f"{name} ({model.layers})"


def draw_trials(axes: Axes, models: Mapping[str, ModelResult]) -> None:
    """One mark per decoder and number of phrases, whose area grows with the share of seeds that reach that number."""
    for row, model in enumerate(models.values()):
        for decoder, offset in zip(DECODERS, (-0.18, 0.18), strict=True):
            numbers = model.num_correct(decoder)
            for phrases, count in Counter(numbers).items():
                y, area = row + offset, 12 + 78 * count / len(numbers)
                axes.scatter(phrases, y, area, color(model.limited), marker=MARKERS[decoder], linewidths=0)
                axes.text(phrases + 0.12, y, str(count), va="center", fontsize=7, color="dimgray")
    axes.axvline(3.5, color="gray", linestyle=":", linewidth=1)
    axes.set_yticks(range(len(models)), [])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(-0.3, 4.5)
    axes.set_xticks(range(5))
    seeds = len(next(iter(models.values())).num_correct(DECODERS[0]))
    finish(axes, f"Trained: most phrases correct at once;\nnumbers are seeds, of {seeds}", len(models))
    axes.set_xlabel("phrases of 4")
    axes.legend(handles=legend(), loc="lower left", fontsize=9, frameon=False)


def legend() -> list[Line2D]:
    kinds = [(MARKERS[decoder], "gray", label) for decoder, label in LABELS.items()]
    kinds += [("o", LIMITED, "past and future only add up"), ("o", FREE, "they interact")]
    return [Line2D([], [], linestyle="", marker=m, color=c, label=label) for m, c, label in kinds]


def finish(axes: Axes, title: str, rows: int) -> None:
    """Set the title, put the first row on top, and remove borders."""
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylim(rows - 0.4, -1.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
