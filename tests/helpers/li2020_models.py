"""The models of Li, Fu & Ma (2020), as configured in conf/ or small, and a batch for them."""

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from places import CONF
from torch import Tensor, nn

INPUT, HIDDEN, HEADS, HEAD = 5, 3, 2, 4
LENGTHS = torch.tensor([4, 1, 3])
REAL = torch.arange(6) < LENGTHS[:, None]
MODELS = ["baseline", "cross", "attention"]


def build(name: str, *overrides: str, input_size: int = INPUT) -> nn.Module:
    with initialize_config_dir(str(CONF), version_base=None):
        cfg = compose(overrides=[f"+model={name}", "+layers=2", *overrides])
    return instantiate(cfg.model)(input_size=input_size)


def build_small(name: str, *overrides: str, input_size: int = INPUT) -> nn.Module:
    """A float64 model with random parameters, since errors in initial biases would go unnoticed."""
    heads = [f"model.num_heads={HEADS}", f"model.head_size={HEAD}"] if name == "attention" else []
    small = [f"model.hidden_size={HIDDEN}", *heads, *overrides]
    model = build(name, *small, input_size=input_size).double().eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def batch() -> Tensor:
    torch.manual_seed(1)
    return torch.randn(len(LENGTHS), REAL.shape[1], INPUT, dtype=torch.float64)
