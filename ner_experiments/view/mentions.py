"""Sentences whose mentions are colored by type: in a terminal, on an HTML page, and as plain text.

`predict` writes the mentions of new text with their probabilities, `errors` and the report those of a test set with
their errors.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ner_experiments.utils.terminal import print_markdown

COLORS = ("cyan", "yellow", "magenta", "green", "red", "blue")
SHADES = ("#b9e3f9", "#fde6a8", "#ecc9f2", "#c5ecc0", "#fbcfc4", "#d0d5fb")
"""Background colors, light enough for black text."""
STYLE = "\n".join(
    ["mark { color: #111; padding: 0.05em 0.3em; border-radius: 0.25em; unicode-bidi: isolate }"]
    + ["mark small { font-size: 0.7em; font-weight: bold; margin-left: 0.4em }"]
    + ["mark.wrong { outline: 2px dashed #c8102e; outline-offset: -1px }"]
    + [f".k{number} {{ background: {shade} }}" for number, shade in enumerate(SHADES)]
)
"""CSS of the marks that `to_html` makes."""
JOINERS = frozenset("\u200c\u200d")
"""Zero-width joiners, which emoji and some scripts need."""
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories of invisible characters and of those that change the direction of text."""
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that move the cursor of a terminal, end a line, or turn the direction of what follows."""


class Segment(NamedTuple):
    """A part of a sentence's text, and its type or tag, "" outside of mentions.

    note: follows the type in its label, such as a probability or what is wrong. title: what a page says on hover.
    """

    text: str
    kind: str = ""
    note: str = ""
    wrong: bool = False
    title: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind}{',' * self.wrong} {self.note}".strip()


@dataclass(frozen=True)
class Tagging:
    """A tagging of a sentence: whose it is, and whether all of it is correct; None for that of gold."""

    label: str
    segments: Sequence[Segment]
    correct: bool | None = None


@dataclass(frozen=True)
class Sentence:
    """A sentence as gold and then as each tagger tags it.

    types: all that a page shows, whose order decides colors. kinds: of its errors, separated by spaces, for filters.
    """

    title: str
    taggings: Sequence[Tagging]
    types: Sequence[str]
    kinds: str = ""

    def labels(self) -> list[str]:
        """Whose each tagging is, and of several taggers, whether it is correct."""
        gold, *others = self.taggings
        verdicts = [f" {'correct' if it.correct else 'wrong'}" for it in others] if len(others) > 1 else [""]
        return [gold.label, *(it.label + verdict for it, verdict in zip(others, verdicts, strict=True))]


def to_terminal(segments: Iterable[Segment], types: Sequence[str]) -> Text:
    """The segments on one line, each mention in the color of its type and followed by its label."""
    line = Text()
    for it in segments:
        color = COLORS[types.index(it.kind) % len(COLORS)] if it.kind else ""
        wrong = " underline" * it.wrong
        line.append(for_terminal(it.text), style=f"bold {color}{wrong}" if it.kind else "")
        if it.kind:
            line.append(f" [{for_terminal(it.label)}]", style=f"{color}{' reverse' * it.wrong}")
    return line


def escaped(match: re.Match[str]) -> str:
    """The matched character as it is written in Python, such as \\x1b."""
    return repr(match[0])[1:-1]


def as_written(text: str) -> str:
    """The text with control characters as they are written in Python."""
    return CONTROLS.sub(escaped, text)


def visible(text: object) -> str:
    """The text with invisible characters replaced by their code points."""
    return "".join(
        f"⟨U+{ord(letter):04X}⟩" if unicodedata.category(letter) in INVISIBLE else letter
        for letter in str(text)
    )


def to_html(
    segments: Iterable[Segment], types: Sequence[str], shown: Callable[[str], str] = as_written
) -> str:
    """The segments as HTML, each mention marked in the color of its type and followed by its label.

    shown: writes invisible characters visibly.
    """
    return "".join(_marked(it, types, shown) if it.kind else escape(shown(it.text)) for it in segments)


def _marked(it: Segment, types: Sequence[str], shown: Callable[[str], str]) -> str:
    shade = f"k{types.index(it.kind) % len(SHADES)}{' wrong' * it.wrong}"
    title = f' title="{escape(it.title)}"' if it.title else ""
    label = f"<small>{escape(shown(it.label))}</small>"
    return f'<mark class="{shade}"{title}>{escape(shown(it.text))}{label}</mark>'


def in_brackets(segments: Iterable[Segment]) -> str:
    """The segments as plain text: [Hassan Abbas]PER rose to [Kabul]ORG(gold LOC) ..."""
    return "".join(
        f"[{it.text}]{it.kind}{f'({it.note})' * bool(it.note)}" if it.kind else it.text for it in segments
    )


def for_terminal(text: str) -> str:
    """The text on one line, with characters that could move the cursor or change its direction escaped."""
    flat = re.sub(r"[ \t\r]*\n[ \t\r\n]*", " ", text)
    spaces = {c for c in flat if unicodedata.category(c) == "Zs"}  # such as U+00A0 and U+3000
    shown = JOINERS | spaces
    return "".join(c if c.isprintable() or c in shown else repr(c)[1:-1] for c in flat)


def code_block(sentence: Sentence) -> str:
    """The sentence as a code block of Markdown, so that no character is interpreted."""
    labels = sentence.labels()
    width = max(map(len, labels)) + 2
    lines = [
        f"{label:<{width}}{in_brackets(it.segments)}"
        for label, it in zip(labels, sentence.taggings, strict=True)
    ]
    return "\n".join([f"{sentence.title}:", "", "```text", *lines, "```"])


def print_page(parts: Iterable[str | Sentence]) -> None:
    """Print parts in Markdown and sentences: drawn on a terminal, and as Markdown in a file or a pipe."""
    if not sys.stdout.isatty():
        print("\n\n".join(it if isinstance(it, str) else code_block(it) for it in parts))
        return
    console = Console(highlight=False)
    for it in parts:
        if isinstance(it, str):
            print_markdown(it, console)
            continue
        console.print(Text(it.title, style="bold"))
        lines = Table.grid(padding=(0, 1))
        for label, tagging in zip(it.labels(), it.taggings, strict=True):
            lines.add_row(Text(label, style="dim"), to_terminal(tagging.segments, it.types))
        console.print(lines, "", sep="\n")
