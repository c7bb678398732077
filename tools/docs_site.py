"""`python tools/docs_site.py`: the repository's pages, and a page for each module, as a site in site/.

The pages keep their places, so that their links to each other hold. What else they link to is copied beside
them; a module of the package is its page of the reference. MkDocs ends with an error for a link that leads
nowhere, and this command for a page that would load anything from the network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
STAGE, SITE = ROOT / "build/site", ROOT / "site"
PACKAGE = "ner_experiments"
FOLDERS = ("docs", "results", "benchmarks", "sweeps")
LINK = re.compile(r'(\]\(|<img src=")([^)"\s#]+)(#[^)"\s]*)?([)"])')
GUIDES = (
    *("docs/experiments.md", "docs/corpora.md", "docs/predict.md"),
    *("docs/own_corpus.md", "docs/service.md", "docs/own_architecture.md"),
    *("docs/sweeps.md", "docs/slurm.md", "docs/reliability.md"),
)
"""In this order; others follow by name."""


def pages() -> list[str]:
    """Of the repository, by path."""
    nested = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")]
    return [path.relative_to(ROOT).as_posix() for path in sorted([*ROOT.glob("*.md"), *nested])]


def modules() -> list[str]:
    """Of the package, by path; private ones are left out."""
    found = [path.relative_to(ROOT) for path in sorted((ROOT / PACKAGE).rglob("*.py"))]
    return [path.as_posix() for path in found if not re.search(r"(^|/)_[^_]", path.as_posix())]


def reference(module: str) -> str:
    """The path of a module's page."""
    return f"reference/{module.removesuffix('/__init__.py').removesuffix('.py')}.md"


def gather(stage: Path) -> None:
    """All pages, and what they link to or show."""
    for page in pages():
        write(stage / page, LINK.sub(partial(relinked, page=page, stage=stage), text_of(page)))
    for module in modules():
        dotted = reference(module).removeprefix("reference/").removesuffix(".md").replace("/", ".")
        write(stage / reference(module), f"# `{dotted}`\n\n::: {dotted}\n")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def relinked(match: re.Match[str], *, page: str, stage: Path) -> str:
    """A link or a picture as it holds within the site. A folder is its README."""
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
        (stage / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, stage / path)
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
    """The modules of the package, then its folders, each with its own page first."""
    top = [path for path in paths if path.count("/") == 1]
    folders = sorted({path.split("/")[1] for path in paths if path.count("/") > 1})
    inner = [{each: [entry(p) for p in paths if p.startswith(f"{PACKAGE}/{each}/")]} for each in folders]
    return [*map(entry, top), *inner]


def entry(path: str) -> Any:
    return reference(path) if path.endswith("__init__.py") else {Path(path).stem: reference(path)}


class Loads(HTMLParser):
    """Takes down what a page loads by itself; links that a reader may follow are none of it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        follows = tag == "a" or (tag == "link" and given.get("rel") in ("canonical", "next", "prev"))
        self.found += [given[name] or "" for name in ("src", "href", "data") if name in given and not follows]


def external(page: str) -> list[str]:
    """What a page in HTML would load from elsewhere."""
    parser = Loads()
    parser.feed(page)
    return [target for target in parser.found if re.match("(https?:)?//", target)]


def main() -> int:
    shutil.rmtree(STAGE, ignore_errors=True)
    gather(STAGE / "pages")
    write(STAGE / "pages/assets/iframe-worker.js", text_of("tools/docs_worker.js"))
    settings = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": "pages",
        "site_dir": str(SITE),
        "nav": navigation(),
    }
    write(STAGE / "mkdocs.yml", yaml.safe_dump(settings, sort_keys=False))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file"]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # of the theme's makers, about what may come
    built = subprocess.run([*command, str(STAGE / "mkdocs.yml")], cwd=ROOT, env=quiet, check=False)
    if built.returncode:
        return built.returncode
    asked = {
        f"{path.relative_to(SITE)}: loads {target}"
        for path in sorted(SITE.rglob("*.html"))
        for target in external(path.read_text(encoding="utf-8"))
    }
    print("\n".join(sorted(asked)) or f"{SITE}/index.html")
    return 1 if asked else 0


if __name__ == "__main__":
    sys.exit(main())
