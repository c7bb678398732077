"""`ner-experiments attention RUN`: draw the attention maps of a run of Att."""

from __future__ import annotations

import argparse
from pathlib import Path

from ner_experiments.utils.arguments import at_least
from ner_experiments.utils.files import write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = "Draw the attention maps of each head, for sentences of test and dev with mentions."
    parser.description = text
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="the folder of a finished run of model=attention"
    )
    parser.add_argument("--sentences", type=int, default=5, metavar="N", help="number of sentences (5)")
    parser.add_argument(
        "--containing",
        default="",
        metavar="TEXT",
        help='only sentences with this text, such as "the White house"',
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="(RUN/attention)")


def run(arguments: argparse.Namespace) -> None:
    """Write a PNG per sentence and one JSON file, and print their paths."""
    at_least(1, sentences=arguments.sentences)
    from ner_experiments.analysis.attention import attention, draw, require_mentions  # slow to import: torch
    from ner_experiments.build import load_with_corpus

    tagger, encoder, corpus = load_with_corpus(arguments.run)
    sources = require_mentions(corpus, arguments.containing)[: arguments.sentences]
    maps = attention(tagger, encoder, sources)
    folder: Path = arguments.output or arguments.run / "attention"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{source.split}-{source.number}.png" for source in sources]
    for path, attention_map in zip(paths, maps, strict=True):
        draw(path, attention_map)
    written = folder / "attention.json"
    content = {"run": str(arguments.run), "sentences": [attention_map.record() for attention_map in maps]}
    write_json(written, content)
    print(*paths, written, sep="\n")
