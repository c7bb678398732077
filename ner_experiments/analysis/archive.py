"""Archived runs: `archive` writes all that pages need of a run into a file of results/.

The file has numbers and predicted tags, but no text of the corpus. `run_errors`, `run_calibration` and `f1_by_mention`
read it; for a run in its own folder they compute the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ner_experiments.analysis.breakdown import (
    Bucket,
    Dimension,
    buckets,
    dimensions,
    f1_by,
    grouped,
    marked,
)
from ner_experiments.analysis.calibration import Calibration, calibration, of_predictions, of_run
from ner_experiments.analysis.disagreements import Outcomes, correct, outcomes
from ner_experiments.analysis.errors import Confusion, Kind, aligned, confusion_of, pairs, shares_of_kinds
from ner_experiments.data.sentence import Corpus, Task
from ner_experiments.runs.archived_run import TAGS, ArchivedRun, format_counts, pack_tags
from ner_experiments.runs.artifacts import PROBABILITIES, WEIGHTS, DamagedError, add_checksum, read
from ner_experiments.runs.file_run import FileRun
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.utils.files import write_json


def archive(run: Run, path: Path, label: str) -> None:
    """Write all that pages need of a run into one file, without paths or text of its corpus. label: that of its row.

    A calibration that the file has of this run is kept: another processor may round it differently.
    """
    calibration = archived_calibration(run, path)
    if calibration is None and (computed := run_calibration(run)):
        calibration = computed.record()
    content = {
        "label": label,
        "metrics": dict(run.metrics),
        "config": run.settings(),
        "code": run.code(),
        "epochs": run.epochs(),
        "test_every_epoch": run.test_every_epoch(),
        **counts_and_tags(run),
        **(
            {"extra_tests": {name: counts_and_tags(run.on(name)) for name in extra}}
            if (extra := run.extra_tests)
            else {}
        ),
        "errors": run_errors(run).record(),
        "calibration": calibration,
    }
    write_json(path, add_checksum(content))


def counts_and_tags(run: Run) -> dict[str, str]:
    return {"counts": format_counts(run.counts()), TAGS: pack_tags(run.predicted_tags())}


def archived_calibration(run: Run, path: Path) -> dict[str, Any] | None:
    """The calibration of this run in a file of results/; None without one, and for another run or a damaged file."""
    try:
        content = read(path)
    except (FileNotFoundError, DamagedError):
        return None
    return content.get("calibration") if content.get("metrics") == run.metrics else None


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
    runs: Sequence[Sequence[Predicted]], task: Task, named: Mapping[str, Dimension]
) -> list[Errors]:
    """Errors of runs on one test set, by the dimensions `named`; kinds are left out for task "tags".

    A sentence that runs tag alike is analyzed once. Intervals are over the sentences of a run; of several runs they
    are NaN, as those of a row are over its seeds.
    """
    distinct = {id(sentence): sentence for run in runs for sentence in run}
    place = {key: number for number, key in enumerate(distinct)}
    sentences, intervals = list(distinct.values()), len(runs) == 1
    texts = marked(sentences, task)
    groups = {name: grouped(texts, dimension) for name, dimension in named.items()}
    kinds = None
    if task == "mentions":
        both = [(found.counts(), [*found.types()]) for found in map(aligned, sentences)]
        kinds, types = np.array([it for it, _ in both]), [it for _, it in both]
    else:
        types = [list(pairs(it, task)) for it in sentences]
    number = {pair: number for number, pair in enumerate(dict.fromkeys(chain.from_iterable(types)))}
    numbered = [np.array([number[pair] for pair in it], dtype=np.int64) for it in types]
    found = [correct(text) for text in texts]
    gold_groups = outcomes([texts[place[id(it)]] for it in runs[0]], named).groups
    errors = []
    for run in runs:
        index = [place[id(it)] for it in run]
        occurrences = np.bincount(np.concatenate([numbered[it] for it in index]), minlength=len(number))
        errors.append(
            Errors(
                {
                    name: buckets(names, counts[index], intervals=intervals)
                    for name, (names, counts) in groups.items()
                },
                {} if kinds is None else shares_of_kinds(kinds[index], intervals=intervals),
                confusion_of({pair: n for pair, n in zip(number, occurrences.tolist(), strict=True) if n}),
                Outcomes(np.concatenate([found[it] for it in index]), gold_groups),
            )
        )
    return errors


def errors_by_seed(runs: Mapping[int, Run]) -> dict[int, Errors]:
    """Errors on test of the runs of a row, by seed; all unknown for some archived runs.

    Dimensions that need train are left out, with a warning, if train cannot be read or has changed.
    """
    errors = {
        seed: Errors.from_record(run.content["errors"])
        for seed, run in runs.items()
        if isinstance(run, ArchivedRun)
    }
    if trained := {seed: run for seed, run in runs.items() if seed not in errors}:
        first = next(iter(trained.values()))
        named = known_dimensions(first)
        predicted = [run.predicted() for run in trained.values()]
        found = errors_in_predictions(predicted, first.metrics["task"], named)
        errors |= zip(trained, found, strict=True)
    return {seed: errors[seed] for seed in runs}


def run_errors(run: Run) -> Errors:
    """Errors of a single run on test, as `errors_by_seed`."""
    return errors_by_seed({0: run})[0]


def known_dimensions(run: Run) -> dict[str, Dimension]:
    """Dimensions of the mentions of a run; those that need train only if its corpus can be read and is unchanged."""
    task = run.metrics["task"]
    if isinstance(run, FileRun):
        return dimensions(run.train, task)
    from ner_experiments.experiment_data import corpus_if_unchanged  # imports Hydra, which files do without

    corpus = corpus_if_unchanged(run)
    return dimensions(None, task) if corpus is None else dimensions_of(corpus, task)


@lru_cache(maxsize=2)  # as `experiment_data.read_unchanged_corpus`
def dimensions_of(corpus: Corpus, task: Task) -> dict[str, Dimension]:
    return dimensions(corpus.splits["train"], task)


def run_calibration(run: Run) -> Calibration | None:
    """Calibration of a run's probabilities on test, or None if they are unknown; a warning says why.

    The model of a run that did not record them tags the test set again.
    """
    if isinstance(run, ArchivedRun):
        record = run.content["calibration"]
        return record and Calibration.from_record(record)
    if isinstance(run, FileRun):
        number, probability, is_correct = zip(*run.stated, strict=True) if run.stated else ((), (), ())
        return calibration(
            np.array(probability), np.array(is_correct, bool), np.array(number, np.int64), len(run.sentences)
        )
    probabilities = run.probabilities()
    if probabilities is not None:
        try:
            return of_predictions(run.predicted(), probabilities, run.metrics["task"])
        except ValueError:
            place = run.folder / PROBABILITIES
            raise ValueError(f"{place}: expected one for each mention that is predicted on test") from None
    run.verified(WEIGHTS)
    return of_run(run.folder)


def f1_by_mention(run: Run, dimension: str) -> dict[str, float]:
    """F1 on test by "type" or "length" of mention, in percent, for groups with a gold mention.

    Archived runs whose errors are unknown have these scores alone, as `figures`.
    """
    if not isinstance(run, ArchivedRun):
        return f1_by(run.predicted(), dimension)
    if "figures" in run.content:
        return dict(run.content["figures"][dimension])
    buckets = run_errors(run).breakdown[dimension]
    return {name: 100 * buckets[name].f1 for name in sorted(buckets) if buckets[name].gold}
