"""What is known of a run's errors, as made from its folder and as results/ keeps it: numbers, no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ner_experiments.analysis import disagreements as outcomes
from ner_experiments.analysis.breakdown import Bucket, by_dimension, dimensions, marked
from ner_experiments.analysis.disagreements import Outcomes
from ner_experiments.analysis.errors import Confusion, Kind, confusion, kinds
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.runs.predictions import Predicted


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


def of_predictions(sentences: Sequence[Predicted], task: Task, train: Sequence[Sentence] | None) -> Errors:
    """Of a test set; without `train` there are fewer dimensions. Tags of single tokens have no `kinds`."""
    texts, named = marked(sentences, task), dimensions(train, task)
    return Errors(
        by_dimension(texts, named),
        kinds(sentences) if task == "mentions" else {},
        confusion(sentences, task),
        outcomes.outcomes(texts, named),
    )
