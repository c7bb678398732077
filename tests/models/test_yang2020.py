"""The models of Yang & Xu (2020) against the paper's equations, written out in `yang2020_equations`."""

from functools import cache

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import DictConfig
from places import CONF
from torch import Tensor, nn
from yang2020_equations import LAYERS, Equations

INPUT, DENSE, HIDDEN = 5, 4, 3
LENGTHS = torch.tensor([4, 1, 3])
SMALL = [f"+layers={LAYERS}", f"model.hidden_size={HIDDEN}"]

TABLE_13 = {  # row: overrides, the options of `Equations`
    "full": ([], {}),
    "w/o dense layer": (["model/dense=none"], {"dense": False}),
    "w/o layer normalization": (["model/norm=none"], {"norm": False}),
    "w/o ReLU": (["model/activation=none"], {"activation": "none"}),
    "w/ ELU": (["model/activation=elu"], {"activation": "elu"}),
    "w/ GRU": (["model/cell=gru"], {"cell": "gru"}),
}
PLAIN = {"dense": False, "norm": False, "activation": "none"}
MODELS = {  # model: its name in conf/, overrides, the equations, their options
    "type a": ("residual_a", [], "type_a", PLAIN),
    "type b": ("residual_b", [], "type_b", PLAIN),
    "type c": ("residual_c", [], "local_residual", PLAIN),
    "type d": ("residual_d", [], "type_d", PLAIN),
    "stacked": ("stacked", [], "stacked", PLAIN),
}
MODELS |= {row: ("residual", changes, "local_residual", how) for row, (changes, how) in TABLE_13.items()}


@cache
def composed(name: str, *overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base=None):
        return compose(overrides=[f"+model={name}", *overrides])


def build(name: str, *overrides: str) -> nn.Module:
    return instantiate(composed(name, *overrides).model)(input_size=INPUT)


def build_small(name: str, *overrides: str) -> nn.Module:
    """float64 model with random parameters: errors in the initial values of a norm would go unnoticed."""
    size = [f"model.dense_size={DENSE}"] if name in {"residual", "residual_c"} else []
    model = build(name, *SMALL, *size, *overrides).double().eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def batch() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(len(LENGTHS), 6, INPUT, dtype=torch.float64)


@pytest.mark.parametrize("model", MODELS)
def test_outputs_and_gradients_are_those_of_the_equations(model: str):
    name, overrides, equations, options = MODELS[model]
    built, x = build_small(name, *overrides), batch().requires_grad_()
    oracle = Equations(dict(built.named_parameters()), **options)
    sentences = [[*s[:length]] for s, length in zip(x, LENGTHS.tolist(), strict=True)]
    expected = torch.stack([v for sentence in sentences for v in getattr(oracle, equations)(sentence)])
    states = built(x, LENGTHS)[torch.arange(x.shape[1]) < LENGTHS[:, None]]
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(states)
    ours, theirs = (
        torch.autograd.grad((outputs * weight).sum(), [x, *built.parameters()])
        for outputs in (states, expected)
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_number_of_parameters_in_the_setting_of_table_2():
    with torch.device("meta"):
        model = build("residual", "+layers=4")
    dense = 600 * INPUT + 3 * 600 * 600
    lstm = 2 * 4 * 300 * (600 + 300 + 2)  # two directions, four gates, PyTorch's two biases
    assert sum(p.numel() for p in model.parameters()) == dense + 4 * (2 * 600 + lstm)


@pytest.mark.parametrize("name", ["residual", "stacked"])
def test_dropout_is_the_last_before_each_bilstm(name: str):
    model = build(name, "+layers=3").double()
    seen: list[tuple[Tensor, Tensor]] = []
    for block in model.blocks:
        block.before.register_forward_hook(lambda _, args, output: seen.append((args[0], output)))
    x = batch()
    real = torch.arange(x.shape[1]) < LENGTHS[:, None]
    assert (model(x, LENGTHS)[real] != 0).all()
    for block, (x, dropped) in zip(model.blocks, [*seen], strict=True):
        whole, dropped = block.eval().before(x)[real], dropped[real]
        kept = dropped != 0
        torch.testing.assert_close(dropped[kept], 2 * whole[kept])
        share = kept.sum() / whole.count_nonzero()
        assert 0.3 < share < 0.7
