"""Runs on hostile corpora: they train, or are refused in a line, and every gold mention is scored."""

import json
from pathlib import Path
from typing import Any

import forked
import pytest
from hostile_corpora import GOOD, LONG
from omegaconf import OmegaConf


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """The output of a sweep over hostile corpora, and the metrics of those that it could train on."""
    folder = tmp_path_factory.mktemp("corpora")
    word = "x" * LONG
    corpora = {
        "only_o": ["a O\nb O\n\nc O\n"] * 3,
        "no_gold": [GOOD, GOOD, "a O\nb O\n\nc O\n"],
        "one": ["Mia B-PER\n"] * 3,
        "unknown": [GOOD, "x B-DEV\n", "Mia B-PER\nx B-TEST\ny I-TEST\n\nz B-LOC\n"],
        "hidden": [
            "\ufeff" + "".join(f"{w}\tB-PER\r\n" for w in ("\u200b", "\u202ea", "\u2028", "\x85", " "))
        ]
        * 3,
        "long": [f"{GOOD}\n{word} B-PER\n"] * 3,
        "empty_test": [GOOD, GOOD, "\n"],
        "cr": [GOOD.replace("\n", "\r"), GOOD, GOOD],
    }
    for name, texts in corpora.items():
        (folder / name).mkdir()
        for split, text in zip(("train", "dev", "test"), texts, strict=True):
            (folder / name / split).write_text(text, encoding="utf-8", newline="")
    files = [f"data.files.{split}={split}" for split in ("train", "dev", "test")]
    places = ",".join(str(folder / name) for name in corpora)
    settings = ["trainer=smoke", "runtime.progress=false", f"output_dir={folder}/outputs"]
    result = forked.run("-m", "data=conll", "data.name=conll", *files, f"data.folder={places}", *settings)
    metrics = {}
    for config in folder.glob("outputs/*/*/config.yaml"):
        if (config.parent / "metrics.json").exists():
            name = Path(OmegaConf.load(config).data.folder).name
            metrics[name] = json.loads((config.parent / "metrics.json").read_text(encoding="utf-8"))
    return result.stdout + result.stderr, metrics


def test_hostile_corpora_train_or_are_refused_in_a_line(
    runs: tuple[str, dict[str, dict[str, Any]]],
) -> None:
    printed, metrics = runs
    assert "3 of 8 jobs failed" in printed
    assert "conll: train has no mentions (sentences: 2)" in printed
    assert "conll: test has no sentence: test" in printed
    assert "/cr/train:1: carriage return inside a line (lines end in LF or CRLF): 'Mia B-PER" in printed
    assert metrics.keys() == {"no_gold", "one", "unknown", "hidden", "long"}


def test_every_gold_mention_of_a_hostile_corpus_is_scored(
    runs: tuple[str, dict[str, dict[str, Any]]],
) -> None:
    _, metrics = runs
    gold = {
        name: {kind: of["gold"] for kind, of in run["test"]["types"].items()} for name, run in metrics.items()
    }
    assert gold == {
        "no_gold": {"LOC": 0, "PER": 0},
        "one": {"PER": 1},
        "unknown": {"DEV": 0, "LOC": 1, "PER": 1, "TEST": 1},
        "hidden": {"PER": 5},
        "long": {"LOC": 1, "PER": 2},
    }
    assert metrics["no_gold"]["test"]["f1"] == 0
