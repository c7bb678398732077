"""A ledger of one claim on three archived seeds of a table, for tests of claims and of registrations."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from checksummed import edit
from places import RESULTS

from ner_experiments.tables import claims

CONTENT = yaml.safe_load((RESULTS / claims.FILE).read_text(encoding="utf-8"))
TABLE, SOURCE, ID = "huang2015_table2", "huang-features", "huang-crf-on-lstm-names"
ROWS = ("random, LSTM-CRF, NER", "random, LSTM, NER")


def ledger(of_source: Any = (), **of_claim: Any) -> dict[str, Any]:
    """The ledger, with two looks, at three and six seeds; and changes of its source and its claim."""
    (claim,) = [entry for entry in CONTENT["claims"] if entry["id"] == ID]
    source = CONTENT["sources"][SOURCE] | {"seeds": [1, 2, 3, 4, 5, 6], "looks": [3, 6], "first_looks": []}
    return copy.deepcopy({"sources": {SOURCE: source | dict(of_source)}, "claims": [claim | of_claim]})


def write(path: Path, content: Any) -> Path:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def write_all(results: Path) -> None:
    """Copy the archived runs of seeds 1 to 3, and write the ledger."""
    others = shutil.ignore_patterns("*-seed-[!123].json", "*-seed-??*.json")
    shutil.copytree(RESULTS / TABLE, results / TABLE, ignore=others)
    write(results / claims.FILE, ledger())


def change_runs(results: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the files of the archived runs."""
    for path in sorted((results / TABLE / "runs").glob("*.json")):
        edit(path, change)


def scores(label: str) -> list[float]:
    """Test F1 in percent of the archived runs of a row."""
    paths = (RESULTS / TABLE / "runs").glob("*-seed-[123].json")
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [100 * run["metrics"]["test"]["f1"] for run in runs if run["label"] == label]
