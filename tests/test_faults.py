"""A few trials of each kind of fault that is quick to make; `make faults` makes all, and more of each."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

import faults_files
import faults_runs
from faults import CAMPAIGN, Trials, survived

SHORT: dict[Trials, int] = {
    faults_files.killed_downloads: 1,
    faults_files.killed_vector_caches: 2,
    faults_files.killed_bert_caches: 1,
    faults_files.damaged_vector_caches: 10,
    faults_files.damaged_bert_caches: 10,
    faults_files.damaged_checkpoints: 10,
    faults_files.damaged_results: 20,
    faults_runs.full_disks: 1,
    faults_runs.no_numbers: 1,
    faults_runs.changed_data: 1,
}
NAMES = [trials.__name__ for trials in SHORT]


@pytest.mark.parametrize(("trials", "number"), SHORT.items(), ids=NAMES)
def test_a_fault_loses_nothing_and_lets_nothing_wrong_count(
    trials: Trials, number: int, tmp_path: Path
) -> None:
    try:
        assert survived(trials, number, tmp_path, seed=2).total() == number
    except faults_runs.Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
@pytest.mark.parametrize("trials", CAMPAIGN, ids=[trials.__name__ for trials in CAMPAIGN])
def test_the_campaign(trials: Trials, tmp_path: Path) -> None:
    try:
        survived(trials, CAMPAIGN[trials], tmp_path)
    except faults_runs.Skipped as reason:
        pytest.skip(str(reason))
