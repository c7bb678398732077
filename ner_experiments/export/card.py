"""Model card of an export: the model, its data and protocol, its scores, and their distribution over seeds.

It is generated from metrics.json and config.yaml alone, so it contains no text of the corpus. The text is in
view/templates/card.md.j2.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ner_experiments.analysis.statistics import summarize
from ner_experiments.config.identity import counted, kind, model_kind
from ner_experiments.data import raw_text
from ner_experiments.experiment_data import readers, source
from ner_experiments.export.formats import EXTRA, Onnx
from ner_experiments.runs import artifacts
from ner_experiments.runs.provenance import commit
from ner_experiments.runs.run import Run, by_seed
from ner_experiments.runs.store import finished_runs
from ner_experiments.view import pages
from ner_experiments.view.table import Grid

COUNTS = {"f1": ("gold", "predicted"), "accuracy": ("gold", "correct")}
"""The counts beside the scores."""
SPLITS = ("dev", "test")


def card(
    run: Run,
    *,
    exported: Mapping[str, Any] | None = None,
    hub: Mapping[str, Any] | None = None,
    title: str = "",
) -> str:
    """The card as Markdown, for an export into files or for a hub.

    exported: origin, a description of the sentences that the export was verified on; differences: by file, the largest
        difference of a score from the run's; names: of all files.
    hub: head, metadata as YAML; call: the expression that tags something.
    """
    cfg, metrics = run.config, run.metrics
    split = [split for split in SPLITS if split in metrics][-1]
    scores = scores_by_seed(run, split)
    score, tokens = scores[metrics["seed"]], source(cfg).tokens
    of_raw_text = metrics["data"].get("raw_text")
    packages = ("torch", *(EXTRA if exported and Onnx.file in exported["differences"] else ()))
    default = f"{model_kind(cfg.model)} with {kind(cfg.decoder)} on {metrics['data']['name']}, seed {metrics['seed']}"
    return pages.page(
        "card.md.j2",
        run=run,
        cfg=cfg,
        metrics=metrics,
        exported=exported,
        hub=hub,
        title=title or default,
        architecture=class_summary(cfg.model._target_),
        decoder=class_summary(cfg.decoder._target_),
        inputs=", ".join(
            f"{name} ({part.input._target_.rpartition('.')[2]})" for name, part in readers(cfg).items()
        ),
        parameters_of=", ".join(f"{name} {number:,}" for name, number in metrics["parameters_of"].items()),
        raw_text=of_raw_text and raw_text.line(of_raw_text),
        corpus={name: cfg.data.get(key) for name, key in CORPUS.items()} if hub else {},
        scoring_of_test=artifacts.scoring_of_test(metrics),
        scores=scores_grid(run),
        split=split,
        seeds=Grid(["seed", *map(str, scores)], [[run.score_name, *(f"{it:.2f}" for it in scores.values())]]),
        summary=summarize(scores.values()),
        score=score,
        rank=1 + sum(other > score for other in scores.values()),
        versions=", ".join(f"{name} {number}" for name, number in metrics["versions"].items()),
        packages=", ".join(f"{name} {version(name)}" for name in packages),
        commit=commit(),
        tokens=tokens if isinstance(tokens, str) else cfg.data.tokens["_target_"],
        settings=json.dumps(counted(cfg), indent=2),
    )


CORPUS = {"source": "source", "license of the corpus": "licence"}
"""Keys of conf/data that cards for a hub show, by their titles."""


def class_summary(target: str) -> str:
    """Name of a class and the first line of its module's docstring, which names the paper."""
    place = target.rpartition(".")[0]
    text = inspect.getdoc(import_module(place)) or ""
    return f"`{target}`" + (f": {text.splitlines()[0]}" if text else "")


def scores_grid(run: Run) -> Grid:
    """The scores of each split, in total and by type: in percent, and counts as they are."""
    counts, lines = COUNTS[run.primary_metric], []
    names = (*artifacts.scores_of(run.metrics["dev"]), *counts)
    for split in (split for split in SPLITS if split in run.metrics):
        report = run.metrics[split]
        for name, of_name in {
            split: report,
            **{f"{split}, {it}": own for it, own in report["types"].items()},
        }.items():
            cells = (
                f"{of_name[it]:,}" if it in counts else f"{100 * of_name[it]:.2f}" if it in of_name else ""
                for it in names
            )
            lines.append([name, *cells])
    return Grid(["", *(name.replace("f1", "F1") for name in names)], lines)


def scores_by_seed(run: Run, split: str) -> dict[int, float]:
    """Scores in percent of the finished runs of the same identity and code in the same output folder, and of this one.

    Runs that are damaged or have no score of the split are skipped.
    """
    same = []
    for other in finished_runs(run.folder.resolve().parent.parent):
        with suppress(artifacts.DamagedError):
            alike = (
                other.metrics["identity"] == run.metrics["identity"] and other.experiment == run.experiment
            )
            same += [other] if alike and split in other.metrics else []
    return {
        seed: 100 * float(it.metrics[split][it.primary_metric]) for seed, it in by_seed([*same, run]).items()
    }
