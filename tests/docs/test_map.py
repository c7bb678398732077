"""docs/map.svg has the rooms of the contract and the imports of the code; docs/map.md names files that exist."""

import importlib.util
import re
from html import unescape
from types import ModuleType

import pytest
from places import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs/rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_has_the_rooms_and_imports_of_the_code(script: ModuleType) -> None:
    titles = re.findall(r"<title>(.*?)</title>", script.PICTURE.read_text(encoding="utf-8"))
    pairs = {tuple(unescape(title).split("->")) for title in titles if "&gt;" in title}
    rooms = {room for layer in script.layers() for room in layer}
    assert rooms <= {*titles}
    assert pairs == script.drawn(script.imports()), "make diagrams"


def test_an_edge_that_others_imply_is_left_out(script: ModuleType) -> None:
    assert script.drawn({("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}) == {
        ("a", "b"),
        ("b", "c"),
        ("a", "d"),
    }


def test_the_files_that_the_page_names_exist() -> None:
    page = (ROOT / "docs/map.md").read_text(encoding="utf-8")
    names = re.findall(r"`([\w/]+(?:\.py|/))`", page)
    assert len(names) > 20
    for name in names:
        assert any((folder / name).exists() for folder in (ROOT, ROOT / "ner_experiments")), name
