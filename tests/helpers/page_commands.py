"""Run the commands of documentation pages in a copy of the checkout, as far as this machine can."""

import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import warm
from places import ROOT

from ner_experiments.config import compose, overrides

SMALL = ["trainer=smoke", "data.max_sentences=10", "runtime.progress=false"]
QUICK = {"--help", "--cfg"}
SMALLER = {
    r"seeds=.*": "seeds=[1]",
    r"(seed|layers)=(\d+,\d+),.*": r"\1=\2",
    r"sweep\.looks=.*": "sweep.looks=2,3",
    r"trainer\.max_epochs=.*": "trainer.max_epochs=1",
    r"hydra\.sweeper\.n_trials=.*": "hydra.sweeper.n_trials=3",
}
RUN_ELSEWHERE = re.compile(
    r"model=glob\(\*\)|^ner-experiments smoke |-m table=yang2020_table12 data=weibo |logger=wandb$"
)
"""Commands whose runs are those of `make smoke`, or of the page's command before but for their logger."""
RUN = re.compile(r"outputs/\S+/seed-\d+")
CORPORA = ("weibo", "conll2003", "wnut17", "msra")
GUIDES = [
    *(ROOT / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md")),
    *sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/contributing").glob("*.md")]),
]
"""Pages whose commands are run, in turn."""
LEFT_OUT = shutil.ignore_patterns(".*", "outputs", "data", "site", "build", "*.egg-info")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands(page: Path) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.replace("\\\n", "").splitlines()]


def files(page: Path) -> dict[str, str]:
    """Path -> block, for blocks whose first line is a comment with the path of a file."""
    found = (re.fullmatch(r"# (\S+/\S+)\n(.*)", each, re.DOTALL) for each in blocks(page, "(?:python|yaml)"))
    return {match[1]: match[2] for match in found if match}


def copy_to(folder: Path) -> Path:
    """Copy the checkout to a folder that commands may write into."""
    shutil.copytree(
        ROOT, folder, ignore=lambda path, names: LEFT_OUT(path, names) if path == str(ROOT) else []
    )
    return folder


def run_in_checkout(
    arguments: list[str], cwd: Path, statuses: tuple[int, ...] = (0,), **variables: str
) -> None:
    found, printed = warm.checkout(cwd).run(arguments, **variables)
    assert found in statuses, printed


def try_line(line: str, cwd: Path, finished: Path, **variables: str) -> None:
    """Run a command at small size; for a command that this machine cannot run, look up the names in it.

    `finished` stands in for the run's folder that a command names, and a toy corpus for the own one of a table.
    """
    written = line
    if "-m table=" in line and " data=" not in line:
        line += " data=toy_zh"
    program, *arguments = shlex.split(line, comments=True)
    arguments = [smaller(each) for each in arguments]
    arguments = [str(finished) if RUN.fullmatch(each) else each for each in arguments]
    if program in ("git", "cd"):
        assert arguments[-1] == "ner_experiments", f"expected a clone into ner_experiments, got {line!r}"
    elif program == ".":
        assert arguments == [".venv/bin/activate"], line
    elif program in ("make", "pip"):
        look_up(program, arguments)
    elif program in ("wandb", "tensorboard"):  # they show runs until they are ended
        assert shutil.which(program, path=Path(sys.executable).parent)
    elif RUN_ELSEWHERE.search(written) or lacks(arguments, Path(variables["NER_DATA_DIR"])):
        check_settings([each for each in arguments if "=" in each])
    elif program == "python":
        if arguments[0] == "run.py" and not QUICK & {*arguments}:
            arguments = ["train", *arguments[1:], *SMALL]
        if "pytest" in arguments:  # the suite is imported already, without checks of shapes
            variables |= {"PYTEST_ADDOPTS": "-W ignore::pytest.PytestAssertRewriteWarning"}
        run_in_checkout(arguments, cwd, **variables)
    else:
        assert program == "ner-experiments", f"not told how to try {line!r}"
        statuses = (0,)
        if arguments[0] == "watch":
            arguments.append("--once")  # otherwise it waits for the runs
            statuses = (0, 3)  # 3: for runs that nobody has begun
        if arguments[0] == "table" and any(each.startswith("model=") for each in arguments):
            arguments += SMALL  # a sweep by its overrides, which was run with these
        if arguments[:2] == ["report", "--runs"]:
            arguments.insert(1, "yang2020_table12")  # `make report` has all tables
        if arguments[0] == "xor":
            arguments += ["--seeds", "1", "--processes", "1"]
        run_in_checkout(arguments, cwd, statuses, **variables)


def check_settings(items: Sequence[str]) -> None:
    """Look up the settings of a sweep's jobs, without those of the sweep itself."""
    of_jobs = [item for item in items if item.partition("=")[0] not in overrides.SWEEP_SETTINGS]
    compose.jobs(of_jobs)


def smaller(argument: str) -> str:
    """The override with fewer seeds, epochs, looks or trials."""
    for long, short in SMALLER.items():
        argument = re.sub(f"^{long}$", short, argument)
    return argument


def lacks(arguments: list[str], data: Path) -> bool:
    """Whether the command needs SLURM, Graphviz or a corpus that is not here."""
    if "hydra/launcher=slurm" in arguments:
        return not shutil.which("sbatch")
    if "docs/diagrams.py" in arguments:
        return not shutil.which("dot")
    needed = {corpus for corpus in CORPORA if {f"data={corpus}", corpus} & {*arguments}}
    if arguments[:2] == ["watch", "table=yang2020_table12"] and not any(
        "data=" in each for each in arguments
    ):
        needed |= {"msra"}
    return any(not (data / corpus).is_dir() for corpus in needed)


def look_up(program: str, arguments: list[str]) -> None:
    """Look up a target in the Makefile, or an extra in pyproject.toml."""
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"^\.(?:\[(.+)\])?$", arguments[-1])
    assert {*filter(None, extras.split(","))} <= project["optional-dependencies"].keys()
