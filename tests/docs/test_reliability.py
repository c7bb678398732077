"""docs/reliability.md: the tests that it names are there, in the files that it names."""

import ast
import re
from pathlib import Path

from places import ROOT

TESTS = ROOT / "tests"
PAGE = TESTS.parent / "docs" / "reliability.md"


def functions(path: Path) -> set[str]:
    found = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in found if isinstance(node, ast.FunctionDef)}


def test_each_promise_names_tests_that_there_are() -> None:
    """`test_file`: `test_name`, `test_beginning_of_a_name...`; without a file, in any."""
    files = {path.stem: functions(path) for path in TESTS.rglob("test_*.py")}
    seen, missing = 0, []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        there = set().union(*files.values())
        for name, cut in re.findall(r"`(test_\w+?)(\.\.\.)?`", line):
            seen += 1
            if name in files:
                there = files[name]
            elif not any(known == name or (cut and known.startswith(name)) for known in there):
                missing.append(name)
    assert not missing
    assert seen > 50
