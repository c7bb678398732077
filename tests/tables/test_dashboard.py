"""Dashboards: what a workspace asks W&B for is what runs log, for each published table; all offline."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from in_process import Ner
from omegaconf import OmegaConf

from ner_experiments.commands import dashboard
from ner_experiments.config.identity import experiment
from ner_experiments.config.row_settings import flat
from ner_experiments.main import cli
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.tables import experiments, spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table
from ner_experiments.train import train

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is written for an older pydantic
    from ner_experiments.tables.dashboard import type_key, workspace

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.xdist_group("dashboard")]
TRAINED = [name for name in spec.names() if not spec.load(name).command]
SMALL = [
    "data=toy_en",
    "data.max_sentences=20",
    "trainer=smoke",
    "runtime.progress=false",
    "audit.gradients=1",
]
YANG2020 = ["paper=yang2020", "words=random", "model.hidden_size=8", "model.dense_size=8"]
ATT = ["model=attention", "model.hidden_size=8", "model.num_heads=2", "model.head_size=4"]
OF_SEVERAL_TABLES = {"ours_yang2020_english", "ours_yang2020_small"}
"""Tables whose rows choose a model or parts of another: the bars of each row tell them apart, no settings do."""
NUMBERS = {"model.num_layers", "model.num_units", "model.unit_size"}
Model = dict[str, Any]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


@cache
def model_of(name: str) -> Model:
    table = spec.load(name)
    made = workspace(table, experiments.experiments(table), entity="me", project="mine")
    return made._to_model().model_dump(mode="json", by_alias=True, exclude_none=True)


def panels(model: Model) -> Iterator[tuple[str, Model]]:
    for section in model["spec"]["section"]["panelBankConfig"]["sections"]:
        for panel in section["panels"]:
            yield panel["viewType"], panel["config"]


def keys(model: Model) -> dict[str, set[str]]:
    """Keys of the summary, history, config and media that panels name."""
    places = ("summary", "history", "config", "media", "regex")
    found: dict[str, set[str]] = {place: set() for place in places}
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
    """Keys that a residual and an Att run with logger=wandb record, read by W&B's own reader."""
    found: dict[str, set[str]] = {"summary": set(), "history": set()}
    os.environ["WANDB_MODE"] = "offline"
    for settings in (YANG2020, ATT):
        output = f"output_dir={tmp_path_factory.mktemp('logged')}"
        result = train(experiments.compose([*SMALL, *settings, "logger=wandb", output], "here"))
        (path,) = Path(result["folder"]).glob("wandb/offline-run-*/*.wandb")
        command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for line in map(json.loads, lines):
            if line["type"] == "summary":
                found["summary"] |= set(line["summary"]["update"])
            if line["type"] == "history":
                found["history"] |= set(line["history"]["item"])
    media = {name.rpartition("._type")[0] for name in found["history"] if name.endswith("._type")}
    found["media"] = media | found["summary"]  # where tables are
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_panels_name_what_runs_log(name: str, logged: dict[str, set[str]]) -> None:
    model = model_of(name)
    asked = keys(model)
    accuracy = {key.replace("accuracy", "f1") for key in asked["summary"] | asked["history"]}
    assert accuracy <= logged["summary"] | logged["history"]
    assert asked["media"] <= logged["media"]
    for regex in asked["regex"]:
        assert any(re.fullmatch(regex, key) for key in logged["history"]), regex
    rows = experiments.experiments(spec.load(name))
    (runs,) = model["spec"]["section"]["runSets"]
    (only,) = runs["filters"]["filters"]
    assert (only["key"]["name"], only["op"]) == ("tags", "IN")
    assert set(only["value"]) == {experiment(row.cfg) for row in rows}
    assert runs["grouping"] == [{"section": "run", "name": "group"}]


def config_of(row: experiments.Experiment) -> dict[str, Any]:
    """The row's config as it is sent to W&B, flattened."""
    settings = OmegaConf.to_container(row.cfg, resolve=True)
    assert isinstance(settings, dict)
    return dict(flat(settings))


@pytest.mark.parametrize("name", TRAINED)
def test_panels_are_of_what_the_rows_compare_and_tell_each_row_from_every_other(name: str) -> None:
    """A number is an axis, and a choice has bars."""
    asked = {path.replace(".value", "", 1) for path in keys(model_of(name))["config"]}
    configs = [config_of(row) for row in experiments.experiments(spec.load(name))]
    assert all(len({str(config.get(setting)) for config in configs}) > 1 for setting in asked)
    rows = {tuple(str(config.get(setting)) for setting in asked) for config in configs}
    data = {config["data.name"] for config in configs}
    if name not in OF_SEVERAL_TABLES:
        assert len(rows) == len(configs)
    assert (len(data) > 1) == ("data.name" in asked)
    for kind, config in panels(model_of(name)):
        if setting := config.get("groupBy", "").replace(".value", "", 1):
            assert (kind, setting in NUMBERS) == ("Bar Chart", False)
        place, _, setting = config.get("xAxis", "").replace(".value", "", 1).partition(":")
        if place == "config":
            assert (kind, setting in NUMBERS) == ("Scatter Plot", True)


def test_part_of_speech_is_compared_by_accuracy_and_all_else_by_f1_and_attention_is_shown() -> None:
    for name in TRAINED:
        rows = experiments.experiments(spec.load(name))
        data, asked = {str(row.cfg.data.name) for row in rows}, keys(model_of(name))
        is_att = any(row.cfg.model._target_.endswith(".AttBiLSTM") for row in rows)
        assert any(key.startswith("attention/") for key in asked["media"]) == is_att
        for score, belongs in (("accuracy", data & {"ptb", "ud_ewt"}), ("f1", data - {"ptb", "ud_ewt"})):
            assert (f"best/test_{score}" in asked["summary"]) == bool(belongs)
            assert (f"dev/{score}" in asked["history"]) == bool(belongs)
        assert {"parameters", "seconds"} <= asked["summary"]


def test_where_tasks_are_mixed_each_score_is_compared_among_its_own_rows() -> None:
    titles = [config.get("chartTitle") for _, config in panels(model_of("huang2015_table2"))]
    for choice in ("model", "decoder", "words"):
        assert {f"test F1 by {choice}", f"test accuracy by {choice}"} <= set(titles)
    assert "test F1 by data" in titles
    assert "test accuracy by data" not in titles  # all of them are of PTB
    assert {"test F1 against parameters", "test accuracy against parameters"} <= set(titles)


def scored(layers: int, *f1: float) -> Result:
    """A row with seeds 1, 2, ... on four test sentences, and F1 of two types."""
    counts = " ".join(["1,1,1"] * 4)
    runs = {}
    for seed, score in enumerate(f1, start=1):
        types = {name: {"f1": score, "gold": 2} for name in ("PER", "LOC")}
        test = {"f1": score, "types": types}
        metrics = {"task": "mentions", "seed": seed, "test": test, "identity": f"{layers}"}
        metrics["data"] = {"name": "toy_en", "checksum": "a"}
        runs[seed] = ArchivedRun(Path(f"{layers}"), metrics, {"counts": counts})
    row = Row(label=f"layers={layers}", run=(f"layers={layers}",))
    return Result(row, {seed: run.score for seed, run in runs.items()}, runs)


@pytest.mark.slow
def test_f1_by_type_is_logged_under_the_keys_of_its_panels(logged: dict[str, set[str]]) -> None:
    named = {name for name in logged["summary"] if name.startswith("best/test_types_")}
    assert {type_key(name.removeprefix("best/test_types_")) for name in named} == named != set()


def test_a_sweep_shows_its_verdict_its_pairs_and_f1_by_type() -> None:
    results = (scored(1, 0.80, 0.81, 0.805), scored(2, 0.90, 0.91, 0.905))
    table = Table(
        name="layers",
        title="layers=1,2",
        source="mine",
        base=("model=residual", "data=toy_en"),
        rows=tuple(result.row for result in results),
        overrides=("model=residual", "layers=1,2", "data=toy_en"),
    )
    page = Page(table, results)
    made = workspace(table, experiments.experiments(table), entity="me", project="mine", page=page)
    model = made._to_model().model_dump(mode="json", by_alias=True, exclude_none=True)
    (text,) = [config["value"] for kind, config in panels(model) if kind == "Markdown Panel"]
    assert text.startswith("By F1 over 3 seeds, layers=2 is ahead of layers=1 (+10.00 points, ")
    assert "| layers=1 - layers=2 | -10.00 |" in text
    asked = keys(model)["summary"]
    assert {"best/test_types_PER", "best/test_types_LOC"} <= asked


def test_the_picture_of_xor_is_a_run_of_its_own(tmp_path: Path, ner: Ner) -> None:
    assert "a run with results/xor/xor.png" in ner("dashboard", "xor", "--output", str(tmp_path))
    assert len(list(tmp_path.glob("wandb/offline-run-*/files/media/images/xor_*.png"))) == 1


def test_where_wandb_fails_the_picture_of_xor_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert cli(["dashboard", "xor", "--output", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert re.fullmatch(r"W&B failed: ModuleNotFoundError: .*wandb.*\n", captured.err)
    assert captured.out == ""


def test_what_wandb_answers_to_a_bad_key_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, ner: Ner) -> None:
    def refused() -> str:
        raise RuntimeError("the key is not valid")

    monkeypatch.setattr(dashboard, "is_reachable", lambda: True)
    monkeypatch.setattr(dashboard, "default_entity", refused)
    assert ner.error("dashboard", "yang2020_table12") == "W&B rejected the workspace: the key is not valid\n"


@pytest.mark.parametrize("given", ["data=weibo", "--entity=me"])
def test_xor_takes_neither_overrides_nor_an_entity(given: str, ner: Ner) -> None:
    assert "xor: its dashboard takes no overrides and no --entity" in ner.error("dashboard", "xor", given)


def test_without_its_picture_xor_says_how_to_draw_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ner: Ner
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "create it with `ner-experiments xor --output results/xor`" in ner.error("dashboard", "xor")
