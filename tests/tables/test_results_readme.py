"""The figures of results/README.md are those of the files beside it."""

import json
import re

import pytest
from places import RESULTS

FOLDER = RESULTS
ROW = re.compile(r"^\| \[`(\w+)`\]\(\1\.json\) \|(.*)\|$", re.MULTILINE)
ROWS = ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))


def test_every_run_is_on_the_page() -> None:
    assert {name for name, _ in ROWS} == {path.stem for path in FOLDER.glob("*.json")}


@pytest.mark.parametrize(("name", "cells"), ROWS, ids=[name for name, _ in ROWS])
def test_a_row_says_what_the_run_measured(name: str, cells: str) -> None:
    run = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["metrics"]
    expected = [
        f"{100 * run['dev']['f1']:.2f}",
        f"{100 * run['test']['f1']:.2f}",
        str(run["best_epoch"]),
        str(run["epochs"]),
        f"{run['seconds'] / run['epochs']:.1f}",
    ]
    assert [cell.strip() for cell in cells.split("|")][: len(expected)] == expected
