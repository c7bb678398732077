"""The W&B workspace of a published table: its runs, and panels for what its rows vary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import wandb_workspaces.reports.v2 as panels
import wandb_workspaces.workspaces as workspaces

from ner_experiments.build import source
from ner_experiments.data.sentence import HEADLINES
from ner_experiments.identity import counted, experiment, flat
from ner_experiments.table_runs import Experiment
from ner_experiments.tables import Table

COSTS = ("parameters", "seconds")


def workspace(table: Table, rows: Sequence[Experiment], *, entity: str, project: str) -> workspaces.Workspace:
    """Of the runs of the table's rows, whoever made them: they carry the tag of their experiment.

    The seeds of a row are taken together, as the runs are grouped, and with them the panels. `rows` are the
    experiments that the table has, or has with further overrides.
    """
    score = headline(rows)
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=f"{table.name}: {table.title}",
        sections=[
            workspaces.Section(name="What the rows vary", panels=varying(rows, score), is_open=True),
            workspaces.Section(name="What it costs", panels=costs(score), is_open=True),
            workspaces.Section(name="Learning", panels=learning(score), is_open=True),
            workspaces.Section(name="Gradients", panels=gradients()),
            workspaces.Section(name="Errors", panels=errors(), is_open=True),
            workspaces.Section(name="Settings", panels=[panels.RunComparer(diff_only=True)]),
        ],
        runset_settings=workspaces.RunsetSettings(
            filters=[workspaces.Tags().isin(sorted({experiment(row.cfg) for row in rows}))],
            groupby=[workspaces.Metric("Group")],
            pinned_columns=[f"summary:best/dev_{score}", f"summary:best/test_{score}"],
        ),
        settings=workspaces.WorkspaceSettings(x_axis="epoch", max_runs=100),
    )


def headline(rows: Sequence[Experiment]) -> str:
    """f1 or accuracy; a table with both is shown by F1."""
    tasks = {source(row.cfg).task for row in rows}
    return HEADLINES["tags" if tasks == {"tags"} else "mentions"][0]


def varying(rows: Sequence[Experiment], score: str) -> list[Any]:
    """A number against F1 as points, a choice as a bar for each."""
    y = panels.SummaryMetric(f"best/test_{score}")
    found: list[Any] = [
        panels.BarPlot(
            title=f"test {score} of each row, mean and deviation of the seeds",
            metrics=[y],
            groupby_aggfunc="mean",
            groupby_rangefunc="stddev",
            max_bars_to_show=50,
        )
    ]
    for name, values in varied(rows).items():
        if all(isinstance(value, int | float) for value in values):
            found.append(panels.ScatterPlot(title=f"test {score} against {name}", x=panels.Config(name), y=y))
        else:
            title = f"test {score} by {name}"
            found.append(panels.BarPlot(title=title, metrics=[y], groupby=panels.Config(name)))
    return found


def varied(rows: Sequence[Experiment]) -> dict[str, list[Any]]:
    """The settings in which rows that have them differ, by their dotted names, with their values.

    Of a part that is another in each row, such as model, only what all have in common and which one it is.
    """
    settings = [dict(flat(counted(row.cfg))) for row in rows]
    names = [name for name in settings[0] if all(name in each for each in settings)] if settings else []
    columns = {name: [each[name] for each in settings] for name in names}
    return {name: values for name, values in columns.items() if len(set(map(str, values))) > 1}


def costs(score: str) -> list[Any]:
    y = panels.SummaryMetric(f"best/test_{score}")
    return [
        panels.ScatterPlot(title=f"test {score} against {name}", x=panels.SummaryMetric(name), y=y)
        for name in COSTS
    ]


def learning(score: str) -> list[Any]:
    return [
        panels.LinePlot(
            title=name,
            x="epoch",
            y=[name],
            groupby_aggfunc="mean",
            groupby_rangefunc="stddev",
        )
        for name in (f"dev/{score}", "train/loss")
    ]


def gradients() -> list[Any]:
    """Of runs that were made with audit.gradients."""
    titles = {
        "gradient_layer/.*": "norm of each layer's gradient",
        "shortcut/.*": "share of it that comes by the shortcut",
        "gradient/.*": "norm of each part's weights' gradient",
    }
    return [panels.LinePlot(title=title, x="epoch", metric_regex=regex) for regex, title in titles.items()]


def errors() -> list[Any]:
    return [
        panels.MediaBrowser(title="by type", media_keys=["test/types_bars"]),
        panels.MediaBrowser(title="which type was taken for which", media_keys=["test/confusion_matrix"]),
        panels.WeavePanelSummaryTable(table_name="test/predictions"),
    ]
