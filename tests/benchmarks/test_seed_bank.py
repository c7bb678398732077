"""Calibration on the seed bank: the methods are those of the analysis, and simulated cells show what each is worth."""

import importlib
import json
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from places import BENCHMARKS
from scipy.stats import chi2, t

from ner_experiments.analysis.statistics import difference

CELLS = ("crf", "softmax", "stacked", "residual")


@pytest.fixture
def calibrate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "seed_bank"))
    return importlib.import_module("calibrate")


def bank(folder: Path, spread: float, corpus: str = "weibo") -> Path:
    """Files of four cells of 30 seeds with normal scores; `spread` is that of the logarithms of their deviations."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for mean, row in zip((50, 50.5, 51, 52), CELLS, strict=True):
        scores = rng.normal(mean, np.exp(rng.normal(0, spread)), 30)
        runs = [json.dumps({"seed": seed, "f1": score / 100}) for seed, score in enumerate(scores, start=1)]
        (folder / f"{corpus}-{row}.jsonl").write_text("\n".join(runs) + "\n")
    return folder


def test_welchs_t_is_that_of_the_tables(calibrate: ModuleType) -> None:
    table = np.random.default_rng(1).normal(80, [[[0.3]], [[0.5]], [[0.4]], [[0.9]]], (4, 20, 3))
    samples = calibrate.Samples(table, 1, 3)
    error, freedom = calibrate.METHODS["Welch t"](samples)
    for draw in range(20):
        found = difference(table[1, draw], table[3, draw])
        assert (error[draw], freedom[draw]) == pytest.approx((found.error, found.freedom))
        assert samples.gap[draw] == pytest.approx(found.mean)


OF_LIMMA = [
    ([0.36, 1.9, 0.12, 5.2], 1, math.inf, 1.895),
    ([0.36, 1.9, 0.12, 5.2], 2, 2.51961642452, 0.920933264186),
    ([0.36, 1.9, 0.12, 5.2], 4, 1.65439091386, 0.518489691476),
    ([2.43, 2.31, 4.62, 4.24], 2, math.inf, 3.4),
    ([0.03, 0.02, 0.9], 4, 1.18242901743, 0.0374407241038),
    ([0.5, 0, 0.02], 2, 0.264978430612, 6.11866762273e-06),
    ([0.01, 4, 0.3, 0.02, 9, 0.7, 0.05], 1, 1.82090170593, 0.483573663788),
]
"""Variances, their degrees of freedom, and what `fitFDist` of limma 3.54.1 returns: `df2` and `scale`."""


@pytest.mark.parametrize(("variances", "freedom", "of_prior", "scale"), OF_LIMMA)
def test_the_prior_is_limmas(
    calibrate: ModuleType, variances: list[float], freedom: int, of_prior: float, scale: float
) -> None:
    found = [it.item() for it in calibrate.priors(np.array(variances)[:, None], float(freedom))]
    assert found == pytest.approx([of_prior, scale], rel=1e-9)


def test_a_moderated_variance_is_the_mean_weighted_by_degrees_of_freedom(calibrate: ModuleType) -> None:
    scores = np.array([[80.0, 80.5, 81.9], [79.0, 80.2, 80.1], [70.0, 75.0, 81.0]])
    (error,), (freedom,) = calibrate.moderated(4.0)(calibrate.Samples(scores[:, None], 0, 1))
    own = scores.var(axis=1, ddof=1)
    of_prior, scale = (it.item() for it in calibrate.priors(own[:, None], 2.0))
    weight = min(of_prior, 4.0)
    first, second = (weight * scale + 2 * own[:2]) / (weight + 2) / 3
    assert error == pytest.approx(math.sqrt(first + second))
    assert freedom == pytest.approx((first + second) ** 2 / ((first**2 + second**2) / (weight + 2)))


def test_equal_deviations_are_covered_in_95_percent_and_normal_quantiles_too_rarely(
    calibrate: ModuleType, tmp_path: Path
) -> None:
    tables = calibrate.complete_tables(bank(tmp_path / "runs", spread=0.0), 30)
    result = calibrate.calibrate(tables, draws=4000)
    for figures in result["samples"]:
        of_all_rows = calibrate.summary(figures, "Student t, all rows of the table")
        assert 0.935 <= of_all_rows["coverage"][1] <= 0.965
        assert of_all_rows["false_claims"][0] <= 0.065
        assert of_all_rows["width"] < 0.9
        normal = calibrate.summary(figures, "normal quantiles")
        assert normal["coverage"][1] < of_all_rows["coverage"][1]
        assert normal["false_claims"][0] > 0.07
        assert not normal["within"]
        assert calibrate.summary(figures, calibrate.PAIRED)["width"] == 1.0
        n = figures["seeds"]
        median_sd = math.sqrt(
            chi2.ppf(0.5, n - 1) / (n - 1)
        )  # of n normal scores, as a share of the true one
        expected = 1.96 / (t.ppf(0.975, n - 1) * median_sd)
        assert calibrate.narrowest_width(figures, result["bank"]) == pytest.approx(expected, rel=0.1)
    assert [figures["seeds"] for figures in result["samples"]] == [2, 3, 5]


def test_the_tables_use_the_narrowest_of_the_valid_methods(calibrate: ModuleType) -> None:
    result = json.loads((BENCHMARKS / "seed_bank" / "calibration.json").read_text())
    assert calibrate.valid_methods(result)[0] == calibrate.USED == difference([1.0, 2.0], [1.0, 3.0]).test
