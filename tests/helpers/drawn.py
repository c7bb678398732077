"""The marks that a chart draws, by the data of its panels."""

from typing import Any

from ner_experiments.view.vega import Chart


def data(chart: Chart, panel: int = 0) -> list[dict[str, Any]]:
    """The data of a panel."""
    values: list[dict[str, Any]] = chart.panels[panel]["data"]["values"]
    return values


def domain(chart: Chart, channel: str, panel: int = 0) -> list[Any]:
    """The limits or the places of an axis."""
    specification = chart.panels[panel]
    for node in (specification, *specification["layer"]):
        if "scale" in node.get("encoding", {}).get(channel, {}):
            found: list[Any] = node["encoding"][channel]["scale"]["domain"]
            return found
    raise AssertionError(f"no axis of {channel}")
