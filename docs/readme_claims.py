"""The registered verdicts in README.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from ner_experiments.tables import claims, registered
from ner_experiments.tables.claims_page import (
    PAPERS,
    README_PLOT,
    TITLE,
    WITH_P,
    headline,
    registered_cells,
)
from ner_experiments.tables.registered import Replication
from ner_experiments.view.table import Grid

ROOT = Path(__file__).parent.parent
README, RESULTS = ROOT / "README.md", ROOT / "results"
MARKED = re.compile(r"(?<=<!-- claims: by make generated -->\n).*?(?=<!-- end of claims -->)", re.DOTALL)


def readme() -> str:
    """README.md with the table written anew. Raises ValueError if its markers are missing."""
    ledger = claims.read(RESULTS / claims.FILE)
    made = verdicts(registered.replications(RESULTS), ledger)
    text, count = MARKED.subn(lambda _: f"\n{made}\n\n", README.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{README}: expected one table of claims between its markers, got {count}")
    return text


def verdicts(replications: Sequence[Replication], ledger: Sequence[claims.Claim]) -> str:
    """How many tests have which verdict, a plot of those that have one, and a table of those that decide most.

    These are the decided ones on the rung that is nearest to the paper's setting. The columns with p, and all other
    tests in words, are on the pages of papers.
    """
    paragraphs = [fill(headline(replications, ledger), 120)]
    if any(each.difference for it in replications for each in it.outcomes):
        paragraphs.append(f"![{TITLE}](results/plots/{README_PLOT}.svg)")
    lines = []
    for it in replications:
        paper = f"[{PAPERS[it.family.paper].split(',')[0]}](results/{it.family.paper}.md)"
        nearest = min(each.claim.rung for each in it.outcomes)
        decided = [
            each
            for each in it.outcomes
            if each.difference and each.verdict != "undecided" and each.claim.rung == nearest
        ]
        lines += [line | {"claim": f"{paper}: {line['claim']}"} for line in map(registered_cells, decided)]
    if lines:
        paragraphs.append(Grid.by_heading(lines).without(WITH_P).markdown())
    return "\n\n".join(paragraphs)
