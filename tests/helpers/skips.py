"""Skipped tests: how many and why, at the end of a session, which fails if a reason is not on the list of allowed ones.

`tests/conftest.py` imports the hooks.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

LIST = Path(__file__).parents[1] / "allowed_skips.yaml"


def reason_of(report: Any) -> str:
    """The reason of a skipped test or file of tests."""
    return str(report.longrepr[2]).removeprefix("Skipped: ")


def allowed() -> dict[str, str]:
    """Where the tests are run that are skipped for a reason, by a regular expression for the whole reason."""
    content: dict[str, str] = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    return content


def unlisted(reasons: Iterable[str], known: Iterable[str]) -> list[str]:
    """The reasons that no regular expression matches."""
    patterns = [re.compile(each, re.DOTALL) for each in known]
    return [each for each in reasons if not any(pattern.fullmatch(each) for pattern in patterns)]


def reasons(config: pytest.Config) -> Counter[str]:
    """Number of skipped tests by reason; none in the worker processes of pytest-xdist."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return Counter(map(reason_of, reporter.stats.get("skipped", []))) if reporter else Counter()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    found = reasons(config)
    if not found:
        return
    terminalreporter.section(f"{found.total()} skipped")
    new = unlisted(found, allowed())
    for reason, number in found.most_common():
        mark = f"  NOT IN {LIST.name}" if reason in new else ""
        terminalreporter.write_line(f"{number:>5}  {reason}{mark}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if unlisted(reasons(session.config), allowed()) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
