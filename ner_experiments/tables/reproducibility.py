"""Published and measured scores of a table side by side: how far apart they are, and whether they rank rows alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, mean, stdev
from typing import Any

import scipy  # imports scipy.stats when it is first used

from ner_experiments.tables.scores import Page, groups

FEWEST_RANKED = 3
"""With fewer rows a rank correlation says next to nothing."""


@dataclass(frozen=True)
class Reproducibility:
    """Published and measured scores on one corpus, by the measures of QRA++ (Belz 2025).

    data: name of the corpus.
    rows: number of rows with a published and a measured score for the same data.
    cv: coefficient of variation of the published score and our mean, in percent, averaged over the rows.
    rank_correlation: Spearman's, between published and measured; None for fewer than three rows, or if all are equal.
    """

    data: str
    rows: int
    cv: float
    rank_correlation: float | None

    def __str__(self) -> str:
        text = f"{self.data} ({self.rows} row{'' if self.rows == 1 else 's'}) CV* {self.cv:.2f} %"
        ranks = self.rank_correlation
        return text if ranks is None else f"{text}, rank correlation {ranks:.2f}"

    def record(self) -> dict[str, Any]:
        return asdict(self)


def reproducibility(page: Page) -> list[Reproducibility]:
    """The reproducibility on each corpus of which a table has rows that are both published and measured."""
    found = []
    for group in groups(page.results):
        pairs = [
            (float(published), it.measured.mean)
            for it in group
            if isinstance(published := it.row.published, int | float) and it.against and it.measured
        ]
        if pairs:
            cv = fmean(coefficient_of_variation(pair) for pair in pairs)
            found.append(Reproducibility(group[0].data["name"], len(pairs), cv, rank_correlation(pairs)))
    return found


def coefficient_of_variation(scores: Sequence[float]) -> float:
    """Coefficient of variation for small samples, CV*, in percent (Belz, Popovic & Mille 2022).

    (1 + 1/(4n)) s* / |mean|, where s* is the standard deviation s (n - 1) without its bias under normality, s / c4(n).
    """
    n = len(scores)
    c4 = math.sqrt(2 / (n - 1)) * math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2))
    return 100 * (1 + 1 / (4 * n)) * stdev(scores) / c4 / abs(mean(scores))


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation of pairs; None if there are few, or if one of the two does not vary."""
    published, ours = zip(*pairs, strict=True)
    if len(pairs) < FEWEST_RANKED or len({*published}) == 1 or len({*ours}) == 1:
        return None
    return float(scipy.stats.spearmanr(published, ours).statistic)
