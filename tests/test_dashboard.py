"""Dashboards: what a workspace asks W&B for is what runs log, for each published table; all offline."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ner_experiments import dashboard_command, log_wandb, table_runs, tables
from ner_experiments.identity import counted, experiment
from ner_experiments.main import cli
from ner_experiments.train import train

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is written for an older pydantic
    from ner_experiments.dashboard import flat, varied, workspace

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TRAINED = [name for name in tables.names() if not tables.load(name).command]
SMALL = [
    "data=toy_en",
    "data.max_sentences=20",
    "trainer=smoke",
    "runtime.progress=false",
    "audit.gradients=1",
]
Model = dict[str, Any]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


def model_of(name: str) -> Model:
    table = tables.load(name)
    made = workspace(table, table_runs.experiments(table), entity="me", project="mine")
    return made._to_model().model_dump(mode="json", by_alias=True, exclude_none=True)


def panels(model: Model) -> Iterator[tuple[str, Model]]:
    for section in model["spec"]["section"]["panelBankConfig"]["sections"]:
        for panel in section["panels"]:
            yield panel["viewType"], panel["config"]


def keys(model: Model) -> dict[str, set[str]]:
    """Of the summary, the history, the config and the media, what panels name."""
    found: dict[str, set[str]] = {
        "summary": set(),
        "history": set(),
        "config": set(),
        "media": set(),
        "regex": set(),
    }
    for kind, config in panels(model):
        for axis in (config.get("xAxis", ""), config.get("yAxis", "")):
            place, _, name = axis.partition(":")
            if place in ("summary", "config"):
                found[place].add(name)
        for metric in config.get("metrics", []):
            place, _, name = metric.partition(".")
            found["summary" if place == "summary_metrics" else "history"].add(
                name if place == "summary_metrics" else metric
            )
        found["config"] |= {config["groupBy"]} if "groupBy" in config else set()
        if "metricRegex" in config:
            found["regex"].add(config["metricRegex"])
        found["media"] |= set(config.get("mediaKeys", []))
        if kind == "Weave":
            found["media"].add("test/predictions")
            assert '"val": "test/predictions"' in json.dumps(config)
    return found


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What a run with logger=wandb leaves, as W&B's own reader has it."""
    output = tmp_path_factory.mktemp("logged")
    os.environ["WANDB_MODE"] = "offline"
    settings = [
        *SMALL,
        "paper=yang2020",
        "words=random",
        "model.hidden_size=8",
        "model.dense_size=8",
        "logger=wandb",
    ]
    result = train(table_runs.compose([*settings, f"output_dir={output}"], "here"))
    (path,) = Path(result["folder"]).glob("wandb/offline-run-*/*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, set[str]] = {"summary": set(), "history": set()}
    for line in map(json.loads, lines):
        if line["type"] == "summary":
            found["summary"] |= set(line["summary"]["update"])
        if line["type"] == "history":
            found["history"] |= set(line["history"]["item"])
    found["media"] = {name.rpartition("._type")[0] for name in found["history"] if name.endswith("._type")}
    return found


@pytest.mark.parametrize("name", TRAINED)
def test_panels_name_what_runs_log(name: str, logged: dict[str, set[str]]) -> None:
    model = model_of(name)
    asked = keys(model)
    accuracy = {key.replace("accuracy", "f1") for key in asked["summary"] | asked["history"]}
    assert accuracy <= logged["summary"] | logged["history"]
    assert asked["media"] <= logged["media"]
    for regex in asked["regex"]:
        assert any(re.fullmatch(regex, key) for key in logged["history"]), regex
    rows = table_runs.experiments(tables.load(name))
    for path in asked["config"]:
        setting = path.replace(".value", "", 1)
        assert all(setting in dict(flat(counted(row.cfg))) for row in rows), setting
    (runs,) = model["spec"]["section"]["runSets"]
    (only,) = runs["filters"]["filters"]
    assert (only["key"]["name"], only["op"]) == ("tags", "IN")
    assert set(only["value"]) == {experiment(row.cfg) for row in rows}
    assert runs["grouping"] == [{"section": "run", "name": "group"}]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("yang2020_table12", {"model._target_", "model.num_layers"}),
        ("zukov2018_table3", {"model.num_units", "model.unit_size"}),
        ("zukov2018_table4", {"model.unit_size"}),
    ],
)
def test_what_varies_is_what_the_rows_say(name: str, settings: set[str]) -> None:
    rows = table_runs.experiments(tables.load(name))
    assert set(varied(rows)) == settings
    asked = keys(model_of(name))
    assert {path.replace(".value", "", 1) for path in asked["config"]} == settings
    assert {"best/test_f1", "parameters", "seconds"} <= asked["summary"]


def test_part_of_speech_is_compared_by_accuracy() -> None:
    for name in TRAINED:
        data = {str(row.cfg.data.name) for row in table_runs.experiments(tables.load(name))}
        assert ("best/test_accuracy" in keys(model_of(name))["summary"]) == (data <= {"ptb", "ud_ewt"})


def test_without_a_key_it_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert dashboard_command.main(["yang2020_table12", "data=weibo"]) == 0
    path = tmp_path / "yang2020_table12.workspace.json"
    assert capsys.readouterr().out.startswith(f"{path.name}: the workspace as W&B is sent it")
    assert json.loads(path.read_text())["displayName"].startswith("yang2020_table12: Number of BiLSTM layers")


def test_a_table_that_is_not_there_is_said(capsys: Any) -> None:
    assert cli(["dashboard", "yang2020_table99"]) == 1
    assert capsys.readouterr().err.startswith("there is no table 'yang2020_table99'; did you mean")


def test_the_picture_of_xor_is_a_run_of_its_own(tmp_path: Path, capsys: Any) -> None:
    assert dashboard_command.main(["xor", "--output", str(tmp_path)]) == 0
    assert "a run with results/xor/xor.png" in capsys.readouterr().out
    assert len(list(tmp_path.glob("wandb/offline-run-*/files/media/images/xor_*.png"))) == 1


def test_what_wandb_answers_to_a_bad_key_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def refused() -> str:
        raise RuntimeError("the key is not valid")

    monkeypatch.setattr(log_wandb, "is_reachable", lambda: True)
    monkeypatch.setattr(dashboard_command, "default_entity", refused)
    assert cli(["dashboard", "yang2020_table12"]) == 1
    assert capsys.readouterr().err == "W&B does not take the workspace: the key is not valid\n"


@pytest.mark.parametrize("given", ["data=weibo", "--entity=me"])
def test_xor_takes_neither_overrides_nor_an_entity(given: str, capsys: Any) -> None:
    assert cli(["dashboard", "xor", given]) == 1
    assert "xor: its dashboard takes no overrides and no --entity" in capsys.readouterr().err


def test_without_its_picture_xor_says_how_to_draw_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli(["dashboard", "xor"]) == 1
    assert "`ner-experiments xor --output results/xor` draws it" in capsys.readouterr().err
