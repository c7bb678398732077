"""The rows of a table by their own gold and by another, and how alike the two rank them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ner_experiments.analysis import statistics
from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.analysis.randomization import numerator_and_denominator, score_of_parts
from ner_experiments.data.projection import Projection
from ner_experiments.runs import predictions
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.tables.reproducibility import FEWEST_RANKED
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.utils.f1 import f1_score

if TYPE_CHECKING:  # it imports Hydra
    from ner_experiments.tables.verdicts import Decided


@dataclass(frozen=True)
class RescoredRun(Run):
    """A run with its test score by another gold. left_out: number of its predicted mentions that are not compared."""

    sentences: Sequence[Predicted]
    left_out: int

    @classmethod
    def of(cls, run: Run, words: Sequence[tuple[str, ...]], projection: Projection) -> RescoredRun:
        """The run against the gold mentions of a projection. Raises ValueError if its tags are not on these words."""
        tags = run.predicted_tags()
        if [*map(len, tags)] != [*map(len, words)]:
            raise ValueError(f"{run.folder}: its predicted tags are not those of the test set's sentences")
        predicted, left_out = projection.clear(tags)
        sentences = [*map(Predicted, words, projection.tags, predicted)]
        correct, found, gold = predictions.count(sentences, "mentions").sum(axis=0).tolist()
        test = {**f1_score(correct, found, gold), "correct": correct, "predicted": found, "gold": gold}
        return cls(run.folder, {**run.metrics, "test": test}, sentences, left_out)

    def predicted(self) -> list[Predicted]:
        return [*self.sentences]

    @property
    def types(self) -> set[str]:
        """Types of its predicted mentions."""
        return {tag.partition("-")[2] for it in self.sentences for tag in it.predicted} - {""}


@dataclass(frozen=True)
class Rescored:
    """A table by its runs' own gold and by another.

    gold, mentions: the other gold file, and the number of its mentions. page: the table with all its runs.
    own, other: the table with the runs that could be rescored and no others, by their own gold and by the other.
    projections: the gold mentions on the text of these runs, by `Run.test_set`; empty for files, of which every mention
        is compared.
    not_rescored: the runs on that text that could not be rescored, with the reason.
    other_rows: the labels of rows on another text, or on one that cannot be read, with the reason.
    """

    gold: Path
    mentions: int
    page: Page
    own: Page
    other: Page
    projections: Mapping[str, Projection] = field(default_factory=dict)
    not_rescored: Mapping[Path, str] = field(default_factory=dict)
    other_rows: Mapping[str, str] = field(default_factory=dict)

    @property
    def mixed(self) -> Page:
        """The table by the other gold; rows of which not all runs could be rescored, by their own."""
        rows = zip(self.page.results, self.other.results, strict=True)
        return replace(
            self.page, results=tuple(new if old.runs.keys() == new.runs.keys() else old for old, new in rows)
        )


@dataclass(frozen=True)
class Ranking:
    """How alike two gold files rank the rows on one text.

    data: name of the corpus. labels: of the rows. own, other: their ranks by each gold, 1 for the highest mean.
    tau: Kendall's tau-b of the means. low, high: its 95 % interval over test sentences, by the bootstrap; it says
        nothing about other seeds. None for fewer than three rows, if a gold ranks all alike, and for files whose golds
        have other sentences.
    """

    data: str
    labels: tuple[str, ...]
    own: tuple[int, ...]
    other: tuple[int, ...]
    tau: float | None = None
    low: float | None = None
    high: float | None = None


def rankings(rescored: Rescored) -> list[Ranking]:
    """The ranking of the rows on each text."""
    pairs = zip(groups(rescored.own.results), groups(rescored.other.results), strict=True)
    return [ranking(own, other) for own, other in pairs]


def ranking(own: Sequence[Result], other: Sequence[Result]) -> Ranking:
    means = np.array([[statistics.summarize(it.scores).mean for it in rows] for rows in (own, other)])
    ranks, other_ranks = (tuple(1 + sum(it > mean for it in of) for mean in of) for of in means.tolist())
    found = Ranking(own[0].data["name"], tuple(it.row.label for it in own), ranks, other_ranks)
    tau = float(kendall(means[:1], means[1:])[0])
    same = len(own[0].run.num_gold) == len(other[0].run.num_gold)
    if len(own) < FEWEST_RANKED or np.isnan(tau) or not same:
        return found
    drawn = (np.stack([*map(resampled_means, rows)], axis=-1) for rows in (own, other))
    low, high = interval(kendall(*drawn))
    return replace(found, tau=tau, low=low, high=high)


def resampled_means(result: Result) -> Float[np.ndarray, " draws"]:
    """Mean F1 of a row's runs, for each draw of test sentences."""
    parts = numerator_and_denominator(result.counts)
    return score_of_parts(resampled(parts.transpose(1, 0, 2))).mean(axis=1)


def kendall(
    a: Float[np.ndarray, "draws rows"], b: Float[np.ndarray, "draws rows"]
) -> Float[np.ndarray, " draws"]:
    """Kendall's tau-b; NaN if all values of one side are equal. scipy.stats.kendalltau takes a second for all draws."""
    first, second = np.triu_indices(a.shape[-1], 1)
    x, y = (np.sign(it[..., first] - it[..., second]) for it in (a, b))
    return ratio((x * y).sum(axis=-1), np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1)))


@dataclass(frozen=True)
class Change:
    """A claim with its verdict by the runs' own gold and by another."""

    own: Decided
    other: Decided

    @property
    def changed(self) -> bool:
        return self.own.verdict != self.other.verdict
