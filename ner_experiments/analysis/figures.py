"""The figures of a row's finished runs, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ner_experiments import build
from ner_experiments.analysis.measure import CHUNK, LENGTH, TYPE, Figures
from ner_experiments.analysis.mentions import by_length, by_type
from ner_experiments.analysis.parts import recalls
from ner_experiments.analysis.predictions import read
from ner_experiments.analysis.trained import read_corpus

OF_MENTIONS = {TYPE: by_type, LENGTH: by_length}


def by_seed(figure: str, folders: Mapping[int, Path], source: Any) -> dict[int, Figures]:
    """`source` is the config of the runs' corpus, which may lie elsewhere now than when they were trained.

    ValueError or OSError if the corpus or a run cannot be read.
    """
    if figure == CHUNK:
        dev = read_corpus(source).splits["dev"]
        return {seed: recalls(*build.load(folder), dev) for seed, folder in folders.items()}
    return {seed: {"": OF_MENTIONS[figure](read(folder))} for seed, folder in folders.items()}
