"""Runs compiled kernels on CPU tensors: numba is imported, and they are compiled, on first use.

Threads are Python's own, as many as PyTorch is set to: numba's layers either spin between two calls or must
not be entered twice, and their code would be compiled a second time. A batch is cut into chunks, by its shape
alone, so that results do not depend on the number of threads; each thread takes the next one when it is free,
since threads that PyTorch leaves spinning may hold it up.
"""

import functools
import importlib
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

log = logging.getLogger(__name__)

GRAIN = 4_000_000
"""Work of a chunk, about 0.6 ms, in the unit of `num_chunks`."""
MOST_CHUNKS = 16
CHUNKS_PER_THREAD = 4
"""At least. Less gains nothing after PyTorch's own threads, which spin for milliseconds."""
NO_TAGS = torch.empty(0, 0, dtype=torch.long)


class Kernels(NamedTuple):
    batch: Any
    products: Any
    logs: Any
    viterbi: Any
    tiles: Any
    lstm_units: Any
    lstm_batch: Any
    lstm_ahead: Any
    lstm_back: Any


@functools.cache
def have_numba() -> bool:
    try:
        importlib.import_module("numba")
    except ImportError as error:
        log.warning("CRF and LSTMs do without their compiled kernels, and are many times slower: %s", error)
        return False
    return True


@functools.cache
def kernels() -> Kernels:
    crf = ("crf_kernels_batch", "crf_kernels", "crf_kernels_logs", "crf_kernels_viterbi")
    lstm = (
        "tile_kernels",
        "lstm_kernels_units",
        "lstm_kernels_batch",
        "lstm_kernels_ahead",
        "lstm_kernels_back",
    )
    return Kernels(*(importlib.import_module(f"ner_experiments.modules.{name}") for name in crf + lstm))


def serve(scores: Tensor) -> bool:
    return scores.is_cpu and have_numba()


def likelihood(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    *transitions: Tensor,
    weight: float,
    derive: bool,
) -> list[Tensor]:
    """The sum of the sentences' log Z, each less the score of its tags, times the weight.

    After it, if told to derive, its gradient by scores, start, pairs and end.
    """
    sentences, time, size = scores.shape
    chunks = num_chunks(scores, grain=GRAIN)
    gold = NO_TAGS if tags is None else tags.long()
    arrays = [array(x) for x in (mask, gold, scores, *transitions)]
    dtype = arrays[2].dtype
    result = kernels().batch.Result(
        losses=np.empty(sentences, dtype),
        refused=np.empty(sentences, np.bool_),
        by_scores=np.empty((derive * sentences, time, size), dtype),
        by_transitions=np.empty((chunks, size + 2, size), dtype),
        loss=np.empty((), dtype),
        by_start=np.empty(size, dtype),
        by_pairs=np.empty((size, size), dtype),
        by_end=np.empty(size, dtype),
    )
    refused = run(kernels().products.share, chunks, *arrays, weight, result)
    if any(refused):
        run(kernels().logs.share, chunks, *arrays, weight, result)
    if any(refused) or len(refused) > 1:
        call(kernels().batch.sum_up, weight, result)
    found = (result.loss, result.by_scores, result.by_start, result.by_pairs, result.by_end)
    return [torch.from_numpy(x) for x in found]


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Int[Tensor, "batch time"]:
    arrays = [array(x) for x in (mask, scores, *transitions)]
    tags = np.empty(arrays[0].shape, np.int64)
    chunks = num_chunks(scores, grain=3 * GRAIN)  # a third of the work of a loss with its gradient
    run(kernels().viterbi.share, chunks, *arrays, tags)
    return torch.from_numpy(tags)


def num_chunks(scores: Tensor, *, grain: int) -> int:
    """A token takes about as long as (tags + 16)^2."""
    sentences, time, size = scores.shape
    return max(1, min(MOST_CHUNKS, sentences, sentences * time * (size + 16) ** 2 // grain))


def array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.numpy(force=True))


def run(share: Any, chunks: int, *args: Any, per_thread: int = CHUNKS_PER_THREAD) -> list[Any]:
    """Runs the share of each chunk, or one of all; what they return."""
    threads = min(torch.get_num_threads(), chunks // per_thread)
    if threads <= 1:
        return [call(share, 0, chunks, chunks, *args)]
    numbers = iter(range(chunks))

    def work() -> list[Any]:
        return [call(share, number, number + 1, chunks, *args) for number in numbers]

    others = [pool(os.getpid()).submit(work) for _ in range(1, threads)]
    found = work()
    return found + [x for other in others if not other.cancel() for x in other.result()]


def call(kernel: Any, *args: Any) -> Any:
    """Says so when compiling it, which numba does once, took above a second."""
    known, start = len(kernel.overloads), time.perf_counter()
    result = kernel(*args)
    seconds = time.perf_counter() - start
    if len(kernel.overloads) > known and seconds > 1:
        kept = kernel.stats.cache_path or "no folder: neither this package's nor NUMBA_CACHE_DIR is writable"
        log.info("compiling %s took %.0f seconds; kept in %s", kernel.__module__, seconds, kept)
    return result


@functools.cache
def pool(process: int) -> ThreadPoolExecutor:
    """One for each process: threads do not survive a fork."""
    return ThreadPoolExecutor(thread_name_prefix="crf")
