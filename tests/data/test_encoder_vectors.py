"""Encoders of pre-trained words: looked up with back-off, restored without their file, and their checksum."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders import CPU, assert_equal, fitted, sentence

from ner_experiments.data.encoder import Encoder
from ner_experiments.data.inputs import Characters, PretrainedWords

VECTORS = {"the": [1.0, 2.0], "Ada": [3.0, 4.0], "ada": [5.0, 6.0], "0000": [7.0, 8.0], "d00-x": [9.0, 10.0]}


@pytest.fixture
def pretrained(tmp_path: Path) -> PretrainedWords:
    lines = "".join(f"{word} {x} {y}\n" for word, (x, y) in VECTORS.items())
    (tmp_path / "vectors.txt").write_text(lines + "unused 0.0 0.0\n", encoding="utf-8")
    return PretrainedWords(path=str(tmp_path / "vectors.txt"), cache=str(tmp_path / "cache"))


def test_pretrained_words_are_looked_up_with_back_off(pretrained: PretrainedWords) -> None:
    train = [sentence("The zork 1815 Ada twice twice"), sentence("THE the")]
    dev = [sentence("ADA D12-X 2026 blick zork 1815 nowhere")]
    encoder = fitted(train, dev, words=pretrained)
    sizes = pretrained.sizes()

    def vectors_of(text: str) -> list[Any]:
        batch = encoder.encode([sentence(text)], CPU).batch(np.array([0]))
        ids = batch.spread("words", batch.inputs["words"])[0]
        return [sizes["vectors"][id].tolist() if sizes["found"][id] else int(id) for id in ids]

    expected = [VECTORS[key] for key in ("the", "the", "the", "Ada", "ada", "0000", "0000", "d00-x")]
    assert vectors_of("The THE the Ada ADA 1815 2026 D12-X") == expected
    found = sizes["found"].nonzero().flatten().tolist()
    assert found == [1, 2, 3, 4, 5]  # one row for each vector that a word of the corpus ends at
    assert vectors_of("zork twice blick nowhere") == [6, 7, 0, 0]  # of its own, only if train has it
    assert sizes["singletons"].tolist() == [*[False] * 6, True, False]
    (note,) = encoder.notes()
    assert note.startswith("8 of 12 words (66.7%) have a pre-trained vector: 2 (16.7%) as they are")


def test_new_words_are_looked_up_with_the_same_back_off(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("apple 1 2\n0000 3 4\nab 5 6\nmk0 7 8\n", encoding="utf-8")
    words = PretrainedWords(path=str(tmp_path / "vectors.txt"), cache=str(tmp_path / "cache"))
    encoder = fitted([sentence("Apple 1815 zork")], [sentence("AB MK7")], words=words)
    restored = Encoder({"words": PretrainedWords(path="gone", cache="gone")})
    restored.restore(json.loads(json.dumps(encoder.state())))
    new = [sentence("apple APPLE 1999 ab Ab mk0 mk8 Zork pear")]
    for each in (encoder, restored):
        batch = each.encode(new, CPU).batch(np.array([0]))
        ids = batch.spread("words", batch.inputs["words"])[0]
        assert ids.tolist() == [1, 1, 2, 3, 3, 4, 4, 5, 0]


def test_restored_pretrained_words_need_no_file(pretrained: PretrainedWords, tmp_path: Path) -> None:
    train = [sentence("The zork 1815 Ada"), sentence("THE the twice twice")]
    encoder = fitted(train, words=pretrained)
    restored = Encoder({"words": PretrainedWords(path=str(tmp_path / "gone"), cache=str(tmp_path / "gone"))})
    restored.restore(json.loads(json.dumps(encoder.state())))
    new = [sentence("zork unheard The 1815 twice")]
    first, second = (e.encode(new, CPU).batch(np.array([0])) for e in (encoder, restored))
    assert torch.equal(first.inputs["words"], second.inputs["words"])
    ours, theirs = pretrained.sizes(), restored.inputs["words"].sizes()
    assert ours["vectors"].shape == theirs["vectors"].shape
    assert (theirs["vectors"] == 0).all()  # the weights bring the vectors
    assert_equal({**ours, "vectors": 0}, {**theirs, "vectors": 0})


def test_the_checksum_is_of_the_vectors_that_are_used(pretrained: PretrainedWords) -> None:
    file, checksums = Path(pretrained.path), []
    for old, new in (("", ""), ("unused 0.0", "unused 1.0"), ("the 1.0", "the 1.5")):
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        inputs = {"chars": Characters(max_length=50), "words": pretrained}
        checksums += fitted([sentence("the zork")], **inputs).checksums()
    assert checksums[0] == checksums[1] != checksums[2]
