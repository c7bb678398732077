"""The XOR limit on its table's page: the picture, drawn from what `ner-experiments xor` left."""

from __future__ import annotations

from ner_experiments.report.sections import Section
from ner_experiments.report.svg import Plot, inline
from ner_experiments.table_page import Grid
from ner_experiments.xor.certificate import certificates, render
from ner_experiments.xor.picture import drawn
from ner_experiments.xor.report import cases
from ner_experiments.xor.suite import HEADINGS, lines
from ner_experiments.xor.trials import Trials

DESCRIPTION = (
    "Left: how many of four phrases a sum of past and future can tag, by certificate. Middle: the largest "
    "interaction of past and future at random weights. Right: the most phrases that training got right."
)


def picture(trials: Trials) -> Section:
    """Its proofs are made again; they check themselves."""
    proved, found = certificates(), trials.found
    title = "The XOR limit: proved, measured and trained"
    svg = inline(drawn(cases(proved), found), "xor", title, DESCRIPTION)
    plot = Plot(svg, title, Grid(HEADINGS, lines(found)))
    folded = [
        (f"Proof of section {it.program.section}: {it.program.name}", render(it)) for it in cases(proved)
    ]
    return Section("xor", "Proved, measured, trained", plots=[plot], folded=folded)
