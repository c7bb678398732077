"""Runs of any tool: a file of predictions, tagged on the words of a gold file by `comparison.aligning`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ner_experiments.data.sentence import Sentence
from ner_experiments.runs import predictions
from ner_experiments.runs.code import Code
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.utils.f1 import f1_score


@dataclass(frozen=True)
class FileRun(Run):
    """A file of predictions; `folder` is its path.

    sentences: gold and predicted tags, on words that the files of a comparison share. uncut: as without other files, so
    that its scores do not depend on them. train: the sentences of train, if they are known. notes: on its reading.
    stated: of each mention with a probability, the number of its sentence, the probability, and whether it is correct.
    """

    sentences: Sequence[Predicted]
    uncut: Sequence[Predicted]
    train: Sequence[Sentence] | None = None
    stated: Sequence[tuple[int, float, bool]] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        path: Path,
        sentences: Sequence[Predicted],
        *,
        system: str,
        seed: int,
        data: Mapping[str, Any],
        token_accuracy: float,
        **about: Any,
    ) -> FileRun:
        """The file of a system for a seed. data: the gold file, as a run records its corpus."""
        correct, found, gold = predictions.count(sentences, "mentions").sum(axis=0).tolist()
        test = {**f1_score(correct, found, gold), "correct": correct, "predicted": found, "gold": gold}
        test["token_accuracy"] = token_accuracy
        metrics = {"task": "mentions", "identity": system, "seed": seed, "test": test, "data": data}
        return cls(path, metrics, sentences=sentences, **about)

    @property
    def label(self) -> str:
        return str(self.metrics["identity"])

    def settings(self) -> Mapping[Any, Any]:
        return {}

    def code(self) -> Code | None:
        return None

    def predicted(self) -> list[Predicted]:
        return [*self.sentences]

    def probabilities(self) -> list[list[float]] | None:
        return None

    def epochs(self) -> list[dict[str, float]]:
        return []

    def test_every_epoch(self) -> list[float]:
        return []
