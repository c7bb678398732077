"""The table of measured results in README.md: the tested claims that the ledger marks `readme`, with their verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill

from ner_experiments.tables import claims, verdicts
from ner_experiments.tables.claims_page import VERDICT, line, summary
from ner_experiments.tables.verdicts import ClaimTests, Decided

ROOT = Path(__file__).parent.parent
README, RESULTS = ROOT / "README.md", ROOT / "results"
MARKED = re.compile(r"(?<=<!-- claims: by make generated -->\n).*?(?=<!-- end of claims -->)", re.DOTALL)
PAPERS = {"huang2015": "Huang", "zukov2018": "Zukov-Gregoric", "yang2020": "Yang", "li2020": "Li"}
NAMES = {"ten epochs": "full size"}
"""Names of settings for which the first part of a deviation is none."""
CORPORA = {"conll2000": "CoNLL-2000", "conll2003": "CoNLL-2003", "msra": "MSRA", "wnut17": "WNUT-17"}


def readme() -> str:
    """README.md with the table written anew. Raises ValueError if its markers are missing."""
    text, count = MARKED.subn(lambda _: f"\n{table()}\n\n", README.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{README}: expected one table of claims between its markers, got {count}")
    return text


def table() -> str:
    all_claims = verdicts.by_claim(verdicts.decide(claims.read(RESULTS / claims.FILE), RESULTS))
    listed = [it for it in all_claims if it.tests[0].claim.readme and is_tested(it.shown)]
    shown = [it.shown for it in listed]
    of_papers = {conditions(it) for it in shown}
    heads = ("claim", "paper", "ours", VERDICT, "registered", "rung")
    lines = [heads, ("---",) * len(heads), *(row(it, of_papers) for it in listed)]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    intro = (
        f"{summary(all_claims)} These are {len(listed)} of the claims; *names* and *chunks* are Huang et al.'s tasks, "
        "and *word features alone* is the setting of their table 3:"
    )
    return f"{fill(intro, 120)}\n\n{text}\n\n{fill(deviations(shown), 120)}"


def conditions(it: Decided) -> tuple[str, str]:
    """The paper of a claim, and how its runs deviate from it."""
    return it.claim.paper, it.claim.source.deviates


def is_tested(it: Decided) -> bool:
    """Whether the runs that the claim's plan asks for exist."""
    return it.look is not None or it.claim.bound is not None


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


def row(claim: ClaimTests, of_papers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The cells of a claim. of_papers: the papers and deviations of all rows, which its name must tell apart."""
    it = claim.shown
    name, published, measured, interval, _, seeds, outcome = line(it)
    paper, deviates = conditions(it)
    others = [other for of, other in of_papers if of == paper and other not in ("", deviates)]
    corpus, setting = CORPORA.get(it.claim.corpus), particular(deviates, others)
    name += f", {corpus}" if corpus else ""
    name += f" ({setting})" if setting else ""
    number = f"{seeds} seed{'s' * (seeds != '1')}"
    ours = f"{measured} ({interval}), {number}" if interval else f"{measured}, {number}"
    verdict = "open, as its tests disagree" if claim.disagree else outcome.partition(":")[0]
    linked = f"{verdict} ([{PAPERS[it.claim.paper]}](results/{it.claim.paper}.md))"
    return name, published, ours, linked, it.registered, str(it.claim.rung)


def particular(deviates: str, others: Sequence[str]) -> str:
    """The first part of a deviation that other ones of its paper lack, such as `a small size`; empty without others."""
    known = {part for other in others for part in parts(other)}
    found = next((part for part in parts(deviates) if others and part not in known), "")
    return NAMES.get(found, found)


def parts(deviates: str) -> list[str]:
    """`a, b and c` as its parts, without what is in parentheses."""
    return re.split(r"; |,? and ", re.sub(r" \([^)]*\)", "", deviates)) if deviates else []
