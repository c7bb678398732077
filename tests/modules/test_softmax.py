"""The softmax decoder against sums by hand."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch

from ner_experiments.modules.softmax import Softmax


class Allowed(NamedTuple):
    start: list[bool]
    pairs: list[list[bool]]
    end: list[bool]


# O, B and I of one type: I neither opens a sentence nor follows O; and here, a B may not close one.
ALLOWED = Allowed(
    start=[True, True, False],
    pairs=[[True, True, False], [True, True, True], [True, True, True]],
    end=[True, False, True],
)
RAGGED = torch.tensor([4, 1, 2])
MASK = torch.arange(4) < RAGGED.unsqueeze(1)
GOLD = torch.tensor([[1, 2, 2, 0], [0, -100, -100, -100], [2, 1, 9, 9]])


def log_probabilities(scores: torch.Tensor) -> list[list[list[float]]]:
    return [
        [
            [score - max(token) - math.log(sum(math.exp(s - max(token)) for s in token)) for score in token]
            for token in sentence[:n]
        ]
        for sentence, n in zip(scores.tolist(), RAGGED, strict=True)
    ]


@pytest.mark.parametrize(("reduction", "divisor"), [("sentence", 3), ("token", 7), ("sum", 1)])
@pytest.mark.parametrize("constrained", [False, True])
def test_loss_by_hand(reduction: str, divisor: int, constrained: bool) -> None:
    torch.manual_seed(0)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=constrained, reduction=reduction)
    scores = torch.randn(3, 4, 3, dtype=torch.float64)
    expected = -sum(
        token[tag]
        for sentence, tags in zip(log_probabilities(scores), GOLD.tolist(), strict=True)
        for token, tag in zip(sentence, tags, strict=False)
    )
    assert decoder.loss(scores, GOLD, MASK).item() == pytest.approx(expected / divisor, abs=1e-12)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: decoder.loss(scores, GOLD, MASK), scores)
    assert torch.autograd.gradgradcheck(lambda scores: decoder.loss(scores, GOLD, MASK), scores)


@pytest.mark.parametrize("constrained", [False, True])
def test_decoding_and_marginals_by_hand(constrained: bool) -> None:
    torch.manual_seed(1)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=constrained)
    for scale in (1.0, 10.0, 1e6):
        scores = scale * torch.randn(3, 4, 3)
        best, marginals = decoder.decode(scores, MASK), decoder.marginals(scores, MASK)
        for i, sentence in enumerate(log_probabilities(scores)):
            n = len(sentence)
            legal = [
                tags
                for tags in itertools.product(range(3), repeat=n)
                if not constrained
                or (
                    ALLOWED.start[tags[0]]
                    and ALLOWED.end[tags[-1]]
                    and all(ALLOWED.pairs[a][b] for a, b in itertools.pairwise(tags))
                )
            ]
            expected = max(legal, key=lambda tags: sum(t[tag] for t, tag in zip(sentence, tags, strict=True)))
            assert best[i].tolist() == [*expected, *[0] * (4 - n)]
            by_hand = torch.tensor(sentence).exp()
            torch.testing.assert_close(marginals[i], torch.cat([by_hand, torch.zeros(4 - n, 3)]))


def test_constrained_decoding_stays_within_the_scheme() -> None:
    torch.manual_seed(2)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=True)
    mask = torch.arange(9) < torch.randint(1, 10, (200, 1))
    for tags, real in zip(decoder.decode(100 * torch.randn(200, 9, 3), mask), mask, strict=True):
        found = tags[real].tolist()
        assert ALLOWED.start[found[0]]
        assert ALLOWED.end[found[-1]]
        assert all(ALLOWED.pairs[i][j] for i, j in itertools.pairwise(found))
        assert not tags[~real].any()


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("filling", [math.nan, math.inf, 1e9])
def test_padding_changes_nothing(constrained: bool, filling: float) -> None:
    torch.manual_seed(3)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=constrained)
    real = torch.randn(3, 4, 3)
    outputs = []
    for filled in (0.0, filling):
        scores = real.masked_fill(~MASK.unsqueeze(2), filled).requires_grad_()
        loss = decoder.loss(scores, GOLD, MASK)
        (gradient,) = torch.autograd.grad(loss, scores)
        outputs.append([loss, gradient, decoder.marginals(scores, MASK), decoder.decode(scores, MASK)])
    for clean, other in zip(*outputs, strict=True):
        assert torch.equal(clean, other)
    assert not outputs[1][1][~MASK].any()


def test_a_batch_equals_its_sentences() -> None:
    torch.manual_seed(4)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=True)
    scores = torch.randn(3, 4, 3)
    singles = [
        (scores[i : i + 1, :n], GOLD[i : i + 1, :n], MASK[i : i + 1, :n]) for i, n in enumerate(RAGGED)
    ]
    losses = torch.stack([decoder.loss(*single) for single in singles])
    torch.testing.assert_close(losses.mean(), decoder.loss(scores, GOLD, MASK))
    for i, (n, (score, _, mask)) in enumerate(zip(RAGGED, singles, strict=True)):
        assert torch.equal(decoder.decode(score, mask)[0], decoder.decode(scores, MASK)[i, :n])


def test_autocast_and_bfloat16_scores_are_computed_in_float32() -> None:
    torch.manual_seed(5)
    decoder = Softmax(num_tags=3)
    scores = torch.randn(3, 4, 3).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        loss, marginals = decoder.loss(scores, GOLD, MASK), decoder.marginals(scores, MASK)
    assert torch.equal(loss, decoder.loss(scores.float(), GOLD, MASK))
    assert torch.equal(marginals, decoder.marginals(scores.float(), MASK))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_tags": 0}, "num_tags must be at least 1, got 0"),
        (
            {"num_tags": 3, "constrained": True},
            "constrained=True needs allowed, the transitions that the tag",
        ),
        ({"num_tags": 3, "reduction": "mean"}, "reduction must be one of sentence, token, sum, got 'mean'"),
        (
            {"num_tags": 3, "allowed": ALLOWED._replace(pairs=[[True] * 3] * 2), "constrained": True},
            r"allowed.pairs must have shape \(3, 3\) for 3 tags, got \(2, 3\)",
        ),
    ],
)
def test_constructor_errors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Softmax(**arguments)


def test_scores_of_the_wrong_shape() -> None:
    decoder = Softmax(num_tags=3)
    mask = torch.ones(2, 4, dtype=torch.bool)
    for call in (
        decoder.decode,
        decoder.marginals,
        lambda scores, mask: decoder.loss(scores, mask.long(), mask),
    ):
        with pytest.raises(ValueError, match=r"scores must have shape \[batch, time, 3\].* got \(2, 4, 5\)"):
            call(torch.zeros(2, 4, 5), mask)
