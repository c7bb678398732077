"""Probabilities of mentions against sums over all tag sequences, in float64."""

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from crf_oracle import BIOES, EVERYTHING, MASK, RAGGED, Allowed, enumerate_tags, make_crf
from torch import Tensor

from ner_experiments.modules.softmax import Softmax


def all_spans() -> Iterator[tuple[int, int, int]]:
    """Every span of every sentence."""
    for sentence, length in enumerate(RAGGED.tolist()):
        for start, end in itertools.combinations(range(length + 1), 2):
            yield sentence, start, end


def sampled_tags() -> Iterator[Tensor]:
    """All tags at each token somewhere; none at padding."""
    for seed in range(20):
        drawn = torch.randint(5, (4, 4), generator=torch.Generator().manual_seed(seed))
        yield drawn.masked_fill(~MASK, -100)


@pytest.mark.parametrize("allowed", [EVERYTHING, BIOES], ids=["free", "constrained"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_a_crf_gives_the_sum_over_all_sequences_with_these_tags(allowed: Allowed, scale: float) -> None:
    torch.manual_seed(0)
    crf = make_crf(allowed, scale)
    scores = scale * torch.randn(4, 4, 5, dtype=torch.float64)
    oracles = [enumerate_tags(crf, s[:n], allowed) for s, n in zip(scores, RAGGED, strict=True)]
    spans = list(all_spans())
    for tags in sampled_tags():
        found = crf.span_probabilities(scores, tags, MASK, torch.tensor(spans))
        for (sentence, start, end), probability in zip(spans, found.tolist(), strict=True):
            wanted = tuple(tags[sentence, start:end].tolist())
            oracle = oracles[sentence]
            alike = (score for y, score in oracle.scores.items() if y[start:end] == wanted)
            expected = math.fsum(math.exp(score - oracle.log_partition) for score in alike)
            assert probability == pytest.approx(expected, abs=1e-10)


def test_the_float32_probability_of_3000_tokens_equals_the_float64_loss() -> None:
    torch.manual_seed(2)
    crf = make_crf(dtype=torch.float32)
    scores, mask = 100 * torch.randn(1, 3000, 5), torch.ones(1, 3000, dtype=torch.bool)
    tags = crf.decode(scores, mask)
    found = crf.span_probabilities(scores, tags, mask, torch.tensor([[0, 0, 3000]]))
    with torch.no_grad():
        loss = crf.double().loss(scores.double(), tags, mask).item()
    assert 5 < loss < 80
    assert found.double().log().item() == pytest.approx(-loss, rel=1e-5)


@pytest.mark.parametrize("constrained", [False, True])
def test_a_softmax_gives_the_product_over_the_tokens(constrained: bool) -> None:
    torch.manual_seed(3)
    decoder = Softmax(num_tags=5, allowed=BIOES, constrained=constrained)
    scores = torch.randn(4, 4, 5, dtype=torch.float64)
    spans = list(all_spans())
    for tags in sampled_tags():
        found = decoder.span_probabilities(scores, tags, MASK, torch.tensor(spans))
        for (sentence, start, end), probability in zip(spans, found.tolist(), strict=True):
            expected = 1.0
            for token in range(start, end):
                weights = scores[sentence, token].exp()
                expected *= float(weights[tags[sentence, token]] / weights.sum())
            assert probability == pytest.approx(expected, abs=1e-12)


def test_no_span_and_single_tokens() -> None:
    torch.manual_seed(4)
    crf = make_crf()
    scores, mask, tags = torch.randn(2, 1, 5).double(), torch.ones(2, 1).bool(), torch.tensor([[1], [4]])
    assert crf.span_probabilities(scores, tags, mask, torch.empty(0, 3, dtype=torch.long)).tolist() == []
    found = crf.span_probabilities(scores, tags, mask, torch.tensor([[0, 0, 1], [1, 0, 1]]))
    marginals = crf.marginals(scores, mask)
    torch.testing.assert_close(found, torch.stack([marginals[0, 0, 1], marginals[1, 0, 4]]))
