"""The rules of the speedrun, and its table."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from places import BENCHMARKS


@pytest.fixture
def speedrun(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("speedrun")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.max_sentences=10", "data.max_sentences=10: not for a record to choose"),
        ("data=toy_en", "data=toy_en: not for a record to choose"),
        ("seed=3", "seed=3: not for a record to choose"),
        ("audit.test_every_epoch=true", "audit.test_every_epoch=true: not for a record to choose"),
        ("init_from={layers: 2}", "init_from={layers: 2}: not for a record to choose"),
        ("words=glove", "PretrainedWords: reads a file besides the corpus"),
        ("words=bert", "Pieces: reads a file besides the corpus"),
        ("words=bert_frozen", "FrozenPieces: reads a file besides the corpus"),
        ("direct=ner_gazetteer", "Gazetteer: reads a file besides the corpus"),
    ],
)
def test_what_the_rules_forbid_is_refused(override: str, message: str, speedrun: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"besides|choose") as error:
        speedrun.check([override])
    assert str(error.value) == message


def test_anything_else_may_change(speedrun: ModuleType) -> None:
    speedrun.check(["paper=huang2015", "direct=ner", "optimizer=adagrad", "trainer.precision=bf16-mixed"])


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [([83.85, 83.9, 83.95], "| 0.005 |"), ([83.5, 83.9, 84.0], "| 0.160, **no record** |")],
)
def test_a_record_needs_a_mean_above_the_target_beyond_chance(
    scores: list[float],
    verdict: str,
    speedrun: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand, with two degrees of freedom: p = 1/2 - t / (2 sqrt(2 + t^2)), for t = 10.392 and t = 1.309."""
    monkeypatch.setattr(speedrun, "RECORDS", tmp_path)
    monkeypatch.setattr(speedrun, "PAGE", tmp_path / "README.md")
    speedrun.PAGE.write_text("before\n<!-- records -->\n<!-- end -->\nafter\n")
    monkeypatch.setattr(
        speedrun,
        "run",
        lambda overrides, seed, log: {"seed": seed, "seconds": 10.0 * seed, "test": scores[seed - 1]},
    )
    monkeypatch.setattr("sys.argv", ["speedrun.py", "crf", "--seeds", "3", "--note", "a CRF", "model=none"])
    speedrun.main()
    page = speedrun.PAGE.read_text()
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "[20](crf.log) (10 to 30)" in page
    assert verdict in page
    assert json.loads((tmp_path / "crf.json").read_text())["overrides"] == ["model=none"]
