"""Properties of every architecture: each file of conf/model/ is built and tested in float64."""

from collections.abc import Sequence
from functools import cache

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import DictConfig
from places import CONF
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ner_experiments.config.config_dirs import names

MODELS = names("model")
INPUT_SIZE = 5
SMALL = {"hidden_size": 6, "dense_size": 8, "unit_size": 4}  # in place of the papers', where a model has them
EXACT = {"rtol": 1e-11, "atol": 1e-12}


@cache
def composed(name: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base=None):
        return compose(overrides=[f"+model={name}", "+layers=3"])


def build(name: str, *overrides: str) -> nn.Module:
    cfg = composed(name).copy().model
    for key in SMALL.keys() & cfg.keys():
        cfg[key] = SMALL[key]
    for override in overrides:
        key, value = override.split("=")
        cfg[key] = float(value) if "." in value else int(value)
    torch.manual_seed(0)
    return instantiate(cfg)(input_size=INPUT_SIZE).double().eval()


def sentences() -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(length, INPUT_SIZE, dtype=torch.float64) for length in (4, 1, 6, 3)]


def padded(batch: Sequence[Tensor], value: float, more: int) -> tuple[Tensor, Tensor]:
    """The batch and its lengths, padded with `value` to `more` than the longest sentence."""
    x = pad_sequence([*batch], batch_first=True, padding_value=value)
    return nn.functional.pad(x, (0, 0, 0, more), value=value), torch.tensor([len(s) for s in batch])


def unpadded(states: Tensor, lengths: Tensor) -> Tensor:
    return torch.cat([s[:length] for s, length in zip(states, lengths, strict=True)])


def gradients(model: nn.Module, x: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Gradients of a fixed random sum of the tokens' outputs by the input and every parameter."""
    x = x.clone().requires_grad_()
    states = unpadded(model(x, lengths), lengths)
    torch.manual_seed(2)
    return torch.autograd.grad((states * torch.randn_like(states)).sum(), [x, *model.parameters()])


@pytest.mark.parametrize("name", MODELS)
def test_padding_changes_nothing(name: str):
    model = build(name)
    least, most = padded(sentences(), value=0, more=0), padded(sentences(), value=1e3, more=3)
    torch.testing.assert_close(unpadded(model(*most), most[1]), unpadded(model(*least), least[1]), **EXACT)
    by_x_least, *by_parameters_least = gradients(model, *least)
    by_x_most, *by_parameters_most = gradients(model, *most)
    assert by_x_most.count_nonzero() == unpadded(by_x_most, most[1]).count_nonzero()
    torch.testing.assert_close(unpadded(by_x_most, most[1]), unpadded(by_x_least, least[1]), **EXACT)
    torch.testing.assert_close(by_parameters_most, by_parameters_least, **EXACT)


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_equals_its_sentences(name: str):
    model = build(name)
    x, lengths = padded(sentences(), value=0, more=0)
    alone = torch.cat([model(s[None], torch.tensor([len(s)]))[0] for s in sentences()])
    assert alone.shape[1] == model.output_size
    torch.testing.assert_close(unpadded(model(x, lengths), lengths), alone, **EXACT)


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_gets_gradient(name: str):
    model = build(name)
    _, *by_parameters = gradients(model, *padded(sentences(), value=0, more=0))
    names = [name for name, _ in model.named_parameters()]
    assert [n for n, gradient in zip(names, by_parameters, strict=True) if not gradient.any()] == []


def settings(name: str) -> dict[str, int | float]:
    """Sizes and rates of an architecture, by their types in conf/model."""
    return {key: value for key, value in composed(name).model.items() if type(value) in (int, float)}


@pytest.mark.parametrize("name", MODELS)
def test_sizes_of_zero_and_rates_above_one_are_refused(name: str):
    for key, value in settings(name).items():
        wrong = "0" if isinstance(value, int) else "1.5"
        with pytest.raises(ValueError, match=f"^{key} must be .*, got {wrong}$"):
            build(name, f"{key}={wrong}")
