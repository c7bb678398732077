"""Group sequential tests: looks at the data that are declared beforehand, and the error that each may spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def levels(looks: Sequence[int], alpha: float) -> list[float]:
    """The level of the tests at each look, so that false claims over all looks have probability alpha at most.

    looks: the numbers of seeds at which is tested, ascending. The error spent by look k of K is
    alpha ln(1 + (e - 1) n_k / n_K), Pocock's spending function of Lan & DeMets (1983), and a look's level is what it
    adds to that. By Bonferroni's inequality the levels hold for any test and any correlation of the looks; exact
    boundaries would be wider by what looks have in common, but need the joint distribution of the test statistics.
    ValueError if looks are not at least two seeds each, ascending.
    """
    if not looks or looks[0] < 2 or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(
            f"looks must be ascending numbers of seeds, from 2, such as [3,5,8]; got {list(looks)}"
        )
    spent = [alpha * math.log(1 + (math.e - 1) * look / looks[-1]) for look in looks]
    return [after - before for before, after in pairwise([0.0, *spent])]
