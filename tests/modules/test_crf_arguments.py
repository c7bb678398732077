"""The CRF's initial parameters, and the arguments, scores, masks and tags that it rejects."""

import math

import pytest
import torch
from crf_oracle import BIOES, make_crf

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import check_inputs


def test_parameters_begin_small_and_constraints_are_not_saved() -> None:
    crf = CRF(num_tags=40, allowed=None)
    for parameter in crf.parameters():
        assert parameter.abs().max() <= 0.1
        assert parameter.std().item() == pytest.approx(0.1 / math.sqrt(3), rel=0.3)
    assert set(make_crf(BIOES).state_dict()) == {"transitions", "start", "end"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_tags": 0}, "num_tags must be at least 1, got 0"),
        (
            {"num_tags": 5, "constrained": True},
            "constrained=True needs allowed, the transitions that the tag",
        ),
        (
            {"num_tags": 4, "allowed": BIOES, "constrained": True},
            r"allowed.start must have shape \(4,\) for 4 tags, got \(5,\)",
        ),
    ],
)
def test_constructor_errors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CRF(**arguments)


@pytest.mark.parametrize(
    ("shape", "got"),
    [
        ((2, 3, 4), r"\[batch, time, 5\].*\(2, 3, 4\)"),
        ((2, 0, 5), r"with at least one sentence and one token, got \(2, 0, 5\)"),
    ],
)
def test_scores_of_the_wrong_shape(shape: tuple[int, ...], got: str) -> None:
    scores, mask = torch.zeros(shape), torch.ones(shape[:2], dtype=torch.bool)
    crf = CRF(num_tags=5)
    for call in (crf.decode, crf.marginals, lambda scores, mask: crf.loss(scores, mask.long(), mask)):
        with pytest.raises(ValueError, match=rf"scores must have shape .*{got}"):
            call(scores, mask)


def test_masks_and_tags_of_the_wrong_kind() -> None:
    # By the check itself: within the tests, the annotations of CRF.loss would refuse these first.
    scores, mask = torch.zeros(2, 3, 5), torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"mask must be bool, True for a real token, got torch\.int64"):
        check_inputs(scores, num_tags=5, mask=mask.long())
    with pytest.raises(
        ValueError, match=r"mask must have shape \(2, 3\), the batch and time of scores, got \(2, 1\)"
    ):
        check_inputs(scores, num_tags=5, mask=mask[:, :1])
    with pytest.raises(
        ValueError, match=r"tags must have shape \(2, 3\), the batch and time of scores, got \(3, 2\)"
    ):
        check_inputs(scores, num_tags=5, mask=mask, tags=mask.t().long())
