"""Tested pairs of rows as a table of differences, with sentences that explain its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ner_experiments.tables.pairs import Pair
from ner_experiments.tables.significance import ALPHA
from ner_experiments.tables.spec import SMALLEST_EFFECT
from ner_experiments.view import cells
from ner_experiments.view.table import Grid

TESTED = "in points; over seeds, where both rows have several, by Welch's t-test."
WITH_THE_BEST = (
    "Each row minus the row on its data that has the best published number, or minus the first if none has one, "
    f"{TESTED}"
)
ALL_PAIRS = f"Each row minus each other row, {TESTED}"
WITHIN_A_LEVEL = (
    "Of all {number} pairs of rows, for whose number p is corrected, those that differ in one setting alone, "
    + TESTED
)
MATRIX = (
    "All {number} pairs of rows, corrected for their number (Holm 1979), the line's row against the column's: "
    "+ ahead, - behind, = equal, . undecided."
)
EFFECT = f"the table's smallest effect ({SMALLEST_EFFECT:g} points unless its file sets another)"
EXPLAINED = {
    "95 %": "95 %: t-interval over seeds, not corrected for the number of differences.",
    "p over seeds and sentences": "p over seeds and sentences: approximate randomization (Noreen 1989; Yeh 2000).",
    "p over sentences alone": (
        "p over sentences alone: given where a row has a single run. It tests these runs on other sentences and says "
        "nothing about other seeds, so no verdict rests on it."
    ),
    "p corrected": "p corrected: p over seeds, corrected for the number of differences (Holm 1979).",
    "q": (
        "q: corrected less strictly (Benjamini & Hochberg 1995). Of all differences with q of at most 5 %, one in "
        "twenty is a false claim on average."
    ),
    "95 %, spread assumed": (
        "95 %, spread assumed: an interval over seeds for a pair with a single run, on the assumption that its scores "
        "vary from seed to seed as those of the table's other rows on the same data. No verdict rests on it."
    ),
    "seeds needed": (
        "Seeds needed: per row, to detect a difference of this size with 80 % power; > 1,000 stands for any more."
    ),
    "detectable": (
        "Detectable: for an undecided verdict, the smallest true difference that a test with these seeds would detect "
        "with 80 % power, at the strictest level of the correction."
    ),
    "verdict": (
        "Verdict: ahead or behind if p corrected is {at_most}; equal if two one-sided tests, corrected likewise, "
        f"show that the difference is below {EFFECT}; otherwise undecided."
    ),
}
"""Sentences on columns. at_most: the level of the verdicts."""
INLINE = ("p over sentences alone", "95 %, spread assumed", "verdict")
"""Columns that the foot of a table in Markdown explains; the others are explained in docs/statistics.md."""


@dataclass(frozen=True)
class Differences:
    """Pairs of rows, each tested. subject: a sentence on which pairs these are."""

    subject: str
    pairs: Sequence[Pair]

    @cached_property
    def grid(self) -> Grid:
        """One line per pair, without the columns that are empty in all of them."""
        by_heading = [cells_of(pair) for pair in self.pairs]
        if self.subject == WITH_THE_BEST:  # false claims are counted over all pairs of rows
            by_heading = [{name: it for name, it in line.items() if name != "q"} for line in by_heading]
        optional = {*by_heading[0]} - {"", "difference", "verdict"}
        return Grid.by_heading(by_heading).without_empty(optional)

    def explained(self, headings: Sequence[str] = tuple(EXPLAINED)) -> list[str]:
        """A sentence about each column that the table has, of those named."""
        levels = sorted({pair.test.alpha for pair in self.pairs})
        at_most = "at most 5 %"
        if levels != [ALPHA]:
            of = "the look" if len(levels) == 1 else "its look"
            at_most = f"at most the level of {of}, {' or '.join(f'{level:.4f}' for level in levels)}"
        shown = [it for it in EXPLAINED if it in headings and it in self.grid.headings]
        return [EXPLAINED[heading].format(at_most=at_most) for heading in shown]

    @property
    def inline(self) -> list[str]:
        """Sentences about what verdicts rest on, and do not."""
        return self.explained(INLINE)


def cells_of(pair: Pair) -> dict[str, str]:
    """The cells of a pair by the headings of their columns."""
    test, sentences, ours = pair.test, pair.over_sentences, pair.test.over_seeds
    return {
        "": " - ".join(pair.labels),
        "difference": cells.points(ours.mean, "+"),
        "95 %": cells.interval(ours),
        "p over seeds": cells.probability(ours.p),
        "p over seeds and sentences": cells.probability(sentences.p_over_seeds_and_sentences),
        "p over sentences alone": cells.probability(sentences.p_over_sentences),
        "p corrected": cells.probability(test.p_adjusted),
        "q": cells.probability(test.q),
        "95 %, spread assumed": cells.interval(pair.assumed),
        "seeds needed": pair.seeds_text,
        "detectable": cells.points(test.detectable),
        "verdict": pair.verdict,
    }
