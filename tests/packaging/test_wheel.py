"""The built wheel, installed outside a checkout, trains from any folder."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from places import ROOT

APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the licence's text as the Apache Software Foundation publishes it."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "outputs", "build", "*.egg-info"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def command(wheel: Path) -> Path:
    """`ner-experiments` of a new environment that holds the wheel, and borrows this one's dependencies."""
    folder = wheel.parent
    venv.create(folder / "env", with_pip=True)
    pip = [str(folder / "env/bin/pip"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=300)
    (site,) = (folder / "env/lib").glob("python*/site-packages")
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    return folder / "env/bin/ner-experiments"


def run(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(command), *arguments], capture_output=True, text=True, cwd=cwd, env=environment, timeout=300
    )


def test_the_installed_command_sweeps_from_any_folder(command: Path, tmp_path: Path) -> None:
    small = ["model.hidden_size=8", "data.max_sentences=30", "trainer=smoke"]
    result = run(command, "train", "-m", "model=bilstm,lstm", *small, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(list(tmp_path.glob("outputs/*/seed-1/metrics.json"))) == 2
    assert "model=lstm" in result.stdout


def test_the_installed_code_is_the_wheels(command: Path, tmp_path: Path) -> None:
    python = command.parent / "python"
    code = "import ner_experiments; print(ner_experiments.__file__)"
    result = subprocess.run([str(python), "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert str(command.parent.parent) in result.stdout


def test_the_wheel_carries_its_licence_whole(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (licence,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(licence)
        head = archive.read(metadata).decode().splitlines()
    assert text == (ROOT / "LICENSE").read_bytes()
    assert hashlib.sha256(text).hexdigest() == APACHE_2
    assert {"License-Expression: Apache-2.0", "License-File: LICENSE"} <= {*head}


def test_the_other_commands_are_beside_it(command: Path, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Ann B-PER\nsat O\n")
    result = run(command, "data", "check", "--format", "conll", "a.conll", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert '"mentions": 1' in result.stdout
