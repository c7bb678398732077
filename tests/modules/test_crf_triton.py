"""The Triton kernels of the CRF, run as in `crf_on_a_gpu`, against the PyTorch version in float64."""

import itertools
import math
import sys
from collections.abc import Iterator

import pytest
import torch
from crf_checks import check_against_plain, check_backward_again, derive, make_transitions
from crf_on_a_gpu import DEVICE, LENGTHS, use_kernels

from ner_experiments.modules.decoding import (
    FORBIDDEN,
    Transitions,
    center,
    plain_viterbi,
    viterbi,
)
from ner_experiments.modules.forward_backward import (
    marginals,
    negative_log_likelihood,
    plain_likelihood,
    posterior,
)

pytest.importorskip("triton")

MASK = torch.arange(5) < LENGTHS.unsqueeze(1)


@pytest.fixture(autouse=True)
def _use_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys.modules[__name__], "MASK", MASK.to(DEVICE))
    with use_kernels(monkeypatch):
        yield


@pytest.mark.parametrize(
    ("num_tags", "scale", "forbidden"),
    [
        *[(num_tags, 1.0, 0.0) for num_tags in (1, 2, 37)],
        *itertools.product([9, 73], [0.3, 30.0, 1e4], [0.0, FORBIDDEN]),
        (9, 1.0, -1e4),
    ],
)
def test_kernels_equal_the_plain_version(num_tags: int, scale: float, forbidden: float) -> None:
    tensors = [scale * torch.randn(3, 5, num_tags), *make_transitions(num_tags, min(scale, 100), forbidden)]
    check_against_plain(tensors, MASK)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_equal_sums_over_all_tag_sequences(dtype: torch.dtype) -> None:
    scores, (start, pairs, end) = torch.randn(3, 5, 3, dtype=dtype), make_transitions(3, 1.0)
    transitions = Transitions(start.to(dtype), pairs.to(dtype), end.to(dtype))
    gold = torch.randint(3, (3, 5))
    losses, found = [], viterbi(scores, MASK, transitions).tolist()
    of_tokens = marginals(scores, MASK, transitions)
    for b, length in enumerate(LENGTHS.tolist()):
        total = {
            tags: (start[tags[0]] + end[tags[-1]]).item()
            + sum(scores[b, t, tag].item() for t, tag in enumerate(tags))
            + sum(pairs[move].item() for move in itertools.pairwise(tags))
            for tags in itertools.product(range(3), repeat=length)
        }
        log_z = math.log(math.fsum(map(math.exp, total.values())))
        losses.append(log_z - total[tuple(gold[b, :length].tolist())])
        assert found[b] == [*max(total, key=lambda tags: total[tags]), *[0] * (5 - length)]
        for t, tag in itertools.product(range(length), range(3)):
            right = math.fsum(math.exp(x - log_z) for tags, x in total.items() if tags[t] == tag)
            assert of_tokens[b, t, tag].item() == pytest.approx(right, abs=1e-6)
    for derived in (False, True):
        loss = negative_log_likelihood(scores.requires_grad_(derived), gold, MASK, transitions)
        assert loss.item() == pytest.approx(sum(losses) / 3, rel=1e-6)


def test_many_tokens_stay_exact() -> None:
    scores, transitions = 10 + torch.randn(1, 60, 5), make_transitions(5, 1.0)
    mask, gold = torch.ones(1, 60, dtype=torch.bool), torch.randint(5, (1, 60))
    double = Transitions(*(x.double() for x in transitions))
    loss = negative_log_likelihood(scores, gold, mask, transitions)
    right = plain_likelihood(scores.double(), gold, mask, double)
    assert loss.item() == pytest.approx(right.item(), rel=3e-7)
    expected = posterior(center(scores.double(), mask), mask, double).marginals
    found = marginals(scores, mask, transitions)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=3e-6)
    torch.testing.assert_close(found.sum(2), torch.ones(1, 60), rtol=0, atol=1e-5)


@pytest.mark.parametrize("better", [5.0, 17.0, 300.0])
def test_one_path_through_improbable_tags_is_found(better: float) -> None:
    # The other tag is better at each token, but only itself may follow it, and it may not end the sentence.
    pairs = torch.tensor([[0.0, 0.0], [FORBIDDEN, 0.0]])
    transitions = Transitions(torch.zeros(2), pairs, torch.tensor([0.0, FORBIDDEN]))
    scores = torch.tensor([0.0, better]).expand(1, 6, 2).clone().requires_grad_()
    mask, gold = torch.ones(1, 6, dtype=torch.bool), torch.zeros(1, 6, dtype=torch.long)
    loss = negative_log_likelihood(scores, gold, mask, transitions)
    assert loss.item() == pytest.approx(0, abs=1e-3)
    (gradient,) = torch.autograd.grad(loss, scores)
    torch.testing.assert_close(gradient, torch.zeros(1, 6, 2))
    assert not viterbi(scores.detach(), mask, transitions).any()


def test_minus_infinity_forbids_where_another_way_is_left() -> None:
    scores, gold = torch.randn(3, 5, 9), torch.zeros(3, 5, dtype=torch.long)
    found, right = (
        derive(negative_log_likelihood, torch.float32, [scores, *transitions], gold, MASK)
        for transitions in (
            Transitions(*(x.clamp(min=-1e6).where(x > -1e6, -math.inf) for x in forbidden))
            if infinite
            else forbidden
            for forbidden, infinite in itertools.product([make_transitions(9, 1.0, FORBIDDEN)], [True, False])
        )
    )
    torch.testing.assert_close(found, right)


@pytest.mark.parametrize("num_tags", [3, 20])
def test_ties_go_to_the_same_tag(num_tags: int) -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        scores = torch.randint(2, (3, 5, num_tags)).float()
        transitions = Transitions(
            *(torch.randint(2, x.shape).float() for x in make_transitions(num_tags, 1.0))
        )
        assert torch.equal(viterbi(scores, MASK, transitions), plain_viterbi(scores, MASK, transitions))


def test_backward_again_scaled_and_as_a_graph() -> None:
    check_backward_again(torch.randn(3, 5, 5), torch.randint(5, (3, 5)), MASK)


def test_second_derivatives() -> None:
    tensors = [torch.randn(3, 5, 3), *make_transitions(3, 1.0)]
    inputs = [x.double().requires_grad_() for x in tensors]
    gold, seconds = torch.randint(3, (3, 5)), []
    for function in (negative_log_likelihood, plain_likelihood):
        loss = function(inputs[0], gold, MASK, Transitions(*inputs[1:]))
        gradients = torch.autograd.grad(loss, inputs, create_graph=True)
        seconds.append(torch.autograd.grad(sum(x.square().sum() for x in gradients), inputs))
    torch.testing.assert_close(*seconds)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN")  # numpy, in the interpreter
def test_nan_stays_nan_and_its_gradient_with_its_sentence() -> None:
    scores = torch.randn(3, 5, 5)
    for number, bad in ((0, math.nan), (2, math.inf)):
        scores[number, 0, 2] = bad
    transitions = make_transitions(5, 1.0)
    viterbi(scores, MASK, transitions)  # reads within bounds whatever it meets
    scores.requires_grad_()
    loss = negative_log_likelihood(scores, torch.zeros(3, 5, dtype=torch.long), MASK, transitions)
    assert loss.isnan()
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.isnan().any(2).any(1).tolist() == [True, False, True]


@pytest.mark.parametrize("tag", [5, -1, 2**40])
def test_invalid_tags_and_empty_sentences_make_the_loss_nan(tag: int) -> None:
    scores, transitions = torch.randn(3, 5, 5, requires_grad=True), make_transitions(5, 1.0)
    gold, mask = torch.zeros(3, 5, dtype=torch.long), MASK.clone()
    gold[0, 3] = tag
    loss = negative_log_likelihood(scores, gold, mask, transitions)
    loss.backward()  # writes within bounds
    assert loss.isnan()
    mask[1:] = False
    assert negative_log_likelihood(scores, torch.zeros_like(gold), mask, transitions).isnan()
    assert not viterbi(scores.detach(), mask, transitions)[1:].any()
