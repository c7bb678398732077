"""Whether an exported tagger gives the tags of the one that it was made of, sentence by sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ner_experiments.analysis import trained
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.export.formats import Tagged
from ner_experiments.export.inputs import made_up
from ner_experiments.export.traced import tensors
from ner_experiments.tagger import Tagger

log = logging.getLogger(__name__)

SCORED = ("dev", "test")
FAR = 1e-3
"""Scores differ by rounding, of 1e-6 or so; what is farther apart is something else that is computed."""


@dataclass(frozen=True)
class Tried:
    """The sentences that an export is tried on, and in words where they come from."""

    sentences: Sequence[Sentence]
    origin: str


def to_try(folder: Path, encoder: Encoder, number: int) -> Tried:
    """As many as asked for: of dev and test, and made up where these are too few or not as they were."""
    try:
        splits = trained.corpus_of(folder).splits
        found, why = {split: splits[split] for split in SCORED if split in splits}, ""
    except (ValueError, OSError) as error:
        log.warning("%s", error)
        found, why = {}, ", as the run's corpus is not there as it was"
    sentences: list[Sentence] = []
    parts = []
    for split, of_split in found.items():
        if taken := of_split[: number - len(sentences)]:
            sentences += taken
            parts.append(f"{len(taken):,} of {split}")
    if missing := number - len(sentences):
        sentences += made_up(encoder, missing)
        parts.append(f"{missing:,} made up of its words and characters{why}")
    return Tried(sentences, ", ".join(parts))


def differ(
    tagger: Tagger,
    encoder: Encoder,
    sentences: Sequence[Sentence],
    run: Callable[[Mapping[str, Tensor]], Tagged],
    name: str,
) -> float:
    """The largest difference of a score. ValueError if there is one of a tag, or a large one of a score."""
    wrong, gaps = 0, []
    with torch.no_grad():
        for batch in trained.batches(encoder, sentences):
            tags, scores = run(tensors(batch))
            expected = tagger(batch)
            wrong += int((tags != tagger.decoder.decode(expected, batch.mask)).any(1).sum())
            expected = expected.masked_fill(~batch.mask[:, :, None], 0)
            gaps.append((scores - expected).abs().max())
    farthest = torch.stack(gaps).max().item()  # NaN if there is one, which the max of Python may lose
    if wrong or not farthest <= FAR:
        raise ValueError(
            f"{name} is not equal to the run: of {len(sentences):,} sentences {wrong:,} have other tags, "
            f"and a score differs by {farthest:.2g}; nothing was written"
        )
    return farthest
