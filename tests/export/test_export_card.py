"""Model cards without a test set, and of runs or exports made outside a checkout."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from run_to_export import copy_as, metrics_of

from ner_experiments.export import card
from ner_experiments.runs.run import Run, open_run

EVERY_EPOCH = {"files": {"test_every_epoch.csv": "abc"}}


def card_of(run: Path, **changes: Any) -> list[str]:
    """Lines of the card of a run with other metrics; without those that are None."""
    metrics = metrics_of(run) | changes
    kept = {name: value for name, value in metrics.items() if value is not None or name == "commit"}
    return card.card(Run(run, kept)).splitlines()


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"test": None}, []),
        ({}, ["- Test was scored once, by that epoch's weights."]),
        (
            EVERY_EPOCH,
            [
                "- Test was scored once, by that epoch's weights; also after each epoch, without influence on the "
                "choice."
            ],
        ),
        (
            {"test": None} | EVERY_EPOCH,
            ["- Test was scored after each epoch, without influence on the choice."],
        ),
    ],
    ids=["never", "once", "both", "after each epoch"],
)
def test_the_card_says_when_test_was_scored(changes: dict[str, Any], lines: list[str], toy_run: Path) -> None:
    assert [line for line in card_of(toy_run, **changes) if line.startswith("- Test was ")] == lines


def test_a_seed_without_a_test_score_does_not_count(toy_run: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "experiment" / f"seed-{seed}" for seed in (1, 2, 3)]
    for seed, (folder, f1) in enumerate(zip(folders, (0.5, None, 0.25), strict=True), start=1):
        copy_as(toy_run, folder, seed=seed, f1=f1)
    assert card.scores_by_seed(open_run(folders[0]), "test") == {1: 50.0, 3: 25.0}
    assert [*card.scores_by_seed(open_run(folders[0]), "dev")] == [1, 2, 3]


def test_outside_a_checkout_there_is_no_commit(toy_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "commit", lambda: None)
    lines = card_of(toy_run, commit=None, code="abc")
    assert "- code of the training: checksum `abc`" in lines
    assert f"- export: torch {version('torch')}" in lines
