"""Oracle of the CRF's tests: sums over all tag sequences, one by one in float64."""

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ner_experiments.modules.crf import CRF


class Allowed(NamedTuple):
    start: list[bool]
    pairs: list[list[bool]]
    end: list[bool]

    def permits(self, tags: tuple[int, ...]) -> bool:
        inner = all(self.pairs[i][j] for i, j in itertools.pairwise(tags))
        return inner and self.start[tags[0]] and self.end[tags[-1]]


# O, then B I E S of one type.
BIOES = Allowed(
    start=[True, True, False, False, True],
    pairs=[
        [True, True, False, False, True],
        [False, False, True, True, False],
        [False, False, True, True, False],
        [True, True, False, False, True],
        [True, True, False, False, True],
    ],
    end=[True, False, False, True, True],
)
EVERYTHING = Allowed([True] * 5, [[True] * 5] * 5, [True] * 5)
RAGGED = torch.tensor([4, 1, 3, 2])
MASK = torch.arange(4) < RAGGED.unsqueeze(1)
GOLD = torch.tensor([[1, 2, 3, 0], [4, 0, 0, 0], [0, 1, 3, 0], [1, 3, 0, 0]])


class Oracle(NamedTuple):
    log_partition: float
    marginals: Tensor
    best: tuple[int, ...]
    scores: dict[tuple[int, ...], float]


def enumerate_tags(crf: CRF, scores: Tensor, allowed: Allowed) -> Oracle:
    """Results for one sentence by enumeration; scores are [time, tags]."""
    f, a = scores.double().tolist(), crf.transitions.double().tolist()
    start, end = crf.start.double().tolist(), crf.end.double().tolist()
    total = {
        tags: start[tags[0]]
        + sum(f[i][tag] for i, tag in enumerate(tags))
        + sum(a[i][j] for i, j in itertools.pairwise(tags))
        + end[tags[-1]]
        for tags in itertools.product(range(len(a)), repeat=len(f))
        if allowed.permits(tags)
    }
    best = max(total, key=lambda tags: total[tags])
    log_z = total[best] + math.log(math.fsum(math.exp(score - total[best]) for score in total.values()))
    marginals = torch.zeros(len(f), len(a), dtype=torch.float64)
    for tags, score in total.items():
        for i, tag in enumerate(tags):
            marginals[i, tag] += math.exp(score - log_z)
    return Oracle(log_z, marginals, best, total)


def make_crf(allowed: Allowed = EVERYTHING, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> CRF:
    crf = CRF(num_tags=5, allowed=allowed, constrained=allowed is not EVERYTHING).to(dtype)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return crf
