"""Modules that commands load: no library that they do not use, and in a run none that its record lacks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from toy_rows import TABLE, TOY, finish

from ner_experiments.runs.code import is_counted

UNUSED = {
    *("lightning", "torchmetrics", "wandb", "tensorboard", "vl_convert", "transformers", "triton", "sklearn"),
    *("sympy", "torch._dynamo", "torch._inductor", "scipy.stats"),
}
CHECKS = {
    f"ner_experiments.{name}"
    for name in ("data.bert_files", "data.needed_files", "utils.checks", "utils.terminal")
}
"""Modules of a training that only rooms without numbers import: to check a config."""
PROGRAM = """
import sys
from ner_experiments.main import cli

status = cli(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


def modules_after(*command: str) -> set[str]:
    """The names of the modules that a process has loaded when a command has ended without an error."""
    program = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run([*program, *command], input="Ann works in Oslo.", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {*done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("command", "used"),
    [
        (("predict", "RUN", "-"), {"torch"}),
        (("errors", "RUN"), set()),
        (("table", "yang2020_table12"), {"scipy.stats"}),
        (
            (
                *("train", "data=toy_en", "trainer=smoke", "output_dir=OUT", "model=parallel"),
                *("penalty=orthogonality", "direct=spelling", "features=case"),
            ),
            {"torch", "lightning", "torchmetrics", "sympy", "torch._dynamo", "torch._inductor", "triton"}
            | {"scipy.stats", "sklearn", "transformers"},
        ),
        pytest.param(
            ("export", "RUN", "--output", "OUT", "--format", "torch"),
            {"torch", "sympy", "torch._dynamo", "torch._inductor", "scipy.stats", "triton"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_loads_only_what_it_uses(
    command: tuple[str, ...], used: set[str], toy_run: Path, tmp_path: Path
) -> None:
    """And all of the suite that a training loads is in its code.json, if a score can depend on it.

    `export` uses torch.export, and Lightning TorchDynamo: they load SymPy, and Triton where it is installed.

    TorchMetrics loads SciPy, scikit-learn and transformers where they are installed.
    """
    loaded = modules_after(
        *(part.replace("RUN", str(toy_run)).replace("OUT", str(tmp_path / "out")) for part in command)
    )
    assert not sorted(loaded & (UNUSED - used))
    assert ("torch" in loaded) == ("torch" in used)
    if command[0] == "train":
        (record,) = tmp_path.glob("out/*/*/code.json")
        recorded = {*json.loads(record.read_text())}
        own = {name for name in loaded if name.startswith("ner_experiments.") and is_counted(name)}
        assert own - CHECKS <= recorded
        assert len(recorded) > 40


HEAVY = {"torch", "lightning", "torchmetrics", "transformers", "wandb", "sklearn", "vl_convert"}
LIGHT = f"""
import contextlib, io, sys
from ner_experiments.commands.completion import candidates
from ner_experiments.main import COMMANDS, cli

def quietly(*arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            return cli(arguments)

def tell(what):
    print(f"{{what}}:", *sorted({HEAVY} & sys.modules.keys()))

assert quietly("table") == 0
tell("the list of tables")
for line in ("python run.py mod", "ner-experiments tab", "python run.py model="):
    candidates(line)
tell("completion")
assert quietly("table", "yang2020_table12") == 0
tell("a table")
assert quietly("table", {TABLE!r}, *{TOY!r}, "output_dir=runs") == 0
tell("a table that verifies its runs")
quietly("train", "--cfg", "job")
tell("config")
for line in ("words=bert", "words=glove", "data=conll2003", "seed=-1"):
    assert quietly("train", line)
tell("refusals")
import ner_experiments.tables.paper_pages, ner_experiments.report.write
tell("pages of results and report")
for name in (*COMMANDS, "train"):
    quietly(name, "--help")
tell("help")
"""
"""Commands that load neither PyTorch nor another library that takes seconds, in one process."""


def test_what_needs_no_model_is_done_without_torch(tmp_path: Path) -> None:
    finish(["paper=yang2020", *TOY, f"output_dir={tmp_path}/runs", "model=residual", "layers=4"], 1, 2)
    program = [sys.executable, "-c", LIGHT]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [line for line in done.stdout.splitlines() if not line.endswith(":")] == []


def test_a_command_ends_without_a_search_for_garbage() -> None:
    """Exit handlers run in reverse order, so the one that prints runs after the freeze."""
    program = "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > 1000))"
    program += "\nfrom ner_experiments.main import cli\ncli(['--version'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
