"""Scoring of a model's predictions on dev, on test and on further test sets, each written to a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer

from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.sentence import Corpus, gold_digest
from ner_experiments.runs import artifacts
from ner_experiments.runs.predictions import seqeval_f1, write_predictions, write_probabilities
from ner_experiments.training.callbacks import Predictions
from ner_experiments.training.module import LightningTagger
from ner_experiments.training.preemption import Sigterm
from ner_experiments.training.trainer import killing_stragglers


@dataclass(frozen=True)
class Scorer:
    """Evaluates a trained tagger on dev, on test and on further test sets, and writes what it predicts to the folder.

    The first process writes.
    """

    trainer: Trainer
    tagger: LightningTagger
    predictions: Predictions
    folder: Path
    sigterm: Sigterm

    def score(self, data: CorpusModule, splits: Sequence[str], name: str = "") -> dict[str, Any]:
        """Evaluate those of the splits that the corpus has; return the report of the metric by split.

        name: that of the file of predicted tags, for an extra test set; by default the split's.

        Dev is not evaluated again if the predictions of the selected epoch are known. The predicted tags are written,
        and the probabilities of the mentions of test.
        """
        scores: dict[str, Any] = {}
        for split in splits:
            if split not in data.corpus.splits:
                continue
            if not (split == "dev" and self.predictions.restore_dev(self.tagger)):
                evaluate = self.trainer.validate if split == "dev" else self.trainer.test
                with killing_stragglers(self.trainer):
                    evaluate(self.tagger, datamodule=data, verbose=False)
            self.sigterm.exit_if_requested()
            scores[split] = self.tagger.report
            with killing_stragglers(self.trainer):
                predicted = self.predictions.gather(self.trainer)
            if self.trainer.is_global_zero:
                path = self.folder / artifacts.prediction_file(name or split)
                write_scored_predictions(path, split, data, [ids for ids, _ in predicted], scores[split])
                if split == "test" and not name:
                    path = self.folder / artifacts.PROBABILITIES
                    write_probabilities(path, [probabilities for _, probabilities in predicted])
        return scores

    def score_extra_tests(self, extra: Mapping[str, CorpusModule]) -> dict[str, Any]:
        """Evaluate further test sets, and write the predicted tags; return their entries of metrics.json by name.

        Words that the run's corpus lacks have their pre-trained vectors, as those of its own test set do.
        """
        found: dict[str, Any] = {}
        for name, data in extra.items():
            corpus = data.corpus
            about: dict[str, Any] = {"checksum": corpus.checksum, "notes": [*corpus.notes]}
            about["gold"] = gold_digest(corpus.splits["test"], corpus.task)
            data.encoder, rows = data.encoder.extended(corpus.splits["test"])
            if number := sum(map(len, rows.values())):
                about["notes"].append(f"{number:,} pre-trained vectors of words that the run's corpus lacks")
            with self.tagger.extended(rows):
                found[name] = about | self.score(data, ("test",), name)
        return found


def unscored(
    finished: Mapping[str, Any], corpus: Corpus, extra: Mapping[str, Corpus], *, test: bool
) -> list[str]:
    """The test sets on which a finished run is still to be scored. test: whether test is to be.

    Raises ValueError if it was scored on another file under the name of an extra one.
    """
    scored = finished.get("extra_tests", {})
    for name, other in extra.items():
        if name in scored and scored[name]["gold"] != gold_digest(other.splits["test"], other.task):
            raise ValueError(
                f"audit.extra_tests.{name}: the run was scored on another text or gold under this name; choose another"
            )
    own = ["test"] if test and "test" in corpus.splits and "test" not in finished else []
    return [*own, *(name for name in extra if name not in scored)]


def write_scored_predictions(
    path: Path, split: str, data: CorpusModule, ids: list[list[int]], report: dict[str, Any]
) -> None:
    """Write the predicted tags of a split, and assert that seqeval computes the reported F1 from them."""
    tags = [[data.encoder.labels[tag] for tag in sentence] for sentence in ids]
    write_predictions(path, data.corpus.task, data.corpus.splits[split], tags)
    if data.corpus.task == "mentions":
        by_seqeval = seqeval_f1(path)
        assert abs(by_seqeval - report["f1"]) < 1e-9, f"{path}: {by_seqeval} by seqeval, {report['f1']}"
