"""Recall of each chunk tag with all but one part of Att ablated: table 5 of Li, Fu & Ma (2020)."""

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
    """Token recall of the chunk tags O S B I E in percent, for the model ("") and for each of its parts alone.

    The paper reports "per-token recalls for each chunking tag", in a task "without disambiguating their types"
    (section 4.6). Reading: the share of tokens with that gold tag whose predicted tag has the same letter, whatever
    its type and the tags around it. For a part, the outputs of all others are set to 0 before the output layer;
    nothing is retrained, and the decoder is the run's. Tags without a gold token are left out. ValueError if the
    corpus is scored tag by tag.
    """
    if encoder.task != "mentions":
        raise ValueError("chunk tags require a corpus of mentions, and the run's has none")
    ablations = parts(tagger)
    gold, correct = Counter[str](), {part: Counter[str]() for part in ablations}
    letter = [label[0] for label in encoder.labels]
    for batch in batches(encoder, sentences):
        expected = [letter[tag] for tag in batch.tags[batch.mask].tolist()]
        gold.update(expected)
        for part, alone in ablations.items():
            with alone():
                predicted = [letter[tag] for tag in decode(tagger, batch)[batch.mask].tolist()]
            correct[part].update(tag for tag, other in zip(expected, predicted, strict=True) if tag == other)
    return {
        part: {tag: 100 * counts[tag] / gold[tag] for tag in CHUNK_TAGS if gold[tag]}
        for part, counts in correct.items()
    }


def parts(tagger: Tagger) -> dict[str, Callable[[], AbstractContextManager[None]]]:
    """Context managers by part, which ablate all other parts. "" ablates nothing; only Att has other parts."""
    model = tagger.model
    ablations: dict[str, Callable[[], AbstractContextManager[None]]] = {"": nullcontext}
    if isinstance(model, AttBiLSTM):
        ablations |= {part: partial(only, part, of=model) for part in model.parts()}
    return ablations
