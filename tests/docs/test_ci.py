"""The workflow of docs/ci.md is valid, and its trainings run."""

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
