"""Whether an exported tagger gives the tags of the one that it was made of, sentence by sentence.

A tagger from named tensors to tags, traced for any number of sentences and tokens.

From a run's folder to a folder that holds its tagger in other formats, tried before it is there.
"""

from __future__ import annotations

import copy
import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from ner_experiments import build
from ner_experiments.build import batches
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.export.card import card
from ner_experiments.export.formats import FORMATS, Tagged, quiet
from ner_experiments.export.inputs import description, made_up, refuse
from ner_experiments.export.traceable import traceable
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run, open_run
from ner_experiments.tagger import Tagger
from ner_experiments.utils.files import write_json

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
        splits = build.corpus_of(folder).splits
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
        for batch in build.batches(encoder, sentences):
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


LENGTHS = "lengths"
NO_TENSOR = torch.empty(0)


def tensors(batch: Batch) -> dict[str, Tensor]:
    """A batch as the exported tagger reads it: `lengths`, and each input at every token."""
    spread = {name: batch.spread(name, rows) for name, rows in batch.inputs.items()}
    return {LENGTHS: batch.lengths, **{name: x.long() for name, x in spread.items()}}


class Traced(nn.Module):
    """The tagger's tags and scores, from what `tensors` makes of a batch. What is at padding is not read."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        self.tagger = copy.deepcopy(tagger).eval()
        self.tagger.requires_grad_(
            False
        )  # for gradients `scan` is computed in another way, which has no ONNX
        traceable(self.tagger)

    def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        lengths = given[LENGTHS]
        inputs = {name: x for name, x in given.items() if name != LENGTHS}
        batch, time = next(iter(inputs.values())).shape[:2]
        mask = torch.arange(time, device=lengths.device) < lengths[:, None]
        places = torch.arange(batch * time, device=lengths.device).view(batch, time)
        scores = self.tagger(
            Batch(
                sentences=NO_TENSOR,
                lengths=lengths,
                mask=mask,
                tags=NO_TENSOR,
                inputs={name: without_padding(x, mask).flatten(0, 1) for name, x in inputs.items()},
                places=dict.fromkeys(inputs, places),
            )
        )
        tags = self.tagger.decoder.decode(scores, mask)
        return {"tags": tags, "scores": scores.masked_fill(~mask[:, :, None], 0)}


def without_padding(x: Tensor, mask: Tensor) -> Tensor:
    """Padding repeats the first token of its sentence, as in the batches that the tagger was trained on."""
    return torch.where(mask.view(*mask.shape, *[1] * (x.ndim - 2)), x, x[:, :1])


def trace(tagger: Tagger, example: Mapping[str, Tensor]) -> ExportedProgram:
    """For any number of sentences, tokens, and numbers a token; `example` has two of each at least."""
    batch, time = Dim("batch"), Dim("time")
    dims = {name: dict(enumerate((batch, time, Dim.AUTO)[: x.ndim])) for name, x in example.items()}
    with torch.no_grad(), quiet():
        return torch.export.export(Traced(tagger), (dict(example),), dynamic_shapes=(dims,))


EXAMPLE = 3
"""Sentences to trace with: two at least, as one sentence would be taken for the only number of them."""


@dataclass(frozen=True)
class Exported:
    """`differences`: of each file, the largest difference of a score."""

    folder: Path
    tried: Tried
    differences: dict[str, float]


def export(folder: Path, output: Path, *, format: str, number: int) -> Exported:
    """Writes the export of a run. ValueError or OSError if it cannot be made, or is not equal to the run."""
    for each in FORMATS[format]:
        each.require()
    if output.exists():
        raise ValueError(f"{output} is there already: take it away, or choose another folder by --output")
    run = read(folder)
    tagger, encoder = build.load(folder)
    refuse(encoder)
    tried = to_try(folder, encoder, number)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as place:
        part = Path(place) / output.name
        part.mkdir()
        exported = Exported(output, tried, write(tagger, encoder, tried, part, format))
        text = card(run, tried.origin, exported.differences)
        (part / "README.md").write_text(text, encoding="utf-8")
        part.rename(output)
    return exported


def read(folder: Path) -> Run:
    """A finished run. ValueError if it is none, or one of its files is not as it was."""
    run = open_run(folder)
    artifacts.verify(folder, run.metrics)
    return run


def write(tagger: Tagger, encoder: Encoder, tried: Tried, folder: Path, format: str) -> dict[str, float]:
    """The files, each of which is read again and tried."""
    example = tensors(next(batches(encoder, made_up(encoder, EXAMPLE))))
    program = trace(tagger, example)
    differences = {}
    for each in FORMATS[format]:
        path = folder / each.file
        each.write(program, [*example], path)
        differences[each.file] = differ(tagger, encoder, tried.sentences, each.read(path), each.file)
    write_json(folder / "encoder.json", description(encoder, example))
    return differences
