"""Sentences and texts of words, and encoders that are fitted to them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ner_experiments.data.context import Context
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.inputs import Input
from ner_experiments.data.sentence import Corpus, Sentence

CPU = torch.device("cpu")


def sentence(text: str) -> Sentence:
    return Sentence(tuple(text.split()), ("O",) * len(text.split()))


def text(*sentences: str) -> IndexedText:
    return IndexedText.from_sentences([sentence(words) for words in sentences])


def fitted(train: Sequence[Sentence], others: Sequence[Sentence] = (), **inputs: Input) -> Encoder:
    encoder = Encoder(inputs)
    encoder.fit(Corpus("mine", "mentions", {"train": list(train), "dev": list(others)}, checksum=""))
    return encoder


def context(**settings: Any) -> Context:
    return Context(**({"columns": [], "window": 2, "lowercase": False, "min_count": 1} | settings))


def assert_equal(sizes: dict[str, Any], others: dict[str, Any]) -> None:
    ours, theirs = ({name: np.asarray(x).tolist() for name, x in s.items()} for s in (sizes, others))
    assert ours == theirs
