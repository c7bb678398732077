"""Settings that the class of a part does not take, or lacks, are refused from its signature; nothing is constructed."""

import re
from typing import Any

import pytest
from omegaconf import OmegaConf

from ner_experiments.config.targets import check_targets


class Encoder:
    def __init__(self, *, input_size: int, size: int, rate: float = 0.5) -> None:
        raise AssertionError("constructed")


class Embedding:
    def __init__(self, *, num_words: int, dim: int) -> None: ...


class Optimizer:
    def __init__(self, weights: Any, rate: float) -> None: ...


class Anything:
    def __init__(self, **settings: Any) -> None: ...


def part(kind: type, **settings: Any) -> dict[str, Any]:
    return {"_target_": f"{__name__}.{kind.__name__}", "_partial_": True, **settings}


TAKEN: list[dict[str, Any]] = [
    {"model": part(Encoder, size=3)},
    {"model": part(Anything, size=3)},
    {"words": {"module": part(Embedding, dim=3)}},
    {"optimizer": part(Optimizer, rate=3, stand_in="for another")},
    {"schedule": part(Encoder) | {"_partial_": False, "input_size": 2, "size": 3}},
    {"data": part(Encoder, unknown=3), "init_from": {"model": part(Encoder)}},
]
REFUSED: dict[str, dict[str, Any]] = {
    "model.kernel: {}.Encoder has no argument 'kernel': remove the line, or add it to the class; there are: size, "
    "rate": {"model": part(Encoder, size=3, kernel=3)},
    "model.size: {}.Encoder requires the argument 'size': add a line for it, or a default to the class": {
        "model": part(Encoder)
    },
    "model: {}.Embedding has no argument 'input_size', which every model is given: add it": {
        "model": part(Embedding, dim=3)
    },
    "words.module.dims: {}.Embedding has no argument 'dims': remove the line, or add it to the class; did you mean "
    "'dim'?": {"words": {"module": part(Embedding, dims=3)}},
    "optimizer.rate: {}.Optimizer requires the argument 'rate': add a line for it, or a default to the class": {
        "optimizer": part(Optimizer)
    },
    "decoder: {}.Encoder has no argument 'num_tags', which every decoder is given: add it": {
        "decoder": part(Encoder)
    },
    "penalty.inner.size: {}.Encoder requires the argument 'size': add a line for it, or a default to the class": {
        "penalty": part(Anything, inner=part(Encoder, _partial_=False, input_size=3))
    },
}


@pytest.mark.parametrize("settings", TAKEN)
def test_settings_that_the_classes_take_pass(settings: dict[str, Any]) -> None:
    check_targets(OmegaConf.create(settings))


@pytest.mark.parametrize("message", REFUSED)
def test_a_setting_that_a_class_does_not_take_or_lacks_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message.format(__name__))}$"):
        check_targets(OmegaConf.create(REFUSED[message]))
