"""Every chart of the suite: a function from plain values to a `Chart`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ner_experiments.view.vega import (
    INK,
    LINE_HEIGHT,
    MUTED,
    SERIES,
    Chart,
    Spec,
    domain_of,
    hover,
    rows_axis,
    series_color,
)

VERDICTS = {
    **dict.fromkeys(("holds", "replicates", "smaller", "larger"), SERIES[0]),
    "opposite": SERIES[1],
    **dict.fromkeys(("equal", "no such difference"), SERIES[3]),
    **dict.fromkeys(("open", "undecided"), MUTED),
}
"""Color of each verdict; a verdict of other words is as gray as an open one."""


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """A claim in a forest plot; differences are in points.

    group: heading above its rows, such as the paper. published: the paper's difference, None if it prints none.
    mean, low, high: our difference and its interval, None without runs. verdict: a word of `VERDICTS`. note: what else
    is said below the verdict, such as "rung 0, registered".
    """

    group: str
    claim: str
    published: float | None
    mean: float | None
    low: float | None
    high: float | None
    verdict: str
    note: str = ""


def forest(rows: Sequence[ForestRow], title: str, unit: str) -> Chart:
    """One line per claim below the heading of its group: the paper's difference, ours with its interval, the verdict.

    Rows of a group stand together, in their order. The paper's difference is an open diamond, ours a point in the color
    of its verdict, which stands in words on the right. unit: label of the axis.
    """
    labels: list[str] = []
    ends: dict[str, str] = {}
    data: list[Spec] = []
    headings = list(dict.fromkeys(row.group for row in rows))
    for heading in headings:
        labels.append(heading)
        for row in (row for row in rows if row.group == heading):
            label = row.claim if row.claim not in ends else f"{row.claim} ({len(labels)})"
            labels.append(label)
            ends[label] = f"{row.verdict}\n{row.note}" if row.note else row.verdict
            verdict = row.verdict if row.verdict in VERDICTS else "open"
            data.append(
                {
                    "row": label,
                    "paper": row.published,
                    "x": row.mean,
                    "low": row.low,
                    "high": row.high,
                    "verdict": verdict,
                    "of": heading,
                    "says": row.verdict,
                    "ours": signed(row.mean),
                    "published": signed(row.published),
                    "interval": f"{signed(row.low)} to {signed(row.high)}" if row.low is not None else "",
                }
            )
    centers = [row[key] for row in data for key in ("paper", "x") if row[key] is not None]
    domain = domain_of(
        [0.0, *centers], [row[key] for row in data for key in ("low", "high") if row[key] is not None]
    )
    x: Spec = {"type": "quantitative", "scale": {"domain": domain, "nice": False}, "title": unit}
    color = series_color([*VERDICTS], [*VERDICTS.values()], field="verdict") | {"legend": None}
    said = f"({json.dumps(ends)}[datum.label] || '')"
    shades = [
        {"test": f"substring({said}, 0, {len(word)}) === '{word}'", "value": shade}
        for word, shade in VERDICTS.items()
    ]
    bold = {"test": f"indexof({json.dumps(headings)}, datum.label) >= 0", "value": "bold"}
    left = rows_axis(labels, domain=False, labelFontWeight={"condition": bold, "value": "normal"})
    right = rows_axis(
        labels,
        domain=False,
        orient="right",
        labelExpr=f"split({said}, '\\n')",
        labelColor={"condition": shades, "value": INK},
    )
    within = left | {"axis": None}
    tooltip = hover(
        of="paper", row="claim", published="the paper", ours="ours", interval="95 %", says="verdict"
    )
    panel: Spec = {
        "title": {
            "text": "\N{WHITE DIAMOND} the paper   \N{BLACK CIRCLE} ours, with its 95 % interval",
            "frame": "bounds",
        },
        "data": {"values": data},
        "height": {"step": 2 * LINE_HEIGHT + 4},
        "encoding": {"y": left},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2.5, "clip": True},
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "color": color},
            },
            {
                "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3]},
                "encoding": {"x": x | {"datum": 0}, "y": {"value": 0}, "y2": {"value": "height"}},
            },
            {
                "mark": {"type": "point", "size": 80},
                "encoding": {"y": within, "x": x | {"field": "x"}, "color": color, "tooltip": tooltip},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": False,
                    "shape": "diamond",
                    "color": INK,
                    "strokeWidth": 1.6,
                },
                "encoding": {"y": within, "x": x | {"field": "paper"}, "tooltip": tooltip},
            },
            {"mark": {"type": "point", "opacity": 0}, "encoding": {"y": right, "x": x | {"field": "x"}}},
        ],
        "resolve": {"axis": {"y": "independent"}},
    }
    description = "; ".join(
        f"{row.claim}: the paper {signed(row.published)}, ours {signed(row.mean)}, {row.verdict}"
        for row in rows
    )
    return Chart(title, description, (panel,))


def signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
