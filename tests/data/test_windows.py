"""Windows of long sentences."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ner_experiments.data.pieces import plan_windows


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(1, 20), st.data())
def test_windows_cover_overlap_and_are_no_more_than_needed(
    lengths: list[int], longest: int, data: Any
) -> None:
    overlap = data.draw(st.integers(0, longest - 1))
    windows = plan_windows(np.array(lengths), longest, overlap)
    for length, first, count in zip(lengths, windows.first, windows.counts, strict=True):
        spans = [
            (windows.starts[w], windows.starts[w] + windows.lengths[w]) for w in range(first, first + count)
        ]
        assert spans[0][0] == 0
        assert spans[-1][1] == length
        assert all(end - start == min(length, longest) for start, end in spans)
        assert all(end - start >= overlap for (_, end), (start, _) in pairwise(spans))
        fewer = count - 1
        assert count == 1 or longest * fewer - overlap * (fewer - 1) < length
