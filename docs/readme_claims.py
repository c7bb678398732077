"""The table of measured results in README.md: the tested claims that the ledger marks `readme`, with their verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from ner_experiments.tables import claims, verdicts
from ner_experiments.tables.claims_page import line
from ner_experiments.tables.verdicts import Combined, Decided

ROOT = Path(__file__).parent.parent
README, RESULTS = ROOT / "README.md", ROOT / "results"
MARKED = re.compile(r"(?<=<!-- claims: by make generated -->\n).*?(?=<!-- end of claims -->)", re.DOTALL)
PAPERS = {"huang2015": "Huang", "zukov2018": "Zukov-Gregoric", "yang2020": "Yang", "li2020": "Li"}
CORPORA = {"conll2000": "CoNLL-2000", "conll2003": "CoNLL-2003", "msra": "MSRA", "wnut17": "WNUT-17"}


def readme() -> str:
    """README.md with the table written anew. Raises ValueError if its markers are missing."""
    text, count = MARKED.subn(lambda _: f"\n{table()}\n\n", README.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{README}: expected one table of claims between its markers, got {count}")
    return text


def table() -> str:
    combined = verdicts.combine(verdicts.decide(claims.read(RESULTS / claims.FILE), RESULTS))
    shown = [it.shown for it in combined if it.tests[0].claim.readme and is_tested(it.shown)]
    deviations_of = Counter(paper for paper, deviates in {conditions(it) for it in shown} if deviates)
    lines = [
        ("claim", "paper", "ours", "verdict"),
        ("---",) * 4,
        *(row(it, says_how=deviations_of[it.claim.paper] > 1) for it in shown),
    ]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{fill(tally(combined, len(shown)), 120)}\n\n{text}\n\n{fill(deviations(shown), 120)}"


def conditions(it: Decided) -> tuple[str, str]:
    """The paper of a claim, and how its runs deviate from it."""
    return it.claim.paper, it.claim.source.deviates


def is_tested(it: Decided) -> bool:
    """Whether the runs that the claim's plan asks for exist."""
    return it.look is not None or it.claim.bound is not None


def tally(combined: Sequence[Combined], shown: int) -> str:
    """How many claims have each verdict, and how many of them README shows."""
    number = Counter(it.verdict for it in combined)
    return (
        f"Of {len(combined)} claims, {number['holds']} hold, {number['equal']} are equal, {number['opposite']} are "
        f"opposite and {number['open']} are open. These are {shown} of them; *names* and *chunks* are Huang et al.'s "
        "tasks, and *word features alone* is the setting of their table 3:"
    )


def deviations(shown: Sequence[Decided]) -> str:
    """How the runs of the claims in README deviate from the papers, in one sentence for each paper."""
    of_paper: dict[str, Counter[str]] = {}
    for paper, deviates in map(conditions, shown):
        of_paper.setdefault(PAPERS[paper], Counter())[deviates] += 1
    sentences = ["Our runs deviate from the papers."]
    for paper, counts in of_paper.items():
        parts = [
            text if len(counts) == 1 else f"{text} ({number} of {counts.total()} claims)"
            for text, number in counts.items()
            if text
        ]
        sentences += [f"{paper}: {'; or '.join(parts)}."] * bool(parts)
    return " ".join(sentences)


def row(it: Decided, *, says_how: bool) -> tuple[str, ...]:
    """The cells of a claim. says_how: whether its name says how its runs deviate from the paper, if they do."""
    claim, published, measured, interval, _, seeds, outcome = line(it)
    corpus = CORPORA.get(it.claim.corpus)
    name = f"{claim}, {corpus}" if corpus else claim
    if says_how and it.claim.source.deviates:
        name += f" ({re.split(' [(]|, ', it.claim.source.deviates)[0]})"
    number = f"{seeds} seed{'s' * (seeds != '1')}"
    ours = f"{measured} ({interval}), {number}" if interval else f"{measured}, {number}"
    verdict = outcome.partition(":")[0]
    return name, published, ours, f"{verdict} ([{PAPERS[it.claim.paper]}](results/{it.claim.paper}.md))"
