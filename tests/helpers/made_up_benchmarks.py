"""Results of every benchmark, made up, and the page that is made of them."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import BENCHMARKS

FOLDER = BENCHMARKS
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
    commands = {
        "python -c pass": times(0.014),
        "run.py --help": times(0.7),
        "run.py trainer=smoke data=toy_en": times(6.5),
    }
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
