"""The cells of the notebook of docs/python.md run in turn."""

import json
from pathlib import Path

import pytest
from places import ROOT


@pytest.mark.slow
def test_its_cells_run_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results of the toy are found again in what the later cells print."""
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "results"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    names: dict[str, object] = {}
    printed = []
    for cell in json.loads((ROOT / "docs/python.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            printed.append(capsys.readouterr().out.splitlines())
    first, sweep, tagged, read, table, compared, others, archived = printed
    assert first[0].startswith("outputs/python/toy_en-residualbilstm-crf-")
    assert len(sweep) == len(set(sweep)) == len(table) == 4
    assert sweep[2].startswith(first[0])
    assert any(" PER " in line for line in tagged)
    test_f1 = float(read[0].removeprefix("test F1 "))
    assert float(first[1].split("test F1 ")[1].split(",")[0]) == pytest.approx(test_f1 / 100, abs=6e-4)
    assert test_f1 > 30, "far above a tagger that has not learned; the exact figure depends on the processor"
    assert compared[0].startswith("Summary(mean=")
    assert "Welch t" in compared[1]
    assert "mean=0.0," not in compared[1]
    assert others[1:] == ["spacy      87.06 (3)", "crfsuite   88.44 (1)"]
    assert len(archived) == len([*(ROOT / "results/yang2020_table9/runs").glob("*.json")])
