"""Archived runs: `archive` writes all that pages need of a run into a file of results/.

The file has numbers and predicted tags, but no text of the corpus. `run_errors`, `run_calibration` and `f1_by_mention`
read it; for a run in its own folder they compute the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
from ner_experiments.analysis.disagreements import Outcomes, outcomes
from ner_experiments.analysis.errors import Confusion, Kind, confusion, kinds
from ner_experiments.config.identity import counted
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.runs.archived_run import TAGS, ArchivedRun, format_counts, pack_tags
from ner_experiments.runs.artifacts import WEIGHTS, add_checksum, read_config
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.utils.files import write_json


def archive(run: Run, path: Path, label: str) -> None:
    """Write all that pages need of a run into one file, without paths or text of its corpus. label: that of its row."""
    calibration = run_calibration(run)
    content = {
        "label": label,
        "metrics": dict(run.metrics),
        "config": counted(read_config(run.folder)),
        "epochs": run.epochs(),
        "test_every_epoch": run.test_every_epoch(),
        "counts": format_counts(run.counts()),
        TAGS: pack_tags(run.predicted_tags()),
        "errors": run_errors(run).record(),
        "calibration": calibration and calibration.record(),
    }
    write_json(path, add_checksum(content))


@dataclass(frozen=True)
class Errors:
    """Error analysis of a run; a part is empty or None if it is unknown or does not apply to the corpus."""

    breakdown: dict[str, dict[str, Bucket]] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    confusion: Confusion | None = None
    outcomes: Outcomes | None = None

    def record(self) -> dict[str, Any]:
        """JSON content, read by `from_record`."""
        return {
            "breakdown": {
                dimension: {name: asdict(bucket) for name, bucket in buckets.items()}
                for dimension, buckets in self.breakdown.items()
            },
            "kinds": {name: asdict(kind) for name, kind in self.kinds.items()},
            "confusion": self.confusion and self.confusion.record(),
            "outcomes": self.outcomes and self.outcomes.record(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Errors:
        """The errors that `record` wrote."""
        return cls(
            {
                dimension: {name: Bucket(**bucket) for name, bucket in buckets.items()}
                for dimension, buckets in record["breakdown"].items()
            },
            {name: Kind(**kind) for name, kind in record["kinds"].items()},
            record["confusion"] and Confusion.from_record(record["confusion"]),
            record["outcomes"] and Outcomes.from_record(record["outcomes"]),
        )


def errors_in_predictions(
    sentences: Sequence[Predicted], task: Task, train: Sequence[Sentence] | None
) -> Errors:
    """Errors on a test set. Dimensions that need `train` are left out without it, and kinds for task "tags"."""
    texts, named = marked(sentences, task), dimensions(train, task)
    return Errors(
        by_dimension(texts, named),
        kinds(sentences) if task == "mentions" else {},
        confusion(sentences, task),
        outcomes(texts, named),
    )


def run_errors(run: Run) -> Errors:
    """Errors of a run on test; all unknown for some archived runs.

    Dimensions that need train are left out, with a warning, if train cannot be read or has changed.
    """
    if isinstance(run, ArchivedRun):
        return Errors.from_record(run.content["errors"])
    from ner_experiments.build import train_sentences  # imports Lightning, which archived runs do not need

    return errors_in_predictions(run.predicted(), run.metrics["task"], train_sentences(run.folder))


def run_calibration(run: Run) -> Calibration | None:
    """Calibration of a run's probabilities on test, or None if they are unknown; a warning says why.

    For a run in its own folder, the trained model tags the test set again.
    """
    if isinstance(run, ArchivedRun):
        record = run.content["calibration"]
        return record and Calibration.from_record(record)
    run.verified(WEIGHTS)
    return of_run(run.folder)


def f1_by_mention(run: Run, dimension: str) -> dict[str, float]:
    """F1 on test by "type" or "length" of mention, in percent, for groups with a gold mention.

    Archived runs whose errors are unknown have these scores alone, as `figures`.
    """
    if not isinstance(run, ArchivedRun):
        return F1_BY[dimension](run.predicted())
    if "figures" in run.content:
        return dict(run.content["figures"][dimension])
    buckets = run_errors(run).breakdown[dimension]
    return {name: 100 * buckets[name].f1 for name in sorted(buckets) if buckets[name].gold}


F1_BY = {TYPE: by_type, LENGTH: by_length}
