"""From a run's folder to a folder that holds its tagger in other formats, tried before it is there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ner_experiments import build, sealed
from ner_experiments.analysis import trained
from ner_experiments.data.encoder import Encoder
from ner_experiments.export.card import card
from ner_experiments.export.equality import Tried, differ, to_try
from ner_experiments.export.formats import FORMATS
from ner_experiments.export.inputs import description, made_up, refuse
from ner_experiments.export.traced import tensors, trace
from ner_experiments.results import write_json
from ner_experiments.runs import Run, run_of
from ner_experiments.tagger import Tagger

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
    run = run_of(folder)
    sealed.verify(folder, run.metrics)
    return run


def write(tagger: Tagger, encoder: Encoder, tried: Tried, folder: Path, format: str) -> dict[str, float]:
    """The files, each of which is read again and tried."""
    example = tensors(next(trained.batches(encoder, made_up(encoder, EXAMPLE))))
    program = trace(tagger, example)
    differences = {}
    for each in FORMATS[format]:
        path = folder / each.file
        each.write(program, [*example], path)
        differences[each.file] = differ(tagger, encoder, tried.sentences, each.read(path), each.file)
    write_json(folder / "encoder.json", description(encoder, example))
    return differences
