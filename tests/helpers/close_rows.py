"""Three rows of a table, two of them close. They differ on more sentences than a page shows."""

from pathlib import Path

import numpy as np

from ner_experiments.report import pair_page
from ner_experiments.report.site import Site
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Result

NUM_SENTENCES = 900
CORRECT = (0.3, 0.97, 0.98)
"""Probability that a run of each row tags a sentence correctly."""


def length(number: int) -> int:
    return 1 + 7 * number % 13


class Tagged(Run):
    """A run that tags these sentences of test correctly, and finds no mention in the others."""

    def predicted(self) -> list[Predicted]:
        found = []
        for number in range(NUM_SENTENCES):
            none = ("O",) * length(number)
            gold = ("B-X", *none[1:])
            words = tuple(f"word{place}" for place in range(len(none)))
            found.append(Predicted(words, gold, gold if number in self.metrics["right"] else none))
        return found


def three_rows() -> list[Result]:
    """Three rows with two, three and three seeds; the first is far from the other two."""
    rng = np.random.default_rng(5)
    found = []
    for row, often, count in zip(spec.load("yang2020_table12").rows, CORRECT, (2, 3, 3), strict=False):
        right = [set(np.flatnonzero(rng.random(NUM_SENTENCES) < often).tolist()) for _ in range(count)]
        runs = {seed: Tagged(Path(), {"task": "mentions", "right": own}) for seed, own in enumerate(right, 1)}
        found.append(Result(row, runs=runs))
    return found


def page(folder: Path) -> Path:
    about = {"heading": "Pairs", "lead": "of three rows", "trail": [("Table", "")]}
    site = Site(folder, None)
    site.write("close.html", "pair.html", {**about, **pair_page.context(three_rows())})
    site.finish()
    return folder / "close.html"
