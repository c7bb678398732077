"""A BERT of two layers with random weights and few pieces, in a folder, and texts for it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertModel

from ner_experiments.data.encoder import Batch, EncodedSplit
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.inputs import Input
from ner_experiments.data.sentence import Sentence

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghij"
VOCABULARY = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *"中国人大Ü-[].", "##ab", "cab"]
WORDS = [
    "a",
    "cab",
    "bad",
    "abab",
    "jig",
    "fed",
    "decade",
    "中国",
    "人",
    "a-b",
    "zebra",
    "",
    "\u200b",
    "\ufe0f",
    "🙂",
]


def config(vocabulary: list[str] = VOCABULARY, **settings: Any) -> BertConfig:
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    small["max_position_embeddings"] = 40
    return BertConfig(vocab_size=len(vocabulary), **(small | settings))


def save(folder: Path, vocabulary: list[str] = VOCABULARY, seed: int = 0, **settings: Any) -> Path:
    """Save the model as transformers does today, except for the vocabulary, which is a text file."""
    torch.manual_seed(seed)
    BertModel(config(vocabulary, initializer_range=0.3, **settings)).save_pretrained(folder)
    write_vocabulary(folder, vocabulary)
    return folder


def save_old(folder: Path) -> Path:
    """Save the model as in 2018 and 2019: pickled, with old names and heads, and no model type in the config."""
    torch.manual_seed(0)
    model = BertForMaskedLM(config(initializer_range=0.3))
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = {}
    for name, weight in model.state_dict().items():
        for new, old in names.items():
            name = name.replace(new, old)
        weights[name] = weight
    folder.mkdir()
    torch.save(weights, folder / "pytorch_model.bin")
    settings = {name: value for name, value in config().to_dict().items() if name != "model_type"}
    (folder / "bert_config.json").write_text(json.dumps(settings))
    write_vocabulary(folder, VOCABULARY)
    model.bert.save_pretrained(folder / "new")
    write_vocabulary(folder / "new", VOCABULARY)
    return folder


def write_vocabulary(folder: Path, pieces: list[str]) -> None:
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def sentences(*texts: list[str]) -> IndexedText:
    return IndexedText.from_sentences([Sentence(tuple(words), ("O",) * len(words)) for words in texts])


def random_text(*lengths: int, words: list[str] = WORDS, seed: int = 0) -> IndexedText:
    rng = np.random.default_rng(seed)
    return sentences(*([str(word) for word in rng.choice(words, length)] for length in lengths))


def fitted(input: Any, text: IndexedText) -> Any:
    input.fit(text, [])
    return input


def batch(input: Input, text: IndexedText, *numbers: int) -> Batch:
    tags = np.zeros(len(text.tokens), dtype=np.int64)
    chosen = np.array(numbers or range(len(text.lengths)))
    return EncodedSplit(text, tags, {"words": input}, torch.device("cpu")).batch(chosen)


def vectors(module: torch.nn.Module, batch: Batch) -> Tensor:
    """Vectors [tokens size], sentence by sentence, without padding."""
    with torch.no_grad():
        return batch.spread("words", module(batch.inputs["words"]))[batch.mask]
