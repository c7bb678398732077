"""What is known of a run's errors, as made from its folder and as results/ keeps it: numbers, no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ner_experiments.analysis import disagreements as outcomes
from ner_experiments.analysis.breakdown import (
    LENGTH,
    TYPE,
    Bucket,
    by_dimension,
    by_length,
    by_type,
    dimensions,
    marked,
)
from ner_experiments.analysis.calibration import Calibration, of_run
from ner_experiments.analysis.disagreements import Outcomes
from ner_experiments.analysis.errors import Confusion, Kind, confusion, kinds
from ner_experiments.build import train_of
from ner_experiments.config.identity import counted
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.runs.artifacts import WEIGHTS, add_checksum, read_config
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import ArchivedRun, Run, format_counts
from ner_experiments.utils.files import write_json


@dataclass(frozen=True)
class Errors:
    """Empty, or None, is what could not be told, and what makes no sense for the corpus."""

    breakdown: dict[str, dict[str, Bucket]] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    confusion: Confusion | None = None
    outcomes: Outcomes | None = None

    def record(self) -> dict[str, Any]:
        """As JSON, which `restored` reads."""
        return {
            "breakdown": {
                dimension: {name: asdict(bucket) for name, bucket in buckets.items()}
                for dimension, buckets in self.breakdown.items()
            },
            "kinds": {name: asdict(kind) for name, kind in self.kinds.items()},
            "confusion": self.confusion and self.confusion.record(),
            "outcomes": self.outcomes and self.outcomes.record(),
        }


def restored(record: Mapping[str, Any]) -> Errors:
    """What `record` wrote."""
    confused, found = record["confusion"], record["outcomes"]
    return Errors(
        {
            dimension: {name: Bucket(**bucket) for name, bucket in buckets.items()}
            for dimension, buckets in record["breakdown"].items()
        },
        {name: Kind(**kind) for name, kind in record["kinds"].items()},
        confused and Confusion.restored(confused),
        found and outcomes.restored(found),
    )


def errors_in_predictions(
    sentences: Sequence[Predicted], task: Task, train: Sequence[Sentence] | None
) -> Errors:
    """Of a test set; without `train` there are fewer dimensions. Tags of single tokens have no `kinds`."""
    texts, named = marked(sentences, task), dimensions(train, task)
    return Errors(
        by_dimension(texts, named),
        kinds(sentences) if task == "mentions" else {},
        confusion(sentences, task),
        outcomes.outcomes(texts, named),
    )


def run_errors(run: Run) -> Errors:
    """The errors of a run, as archived or made from its predictions; empty for a run archived without.

    Dimensions that need train are left out where train cannot be read as it was; the log then says so.
    """
    if isinstance(run, ArchivedRun):
        return restored(run.content["errors"]) if "errors" in run.content else Errors()
    return errors_in_predictions(run.predicted(), run.metrics["task"], train_of(run.folder))


def run_calibration(run: Run) -> Calibration | None:
    """Whether the probabilities of mentions, or tags, can be believed; None where these are not known.

    The model of a run's folder tags the test set again. The log says why that could not be done.
    """
    if isinstance(run, ArchivedRun):
        record = run.content.get("calibration")
        return record and Calibration.restored(record)
    run.verified(WEIGHTS)
    return of_run(run.folder)


def f1_by_mention(run: Run, name: str) -> dict[str, float]:
    """F1 on test by "type" or "length" of mention, in percent."""
    return (
        dict(run.content["figures"][name])
        if isinstance(run, ArchivedRun)
        else OF_MENTIONS[name](run.predicted())
    )


OF_MENTIONS = {TYPE: by_type, LENGTH: by_length}


def archive(run: Run, path: Path, label: str) -> None:
    """All that pages need of a run of the row `label`, in one file: no word of its corpus, no path."""
    mentions = run.metrics["task"] == "mentions"
    content = {
        "label": label,
        "metrics": dict(run.metrics),
        "config": counted(read_config(run.folder)),
        "epochs": run.epochs(),
        "peeked": run.test_every_epoch(),
        "figures": {name: f1_by_mention(run, name) for name in OF_MENTIONS} if mentions else {},
        "counts": format_counts(run.counts()),
        "errors": run_errors(run).record(),
        "calibration": (calibration := run_calibration(run)) and calibration.record(),
    }
    write_json(path, add_checksum(content))
