"""The trainings of the workflow of docs/ci.md run."""

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
