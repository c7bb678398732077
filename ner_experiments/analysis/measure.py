"""What a row of an analysis measures, and on the runs of which rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ner_experiments.data.tags import Span
from ner_experiments.quote import quoted
from ner_experiments.settings import nearest

TYPE, LENGTH, CHUNK = "type", "length", "chunk"
LENGTHS = ("1", "2", "3", "more than 3")
CHUNKS = ("O", "S", "B", "I", "E")
KEYS = {TYPE: (), LENGTH: LENGTHS, CHUNK: CHUNKS}
"""The figures, and what can be their key; of a type the corpus decides that."""
PART = re.compile(r"H|C([1-9]\d*)?")
Figures = Mapping[str, Mapping[str, float]]
"""A run's figures in percent: by what is left of the model ("" is all of it), and by key."""


def length(mention: Span) -> str:
    """Which of `LENGTHS` it has."""
    return LENGTHS[min(mention[1] - mention[0], len(LENGTHS)) - 1]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """`figure` for `key`, on the runs of the row `of` of the analysed table; minus that of the row `over`.

    figure: "type" and "length", F1 on test of the mentions of type `key`, or of `key` tokens; "chunk", the
        recall of the chunk tag `key` on dev, by tokens.
    over: a label, as `of` is; empty where the figure itself is meant.
    only: of figure "chunk": the one part of an Att that is left to `of` (not to `over`); empty: all of it.
    ValueError for a figure, key or part that there is none of.
    """

    of: str
    figure: str
    key: str
    over: str = ""
    only: str = ""

    def __post_init__(self) -> None:
        if self.figure not in KEYS:
            raise ValueError(f"figure must be one of {', '.join(KEYS)}, got {quoted(self.figure)}")
        keys = KEYS[self.figure]
        if keys and self.key not in keys:
            raise ValueError(
                f"key of figure {self.figure} must be one of {', '.join(keys)}, got {quoted(self.key)}"
            )
        if self.only and self.figure != CHUNK:
            raise ValueError(f"only belongs to figure {CHUNK}, not to {self.figure}")
        if self.only and not PART.fullmatch(self.only):
            raise ValueError(f"only must be H, C (all heads) or a head such as C1, got {quoted(self.only)}")
        if self.over == self.of and not self.only:
            raise ValueError(f"over must be another row than of, got {quoted(self.over)} twice")

    def check_rows(self, labels: list[str], table: str) -> None:
        """ValueError if a row is not among those that are run."""
        for name, label in (("of", self.of), ("over", self.over)):
            if label and label not in labels:
                raise ValueError(
                    f"{name} must be a row of {table} that is run, got {quoted(label)}"
                    f"{nearest(label, labels)}"
                )

    def scores(self, figures: Callable[[str, str], Mapping[int, Figures]]) -> dict[int, float]:
        """By seed: the figure, or the difference over those seeds that both rows have.

        `figures` are by seed those of a row's runs, for its label and the name of the figure. ValueError if a
        run has no such part or key, or if two rows with runs have no seed in common.
        """
        ours = self._values(figures, self.of, self.only)
        if not self.over:
            return ours
        theirs = self._values(figures, self.over, "")
        if ours and theirs and not ours.keys() & theirs.keys():
            raise ValueError(f"{self.of!r} and {self.over!r} have no seed in common")
        return {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}

    def _values(
        self, figures: Callable[[str, str], Mapping[int, Figures]], label: str, part: str
    ) -> dict[int, float]:
        found = {}
        for seed, of_parts in figures(label, self.figure).items():
            if part not in of_parts:
                raise ValueError(f"the model of {label!r} has no part {part!r}")
            if self.key not in of_parts[part]:
                raise ValueError(f"the corpus of {label!r} has no {self.figure} {self.key!r}")
            found[seed] = of_parts[part][self.key]
        return found
