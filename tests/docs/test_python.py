"""The notebook of docs/python.md is up to date, and its cells run in turn."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from places import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "docs/notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_what_the_script_makes_now(script: ModuleType) -> None:
    assert script.NOTEBOOK.read_text(encoding="utf-8") == script.notebook(), "make notebook"


@pytest.mark.slow
def test_its_cells_run_in_turn(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results of the toy are found again in what the later cells print."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    names: dict[str, object] = {}
    printed = []
    for cell in json.loads(script.NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            printed.append(capsys.readouterr().out.splitlines())
    first, sweep, tagged, read, table, compared, archived = printed
    assert first[0].startswith("outputs/python/toy_en-residualbilstm-crf-")
    assert len(sweep) == len(set(sweep)) == len(table) == 4
    assert sweep[2].startswith(first[0])
    assert any(" PER " in line for line in tagged)
    assert 50 < float(read[0].removeprefix("test F1 ")) <= 100
    assert compared[0].startswith("Summary(mean=")
    assert "paired t" in compared[1]
    assert len(archived) == len([*(ROOT / "results/yang2020_table9/runs").glob("*.json")])
