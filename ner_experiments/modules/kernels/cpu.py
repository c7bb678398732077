"""Runs compiled kernels on CPU tensors: those of the CRF, and the time loop of LSTMs over sentences without padding.

numba is imported, and the kernels are compiled, on first use. Threads are Python's own, as many as PyTorch is set to:
numba's layers either spin between two calls or must not be entered twice, and their code would be compiled a second
time. A batch is cut into chunks by its shape alone, so that results do not depend on the number of threads; a thread
takes the next chunk when it is free, since threads that PyTorch leaves spinning may hold it up.
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
from torch.autograd.function import once_differentiable

log = logging.getLogger(__name__)

CRF_GRAIN = 4_000_000
"""Work of a chunk, about 0.6 ms, in the unit of `crf_chunks`."""
MOST_CHUNKS = 16
CHUNKS_PER_THREAD = 4
"""At least. Less gains nothing after PyTorch's own threads, which spin for milliseconds."""
NO_TAGS = torch.empty(0, 0, dtype=torch.long)


class Kernels(NamedTuple):
    crf: Any
    lstm: Any
    ops: Any


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
    names = ("crf_numba", "lstm_numba", "numba_ops")  # imported here, as numba takes seconds
    return Kernels(*(importlib.import_module(f"ner_experiments.modules.kernels.{name}") for name in names))


def numba_serves(scores: Tensor) -> bool:
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
    chunks = crf_chunks(scores, grain=CRF_GRAIN)
    gold = NO_TAGS if tags is None else tags.long()
    arrays = [array(x) for x in (mask, gold, scores, *transitions)]
    dtype = arrays[2].dtype
    result = kernels().crf.Result(
        losses=np.empty(sentences, dtype),
        refused=np.empty(sentences, np.bool_),
        by_scores=np.empty((derive * sentences, time, size), dtype),
        by_transitions=np.empty((chunks, size + 2, size), dtype),
        loss=np.empty((), dtype),
        by_start=np.empty(size, dtype),
        by_pairs=np.empty((size, size), dtype),
        by_end=np.empty(size, dtype),
    )
    refused = run(kernels().crf.likelihood_share, chunks, *arrays, weight, result)
    if any(refused):
        run(kernels().crf.share_in_logs, chunks, *arrays, weight, result)
    if any(refused) or len(refused) > 1:
        call(kernels().crf.sum_up, weight, result)
    found = (result.loss, result.by_scores, result.by_start, result.by_pairs, result.by_end)
    return [torch.from_numpy(x) for x in found]


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Int[Tensor, "batch time"]:
    arrays = [array(x) for x in (mask, scores, *transitions)]
    tags = np.empty(arrays[0].shape, np.int64)
    chunks = crf_chunks(scores, grain=3 * CRF_GRAIN)  # a third of the work of a loss with its gradient
    run(kernels().crf.viterbi_share, chunks, *arrays, tags)
    return torch.from_numpy(tags)


def crf_chunks(scores: Tensor, *, grain: int) -> int:
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


class Tokens:
    """Where they are for each direction, one of which may read backwards; see `lstm_kernels_batch`."""

    def __init__(self, lengths: Int[Tensor, " batch"], time: int, backwards: tuple[bool, ...]):
        lstm = kernels().lstm
        numbers = array(lengths.long())
        order = np.argsort(-numbers, kind="stable")
        ends = np.append(0, numbers[order].cumsum())
        self.batch: Any = lstm.Batch(order, numbers[order], ends[: -1 : lstm.GROUP].copy())
        self.shape = (len(lengths), time)
        self.places = torch.empty(len(backwards), int(ends[-1]), dtype=torch.long)
        for places, back in zip(self.places.numpy(), backwards, strict=True):
            call(lstm.place, self.batch, back, time, places)

    def of(self, x: Float[Tensor, "inputs batch time size"]) -> Float[Tensor, "directions tokens size"]:
        """From one x for each direction, or one for all."""
        return Gather.apply(x, self.places)  # type: ignore[no-untyped-call]

    def padded(
        self, x: Float[Tensor, "directions tokens size"]
    ) -> Float[Tensor, "directions batch time size"]:
        """Padding is 0."""
        return Scatter.apply(x, self.places, *self.shape)  # type: ignore[no-untyped-call]


class Gather(torch.autograd.Function):
    """x.flatten(1, 2)[:, places], whose gradient needs no addition since no place comes twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.inputs, ctx.batch, ctx.time = x.shape[:3]
        return gather(x, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_tokens: Tensor) -> tuple[Tensor, None]:
        by_x = scatter(by_tokens, ctx.saved_tensors[0], ctx.batch, ctx.time)
        return by_x if len(by_x) == ctx.inputs else by_x.sum(0, keepdim=True), None


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, batch: int, time: int) -> Tensor:
        ctx.save_for_backward(places)
        return scatter(x, places, batch, time)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_padded: Tensor) -> tuple[Tensor, None, None, None]:
        return gather(by_padded, ctx.saved_tensors[0]), None, None, None


def gather(x: Tensor, places: Tensor) -> Tensor:
    tokens = x.new_empty(*places.shape, x.shape[-1])
    for out, each, where in zip(tokens, x.expand(len(places), -1, -1, -1), places, strict=True):
        torch.index_select(each.reshape(-1, x.shape[-1]), 0, where, out=out)
    return tokens


def scatter(x: Tensor, places: Tensor, batch: int, time: int) -> Tensor:
    padded = x.new_zeros(len(x), batch * time, x.shape[-1])
    for out, each, where in zip(padded, x, places, strict=True):
        out.index_copy_(0, where, each)
    return padded.view(len(x), batch, time, -1)


LSTM_GRAIN = 8_000_000
"""Work of a chunk, about 0.6 ms, in the unit of `lstm_chunks`."""
LARGE = 20_000_000
"""Work of a chunk that is worth a thread by itself."""
BLOCK = 128
"""States of the units that are taken together: enough for whole vectors, and little enough for the cache."""


def lstm_serves(x: Tensor) -> bool:
    return numba_serves(x) and x.dtype in (torch.float32, torch.float64)


def num_blocks(units: int, size: int) -> int:
    """How many the units of a direction are cut into, each with as many."""
    most = max(1, BLOCK // size)
    return next(blocks for blocks in range(-(-units // most), units + 1) if units % blocks == 0)


def steps(
    x: Float[Tensor, "directions tokens in"],
    into: Float[Tensor, "blocks gates_of_block in"],
    biases: Float[Tensor, "blocks gates_of_block"],
    recurrent: Float[Tensor, "directions units gates size"],
    tokens: Tokens,
    *,
    peepholes: Float[Tensor, "directions 3 width"] | None,
    masks: Float[Tensor, "directions batch width"] | None,
) -> Float[Tensor, "directions tokens width"]:
    """The states of `lstms.read`; `width` is all units' states.

    What x is multiplied by, and the biases, are those of the directions' blocks of units: each has the gates
    i f g o of all its units.
    """
    parts = (x, into, biases, recurrent, peepholes, masks, tokens.batch)
    return Steps.apply(*parts)  # type: ignore[no-untyped-call]


class Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        into: Tensor,
        biases: Tensor,
        recurrent: Tensor,
        peepholes: Tensor | None,
        masks: Tensor | None,
        batch: Any,
    ) -> Tensor:
        directions, units, _, size = recurrent.shape
        blocks, tokens, width = len(into), x.shape[1], into.shape[1] // 4
        gates = products(x, into, biases).to(recurrent.dtype).view(blocks, tokens, 4, width)
        layer = make_layer(recurrent, blocks, peepholes, masks, batch, ahead=True)
        kept = tokens if any(ctx.needs_input_grad) else 0
        states = gates.new_empty(directions, tokens, units * size)
        trace = [gates, *(gates.new_empty(blocks, kept, width) for _ in range(2))]
        arrays = kernels().lstm.Trace(*map(array, trace))
        chunks, per_thread = lstm_chunks(gates, size, layer)
        ahead = kernels().lstm.ahead
        run(ahead, chunks, batch, layer, size, states.numpy(), arrays, per_thread=per_thread)
        ctx.save_for_backward(x, into, recurrent, peepholes, masks, *trace)
        ctx.batch = batch
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:
        x, into, recurrent, peepholes, masks, *trace = ctx.saved_tensors
        directions, units, _, size = recurrent.shape
        numba = kernels()
        layer = make_layer(recurrent, len(into), peepholes, masks, ctx.batch, ahead=False)
        by_gates = torch.empty_like(trace[0])
        by_peepholes = by_states.new_zeros(
            layer.parts * (peepholes is not None), directions, 3, by_states.shape[2]
        )
        lanes = numba.ops.VECTOR // by_states.element_size()
        wide = -(-size // lanes) * lanes
        by_weights = by_states.new_zeros(directions * units * (units > 1), 4 * size, wide)
        gradient = numba.lstm.Gradient(by_gates.numpy(), by_peepholes.numpy(), by_weights.numpy())
        arrays = numba.lstm.Trace(*map(array, trace))
        chunks, per_thread = lstm_chunks(by_gates, size, layer)
        args = ctx.batch, layer, arrays, array(by_states), size, gradient
        run(numba.lstm.back, chunks, *args, per_thread=per_thread)
        if units > 1:
            by_recurrent = by_weights[..., :size].reshape_as(recurrent)
        else:
            by_recurrent = (by_gates.flatten(2).mT @ trace[2]).view_as(recurrent)
        return (
            *by_factors(by_gates.flatten(2).to(x.dtype), x, into, by_input=ctx.needs_input_grad[0]),
            by_recurrent,
            by_peepholes.sum(0) if peepholes is not None else None,
            None,
            None,
        )


def products(
    x: Float[Tensor, "directions tokens in"],
    into: Float[Tensor, "blocks gates_of_block in"],
    biases: Float[Tensor, "blocks gates_of_block"],
) -> Float[Tensor, "blocks tokens gates_of_block"]:
    sums = x.new_empty(len(into), x.shape[1], into.shape[1])
    for block, (out, weights, bias) in enumerate(zip(sums, into, biases, strict=True)):
        torch.addmm(bias, x[block * len(x) // len(into)], weights.T, out=out)
    return sums


def by_factors(
    by_sums: Float[Tensor, "blocks tokens gates_of_block"],
    x: Float[Tensor, "directions tokens in"],
    into: Float[Tensor, "blocks gates_of_block in"],
    *,
    by_input: bool,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The gradients of `products` by x, if asked for, by weights and by biases.

    One product of all blocks would be one of matrices whose rows are powers of two apart, which takes twice
    as long.
    """
    by_x, by_into = torch.zeros_like(x) if by_input else None, torch.empty_like(into)
    for block, (by, weights) in enumerate(zip(by_sums, into, strict=True)):
        direction = block * len(x) // len(into)
        torch.mm(by.T, x[direction], out=by_into[block])
        if by_x is not None:
            by_x[direction].addmm_(by, weights)
    return by_x, by_into, by_sums.sum(1)


def make_layer(
    recurrent: Tensor,
    blocks: int,
    peepholes: Tensor | None,
    masks: Tensor | None,
    batch: Any,
    *,
    ahead: bool,
) -> Any:
    numba = kernels()
    directions, units, _, size = recurrent.shape
    pack = numba.lstm.pack_ahead if ahead else numba.lstm.pack_back
    packed = call(pack, array(recurrent).reshape(directions * units, 4, size, size))
    nothing = recurrent.new_empty(0, 0, units * size)
    return numba.lstm.Layer(
        packed,
        array(nothing if peepholes is None else peepholes),
        array(nothing if masks is None else masks),
        blocks // directions,
        1 if units > 1 else len(batch.firsts),
    )


def lstm_chunks(gates: Tensor, size: int, layer: Any) -> tuple[int, int]:
    """And how many a thread should have at least. A token takes about as long as width (size + 32)."""
    blocks, tokens, _, width = gates.shape
    jobs = blocks * layer.parts
    work = blocks * tokens * width * (size + 32)
    chunks = int(max(1, min(MOST_CHUNKS, jobs, work // LSTM_GRAIN)))
    return chunks, 1 if work > LARGE * chunks else CHUNKS_PER_THREAD
