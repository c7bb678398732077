"""Run folders that no run of the suite writes: each is named in one line, and the others are still read."""

import json
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import crafted
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from tiny_runs import METRICS, TINY, TOY

from ner_experiments import build
from ner_experiments.config import safe_yaml
from ner_experiments.config.compose import compose
from ner_experiments.main import cli
from ner_experiments.runs import artifacts
from ner_experiments.runs import run as runs
from ner_experiments.runs.artifacts import SCORED, WEIGHTS, DamagedError, add_checksum, read_metrics
from ner_experiments.runs.folder import finished_result, refuse_changed_data
from ner_experiments.runs.status import FAILED, status_of_folder
from ner_experiments.runs.store import candidates, intact
from ner_experiments.utils import text

BAD_METRICS = {
    "nested": "[" * 100_000,
    "a list": "[1]",
    "empty": "{}",
    "a long number": f'{{"seed": {"9" * 5000}}}',
    **{
        name: json.dumps(add_checksum(content))
        for name, content in {
            "nothing": {},
            "other keys": {"read": [1], "checksum": 3},
            "no score": METRICS | {"dev": {"f1": "high"}},
            "other task": METRICS | {"task": "parsing"},
            "read is a list": METRICS | {"read": [1]},
            "files is a list": METRICS | {"files": [1]},
            "test is a list": METRICS | {"test": [1]},
            "a score is no number": METRICS | {"dev": {"f1": float("nan"), "accuracy": float("nan")}},
            "a score above 1": METRICS | {"test": {"f1": 88.0, "accuracy": 88.0}},
        }.items()
    },
}
DAMAGE = r"is damaged|does not record its SHA-256"


@pytest.fixture
def other(toy_run: Path, tmp_path: Path) -> Path:
    """A copy of a finished run, beside which its seed 2 is to be damaged."""
    folder = tmp_path / "outputs" / toy_run.parent.name / "seed-1"
    shutil.copytree(toy_run, folder)
    shutil.copytree(toy_run, folder.with_name("seed-2"))
    return folder.with_name("seed-2")


@pytest.mark.parametrize("content", BAD_METRICS.values(), ids=BAD_METRICS)
def test_a_damaged_metrics_json_is_named_and_left_out(
    other: Path, content: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = other / "metrics.json"
    path.write_text(content)
    with pytest.raises(DamagedError, match=DAMAGE) as refusal:
        read_metrics(path)
    assert len(str(refusal.value)) < 400
    assert str(path) in str(refusal.value)

    status = status_of_folder(other, "toy")
    assert status is not None
    assert status.state == FAILED
    assert re.search(DAMAGE, status.reason)

    cfg = compose([*TINY, TOY, "data=toy_en", f"output_dir={other.parent.parent}"], "test")
    with caplog.at_level(logging.WARNING):
        found = [run.folder for run in intact(candidates(cfg))]
        refuse_changed_data(cfg, {})
    assert other.with_name("seed-1") in found
    assert other not in found
    assert str(path) in caplog.text
    assert "this run is left out" in caplog.text

    cli(["watch", "--once", f"output_dir={other.parent.parent}"])
    assert re.search(DAMAGE, " ".join(capsys.readouterr().out.split()))


@pytest.mark.parametrize("name", SCORED)
@pytest.mark.parametrize("missing", [False, True])
def test_a_run_without_an_intact_file_that_tables_read_is_left_out(
    other: Path, name: str, missing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cfg = compose([*TINY, TOY, "data=toy_en", f"output_dir={other.parent.parent}"], "test")
    assert other in [run.folder for run in intact(candidates(cfg))]
    assert finished_result(other) is not None
    path = other / name
    path.unlink() if missing else path.write_bytes(path.read_bytes() + b"\n")
    with caplog.at_level(logging.WARNING):
        found = [run.folder for run in intact(candidates(cfg))]
    assert other.with_name("seed-1") in found
    assert other not in found
    problem = "is missing, but metrics.json records it" if missing else "is damaged: its SHA-256 is "
    assert f"{path} {problem}" in caplog.text
    assert "this run is left out" in caplog.text
    assert finished_result(other) is None  # repeated


def test_a_finished_run_may_lose_its_weights(other: Path) -> None:
    (other / WEIGHTS).unlink()
    cfg = compose([*TINY, TOY, "data=toy_en", f"output_dir={other.parent.parent}"], "test")
    assert other in [run.folder for run in intact(candidates(cfg))]
    assert finished_result(other) is not None


def test_a_sweep_reads_what_each_run_read_once(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> dict[str, Any]:
        read.append(path)
        return read_metrics(path)

    monkeypatch.setattr(artifacts, "read_metrics", counted)
    cfg = compose([*TINY, TOY, "data=toy_en", f"output_dir={other.parent.parent}"], "test")
    for _ in range(3):
        refuse_changed_data(cfg, {})
    assert sorted(path.parent.name for path in read) == ["seed-1", "seed-2"]
    os.utime(other / "metrics.json", (1, 1))
    refuse_changed_data(cfg, {})
    assert [path.parent.name for path in read[2:]] == ["seed-2"]


def test_a_run_that_was_not_made_in_a_checkout_is_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(add_checksum(METRICS | {"commit": None})))
    assert read_metrics(path)["commit"] is None
    path.write_text(json.dumps(add_checksum(METRICS | {"commit": 1})))
    with pytest.raises(DamagedError, match=r"commit: expected str or None, got 1"):
        read_metrics(path)


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "{}", '{"task": 1, "labels": 2, "inputs": 3}'])
def test_a_damaged_encoder_is_named(other: Path, content: str) -> None:
    (other / "encoder.json").write_text(content)
    with pytest.raises(ValueError, match=r"encoder\.json: expected the state of the fitted inputs"):
        build.load(other)


CRAFTED = {
    "labels": ("encoder.json", {"labels": [None, "B-PER"]}, r"encoder\.json: .*item 1 of labels"),
    "task": ("encoder.json", {"task": ["mentions"]}, r"encoder\.json: .*unknown task"),
    "singletons": (
        "encoder.json",
        {"inputs": {"words": {"words": [], "singletons": "x"}, "chars": {"characters": []}}},
        "make no tagger",
    ),
    "a part": ("config.yaml", {"data": "x"}, r"config\.yaml: data: expected a mapping, got 'x'"),
    "a size": ("config.yaml", {"model": {"hidden_size": [1]}}, "make no tagger"),
    "a flag": ("config.yaml", {"chars": {"module": {"_partial_": "yes"}}}, "make no tagger"),
    "a setting": ("config.yaml", {"words": {"input": {"x": 1}}}, r"config\.yaml: expected the settings of"),
    "a length": (
        "config.yaml",
        {"chars": {"input": {"max_length": 1.5}}},
        "must be an integer of at least 1",
    ),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_settings_and_inputs_of_no_run_are_named(other: Path, case: str) -> None:
    name, changes, message = CRAFTED[case]
    path = other / name
    path.write_text(json.dumps(merged(yaml.safe_load(path.read_text()), changes)))
    with pytest.raises(ValueError, match=message) as refusal:
        build.load(other)
    assert str(refusal.value).isprintable()
    assert str(other) in str(refusal.value)


def merged(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The settings with the changes, at any depth."""
    both = {
        name: merged(settings[name], value)
        for name, value in changes.items()
        if isinstance(value, dict) and isinstance(settings.get(name), dict)
    }
    return settings | changes | both


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        (
            "predictions/test.conll",
            "x",
            r"test\.conll:1: expected a sentence with token, gold tag and predicted",
        ),
        ("predictions/test.conll", "a x B-PER", r"test\.conll: tag 'x' is neither O nor"),
        ("log.csv", "x", r"log\.csv:2: expected \d+ numbers"),
    ],
)
def test_lines_that_no_run_writes_are_named(other: Path, name: str, line: str, message: str) -> None:
    lines = (other / name).read_text().split("\n")
    (other / name).write_text("\n".join([*lines[: name == "log.csv"], line, *lines[2:]]))
    crafted.seal(other)
    run = runs.open_run(other)
    with pytest.raises(ValueError, match=message):
        _ = run.epochs() if name == "log.csv" else run.predicted()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1j])
def test_weights_that_are_not_finite_real_numbers_are_refused(other: Path, value: complex) -> None:
    weights = load_file(other / "model.safetensors")
    name = sorted(weights)[0]
    kind = torch.complex64 if isinstance(value, complex) else torch.float32
    weights[name] = torch.full_like(weights[name], value, dtype=kind)
    save_file(weights, other / "model.safetensors")
    with pytest.raises(ValueError, match=f"model.safetensors: {name}: expected finite real numbers"):
        build.load(other)


def test_files_too_large_to_be_a_runs_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: 1\n" * 250_000)
    with pytest.raises(ValueError, match=r"config\.yaml: expected at most 1,048,576 bytes, got 1,250,000"):
        safe_yaml.read_config(path)
    monkeypatch.setattr(text, "MAX_JSON_BYTES", 10)
    path.write_text('{"a": "bcdefg"}')
    with pytest.raises(ValueError, match="expected at most 10 bytes, got 15"):
        text.read_json_object(path)


@pytest.mark.parametrize("name", ["../../escape", "a/b", "/tmp/a", "..", "", "a\\b", "a\tb", "\u202ea"])
def test_names_of_corpora_that_are_no_names_of_folders_are_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["train", "data=toy_en", f"data.name='{name}'", "trainer=smoke"]) != 0
    assert "data.name must be printable text without / and" in capsys.readouterr().err
