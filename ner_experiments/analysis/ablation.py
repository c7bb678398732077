"""Recall of each chunk tag when only a part of Att is left: table 5 of Li, Fu & Ma (2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch

from ner_experiments.build import batches, decode
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import CHUNK_TAGS
from ner_experiments.models.attention import AttBiLSTM, only
from ner_experiments.tagger import Tagger


@torch.inference_mode()
def recalls(tagger: Tagger, encoder: Encoder, sentences: Sequence[Sentence]) -> dict[str, dict[str, float]]:
    """Recall of the chunk tags O S B I E by tokens, in percent: of the model (""), and of each of its parts.

    The paper has "per-token recalls for each chunking tag", of a task "without disambiguating their types"
    (section 4.6). Reading: of the tokens with that gold tag, the share whose predicted tag has the same
    letter; its type may be another, and the tags around it may make no whole mention. Of a part: all others
    are 0 before the output layer; nothing is trained again, and the decoder is the run's. A tag that no token
    has is left out. ValueError where no mentions are tagged.
    """
    if encoder.task != "mentions":
        raise ValueError("chunk tags are those of mentions, and the run's corpus has none")
    left = parts(tagger)
    gold, right = Counter[str](), {part: Counter[str]() for part in left}
    letter = [label[0] for label in encoder.labels]
    for batch in batches(encoder, sentences):
        expected = [letter[tag] for tag in batch.tags[batch.mask].tolist()]
        gold.update(expected)
        for part, alone in left.items():
            with alone():
                found = [letter[tag] for tag in decode(tagger, batch)[batch.mask].tolist()]
            right[part].update(tag for tag, other in zip(expected, found, strict=True) if tag == other)
    return {
        part: {tag: 100 * counts[tag] / gold[tag] for tag in CHUNK_TAGS if gold[tag]}
        for part, counts in right.items()
    }


def parts(tagger: Tagger) -> dict[str, Callable[[], AbstractContextManager[None]]]:
    """What can be left of the model, and within what nothing else is. Only Att has parts but the whole."""
    model = tagger.model
    left: dict[str, Callable[[], AbstractContextManager[None]]] = {"": nullcontext}
    if isinstance(model, AttBiLSTM):
        left |= {part: partial(only, part, of=model) for part in model.parts()}
    return left
