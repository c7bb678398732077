"""Inputs of an export: their description in encoder.json, and random sentences to trace and verify with."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from torch import Tensor

from ner_experiments.config.identity import PLACES
from ner_experiments.data.context import Context
from ner_experiments.data.corpus import Source
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.frozen import FrozenPieces
from ner_experiments.data.inputs import Characters, Input, PretrainedWords, RandomWords
from ner_experiments.data.inputs_li2020 import WordsWithCase
from ner_experiments.data.pieces import Pieces
from ner_experiments.data.sentence import Sentence

OUTSIDE: dict[type[Input], str] = {FrozenPieces: "its vectors come from a BERT that is not part of the run"}
"""Inputs that need files outside the run's folder, and why they are refused."""
REFUSED: dict[type[Input], str] = {
    Pieces: "BERT reads windows of word pieces, which an export cannot compute; use the run's folder instead",
    **OUTSIDE,
}
"""Inputs that cannot be exported as a file, and why."""
WITH_IDS = (RandomWords, PretrainedWords, WordsWithCase, Characters)
AXES = ("batch", "time", "width")
LONGEST = 60
"""Largest number of tokens of a random sentence."""


def check_exportable(encoder: Encoder, refused: Mapping[type[Input], str] = REFUSED) -> None:
    """Raise ValueError for an input that cannot be exported."""
    for name, part in encoder.inputs.items():
        if reason := refused.get(type(part)):
            raise ValueError(f"{name}: {type(part).__name__} cannot be exported: {reason}")


def description(encoder: Encoder, example: Mapping[str, Tensor], text: Source) -> dict[str, Any]:
    """Content of encoder.json: tensors by name, labels by number, and class, settings and state of each input.

    text: the corpus, whose tokens and lines say how raw text is split.
    """
    return {
        "task": encoder.task,
        "labels": list(encoder.labels),
        "raw_text": {"tokens": str(text.tokens), "lines": text.lines},
        "tensors": {
            name: {"dtype": str(x.dtype).removeprefix("torch."), "shape": list(AXES[: x.ndim])}
            for name, x in example.items()
        },
        "inputs": {
            name: {"kind": type(part).__name__, "settings": settings(part), "learned": part.state()}
            for name, part in encoder.inputs.items()
        },
    }


def settings(part: Input) -> dict[str, Any]:
    """Settings of an input, without file paths."""
    values = {field.name: getattr(part, field.name) for field in fields(part) if field.name not in PLACES}  # type: ignore[arg-type]
    return {name: value if np.isscalar(value) else list(value) for name, value in values.items()}


def random_sentences(encoder: Encoder, number: int) -> list[Sentence]:
    """Random sentences of 1 to 60 words: half of them known to the run, half of random characters.

    Further columns have values that the run has seen in them.
    """
    rng = np.random.default_rng(0)
    words, characters = known(encoder)
    columns: dict[str, Sequence[str]] = {}
    for part in encoder.inputs.values():
        if isinstance(part, Context):
            columns |= dict(zip(part.columns, part.symbols[1:], strict=True))

    def word() -> str:
        if words and rng.random() < 0.5:
            return words[rng.integers(len(words))]
        return "".join(rng.choice(characters, size=rng.integers(1, 12)))

    sentences = []
    for length in rng.integers(1, LONGEST + 1, size=number).tolist():
        more = {name: tuple(map(str, rng.choice([*seen], size=length))) for name, seen in columns.items()}
        sentences.append(Sentence(tuple(word() for _ in range(length)), (encoder.labels[0],) * length, more))
    return sentences


def known(encoder: Encoder) -> tuple[list[str], list[str]]:
    """The words and characters in the run's vocabulary; letters and digits if it has no characters."""
    ids = {name: [*part.ids] for name, part in encoder.inputs.items() if isinstance(part, WITH_IDS)}
    characters = sorted({character for keys in ids.values() for key in keys for character in key})
    return ids.get("words", []), characters or list(string.ascii_letters + string.digits)
