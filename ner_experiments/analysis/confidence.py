"""How probable a finished run holds the mentions that it predicts, and whether it can be believed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from ner_experiments.analysis.calibration import Calibration, calibration
from ner_experiments.analysis.predictions import units
from ner_experiments.analysis.trained import batches, load_with_corpus
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span
from ner_experiments.tagger import Tagger
from ner_experiments.tagging import decoded

log = logging.getLogger(__name__)

Found = tuple[int, Span, float]
"""The number of a sentence, from 0; a predicted mention; its probability."""


def of_run(folder: Path) -> Calibration | None:
    """Of its predicted mentions on test, or where single tokens are tagged, of their tags.

    None if there are none, or if the run or its corpus cannot be read as it was: the log says why. On a GPU
    where there is one.
    """
    try:
        tagger, encoder, corpus = load_with_corpus(folder)
    except (ValueError, OSError) as error:
        log.warning("the calibration is left out: %s", error)
        return None
    test = corpus.splits["test"]
    tagger.to("cuda" if torch.cuda.is_available() else "cpu")
    found = list(predicted(tagger, encoder, test))
    gold = [set(units(sentence.tags, encoder.task)) for sentence in test]
    return calibration(
        np.array([probability for _, _, probability in found]),
        np.array([mention in gold[number] for number, mention, _ in found], dtype=bool),
        np.array([number for number, _, _ in found], dtype=np.int64),
        len(test),
    )


@torch.inference_mode()
def predicted(tagger: Tagger, encoder: Encoder, sentences: list[Sentence]) -> Iterator[Found]:
    """Each mention of the decoded tags, with the probability that its tokens have these tags.

    Under the CRF that is exact, whatever the tags of the other tokens; under the softmax it is the product of
    the tokens'.
    """
    for batch in batches(encoder, sentences, tagger.device):
        of_batch = decoded(tagger, encoder, batch)
        for number, (_, mentions, probabilities) in zip(batch.sentences.tolist(), of_batch, strict=True):
            for mention, probability in zip(mentions, probabilities, strict=True):
                yield number, mention, probability
