"""Tab completion, in the shells themselves."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from in_process import Ner
from places import ROOT

from ner_experiments.commands.completion import candidates

LINES = {
    "python run.py model=resid": {f"model=residual{end}" for end in ("", "_a", "_b", "_c", "_d")},
    "python run.py -m table=yang2020_table12": {"table=yang2020_table12"},
    "python run.py model=residual model.dense_": {"model.dense_size="},
    "python run.py hydra/launcher=lo": {"hydra/launcher=local"},
    "ner-experiments tabl": {"table", "tables"},
    "ner-experiments table mysw": {"mysweep"},
    "ner-experiments predict outputs/toy": {"outputs/toy_en-bilstm-crf-0/seed-1"},
    "ner-experiments claims li-xor-b": {"li-xor-baseline-softmax", "li-xor-baseline-crf"},
    "ner-experiments data check ud": {"ud_ewt"},
    "ner-experiments data c": {"check", "convert"},
    "ner-experiments data n": {"new"},
    "ner-experiments rescore mysweep --g": {"--gold", "--gold-columns"},
    "ner-experiments watch model=resi": {f"model=residual{end}" for end in ("", "_a", "_b", "_c", "_d")},
    "ner-experiments data new weib": set(),
    "ner-experiments completion z": {"zsh"},
}


IN_SHELLS = [
    line
    if line.rpartition(" ")[2] in ("hydra/launcher=lo", "outputs/toy")
    else pytest.param(line, marks=pytest.mark.slow)
    for line in LINES
]
"""A group with a slash and a path, and in the slow tests all; each line is completed in Python alone too."""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    run = tmp_path / "outputs/toy_en-bilstm-crf-0/seed-1"
    run.mkdir(parents=True)
    (run / "metrics.json").write_text("{}")
    (tmp_path / "results").mkdir()
    shutil.copy(ROOT / "results/claims.yaml", tmp_path / "results")
    sweeps = tmp_path / "outputs/sweeps"
    sweeps.mkdir()
    (sweeps / "mysweep.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_completed(line: str) -> None:
    assert {*candidates(line)} == LINES[line]


def test_other_programs_of_python_are_left_alone() -> None:
    assert candidates("python setup.py mod") == candidates("python -m mod") == []


def test_an_empty_word_offers_settings_but_none_of_hydra() -> None:
    found = candidates("python run.py ")
    assert {"model=", "layers=", "table=", "seed="} <= {*found}
    assert not [each for each in found if each.startswith("hydra")]


@cache
def install(shell: str) -> str:
    command = [sys.executable, str(ROOT / "run.py"), "-sc", f"install={shell}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("line", IN_SHELLS)
def test_bash(line: str) -> None:
    words = line.replace("=", " = ").split()
    text = (
        f"{install('bash')}\n"
        f'COMP_LINE="{line}" COMP_POINT={len(line)} COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}\n'
        "_ner_experiments\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    printed = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, check=True)
    assert {*printed.stdout.split()} == bash_words(line)


def bash_words(line: str) -> set[str]:
    """The candidates without what stands before the `=` that bash has split the word at."""
    typed = line.rpartition(" ")[2]
    prefix = typed[: typed.rfind("=") + 1]
    return {each.removeprefix(prefix) for each in LINES[line]}


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
@pytest.mark.parametrize("line", IN_SHELLS)
def test_fish(line: str, work: Path) -> None:
    text = f"{install('fish')}\ncomplete -C '{line}'"
    env = {**os.environ, "HOME": str(work)}
    printed = subprocess.run(
        ["fish", "--no-config", "-c", text], capture_output=True, text=True, check=True, env=env
    )
    assert {*printed.stdout.split()} == LINES[line]


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh")
@pytest.mark.parametrize(
    ("line", "whole"),
    [
        pytest.param(
            "python run.py -m table=yang2020_table12", "table=yang2020_table12 ", marks=pytest.mark.slow
        ),
        ("python run.py model=stack", "model=stacked "),
        pytest.param(
            "ner-experiments predict outputs/toy",
            "outputs/toy_en-bilstm-crf-0/seed-1 ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_zsh(line: str, whole: str, work: Path) -> None:
    (work / "install.zsh").write_text(install("zsh"))
    (work / "complete.zsh").write_text(
        "show() { print -r -- \"[$BUFFER]\" > done; }; zle -N show; bindkey '^X' show\n"
    )
    pid, terminal = pty.fork()
    if not pid:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": str(work)})
    try:
        os.write(terminal, b"source ./install.zsh; source ./complete.zsh; echo rea''dy\r")
        read_until(terminal, b"ready")
        os.write(terminal, line.encode() + b"\t")
        time.sleep(0.5)
        os.write(terminal, b"\x18")  # waits for the completion
        deadline = time.monotonic() + 30
        while not (work / "done").exists() and time.monotonic() < deadline:
            read_until(terminal, b"\0", 0.2)
        time.sleep(0.2)
        assert (work / "done").read_text().strip() == f"[{line.rpartition(' ')[0]} {whole}]"
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def read_until(terminal: int, end: bytes, seconds: float = 30) -> bytes:
    text, deadline = b"", time.monotonic() + seconds
    while end not in text and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            text += os.read(terminal, 4096)
    return text


def test_a_shell_that_is_not_known_is_named(ner: Ner) -> None:
    assert "there is no 'csh'; there are: bash, zsh, fish" in ner.error("train", "-sc", "install=csh")
