"""Instruments of the benchmarks: clocks, rounds, ratios, operations and memory; and that each script runs."""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from places import BENCHMARKS

SHARED = {"gpu_kernels", "tables", "taggers", "timing"}
SCRIPTS = sorted({path.stem for path in BENCHMARKS.glob("*.py")} - SHARED - {"speedrun", "tokens"})


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


def seconds(median: float) -> dict[str, float | list[float]]:
    return {"median": median, "quartiles": [0.9 * median, 1.1 * median]}


def test_processor_seconds_are_of_one_thread_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = load("timing", monkeypatch)
    monkeypatch.setenv(timing.CLOCK, "processor")
    begun = timing.now()
    time.sleep(0.2)
    assert timing.now() - begun < 0.1
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert timing.now() - begun > 0.1  # its children's, too
    assert timing.measured(lambda: lambda: time.sleep(0.2), (), threads=1)["seconds"] < 0.1
    assert timing.circumstances()["clock"] == "processor"
    parser = timing.options("", rounds=1)
    monkeypatch.setattr(sys, "argv", ["a", "--clock", "processor", "--threads", "2"])
    with pytest.raises(SystemExit):
        timing.begin(parser)
    assert "it takes --threads 1" in capsys.readouterr().err


def test_runs_take_turns_and_who_is_slow_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = load("timing", monkeypatch)
    called, clock = [], iter(range(0, 1000, 3))
    monkeypatch.delenv(timing.CLOCK, raising=False)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    found = timing.measure({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, 2)
    assert called == ["a", "b", "a", "b"]
    assert found == {name: {"median": 3, "quartiles": [3, 3]} for name in "ab"}
    timing.measure({"c": lambda: called.append("c")}, 5, slow=2)
    assert called[4:] == ["c"]


def test_a_ratio_is_that_of_the_medians_over_the_cases_where_both_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timing = load("timing", monkeypatch)
    cases = [{"ours": seconds(1.0), "peer": seconds(float(peer))} for peer in (2, 3, 4)] + [
        {"ours": seconds(9.0)}
    ]
    expected = {"worst": 2.0, "median": 3.0, "quartiles": [2.5, 3.5], "best": 4.0}
    assert timing.ratios(cases, "peer") == expected
    assert timing.ratios(cases, "absent") is None


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        (["model=bilstm", "model.hidden_size=7"], 2 * 4 * 7 * (7 + 100)),
        (["model=parallel", "model.num_units=3", "model.unit_size=5"], 3 * 2 * 4 * 5 * (5 + 100)),
        (["model=cross", "layers=2", "model.hidden_size=7"], 2 * 4 * 7 * (7 + 100) + 2 * 4 * 7 * (7 + 14)),
    ],
    ids=["lstm", "units", "variational"],
)
def test_operations_are_six_per_weight_and_token(
    model: list[str], weights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taggers = load("taggers", monkeypatch)
    trial = taggers.Trial(taggers.made_up(3, 5), [*model, "chars=none", "decoder=softmax", "batches=random"])
    (batch,) = trial.batches()
    weights += trial.tagger.output.weight.numel()
    assert taggers.operations(trial.tagger, batch) == 6 * weights * 15


def test_a_result_is_stale_once_the_code_that_it_measures_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = load("tables", monkeypatch)
    measured = {name: {"benchmark": name, "code": tables.code(name)} for name in SCRIPTS}
    for name, result in measured.items():
        assert result["code"].keys() == {*importlib.import_module(name).MEASURES}, name  # each is a module
        assert tables.changed(result) == []
    old = {"benchmark": "scoring", "code": {"metrics": "0123456789abcdef"}}
    assert tables.changed(old) == ["metrics"]


@pytest.mark.campaign
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_its_result_and_prints_its_tables(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.json"
    command = [sys.executable, f"{name}.py", "--tiny", "--rounds", "1", "--output", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
    ended = subprocess.run(
        command, cwd=BENCHMARKS, env=environment, check=True, capture_output=True, text=True
    )
    assert json.loads(path.read_text())[name]["benchmark"] == name
    assert f"`python benchmarks/{name}.py --threads " in ended.stdout
    assert "\n| --- | ---: |" in ended.stdout
