"""`ner-experiments new model`: its files pass at once, and names that are no module's or are taken are refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from ner_experiments.commands.new import commands
from ner_experiments.main import cli

FILES = ["gated.py", "conf/model/gated.yaml", "conf/search/gated.yaml", "test_gated.py"]


@pytest.mark.slow
def test_the_commands_that_it_prints_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of one's own; `tests/docs/test_guides.py` runs those of a checkout."""
    monkeypatch.chdir(tmp_path)
    assert cli(["new", "model", "gated"]) == 0
    written, _, commands = capsys.readouterr().out.partition("next:\n")
    assert written.splitlines() == [f"written: {path}" for path in FILES]
    suite = f"PYTHONPATH=.:{ROOT} {sys.executable} -m ner_experiments"
    *lines, last = commands.splitlines()
    assert last == "Commands on its runs (predict, errors, ...) take --config-dir conf and PYTHONPATH=., too."
    for line in lines:
        command = line.replace("PYTHONPATH=. ner-experiments", suite)
        command = command.replace("n_trials=3", "n_trials=1 data.max_sentences=10 model.hidden_size=8")
        command = command.replace("python -m pytest", f"PYTHONPATH={ROOT} {sys.executable} -m pytest")
        result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
    assert len(lines) == 4


def test_the_guide_has_the_commands_that_are_printed_in_a_checkout() -> None:
    guide = (ROOT / "docs/own_architecture.md").read_text(encoding="utf-8")
    printed = "\n".join(commands("highway", Path("tests/models/test_highway.py"), ""))
    assert f"ner-experiments new model highway\n{printed}\n" in guide


REFUSED = {
    "my-Model": "'my-Model': expected lower-case letters, digits and _, from a letter on; my_model is free",
    "class": "'class': a keyword of Python, which names no module; class_2 is free",
    "2nd": "'2nd': expected lower-case letters, digits and _, from a letter on; nd is free",
    "residual": f"residual: there is a model of that name ({ROOT}/conf/model/residual.yaml); residual_2 is free",
    "numpy": "numpy: there is a Python package of that name, which the module would hide; numpy_2 is free",
    "mine": "test_mine.py: already exists: choose another name, or remove it",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_or_is_taken_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("test_mine.py").write_text("")
    assert cli(["new", "model", name]) == 1
    assert capsys.readouterr().err == f"{REFUSED[name]}\n"
    assert [*tmp_path.iterdir()] == [tmp_path / "test_mine.py"]
