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
    """How many tests have which verdict, and a table of those that have one; without any, the first alone.

    The columns with p are on the pages of papers.
    """
    text = fill(headline(replications, ledger), 120)
    lines = []
    for it in replications:
        chosen = [each for each in it.outcomes if each.difference]
        paper = f"[{PAPERS[it.family.paper].split(',')[0]}](results/{it.family.paper}.md)"
        found = map(registered_cells, chosen)
        lines += [line | {"claim": f"{paper}: {line['claim']}"} for line in found]
    if not lines:
        return text
    plot = f"![{TITLE}](results/plots/{README_PLOT}.svg)"
    table = Grid.by_heading(lines).without(WITH_P).markdown()
    return f"{text}\n\n{plot}\n\n{table}"
