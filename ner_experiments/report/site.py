"""What a page of the report consists of: sections with grids, plots, remarks and links.

The folder of pages: templates that escape every text, one style, one script, nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ner_experiments.report.pair_page import Pieces
from ner_experiments.tables.render import Grid
from ner_experiments.tables.svg import Plot


@dataclass(frozen=True)
class Shown:
    """A grid on a page. `links`: by first cell; `cited`: lines that are; `text`: columns that are words.

    heat: how deep the cells behind the first are coloured, from 0 to 1.
    """

    grid: Grid
    caption: str
    links: Mapping[str, str] = field(default_factory=dict)
    cited: frozenset[int] = frozenset()
    text: int = 0
    heat: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Tagged:
    """A sentence: its gold mentions, and in which ways it was tagged, by whom, and whether that is right."""

    title: str
    gold: Pieces
    predicted: Sequence[tuple[str, Pieces, bool]]


@dataclass(frozen=True)
class Section:
    """`texts` stand above, `notes` below; `small`: many small plots in a grid; `folded`: what opens."""

    key: str
    title: str
    texts: Sequence[str] = ()
    grids: Sequence[Shown] = ()
    plots: Sequence[Plot] = ()
    small: bool = False
    notes: Sequence[str] = ()
    points: Sequence[str] = ()
    sentences: Sequence[Tagged] = ()
    links: Sequence[tuple[str, str]] = ()
    folded: Sequence[tuple[str, str]] = ()


HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode's categories of what one does not see, or what turns the text around it."""


class Site:
    """Writes pages into a folder. `commit` is the only thing in them that the results do not say."""

    def __init__(self, folder: Path, commit: str | None):
        self.folder, self.commit = folder, commit and commit[:12]
        self.written: list[Path] = []
        self.style, self.script = (Markup(asset(f"report.{kind}")) for kind in ("css", "js"))

    @property
    def policy(self) -> str:
        """What a browser may load and run: this script, these styles, and no address at all."""
        digest = base64.b64encode(hashlib.sha256(self.script.encode()).digest()).decode()
        return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"

    @cached_property
    def environment(self) -> Environment:
        made = Environment(
            loader=PackageLoader("ner_experiments.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        made.globals["site"] = self
        made.filters["visible"] = visible
        made.filters["brief"] = brief
        made.filters["code"] = code
        return made

    def write(self, name: str, template: str, context: Mapping[str, Any]) -> None:
        text = self.environment.get_template(template).render(context)
        path = self.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        self.written.append(path)


def asset(name: str) -> str:
    return files("ner_experiments.report").joinpath("templates", name).read_text(encoding="utf-8")


def visible(text: Any) -> str:
    """A token as it is, but with a code point's number for what one would not see."""
    return "".join(
        f"⟨U+{ord(letter):04X}⟩" if unicodedata.category(letter) in HIDDEN else letter for letter in str(text)
    )


def brief(text: str) -> str:
    """Of checksums the first digits."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b", r"\1", text)


def code(text: str) -> Markup:
    """Escaped, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
