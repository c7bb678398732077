"""Export of a run's tagger to other formats, each verified to reproduce the run's tags before it is written."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from ner_experiments import build
from ner_experiments.data.corpus import Source
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.experiment_data import corpus_of, source
from ner_experiments.export import client, client_files
from ner_experiments.export.card import card
from ner_experiments.export.formats import FORMATS, Onnx, Outputs, suppress_warnings
from ner_experiments.export.inputs import check_exportable, description, random_sentences
from ner_experiments.export.scored_tags import check_scored_tags
from ner_experiments.export.traceable import traceable
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run, open_run
from ner_experiments.tagger import Tagger
from ner_experiments.utils.files import atomic_folder, write_json

log = logging.getLogger(__name__)

SCORED_SPLITS = ("dev", "test")
TOLERANCE = 1e-3
"""Largest accepted difference of a score. Rounding alone causes differences of about 1e-6."""
EXAMPLE_SENTENCES = 3
"""Number of sentences to trace with. At least two, because torch.export would specialize on a batch of one."""
LENGTHS = "lengths"
NO_TENSOR, NO_SENTENCES = torch.empty(0), np.empty(0)


@dataclass(frozen=True)
class CheckedSentences:
    """The sentences that an export is verified on, and a description of their origin."""

    sentences: Sequence[Sentence]
    origin: str


@dataclass(frozen=True)
class Exported:
    """A finished export. `differences`: file -> the largest difference of a score."""

    folder: Path
    checked: CheckedSentences
    differences: dict[str, float]


def export(folder: Path, output: Path, *, format: str, number: int) -> Exported:
    """Export a run to the folder `output`, verified on `number` sentences.

    Raises ValueError or OSError if this fails, or if the export does not reproduce the run; `output` then does not
    exist.
    """
    for each in FORMATS[format]:
        each.require()
    if output.exists():
        raise ValueError(f"{output} already exists: remove it, or choose another folder with --output")
    run = open_run(folder)
    artifacts.verify(folder, run.metrics)
    tagger, encoder = build.load_with_config(folder, run.config)
    check_exportable(encoder)
    check_scored_tags(run, tagger, encoder)
    checked = sentences_to_check(run, encoder, number)
    with atomic_folder(output) as part:
        text = source(run.config)
        exported = Exported(output, checked, write(tagger, encoder, text, checked, part, format))
        if Onnx.file in exported.differences and not (reason := client_files.obstacle(encoder, text.tokens)):
            client_files.write(part)
            check_client(tagger, encoder, checked.sentences, part)
        elif Onnx.file in exported.differences:
            log.warning("tag.py, which tags text without the suite, is left out: %s", reason)
        about = {
            "origin": checked.origin,
            "differences": exported.differences,
            "names": [path.name for path in part.iterdir()],
        }
        (part / "README.md").write_text(card(run, exported=about), encoding="utf-8")
    return exported


def write(
    tagger: Tagger, encoder: Encoder, text: Source, checked: CheckedSentences, folder: Path, format: str
) -> dict[str, float]:
    """Write the files, read each back and verify it. Returns file -> the largest difference of a score."""
    example = tensors(next(build.batches(encoder, random_sentences(encoder, EXAMPLE_SENTENCES))))
    program = trace(tagger, example)
    differences = {}
    for each in FORMATS[format]:
        path = folder / each.file
        each.write(program, [*example], path)
        differences[each.file] = max_difference(
            tagger, encoder, checked.sentences, each.read(path), each.file
        )
    write_json(folder / "encoder.json", description(encoder, example, text))
    return differences


def check_client(tagger: Tagger, encoder: Encoder, sentences: Sequence[Sentence], folder: Path) -> None:
    """Raise ValueError if tag.py gives another tag than the tagger."""
    written, differing = client.Tagger(folder), 0
    with torch.no_grad():
        for batch in build.batches(encoder, sentences):
            found = written.tags([sentences[number].words for number in batch.sentences.tolist()])
            for row, tags in zip(build.decode(tagger, batch).tolist(), found, strict=True):
                differing += [encoder.labels[tag] for tag in row[: len(tags)]] != tags
    if differing:
        raise ValueError(
            f"tag.py does not reproduce the run: {differing:,} of {len(sentences):,} sentences have different tags; "
            "nothing was written"
        )


def trace(tagger: Tagger, example: Mapping[str, Tensor]) -> ExportedProgram:
    """The tagger, traced for any number of sentences, tokens, and features per token.

    `example` has at least two sentences, tokens and features.
    """
    batch, time = Dim("batch"), Dim("time")
    dims = {name: dict(enumerate((batch, time, Dim.AUTO)[: x.ndim])) for name, x in example.items()}
    with torch.no_grad(), suppress_warnings():
        return torch.export.export(TracedTagger(tagger), (dict(example),), dynamic_shapes=(dims,))


class TracedTagger(nn.Module):
    """Maps the named tensors of `tensors` to tags and scores, independent of the values at padding."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        self.tagger = copy.deepcopy(tagger).eval()
        self.tagger.requires_grad_(False)  # with gradients `scan` traces differently, without ONNX support
        traceable(self.tagger)

    def forward(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        lengths = tensors[LENGTHS]
        inputs = {name: x for name, x in tensors.items() if name != LENGTHS}
        batch, time = next(iter(inputs.values())).shape[:2]
        mask = torch.arange(time, device=lengths.device) < lengths[:, None]
        places = torch.arange(batch * time, device=lengths.device).view(batch, time)
        scores = self.tagger(
            Batch(
                sentences=NO_SENTENCES,
                lengths=lengths,
                mask=mask,
                tags=NO_TENSOR,
                inputs={name: repeat_first_token(x, mask).flatten(0, 1) for name, x in inputs.items()},
                places=dict.fromkeys(inputs, places),
            )
        )
        tags = self.tagger.decoder.decode(scores, mask)
        return {"tags": tags, "scores": scores.masked_fill(~mask[:, :, None], 0)}


def repeat_first_token(x: Tensor, mask: Tensor) -> Tensor:
    """Fill padding with the first token of its sentence, as in the batches of training."""
    return torch.where(mask.view(*mask.shape, *[1] * (x.ndim - 2)), x, x[:, :1])


def tensors(batch: Batch) -> dict[str, Tensor]:
    """Named tensors that the exported tagger takes: `lengths`, and each input at every token."""
    spread = {name: batch.spread(name, rows) for name, rows in batch.inputs.items()}
    return {LENGTHS: batch.lengths, **{name: x.long() for name, x in spread.items()}}


def sentences_to_check(run: Run, encoder: Encoder, number: int) -> CheckedSentences:
    """`number` sentences of dev and test, filled up with random ones if there are too few or the data has changed."""
    try:
        splits = corpus_of(run).splits
        available, reason = {split: splits[split] for split in SCORED_SPLITS if split in splits}, ""
    except (ValueError, OSError) as error:
        log.warning("%s", error)
        available, reason = {}, ", because the run's corpus is missing or has changed"
    sentences: list[Sentence] = []
    parts = []
    for split, of_split in available.items():
        if taken := of_split[: number - len(sentences)]:
            sentences += taken
            parts.append(f"{len(taken):,} of {split}")
    if missing := number - len(sentences):
        sentences += random_sentences(encoder, missing)
        parts.append(f"{missing:,} random ones of its words and characters{reason}")
    return CheckedSentences(sentences, ", ".join(parts))


def max_difference(
    tagger: Tagger,
    encoder: Encoder,
    sentences: Sequence[Sentence],
    run: Callable[[Mapping[str, Tensor]], Outputs],
    name: str,
) -> float:
    """Largest difference between a score of the tagger and of `run`, the exported file.

    Raises ValueError if a tag differs, or a score by more than `TOLERANCE`.
    """
    differing, differences = 0, []
    with torch.no_grad():
        for batch in build.batches(encoder, sentences):
            tags, scores = run(tensors(batch))
            expected = tagger(batch)
            differing += int((tags != tagger.decoder.decode(expected, batch.mask)).any(1).sum())
            expected = expected.masked_fill(~batch.mask[:, :, None], 0)
            differences.append((scores - expected).abs().max())
    largest = torch.stack(differences).max().item()  # propagates NaN, unlike Python's max
    if differing or not largest <= TOLERANCE:
        raise ValueError(
            f"{name} does not reproduce the run: {differing:,} of {len(sentences):,} sentences have different tags, "
            f"and scores differ by up to {largest:.2g}; nothing was written"
        )
    return largest
