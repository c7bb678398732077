"""Published against measured scores: the coefficient of variation and the rank correlation of QRA++."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_rows import page_of

from ner_experiments.tables.reproducibility import coefficient_of_variation, rank_correlation, reproducibility
from ner_experiments.tables.table_view import TableView


def test_the_coefficient_is_that_of_the_paper() -> None:
    """Belz, Popovic & Mille (2022), PASS, clarity: 5.64 and 6.30 on a scale from 1, so 4.64 and 5.30: about 13.2."""
    assert coefficient_of_variation([4.64, 5.30]) == pytest.approx(13.2, abs=0.1)
    assert coefficient_of_variation([80.0, 80.0]) == 0.0


def test_the_deviation_has_no_bias_in_small_samples() -> None:
    """The mean of s / c4 over normal samples is the true deviation."""
    samples = np.random.default_rng(0).normal(100, 2, (20_000, 3))
    found = np.mean([coefficient_of_variation(list(sample)) for sample in samples])
    assert found == pytest.approx(2 * (1 + 1 / 12), rel=0.02)


def test_ranks_are_compared_from_three_rows_on() -> None:
    assert rank_correlation([(90, 80), (91, 81), (92, 85)]) == pytest.approx(1)
    assert rank_correlation([(90, 85), (91, 81), (92, 80)]) == pytest.approx(-1)
    assert rank_correlation([(90, 81), (91, 80), (92, 85), (93, 84)]) == pytest.approx(1 - 6 * 4 / (4 * 15))
    assert rank_correlation([(90, 80), (91, 81)]) is None
    assert rank_correlation([(90, 80), (90, 81), (90, 82)]) is None


def test_a_page_says_how_close_the_scores_are_and_other_data_do_not_count(tmp_path: Path) -> None:
    page = page_of(f"output_dir={tmp_path}")
    assert reproducibility(page) == []  # of other data than the published
    assert "CV*" not in TableView(page).markdown()
    same = replace(page, results=tuple(replace(it, comparable=True) for it in page.results))
    (found,) = reproducibility(same)
    assert (found.rows, found.rank_correlation) == (2, None)
    expected = [
        math.sqrt(math.pi)
        / 2
        * abs(it.row.published - it.measured.mean)
        / ((it.row.published + it.measured.mean) / 2)
        for it in same.results
        if it.measured and isinstance(it.row.published, float)
    ]
    # 1 / (sqrt(2) c4(2)) is sqrt(pi) / 2
    assert found.cv == pytest.approx(100 * 1.125 * np.mean(expected))
    assert f"toy_zh (2 rows) CV* {found.cv:.2f} %." in TableView(same).markdown()
    assert f"toy\\_zh (2 rows) CV* {found.cv:.2f} \\%." in TableView(same).latex()
    assert json.loads(TableView(same).json())["reproducibility"] == [found.record()]
