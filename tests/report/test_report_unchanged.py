"""Pages of a report that stay as they are, and what a user's commands leave in the working directory."""

import json
import re
from pathlib import Path

import pytest
from in_process import Ner
from toy_rows import TOY, finish

from ner_experiments.main import cli

SWEEP = ["model=residual", "layers=1,2", "data=toy_en", "data.max_sentences=30", "trainer=smoke"]


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.html")}


def test_pages_stay_until_what_they_show_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    for place in ("a", "b"):
        for layers in (1, 2):
            finish([*TOY, f"output_dir={runs / place}", "model=residual", f"layers={layers}"], 1, 3)
    arguments = ["report", "--runs", str(runs), "--results", str(tmp_path / "none")]
    assert cli(arguments) == 0
    first = times(runs / "report")
    assert capsys.readouterr().out == f"{runs / 'report' / 'index.html'}\n"
    assert cli(arguments) == 0
    assert "writing" not in capsys.readouterr().err
    assert times(runs / "report") == first
    finish([*TOY, f"output_dir={runs / 'b'}", "model=residual", "layers=2"], 2, 4)
    assert cli(arguments) == 0
    second = times(runs / "report")
    changed = {name for name in first.keys() & second.keys() if first[name] != second[name]}
    of_b = {
        path.name
        for path in (runs / "report").glob("runs_????????.html")
        if "in runs/b</h1>" in path.read_text(encoding="utf-8")
    }
    shown = {name for name in changed if name.startswith("runs_") and "pairs" not in name}
    assert shown == of_b
    assert "index.html" in changed
    assert not any(name.startswith(("yang2020", "huang2015")) for name in changed)


def test_a_page_that_was_deleted_or_that_code_no_longer_makes_is_set_right(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    arguments = ["report", "xor", "--results", str(tmp_path), "--output", str(folder)]
    assert cli(arguments) == 0
    before = times(folder)
    (folder / "xor.html").unlink()
    (folder / "gone.html").write_text("")
    assert cli(arguments) == 0
    assert times(folder).keys() == before.keys()
    page = folder / "xor.html"
    text = page.read_text(encoding="utf-8")
    for path in (page, folder / "index.html"):
        older = re.sub('name="inputs" content="[^"]*"', 'name="inputs" content="older"', path.read_text())
        path.write_text(older)
    assert cli(arguments) == 0
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
def test_a_sweep_its_report_and_its_dashboard_leave_nothing_but_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    ner("train", "-m", *SWEEP, "runtime.progress=false")
    assert ner("report", "layers") == "outputs/report/layers.html\n"
    page = Path("outputs/report/layers.html").read_text(encoding="utf-8")
    assert "<h1>layers</h1>" in page
    assert "Ours" not in page
    assert "ours" not in re.findall(r"<th[^>]*>([^<]*)</th>", page)
    assert re.search(r"<th[^>]*>row</th><th[^>]*>verdict</th>", page)
    index = Path("outputs/report/index.html").read_text(encoding="utf-8")
    assert "Other single runs" not in index
    answer = re.search(r'<h2 id="answer">The answer</h2>\s*<p>([^<]*)</p>', page)
    assert answer
    assert f'<td class="text">{answer[1]}</td>' in index
    ner("dashboard", "layers")
    board = json.loads(Path("outputs/layers.workspace.json").read_text())
    assert "layers=1 - layers=2" in json.dumps(board)
    assert [path.name for path in tmp_path.iterdir()] == ["outputs"]
