"""Cached vectors of a frozen BERT: computed once, verified, and on the right device."""

import json
from pathlib import Path

import pytest
import torch
from tiny_bert import batch, fitted, random_text, save, vectors

from ner_experiments.data import bert_files
from ner_experiments.data import frozen as frozen_module
from ner_experiments.data.frozen import FrozenPieces
from ner_experiments.data.pieces import Pieces
from ner_experiments.modules.bert import FrozenBert, GivenVectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("bert") / "tiny")


def frozen(folder: Path, cache: Path | None, **settings: int) -> FrozenPieces:
    kept = None if cache is None else str(cache)
    return FrozenPieces(path=str(folder), **({"max_length": 16, "overlap": 4} | settings), cache=kept)


def test_the_cache_equals_the_frozen_model_and_is_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random_text(3, 30, 8, 1)
    live = fitted(Pieces(str(folder), 16, 4), text)
    expected = vectors(FrozenBert(**live.sizes()), batch(live, text, 3, 1, 0))
    cached = fitted(frozen(folder, tmp_path), text)
    module = GivenVectors(**cached.sizes())
    together = batch(cached, text, 3, 1, 0)
    torch.testing.assert_close(vectors(module, together), expected, rtol=0, atol=1e-6)
    assert together.inputs["words"].shape == (34, 32)
    monkeypatch.delattr(bert_files, "read_model")
    assert torch.equal(vectors(module, batch(cached, text, 3, 1, 0)), vectors(module, together))
    (file,) = tmp_path.iterdir()
    assert file.name.endswith(".bert.npy")


def test_each_text_model_and_setting_has_its_own_file(folder: Path, tmp_path: Path) -> None:
    text, other = random_text(5, 6), random_text(6, 5)
    assert text.forms == other.forms
    other_bert = save(tmp_path / "other", seed=1)
    cache = tmp_path / "cache"
    inputs = [frozen(folder, cache), frozen(folder, cache, overlap=3), frozen(folder, cache, max_length=15)]
    for input in [*inputs, frozen(other_bert, cache)]:
        batch(fitted(input, text), text)
    batch(fitted(inputs[0], text), other)
    assert len(list(cache.iterdir())) == 5


def test_a_damaged_cache_is_made_again(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = random_text(4, 2)
    input = fitted(frozen(folder, tmp_path), text)
    expected = batch(input, text).inputs["words"]
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
    assert torch.equal(batch(input, text).inputs["words"], expected)
    assert caplog.messages == [f"{file}: damaged cache of BERT's vectors, computed again"]
    assert file.read_bytes() == content


def test_a_finished_run_on_frozen_vectors_needs_its_own_bert_for_a_new_text(
    folder: Path, tmp_path: Path
) -> None:
    place = save(tmp_path / "bert", seed=0)
    text, new = random_text(9, 20), random_text(5, 30, seed=1)
    input = fitted(frozen(place, tmp_path / "cache"), text)
    old = batch(input, text).inputs["words"]
    again = frozen(place, tmp_path / "cache")
    again.restore(json.loads(json.dumps(input.state())))
    assert again.sizes() == input.sizes() == {"dim": 32}
    assert torch.equal(batch(again, new).inputs["words"], batch(input, new).inputs["words"])
    save(place, seed=1)
    assert torch.equal(batch(again, text).inputs["words"], old)
    with pytest.raises(
        ValueError, match=r"bert: not the BERT that the run was trained on, whose checksum is \w{12}"
    ):
        batch(again, random_text(3))


def test_a_finished_run_reads_its_bert_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, new = random_text(9, 20), random_text(5, 30, seed=1)
    input = fitted(frozen(folder, None), text)
    expected = batch(input, new).inputs["words"]
    input.disable_cache()
    first = batch(input, new).inputs["words"]
    monkeypatch.delattr(bert_files, "find")
    again = batch(input, new).inputs["words"]
    assert torch.equal(first, expected)
    assert torch.equal(again, expected)


def test_a_long_sentence_is_read_a_few_windows_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random_text(1, 200, 4)
    input = fitted(frozen(folder, None), text)
    expected = batch(input, text).inputs["words"]
    calls: list[int] = []
    read = bert_files.read_model

    def listened_to(folder: Path) -> torch.nn.Module:
        bert = read(folder)
        bert.register_forward_hook(
            lambda _, __, given, ___: calls.append(given["input_ids"].numel()), with_kwargs=True
        )
        return bert

    monkeypatch.setattr(bert_files, "read_model", listened_to)
    monkeypatch.setattr(frozen_module, "_MOST_PIECES", 40)
    torch.testing.assert_close(batch(input, text).inputs["words"], expected, rtol=0, atol=1e-5)
    assert len(calls) > 5
    assert max(calls) <= 40


def test_bert_runs_on_the_device_of_the_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors for the CPU, as with runtime.accelerator=cpu, on a machine that reports a GPU."""
    text = random_text(9)
    input = fitted(frozen(folder, None), text)
    expected = batch(input, text).inputs["words"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert torch.equal(batch(input, text).inputs["words"], expected)
