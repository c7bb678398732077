"""Results of an analysis in results/, and the command that compares rows of runs."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_tags
from analyzed import errors_of
from hydra.utils import instantiate
from omegaconf import OmegaConf
from places import ROOT
from tiny_runs import METRICS

from ner_experiments.analysis import disagreements
from ner_experiments.analysis.archive import archive, errors_by_seed, run_calibration, run_errors
from ner_experiments.analysis.breakdown import Bucket
from ner_experiments.analysis.calibration import Calibration, calibration
from ner_experiments.analysis.errors import confusion
from ner_experiments.analysis.row_errors import INTERVALS, pairs, rows
from ner_experiments.config.compose import compose
from ner_experiments.data.corpus import load
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import encode, spans
from ner_experiments.main import cli
from ner_experiments.runs import artifacts
from ner_experiments.runs.archived_run import ArchivedRun, archived_runs
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.predictions import count, write_predictions
from ner_experiments.runs.run import Run

CONFIG = compose(["data=toy_zh", "data.sentences={train: 60, dev: 5, test: 40}"], "test")
CORPUS = load(instantiate(CONFIG.data))
TEST = CORPUS.splits["test"]


def finish(folder: Path, identity: str, seed: int, checksum: str = CORPUS.checksum) -> Path:
    """Folder of a finished run without weights, whose tagger disturbs the gold mentions."""
    folder = folder / f"toy_zh-bilstm-crf-{identity}" / f"seed-{seed}"
    folder.mkdir(parents=True)
    rng = random.Random(f"{identity} {seed}")
    guesses = [random_tags.disturbed(rng, spans(it.tags), len(it)) for it in TEST]
    tags = [encode(guess, len(it), "bioes") for guess, it in zip(guesses, TEST, strict=True)]
    write_predictions(folder / "predictions" / "test.conll", "mentions", TEST, tags)
    metrics = {
        "identity": identity,
        "seed": seed,
        "task": "mentions",
        "data": {"name": "toy_zh", "checksum": checksum},
        "test": {"f1": 0.5},
    }
    OmegaConf.save(CONFIG, folder / "config.yaml", resolve=True)
    (folder / "log.csv").write_text("epoch,dev_f1\n1,0.5\n")
    (folder / "metrics.json").write_text(json.dumps(add_checksum(metrics)))
    return folder


def opened(folder: Path) -> Run:
    return Run(folder, artifacts.read(folder / "metrics.json"))


def test_an_archived_run_has_the_errors_of_its_folder(tmp_path: Path) -> None:
    run = opened(finish(tmp_path, "a", 1))
    archive(run, tmp_path / "archived.json", "a row")
    (again,) = archived_runs(tmp_path)
    assert "seen" in run_errors(run).breakdown
    expected = errors_of(run.predicted(), CORPUS.splits["train"])
    assert run_errors(again).breakdown == run_errors(run).breakdown == expected.breakdown
    assert run_errors(again).kinds == run_errors(run).kinds == expected.kinds
    assert run_errors(again).confusion == run_errors(run).confusion == confusion(run.predicted())
    assert (run_errors(again).outcomes.correct == run_errors(run).outcomes.correct).all()
    assert (
        disagreements.agreements({1: run_errors(again).outcomes}, {1: run_errors(run).outcomes}).total.first
        == 0
    )
    text = (tmp_path / "archived.json").read_text()
    assert not any(word in text for sentence in TEST for word in sentence.words if not word.isascii())
    # weights there are none: no calibration
    assert (run_calibration(run), run_calibration(again)) == (None, None)


def test_runs_of_a_row_have_the_errors_of_each_alone(tmp_path: Path) -> None:
    runs = {seed: opened(finish(tmp_path, "a", seed)) for seed in (1, 2, 3)}
    archive(runs[2], tmp_path / "archived.json", "a row")
    (runs[2],) = archived_runs(tmp_path)
    together = errors_by_seed(runs)
    assert list(together) == [1, 2, 3]
    for seed, run in runs.items():
        found, alone = together[seed], run_errors(run)
        assert {name: scores(groups) for name, groups in found.breakdown.items()} == {
            name: scores(groups) for name, groups in alone.breakdown.items()
        }
        assert {name: it.count for name, it in found.kinds.items()} == {
            name: it.count for name, it in alone.kinds.items()
        }
        assert found.confusion == alone.confusion
        assert found.outcomes.correct.tolist() == alone.outcomes.correct.tolist()
    assert disagreements.agreements({1: together[1].outcomes}, {2: together[2].outcomes}).pairs == 1


def scores(groups: dict[str, Bucket]) -> dict[str, tuple[int, int, int]]:
    return {name: (it.correct, it.predicted, it.gold) for name, it in groups.items()}


def test_an_archived_run_has_its_predicted_tags(tmp_path: Path) -> None:
    run = opened(finish(tmp_path, "a", 1))
    archive(run, tmp_path / "archived.json", "a row")
    (again,) = archived_runs(tmp_path)
    tags = again.predicted_tags()
    assert tags == run.predicted_tags() == [sentence.predicted for sentence in run.predicted()]
    scored = [replace(it, predicted=each) for it, each in zip(run.predicted(), tags, strict=True)]
    assert (count(scored, "mentions") == again.counts()).all()


def test_a_run_archived_without_tags_says_so() -> None:
    with pytest.raises(
        ValueError, match=r"old\.json: archived without predicted tags, so it has to be trained"
    ):
        ArchivedRun(Path("old.json"), {}, {}).predicted_tags()


def test_an_archived_calibration_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = calibration(np.array([0.95, 0.55]), np.array([True, False]), np.array([0, 1]), 2)
    monkeypatch.setattr("ner_experiments.analysis.archive.of_run", lambda _: found)
    archive(opened(finish(tmp_path, "a", 1)), tmp_path / "archived.json", "a row")
    (again,) = archived_runs(tmp_path)
    assert run_calibration(again) == found


def test_the_calibration_that_is_archived_of_a_run_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, run = tmp_path / "archived.json", opened(finish(tmp_path, "a", 1))
    one, other = (
        calibration(np.array([0.95, last]), np.array([True, False]), np.array([0, 1]), 2)
        for last in (0.55, 0.56)
    )

    def archived() -> dict[str, Any]:
        archive(run, path, "a row")
        return artifacts.read(path)

    monkeypatch.setattr("ner_experiments.analysis.archive.of_run", lambda _: one)
    whole = archived()
    monkeypatch.setattr("ner_experiments.analysis.archive.of_run", lambda _: other)
    before = path.read_bytes()
    assert archived() == whole
    assert path.read_bytes() == before
    content = {key: value for key, value in whole.items() if key != artifacts.CHECKSUM}
    poorer = content | {"errors": {}, "label": "another row"}
    path.write_text(json.dumps(add_checksum(poorer)))
    assert archived() == whole
    anew = whole["calibration"] | json.loads(json.dumps(other.record()))
    for changed in (
        content | {"metrics": content["metrics"] | {"seconds": 1.0}},
        content | {"calibration": None},
    ):
        path.write_text(json.dumps(add_checksum(changed)))
        assert archived()["calibration"] == anew
    path.write_text("{damaged")
    assert archived()["calibration"] == anew


def test_a_run_archived_without_errors_has_none() -> None:
    run, *_ = archived_runs(ROOT / "results" / "yang2020_table12" / "weibo-max_epochs-3" / "runs")
    assert (run_errors(run).breakdown, run_errors(run).kinds) == ({}, {})
    assert (run_errors(run).confusion, run_calibration(run), run_errors(run).outcomes) == (None, None, None)


def test_where_train_has_changed_what_needs_it_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = opened(finish(tmp_path, "a", 1, checksum="abc"))
    assert list(run_errors(run).breakdown) == ["type", "length", "sentence length"]
    assert "errors by mentions seen in train are left out: " in caplog.text
    assert "toy_zh has changed since the run: its checksum is" in caplog.text


def test_tags_of_tokens_have_no_kinds_of_errors(tmp_path: Path) -> None:
    sentences = [Sentence(("a", "b"), ("X", "Y"))]
    write_predictions(tmp_path / "predictions" / "test.conll", "tags", sentences, [["X", "X"]])
    (tmp_path / "metrics.json").write_text(json.dumps(add_checksum(METRICS)))
    OmegaConf.save(CONFIG, tmp_path / "config.yaml", resolve=True)
    run = Run(tmp_path, {**METRICS, "task": "tags"})
    assert run_errors(run).kinds == {}
    assert {name: it.recall for name, it in run_errors(run).breakdown["type"].items()} == {"X": 1.0, "Y": 0.0}
    assert run_errors(run).confusion.counts == ((1, 0, 0), (1, 0, 0), (0, 0, 0))


def cells(printed: str) -> list[list[str]]:
    """Cells of each line of each table."""
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_command_takes_seeds_together_and_holds_rows_against_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [finish(tmp_path, identity, seed) for identity, seed in (("a", 1), ("b", 1), ("a", 2))]
    archive(opened(folders[1]), tmp_path / "archived.json", "an archived row")
    assert cli(["errors", *map(str, folders), str(tmp_path / "archived.json")]) == 0
    printed = capsys.readouterr().out
    assert "## 1. toy_zh-bilstm-crf-a\n" in printed
    lines = [line for line in printed.splitlines() if line.startswith("Scores on test: ")]
    assert [line.split(". ", 1)[1] for line in lines] == [INTERVALS["seeds"], INTERVALS["sentences"]]
    found = rows(dict.fromkeys(folders, ""))
    group = found[0].breakdown["seen"]["with this type"]
    figures = [f"{100 * it:.2f}" for it in (group.precision, group.recall, group.f1.value)]
    interval = f"{100 * group.f1.low:.2f} to {100 * group.f1.high:.2f}"
    assert ["with this type", *figures, interval, str(group.gold)] in cells(printed)
    (pair,) = pairs(found)
    total = pair.agreements.total
    counts = [f"{it:.1f}".removesuffix(".0") for it in (total.both, total.first, total.second, total.neither)]
    assert ["all", *counts] in cells(printed)
    _, _, sentences = printed.partition(
        f"### {len(pair.cases)} sentences that one row tags correctly more often"
    )
    assert sentences.count("\nSentence ") == 5
    assert cli(["errors", *map(str, folders), "--json", "--sentences", "2"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rows"][0]["breakdown"]["seen"]["with this type"]["f1"]["value"] == group.f1.value
    assert content["rows"][0]["runs"] == {"1": str(folders[0]), "2": str(folders[2])}
    assert content["pairs"][0]["total"]["both"] == total.both
    assert [case["sentence"] for case in content["pairs"][0]["cases"]] == [it.number for it in pair.cases[:2]]


def test_the_command_names_the_intervals_of_one_run_among_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only seed 1 has a calibration, so that its intervals are those of its sentences."""
    folders = [finish(tmp_path, "a", seed) for seed in (1, 2)]
    found = calibration(np.array([0.95, 0.55]), np.array([True, False]), np.array([0, 1]), 2)

    def of_seed_1(run: Run) -> Calibration | None:
        return found if run.metrics["seed"] == 1 else None

    monkeypatch.setattr("ner_experiments.analysis.row_errors.run_calibration", of_seed_1)
    assert cli(["errors", *map(str, folders)]) == 0
    printed = capsys.readouterr().out
    assert found is not None
    interval = f"{100 * found.low:.2f} to {100 * found.high:.2f}"
    assert ["expected error", "", "", f"{100 * found.error:.2f}", interval] in cells(printed)
    assert f" {' '.join(INTERVALS.values())}\n" in printed


def test_rows_with_equal_names_are_distinguished_by_identity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for identity in ("a", "b"):
        archive(opened(finish(tmp_path, identity, 1)), tmp_path / f"{identity}.json", "a row")
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert cli(["errors", *files]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("## ")] == [
        "## 1. a row",
        "## 2. a row",
        "## 1 and 2, mention by mention",
    ]
    assert cli(["errors", *files, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["identity"] for row in content["rows"]] == ["a", "b"]
    assert content["pairs"][0]["identities"] == ["a", "b"]


def test_the_command_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str | Path) -> str:
        assert cli(["errors", *map(str, arguments)]) == 1
        return capsys.readouterr().err

    assert "expected the folder of a finished run, but it has no metrics.json" in refused(tmp_path)
    folder = finish(tmp_path, "a", 1)
    assert "--sentences must be at least 0, got -1" in refused(folder, "--sentences", "-1")
    text = f"{folder}/config.yaml is damaged: "
    assert text in refused(folder / "config.yaml")
    (tmp_path / "other.json").write_text("{}")
    text = "other.json: expected a file of a run or of results/, but it does not record its SHA-256"
    assert text in refused(tmp_path / "other.json")
    (tmp_path / "other.json").write_text(json.dumps(add_checksum({})))
    text = "other.json: expected an archived run as in results/, but it has no metrics"
    assert text in refused(tmp_path / "other.json")
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["test"], metrics["sha256"]
    (folder / "metrics.json").write_text(json.dumps(add_checksum(metrics)))
    assert f"{folder}: its corpus has no test set to analyze errors on" in refused(folder)
