"""The README is true: its commands run, and its architecture is one."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
SMALL = ["trainer=smoke", "data.max_sentences=10", "runtime.progress=false"]
QUICK = {"--help", "--cfg"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that the commands may write into, with the files that the README supposes you have."""
    folder = tmp_path_factory.mktemp("checkout") / "copy"
    ignored = shutil.ignore_patterns(".*", "outputs", "data", "tests")
    shutil.copytree(
        ROOT, folder, ignore=lambda path, names: ignored(path, names) if path == str(ROOT) else []
    )
    for name in ("my", "my-dev", "my-test"):
        (folder / f"{name}.conll").write_text("Ann NNP B-PER\nsat VBD O\n\nBob NNP B-PER\n\n")
    (folder / "vectors.txt").write_text("the 0.1 0.2\nof 0.3 0.4\n")
    for name in ("news", "tweets", "chinese"):
        (folder / f"{name}.txt").write_text("Ann left Oslo.\n")
    return folder


def run(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(cwd)}
    return subprocess.run(arguments, capture_output=True, text=True, cwd=cwd, env=environment, timeout=600)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("make")])
def test_a_target_is_in_the_makefile(line: str) -> None:
    assert re.search(rf"^{line.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith("make")])
def test_a_command_runs(line: str, checkout: Path, toy_run: Path) -> None:
    for corpus in ("weibo", "conll2003", "wnut17", "msra"):
        if f"data={corpus}" in line and not (Path(os.environ.get("NER_DATA_DIR", "data")) / corpus).is_dir():
            pytest.skip(f"{corpus} is not here")
    program, *arguments = shlex.split(line)
    if program == "python":
        arguments += [] if QUICK & set(arguments) else SMALL
        command = [sys.executable, *arguments]
    else:
        assert program == "ner-experiments"
        if arguments[0] == "predict":
            arguments[1] = str(toy_run)
        code = "import sys; from ner_experiments.main import cli; sys.exit(cli(sys.argv[1:]))"
        command = [sys.executable, "-c", code, *arguments]
    result = run(command, checkout)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_lines_of_python_print_mentions(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(import ner_experiments\n.*?)```", TEXT, re.DOTALL)
    text = "Vera Stavsen of Brennholt lives in Vantora, and Hugo Lornsen in Dalmia."
    code = re.sub(r'load\(".*?"\)', f"load({str(toy_run)!r})", code)
    exec(re.sub(r'tag\(".*?"\)', f"tag({text!r})", code), {})
    for line in capsys.readouterr().out.splitlines():
        start, end, _, rest = line.split(" ", 3)
        assert rest.startswith(text[int(start) : int(end)] + " ")


def test_the_architecture_of_your_own_trains_and_passes_the_common_tests(checkout: Path) -> None:
    python = re.search(r"```python\n# (\S+)\n(.*?)```", TEXT, re.DOTALL)
    yaml = re.search(r"```yaml\n# (\S+)\n(.*?)```", TEXT, re.DOTALL)
    assert python
    assert yaml
    imports = "from torch import nn\nfrom ner_experiments.modules.recurrent import BiRNN\n"
    (checkout / python[1]).write_text(f'"""Ours."""\n{imports}{python[2]}')
    (checkout / yaml[1]).write_text(f"# Ours.\n{yaml[2]}")
    trained = run([sys.executable, "run.py", "model=highway", *SMALL], checkout)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    shutil.copytree(ROOT / "tests", checkout / "tests")
    common = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_models.py", "-k", "highway"]
    tested = run([sys.executable, *common], checkout)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert " passed" in tested.stdout
