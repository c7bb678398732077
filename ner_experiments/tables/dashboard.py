"""The W&B workspace of a table or sweep: its runs, and panels for the settings that its rows vary."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import wandb_workspaces.reports.v2 as panels
import wandb_workspaces.workspaces as workspaces

from ner_experiments.config.identity import KNOBS, counted, experiment, kind
from ner_experiments.config.row_settings import (
    compared,
    display_name,
    distinguishing,
    flat,
    numeric,
    settings,
)
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.experiment_data import source
from ner_experiments.loggers.final import ATTENTION_MAPS, attention_map_name
from ner_experiments.models.attention import AttBiLSTM
from ner_experiments.tables.differences import ALL_PAIRS, Differences
from ner_experiments.tables.experiments import Experiment
from ner_experiments.tables.pairs import verdict_text
from ner_experiments.tables.scores import Page
from ner_experiments.tables.spec import Table
from ner_experiments.tables.table_view import TableView

COSTS = ("parameters", "seconds")
PREFERRED = ("name", "_target_", "path")
"""Settings that name a choice: the name of a corpus, the class of all else."""
FOLDED = ("Gradients", "Settings")
GRADIENTS = {
    "gradient_layer/.*": "gradient norm of each layer",
    "shortcut/.*": "share of the gradient through the shortcut",
    "gradient/.*": "gradient norm of each part's weights",
}
"""Figures of runs with audit.gradients, as regular expressions -> titles."""
COLUMNS = "columns"
"""Settings that locate the columns of a corpus' files; they follow from the corpus."""


def workspace(
    table: Table, rows: Sequence[Experiment], *, entity: str, project: str, page: Page | None = None
) -> workspaces.Workspace:
    """A workspace of all runs of the table's rows, found by the tag of their experiment, grouped by row.

    `rows` are the experiments of the table, composed with any extra overrides. page: their finished runs, for the
    verdict and the types of mentions.
    """
    by_score = group_by_score(rows)
    pinned = [f"summary:best/{split}_{score}" for score in by_score for split in ("dev", "test")]
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=without_symbols(f"{table.name}: {table.title}"),
        sections=[*(answer_sections(page) if page else []), *sections(by_score)],
        runset_settings=workspaces.RunsetSettings(
            filters=[workspaces.Tags().isin(sorted({experiment(row.cfg) for row in rows}))],
            groupby=[workspaces.Metric("Group")],
            order=[workspaces.Ordering(workspaces.Metric("Name"))],
            pinned_columns=pinned,
        ),
        settings=workspaces.WorkspaceSettings(x_axis="epoch", max_runs=100),
    )


def without_symbols(text: str) -> str:
    """The text with a space for each symbol, such as "=", which names of workspaces must not have."""
    return "".join(" " if unicodedata.category(letter)[0] == "S" else letter for letter in text)


def group_by_score(rows: Sequence[Experiment]) -> dict[str, list[Experiment]]:
    """The rows by their primary metric, f1 before accuracy; metrics without rows are omitted."""
    tasks = [source(row.cfg).task for row in rows]
    return {
        score: [row for row, row_task in zip(rows, tasks, strict=True) if row_task == task]
        for task, (score, _) in PRIMARY_METRIC.items()
        if task in tasks
    }


def sections(by_score: Mapping[str, Sequence[Experiment]]) -> list[workspaces.Section]:
    all_rows = [row for rows in by_score.values() for row in rows]
    has_attention = any(kind(row.cfg.model) == AttBiLSTM.__name__.lower() for row in all_rows)
    maps = [attention_map_name("test", number) for number in range(1, ATTENTION_MAPS + 1)]
    found = {
        "Varied settings": [
            panel for score, rows in by_score.items() for panel in setting_panels(rows, score)
        ],
        "Cost": [
            panels.ScatterPlot(
                title=f"{title_of(score)} against {name}",
                x=panels.SummaryMetric(name),
                y=score_on_test(score),
            )
            for score in by_score
            for name in COSTS
        ],
        "Learning": [
            panels.LinePlot(
                title=name, x="epoch", y=[name], groupby_aggfunc="mean", groupby_rangefunc="stddev"
            )
            for name in (*(f"dev/{score}" for score in by_score), "train/loss")
        ],
        "Gradients": [
            panels.LinePlot(title=title, x="epoch", metric_regex=regex) for regex, title in GRADIENTS.items()
        ],
        "Errors": [
            panels.MediaBrowser(title="by type", media_keys=["test/types_bars"]),
            panels.MediaBrowser(title="confusion of types", media_keys=["test/confusion_matrix"]),
            panels.WeavePanelSummaryTable(table_name="test/predictions"),
        ],
        "Attention": [panels.MediaBrowser(title="attention maps", media_keys=maps)] if has_attention else [],
        "Settings": [panels.RunComparer(diff_only=True)],
    }
    return [
        workspaces.Section(name=name, panels=each, is_open=name not in FOLDED)
        for name, each in found.items()
        if each
    ]


def score_on_test(score: str) -> panels.SummaryMetric:
    """The test score of a run."""
    return panels.SummaryMetric(f"best/test_{score}")


def title_of(score: str) -> str:
    """`test F1`, or that of another score."""
    return f"test {dict(PRIMARY_METRIC.values())[score]}"


def answer_sections(page: Page) -> list[workspaces.Section]:
    """The verdict with all pairs of rows as text, and F1 of each type of mention; without runs, nothing."""
    names = sorted({name for run in page.runs for name in run.metrics["test"].get("types", {})})
    types = [
        bar_plot(f"test F1 of {name}, mean and deviation of the seeds", panels.SummaryMetric(type_key(name)))
        for name in names
    ]
    verdict = []
    if tested := TableView(page).pairs:
        found = Differences(ALL_PAIRS, tested)
        parts = [verdict_text(tested), found.grid.markdown(), found.subject, *found.explained()]
        verdict = [panels.MarkdownPanel(markdown="\n\n".join(parts))]
    both = [("What the scores say", verdict), ("F1 by type", types)]
    return [workspaces.Section(name=name, panels=each, is_open=True) for name, each in both if each]


def type_key(name: str) -> str:
    """The key of a type's F1 in a run's summary, as `loggers.final` logs it."""
    return f"best/test_types_{name}"


def setting_panels(rows: Sequence[Experiment], score: str) -> list[Any]:
    """A bar plot of the rows, then a plot for each setting they compare: points for a number, bars for a choice."""
    y, title = score_on_test(score), title_of(score)
    plots = [bar_plot(f"{title} of each row, mean and deviation of the seeds", y, max_bars_to_show=50)]
    overrides = [settings(row.overrides) for row in rows]
    keys = compared(overrides)
    numbers = numeric(overrides, keys)
    configs = [dict(flat(counted(row.cfg))) for row in rows] if keys else []
    for key in keys:
        names = logged_settings(key, [str(row.get(key)) for row in overrides], configs)
        for name in names:
            if key in numbers:
                against = f"{title} against {display_name(key)}"
                plots.append(panels.ScatterPlot(title=against, x=panels.Config(name), y=y))
            else:
                by = f"{title} by {display_name(key if len(names) == 1 else name)}"
                plots.append(bar_plot(by, y, groupby=panels.Config(name)))
    return plots


def logged_settings(key: str, values: Sequence[str], configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings, as runs log them, that distinguish the rows' values of an override; most often one.

    For `layers` it is model.num_layers. For a choice of conf/ it is one of the settings of the choice, or several
    if none has another value in each choice: model=residual_c is model=residual without its dense layer.
    """
    names = dict.fromkeys(name for config in configs for name in config)
    columns = {name: [str(config.get(name)) for config in configs] for name in names}
    if key in KNOBS:
        return [name for name in names if columns[name] == values][:1] or [key]
    group = [name for name in names if name.startswith(f"{key.replace('/', '.')}.")]
    if not group:
        return [key]
    candidates = [name for name in group if COLUMNS not in name.split(".")]
    candidates.sort(key=lambda name: (*PREFERRED, name.rpartition(".")[2]).index(name.rpartition(".")[2]))
    return distinguishing({name: columns[name] for name in candidates}, values)


def bar_plot(title: str, y: panels.SummaryMetric, **options: Any) -> Any:
    """Means and deviations. Runs that lack the setting they are grouped by have a bar of their own."""
    return panels.BarPlot(
        title=title, metrics=[y], groupby_aggfunc="mean", groupby_rangefunc="stddev", **options
    )
