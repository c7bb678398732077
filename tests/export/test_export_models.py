"""Exports predict the tagger's own tags, for each architecture, decoder, input and format."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from places import CONF
from torch import Tensor

from ner_experiments.build import batches, build, build_encoder
from ner_experiments.commands.smoke import write_vectors
from ner_experiments.config.config_dirs import names
from ner_experiments.config.row_settings import joined
from ner_experiments.data import toy
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.frozen import FrozenPieces
from ner_experiments.data.pieces import Pieces
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tokenize import tokenize_lines
from ner_experiments.experiment_data import read_data
from ner_experiments.export import client, client_files
from ner_experiments.export.export import max_difference, tensors, trace
from ner_experiments.export.formats import FORMATS, Format, Outputs
from ner_experiments.export.inputs import REFUSED, check_exportable, random_sentences, settings
from ner_experiments.export.traceable import traceable
from ner_experiments.modules.peephole import PeepholeLSTM
from ner_experiments.tables.experiments import compose
from ner_experiments.tagger import Tagger

MODELS = names("model")
TOGETHER = [
    pytest.param("model=attention words.module.dim=5 decoder=crf_iob2", marks=pytest.mark.slow),
    pytest.param(
        "model=parallel words=li2020 chars=li2020 features=case direct=tagging decoder=crf decoder.constrained=true",
        marks=pytest.mark.slow,
    ),
    "words=vectors words.module.trainable=false words.input.path=DATA/glove/glove.6B.100d.txt chars=cnn "
    "decoder=softmax decoder.constrained=true",
    "decoder=softmax_iob2",
]
"""All layers that `traceable` replaces, and those that it leaves, in few exports, which take seconds each."""
SMALL = {"hidden_size": 6, "dense_size": 8, "unit_size": 4, "num_layers": 2}
TOY = ["data=toy_en", "data.sentences={train: 30, dev: 5, test: 5}", "model=none", "chars=none"]
Run = Callable[[Mapping[str, Tensor]], Outputs]


def untrained(*overrides: str) -> tuple[Tagger, Encoder]:
    """With all weights drawn from a normal distribution, so that constraints are broken; tags vary."""
    cfg = compose(joined(TOY, overrides), "test").copy()
    OmegaConf.set_readonly(cfg, False)
    for name in SMALL.keys() & cfg.model.keys():
        cfg.model[name] = SMALL[name]
    _, encoder = read_data(cfg)
    tagger = build(cfg, encoder).eval()
    with torch.no_grad():
        for name, parameter in tagger.named_parameters():
            # with large biases, a softmax predicts the same tag everywhere
            parameter.normal_(std=0.07 if "bias" in name else 0.7)
    return tagger, encoder


def exported(tagger: Tagger, encoder: Encoder, folder: Path, formats: Sequence[Format]) -> dict[str, Run]:
    example = of(encoder, random_sentences(encoder, 3))
    program = trace(tagger, example)
    for each in formats:
        each.write(program, [*example], folder / each.file)
    return {each.file: each.read(folder / each.file) for each in formats}


def of(encoder: Encoder, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    encoded = encoder.encode(sentences, torch.device("cpu"))
    return tensors(encoded.batch(np.arange(len(sentences))))


def check(overrides: Sequence[str], folder: Path, formats: Sequence[Format] = FORMATS["both"]) -> None:
    """On sentences one by one, all together, and of one token; then with rubbish for padding."""
    tagger, encoder = untrained(*overrides)
    sentences = random_sentences(encoder, 12)
    tokens = [
        Sentence(it.words[:1], it.tags[:1], {n: c[:1] for n, c in it.columns.items()}) for it in sentences
    ]
    for name, run in exported(tagger, encoder, folder, formats).items():
        for some in (sentences, tokens[:1], tokens, *([it] for it in sentences[:3])):
            assert max_difference(tagger, encoder, some, run, name) < 1e-4
        inputs = of(encoder, sentences)
        lengths = inputs["lengths"]
        real = torch.arange(int(lengths.max())) < lengths[:, None]
        rubbish = {
            name: torch.where(real.view(*real.shape, *[1] * (x.ndim - 2)), x, 1) if x.ndim > 1 else x
            for name, x in inputs.items()
        }
        for clean, dirty in zip(run(inputs), run(rubbish), strict=True):
            assert torch.equal(clean, dirty)
            assert not clean[~real].any()
        assert len(run(inputs)[0][real].unique()) > 2


@pytest.mark.parametrize("overrides", TOGETHER)
def test_layers_inputs_and_decoders_together(overrides: str, tmp_path: Path) -> None:
    check([*files(tmp_path), *overrides.replace("DATA", str(tmp_path)).split()], tmp_path)


def files(folder: Path) -> list[str]:
    """Write vectors and a gazetteer to the folder. Returns the settings that place them there."""
    write_vectors(folder)
    (folder / "gazetteer").mkdir()
    (folder / "gazetteer" / "PER.txt").write_text("Rosa\nRosa Jorlova\nthe\n")
    return [f"data_dir={folder}", f"cache_dir={folder}"]


TRIED = ("attention", "parallel")
"""Architectures in `TOGETHER`."""


def kinds(name: str) -> set[type]:
    layers = {type(layer) for layer in build_encoder(compose([f"model={name}"], "test"), 10).modules()}
    return {layer for layer in layers if not layer.__module__.startswith("ner_experiments.models")}


@pytest.mark.slow
@pytest.mark.parametrize("name", others := sorted({*MODELS} - {*TRIED}))
def test_every_architecture(name: str, tmp_path: Path) -> None:
    """With ONNX, too, if it has a kind of layer that none before it has."""
    before = set[type]().union(*map(kinds, (*TRIED, *others[: others.index(name)])))
    formats = FORMATS["torch" if kinds(name) <= before else "both"]
    check([f"model={name}", "words.module.dim=5", "decoder=softmax"], tmp_path, formats)


@pytest.mark.slow
def test_a_gru(tmp_path: Path) -> None:
    check(["model=bilstm", "model/cell=gru", "words.module.dim=5"], tmp_path)


INPUTS = [
    ["words=vectors", "words.input.path=DATA/glove/glove.6B.100d.txt"],
    ["words=none", "chars=lstm"],
    ["words=none", "chars=lstm_max", "direct=gazetteer"],
]
"""Kinds that are not in `TOGETHER`, which has all decoders but the CRF and softmax without constraints."""


@pytest.mark.slow
@pytest.mark.parametrize("overrides", INPUTS, ids=" ".join)
def test_every_kind_of_input(overrides: list[str], tmp_path: Path) -> None:
    overrides = [it.replace("DATA", str(tmp_path)) for it in overrides]
    check([*files(tmp_path), *overrides, "decoder=softmax"], tmp_path)


ENCODED = [
    "words=vectors words.input.path=DATA/glove/glove.6B.100d.txt chars=cnn direct=spelling",
    "words=li2020 chars=li2020 features=case direct=context direct.context.input.columns=[]",
    "words.input.lowercase=true chars=lstm direct=gazetteer",
]


@pytest.mark.parametrize("overrides", ENCODED)
def test_the_client_computes_every_input(overrides: str, tmp_path: Path) -> None:
    """The same ids as the encoder, in any order of those of a token."""
    _, encoder = untrained(*files(tmp_path), *overrides.replace("DATA", str(tmp_path)).split())
    sentences = [*random_sentences(encoder, 50), *toy.sentences("en", "test", 30)]
    expected = of(encoder, sentences)
    for name, part in encoder.inputs.items():
        encode = client.INPUTS[type(part).__name__](settings(part), json.loads(json.dumps(part.state())))
        table = expected[name].numpy()
        found = client.padded([encode(it.words) for it in sentences], table.shape)
        for row, ids, it in zip(table, found, sentences, strict=True):
            assert np.array_equal(np.sort(row[: len(it.words)]), np.sort(ids[: len(it.words)]))


def test_the_client_splits_text_as_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client_files.write(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    own = import_module("tokens")
    monkeypatch.delitem(sys.modules, "tokens")
    text = (
        "Mr. O'Neil's 3.5% of U.S. Inc. said: \"C'est l'été.\" 王小明住在上海。他说！\n"
        "ქართული ენა. हिन्दी है।\n\n👩\u200d🔬 x\n"
    )
    for unit, lines in product(client_files.UNITS, (False, True)):
        found, expected = (
            [(it.text, it.start, it.offsets, it.line) for it in split(StringIO(text), unit, lines=lines)]
            for split in (own.tokenize_lines, tokenize_lines)
        )
        assert found == expected


def test_each_peephole_reads_the_cell_that_it_reads_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop stands for `scan`, which is compiled for seconds."""

    def loop(step: Callable[..., Any], state: Any, inputs: Tensor) -> tuple[Any, Tensor]:
        outputs = []
        for now in inputs:
            state, output = step(state, now)
            outputs.append(output)
        return state, torch.stack(outputs)

    monkeypatch.setattr("ner_experiments.export.traceable.scan", loop)
    module, x = PeepholeLSTM(3, 2), torch.randn(2, 4, 3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
        expected = module(x, torch.tensor([4, 4]))
        found, _ = traceable(module)(x)
    torch.testing.assert_close(found, expected)


def test_no_kind_of_input_was_forgotten() -> None:
    """Each input class in conf/ is either tested above or refused."""
    files = [
        OmegaConf.load(path) for part in ("words", "chars", "features") for path in (CONF / part).glob("*")
    ]
    kinds = {file.input._target_.rpartition(".")[2] for file in files if "_target_" in file.get("input", {})}
    direct = [
        OmegaConf.load(CONF / "direct" / f"{name}.yaml") for name in ("spelling", "context", "gazetteer")
    ]
    kinds |= {part.input._target_.rpartition(".")[2] for file in direct for part in file.values()}
    tried = {"RandomWords", "PretrainedWords", "WordsWithCase", "Characters", "TypedCharacters", "Case"}
    assert kinds == tried | {"Spelling", "Context", "Gazetteer"} | {kind.__name__ for kind in REFUSED}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Pieces("nowhere", 128, 32), "words: Pieces cannot be exported: BERT reads windows of word pieces"),
        (
            FrozenPieces("nowhere", 128, 32, "cache"),
            "words: FrozenPieces cannot be exported: its vectors come",
        ),
    ],
)
def test_bert_is_refused_by_name(part: Pieces | FrozenPieces, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        check_exportable(Encoder({"words": part}))


def test_further_columns_are_made_up_of_what_the_run_saw() -> None:
    _, encoder = untrained("direct=tagging")
    context = encoder.inputs["context"]
    context.columns, context.symbols = ("pos",), [context.symbols[0], ["NN", "VB"]]  # type: ignore[attr-defined]
    sentences = random_sentences(encoder, 20)
    assert {symbol for it in sentences for symbol in it.columns["pos"]} == {"NN", "VB"}
    assert all(len(it.columns["pos"]) == len(it) for it in sentences)


@pytest.mark.parametrize(("shift", "largest"), [(1e-4, ""), (1e-2, "0\\.01"), (torch.nan, "nan; ")])
def test_scores_may_differ_by_rounding_alone_even_if_all_tags_are_equal(shift: float, largest: str) -> None:
    tagger, encoder = untrained()

    def run(inputs: Mapping[str, Tensor]) -> Outputs:
        (batch,) = batches(encoder, sentences)
        scores = tagger(batch)
        shifted = (scores + shift).masked_fill(~batch.mask[:, :, None], 0)
        return tagger.decoder.decode(scores, batch.mask), shifted

    sentences = random_sentences(encoder, 2)
    if not largest:
        assert max_difference(tagger, encoder, sentences, run, "model.pt2") == pytest.approx(shift, rel=0.1)
        return
    rule = f"0 of 2 sentences have different tags, and scores differ by up to {largest}"
    with pytest.raises(ValueError, match=rule):
        max_difference(tagger, encoder, sentences, run, "model.pt2")
