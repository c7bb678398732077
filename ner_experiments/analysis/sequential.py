"""Group sequential testing: the level of the tests at each look, for looks declared before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def levels(looks: Sequence[int], alpha: float) -> list[float]:
    """Level of the tests at each look, so that the probability of a false claim over all looks is at most alpha.

    looks: the numbers of seeds at which rows are tested, ascending. The error spent by look k of K is
    alpha ln(1 + (e - 1) n_k / n_K), Pocock's spending function of Lan & DeMets (1983), and the level of a look is the
    error that it adds. By Bonferroni's inequality the levels hold for any test and any correlation of the looks; exact
    boundaries would be less strict, but need the joint distribution of the test statistics.
    ValueError unless the looks ascend from at least two seeds.
    """
    if not looks or looks[0] < 2 or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(
            "looks must be ascending numbers of seeds, at least 2 each, such as 3,5,8; got "
            f"{','.join(map(str, looks))}"
        )
    spent = [alpha * math.log(1 + (math.e - 1) * look / looks[-1]) for look in looks]
    return [after - before for before, after in pairwise([0.0, *spent])]
