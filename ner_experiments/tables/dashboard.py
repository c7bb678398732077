"""The W&B workspace of a published table: its runs, and panels for what its rows vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import wandb_workspaces.reports.v2 as panels
import wandb_workspaces.workspaces as workspaces

from ner_experiments.build import source
from ner_experiments.config.identity import KNOBS, counted, experiment, flat, kind
from ner_experiments.config.overrides import compared, decides, named, numeric, settings
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.loggers.final import ATTENTION_MAPS, attention_map_name
from ner_experiments.models.attention import AttBiLSTM
from ner_experiments.tables.experiments import Experiment
from ner_experiments.tables.spec import Table

COSTS = ("parameters", "seconds")
CALLED = ("name", "_target_", "path")
"""Settings that say which part was chosen: the name of a corpus, the class of all else."""
COLUMNS = "columns"
"""Settings that say where a corpus' files have what is read; they follow from the corpus."""


def workspace(table: Table, rows: Sequence[Experiment], *, entity: str, project: str) -> workspaces.Workspace:
    """Of the runs of the table's rows, whoever made them: they carry the tag of their experiment.

    The seeds of a row are taken together, as the runs are grouped, and with them the panels. `rows` are the
    experiments that the table has, or has with further overrides.
    """
    scored = by_score(rows)
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=f"{table.name}: {table.title}",
        sections=sections(scored),
        runset_settings=workspaces.RunsetSettings(
            filters=[workspaces.Tags().isin(sorted({experiment(row.cfg) for row in rows}))],
            groupby=[workspaces.Metric("Group")],
            pinned_columns=[f"summary:best/{split}_{score}" for score in scored for split in ("dev", "test")],
        ),
        settings=workspaces.WorkspaceSettings(x_axis="epoch", max_runs=100),
    )


def by_score(rows: Sequence[Experiment]) -> dict[str, list[Experiment]]:
    """The rows that are scored by f1, then those by accuracy, if there are such."""
    tasks = [source(row.cfg).task for row in rows]
    return {
        score: [row for row, its in zip(rows, tasks, strict=True) if its == task]
        for task, (score, _) in PRIMARY_METRIC.items()
        if task in tasks
    }


def sections(scored: Mapping[str, Sequence[Experiment]]) -> list[workspaces.Section]:
    rows = [row for own in scored.values() for row in own]
    varied = [panel for score, own in scored.items() for panel in varying(own, score)]
    cost = [panel for score in scored for panel in costs(score)]
    maps = attention() if any(kind(row.cfg.model) == AttBiLSTM.__name__.lower() for row in rows) else []
    return [
        workspaces.Section(name="What the rows vary", panels=varied, is_open=True),
        workspaces.Section(name="What it costs", panels=cost, is_open=True),
        workspaces.Section(name="Learning", panels=learning([*scored]), is_open=True),
        workspaces.Section(name="Gradients", panels=gradients()),
        workspaces.Section(name="Errors", panels=errors(), is_open=True),
        *([workspaces.Section(name="Attention", panels=maps, is_open=True)] if maps else []),
        workspaces.Section(name="Settings", panels=[panels.RunComparer(diff_only=True)]),
    ]


def varying(rows: Sequence[Experiment], score: str) -> list[Any]:
    """Each row, and then by what the rows compare: a number against the score as points, a choice as bars."""
    y, title = panels.SummaryMetric(f"best/test_{score}"), f"test {printed(score)}"
    found = [bars(f"{title} of each row, mean and deviation of the seeds", y, max_bars_to_show=50)]
    overrides = [settings(row.overrides) for row in rows]
    keys = compared(overrides)
    numbers = numeric(overrides, keys)
    configs = [dict(flat(counted(row.cfg))) for row in rows] if keys else []
    for key in keys:
        names = logged(key, [str(row.get(key)) for row in overrides], configs)
        for name in names:
            if key in numbers:
                against = f"{title} against {named(key)}"
                found.append(panels.ScatterPlot(title=against, x=panels.Config(name), y=y))
            else:
                by = f"{title} by {named(key if len(names) == 1 else name)}"
                found.append(bars(by, y, groupby=panels.Config(name)))
    return found


def bars(title: str, y: panels.SummaryMetric, **further: Any) -> Any:
    """Means and deviations. Runs that lack a setting by which they are grouped have a bar of their own."""
    return panels.BarPlot(
        title=title, metrics=[y], groupby_aggfunc="mean", groupby_rangefunc="stddev", **further
    )


def printed(score: str) -> str:
    return dict(PRIMARY_METRIC.values())[score]


def logged(key: str, values: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings, as runs log them, that tell the rows' values of an override apart; most often one.

    `layers` is told by model.num_layers. A choice of conf/ is told by what it sets; where no setting has
    another value in each, by several: model=residual_c is model=residual without its dense layer.
    """
    names = dict.fromkeys(name for config in configs for name in config)
    columns = {name: [str(config.get(name)) for config in configs] for name in names}
    if key in KNOBS:
        return [name for name in names if columns[name] == values][:1] or [key]
    own = [name for name in names if name.startswith(f"{key.replace('/', '.')}.")]
    return telling({name: columns[name] for name in own}, values) if own else [key]


def telling(columns: Mapping[str, Sequence[str]], choices: Sequence[str]) -> list[str]:
    """Of settings that follow from a choice as few as tell the choices apart, as far as any do."""
    names = [
        name
        for name, column in columns.items()
        if decides(choices, column) and COLUMNS not in name.split(".")
    ]
    names.sort(key=lambda name: rank(name.rpartition(".")[2]))
    if alone := [name for name in names if decides(columns[name], choices)]:
        return alone[:1]
    found: list[str] = []
    told: list[tuple[str, ...]] = [()] * len(choices)
    for name in names:
        more = [(*before, value) for before, value in zip(told, columns[name], strict=True)]
        if not decides(told, more):
            found.append(name)
            told = more
    return found


def rank(name: str) -> int:
    return CALLED.index(name) if name in CALLED else len(CALLED)


def costs(score: str) -> list[Any]:
    y = panels.SummaryMetric(f"best/test_{score}")
    return [
        panels.ScatterPlot(title=f"test {printed(score)} against {name}", x=panels.SummaryMetric(name), y=y)
        for name in COSTS
    ]


def learning(scores: Sequence[str]) -> list[Any]:
    return [
        panels.LinePlot(
            title=name,
            x="epoch",
            y=[name],
            groupby_aggfunc="mean",
            groupby_rangefunc="stddev",
        )
        for name in (*(f"dev/{score}" for score in scores), "train/loss")
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


def attention() -> list[Any]:
    """Of runs of Att that may show sentences."""
    maps = [attention_map_name("test", number) for number in range(1, ATTENTION_MAPS + 1)]
    return [panels.MediaBrowser(title="how much each token attends to each other", media_keys=maps)]
