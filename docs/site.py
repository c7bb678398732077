"""MkDocs hooks for `make docs`: the repository's pages and a page per module, at the places they have in the checkout.

The pages lie in several folders beside the code, so they are added as generated files under their own paths, and
their links to each other hold. What they link to is added too; a link to a module becomes one to its reference page.
The build fails for a page that would load anything from the network.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PACKAGE = "ner_experiments"
FOLDERS = ("docs", "results", "benchmarks", "sweeps")
GUIDES = (
    *("docs/experiments.md", "docs/corpora.md", "docs/predict.md"),
    *("docs/own_corpus.md", "docs/service.md", "docs/own_architecture.md"),
    *("docs/sweeps.md", "docs/slurm.md", "docs/reliability.md"),
)
"""In this order; other guides follow by name."""
LINK = re.compile(r'(\]\(|<img src=")([^)"\s#]+)(#[^)"\s]*)?([)"])')
LOADED = re.compile(
    r"""<(?:(?:script|img|iframe|source)\b[^>]*\ssrc|link(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*\shref)"""
    r"""=["']?(?:https?:)?//[^"'\s>]+"""
)
"""What a page loads by itself; links that a reader may follow are not among it."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    linked: set[str] = set()
    for page in pages():
        text = LINK.sub(
            partial(relinked, page=page, linked=linked), (ROOT / page).read_text(encoding="utf-8")
        )
        files.append(File.generated(config, page, content=text))
    for module in modules():
        dotted = reference(module).removeprefix("reference/").removesuffix(".md").replace("/", ".")
        files.append(File.generated(config, reference(module), content=f"# `{dotted}`\n\n::: {dotted}\n"))
    for path in sorted(linked):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    if loaded := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from the network: {loaded[0]}")
    return output


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


def navigation() -> list[Any]:
    guides = sorted(
        (page for page in pages() if page.startswith("docs/") and page != "docs/architectures.md"),
        key=lambda page: (GUIDES.index(page) if page in GUIDES else len(GUIDES), page),
    )
    results = [page for page in pages() if page.startswith("results/")]
    return [
        {"Overview": "README.md"},
        {"Architectures": "docs/architectures.md"},
        {"Guides": [*guides, {"Tables": "sweeps/README.md"}]},
        {"Results": sorted(results, key=lambda page: page != "results/README.md")},
        {"Speed": "benchmarks/README.md"},
        {"Reference": tree(modules())},
        {"Project": [page for page in pages() if "/" not in page and page != "README.md"]},
    ]


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
