"""A faulty BERT folder or installation is refused with the file and the rule."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_bert import fitted, random_text, save

from ner_experiments.data.bert_files import check_path, read_model
from ner_experiments.data.pieces import Pieces


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(tmp_path / "tiny")


def read(folder: Path) -> Pieces:
    return fitted(Pieces(path=str(folder), max_length=40, overlap=10), random_text(3))


CUT_OFF = "not JSON (Expecting property name enclosed in double quotes at character 2)"
DAMAGED = {
    "config.json": {
        b"{": CUT_OFF,
        b"": "not JSON (Expecting value at character 1)",
        b"[]": "expected a JSON object",
        b"\xff": "not UTF-8 (invalid start byte at byte 1)",
    },
    "tokenizer_config.json": {b"{": CUT_OFF, b"[]": "expected a JSON object"},
    "vocab.txt": {b"a\n\xe9\n": "not UTF-8 (invalid continuation byte at byte 3)"},
    "tokenizer.json": {
        b"{": "expected a tokenizer as JSON: EOF while parsing an object at line 1 column 1",
        b"\xff": "not UTF-8 (invalid start byte at byte 1)",
    },
}
CASES = [(name, content, rule) for name, rules in DAMAGED.items() for content, rule in rules.items()]


@pytest.mark.parametrize(("name", "content", "rule"), CASES)
def test_a_damaged_file_is_named(folder: Path, name: str, content: bytes, rule: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole of it is compared
        read(folder)
    assert str(error.value) == f"{folder / name}: {rule}"


@pytest.mark.parametrize("name", ["vocab_size", "hidden_size", "max_position_embeddings"])
@pytest.mark.parametrize("size", [None, "many", 0, True, 1.5])
def test_a_size_that_is_none_is_named(folder: Path, name: str, size: object) -> None:
    file = folder / "config.json"
    settings = {key: value for key, value in json.loads(file.read_text()).items() if key != name}
    file.write_text(json.dumps(settings if size is None else settings | {name: size}))
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read(folder)
    assert str(error.value) == f"{file}: {name} must be an integer of at least 1, got {size!r}"


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("is_decoder", True, "is_decoder must be false"),
        ("add_cross_attention", True, "add_cross_attention must be false"),
        ("position_embedding_type", "relative_key", 'position_embedding_type must be "absolute"'),
        ("feed_forward_type", "geglu", 'feed_forward_type must be "original"'),
        ("pruned_heads", {"0": [1]}, "pruned_heads must be {}"),
        ("quantization_config", {"bits": 8}, "quantization_config must be null"),
        ("auto_map", {"AutoModel": "own.Model"}, "auto_map must be null"),
    ],
)
def test_a_setting_that_is_not_applied_is_refused_before_the_run(
    folder: Path, name: str, value: object, rule: str
) -> None:
    file = folder / "config.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps(settings | {name: value}))
    message = f"{file}: {rule}, as in an ordinary BERT; others are not supported, got {value!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_path(str(folder))
    with pytest.raises(ValueError, match=re.escape(rule)):
        read(folder)
    file.write_text(json.dumps(settings | {name: None}))
    check_path(str(folder))


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_weights_that_the_settings_do_not_describe_are_refused(folder: Path, prefix: str) -> None:
    """Weights of heads, of the pooling layer, and constants are not the model's; a third layer is."""
    file = folder / "model.safetensors"
    weights = {f"{prefix}{name}": weight for name, weight in load_file(file).items()}
    unused = [
        "cls.predictions.bias",
        "classifier.weight",
        f"{prefix}pooler.extra",
        f"{prefix}embeddings.position_ids",
    ]
    weights |= {name: torch.zeros(1) for name in unused}
    save_file(weights, file, {"format": "pt"})
    read_model(folder)
    extra = f"{prefix}encoder.layer.2.output.dense.bias"
    save_file(weights | {extra: torch.zeros(32)}, file, {"format": "pt"})
    message = f"{file}: 1 weights do not belong to a BERT with the settings of config.json: {extra} ..."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_model(folder)


def test_without_transformers_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = read(folder).state()
    monkeypatch.setitem(sys.modules, "transformers", None)
    message = r"^BERT needs transformers: pip install -e '\.\[bert\]'$"
    with pytest.raises(ValueError, match=message):
        read(folder)
    with pytest.raises(ValueError, match=message):
        Pieces(path="gone", max_length=40, overlap=10).restore(state)
