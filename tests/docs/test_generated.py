"""The check of the generated files of docs/ names each that is out of date, in one line."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return runpy.run_path(str(ROOT / "docs/generated.py"))
    finally:
        sys.path.remove(str(ROOT / "docs"))


def test_a_file_that_is_out_of_date_is_named(
    script: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "page.md"
    page.write_text("old")
    monkeypatch.setitem(script["main"].__globals__, "FILES", {page: lambda: "new"})
    monkeypatch.setattr(script["rooms"], "complaints", lambda: ["map.svg: lacks data"])
    assert script["main"]("--check") == 1
    assert capsys.readouterr().err == (
        f"{page}: not what it is made from now; run `make generated`\nmap.svg: lacks data\n"
    )
    assert script["main"]() == 0
    assert page.read_text() == "new"
    monkeypatch.setattr(script["rooms"], "complaints", list)
    assert script["main"]("--check") == 0


def test_a_map_with_another_arrow_is_not_up_to_date(
    script: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = script["rooms"]
    monkeypatch.setattr(rooms, "drawn", lambda edges: {("train", "main")})
    first, *_ = rooms.complaints()
    assert "map.svg: has the arrow " in first
    assert any("lacks the arrow train -> main" in line for line in rooms.complaints())


def test_an_edge_that_others_imply_is_left_out(script: dict[str, Any]) -> None:
    drawn = script["rooms"].drawn
    assert drawn({("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}) == {("a", "b"), ("b", "c"), ("a", "d")}


def test_a_setting_without_a_comment_gives_one_line(
    script: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def page() -> str:
        raise ValueError("conf/: mixed: model.dropout has no comment that says what it means")

    monkeypatch.setitem(script["main"].__globals__, "FILES", {ROOT / "README.md": page})
    for arguments in ((), ("--check",)):
        assert script["main"](*arguments) == 1
        assert capsys.readouterr().err == (
            "conf/: mixed: model.dropout has no comment that says what it means\n"
        )
