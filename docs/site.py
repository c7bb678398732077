"""MkDocs hooks for `make docs`: the repository's pages and a page per module, at the places they have in the checkout.

The pages lie in several folders beside the code, so they are added as generated files under their own paths, and
their links to each other hold. What they link to is added too; a link to a module becomes one to its reference page.
The build fails for a page that would load anything from the network.
"""

from __future__ import annotations

import inspect
import re
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ner_experiments.main import cli

ROOT = Path(__file__).parent.parent
PACKAGE = "ner_experiments"
FOLDERS = ("docs", "results", "benchmarks", "sweeps")
SECTIONS = {
    "Start": ["README.md", "docs/troubleshooting.md", "docs/glossary.md"],
    "Sweeps": [
        "docs/sweeps.md",
        "docs/registering.md",
        "docs/search.md",
        "docs/clusters.md",
        "docs/configuration.md",
        "sweeps/README.md",
    ],
    "Corpora": ["docs/corpora.md", "docs/tokens.md"],
    "Architectures": ["docs/architectures.md", "docs/own_architecture.md"],
    "Results": [
        *(
            "docs/compare.md",
            "docs/statistics.md",
            "docs/report.md",
            "docs/reliability.md",
        ),
        *(
            "results/README.md",
            "results/CLAIMS.md",
            "results/replication.md",
            "results/",
            "benchmarks/README.md",
            "benchmarks/RESULTS.md",
        ),
    ],
    "Use": ["docs/predict.md", "docs/python.md"],
    "Contribute": ["CONTRIBUTING.md", "docs/map.md", "docs/contributing/", "docs/ci.md", "CHANGELOG.md"],
}
"""The navigation: a page, or all pages of a folder. Pages that are not named come last."""


SCRIPTS_USE = {
    "predict.tagger": ["load", "TextTagger", "TaggedSentence", "Mention"],
    "data.tokenize": ["TokenizedSentence"],
    "comparison.comparison": ["compare", "Comparison"],
    "config.compose": ["compose", "jobs"],
    "train": ["train"],
    "runs.run": ["open_run", "Run"],
    "runs.archived_run": ["archived_runs"],
    "analysis.statistics": ["summarize", "difference"],
}
"""Names that the guide from Python uses, by module: the start of the reference."""

GALLERY = [
    ("All published tables beside our scores", "results/index.html", "report-index.png"),
    ("A table: the answer, scores, all pairs", "results/huang2015_table3-*2015.html", "report-table.png"),
    ("A row: its seeds, and errors by kind, type and length", "results/runs-*.html", "report-errors.png"),
    ("Sentences on which two rows differ", "results/*-pairs-0.html", "report-pairs-phone.png"),
    ("Files of predictions by two tools, compared", "files/index.html", ""),
]
"""Pages of the reports: the subject, the address, and a picture of such a page, if there is one."""

LINK = re.compile(r'(\]\(|<img src=")([^)"\s#]+)(#[^)"\s]*)?([)"])')
EQUATION = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
LOADED = re.compile(
    r"""<(?:(?:script|img|iframe|source)\b[^>]*\ssrc|link(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*\shref)"""
    r"""=["']?(?:https?:)?//[^"'\s>]+"""
)
"""Resources that a page loads by itself, without links that a reader may follow."""
LINE = re.compile(r'<span id="__span-[^"]*">(?=(?:<[^>]*>)*([^<\n]*))')
COLUMNS = re.compile(r"^\||^ ?─|\S {3,}\S|^ {4,}\S")
"""A line of a text whose columns are aligned, so that it must not be wrapped."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    linked: set[str] = set()
    for page in pages():
        text = LINK.sub(
            partial(relinked, page=page, linked=linked), (ROOT / page).read_text(encoding="utf-8")
        )
        files.append(File.generated(config, page, content=EQUATION.sub(equation, text)))
    for module in modules():
        dotted = reference(module).removeprefix("reference/").removesuffix(".md").replace("/", ".")
        content = f"# `{dotted}`\n\n::: {dotted}\n" + (uses() if dotted == PACKAGE else "")
        files.append(File.generated(config, reference(module), content=content))
    for path in sorted(linked):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "gallery.md", content=gallery(Path(config.site_dir) / "gallery")))
    return files


def gallery(folder: Path) -> str:
    """Write the reports into the folder; return a page that leads to them, with pictures."""
    files = ROOT / "docs" / "compare"
    systems = [f"bilstm_crf={files}/bilstm_crf-*.conll", f"spacy={files}/spacy-*.jsonl"]
    with tempfile.TemporaryDirectory() as no_runs:
        for command in (
            ["report", "--results", ROOT / "results", "--runs", no_runs, "--output", folder / "results"],
            ["compare", "--gold", files / "gold.conll", *systems, "--report", folder / "files"],
        ):
            if cli([str(item) for item in command]):
                raise PluginError(f"the gallery has no report of `{command[0]}`")
    lines = [
        "# Gallery",
        "",
        "Pages of the suite's reports, exactly as they open from disk.",
        "",
    ]
    for title, pattern, picture in GALLERY:
        page = min(folder.glob(pattern)).relative_to(folder.parent).as_posix()
        shown = f'<img src="docs/{picture}" width="600" alt="{title}">' if picture else "The report"
        # a link in HTML, as pages of the reports are no documents of the site
        lines += [f"## {title}", "", f'<a href="{page}">{shown}</a>', ""]
    return "\n".join(lines)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    if loaded := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from the network: {loaded[0]}")
    return LINE.sub(marked, output)


def marked(line: re.Match[str]) -> str:
    """The opening tag of a line of code, with the class `columns` if its columns are aligned."""
    return line[0].replace("<span ", '<span class="columns" ') if COLUMNS.search(line[1]) else line[0]


def pages() -> list[str]:
    """Paths of the repository's pages."""
    nested = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]
    return [path.relative_to(ROOT).as_posix() for path in sorted([*ROOT.glob("*.md"), *nested])]


def modules() -> list[str]:
    """Paths of the package's public modules."""
    paths = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / PACKAGE).rglob("*.py"))]
    return [path for path in paths if not re.search(r"(^|/)_[^_]", path)]


def reference(module: str) -> str:
    """The path of a module's page."""
    return f"reference/{module.removesuffix('/__init__.py').removesuffix('.py')}.md"


def uses() -> str:
    """Links to what scripts use, with the first line of each docstring, for the page of the package."""

    def first_line(module: str, name: str) -> str:
        return inspect.getdoc(getattr(import_module(f"{PACKAGE}.{module}"), name)).partition("\n")[0]

    lines = [
        f"- [`{name}`]({PACKAGE}/{module.replace('.', '/')}.md#{PACKAGE}.{module}.{name}): {first_line(module, name)}"
        for module, names in SCRIPTS_USE.items()
        for name in names
    ]
    return "\n".join(
        ["\n## What scripts use", "", "[From Python](../docs/python.md) shows these at work.", "", *lines, ""]
    )


def relinked(match: re.Match[str], *, page: str, linked: set[str]) -> str:
    """A link as it holds within the site; adds a file that is no page to `linked`. A folder stands for its README."""
    opening, target, anchor, closing = match.groups(default="")
    if re.match("[a-z]+:", target):
        return match[0]
    folder = page.rpartition("/")[0]
    path = normpath(f"{folder}/{target}" if folder else target)
    if (ROOT / path / "README.md").is_file():
        path = f"{path}/README.md"
    if path in modules():
        path = reference(path)
    elif not path.endswith(".md") and (ROOT / path).is_file():
        linked.add(path)
    return f"{opening}{relpath(path, folder or '.')}{anchor}{closing}"


def equation(match: re.Match[str]) -> str:
    """The block of LaTeX as MathML, which browsers draw; GitHub renders the block itself."""
    tex = match[1].strip().replace("{aligned}", "{align*}")  # the same, under the name that the library knows
    return f'<div class="equation">{convert(tex, display="block")}</div>'


def navigation() -> list[Any]:
    """Each page once, in the sections' order; within a folder its README comes first."""
    left = sorted(pages(), key=lambda page: (not page.endswith("README.md"), page))
    found: dict[str, list[str]] = {}
    for title, entries in SECTIONS.items():
        found[title] = [*dict.fromkeys(page for entry in entries for page in left if is_in(page, entry))]
        left = [page for page in left if page not in found[title]]
    found["Contribute"] += left
    sections: list[Any] = [{title: listed} for title, listed in found.items()]
    return [sections[0], {"Gallery": "gallery.md"}, *sections[1:], {"Reference": tree(modules())}]


def is_in(page: str, entry: str) -> bool:
    return page == entry or (entry.endswith("/") and page.startswith(entry))


def tree(paths: list[str]) -> list[Any]:
    """Navigation of the reference: modules at the root, then the folders of the package, each with its page first."""
    top = [path for path in paths if path.count("/") == 1]
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder = path.removeprefix(f"{PACKAGE}/").rpartition("/")[0]
        if folder:
            folders.setdefault(folder, []).append(path)
    return [*map(entry, top), *({folder: [*map(entry, inner)]} for folder, inner in sorted(folders.items()))]


def entry(path: str) -> Any:
    return reference(path) if path.endswith("__init__.py") else {Path(path).stem: reference(path)}
