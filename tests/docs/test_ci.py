"""The workflows of docs/ci.md and of this repository are valid, ours runs the steps of .ci/run, and trainings run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import page_commands
import pytest
import yaml

PAGE = page_commands.ROOT / "docs/ci.md"


def steps() -> list[dict[str, Any]]:
    (text,) = page_commands.files(PAGE).values()
    (job,) = yaml.safe_load(text)["jobs"].values()
    return job["steps"]


def test_each_step_uses_an_action_or_runs_a_command() -> None:
    assert page_commands.files(PAGE).keys() == {".github/workflows/sweep.yml"}
    assert all(("uses" in step) != ("run" in step) for step in steps())
    assert all("@v" in step["uses"] for step in steps() if "uses" in step)


def test_the_version_of_torch_is_that_of_the_constraints() -> None:
    (install,) = [step["run"] for step in steps() if "pip install" in step.get("run", "")]
    pinned = (page_commands.ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert install.split()[2] in pinned


def test_the_workflow_of_the_page_follows_the_schema_of_github_actions(tmp_path: Path) -> None:
    """`make check` checks ours."""
    (text,) = page_commands.files(PAGE).values()
    (tmp_path / "sweep.yml").write_text(text, encoding="utf-8")
    (tmp_path / "wrong.yml").write_text(text.replace("runs-on:", "runs_on:"), encoding="utf-8")
    for name, status in (("sweep.yml", 0), ("wrong.yml", 1)):
        program = Path(sys.executable).with_name("check-jsonschema")
        arguments = ["--builtin-schema", "vendor.github-workflows", name]
        result = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, check=False)
        assert result.returncode == status, result.stdout


def test_our_workflow_runs_the_steps_of_ci_run_in_their_order() -> None:
    workflow = yaml.safe_load((page_commands.ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    (steps,) = re.findall(
        r"^steps=\((.*)\)$", (page_commands.ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [step["run"] for step in job["steps"] if "run" in step] == [
        f".ci/run {it}" for it in steps.split()
    ]


def test_ci_run_refuses_a_step_that_it_does_not_have() -> None:
    result = subprocess.run(
        ["bash", page_commands.ROOT / ".ci/run", "nosuch"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "no step 'nosuch'; there are: install check" in result.stderr


@pytest.mark.slow
def test_its_trainings_run_and_reach_the_threshold(tmp_path: Path) -> None:
    lines = [
        step["run"] for step in steps() if step.get("run", "").startswith(("python run.py", "python -c"))
    ]
    assert len(lines) == 3
    for line in lines:
        _, program, *arguments = shlex.split(line)
        if program == "run.py":
            result = forked.run(*arguments, cwd=tmp_path)
        else:
            command = [sys.executable, program, *arguments]
            result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
