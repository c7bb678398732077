"""The benchmark of a GPU, on a machine without one: its processes, its corpus, and the CRF that it compares with."""

import importlib
import json
import os
import time
from types import ModuleType

import pytest
from places import BENCHMARKS

from ner_experiments.training import graphs


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gpu")


@pytest.mark.slow
def test_calls_run_at_once_and_one_that_fails_ends_them_all(gpu: ModuleType) -> None:
    in_processes = gpu.timing.in_processes
    assert in_processes(divmod, [(7, 2), (9, 4)], limit=60) == [(3, 1), (2, 1)]
    pids = in_processes(os.getpid, [(), ()], limit=60)
    assert len({os.getpid(), *pids}) == 3
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError: .* by zero$"):
        in_processes(divmod, [(1, 0)], limit=60)
    with pytest.raises(RuntimeError, match=r"^the process ended without a result$"):
        in_processes(os._exit, [(1,)], limit=60)
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^TypeError: "):
        in_processes(time.sleep, [(60,), ("a",)], limit=60)
    with pytest.raises(TimeoutError, match=r"^takes more than 1 s$"):
        in_processes(time.sleep, [(60,)], limit=1)
    with pytest.raises(TimeoutError, match=r"^no time left$"):
        in_processes(divmod, [(7, 2)], limit=0)
    assert time.monotonic() - begun < 30


def test_the_text_has_the_size_of_conll_2003(gpu: ModuleType) -> None:
    corpus = gpu.generated(14_041)
    train = corpus.splits["train"]
    lengths = [len(sentence) for sentence in train]
    assert len(lengths) == 14_041
    assert sum(lengths) == pytest.approx(203_621, rel=0.02)
    assert max(lengths) == 113
    assert len({word for sentence in train for word in sentence.words}) == pytest.approx(23_624, rel=0.02)
    for sentence in train[:100]:
        parts = [sentence.words, sentence.tags, *sentence.columns.values()]
        assert {len(part) for part in parts} == {len(sentence)}


def test_the_crf_without_kernels_decodes_and_learns_as_with_them(gpu: ModuleType) -> None:
    gpu_kernels = importlib.import_module("gpu_kernels")
    ours = gpu.CRF(num_tags=5)
    problem = gpu.crf.make_problem(3, 7, 5)
    contestants = [gpu.crf.ours(ours), gpu_kernels.without_kernels(ours)]
    assert gpu.crf.different(ours, problem, contestants) == []


def test_graphs_are_the_default_as_soon_as_a_recorded_result_has_shown_them_right(gpu: ModuleType) -> None:
    recorded = json.loads((BENCHMARKS / "results.json").read_text())["gpu"]
    assert gpu.graphs_are_right(recorded) == graphs.BY_DEFAULT
    both = {"weights": "a", "replays": 9, "tokens": 10, "seconds": 1, "load": {"utilization.gpu": 80}}
    fast = {**both, "seconds": 0.2}
    good = {"graphs": [both, both], "epochs": [both], "with graphs": [fast]}
    result = {part: dict.fromkeys(gpu.SETTINGS, found) for part, found in good.items()}
    assert gpu.graphs_are_right(result)
    for part, found in (
        ("graphs", [both, {**both, "weights": "b"}]),
        ("graphs", 2 * [{**both, "replays": 0}]),
        ("with graphs", [both]),
    ):
        assert not gpu.graphs_are_right({**result, part: {**result[part], gpu.YANG: found}})
    rows = [*gpu.targets({"gpu": {**result, "packed": {gpu.YANG: 12 * [fast]}}})]
    assert [row[1:] for row in rows[:3]] == [
        ["at least 10 times", "5.00", "", "**no**"],
        ["at least 60 %", "80.00", "", "yes"],
        ["at least 3 times", "5.00", "", "yes"],
    ]
    assert rows[-1][1:3] == ["at least 15 times", "60.00"]
    huang, *_ = gpu.targets({"gpu": {**result, "by a loop": {gpu.LARGE[0]: [{**both, "seconds": 3}]}}})
    assert huang[1:] == ["at least 10 times", "15.00", "", "yes"]


def test_load_is_the_median_of_what_was_sampled(gpu: ModuleType) -> None:
    load = gpu.medians(["80, 1980, 130", "91, 1980, [N/A]", "90, 1980, 140"])
    assert load == {"utilization.gpu": 90, "clocks.sm": 1980}
    assert gpu.medians([]) == {}
