"""Calls the numba kernels on CPU tensors: CRF likelihood and Viterbi, and the recurrence of LSTMs without padding.

numba is imported, and the kernels are compiled, on first use. Threads are Python's own, as many as PyTorch is set to:
numba's threading layers either spin between calls or cannot be entered concurrently, and parallel code would be
compiled a second time. A batch is split into chunks by its shape alone, so results do not depend on the number of
threads. A thread takes the next chunk when it is free, because threads that PyTorch leaves spinning may delay it.
"""

import functools
import importlib
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from ner_experiments.modules.kernels.trial import works

log = logging.getLogger(__name__)

CRF_GRAIN = 4_000_000
"""Cost of a chunk, about 0.6 ms, in the unit of `crf_chunks`."""
LSTM_GRAIN = 8_000_000
"""Cost of a chunk, about 0.6 ms, in the unit of `lstm_chunks`."""
LARGE = 20_000_000
"""Cost of a chunk that justifies a thread of its own."""
MAX_CHUNKS = 16
CHUNKS_PER_THREAD = 4
"""Minimum number of chunks per thread. Fewer gain nothing after PyTorch's threads, which spin for milliseconds."""
BLOCK = 128
"""Number of states that are processed together: enough for full vectors, few enough for the cache."""
NO_TAGS = torch.empty(0, 0, dtype=torch.long)


def supports_crf(scores: Tensor) -> bool:
    return scores.is_cpu and have_numba() and works("CRF", try_crf, scores.dtype)


def likelihood(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    *transitions: Tensor,
    weight: float,
    gradient: bool,
) -> list[Tensor]:
    """weight * sum over sentences of (log Z - score of the tags), and its gradient if requested.

    Returns the loss and its gradients with respect to scores, start, pairs and end. Without tags, each sentence adds
    log Z alone.
    """
    sentences, time, size = scores.shape
    chunks = crf_chunks(scores, grain=CRF_GRAIN)
    gold = NO_TAGS if tags is None else tags.long()
    arrays = [array(x) for x in (mask, gold, scores, *transitions)]
    dtype = arrays[2].dtype
    result = kernels().crf.Result(
        losses=np.empty(sentences, dtype),
        underflowed=np.empty(sentences, np.bool_),
        grad_scores=np.empty((gradient * sentences, time, size), dtype),
        grad_transitions=np.empty((chunks, size + 2, size), dtype),
        loss=np.empty((), dtype),
        grad_start=np.empty(size, dtype),
        grad_pairs=np.empty((size, size), dtype),
        grad_end=np.empty(size, dtype),
    )
    underflowed = run_chunks(kernels().crf.likelihood_chunks, chunks, *arrays, weight, result)
    if any(underflowed):
        run_chunks(kernels().crf.log_space_chunks, chunks, *arrays, weight, result)
    if any(underflowed) or len(underflowed) > 1:
        kernels().crf.reduce_chunks(weight, result)
    outputs = (result.loss, result.grad_scores, result.grad_start, result.grad_pairs, result.grad_end)
    return [torch.from_numpy(x) for x in outputs]


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Int[Tensor, "batch time"]:
    """Best tags, 0 at padding."""
    arrays = [array(x) for x in (mask, scores, *transitions)]
    tags = np.empty(arrays[0].shape, np.int64)
    chunks = crf_chunks(scores, grain=3 * CRF_GRAIN)  # a third of the cost of a loss with its gradient
    run_chunks(kernels().crf.viterbi_chunks, chunks, *arrays, tags)
    return torch.from_numpy(tags)


def crf_chunks(scores: Tensor, *, grain: int) -> int:
    """Number of chunks of a batch; the cost of a token is about (tags + 16)^2."""
    sentences, time, size = scores.shape
    return max(1, min(MAX_CHUNKS, sentences, sentences * time * (size + 16) ** 2 // grain))


def supports_lstm(x: Tensor) -> bool:
    known = x.is_cpu and x.dtype in (torch.float32, torch.float64)
    return known and have_numba() and works("LSTMs", try_lstm, x.dtype, torch.is_grad_enabled())


class Tokens:
    """Layout of a batch without padding, for directions that each read forward or backward.

    Tokens are ordered as the recurrence visits them: see `lstm_numba`.
    """

    def __init__(self, lengths: Int[Tensor, " batch"], time: int, backwards: tuple[bool, ...]):
        lstm = kernels().lstm
        numbers = array(lengths.long())
        order = np.argsort(-numbers, kind="stable")
        ends = np.append(0, numbers[order].cumsum())
        self.batch: Any = lstm.Batch(order, numbers[order], ends[: -1 : lstm.GROUP].copy())
        self.shape = (len(lengths), time)
        self.positions = torch.empty(len(backwards), int(ends[-1]), dtype=torch.long)
        for positions, backward in zip(self.positions.numpy(), backwards, strict=True):
            lstm.fill_positions(self.batch, backward, time, positions)

    def pack(self, x: Float[Tensor, "inputs batch time size"]) -> Float[Tensor, "directions tokens size"]:
        """Vectors of the tokens. `x` holds one input per direction, or one for all."""
        tokens = x.new_empty(*self.positions.shape, x.shape[-1])
        each = x.expand(len(tokens), -1, -1, -1).flatten(1, 2)
        for out, padded, index in zip(tokens, each, self.positions, strict=True):
            torch.index_select(padded, 0, index, out=out)
        return tokens

    def pad(
        self, x: Float[Tensor, "directions tokens size"], inputs: int | None = None
    ) -> Float[Tensor, "inputs batch time size"]:
        """Inverse of `pack`, with zeros at padding; the sum over directions if there is one input for all."""
        padded = x.new_zeros(len(x) if inputs is None else inputs, *self.shape, x.shape[-1])
        flat = padded.flatten(1, 2)
        for direction, (each, index) in enumerate(zip(x, self.positions, strict=True)):
            if direction < len(flat):
                flat[direction].index_copy_(0, index, each)
            else:
                flat[0].index_add_(0, index, each)
        return padded


def num_blocks(units: int, size: int) -> int:
    """Number of equal blocks that the units of a direction are split into, each of at most `BLOCK` states."""
    most = max(1, BLOCK // size)
    return next(blocks for blocks in range(-(-units // most), units + 1) if units % blocks == 0)


def lstm_states(
    x: Float[Tensor, "inputs batch time in"],
    input_weights: Float[Tensor, "blocks gates_of_block in"],
    biases: Float[Tensor, "blocks gates_of_block"],
    recurrent: Float[Tensor, "directions units gates size"],
    tokens: Tokens,
    *,
    peepholes: Float[Tensor, "directions 3 width"] | None,
    masks: Float[Tensor, "directions batch width"] | None,
) -> Float[Tensor, "directions batch time width"]:
    """States h of `lstm.lstm_states`, 0 at padding; `width` is the total size of a direction's units.

    Input weights and biases are arranged by block of units (`lstm.in_blocks`): gates i f g o of all units of a block.
    """
    parts = (x, input_weights, biases, recurrent, peepholes, masks, tokens)
    return Recurrence.apply(torch.is_grad_enabled(), *parts)  # type: ignore[no-untyped-call]


class Recurrence(torch.autograd.Function):
    """`lstm_states` and its gradient, in one function: every autograd function costs tens of microseconds.

    The first argument says whether there may be a backward pass; `forward` itself always runs without gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,
        trains: bool,
        x: Tensor,
        input_weights: Tensor,
        biases: Tensor,
        recurrent: Tensor,
        peepholes: Tensor | None,
        masks: Tensor | None,
        tokens: Tokens,
    ) -> Tensor:
        directions, units, _, size = recurrent.shape
        packed = tokens.pack(x).to(input_weights.dtype)
        blocks, count, width = len(input_weights), packed.shape[1], input_weights.shape[1] // 4
        gates = project(packed, input_weights, biases).to(recurrent.dtype).view(blocks, count, 4, width)
        layer = make_layer(recurrent, blocks, peepholes, masks, tokens.batch, backward=False)
        saved = count if trains and any(ctx.needs_input_grad) else 0
        states = gates.new_empty(directions, count, units * size)
        trace = [gates, *(gates.new_empty(blocks, saved, width) for _ in range(2))]
        arrays = kernels().lstm.Trace(*map(array, trace))
        chunks, per_thread = lstm_chunks(gates, size, layer)
        kernel = kernels().lstm.forward
        run_chunks(kernel, chunks, tokens.batch, layer, size, states.numpy(), arrays, per_thread=per_thread)
        ctx.save_for_backward(packed, input_weights, recurrent, peepholes, masks, *trace)
        ctx.tokens, ctx.inputs, ctx.dtype = tokens, len(x), x.dtype
        return tokens.pad(states)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_padded: Tensor) -> tuple[Tensor | None, ...]:
        packed, input_weights, recurrent, peepholes, masks, *trace = ctx.saved_tensors
        directions, units, _, size = recurrent.shape
        numba, batch, grad_states = kernels(), ctx.tokens.batch, ctx.tokens.pack(grad_padded)
        layer = make_layer(recurrent, len(input_weights), peepholes, masks, batch, backward=True)
        grad_gates = torch.empty_like(trace[0])
        grad_peepholes = grad_states.new_zeros(
            layer.parts * (peepholes is not None), directions, 3, grad_states.shape[2]
        )
        lanes = numba.ops.VECTOR // grad_states.element_size()
        padded_size = -(-size // lanes) * lanes
        grad_weights = grad_states.new_zeros(directions * units * (units > 1), 4 * size, padded_size)
        gradient = numba.lstm.Gradient(grad_gates.numpy(), grad_peepholes.numpy(), grad_weights.numpy())
        arrays = numba.lstm.Trace(*map(array, trace))
        chunks, per_thread = lstm_chunks(grad_gates, size, layer)
        args = batch, layer, arrays, array(grad_states), size, gradient
        run_chunks(numba.lstm.backward, chunks, *args, per_thread=per_thread)
        if units > 1:
            grad_recurrent = grad_weights[..., :size].reshape_as(recurrent)
        else:
            grad_recurrent = (grad_gates.flatten(2).mT @ trace[2]).view_as(recurrent)
        grad_projection = grad_gates.flatten(2).to(packed.dtype)
        grad_packed, *grad_projected = project_backward(
            grad_projection, packed, input_weights, input_gradient=ctx.needs_input_grad[1]
        )
        return (
            None,
            None if grad_packed is None else ctx.tokens.pad(grad_packed.to(ctx.dtype), ctx.inputs),
            *grad_projected,
            grad_recurrent,
            grad_peepholes.sum(0) if peepholes is not None else None,
            None,
            None,
        )


def project(
    x: Float[Tensor, "directions tokens in"],
    weights: Float[Tensor, "blocks gates_of_block in"],
    biases: Float[Tensor, "blocks gates_of_block"],
) -> Float[Tensor, "blocks tokens gates_of_block"]:
    """Input part of the gates, U x_t + b, by block of units."""
    gates = x.new_empty(len(weights), x.shape[1], weights.shape[1])
    for block, (out, weight, bias) in enumerate(zip(gates, weights, biases, strict=True)):
        torch.addmm(bias, x[block * len(x) // len(weights)], weight.T, out=out)
    return gates


def project_backward(
    grad_gates: Float[Tensor, "blocks tokens gates_of_block"],
    x: Float[Tensor, "directions tokens in"],
    weights: Float[Tensor, "blocks gates_of_block in"],
    *,
    input_gradient: bool,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of `project` with respect to x (if requested), weights and biases.

    One batched product of all blocks would place rows at strides of powers of two, which takes twice as long.
    """
    grad_x, grad_weights = torch.empty_like(x) if input_gradient else None, torch.empty_like(weights)
    for block, (grad_gate, weight) in enumerate(zip(grad_gates, weights, strict=True)):
        direction, later = divmod(block, len(weights) // len(x))
        torch.mm(grad_gate.T, x[direction], out=grad_weights[block])
        if grad_x is not None:
            grad_x[direction].addmm_(grad_gate, weight, beta=float(later > 0))
    return grad_x, grad_weights, grad_gates.sum(1)


def make_layer(
    recurrent: Tensor,
    blocks: int,
    peepholes: Tensor | None,
    masks: Tensor | None,
    batch: Any,
    *,
    backward: bool,
) -> Any:
    """The `lstm_numba.Layer` of these weights, packed for the forward or the backward pass."""
    numba = kernels()
    directions, units, _, size = recurrent.shape
    pack = numba.lstm.pack_backward if backward else numba.lstm.pack_forward
    packed = pack(array(recurrent).reshape(directions * units, 4, size, size))
    none = recurrent.new_empty(0, 0, units * size)
    return numba.lstm.Layer(
        packed,
        array(none if peepholes is None else peepholes),
        array(none if masks is None else masks),
        blocks // directions,
        1 if units > 1 else len(batch.starts),
    )


def lstm_chunks(gates: Tensor, size: int, layer: Any) -> tuple[int, int]:
    """Number of chunks, and the minimum per thread; the cost of a token is about width * (size + 32)."""
    blocks, tokens, _, width = gates.shape
    jobs = blocks * layer.parts
    cost = blocks * tokens * width * (size + 32)
    chunks = int(max(1, min(MAX_CHUNKS, jobs, cost // LSTM_GRAIN)))
    return chunks, 1 if cost > LARGE * chunks else CHUNKS_PER_THREAD


def try_crf(dtype: torch.dtype) -> None:
    """Run the kernels of the CRF, which compiles them, on one token with one tag."""
    one, tags = torch.zeros(1, 1, 1, dtype=dtype), torch.zeros(1, 1, dtype=torch.long)
    mask, transitions = torch.ones(1, 1, dtype=torch.bool), (one[0, 0], one[0], one[0, 0])
    likelihood(one, tags, mask, *transitions, weight=1.0, gradient=True)
    viterbi(one, mask, *transitions)


def try_lstm(dtype: torch.dtype, gradient: bool) -> None:
    """Run the kernels of the LSTM, which compiles them, on one token with one state."""
    gates = torch.zeros(1, 4, 1, dtype=dtype, requires_grad=gradient)
    tokens = Tokens(torch.ones(1, dtype=torch.long), 1, (False,))
    x = gates[:, None, :1]
    states = lstm_states(x, gates, gates[..., 0], gates[None], tokens, peepholes=None, masks=None)
    if gradient:
        torch.autograd.grad(states.sum(), gates)


@functools.cache
def have_numba() -> bool:
    """Whether numba can be imported. Logs a warning once if not."""
    try:
        importlib.import_module("numba")
    except ImportError as error:
        log.warning("CRF and LSTMs run without their compiled kernels, and are many times slower: %s", error)
        return False
    return True


class Kernels(NamedTuple):
    """The modules of the kernels."""

    crf: Any
    lstm: Any
    ops: Any


@functools.cache
def kernels() -> Kernels:
    from ner_experiments.modules.kernels import crf_numba, lstm_numba, numba_ops  # numba takes seconds

    return Kernels(crf_numba, lstm_numba, numba_ops)


def array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.numpy(force=True))


def run_chunks(kernel: Any, chunks: int, *args: Any, per_thread: int = CHUNKS_PER_THREAD) -> list[Any]:
    """Results of `kernel(first, last, chunks, *args)` over all chunks, in one call or in one call per chunk."""
    threads = min(torch.get_num_threads(), chunks // per_thread)
    if threads <= 1:
        return [kernel(0, chunks, chunks, *args)]
    numbers = iter(range(chunks))

    def work() -> list[Any]:
        return [kernel(number, number + 1, chunks, *args) for number in numbers]

    futures = [pool(os.getpid()).submit(work) for _ in range(1, threads)]
    results = work()
    return results + [x for future in futures if not future.cancel() for x in future.result()]


@functools.cache
def pool(process: int) -> ThreadPoolExecutor:
    """Thread pool of a process: threads do not survive a fork."""
    return ThreadPoolExecutor(thread_name_prefix="kernels")
