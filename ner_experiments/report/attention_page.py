"""Page of attention maps of a run of Att: figure 2 of Li, Fu & Ma (2020).

The maps are HTML tables, whose weights can be read and words selected; `analysis.attention` draws the same maps as
pictures, which the command `attention`, TensorBoard and W&B need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ner_experiments.data.sentence import Corpus
from ner_experiments.report.site import Section, Site
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run

if TYPE_CHECKING:
    from ner_experiments.analysis.attention import AttentionMap, SplitSentence

MODEL = "AttBiLSTM"
PAPER_SENTENCES = ("Dutch into English", "the White house")
"""Words of the sentences in the paper's figure."""
MAX_SENTENCES, MAX_TOKENS = 3, 30
"""Number of sentences drawn, and of tokens in each."""


def run_with_weights(runs: Mapping[int, Run]) -> Run | None:
    """The first run with weights; None if there is none, or if its model is not Att."""
    for run in runs.values():
        if not run.archived and (run.folder / artifacts.WEIGHTS).exists():
            target = str(run.config.model.get("_target_", ""))
            return run if target.endswith(f".{MODEL}") else None
    return None


@dataclass(frozen=True)
class AttentionPage:
    """Address and title of a page of heat maps; or the reason why there is none."""

    address: str
    title: str
    missing: str = ""


def title(run: Run, label: str) -> str:
    return f"{label}, seed {run.metrics['seed']}"


def write(site: Site, name: str, run: Run, label: str, trail: list[tuple[str, str]]) -> AttentionPage:
    """Write the page of a run; return its address, or the reason why the run cannot be read."""
    from ner_experiments.analysis.attention import attention  # imports torch; few reports have these pages
    from ner_experiments.build import load_with_corpus

    heading = title(run, label)
    try:
        tagger, encoder, corpus = load_with_corpus(run.folder)
        maps = attention(tagger, encoder, sentences_to_draw(corpus))
    except (ValueError, OSError) as error:
        return AttentionPage("", heading, f"{heading}: no attention maps, as {error}")
    context = {
        "heading": f"Attention of {label}",
        "lead": f"Seed {run.metrics['seed']} on {corpus.name}.",
        "sentences": [sentence_context(attention_map) for attention_map in maps],
        "trail": [*trail, ("Attention", "")],
    }
    site.write(f"{name}.html", "attention.html", context)
    return AttentionPage(f"{name}.html", heading)


def section(pages: Sequence[AttentionPage]) -> Section:
    """Links to the pages, and the reasons why others are missing."""
    links = [(page.title, page.address) for page in pages if page.address]
    reasons = [page.missing for page in pages if page.missing]
    return Section("attention", "Attention maps", links=links, points=reasons)


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


def sentence_context(attention_map: AttentionMap) -> dict[str, Any]:
    """Variables of the template for one sentence: its words, marked if in a mention, and the weights of each head."""
    in_mention = {token for start, end, _ in attention_map.mentions for token in range(start, end)}
    heads = []
    for weights in attention_map.weights:
        most = float(weights.max())
        lines = [[(f"{weight:.2f}", f"{weight / most:.2f}") for weight in row] for row in weights.tolist()]
        heads.append({"most": f"{most:.2f}", "lines": lines})
    return {
        "title": attention_map.title,
        "words": [
            (word, token in in_mention) for token, word in enumerate(attention_map.source.sentence.words)
        ],
        "heads": heads,
    }
