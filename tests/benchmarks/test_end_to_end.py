"""The end-to-end benchmark: its corpus, which times count, and our own driver on a tiny corpus."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from places import BENCHMARKS
from read_files import read_columns

from ner_experiments.data.tags import illegal_positions


@pytest.fixture
def end_to_end(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import end_to_end

    return end_to_end


def test_the_corpus_is_as_long_as_conll_2003_and_legal(end_to_end: ModuleType, tmp_path: Path) -> None:
    tokens = end_to_end.corpus.write(tmp_path, sentences=1000, forms=500, dim=4)
    splits = [
        list(read_columns(tmp_path / f"{split}.conll", columns={"word": 0, "tag": 1}))
        for split in ("train", "decode")
    ]
    for sentences in splits:
        lengths = [len(sentence) for sentence in sentences]
        assert sum(lengths) == tokens
        assert max(lengths) == 113
        assert np.mean(lengths) == pytest.approx(14.5, abs=0.7)
        assert not any(illegal_positions(sentence.tags, "bioes") for sentence in sentences)
        assert len({tag for sentence in sentences for tag in sentence.tags}) == 21
    vectors = (tmp_path / "vectors.txt").read_text().splitlines()
    known = {line.split(" ")[0] for line in vectors}
    assert len(known) == 500
    assert all(set(sentence.words) <= known for sentences in splits for sentence in sentences)


def test_the_first_epoch_does_not_count(end_to_end: ModuleType) -> None:
    runs = [
        {
            "train_seconds": [60.0, 2.0, 4.0],
            "decode_seconds": [9.0, 1.0, 1.0],
            "peak_memory_bytes": peak,
            "version": "1",
            "settings": {},
        }
        for peak in (100, 300)
    ]
    ours = end_to_end.combined(runs, tokens=600)
    assert ours["train_tokens_per_second"]["runs"] == [200, 200]
    assert ours["decode_tokens_per_second"]["median"] == 600
    assert ours["peak_memory_bytes"]["median"] == 200


def test_a_ratio_above_one_is_in_our_favour(end_to_end: ModuleType) -> None:
    def contestant(train: float, decode: float, peak: float) -> dict[str, dict[str, float]]:
        keys = ("train_tokens_per_second", "decode_tokens_per_second", "peak_memory_bytes")
        return {key: {"median": value} for key, value in zip(keys, (train, decode, peak), strict=True)}

    found = {"ours": contestant(60, 80, 200), "flair": contestant(6, 8, 100)}
    assert end_to_end.ratios(found) == {
        "ours": {"train": {"flair": 10}, "decode": {"flair": 10}, "memory": {"flair": 0.5}}
    }


@pytest.mark.slow
def test_our_driver_trains_and_decodes(tmp_path: Path) -> None:
    output = tmp_path / "end_to_end.json"
    options = ["--tiny", "--rounds=1", "--threads=1", "--only", "ours_tokens", f"--output={output}"]
    command = [sys.executable, str(BENCHMARKS / "end_to_end.py"), *options]
    subprocess.run(command, check=True, capture_output=True, env=with_package())
    found = json.loads(output.read_text())["end_to_end"]
    assert {"model", "data", "contestants", "ratios", "load", "equal", "different"} <= set(found)
    assert found["ratios"] == {"ours_tokens": {"train": {}, "decode": {}, "memory": {}}}
    ours = found["contestants"]["ours_tokens"]
    assert "batches=tokens" in ours["settings"]
    for key in ("train_tokens_per_second", "decode_tokens_per_second", "peak_memory_bytes"):
        assert ours[key]["median"] == statistics.median(ours[key]["runs"]) > 0


def with_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
