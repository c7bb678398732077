"""Checkpoints, caches and the files of a BERT that have code in them: it is never run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_bert
import torch
from attack import Attack, configure, unmarked

from ner_experiments import train
from ner_experiments.data import bert_files, cache_files, frozen, vectors
from ner_experiments.runs import progress
from ner_experiments.training import checkpoints


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    yield from unmarked(tmp_path)


def test_a_checkpoint_with_code_in_it_is_no_checkpoint(
    tmp_path: Path, mark: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if PyTorch is configured to trust everything; the run starts over and ends as it should."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    cfg = configure(f"output_dir={tmp_path}")
    folder = Path(train.train(cfg)["folder"])
    (folder / "metrics.json").unlink()
    state = {"callbacks": {"LastCheckpoint": {"made_by": checkpoints.made_by()}}}
    content = {**state, "loops": Attack(mark)}
    # writes its checksum, too
    checkpoints.AtomicCheckpointIO().save_checkpoint(content, folder / progress.CHECKPOINT)
    assert checkpoints.resumable_checkpoint(folder) is None
    assert f"{folder}/last.ckpt is damaged (UnpicklingError); the run starts over" in caplog.text
    assert train.train(cfg)["epochs"] == 1


def test_a_cache_of_vectors_with_code_in_it_is_made_again(tmp_path: Path, mark: Path) -> None:
    """Even if its checksum is correct, since checksums only detect accidents."""
    (tmp_path / "vectors.txt").write_text("cat 1 2\ndog 3 4\n")
    words, cache = ["cat", "dog"], tmp_path / "cache"
    expected = vectors.load_vectors(tmp_path / "vectors.txt", words, cache=cache).matrix.copy()
    (file,) = cache.iterdir()
    with cache_files.new(file) as part, part.open("wb") as stream:
        np.savez(stream, matrix=np.array([Attack(mark)], dtype=object))
    again = vectors.load_vectors(tmp_path / "vectors.txt", words, cache=cache)
    np.testing.assert_array_equal(again.matrix, expected)


def test_a_cache_of_bert_with_code_in_it_does_not_count(tmp_path: Path, mark: Path) -> None:
    path = tmp_path / "x.bert.npy"
    with cache_files.new(path) as part, part.open("wb") as stream:
        np.save(stream, np.array([Attack(mark)], dtype=object), allow_pickle=True)
    assert frozen._cached_table(path) is None


def test_a_berts_weights_with_code_in_them_are_refused(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    folder = tiny_bert.save(tmp_path)
    torch.save({"embeddings": Attack(mark)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(
        ValueError, match=r"pytorch_model.bin: damaged, or holds more than weights \(UnpicklingError\)$"
    ):
        bert_files.read_model(folder)


FETCHED = {
    "attn_implementation": "somebody/kernel",
    "_attn_implementation": "somebody/kernel",
    "auto_map": {"AutoModel": "modeling.Model", "AutoConfig": "modeling.Config"},
    "trust_remote_code": True,
    "quantization_config": {"quant_method": "somebodys"},
    "dtype": "load",
}
"""Settings by which transformers is told to fetch and run code, or to look names up."""


REFUSED = ("auto_map", "quantization_config")


@pytest.mark.parametrize("name", FETCHED)
def test_a_bert_that_names_code_of_its_own_is_not_asked_for_it(name: str, tmp_path: Path, mark: Path) -> None:
    """Neither the folder of one, nor what a run keeps of its config."""
    folder = tiny_bert.save(tmp_path / "bert")
    (folder / "modeling.py").write_text(f"open({str(mark)!r}, 'w')")
    config = bert_files.read_config(folder) | {name: FETCHED[name]}
    plain = settings_of(bert_files.read_model(folder))
    (folder / "config.json").write_text(json.dumps(config))
    if name in REFUSED:
        with pytest.raises(ValueError, match=f"config.json: {name} must be null"):
            bert_files.read_model(folder)
        return
    for made in (bert_files.read_model(folder), bert_files.untrained(config)):
        assert type(made).__name__ == "BertModel"
        assert settings_of(made) == plain
    with pytest.raises(ValueError, match="model_type must be bert or ernie, got 'somebodys'"):
        bert_files.untrained({**config, "model_type": "somebodys"})


def settings_of(bert: Any) -> dict[str, Any]:
    of_the_folder = ("_name_or_path", "dtype")
    return {name: value for name, value in bert.config.to_dict().items() if name not in of_the_folder}
