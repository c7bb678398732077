"""The workflow of docs/ci.md is valid YAML, and its trainings run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


@pytest.mark.slow
def test_its_trainings_run_and_reach_the_threshold(tmp_path: Path) -> None:
    lines = [
        step["run"] for step in steps() if step.get("run", "").startswith(("python run.py", "python -c"))
    ]
    assert len(lines) == 3
    for line in lines:
        environment = {**os.environ, "PYTHONPATH": str(page_commands.ROOT), "HYDRA_FULL_ERROR": "1"}
        command = line.replace("python ", f"{sys.executable} ", 1).replace(
            " run.py", f" {page_commands.ROOT}/run.py"
        )
        result = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
