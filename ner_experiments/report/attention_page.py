"""Page of attention maps of a run of Att: figure 2 of Li, Fu & Ma (2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ner_experiments.data.sentence import Corpus
from ner_experiments.report.entries import run_inputs
from ner_experiments.report.site import Head, Section, Site
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart

if TYPE_CHECKING:
    from ner_experiments.analysis.attention import AttentionMap, SplitSentence

MODEL = "AttBiLSTM"
PAPER_SENTENCES = ("Dutch into English", "the White house")
"""Words of the sentences in the paper's figure."""
MAX_SENTENCES, MAX_TOKENS = 3, 30
"""Number of sentences drawn, and of tokens in each."""


@dataclass(frozen=True)
class AttentionPage:
    """Title and address of a page of heat maps; without an address, the reason why there is none."""

    title: str
    address: str = ""
    missing: str = ""


def write(
    site: Site, name: str, runs: Mapping[int, Run], label: str, table: tuple[str, str]
) -> AttentionPage | None:
    """Write the page of a row of Att, by its first run with weights, unless it is current.

    None without such a run, and for other models. table: name and address of the page above it.
    """
    with_weights = (
        run for run in runs.values() if not run.archived and (run.folder / artifacts.WEIGHTS).exists()
    )
    run = next(with_weights, None)
    if run is None or not str(run.config.model.get("_target_", "")).endswith(f".{MODEL}"):
        return None
    title, address = f"{label}, seed {run.metrics['seed']}", f"attention-{name}.html"
    if site.are_current([address], (run_inputs(run), label, table)):
        return AttentionPage(title, address)
    # imports torch, and few reports have these pages
    from ner_experiments.analysis.attention import LEGEND, attention
    from ner_experiments.build import load_with_corpus

    try:
        tagger, encoder, corpus = load_with_corpus(run.folder)
        maps = attention(tagger, encoder, sentences_to_draw(corpus))
    except (ValueError, OSError) as error:
        return AttentionPage(title, missing=f"{title}: no attention maps, as {error}")
    lead = f"Seed {run.metrics['seed']} on {corpus.name}."
    head = Head(f"Attention of {label}", lead, LEGEND, trail=[table, ("Attention", "")])
    site.write_sections(address, head, [sentence_section(*it) for it in enumerate(maps, start=1)])
    return AttentionPage(title, address)


def section(pages: Sequence[AttentionPage | None]) -> Section | None:
    """Links to the pages, and the reasons why others are missing; None without either."""
    known = [page for page in pages if page is not None]
    links = [(page.title, page.address) for page in known if page.address]
    reasons = [page.missing for page in known if page.missing]
    return Section("attention", "Attention maps", links=links, points=reasons) if known else None


def sentences_to_draw(corpus: Corpus) -> list[SplitSentence]:
    """The paper's sentences if the corpus has them, then the first short ones with a mention. ValueError if none is."""
    from ner_experiments.analysis.attention import require_mentions  # as in `write`

    short = [source for source in require_mentions(corpus) if len(source.sentence.words) <= MAX_TOKENS]
    if not short:
        text = f"no sentence of test or dev with a mention has at most {MAX_TOKENS} tokens"
        raise ValueError(f"{corpus.name}: {text}")

    def in_paper(source: SplitSentence) -> bool:
        text = " ".join(source.sentence.words)
        return any(words in text for words in PAPER_SENTENCES)

    return sorted(short, key=in_paper, reverse=True)[:MAX_SENTENCES]


def sentence_section(number: int, attention_map: AttentionMap) -> Section:
    """A heat map for each head, with its weights."""
    from ner_experiments.analysis.attention import heat_maps  # as in `write`

    chart, words = heat_maps(attention_map), attention_map.source.sentence.words
    plots = []
    for panel, weights in zip(chart.panels, attention_map.weights.tolist(), strict=True):
        lines = [[word, *(f"{it:.2f}" for it in row)] for word, row in zip(words, weights, strict=True)]
        title = panel["title"]
        plots.append(Chart(title, chart.title, (panel | {"title": ""},), grid=Grid(["token", *words], lines)))
    return Section(f"sentence-{number}", attention_map.title, plots=plots)
