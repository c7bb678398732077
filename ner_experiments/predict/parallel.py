"""Tagging in several processes, each with the tagger of the run and one thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from ner_experiments.data.tokenize import TokenizedSentence
from ner_experiments.predict import tagger
from ner_experiments.predict.tagger import TaggedSentence, TextTagger

_tagger: TextTagger
"""The tagger of a worker process."""


def tag_in_processes(
    run: Path, settings: Mapping[str, Any], sentences: Iterable[TokenizedSentence], jobs: int
) -> Iterator[TaggedSentence]:
    """Tag sentences lazily and in order, in chunks of `tagger.CHUNK` tokens. `settings` are those of `tagger.load`."""
    waiting: deque[Future[list[TaggedSentence]]] = deque()
    context = get_context("spawn")  # a fork would copy PyTorch's threads in an unknown state
    with ProcessPoolExecutor(jobs, context, _start, (run, settings)) as workers:
        for chunk in tagger.chunks(sentences):
            waiting.append(workers.submit(_tag, chunk))
            if len(waiting) > 2 * jobs:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _start(run: Path, settings: Mapping[str, Any]) -> None:
    global _tagger
    torch.set_num_threads(1)
    _tagger = tagger.load(run, **settings)


def _tag(chunk: Sequence[TokenizedSentence]) -> list[TaggedSentence]:
    return list(_tagger.stream(chunk))
