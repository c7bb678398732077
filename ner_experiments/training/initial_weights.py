"""The weights from which the second of two stages starts: those of the first run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ner_experiments.build import read_weights
from ner_experiments.data.encoder import Encoder
from ner_experiments.runs.artifacts import ENCODER
from ner_experiments.tagger import Tagger
from ner_experiments.utils.text import read_json_object


def load_first_run(folder: Path, tagger: Tagger, encoder: Encoder, *, own_words: bool) -> None:
    """Load the weights of the first run, which is finished. If the runs' word inputs differ, the second keeps its own.

    own_words: whether the settings say that they differ, although the files may not.

    Raises ValueError if labels or another input were fitted on other data, and if a layer has another shape.
    """
    before, now = read_json_object(folder / ENCODER), json.loads(json.dumps(encoder.state()))
    inputs, own_inputs = before.pop("inputs"), now.pop("inputs")
    weights = read_weights(folder)
    shapes, own_shapes = (
        {name: [*weight.shape] for name, weight in each.items()} for each in (weights, tagger.state_dict())
    )
    words = [name for name in shapes | own_shapes if name.startswith("inputs.words.")]
    if (
        own_words
        or inputs.get("words") != own_inputs.get("words")
        or any(shapes.get(name) != own_shapes.get(name) for name in words)
    ):
        for each in (weights, shapes, own_shapes):
            for name in words:
                each.pop(name, None)
        inputs.pop("words", None), own_inputs.pop("words", None)
    if other := differing_keys(before | inputs, now | own_inputs):
        raise ValueError(
            f"init_from: {', '.join(other)} of {folder} and of this run differ, as they were fitted on other data"
        )
    if other := differing_keys(shapes, own_shapes):
        name = other[0]
        raise ValueError(
            f"init_from: {name} has the shape {shapes.get(name)} in {folder}, and {own_shapes.get(name)} in this run"
        )
    tagger.load_state_dict(tagger.state_dict() | weights)


def differing_keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys that do not have the same value in both."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]
