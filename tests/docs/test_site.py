"""The site's pages: all of them, each module's own, links that hold, and nothing from the network.

`make docs` builds it, strictly; here is what goes in, which needs no MkDocs.
"""

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import ROOT

SITE = "docs_site"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        return importlib.import_module(SITE)


@pytest.fixture(scope="module")
def stage(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stage")
    site.gather(folder)
    return folder


def leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [page for each in (nav.values() if isinstance(nav, dict) else nav) for page in leaves(each)]


def test_every_page_and_every_module_is_in_the_navigation_once(site: ModuleType, stage: Path) -> None:
    gathered = sorted(path.relative_to(stage).as_posix() for path in stage.rglob("*.md"))
    assert sorted(leaves(site.navigation())) == gathered


def test_every_public_module_has_a_page_that_names_it(site: ModuleType, stage: Path) -> None:
    package = ROOT / "ner_experiments"
    public = [path for path in package.rglob("*.py") if not re.match("_[^_]", path.name)]
    assert len(site.modules()) == len(public)
    page = (stage / "reference/ner_experiments/models/residual.md").read_text(encoding="utf-8")
    assert page.splitlines()[-1] == "::: ner_experiments.models.residual"
    assert "\n::: ner_experiments.xor\n" in (stage / "reference/ner_experiments/xor.md").read_text(
        encoding="utf-8"
    )


def test_every_link_of_a_gathered_page_holds(stage: Path) -> None:
    checked = 0
    for page in stage.rglob("*.md"):
        for target in re.findall(r'(?:\]\(|src=")([^)"\s#]+)[^)"\s]*[)"]', page.read_text(encoding="utf-8")):
            if not re.match("[a-z]+:", target):
                assert (page.parent / target).resolve().is_file(), f"{page}: {target}"
                checked += 1
    assert checked > 30


def test_links_to_modules_lead_to_their_reference_and_others_stay(site: ModuleType, tmp_path: Path) -> None:
    text = (
        "[a](../ner_experiments/models/cross.py) [b](../LICENSE) [c](https://x.org/a.md) [d](../results#runs)"
    )
    expected = "[a](../reference/ner_experiments/models/cross.md) [b](../LICENSE) [c](https://x.org/a.md)"
    expected += " [d](../results/README.md#runs)"
    found = site.LINK.sub(lambda match: site.relinked(match, page="docs/page.md", stage=tmp_path), text)
    assert found == expected
    assert (tmp_path / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_what_a_page_would_load_from_elsewhere_is_found(site: ModuleType) -> None:
    page = """<link rel="canonical" href="https://a.org/"><a href="https://b.org/">b</a><img src="here.png">
        <script src="https://c.org/s.js"></script><link rel="stylesheet" href="//d.org/s.css"><img src='http://e.org/i'>"""
    assert site.external(page) == ["https://c.org/s.js", "//d.org/s.css", "http://e.org/i"]
