"""From sentences to batches of tensors: vocabulary, flat tensors, and the gathering of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ner_experiments.data.inputs import Input
from ner_experiments.data.sentence import Corpus, Sentence, Task
from ner_experiments.data.text import Text, Where


@dataclass(frozen=True)
class Batch:
    """Sentences padded to the longest. `mask` is True on real tokens; tags are 0 on padding.

    The module of input `name` is called with `inputs[name]`; row `places[name][b, t]` of what it returns
    belongs to token t of sentence b. Inputs that are `shared` are the same in all batches of the split.
    """

    sentences: Tensor
    lengths: Tensor
    mask: Tensor
    tags: Tensor
    inputs: dict[str, Any]
    places: dict[str, Tensor]
    shared: frozenset[str] = frozenset()

    def spread(self, name: str, rows: Tensor) -> Tensor:
        """What was computed per row of input `name`, at the tokens: [rows ...] -> [batch time ...]."""
        return rows[self.places[name]]


class Encoded:
    """A split in flat tensors, on one device: any batch is a few gathers away."""

    def __init__(self, text: Text, tags: Tensor, inputs: Mapping[str, Input], device: torch.device) -> None:
        self.lengths = text.lengths
        self._starts = torch.from_numpy(text.starts[:-1]).to(device)
        self._lengths = torch.from_numpy(text.lengths).to(device)
        self._forms = torch.from_numpy(text.tokens).to(device)
        self._tags = tags.to(device)
        self._rows = {name: input.encode(text).to(device) for name, input in inputs.items()}

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, sentences: np.ndarray, *, share: bool = False) -> Batch:
        """The given sentences, in the given order. To share is to have all forms of the split as inputs."""
        time = int(self.lengths[sentences].max())
        numbers = torch.from_numpy(sentences).to(self._starts.device)
        lengths = self._lengths[numbers]
        steps = torch.arange(time, device=numbers.device)
        mask = steps < lengths[:, None]
        tokens = self._starts[numbers, None] + steps * mask
        forms, places = torch.unique(self._forms[tokens], return_inverse=True)
        where = Where(numbers, tokens, mask, forms, places)
        shared = {name: found for name, rows in self._rows.items() if share and (found := rows.share(where))}
        selected = {name: shared.get(name) or rows.select(where) for name, rows in self._rows.items()}
        return Batch(
            sentences=numbers,
            lengths=lengths,
            mask=mask,
            tags=self._tags[tokens] * mask,
            inputs={name: inputs for name, (inputs, _) in selected.items()},
            places={name: places for name, (_, places) in selected.items()},
            shared=frozenset(shared),
        )


class Encoder:
    """Everything that stands between a corpus and a model, and nothing of either.

    `labels` are O and the four BIOES tags of each type, or the tags as they are where each is scored;
    they are taken from all splits, so that a mention whose type is missing from train still counts as missed.
    """

    def __init__(self, inputs: Mapping[str, Input]) -> None:
        self.inputs = dict(inputs)
        self.labels: tuple[str, ...] = ()
        self.task: Task = "mentions"

    def fit(self, corpus: Corpus) -> None:
        self.task = corpus.task
        self.labels = labels(corpus)
        texts = {name: Text.of(sentences) for name, sentences in corpus.splits.items()}
        train = texts.pop("train")
        for input in self.inputs.values():
            input.fit(train, texts.values())

    def encode(self, sentences: Sequence[Sentence], device: torch.device) -> Encoded:
        ids = {label: number for number, label in enumerate(self.labels)}
        tags = torch.tensor([ids[tag] for sentence in sentences for tag in sentence.tags])
        return Encoded(Text.of(sentences), tags, self.inputs, device)

    def notes(self) -> list[str]:
        """What the inputs have to say about what they read."""
        return [note for input in self.inputs.values() for note in input.notes()]

    def checksums(self) -> list[str]:
        """Of what each input learned from besides the corpus."""
        return [checksum for input in self.inputs.values() if (checksum := input.checksum())]

    def state(self) -> dict[str, Any]:
        """As JSON takes it: with this and the weights a model can be used without its corpus."""
        inputs = {name: input.state() for name, input in self.inputs.items()}
        return {"task": self.task, "labels": list(self.labels), "inputs": inputs}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.task, self.labels = state["task"], tuple(state["labels"])
        for name, input in self.inputs.items():
            input.restore(state["inputs"][name])


def labels(corpus: Corpus) -> tuple[str, ...]:
    """O and the four BIOES tags of each type, or the tags as they are where every token's tag is scored."""
    tags = {tag for sentence in all_sentences(corpus) for tag in sentence.tags}
    if corpus.task == "tags":
        return tuple(sorted(tags))
    types = sorted({tag[2:] for tag in tags if tag != "O"})
    return ("O", *(f"{prefix}-{kind}" for kind in types for prefix in "BIES"))


def all_sentences(corpus: Corpus) -> Iterable[Sentence]:
    return (sentence for split in corpus.splits.values() for sentence in split)
