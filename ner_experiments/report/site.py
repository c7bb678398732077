"""The report's folder of HTML pages, and the sections that a page consists of.

Pages are Jinja templates that escape every text, with one stylesheet and one script. They load nothing but the script
beside them, which draws charts.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ner_experiments.runs.provenance import package_digest
from ner_experiments.utils.files import atomic_write
from ner_experiments.view import vega
from ner_experiments.view.mentions import STYLE, Segment, Sentence, to_html, visible
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart

LIBRARY = "charts.js"
"""Script that draws the charts of all pages."""
HEAD = 2000
"""Characters of a page that hold all it records of itself."""


@dataclass(frozen=True)
class Section:
    """A section of a page.

    texts stand above the tables and plots, notes below. small: plots are small multiples. kinds: value and text of the
    kinds of errors by which the sentences can be filtered. folded: title and content of
    collapsed details.
    """

    key: str
    title: str
    texts: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    plots: Sequence[Chart] = ()
    small: bool = False
    notes: Sequence[str] = ()
    points: Sequence[str] = ()
    sentences: Sequence[Sentence] = ()
    kinds: Sequence[tuple[str, str]] = ()
    links: Sequence[tuple[str, str]] = ()
    folded: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Head:
    """The head of a page, above its sections.

    based_on: what the page is made from. trail: name and address of the pages above it, and its own name. variants: the
    same with other settings. deviations: settings that differ from the paper's. comparable: whether scores can be
    compared with published ones. progress: how far a sweep is that has not ended, whose page reloads itself after
    `seconds`.
    """

    heading: str
    lead: str
    based_on: str = ""
    trail: Sequence[tuple[str, str]] = ()
    variants: Sequence[tuple[str, str]] = ()
    stand_ins: Sequence[str] = ()
    deviations: str = ""
    deviations_heading: str = ""
    comparable: bool = True
    progress: str = ""
    seconds: float = 0.0


class Site:
    """Pages of a folder. Pages depend on nothing but the results, `commit` and the code.

    Each page records in its head a digest of the inputs it was made from; while they are the same, it stays as it is.
    start: the page to open first. command: that which writes the pages. home: name of `index.html` in breadcrumbs.
    ValueError if the folder holds anything else than an earlier report.
    """

    def __init__(
        self,
        folder: Path,
        commit: str | None,
        start: str = "index.html",
        *,
        command: str = "report",
        home: str = "All tables",
    ):
        if folder.exists() and any(folder.iterdir()) and not recorded(folder / "index.html", "start"):
            raise ValueError(f"{folder}: expected a new folder, an empty one, or an older report")
        self.folder, self.commit, self.start = folder, commit and commit[:12], start
        self.command, self.home = command, home
        self.pages: dict[str, str | None] = {}
        self.digests: dict[str, str] = {}
        self.library = None if has_library(folder) else executor().submit(vega.javascript)
        self.style, self.script = (Markup(dict(template_texts())[f"report.{kind}"]) for kind in ("css", "js"))
        self.style += Markup(STYLE)

    @property
    def policy(self) -> str:
        """Content security policy that allows only these styles, this script, and scripts beside the page."""
        digest = base64.b64encode(hashlib.sha256(self.script.encode()).digest()).decode()
        scripts = f"'self' file: 'sha256-{digest}'"
        return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {scripts}"

    @cached_property
    def environment(self) -> Environment:
        environment = Environment(
            loader=PackageLoader("ner_experiments.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        environment.globals["site"] = self
        environment.filters["visible"] = visible
        environment.filters["tagged"] = tagged
        environment.filters["brief"] = brief
        environment.filters["code"] = as_code
        return environment

    def are_current(self, names: Sequence[str], inputs: Any) -> bool:
        """Whether the pages in the folder were made from these inputs by this code. If so, they are kept.

        inputs: anything whose repr is the same in every process.
        """
        digest = inputs_digest(self.commit, inputs)
        self.digests |= dict.fromkeys(names, digest)
        if any(recorded(self.folder / name, "inputs") != digest for name in names):
            return False
        self.pages |= dict.fromkeys(names)
        return True

    def write(self, name: str, template: str, context: Mapping[str, Any]) -> None:
        """Render a page; `finish` writes it to disk."""
        known = {"inputs": self.digests.get(name, ""), "start": self.start, "trail": ()}
        self.pages[name] = self.environment.get_template(template).render({**known, **context})

    def write_sections(self, name: str, head: Head, sections: Sequence[Section | None]) -> None:
        """Render a page of those sections that are not None."""
        context = {it.name: getattr(head, it.name) for it in fields(head)}
        self.write(name, "table.html", context | {"sections": [it for it in sections if it is not None]})

    def finish(self) -> Path:
        """Write the pages that changed, and delete those of an earlier report that are gone; return the first page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.pages.items():
            path = self.folder / name
            if text is None or (path.exists() and path.read_text(encoding="utf-8") == text):
                continue
            with atomic_write(path) as part:
                part.write_text(text, encoding="utf-8", newline="\n")
        if self.library is not None:
            with atomic_write(self.folder / LIBRARY) as part:
                part.write_text(f"{library_head()}{self.library.result()}", encoding="utf-8", newline="\n")
        for path in self.folder.glob("*.html"):
            if path.name not in self.pages:
                path.unlink()
        return self.folder / self.start


def has_library(folder: Path) -> bool:
    """Whether the folder has the script that draws charts, as it would be written now."""
    try:
        with (folder / LIBRARY).open(encoding="utf-8") as file:
            return file.readline() == library_head()
    except OSError:
        return False


def library_head() -> str:
    return f"// {vega.javascript_version()}\n"


@cache
def executor() -> ThreadPoolExecutor:
    """Bundling takes seconds, in which the pages are made."""
    return ThreadPoolExecutor(1)


def inputs_digest(commit: str | None, inputs: Any) -> str:
    """Digest of what a page is made from, and of the code and templates that make it."""
    return hashlib.sha256(repr((commit, package_digest(), template_texts(), inputs)).encode()).hexdigest()


@cache
def template_texts() -> tuple[tuple[str, str], ...]:
    folder = files("ner_experiments.report").joinpath("templates")
    return tuple(sorted((path.name, path.read_text(encoding="utf-8")) for path in folder.iterdir()))


def recorded(path: Path, name: str) -> str:
    """Content of the <meta> of that name in a page; empty without the page."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(HEAD)
    except OSError:
        return ""
    found = re.search(rf'<meta name="{name}" content="([^"]*)">', head)
    return found[1] if found else ""


def tagged(segments: Sequence[Segment], types: Sequence[str]) -> Markup:
    return Markup(to_html(segments, types, visible))


def brief(text: str) -> str:
    """The text with checksums shortened to 12 digits."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b", r"\1", text)


def as_code(text: str) -> Markup:
    """The text escaped, with `...` as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
