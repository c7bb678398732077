"""Encoding of sentences as tensors: vocabulary and labels, flat tensors per split, gathered batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ner_experiments.data.indexed_text import (
    EXACT,
    BatchIndex,
    IndexedText,
    Multiples,
    repeat_first,
    rounded_up,
)
from ner_experiments.data.inputs import Input
from ner_experiments.data.sentence import PRIMARY_METRIC, Corpus, Sentence, Task, tags_of
from ner_experiments.utils.text import check_strings, truncated_repr

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Sentences padded to the longest.

    sentences, lengths: [batch]; the former are numbers of sentences in the split, on the host.
    mask, tags: [batch time]. `mask` is True on real tokens; tags are 0 on padding.
    real: [batch], False for fillers, which follow the `sentences`: sentences of one token with tag 0 that make the
        batch as large as others, and must not count. None without any.
    unreachable: [mentions], a tag of the type of each gold mention that `tags` do not express; None without any.

    The module of input `name` is called with `inputs[name]`; row `places[name][b, t]` of its output belongs
    to token t of sentence b. Inputs in `shared` are the same in all batches of the split.
    """

    sentences: np.ndarray
    lengths: Tensor
    mask: Tensor
    tags: Tensor
    inputs: dict[str, Any]
    places: dict[str, Tensor]
    shared: frozenset[str] = frozenset()
    unreachable: Tensor | None = None
    real: Tensor | None = None

    def spread(self, name: str, rows: Tensor) -> Tensor:
        """Distribute output rows of input `name` to the tokens: [rows ...] -> [batch time ...]."""
        return rows[self.places[name]]


class EncodedSplit:
    """A split as flat arrays, from which any batch is gathered, for one device."""

    def __init__(
        self,
        text: IndexedText,
        tags: np.ndarray,
        inputs: Mapping[str, Input],
        device: torch.device,
        unreachable: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """unreachable: number of a sentence -> a tag of the type of each of its unreachable mentions."""
        self.lengths, self.device = text.lengths, device
        self._starts, self._forms, self._tags = text.starts[:-1], text.tokens, tags
        self._unreachable = unreachable or {}
        self._encoded = {name: input.encode(text).to(device) for name, input in inputs.items()}
        self._shared: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, sentences: np.ndarray, *, share: bool = False, multiples: Multiples = EXACT) -> Batch:
        """A batch of these sentence numbers, in this order, with fillers and padding up to the multiples.

        share: pass all forms of the split as inputs, so that their outputs can be reused across batches.
        """
        numbers = repeat_first(sentences, multiples.sentences)
        real = np.arange(len(numbers)) < len(sentences)
        lengths = np.where(real, self.lengths[numbers], 1)
        steps = np.arange(rounded_up(lengths.max(), multiples.time))
        mask = steps < lengths[:, None]
        tokens = self._starts[numbers, None] + steps * mask
        forms, rows = np.unique(self._forms[tokens], return_inverse=True)
        forms, rows = repeat_first(forms, multiples.rows), rows.reshape(tokens.shape)  # NumPy 1 has them flat
        index = BatchIndex(numbers, tokens, mask, forms, rows, multiples)
        shared = {name: pair for name, text in self._encoded.items() if share and (pair := text.share(index))}
        for name in shared.keys() - self._shared.keys():
            self._shared[name] = on_device(shared[name][0], self.device)
        own = {name: text.select(index) for name, text in self._encoded.items() if name not in shared}
        others = [tag for number in sentences.tolist() for tag in self._unreachable.get(number, ())]
        inputs = on_device({name: argument for name, (argument, _) in own.items()}, self.device)
        arrays = {
            "lengths": lengths,
            "mask": mask,
            "tags": self._tags[tokens] * (mask & real[:, None]),
            "places": {name: places for name, (_, places) in (own | shared).items()},
            **({"unreachable": np.array(others)} if others else {}),
            **({"real": real} if multiples != EXACT else {}),
        }
        return Batch(
            sentences=sentences,
            inputs=inputs | {name: self._shared[name] for name in shared},
            shared=frozenset(shared),
            **on_device(arrays, self.device),
        )


def on_device(arrays: Any, device: torch.device) -> Any:
    """Tensors of an array, or of the arrays in dicts and tuples. The host does not wait until a GPU has copied them."""
    import torch  # as in `indexed_text.apply_in_chunks`

    if isinstance(arrays, dict):
        return {name: on_device(part, device) for name, part in arrays.items()}
    if isinstance(arrays, tuple):
        return type(arrays)(*(on_device(part, device) for part in arrays))
    tensor = torch.from_numpy(arrays)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class Encoder:
    """The inputs and the labels of an experiment, fitted on a corpus and independent of the model.

    Labels are collected from all splits, so that a gold mention whose type is absent from train still counts
    as missing.
    """

    def __init__(self, inputs: Mapping[str, Input]) -> None:
        self.inputs = dict(inputs)
        self.labels: tuple[str, ...] = ()
        self.task: Task = "mentions"

    def fit(self, corpus: Corpus) -> None:
        self.task = corpus.task
        self.labels = labels(corpus)
        texts = {name: IndexedText.from_sentences(sentences) for name, sentences in corpus.splits.items()}
        train = texts.pop("train")
        for input in self.inputs.values():
            input.fit(train, texts.values())

    def encode(self, sentences: Sequence[Sentence], device: torch.device) -> EncodedSplit:
        ids = {label: number for number, label in enumerate(self.labels)}
        text = IndexedText.from_sentences(sentences)
        tags = chain.from_iterable(sentence.tags for sentence in sentences)
        numbers = np.fromiter(map(ids.__getitem__, tags), dtype=np.int64, count=len(text.tokens))
        unreachable = {
            number: [ids[f"S-{mention.type}"] for mention in sentence.unreachable]
            for number, sentence in enumerate(sentences)
            if sentence.unreachable
        }
        return EncodedSplit(text, numbers, self.inputs, device, unreachable)

    def extended(
        self, sentences: Sequence[Sentence], path: Path | None = None
    ) -> tuple[Encoder, dict[str, np.ndarray]]:
        """A copy with the vectors of these sentences' words, and the new rows by input, as `Input.extended`."""
        forms = list(dict.fromkeys(word for sentence in sentences for word in sentence.words))
        found = {name: more for name, input in self.inputs.items() if (more := input.extended(forms, path))}
        encoder = copy(self)
        encoder.inputs = self.inputs | {name: input for name, (input, _) in found.items()}
        return encoder, {name: rows for name, (_, rows) in found.items()}

    def required_columns(self) -> list[str]:
        """Names of the columns that the inputs read besides the words."""
        return [name for input in self.inputs.values() for name in input.required_columns()]

    def notes(self) -> list[str]:
        """Remarks of all inputs on the files and the text that they read, as stored with the results."""
        return [note for input in self.inputs.values() for note in input.notes()]

    def checksums(self) -> list[str]:
        """Checksums of the files that inputs read besides the corpus."""
        return [checksum for input in self.inputs.values() if (checksum := input.checksum())]

    def state(self) -> dict[str, Any]:
        """JSON-serializable state. Together with the weights it lets a model run without its corpus."""
        inputs = {name: input.state() for name, input in self.inputs.items()}
        return {"task": self.task, "labels": list(self.labels), "inputs": inputs}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned. ValueError for an unknown task, and for labels that are not strings."""
        if state["task"] not in [*PRIMARY_METRIC]:
            raise ValueError(f"unknown task {truncated_repr(state['task'])}")
        check_strings("labels", state["labels"])
        self.task, self.labels = state["task"], tuple(state["labels"])
        for name, input in self.inputs.items():
            input.restore(state["inputs"][name])


def labels(corpus: Corpus) -> tuple[str, ...]:
    """O and the four BIOES tags of each type; for the task "tags", the tags themselves, sorted."""
    tags = tags_of(chain.from_iterable(corpus.splits.values()))
    if corpus.task == "tags":
        return tuple(sorted(tags))
    unreachable = {
        it.type for each in corpus.splits.values() for sentence in each for it in sentence.unreachable
    }
    types = sorted({tag[2:] for tag in tags if tag != "O"} | unreachable)
    return ("O", *(f"{prefix}-{kind}" for kind in types for prefix in "BIES"))
