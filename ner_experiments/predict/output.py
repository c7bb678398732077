"""Tagged sentences as JSON lines, as CoNLL columns, coloured for a terminal, and as a page of HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ner_experiments.predict.tagger import Tagged

DIGITS = 4
"""Of a probability."""
COLOURS = ("cyan", "yellow", "magenta", "green", "red", "blue")
SHADES = ("#b9e3f9", "#fde6a8", "#ecc9f2", "#c5ecc0", "#fbcfc4", "#d0d5fb")
"""Light enough for black letters."""
JOINERS = frozenset("\u200c\u200d")
"""They hide nothing, and hold emoji and some scripts together."""

Piece = tuple[str, int, str, float]
"""A part of a sentence's text, where it starts, the type or tag that it has or "", and its probability."""

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
mark {{ color: inherit; padding: 0.1em 0.3em; border-radius: 0.25em; unicode-bidi: isolate }}
mark small {{ font-size: 0.7em; font-weight: bold; margin-left: 0.4em }}
{shades}
</style>
</head>
<body>
"""
FOOT = "</body>\n</html>\n"


def write_jsonl(tagged: Iterable[Tagged], file: TextIO, types: Sequence[str]) -> None:
    """An object a line: where the sentence stands, its tokens' offsets, and its mentions or tags."""
    for sentence in tagged:
        file.write(json.dumps(record(sentence), ensure_ascii=False) + "\n")


def record(tagged: Tagged) -> dict[str, Any]:
    it = tagged.sentence
    place = {"line": it.line, "start": it.start, "end": it.start + len(it.text), "text": it.text}
    tokens = [list(pair) for pair in it.places]
    if tagged.probabilities:
        sure = [round(probability, DIGITS) for probability in tagged.probabilities]
        return {**place, "tokens": tokens, "tags": list(tagged.tags), "probabilities": sure}
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
    return {**place, "tokens": tokens, "mentions": mentions}


def write_conll(tagged: Iterable[Tagged], file: TextIO, types: Sequence[str]) -> None:
    """A token a line: the word, where it starts and ends, how probable its mention or tag is, and its tag.

    Mentions are IOB2, and a token of none has _ for a probability. White space in a token becomes U+2423.
    """
    for sentence in tagged:
        it, sure = sentence.sentence, of_tokens(sentence)
        for word, (start, end), probability, tag in zip(
            it.words, it.places, sure, sentence.tags, strict=True
        ):
            file.write(f"{one_field(word)} {start} {end} {probability} {one_field(tag)}\n")
        file.write("\n")


def of_tokens(tagged: Tagged) -> list[str]:
    """Each token's probability: of its mention, or of its tag."""
    if tagged.probabilities:
        return [f"{probability:.{DIGITS}f}" for probability in tagged.probabilities]
    sure = ["_"] * len(tagged.tags)
    number = {start: place for place, (start, _) in enumerate(tagged.sentence.places)}
    for mention in tagged.mentions:
        place = number[mention.start]
        while place < len(sure) and tagged.sentence.places[place][1] <= mention.end:
            sure[place] = f"{mention.probability:.{DIGITS}f}"
            place += 1
    return sure


def one_field(text: str) -> str:
    return "".join("␣" if character in " \t\r\n" else character for character in text)


def write_terminal(tagged: Iterable[Tagged], file: TextIO, types: Sequence[str]) -> None:
    """A line for each sentence, with type and probability behind each mention; in colour on a terminal."""
    console = Console(file=file, highlight=False, soft_wrap=True)
    for sentence in tagged:
        line = Text()
        for text, _, kind, probability in pieces(sentence):
            colour = COLOURS[types.index(kind) % len(COLOURS)] if kind else ""
            line.append(visible(text), style=f"bold {colour}" if kind else "")
            if kind:
                line.append(f" [{kind} {probability:.2f}]", style=colour)
        console.print(line)


def visible(text: str) -> str:
    """What could move the cursor or turn the line around is written out; a line end is a space."""
    flat = re.sub(r"[ \t\r]*\n[ \t\r\n]*", " ", text)
    return "".join(c if c.isprintable() or c in JOINERS else repr(c)[1:-1] for c in flat)


def write_html(tagged: Iterable[Tagged], file: TextIO, types: Sequence[str]) -> None:
    """A page that needs nothing else: a paragraph for each sentence, each mention with its offsets."""
    shades = [f".k{number} {{ background: {shade} }}" for number, shade in enumerate(SHADES)]
    file.write(HEAD.format(shades="\n".join(shades)))
    for sentence in tagged:
        body = "".join(marked(piece, types) for piece in pieces(sentence))
        file.write(f'<p dir="auto">{body}</p>\n')
    file.write(FOOT)


def marked(piece: Piece, types: Sequence[str]) -> str:
    text, start, kind, probability = piece
    if not kind:
        return escape(text)
    shade = types.index(kind) % len(SHADES)
    about = f"{kind}, probability {probability:.{DIGITS}f}, characters {start} to {start + len(text)}"
    shown = f"<small>{escape(kind)} {probability:.2f}</small>"
    return f'<mark class="k{shade}" title="{escape(about)}">{escape(text)}{shown}</mark>'


def pieces(tagged: Tagged) -> Iterator[Piece]:
    """The text of the sentence in order, none of it left out."""
    it, done = tagged.sentence, 0
    for start, end, kind, probability in found(tagged):
        yield it.text[done : start - it.start], it.start + done, "", 0.0
        yield it.text[start - it.start : end - it.start], start, kind, probability
        done = end - it.start
    yield it.text[done:], it.start + done, "", 0.0


def found(tagged: Tagged) -> Iterator[tuple[int, int, str, float]]:
    if tagged.probabilities:
        for place, tag, probability in zip(
            tagged.sentence.places, tagged.tags, tagged.probabilities, strict=True
        ):
            yield *place, tag, probability
    for mention in tagged.mentions:
        yield mention.start, mention.end, mention.type, mention.probability


Write = Callable[[Iterable[Tagged], TextIO, Sequence[str]], None]
WRITERS: dict[str, Write] = {
    "jsonl": write_jsonl,
    "conll": write_conll,
    "terminal": write_terminal,
    "html": write_html,
}
