"""The script of other tools' predictions says what is missing before it trains."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import page_commands
import pytest


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("other_tools", page_commands.ROOT / "docs/other_tools.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_says_what_is_missing(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["other_tools.py", *arguments])
        with pytest.raises(SystemExit) as exit_:
            script.main()
        return str(exit_.value)

    monkeypatch.setitem(script.TOOLS, "crfsuite", script.TOOLS["crfsuite"]._replace(modules=("no_such",)))
    assert run("--help") == "0"
    assert run("crfsuite") == "crfsuite is not installed: pip install sklearn-crfsuite"
    assert "wnut17train.conll is missing: ner-experiments data get wnut17" in run("without_offsets")
    for name in script.FILES.values():
        (tmp_path / name).write_text("Oslo\tB-location\n", encoding="utf-8")
    folders = ["--data", str(tmp_path), "--output", str(tmp_path / "out")]
    assert run("without_offsets", *folders).endswith("is missing: name transformers before it")


def test_mentions_are_where_conlleval_reads_them(script: ModuleType) -> None:
    words, tags = ["a", "New", "York", "I", "b"], ["O", "B-x", "I-x", "I-y", "O"]
    assert script.mentions(tags) == [(1, 3, "x"), (3, 4, "y")]
    assert script.offsets(words, tags) == [(2, 10, "x"), (11, 12, "y")]
