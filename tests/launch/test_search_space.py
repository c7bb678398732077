"""Ranges of a command line: what they mean, which are refused, and the spaces of conf/search."""

import math
import re
from typing import Any

import pytest
from cases import refused
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from ner_experiments.config import launch_settings
from ner_experiments.config.compose import jobs
from ner_experiments.config.config_dirs import CONF, names
from ner_experiments.config.job import CommandLine
from ner_experiments.launch import search_space
from ner_experiments.launch.search import expanded, planned
from ner_experiments.launch.search_space import read_space

OPTUNA = "hydra/sweeper=optuna"


def search(*overrides: str) -> search_space.Space:
    """The search that a command line asks for."""
    line = CommandLine.of(expanded(overrides, sweep=True))
    launch_settings.check(line, sweep=True)
    return planned(line, overrides)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("optimizer.lr=interval(0.001,0.01)", FloatDistribution(0.001, 0.01)),
        ("optimizer.lr=tag(log, interval(0.001,0.01))", FloatDistribution(0.001, 0.01, log=True)),
        ("layers=int(interval(1,4))", IntDistribution(1, 4)),
        ("layers=int(tag(log,interval(1,8)))", IntDistribution(1, 8, log=True)),
        ("layers=range(1,4)", IntDistribution(1, 3)),
        ("layers=range(1,8,3)", IntDistribution(1, 7, step=3)),
        ("layers=range(6,1,-2)", IntDistribution(2, 6, step=2)),
        ("layers=tag(log,range(1,9))", IntDistribution(1, 8, log=True)),
        ("model.dropout=range(0,0.5,0.1)", FloatDistribution(0.0, 0.4, step=0.1)),
        ("model.hidden_size=choice(50,100)", CategoricalDistribution(("50", "100"))),
        ("model.hidden_size=50,100,50", CategoricalDistribution(("50", "100"))),
        ("chars.module.widths=choice([3],[2,3])", CategoricalDistribution(("[3]", "[2,3]"))),
        ("model=glob(residual_*)", CategoricalDistribution(tuple(f"residual_{kind}" for kind in "abcd"))),
    ],
)
def test_a_range_means_what_hydra_says_it_means(override: str, expected: Any) -> None:
    (found,) = read_space([override]).dimensions
    assert found.distribution == expected


def test_a_range_has_the_values_that_a_sweep_over_it_has() -> None:
    """An oracle: Hydra's own sweeper enumerates the same ranges."""
    for override in ("layers=range(1,4)", "layers=range(9,2,-3)", "model.dropout=range(0.1,0.6,0.2)"):
        (found,) = read_space([override]).dimensions
        values = [found.override(value) for value in found.points()]
        swept = [job[-1] for job in jobs(["model=stacked", override])]
        numbers = [sorted(float(item.partition("=")[2]) for item in items) for items in (values, swept)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-12)
        assert len(values) == found.size


def test_what_does_not_vary_is_shared_and_seeds_are_never_searched() -> None:
    space = read_space(["data=toy_en", "seed=3,1", "layers=range(1,4)"])
    assert space.fixed == ("data=toy_en",)
    assert space.ranges == ["layers=range(1,4)"]
    assert space.seeds == (3, 1)
    expected = [["data=toy_en", "layers=2", f"seed={seed}", "audit.test=false"] for seed in (3, 1)]
    assert space.jobs(["layers=2"]) == expected


def test_a_value_of_an_interval_is_run_as_it_is_printed_and_stays_within() -> None:
    (found,) = read_space(["optimizer.lr=interval(0.0012344,0.0099999)"]).dimensions
    assert found.override(0.00123441) == "optimizer.lr=0.0012344"
    assert found.override(0.00567891) == "optimizer.lr=0.005679"
    assert found.override(0.00999989) == "optimizer.lr=0.0099999"
    (small,) = read_space(["optimizer.lr=tag(log,interval(1e-6,1))"]).dimensions
    assert [small.override(value) for value in (0.00001234567, 1.0)] == [
        "optimizer.lr=1.235e-05",
        "optimizer.lr=1.0",
    ]


def test_the_points_of_a_small_space_are_those_that_were_not_tried() -> None:
    space = read_space(["layers=range(1,4)", "model.hidden_size=50,100"])
    every = space.untried(set())
    assert len(every) == space.size == 6
    tried = {tuple(space.overrides(point)) for point in every[1:]}
    assert space.untried(tried) == every[:1] == [{"layers": 1, "model.hidden_size": "50"}]
    assert read_space(["optimizer.lr=interval(0.1,1)", "layers=range(1,4)"]).size == math.inf


def test_the_name_says_what_varies_and_changes_with_what_can_change_a_score() -> None:
    base = ["data=toy_en", "layers=range(1,4)"]
    name = read_space(base).name()
    assert name.startswith("layers-")
    same = [
        "output_dir=elsewhere",
        "runtime.progress=false",
        "data=toy_en",
        "layers=range(1,4)",
        "logger=wandb",
    ]
    assert read_space(same).name() == name
    others = [
        ["data=toy_zh", base[1]],
        [base[0], "layers=range(1,5)"],
        [*base, "seed=2"],
        [*base, "chars=none"],
    ]
    assert name not in {read_space(other).name() for other in others}
    assert read_space(base).name("TPESampler, seed 2") != name


REFUSED = refused("""
optimizer.lr=interval(0.01,0.001) -> an interval must go from a number to a larger one
optimizer.lr=interval(0.1,0.1) -> an interval must go from a number to a larger one
optimizer.lr=interval(0,inf) -> an interval must go from a number to a larger one
optimizer.lr=tag(log,interval(0,0.1)) -> a logarithmic range starts above 0
optimizer.lr=tag(lgo,interval(0.1,1)) -> there is no tag 'lgo'; there is: log
layers=range(4,1) -> the range has no values
layers=range(1,4,0) -> the range has no values
layers=tag(log,range(1,9,2)) -> a logarithmic range has no step
optimizer.lr=tag(log,range(1.0,4.0)) -> a logarithmic range must be of integers; for other numbers use an interval
layers=tag(log,choice(1,2)) -> a choice has no logarithmic scale
model=glob(nothing*) -> nothing to choose from
seed=interval(1,4) layers=1,2 -> expected seeds, such as seed=1 or seed=1,2,3
seed=1,1 layers=1,2 -> the seeds must be different
seed=1,2 -> there is nothing to search: give a setting a range, such as
data=toy_en -> there is nothing to search: give a setting a range, such as
output_dir=a,b -> output_dir cannot change a result, so it is not searched
audit.test_every_epoch=true,false -> audit.test_every_epoch cannot change a result, so it is not searched
layers=1,2 audit.test=true -> a search does not score test; score the best settings after it
layers=1,2 model=stacked audit.test_every_epoch=true -> audit.test_every_epoch=true scores test
model=stacked layers=interval(1,4) -> for whole numbers: layers=int(interval(1,4))
model=stacked layers=choice(1,two) -> layers must be an integer, got two
model=lstm layers=range(1,4) -> no part of this experiment has a number of layers to set
model=bilstm optimizer.lr=0.1,0.2 layers=1,2 -> layers=1,2: layers=1: no part of this experiment has
model=bilstm search=residual -> search/residual.yaml: layers=range(2, 7): layers=2: no part of this experiment has
model=stackd,residual -> model has no 'stackd'; did you mean 'stacked'?
optimizer.lrr=interval(0.1,0.2) -> there is no setting 'optimizer.lrr'; did you mean 'optimizer.lr'?
model.hidden=choice(1,2) model=stacked -> there is no setting 'model.hidden'
data=toy_en,toy_zh -> trials on different data cannot be compared
data.max_sentences=10,20 -> trials on different data cannot be compared
layers=1,2 table=yang2020_table12 -> table=yang2020_table12: a search has no table
layers=1,2 seeds=[1,2] -> seeds=[1,2]: a search takes seeds as seed=1,2,3
layers=1,2 sweep.name=mine -> sweep.name=mine: a search is named by hydra.sweeper.study_name
layers=1,2 sweep.looks=[2,4] -> sweep.looks=[2,4]: a search takes seeds as seed=1,2,3
layers=1,2 hydra.sweeper.n_trials=0 -> hydra.sweeper.n_trials must be at least 1, got 0
layers=1,2 hydra.sweeper.n_jobs=-1 -> hydra.sweeper.n_jobs must be at least 1, got -1
layers=1,2 hydra.sweeper.n_trials=ten -> 'ten'
layers=1,2 hydra.sweeper.sampler.seed=null -> field 'hydra.sweeper.sampler.seed' is not Optional
layers=1,2 hydra.sweeper.sampler.seed=-1 -> hydra.sweeper.sampler.seed must be at least 0, got -1
layers=1,2 hydra.sweeper.study_name=../mine -> hydra.sweeper.study_name names a folder
layers=1,2 hydra.sweeper.trials=3 -> trials
layers=1,2 hydra/sweeper/sampler=tbe -> tbe
layers=choice( -> layers=choice(: Hydra has no such function
search=residul -> there is no search 'residul'; did you mean 'residual'?
""")


@pytest.mark.parametrize(("overrides", "message"), REFUSED)
def test_a_search_that_cannot_be_is_refused(overrides: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        search(OPTUNA, *overrides.split())


def test_a_search_is_a_sweep() -> None:
    for asked in (OPTUNA, "search=residual"):
        with pytest.raises(ValueError, match=f"^{asked} is a search: add -m$"):
            expanded([asked, "layers=1,2"], sweep=False)
    assert expanded(["layers=1,2"], sweep=True) == ["layers=1,2"]


@pytest.mark.parametrize("text", ["interval(0.1,1)", "tag(log, interval(0.1,1))", "int(interval(1,2))"])
def test_an_interval_without_the_sweeper_is_refused_with_what_to_add(text: str) -> None:
    with pytest.raises(ValueError, match=r"an interval can only be searched: add hydra/sweeper=optuna$"):
        jobs(["data=toy_en", f"optimizer.lr={text}"])


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_settings, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=r"^hydra/sweeper=optuna needs Optuna: pip install -e '\.\[search\]'$"
    ):
        search(OPTUNA, "layers=1,2")


# The spaces of conf/search


def test_every_model_has_a_space() -> None:
    assert names("search") == names("model")


@pytest.mark.parametrize("name", names("model"))
def test_a_space_is_one_of_its_model_and_holds(name: str) -> None:
    """Every end of its ranges is composed, with the default settings and with the corpus of the other language."""
    for more in ([], ["data=toy_zh"]):
        space = search(f"search={name}", *more)
        assert f"model={name}" in space.fixed
        assert 2 <= len(space.dimensions) <= 5
    assert (CONF / "search" / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")


def test_what_is_typed_replaces_a_range_of_the_space() -> None:
    space = search("search=residual", "layers=4", "optimizer.lr=interval(0.1,0.2)")
    assert space.ranges == [
        "optimizer.lr=interval(0.1,0.2)",
        "model.hidden_size=choice(100, 200, 300)",
        "model.dropout=interval(0.0, 0.7)",
    ]
    assert "layers=4" in space.fixed
