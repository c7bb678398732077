"""The package is imported even beside a folder of its name, such as a clone of the repository."""

import subprocess
import sys
from pathlib import Path


def test_a_checkout_in_the_working_directory_does_not_hide_the_package(tmp_path: Path) -> None:
    (tmp_path / "ner_experiments").mkdir()
    code = "import ner_experiments; print(callable(ner_experiments.load))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
