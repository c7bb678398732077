"""The benchmarks: their clockwork, their count of operations, and the page that is made of their results."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
NOT_SCRIPTS = {
    "alone",
    "crf_peers",
    "flop",
    "page",
    "page_explain",
    "page_parts",
    "page_plots",
    "page_tables",
    "page_units",
    "taggers",
    "timing",
}
SCRIPTS = sorted({path.stem for path in FOLDER.glob("*.py")} - NOT_SCRIPTS)
MADE = {
    "date": "2026-01-02T03:04:05+00:00",
    "commit": "0123456789abcdef+",
    "cpu": "2 x Example",
    "threads": 2,
    "python": "3.11.0",
    "versions": {"torch": "2.6.0"},
    "rounds": 3,
}


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


def times(median: float) -> dict[str, Any]:
    return {"median": median, "quartiles": [0.9 * median, 1.1 * median]}


def ratio(worst: float, median: float, best: float) -> dict[str, Any]:
    return {"worst": worst, "median": median, "quartiles": [median, median], "best": best}


def of_crf() -> dict[str, Any]:
    seconds = {"ours": times(0.001), "pytorch-crf": times(0.02)}
    shape = {"batch": 16, "time": 16, "tags": 9, "loss": seconds, "decode": seconds}
    ratios = {"loss": {"pytorch-crf": ratio(12.5, 24, 60)}, "decode": {"pytorch-crf": ratio(16, 40, 90)}}
    return {"ratios": ratios, "shapes": [shape], "left_out": ["flair"]}


def of_units() -> dict[str, Any]:
    train = {"ours": times(0.01), "stock, packed": times(0.06), "lock-step": times(0.02)}
    shape = {"units": 128, "size": 8, "train": train, "forward": {**train, "lock-step": times(0.008)}}
    padded = {**train, "stock, padded": times(0.05)}
    even = {**shape, "ragged": False, "train": padded, "forward": padded}
    return {"ratios": {}, "shapes": [even, {**shape, "ragged": True}]}


def of_explain() -> dict[str, Any]:
    train = {"whole": times(0.8), "recurrent layers": times(0.4), "CRF": times(0.1), "optimizer": times(0.1)}
    model = {"batches": 10, "tokens": 5000, "operations": 2e10}
    model["loops"] = {"bare": times(0.8), "Lightning": times(1.0)}
    model |= {"train": train, "decode": {name: train[name] for name in ("whole", "recurrent layers", "CRF")}}
    units = {"whole": times(0.1), "input's products": times(0.04)}
    return {
        "rate": 1e11,
        "models": {"a model": model},
        "crf": [
            {"shape": [1, 1, 2], "seconds": {"loss": times(0.0002), "decode": times(0.0005)}},
            {"shape": [16, 20, 9], "seconds": {"loss": times(0.002), "decode": times(0.001)}},
        ],
        "units": [{"units": 16, "size": 64, "operations": 3e9, "seconds": units}],
    }


def of_peephole() -> dict[str, Any]:
    seconds = {"ours": times(0.002), "loop": times(0.004), "stock": times(0.001)}
    return {"ratios": {}, "sizes": [{"size": 50, "train": seconds, "forward": seconds}]}


def of_limit() -> dict[str, Any]:
    seconds = {"product": times(0.1), "train": times(0.1), "decode": times(0.02)}
    speeds = {"train": 6400.0, "decode": 32000.0}
    found = {"operations": 4e9, "rate": 8e10, "share": 0.5, "tokens_per_second": speeds, "seconds": seconds}
    return {"tokens": 640, "models": {"bilstm": found}}


def of_growth() -> dict[str, Any]:
    slopes = {"seconds": {"all": 1.0, "last": 0.98}, "bytes": {"all": 0.5, "last": 0.75}}
    line = {"values": [10, 20], "seconds": [times(0.1), times(0.2)], "bytes": [1e7, 2e7], "slopes": slopes}
    return {"default": {}, "lines": {"length": {"name": "length", **line}}}


def of_threads() -> dict[str, Any]:
    return {
        "default": 1,
        "cases": {"small": {"1": times(0.001), "2": times(0.04), "2 passive": times(0.002)}},
    }


def of_bf16() -> dict[str, Any]:
    seconds = {"float32": times(0.2), "bf16": times(0.1)}
    scores = {"toy_en": {"float32": [0.8, 0.9], "bf16": [0.81, 0.9]}}
    return {"models": {"bilstm": {"train": seconds, "decode": seconds}}, "scores": scores}


def of_batches() -> dict[str, Any]:
    plan = {"batches": 400, "processed_per_token": 1.021, "together": 0.17, "chance": 0.0025, "again": 0}
    plans = {"batches=tokens": {**plan, "seconds_per_1000": times(0.008)}}
    return {"corpora": {"conll2003": {"sentences": 14041, "tokens": 203621, "plans": plans}}, "left_out": []}


def of_startup() -> dict[str, Any]:
    commands = {"run.py --help": times(0.7), "run.py trainer=smoke data=toy_en": times(6.5)}
    return {"commands": commands, "imports": {"run.py --help": {"hydra": 0.06}}}


def of_vectors() -> dict[str, Any]:
    readers = {"ours, first": times(1.5), "ours, from the cache": times(0.05), "gensim": times(20.0)}
    readers = {name: {**found, "bytes": 5e7} for name, found in readers.items()}
    return {"lines": 400_000, "words": 20_000, "width": 100, "file_bytes": 3.5e8, "readers": readers}


def of_scoring() -> dict[str, Any]:
    scorers = {"ours": times(0.2), "seqeval, strict": times(5.0)}
    return {"sentences": 50_000, "tokens": 700_000, "mentions": 90_000, "scorers": scorers, "ratios": {}}


def of_end_to_end() -> dict[str, Any]:
    measured = {"train_tokens_per_second": times(15000), "decode_tokens_per_second": times(50000)}
    contestant = {**measured, "peak_memory_bytes": times(5e8)}
    ratios = {"ours": {"train": {"ncrfpp": 6.5}, "decode": {"ncrfpp": 7.5}, "memory": {"ncrfpp": 0.5}}}
    names = ("ours", "ncrfpp")
    return {
        "contestants": dict.fromkeys(names, contestant),
        "ratios": ratios,
        "equal": ["the corpus"],
        "different": ["the order"],
    }


RESULTS = {name.removeprefix("of_"): make for name, make in globals().items() if name.startswith("of_")}


def write_page(names: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of the named results, made by its command."""
    for name in names:
        path = folder / "results" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"benchmark": name, **MADE, **RESULTS[name]()}))
    return page_of(folder, monkeypatch)


def page_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    arguments = ["page.py", "--results", str(folder / "results"), "--output", str(folder)]
    monkeypatch.setattr(sys, "argv", arguments)
    load("page", monkeypatch).main()
    return (folder / "README.md").read_text()


def test_there_is_a_section_for_each_script() -> None:
    assert set(SCRIPTS) <= RESULTS.keys()


def test_the_page_says_which_bars_are_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write_page(SCRIPTS, tmp_path, monkeypatch)
    expected = {
        "CRF against pytorch-crf, loss and gradient, worst": ("at least 12 times", "12.50", "yes"),
        "CRF against pytorch-crf, loss and gradient, median": ("at least 25 times", "24.00", "**no**"),
        "CRF against pytorch-crf, decoding, worst": ("at least 16 times", "16.00", "yes"),
        "128 x 8 units against stock LSTMs, forward and backward": ("at least 4 times", "5.00", "yes"),
        "units: never slower than stock or lock-step, beyond the quartiles": (
            "in no case",
            "slower in 1 of 4 cases",
            "**no**",
        ),
        "processed tokens per real one on CoNLL-2003, batches=tokens": ("at most 1.02", "1.021", "**no**"),
        "run.py --help": ("under 1 s", "0.7 s", "yes"),
        "a smoke run": ("under 6 s", "6.5 s", "**no**"),
        "vectors from the cache": ("under 0.2 s", "0.05 s", "yes"),
        "vectors from the cache, memory": ("under 100 MB", "50 MB", "yes"),
        "span F1 of 50,000 sentences": ("under 0.5 s", "0.2 s", "yes"),
    }
    for what, row in expected.items():
        assert f"| {' | '.join([what, *row, '2 x Example'])} |" in page
    for plot in re.findall(r"\]\((plots/.*?)\)", page):
        assert (tmp_path / plot).stat().st_size > 1000
    assert "Left out: flair." in page
    assert "commit 0123456789ab, changed since; 2 x Example, 2 threads, 3 rounds" in page


def test_the_page_says_where_the_time_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write_page(["explain", "units"], tmp_path, monkeypatch)
    for row in (
        "training: recurrent layers | 40 | 50%",
        "training: the rest | 20 | 25%",
        "decoding: the rest | 30 | 38%",
        "loss and gradient, median: 16 sentences of up to 20, 9 tags | 2,000 | 10%",
        "decoding, shortest: 16 sentences of up to 20, 9 tags | 1,000 | 50%",
        "16 x 64 | 100 | 40 | 30 | 30%",
    ):
        assert f"| {row} |" in page
    assert "would be 2.00 times as fast" in page
    assert "would take 50% of their time" in page
    assert "takes +25% beside a bare one" in page
    assert "forward and backward: 128 x 8 2.50." in page


def test_processor_seconds_are_of_one_thread_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = load("timing", monkeypatch)
    monkeypatch.setenv(timing.CLOCK, "processor")
    begun = timing.now()
    time.sleep(0.2)
    assert timing.now() - begun < 0.1
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert timing.now() - begun > 0.1  # its children's, too
    assert timing.circumstances()["clock"] == "processor"
    parser = timing.options("", rounds=1)
    monkeypatch.setattr(sys, "argv", ["a", "--clock", "processor", "--threads", "2"])
    with pytest.raises(SystemExit):
        timing.begin(parser)
    assert "it takes --threads 1" in capsys.readouterr().err
    monkeypatch.setitem(MADE, "clock", "processor")
    assert "3 rounds, seconds of a processor that others " in write_page(["scoring"], tmp_path, monkeypatch)


def test_the_page_of_one_result_has_one_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write_page(["scoring"], tmp_path, monkeypatch)
    assert re.findall("^## (.*)", page, re.MULTILINE) == [
        "What was asked for, and whether it is met",
        "Span F1 of 50,000 sentences: ours, seqeval's strict mode, and a loop over tokens as conlleval's",
    ]
    assert "| seqeval, strict | 5 (4.5-5.5) | 25.00 |" in page


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
    cases = [{"ours": times(1.0), "peer": times(float(peer))} for peer in (2, 3, 4)] + [{"ours": times(9.0)}]
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
    flop, taggers = load("flop", monkeypatch), load("taggers", monkeypatch)
    trial = taggers.Trial(taggers.made_up(3, 5), [*model, "chars=none", "decoder=softmax", "batches=random"])
    (batch,) = trial.batches()
    weights += trial.tagger.output.weight.numel()
    assert flop.operations(trial.tagger, batch) == 6 * weights * 15


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_what_the_page_reads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results" / f"{name}.json"
    command = [sys.executable, f"{name}.py", "--tiny", "--rounds", "1", "--output", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent)}
    subprocess.run(command, cwd=FOLDER, env=environment, check=True)
    assert json.loads(path.read_text())["benchmark"] == name
    assert f"`python benchmarks/{name}.py`" in page_of(tmp_path, monkeypatch)
