"""The XOR limit in one picture: certificates, measured interaction, and trained phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ner_experiments.view import charts
from ner_experiments.view.charts import Value
from ner_experiments.view.vega import MUTED, SERIES, Chart, Look, Spec
from ner_experiments.xor.certificate import Certificate
from ner_experiments.xor.results import DECODERS, ROUNDING, ModelResult

LIMITED, FREE = "past and future only add up", "they interact"
LOOKS = {LIMITED: Look(SERIES[1], "square"), FREE: Look(SERIES[0])}
LABELS = {"softmax": "softmax", "crf": "CRF"}
ZERO = 1e-18
"""Position of 0 on the logarithmic axis."""
TITLE = "The XOR limit of Li, Fu & Ma (2020): can past and future decide a tag together?"
DESCRIPTION = (
    "Proved: how many of four phrases a sum of past and future can tag, by linear programs. Measured: the "
    "interaction of past and future at random weights (mixed second difference over the largest score), a point for "
    "each draw; left of the dotted line it is rounding. "
    "Trained: the most phrases that are correct at once, by decoder; the numbers are seeds."
)
WIDTH = 1200
"""Width of the picture, in pixels."""


def draw(path: Path, certificates: Sequence[Certificate], models: Mapping[str, ModelResult]) -> None:
    """Write the picture as PNG."""
    path.write_bytes(xor_chart(certificates, models).png(WIDTH))


def xor_chart(certificates: Sequence[Certificate], models: Mapping[str, ModelResult]) -> Chart:
    """Three panels: certificates, interactions, and trained phrases."""
    panels = certificate_panel(certificates), interaction_panel(models), trial_panel(models)
    return Chart(TITLE, DESCRIPTION, panels)


def certificate_panel(certificates: Sequence[Certificate]) -> Spec:
    """Bars: how many of four phrases a sum of past and future can tag."""
    names = {LIMITED: "at most 3: contradiction", FREE: "4 of 4: solution"}
    values = []
    for it in certificates:
        kind, most = (FREE, 4) if it.feasible else (LIMITED, 3)
        values.append(
            Value(f"§{it.program.section}  {it.program.name}", most, series=names[kind], note=f"{most}")
        )
    looks = {names[kind]: look for kind, look in LOOKS.items()}
    return charts.bars(values, "phrases of 4, proved", look_of=looks)


def interaction_panel(models: Mapping[str, ModelResult]) -> Spec:
    """One dot per draw of weights, on a logarithmic axis on which 0 has a place."""
    values = [
        Value(model_label(name, model), max(value, ZERO), series=LIMITED if model.limited else FREE)
        for name, model in models.items()
        for value in model.interactions
    ]
    ticks: Spec = {"values": [ZERO, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1], "labelOverlap": "greedy"}
    ticks |= {"labelExpr": f"datum.value < {10 * ZERO} ? '0' : format(datum.value, '~g')"}
    return charts.dots(
        values,
        "relative interaction, measured",
        look_of=LOOKS,
        domain=(ZERO / 5, 10),
        scale={"type": "log"},
        rule=ROUNDING,
        apart=False,
        x_axis=ticks,
    )


def model_label(name: str, model: ModelResult) -> str:
    return name if model.layers is None else f"{name} ({model.layers})"


def trial_panel(models: Mapping[str, ModelResult]) -> Spec:
    """One mark per decoder and number of phrases, with the number of seeds that reach it."""
    values = [
        Value(model_label(name, model), phrases, series=LABELS[decoder], note=f"{count}")
        for name, model in models.items()
        for decoder in DECODERS
        for phrases, count in sorted(Counter(model.num_correct(decoder)).items())
    ]
    looks = {LABELS["softmax"]: Look(SERIES[2]), LABELS["crf"]: Look(MUTED, "square")}
    return charts.dots(
        values,
        "phrases of 4, trained",
        look_of=looks,
        domain=(-0.3, 4.5),
        rule=3.5,
        x_axis={"tickMinStep": 1},
    )
