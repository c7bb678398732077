"""Attention maps of a run of Att: figure 2 of Li, Fu & Ma (2020), and what W&B would show as images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ner_experiments.data.tags import spans
from ner_experiments.report.site import Section, Site
from ner_experiments.runs import artifacts
from ner_experiments.runs.artifacts import read_config
from ner_experiments.runs.run import ArchivedRun, Run

MODEL = "AttBiLSTM"
TEXTS = ("Dutch into English", "the White house")
"""Of the paper's figure."""
SENTENCES, LONGEST = 3, 30
"""How many sentences are drawn, and of how many tokens at most."""


def drawn(runs: Mapping[int, Run]) -> Run | None:
    """The first seed whose weights there are; None of another model."""
    for run in runs.values():
        if not isinstance(run, ArchivedRun) and (run.folder / artifacts.WEIGHTS).exists():
            target = str(read_config(run.folder).model.get("_target_", ""))
            return run if target.endswith(f".{MODEL}") else None
    return None


@dataclass(frozen=True)
class Map:
    """A page of heat maps, and what it is of; or why there is none."""

    page: str
    about: str
    missing: str = ""


def write(site: Site, name: str, run: Run, label: str, trail: list[tuple[str, str]]) -> Map:
    from ner_experiments import build
    from ner_experiments.analysis import attention as weights

    about = f"{label}, seed {run.metrics['seed']}"
    try:
        tagger, encoder, corpus = build.load_with_corpus(run.folder)
        found = weights.attention(tagger, encoder, chosen(corpus))
    except (ValueError, OSError) as error:
        return Map("", about, f"{about}: no attention maps, as {error}")
    context = {
        "heading": f"Attention of {label}",
        "lead": f"Seed {run.metrics['seed']} on {corpus.name}.",
        "sentences": [shown(it) for it in found],
        "trail": [*trail, ("Attention", "")],
    }
    site.write(f"{name}.html", "attention.html", context)
    return Map(f"{name}.html", about)


def section(maps: Sequence[Map]) -> Section:
    links = [(it.about, it.page) for it in maps if it.page]
    return Section(
        "attention", "Attention maps", links=links, points=[it.missing for it in maps if it.missing]
    )


def chosen(corpus: Any) -> list[Any]:
    """The paper's sentences where the corpus has them; else the first with a mention that are not long."""
    from ner_experiments.analysis.attention import with_mentions

    places = [place for place in with_mentions(corpus) if len(place.sentence.words) <= LONGEST]
    of_paper = [it for it in places if any(text in " ".join(it.sentence.words) for text in TEXTS)]
    return [*of_paper, *(place for place in places if place not in of_paper)][:SENTENCES]


def shown(attended: Any) -> dict[str, Any]:
    sentence = attended.place.sentence
    inside = {place for start, end, _ in spans(sentence.tags) for place in range(start, end)}
    heads = []
    for weights in attended.weights:
        most = float(weights.max())
        lines = [[(f"{float(it):.2f}", f"{float(it) / most:.2f}") for it in row] for row in weights]
        heads.append({"most": f"{most:.2f}", "lines": lines})
    return {
        "title": f"{attended.place.split}, sentence {attended.place.number}",
        "words": [(word, place in inside) for place, word in enumerate(sentence.words)],
        "heads": heads,
    }
