"""Whether a tagger still gives the tags that were scored, so that an export may carry the scores."""

from __future__ import annotations

import torch

from ner_experiments import build
from ner_experiments.data.encoder import Encoder
from ner_experiments.experiment_data import corpus_of
from ner_experiments.runs import artifacts
from ner_experiments.runs.code import other_tags
from ner_experiments.runs.predictions import as_field, iob2
from ner_experiments.runs.run import Run
from ner_experiments.tagger import Tagger


def check_scored_tags(run: Run, tagger: Tagger, encoder: Encoder) -> None:
    """Raise ValueError if the code has changed so that test now gets other tags, or where that can't be told."""
    if not (changed := other_tags(run.folder / artifacts.CODE, run.config)) or "test" not in run.metrics:
        return
    way_out = "undo the change, or train the run again"
    try:
        test = corpus_of(run).splits["test"]
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{changed}, and no test set shows whether its tags have: {error}; {way_out}"
        ) from error
    scored, differing = run.predicted_tags(), 0
    with torch.no_grad():
        for batch in build.batches(encoder, test):
            ids = build.decode(tagger, batch).tolist()
            for number, row in zip(batch.sentences.tolist(), ids, strict=True):
                tags = [encoder.labels[tag] for tag in row[: len(test[number].words)]]
                written = tags if encoder.task == "tags" else iob2(tags)
                differing += tuple(map(as_field, written)) != scored[number]
    if differing:
        raise ValueError(
            f"{run.folder}: {changed}, by which {differing:,} of {len(test):,} test sentences get other tags than "
            f"those that were scored; {way_out}"
        )
