"""The CRF against sums over all tag sequences, in float64."""

import itertools
import math

import pytest
import torch
from crf_oracle import BIOES, EVERYTHING, GOLD, MASK, RAGGED, Allowed, enumerate_tags, make_crf
from torch import Tensor

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Transitions, center
from ner_experiments.modules.forward_backward import log_partition


def transitions_of(crf: CRF) -> Transitions:
    transitions = Transitions(crf.start, crf.transitions, crf.end)
    return transitions if crf.constraints is None else crf.constraints(transitions)


@pytest.mark.parametrize("allowed", [EVERYTHING, BIOES], ids=["free", "constrained"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_loss_marginals_and_viterbi_equal_sums_over_all_tag_sequences(allowed: Allowed, scale: float) -> None:
    torch.manual_seed(0)
    crf = make_crf(allowed, scale)
    scores = scale * torch.randn(4, 4, 5, dtype=torch.float64)
    oracles = [enumerate_tags(crf, s[:n], allowed) for s, n in zip(scores, RAGGED, strict=True)]

    losses = [
        o.log_partition - o.scores[tuple(g[:n].tolist())]
        for o, g, n in zip(oracles, GOLD, RAGGED, strict=True)
    ]
    assert crf.loss(scores, GOLD, MASK).item() == pytest.approx(sum(losses) / 4, abs=1e-10)
    partition = log_partition(scores, MASK, transitions_of(crf))
    assert partition.tolist() == pytest.approx([o.log_partition for o in oracles], abs=1e-10)

    with torch.no_grad():
        by_products = crf.marginals(scores, MASK)
    for marginals in (crf.marginals(scores, MASK), by_products):
        for found, oracle, n in zip(marginals, oracles, RAGGED, strict=True):
            torch.testing.assert_close(found[:n], oracle.marginals, rtol=0, atol=1e-10)
            assert not found[n:].any()

    for found, oracle, n in zip(crf.decode(scores, MASK), oracles, RAGGED, strict=True):
        assert found.tolist() == [*oracle.best, *[0] * (4 - n)]


@pytest.mark.parametrize("num_tags", [1, 2, 3])
def test_few_tags_and_single_tokens(num_tags: int) -> None:
    torch.manual_seed(num_tags)
    crf = CRF(num_tags=num_tags).double()
    everything = Allowed([True] * num_tags, [[True] * num_tags] * num_tags, [True] * num_tags)
    for time in (1, 2, 5):
        scores = torch.randn(1, time, num_tags, dtype=torch.float64)
        mask = torch.ones(1, time, dtype=torch.bool)
        oracle = enumerate_tags(crf, scores[0], everything)
        for gold in itertools.product(range(num_tags), repeat=time):
            loss = crf.loss(scores, torch.tensor([gold]), mask).item()
            assert loss == pytest.approx(oracle.log_partition - oracle.scores[gold], abs=1e-10)
        torch.testing.assert_close(crf.marginals(scores, mask)[0], oracle.marginals)
        assert crf.decode(scores, mask).tolist() == [list(oracle.best)]


@pytest.mark.parametrize("allowed", [EVERYTHING, BIOES], ids=["free", "constrained"])
def test_first_and_second_derivatives(allowed: Allowed) -> None:
    torch.manual_seed(1)
    crf = make_crf(allowed)
    scores = torch.randn(4, 4, 5, dtype=torch.float64, requires_grad=True)

    def loss(scores: Tensor, *parameters: Tensor) -> Tensor:
        return crf.loss(scores, GOLD, MASK)

    def partition(scores: Tensor, *parameters: Tensor) -> Tensor:
        return log_partition(scores, MASK, transitions_of(crf))

    for function in (loss, partition):
        assert torch.autograd.gradcheck(function, (scores, *crf.parameters()))
    assert torch.autograd.gradgradcheck(partition, (scores, *crf.parameters()))
    assert torch.autograd.gradcheck(
        lambda scores, *_: crf.marginals(scores, MASK), (scores, *crf.parameters())
    )


def test_marginals_are_the_gradient_of_the_log_partition_and_sum_to_one() -> None:
    torch.manual_seed(2)
    crf = make_crf(BIOES, dtype=torch.float32)
    scores = torch.randn(4, 4, 5, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        log_partition(center(scores, MASK), MASK, transitions_of(crf)).sum(), scores
    )
    with torch.inference_mode():
        marginals = crf.marginals(scores, MASK)
    torch.testing.assert_close(marginals, gradient)
    torch.testing.assert_close(marginals.sum(2), MASK.float())


@pytest.mark.parametrize("allowed", [EVERYTHING, BIOES], ids=["free", "constrained"])
@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("large_transitions", [False, True])
def test_extreme_scores_in_float32(allowed: Allowed, size: float, large_transitions: bool) -> None:
    torch.manual_seed(3)
    crf = make_crf(allowed, size if large_transitions else 1.0, torch.float32)
    scores = (size * torch.randn(4, 4, 5)).requires_grad_()
    oracles = [enumerate_tags(crf, s[:n], allowed) for s, n in zip(scores, RAGGED, strict=True)]
    losses = [
        o.log_partition - o.scores[tuple(g[:n].tolist())]
        for o, g, n in zip(oracles, GOLD, RAGGED, strict=True)
    ]

    loss = crf.loss(scores, GOLD, MASK)
    assert loss.item() == pytest.approx(sum(losses) / 4, rel=1e-6)
    gradients = torch.autograd.grad(loss, [scores, *crf.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)
    for found, best, oracle, n in zip(
        crf.marginals(scores, MASK), crf.decode(scores, MASK), oracles, RAGGED, strict=True
    ):
        torch.testing.assert_close(found[:n].double(), oracle.marginals, rtol=0, atol=1e-4)
        assert tuple(best[:n].tolist()) == oracle.best


@pytest.mark.parametrize("better", [5.0, 16.0, 17.0, 300.0])
def test_one_path_through_improbable_tags_is_found(better: float) -> None:
    # The other tag is better at each token, but only itself may follow it, and it may not end the sentence:
    # six times O is the one way. Its relative weight, exp(-6 * 17), has four bits left in float32.
    all_o = Allowed(start=[True, True], pairs=[[True, True], [False, True]], end=[True, False])
    crf = CRF(num_tags=2, allowed=all_o, constrained=True)
    scores = torch.tensor([0.0, better]).expand(1, 6, 2).clone().requires_grad_()
    mask, gold = torch.ones(1, 6, dtype=torch.bool), torch.zeros(1, 6, dtype=torch.long)
    loss = crf.loss(scores, gold, mask)
    assert loss.item() == pytest.approx(0, abs=1e-3)
    (gradient,) = torch.autograd.grad(loss, scores)
    torch.testing.assert_close(gradient, torch.zeros(1, 6, 2))
    torch.testing.assert_close(crf.marginals(scores, mask), torch.tensor([1.0, 0.0]).expand(1, 6, 2))
    assert not crf.decode(scores, mask).any()


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_constrained_decoding_and_marginals_stay_within_the_scheme(scale: float) -> None:
    torch.manual_seed(5)
    crf = make_crf(BIOES, scale, torch.float32)
    mask = torch.arange(9) < torch.randint(1, 10, (200, 1))
    scores = scale * torch.randn(200, 9, 5)
    assert all(
        BIOES.permits(tuple(tags[real].tolist()))
        for tags, real in zip(crf.decode(scores, mask), mask, strict=True)
    )
    marginals = crf.marginals(scores, mask)
    assert not marginals[:, 0, [2, 3]].any()
    lasts = marginals[torch.arange(200), mask.sum(1) - 1]
    assert not lasts[:, [1, 2]].any()


def test_forbidden_gold_tags_give_a_huge_loss() -> None:
    crf = CRF(num_tags=5, allowed=BIOES, constrained=True)
    tags = torch.tensor([[0, 2, 0]])
    assert crf.loss(torch.zeros(1, 3, 5), tags, torch.ones(1, 3, dtype=torch.bool)) > 1e29


def test_forbidden_transitions_get_no_gradient() -> None:
    torch.manual_seed(6)
    crf = make_crf(BIOES, dtype=torch.float32)
    loss = crf.loss(torch.randn(4, 4, 5), GOLD, MASK)
    (gradient,) = torch.autograd.grad(loss, crf.transitions)
    assert torch.equal(gradient != 0, torch.tensor(BIOES.pairs))


@pytest.mark.parametrize("allowed", [EVERYTHING, BIOES], ids=["free", "constrained"])
@pytest.mark.parametrize("size", [1.0, 1e3])
def test_padding_changes_nothing_and_a_batch_equals_its_sentences(allowed: Allowed, size: float) -> None:
    torch.manual_seed(7)
    crf = make_crf(allowed, dtype=torch.float32)
    real = size * torch.randn(4, 4, 5)

    def results(scores: Tensor, tags: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        scores = scores.clone().requires_grad_()
        loss = crf.loss(scores, tags, mask)
        gradients = torch.autograd.grad(loss, [scores, *crf.parameters()])
        return loss, crf.marginals(scores, mask), crf.decode(scores, mask), list(gradients)

    def padded(time: int, score: float, tag: int) -> tuple[Tensor, Tensor, Tensor]:
        mask = torch.arange(time) < RAGGED.unsqueeze(1)
        scores, tags = torch.full((4, time, 5), score), torch.full((4, time), tag)
        scores[mask], tags[mask] = real[MASK], GOLD[MASK]
        return scores, tags, mask

    loss, marginals, best, gradients = results(*padded(4, 0.0, 0))
    for filled in (padded(4, math.nan, -100), padded(4, math.inf, 7), padded(6, 1e9, -1)):
        other_loss, other_marginals, other_best, other_gradients = results(*filled)
        torch.testing.assert_close(other_loss, loss)
        torch.testing.assert_close(other_marginals[:, :4], marginals)
        assert torch.equal(other_best[:, :4], best)
        assert not other_best[:, 4:].any()
        assert not other_gradients[0][~filled[2]].any()
        for other, first in zip(other_gradients, gradients, strict=True):
            torch.testing.assert_close(other[:, :4] if other.ndim == 3 else other, first)

    singles = [
        results(real[i : i + 1, :n], GOLD[i : i + 1, :n], MASK[i : i + 1, :n]) for i, n in enumerate(RAGGED)
    ]
    torch.testing.assert_close(torch.stack([single[0] for single in singles]).mean(), loss)
    for i, (n, single) in enumerate(zip(RAGGED, singles, strict=True)):
        torch.testing.assert_close(single[1][0], marginals[i, :n])
        assert torch.equal(single[2][0], best[i, :n])
        torch.testing.assert_close(single[3][0][0] / 4, gradients[0][i, :n])


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_autocast_and_bfloat16_scores_are_computed_in_float32(size: float) -> None:
    torch.manual_seed(8)
    crf = make_crf(dtype=torch.float32)
    low = (size * torch.randn(4, 4, 5)).bfloat16()
    results = []
    for scores, autocast in ((low, True), (low, False), (low.float(), False)):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = crf.loss(scores, GOLD, MASK)
            (gradient,) = torch.autograd.grad(loss, crf.transitions)
            results.append([loss, gradient, crf.marginals(scores, MASK), crf.decode(scores, MASK).float()])
    for result in results:
        for found, right in zip(result, results[2], strict=True):
            assert found.dtype == torch.float32
            assert torch.equal(found, right)


def test_ties_go_to_the_lowest_tag_from_the_last_token_back() -> None:
    crf = CRF(num_tags=3)
    for parameter in crf.parameters():
        torch.nn.init.zeros_(parameter)
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert crf.decode(torch.zeros(1, 3, 3), mask).tolist() == [[0, 0, 0]]
    # 0 2 and 1 1 are as good as each other: 1 is the lower last tag.
    with torch.no_grad():
        crf.transitions[0, 2] = crf.transitions[1, 1] = 1.0
    assert crf.decode(torch.zeros(1, 2, 3), mask[:, :2]).tolist() == [[1, 1]]
