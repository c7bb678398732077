"""Provenance in xor.json: settings, code, versions and cost; and the part that tables read."""

import json
import re
from pathlib import Path
from typing import Any

import made_up_trials
import pytest
from in_process import Ner
from places import RESULTS

from ner_experiments.main import cli
from ner_experiments.runs import artifacts
from ner_experiments.runs.provenance import commit, package_digest
from ner_experiments.xor import experiment
from ner_experiments.xor.results import ModelResult, TrialResult, XorResults, read

ARCHIVED = RESULTS / "xor" / "xor.json"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner) -> Any:
    """A xor.json of two architectures in the command's format; nothing is trained."""
    outcomes = {name: {0: TrialResult(3, 5), 1: TrialResult(2, 0)} for name in experiment.DECODERS}
    found = {name: ModelResult(2, [0.0, 1e-16], outcomes) for name in ("baseline", "cross")}
    monkeypatch.setattr(experiment, "measure_and_train", lambda names, **_: found)
    arguments = ["--models", "cross", "baseline", "--seeds", "2", "--processes", "3"]
    ner("xor", *arguments, "--output", str(tmp_path), "--json")
    return json.loads((tmp_path / "xor.json").read_text(encoding="utf-8"))


def test_the_figures_come_with_code_versions_machine_and_cost(record: dict[str, Any]) -> None:
    assert record["code"] == package_digest()
    assert record["commit"] == commit()
    assert {"torch", "numpy"} <= record["versions"].keys()
    assert record["processes"] == 3
    assert record["threads"] == 1  # of each process
    assert record["device"]
    assert record["python"]
    assert record["seconds"] >= 0
    assert artifacts.verify_checksum(record, ARCHIVED) == record
    assert record[artifacts.CHECKSUM]


def test_no_place_of_the_machine_is_named(record: dict[str, Any], tmp_path: Path) -> None:
    texts = re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(record))
    assert not [text for text in texts if text.startswith(("/", "~")) or str(tmp_path) in text]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUM_STEPS", {"softmax": 150, "crf": 251}),
        ("PHRASES", {"softmax": experiment.PHRASES["crf"], "crf": experiment.PHRASES["crf"]}),
        ("INPUTS", (*experiment.INPUTS, "words.module.dim=50")),
        ("OPTIMIZER", ("optimizer=adam", "optimizer.lr=0.02")),
        ("SMALL", {"hidden_size": 50}),
        ("DRAWS", 21),
        ("NUM_WORDS", 21),
        ("PAIRS_PER_DRAW", 6),
        ("LONGEST_CONTEXT", 6),
        ("ROUNDING", 1e-8),
    ],
)
def test_whatever_is_set_otherwise_is_in_the_settings(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = experiment.config(["cross"], num_seeds=2)
    monkeypatch.setattr(experiment, name, value)
    assert experiment.config(["cross"], num_seeds=2) != before


def test_what_is_trained_is_what_the_settings_say() -> None:
    trained = experiment.config(["attention"], num_seeds=1)["trained"]
    cfg = experiment.trial_data("attention", "softmax").cfg
    assert trained["model"]["attention"] == dict(cfg.model)
    assert trained["decoder"]["softmax"] == dict(cfg.decoder)


def test_a_damaged_file_and_one_of_something_else_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "xor" / "xor.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"models": {}, "certificates": [], "seconds": 1.0}))
    table = ["table", "xor", "--output", str(tmp_path)]
    assert cli(table) == 1
    rule = "expected a file of a run or of results/, but it does not record its SHA-256"
    assert capsys.readouterr().err == f"{path}: {rule}\n"
    content = made_up_trials.write(path.parent, {}).read_text()
    path.write_text(content.replace('"seconds": 90.0', '"seconds": 9.0'))
    assert cli(table) == 1
    captured = capsys.readouterr()
    assert f"{path} is damaged: its SHA-256 is" in captured.err
    assert captured.err.count("\n") == 1


@pytest.fixture
def trials(tmp_path: Path) -> XorResults:
    free = made_up_trials.model([4, 4], [4, 3], [0.5, 0.25])
    models = {
        "one": made_up_trials.model([3, 2], [3, 3], [0.0]),
        "two": free,
        "three": made_up_trials.model([4, 4], [4, 3], [0.5, 0.125]),
        "four": free,
    }
    return read(made_up_trials.write(tmp_path, models))


def test_trainings_are_counted(trials: XorResults) -> None:
    assert trials.num_trainings == 4 * 2 * 2
    assert trials.num_measurements == 4 + 3
    assert trials.hours == 0.025


def test_architectures_are_grouped_by_their_best_trial(trials: XorResults) -> None:
    assert trials.with_best(3) == ["one"]
    assert trials.with_best(4) == ["two", "three", "four"]
    assert trials.share(4, ["two", "three"]) == "6 of 8"


def test_names_with_equal_figures_are_one_model(trials: XorResults) -> None:
    assert trials.identical_models() == [["two", "four"]]


def test_the_report_says_what_they_cost(tmp_path: Path) -> None:
    archived = tmp_path / "results" / "xor"
    made_up_trials.write(archived, {"baseline": made_up_trials.model([3, 3], [3, 2])})
    (archived / "table.json").write_text(json.dumps({"table": "xor", "overrides": []}))
    arguments = ["--results", str(archived.parent), "--output", str(tmp_path / "report")]
    assert cli(["report", "xor", *arguments]) == 0
    page = (tmp_path / "report" / "xor.html").read_text(encoding="utf-8")
    assert "4 trainings and 1 measurements at random weights, in 1.5 minutes by 2 processes" in page
    assert "commit abc" in page
    assert re.search(
        r"<td[^>]*>4</td>\s*<td[^>]*>0\.0</td>", (tmp_path / "report" / "index.html").read_text()
    )


def test_archived_results_have_their_provenance() -> None:
    archived = read(ARCHIVED)
    content = archived.content
    assert re.fullmatch("[0-9a-f]{40}", content["commit"])
    assert archived.num_trainings == 2 * content["config"]["trained"]["seeds"] * len(content["models"])
    assert content["config"]["trained"]["model"].keys() == content["models"].keys()
    assert archived.identical_models() == [["residual_a", "residual_c"], ["residual_b", "stacked"]]
