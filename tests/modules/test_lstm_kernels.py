"""The numba recurrence of LSTMs against the PyTorch one, which other tests compare with equations."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from ner_experiments.modules.kernels import cpu
from ner_experiments.modules.kernels.cpu import Tokens
from ner_experiments.modules.lstm import Weights, fastest, loop_states, numba_states, stock_states
from ner_experiments.modules.recurrent import BiRNN

BATCHES = {
    "one token": [1],
    "ragged": [4, 1, 7, 2, 7],
    "no padding": [3, 3, 3],
    "more than a group": [1 + (5 * n) % 9 for n in range(37)],
}


def problem(
    directions: int, units: int, size: int, lengths: list[int], *, peepholes: bool, scale: float = 1.0
) -> tuple[Tensor, Tensor, Weights, Tensor]:
    """x per direction, lengths, weights and masks; all but the masks and lengths require a gradient."""
    torch.manual_seed(0)

    def random(*shape: int) -> Tensor:
        return (scale * torch.randn(*shape, dtype=torch.float64)).requires_grad_()

    rows = (directions, units, 4 * size)
    recurrent = (size**-0.5 * random(*rows, size)).detach().requires_grad_()  # gradients do not explode
    weights = Weights(
        random(*rows, 3),
        recurrent,
        random(*rows),
        random(directions, units, 3, size) if peepholes else None,
    )
    x = random(directions, len(lengths), max(lengths) + 1, 3)
    masks = 2 * torch.randint(2, (directions, units, len(lengths), size)).double()
    return x, torch.tensor(lengths), weights, masks


def derived(states: Tensor, lengths: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """States of real tokens, and gradients of a random sum of them."""
    real = (torch.arange(states.shape[2]) < lengths[:, None])[None, :, :, None, None]
    states = states * real
    torch.manual_seed(1)
    return [states, *torch.autograd.grad((states * torch.randn(states.shape).to(states)).sum(), inputs)]


@pytest.mark.parametrize("lengths", BATCHES.values(), ids=list(BATCHES))
@pytest.mark.parametrize(
    ("units", "size"), [(1, 1), (1, 17), (1, 40), (2, 5), (40, 8), (3, 64), (2, 130)], ids=lambda n: str(n)
)
@pytest.mark.parametrize("peepholes", [False, True], ids=["plain", "peepholes"])
def test_states_and_gradients_are_those_of_the_plain_loop(
    units: int, size: int, peepholes: bool, lengths: list[int]
) -> None:
    x, numbers, weights, masks = problem(2, units, size, lengths, peepholes=peepholes)
    inputs = [x, *(part for part in weights if part is not None)]
    for used in (None, masks):
        found, expected = (
            derived(read(x, numbers, weights, (False, True), used), numbers, inputs)
            for read in (numba_states, loop_states)
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_single_direction_reads_forward_or_backward(backwards: bool) -> None:
    x, lengths, weights, _ = problem(1, 2, 5, BATCHES["ragged"], peepholes=False)
    found, expected = (
        derived(read(x, lengths, weights, (backwards,), None), lengths, [x])
        for read in (numba_states, loop_states)
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [0.5, 30.0, 1e4])
def test_in_float32_too_and_where_gates_are_saturated(scale: float) -> None:
    x, lengths, weights, masks = problem(2, 3, 20, BATCHES["ragged"], peepholes=False, scale=scale)
    halves = [part.detach().float().requires_grad_() for part in (x, *weights[:3])]
    expected = loop_states(x.float().double(), lengths, weights, (False, True), masks)
    found = numba_states(halves[0], lengths, Weights(*halves[1:]), (False, True), masks.float())
    real = torch.arange(x.shape[2]) < lengths[:, None]
    if scale == 0.5:  # beyond, a rounding error upstream may turn a gate over
        torch.testing.assert_close(found[:, real].double(), expected[:, real], rtol=0, atol=2e-6)
    assert found.isfinite().all()
    assert found.abs().max() <= 1
    for gradient in torch.autograd.grad(found.sum(), halves):
        assert gradient.isfinite().all()


def test_saturated_gates_are_those_of_the_plain_loop_in_float32() -> None:
    x, lengths, weights, _ = problem(1, 1, 1, [1], peepholes=False)
    with torch.no_grad():
        weights.recurrent.zero_(), weights.input.zero_()
    for values in itertools.product([-1e30, -100.0, -87.0, -1e-7, 0.0, 3.0, 88.0, 1e30], repeat=2):
        i, g = values
        biases = torch.tensor([i, 0.0, g, i])[None, None]
        parts = Weights(weights.input.float(), weights.recurrent.float(), biases)
        found, expected = (
            read(x.float(), lengths, parts, (False,), None)[:, :, :1] for read in (numba_states, loop_states)
        )
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def test_nan_propagates() -> None:
    x, lengths, weights, _ = problem(2, 2, 5, [4, 4], peepholes=False)
    with torch.no_grad():
        x[:, 0, 2] = torch.nan
    states = numba_states(x, lengths, weights, (False, True), None)
    nan = states.isnan().flatten(3).all(3)
    assert nan[0].tolist() == [[False, False, True, True, False], 5 * [False]]
    assert nan[1].tolist() == [[True, True, True, False, False], 5 * [False]]


def test_padding_is_zero_and_is_not_read() -> None:
    x, lengths, weights, _ = problem(2, 2, 5, BATCHES["ragged"], peepholes=False)
    padding = torch.arange(x.shape[2]) >= lengths[:, None]
    with torch.no_grad():
        x[:, padding] = torch.inf
    states = numba_states(x, lengths, weights, (False, True), None)
    assert (states[:, padding] == 0).all()
    assert states.isfinite().all()
    gradient = derived(states, lengths, [x])[1]
    assert (gradient[:, padding] == 0).all()


@pytest.mark.parametrize(("units", "size"), [(16, 20), (1, 60)])
def test_results_do_not_depend_on_the_number_of_threads(
    units: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "LSTM_GRAIN", 1)
    torch.manual_seed(0)
    lengths = torch.tensor(4 * BATCHES["more than a group"])
    width, tokens = units * size, Tokens(lengths, int(lengths.max()), (False, True))
    blocks = 2 * cpu.num_blocks(units, size)
    x, into = (
        torch.randn(2, *tokens.shape, 7, requires_grad=True),
        torch.randn(blocks, 8 * width // blocks, 7),
    )
    peepholes = torch.randn(2, 3, width, requires_grad=True)
    recurrent, biases = torch.randn(2, units, 4 * size, size), torch.randn(into.shape[:2])
    masks, by_states = torch.rand(2, len(lengths), width), torch.randn(2, *tokens.shape, width)
    results, threads = [], torch.get_num_threads()
    try:
        for number in (1, 4):
            torch.set_num_threads(number)
            states = cpu.lstm_states(x, into, biases, recurrent, tokens, peepholes=peepholes, masks=masks)
            results.append([states, *torch.autograd.grad((states * by_states).sum(), [x, peepholes])])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, four) for one, four in zip(*results, strict=True))


def test_a_sentence_alone_is_what_it_is_in_a_batch() -> None:
    x, lengths, weights, _ = problem(2, 3, 30, BATCHES["more than a group"], peepholes=True)
    together = numba_states(x, lengths, weights, (False, True), None)
    for number, length in enumerate(lengths.tolist()):
        alone = numba_states(
            x[:, number : number + 1, :length], lengths[number, None], weights, (False, True), None
        )
        torch.testing.assert_close(alone[:, 0], together[:, number, :length], rtol=0, atol=1e-13)


@pytest.mark.parametrize("lengths", BATCHES.values(), ids=list(BATCHES))
@pytest.mark.parametrize("backwards", [(False,), (True,), (False, True)], ids=str)
def test_onednn_gives_the_same_states_and_gradients(lengths: list[int], backwards: tuple[bool, ...]) -> None:
    x, numbers, weights, _ = problem(len(backwards), 3, 5, lengths, peepholes=False)
    for inputs in (x, x[:1], x[:1, :, : max(lengths)]):  # one for each direction, or one for all
        wanted = [inputs, *weights[:3]]
        found, expected = (
            derived(states, numbers, wanted)
            for states in (
                stock_states(inputs, numbers, weights, backwards),
                loop_states(inputs, numbers, weights, backwards, None),
            )
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_onednn_in_its_own_precision_reads_both_directions() -> None:
    x, lengths, weights, _ = problem(2, 2, 64, [7, 7, 7], peepholes=False)
    x, weights = x[:1, :, :7], Weights(*(part * 64**-0.5 for part in weights[:3]))  # float32 rounds the sums
    expected = loop_states(x, lengths, weights, (False, True), None)
    found = stock_states(x.float(), lengths, Weights(*(part.float() for part in weights[:3])), (False, True))
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "lengths", "peepholes", "trains", "decodes"),
    [
        (256, [9, 9, 9], False, True, True),
        (256, [9, 9, 7], False, True, True),
        (256, [9, 9, 6], False, False, True),
        (128, [9, 9, 9], False, True, True),
        (128, [9, 9, 8], False, False, True),
        (64, [9, 9, 9], False, False, True),
        (64, [9, 9, 3], False, False, False),
        (63, [9, 9, 9], False, False, False),
        (256, [9, 9, 9], True, False, False),
    ],
    ids=[
        "even",
        "93% are tokens",
        "89%",
        "smaller, even",
        "smaller, 96%",
        "medium",
        "78%",
        "small",
        "peepholes",
    ],
)
def test_onednn_runs_large_units_with_little_padding_on_avx512(
    size: int,
    lengths: list[int],
    peepholes: bool,
    trains: bool,
    decodes: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    x, numbers, weights, _ = problem(2, 1, size, lengths, peepholes=peepholes)
    x = x[:1, :, :9].float()

    def faster(x: Tensor = x) -> bool:
        return fastest(x, numbers, weights, (False, True), None) is stock_states

    assert faster() == trains
    two_inputs = x.expand(2, -1, -1, -1)  # of which it reverses a copy
    assert faster(two_inputs) == (trains and size >= 256)
    with torch.no_grad():
        assert faster() == decodes
        with torch.autocast("cpu", torch.bfloat16):  # it would round the states at every step
            assert not faster()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert not faster()


@pytest.mark.parametrize("capability", ["AVX512", "AVX2"])
@pytest.mark.parametrize("lengths", [[9, 9, 9], [9, 1, 2]], ids=["no padding", "much padding"])
def test_a_stock_lstm_is_equal_by_onednn_and_by_kernels(
    lengths: list[int], capability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    torch.manual_seed(0)
    rnn = BiRNN(input_size=3, hidden_size=4, cell=nn.LSTM).double()
    x = torch.randn(3, 9, 3, dtype=torch.float64)
    states = rnn(x, torch.tensor(lengths))
    for number, length in enumerate(lengths):
        one = x[number, None, :length]
        ahead, back = (
            layer.cell(each)[0]
            for layer, each in ((rnn.left_to_right, one), (rnn.right_to_left, one.flip(1)))
        )
        torch.testing.assert_close(
            states[number, :length], torch.cat([ahead, back.flip(1)], -1)[0], rtol=0, atol=1e-12
        )
