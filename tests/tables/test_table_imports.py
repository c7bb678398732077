"""Imports of the commands on tables: seconds of start-up that no page of numbers needs."""

import subprocess
import sys
from pathlib import Path

import pytest
from toy_rows import TABLE, TOY, finish

SLOW = {"torch", "lightning", "torchmetrics", "transformers", "wandb", "sklearn"}
LIST = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def imported(script: str, *arguments: str, place: Path) -> set[str]:
    """The packages in memory after a script, which may print other lines before."""
    command = [sys.executable, "-c", f"{script}\n{LIST}", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place)
    return set(found.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["table", "yang2020_table12"], ["table"]], ids=" ".join)
def test_a_table_without_runs_is_printed_without_torch(arguments: list[str], tmp_path: Path) -> None:
    script = "import sys; from ner_experiments.main import cli; cli(sys.argv[1:])"
    modules = imported(script, *arguments, place=tmp_path)
    assert "ner_experiments" in modules
    assert not modules & SLOW


def test_a_table_verifies_the_data_of_its_runs_without_torch(tmp_path: Path) -> None:
    here = f"output_dir={tmp_path}"
    finish(["paper=yang2020", *TOY, here, "model=residual", "layers=4"], seed=1, num_wrong=2)
    script = "import sys; from ner_experiments.main import cli; cli(sys.argv[1:])"
    modules = imported(script, "table", TABLE, *TOY, here, "--csv", place=tmp_path)
    assert "ner_experiments" in modules
    assert not modules & SLOW


def test_the_pages_of_results_and_the_report_are_imported_without_torch(tmp_path: Path) -> None:
    script = "import ner_experiments.tables.paper_pages, ner_experiments.report.write"
    assert not imported(script, place=tmp_path) & SLOW
