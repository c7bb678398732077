"""Model cards without a test set, and of runs or exports made outside a checkout."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from run_to_export import copy_as

from ner_experiments.config.compose import compose
from ner_experiments.export import card
from ner_experiments.runs.run import Run, open_run

TAGS: dict[str, Any] = {"task": "tags", "best_epoch": 1, "epochs": 2, "seed": 1}
MADE = {"python": "3.12", "device": "x86_64", "threads": 1, "processes": 1, "seconds": 2.0, "code": "abc"}
EVERY_EPOCH = {"files": {"test_every_epoch.csv": "abc"}}


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, []),
        ({"test": {}}, ["- Test was scored once, by that epoch's weights."]),
        (
            {"test": {}} | EVERY_EPOCH,
            [
                "- Test was scored once, by that epoch's weights; also after each epoch, without influence on the "
                "choice."
            ],
        ),
        (EVERY_EPOCH, ["- Test was scored after each epoch, without influence on the choice."]),
    ],
    ids=["never", "once", "both", "after each epoch"],
)
def test_the_card_says_when_test_was_scored(more: dict[str, Any], lines: list[str]) -> None:
    cfg = compose([], "test")
    _, *found, _ = card.protocol(Run(Path(), TAGS | more), cfg)
    assert found == lines


def test_a_seed_without_a_test_score_does_not_count(toy_run: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "experiment" / f"seed-{seed}" for seed in (1, 2, 3)]
    for seed, (folder, f1) in enumerate(zip(folders, (0.5, None, 0.25), strict=True), start=1):
        copy_as(toy_run, folder, seed=seed, f1=f1)
    text = "\n".join(card.seeds(open_run(folders[0]), "test"))
    assert "| seed | 1 | 3 |\n|---|--:|--:|\n| F1 | 50.00 | 25.00 |\n" in text
    assert "| seed | 1 | 2 | 3 |\n" in "\n".join(card.seeds(open_run(folders[0]), "dev"))


def test_outside_a_checkout_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "commit", lambda: None)
    _, trained, exported = card.made_with(MADE | {"versions": {}, "commit": None}, {})
    assert trained == "- code of the training: checksum `abc`"
    assert exported == f"- export: torch {version('torch')}"
