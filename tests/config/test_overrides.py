"""Overrides that `compose` accepts and refuses, and its messages."""

import pytest
from omegaconf import OmegaConf

from ner_experiments.config.compose import compose
from ner_experiments.experiment_data import init_config


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        (["data=conll", "data.comments=null"], "data.comments"),
        (["data=msra", "data.empty_tag=null"], "data.empty_tag"),
    ],
)
def test_null_is_accepted_where_the_parameter_may_be_none(overrides: list[str], key: str) -> None:
    part, _, name = key.partition(".")
    assert compose(overrides)[part][name] is None


@pytest.mark.parametrize("key", ["data.encoding", "data.tag_style", "seed"])
def test_null_is_refused_elsewhere(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} must be .*, got null"):
        compose(["data=conll", f"{key}=null"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("init_from={optimizer: {lr: 0.1}}", "init_from has no 'optimizer.lr' yet; to add it: +init_from="),
        (
            "+init_from={optimizer: {lrr: 0.1}}",
            "there is no setting 'optimizer.lrr'; did you mean 'optimizer.lr'?",
        ),
        ("+init_from={optimizer: {lr: fast}}", "optimizer.lr must be a number, got fast"),
        ("+init_from={optimizer: sgd}", "optimizer must be a mapping, got sgd"),
    ],
)
def test_a_first_run_has_the_settings_of_an_experiment(override: str, message: str) -> None:
    with pytest.raises(ValueError, match="init_from") as error:
        compose([override])
    assert str(error.value).startswith(f"{override}: {message}")


def test_a_first_run_is_the_experiment_with_changes() -> None:
    second = compose(["+init_from={optimizer: {lr: 0.1}, trainer: {max_epochs: 3}}"])
    expected = compose(["optimizer.lr=0.1", "trainer.max_epochs=3"])
    assert init_config(second) == expected


def test_a_part_with_a_class_and_an_empty_part_replace_those_of_the_experiment() -> None:
    part = "{_target_: torch.optim.SGD, _partial_: true, lr: 0.1}"
    second = compose(["schedule=linear", f"+init_from={{optimizer: {part}, schedule: {{}}}}"])
    first = init_config(second)
    assert first.optimizer == OmegaConf.create(part)
    assert first.schedule == {}
