"""The benchmarks: their clockwork, their count of operations, and the page that is made of their results."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_up_benchmarks import FOLDER, MADE, RESULTS, load, page_of, times, write_page

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
    assert "`python benchmarks/crf.py --threads 2 --rounds 3`" in page
    assert "commit 0123456789ab, changed since; 2 x Example; Python" in page


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
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert timing.now() - begun > 0.1  # its children's, too
    alone = load("alone", monkeypatch)
    assert alone.measured(lambda: lambda: time.sleep(0.2), (), threads=1)["seconds"] < 0.1
    assert timing.circumstances()["clock"] == "processor"
    parser = timing.options("", rounds=1)
    monkeypatch.setattr(sys, "argv", ["a", "--clock", "processor", "--threads", "2"])
    with pytest.raises(SystemExit):
        timing.begin(parser)
    assert "it takes --threads 1" in capsys.readouterr().err
    monkeypatch.setitem(MADE, "clock", "processor")
    page = write_page(["scoring"], tmp_path, monkeypatch)
    assert " --rounds 3 --clock processor`" in page
    assert "2 x Example, seconds of a processor that others used too; " in page


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


def test_memory_of_processes_is_the_most_of_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = load("growth", monkeypatch)
    peaks = iter([30, 20, 10, 40])
    monkeypatch.setattr(
        growth, "trained", lambda _: {"tokens_per_second": 1.0, "peak_memory_bytes": {"main": next(peaks)}}
    )
    assert growth.processes(rounds=2)["bytes"] == [30, 40]


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
    assert f"`python benchmarks/{name}.py --threads " in page_of(tmp_path, monkeypatch)
