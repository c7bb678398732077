"""The table of measured results in README.md: the claims that the ledger marks `readme`, with their verdicts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from ner_experiments.tables import claims, verdicts
from ner_experiments.tables.claims_page import line
from ner_experiments.tables.verdicts import Decided

ROOT = Path(__file__).parent.parent
README, RESULTS = ROOT / "README.md", ROOT / "results"
MARKED = re.compile(r"(?<=<!-- claims: by make generated -->\n).*?(?=<!-- end of claims -->)", re.DOTALL)
PAPERS = {"huang2015": "Huang", "zukov2018": "Zukov-Gregoric", "yang2020": "Yang", "li2020": "Li"}


def readme() -> str:
    """README.md with the table written anew. Raises ValueError if its markers are missing."""
    text, count = MARKED.subn(lambda _: f"\n{table()}\n\n", README.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{README}: expected one table of claims between its markers, got {count}")
    return text


def table() -> str:
    decided = verdicts.decide(claims.read(RESULTS / claims.FILE), RESULTS)
    wordings = Counter(it.claim.claim for it in decided)
    rows = [row(it, ambiguous=wordings[it.claim.claim] > 1) for it in decided if it.claim.readme]
    lines = [("claim", "paper", "ours", "verdict"), ("---",) * 4, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def row(it: Decided, *, ambiguous: bool) -> tuple[str, ...]:
    """ambiguous: whether the ledger has the same claim on another corpus, too."""
    claim, published, measured, interval, _, seeds, outcome = line(it)
    name = f"{claim}, {it.claim.corpus}" if ambiguous else claim
    number = f"{seeds} seed{'s' * (seeds != '1')}"
    ours = f"{measured} ({interval}), {number}" if interval else f"{measured}, {number}"
    verdict = outcome.partition(":")[0]
    return name, published, ours, f"{verdict} ([{PAPERS[it.claim.paper]}](results/{it.claim.paper}.md))"
