"""The figures of a row's finished runs, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ner_experiments import build
from ner_experiments.analysis.measure import CHUNK, Figures
from ner_experiments.analysis.parts import recalls
from ner_experiments.analysis.trained import read_corpus
from ner_experiments.runs import KeptRun, Run


def by_seed(figure: str, runs: Mapping[int, Run], source: Any) -> dict[int, Figures]:
    """`source` is the config of the runs' corpus, which may lie elsewhere now than when they were trained.

    Of kept runs there is no figure "chunk". ValueError or OSError if all are kept ones, or if the corpus or a
    run cannot be read.
    """
    if figure == CHUNK:
        trained = {seed: run for seed, run in runs.items() if not isinstance(run, KeptRun)}
        if runs and not trained:
            kept = next(iter(runs.values())).folder
            raise ValueError(f"{kept}: parts of a model are measured on its weights, and kept runs have none")
        dev = read_corpus(source).splits["dev"]
        return {seed: recalls(*build.load(run.folder), dev) for seed, run in trained.items()}
    return {seed: {"": run.figures(figure)} for seed, run in runs.items()}
