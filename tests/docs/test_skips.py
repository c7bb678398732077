"""The list of allowed skips: a session with another reason fails, and says which."""

import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from skips import allowed, unlisted


@pytest.mark.parametrize(("reason", "status"), [("needs a GPU", 0), ("no time today", 1)])
def test_a_session_fails_for_a_reason_that_is_not_listed(tmp_path: Path, reason: str, status: int) -> None:
    (tmp_path / "conftest.py").write_text("from skips import pytest_sessionfinish, pytest_terminal_summary\n")
    (tmp_path / "test_it.py").write_text(
        f"import pytest\n\ndef test_a(): pytest.skip({reason!r})\n\ndef test_b(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "-n", "0"]
    command += [f"--rootdir={tmp_path}", "-o", f"pythonpath={ROOT / 'tests/helpers'}", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == status, result.stdout + result.stderr
    assert f"    1  {reason}" in result.stdout
    assert ("NOT IN allowed_skips.yaml" in result.stdout) == bool(status)


def test_reasons_are_matched_whole() -> None:
    assert unlisted(["needs a GPU", "weibo is not here"], allowed()) == []
    assert unlisted(["needs a GPU of its own", "is not here"], allowed()) == [
        "needs a GPU of its own",
        "is not here",
    ]
