"""Output of `predict`: JSON lines, CoNLL columns, colored text, an HTML page, or a format of annotated text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ner_experiments.data.formats import brat, registry
from ner_experiments.data.formats.annotated import FILE, Annotated, Characters, in_order
from ner_experiments.data.tags import spans
from ner_experiments.predict.tagger import TaggedSentence
from ner_experiments.view.mentions import (
    CONTROLS,
    STYLE,
    Segment,
    escaped,
    for_terminal,
    to_html,
    to_terminal,
)

DIGITS = 4
"""Decimals of a probability."""
MARKS = re.compile(r"[\u061c\u200e\u200f]")
"""Directional marks, which can turn the numbers after a word, but which text in Arabic and Hebrew needs."""

HEAD = """<!doctype html>
<html lang="und">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tagged text</title>
<style>
body {{ max-width: 45rem; margin: 2rem auto; padding: 0 1rem; font: 1.05rem/1.9 sans-serif }}
html {{ color: #111; background: #fff }}
p {{ margin: 0 0 0.6rem }}
h2 {{ margin: 2rem 0 0.6rem; font-size: 1.05rem; overflow-wrap: anywhere }}
{style}
</style>
</head>
<body>
"""
FOOT = "</body>\n</html>\n"


def write_jsonl(tagged: Iterable[TaggedSentence], file: TextIO, types: Sequence[str]) -> None:
    """Write a JSON object per sentence and line: its position, the offsets of its tokens, its mentions or tags."""
    for sentence in tagged:
        file.write(json.dumps(to_json(sentence), ensure_ascii=False) + "\n")


def to_json(tagged: TaggedSentence) -> dict[str, Any]:
    """The sentence and its predictions as a JSON object, after the keys that its record had, such as id and meta."""
    it = tagged.sentence
    position = {"line": it.line, "start": it.start, "end": it.start + len(it.text), "text": it.text}
    written = position | predictions(tagged)
    return {key: value for key, value in it.keys.items() if key not in written} | written


def predictions(tagged: TaggedSentence) -> dict[str, Any]:
    """The offsets of the tokens, and the mentions, or the tags and their probabilities, for JSON."""
    tokens = [list(pair) for pair in tagged.sentence.offsets]
    if tagged.probabilities:
        probabilities = [round(probability, DIGITS) for probability in tagged.probabilities]
        return {"tokens": tokens, "tags": list(tagged.tags), "probabilities": probabilities}
    mentions = [
        {
            "start": mention.start,
            "end": mention.end,
            "type": mention.type,
            "text": mention.text,
            "probability": round(mention.probability, DIGITS),
        }
        for mention in tagged.mentions
    ]
    return {"tokens": tokens, "mentions": mentions}


def write_conll(tagged: Iterable[TaggedSentence], file: TextIO, types: Sequence[str]) -> None:
    """Write a token per line: word, start, end, probability of its mention or tag, and tag.

    The tags of mentions are IOB2. A token outside mentions has _ for the probability. White space in a token becomes
    U+2423, and characters that could move the cursor or turn the direction of the line are escaped. Of several files,
    a comment above each sentence names its own.
    """
    for sentence in tagged:
        if name := file_of(sentence):
            file.write(f"# file = {one_field(name)}\n")  # four fields, so it can be no token
        it, probabilities = sentence.sentence, token_probabilities(sentence)
        for word, (start, end), probability, tag in zip(
            it.words, it.offsets, probabilities, sentence.tags, strict=True
        ):
            file.write(f"{one_field(word)} {start} {end} {probability} {one_field(tag)}\n")
        file.write("\n")


def file_of(tagged: TaggedSentence) -> str:
    """The name of the sentence's file; empty where all are of one file."""
    return str(tagged.sentence.keys.get(FILE, ""))


def token_probabilities(tagged: TaggedSentence) -> list[str]:
    """Formatted probability of the mention or tag of each token; _ outside mentions."""
    if tagged.probabilities:
        return [f"{probability:.{DIGITS}f}" for probability in tagged.probabilities]
    probabilities = ["_"] * len(tagged.tags)
    tokens = {start: token for token, (start, _) in enumerate(tagged.sentence.offsets)}
    for mention in tagged.mentions:
        token = tokens[mention.start]
        while token < len(probabilities) and tagged.sentence.offsets[token][1] <= mention.end:
            probabilities[token] = f"{mention.probability:.{DIGITS}f}"
            token += 1
    return probabilities


def one_field(text: str) -> str:
    """The text as one field of a column file: white space becomes U+2423, control characters are escaped."""
    field = "".join("␣" if character in " \t\r\n" else character for character in text)
    return MARKS.sub(escaped, CONTROLS.sub(escaped, field))


def write_terminal(tagged: Iterable[TaggedSentence], file: TextIO, types: Sequence[str]) -> None:
    """Write a line per sentence, with type and probability after each mention; in color on a terminal.

    The sentences of several files are under the names of their files.
    """
    console = Console(file=file, highlight=False, soft_wrap=True)
    for number, (name, sentences) in enumerate(groupby(tagged, file_of)):
        if name:
            console.print(Text("\n" * (number > 0) + for_terminal(name), style="bold underline"))
        for sentence in sentences:
            console.print(to_terminal(segments(sentence), types))


def write_html(tagged: Iterable[TaggedSentence], file: TextIO, types: Sequence[str]) -> None:
    """Write a self-contained page: a paragraph per sentence, with the offsets of each mention as its title.

    The sentences of several files are under the names of their files.
    """
    file.write(HEAD.format(style=STYLE))
    for name, sentences in groupby(tagged, file_of):
        if name:
            file.write(f"<h2>{to_html([Segment(name)], types)}</h2>\n")
        for sentence in sentences:
            file.write(f'<p dir="auto">{to_html(segments(sentence), types)}</p>\n')
    file.write(FOOT)


def segments(tagged: TaggedSentence) -> Iterator[Segment]:
    """The whole text of the sentence, split at its mentions or tags."""
    it, done = tagged.sentence, 0
    for start, end, kind, probability in labeled_spans(tagged):
        yield Segment(it.text[done : start - it.start])
        title = f"{kind}, probability {probability:.{DIGITS}f}, characters {start} to {end}"
        yield Segment(it.text[start - it.start : end - it.start], kind, f"{probability:.2f}", title=title)
        done = end - it.start
    yield Segment(it.text[done:])


def labeled_spans(tagged: TaggedSentence) -> Iterator[tuple[int, int, str, float]]:
    """Start, end, type or tag, and probability of each mention or tag."""
    if tagged.probabilities:
        for offsets, tag, probability in zip(
            tagged.sentence.offsets, tagged.tags, tagged.probabilities, strict=True
        ):
            yield *offsets, tag, probability
    for mention in tagged.mentions:
        yield mention.start, mention.end, mention.type, mention.probability


def annotated(tagged: TaggedSentence) -> Annotated:
    """The sentence with its predicted mentions, as formats of annotated text take it."""
    it = tagged.sentence
    return Annotated(
        words=it.words,
        mentions=in_order(spans(tagged.tags)),
        text=it.text,
        offsets=tuple((start - it.start, end - it.start) for start, end in it.offsets),
        place=f"line {it.line}",
        line=it.line,
        keys=it.keys,
    )


def write_format(name: str, tagged: Iterable[TaggedSentence], file: TextIO, types: Sequence[str]) -> None:
    """Write the predicted mentions in a format of `data/formats`."""
    lines = registry.FORMATS[name].lines
    assert lines
    file.writelines(lines(map(annotated, tagged)))


def write_brat(
    tagged: Iterable[TaggedSentence], texts: Mapping[str, str], names: Mapping[str, str], folder: Path
) -> None:
    """Write each text, and its predicted mentions beside it, into a folder. `texts` and `names`, those of the written
    documents, are by the key `file`.

    Raises ValueError for a type with white space, before anything is written.
    """
    mentions: dict[str, list[tuple[str, Characters]]] = {name: [] for name in texts}
    for sentence in tagged:
        name = sentence.sentence.keys[FILE]
        place = f"{name}:{sentence.sentence.line}"
        mentions[name] += [(place, Characters(it.start, it.end, it.type)) for it in sentence.mentions]
    documents = {names[file]: brat.Document(text, mentions[file]) for file, text in texts.items()}
    brat.write_documents(documents, folder)


def write_brat_lines(tagged: Iterable[TaggedSentence], names: Mapping[str, str], folder: Path) -> None:
    """Write the sentences of each input, one per line, and their predicted mentions, into a folder.

    For inputs that are not the text of a file: records, columns, and standard input. names: as in `write_brat`.
    """
    brat.write((replace(annotated(it), document=names[file_of(it)]) for it in tagged), folder)


def write_binary(name: str, tagged: Iterable[TaggedSentence], path: Path) -> None:
    """Write the predicted mentions into a file in a format that is no text, such as spaCy's DocBin."""
    registry.write(name, map(annotated, tagged), path)


Write = Callable[[Iterable[TaggedSentence], TextIO, Sequence[str]], None]
WRITERS: dict[str, Write] = {
    **{name: partial(write_format, name) for name, it in registry.FORMATS.items() if it.lines},
    "jsonl": write_jsonl,
    "conll": write_conll,
    "terminal": write_terminal,
    "html": write_html,
}
