"""The parallel BiLSTMs of Zukov-Gregoric et al. (2018) against its equations and PyTorch's LSTM."""

import math
from collections.abc import Iterator, Sequence

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from places import CONF
from torch import Tensor, nn

from ner_experiments.models.parallel import ParallelBiLSTM
from ner_experiments.modules.units import BiLSTMUnits
from ner_experiments.tagger import count_parameters

INPUT, UNITS, SIZE = 5, 3, 4
LENGTHS = torch.tensor([4, 1, 6, 3])
SMALL = [f"model.num_units={UNITS}", f"model.unit_size={SIZE}"]
WEIGHTS = ["units.input_weights", "units.recurrent_weights"]


def build(*overrides: str, input_size: int = INPUT) -> ParallelBiLSTM:
    with initialize_config_dir(str(CONF), version_base=None):
        cfg = compose(overrides=["+model=parallel", *overrides])
    return instantiate(cfg.model)(input_size=input_size)


def build_small(*overrides: str) -> ParallelBiLSTM:
    """float64 model with random parameters: an error in biases of 0 would go unnoticed."""
    model = build(*SMALL, *overrides).double()
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def batch() -> Tensor:
    return torch.randn(len(LENGTHS), 7, INPUT, dtype=torch.float64)


def unpadded(states: Tensor) -> Tensor:
    return torch.cat([s[:length] for s, length in zip(states, LENGTHS.tolist(), strict=True)])


def lstm(
    units: BiLSTMUnits, direction: int, unit: int, xs: Sequence[Tensor], mask: Tensor
) -> Iterator[Tensor]:
    """One unit in one direction as section 2.1 writes it, with biases, and `mask` on what W reads."""
    (w_i, w_f, w_c, w_o), (u_i, u_f, u_c, u_o), (b_i, b_f, b_c, b_o) = (
        parameter[direction, unit].split(SIZE)
        for parameter in (units.recurrent_weights, units.input_weights, units.biases)
    )
    h = c = torch.zeros(SIZE, dtype=torch.float64)
    for x in xs:
        seen = mask * h
        i = torch.sigmoid(w_i @ seen + u_i @ x + b_i)
        f = torch.sigmoid(w_f @ seen + u_f @ x + b_f)
        o = torch.sigmoid(w_o @ seen + u_o @ x + b_o)
        c = f * c + i * torch.tanh(w_c @ seen + u_c @ x + b_c)
        h = o * torch.tanh(c)
        yield h


def equations(model: ParallelBiLSTM, x: Tensor, masks: Tensor) -> Tensor:
    """The concatenated states of all tokens; `masks` are numbered by direction, unit and sentence."""
    tokens = []
    for number, (sentence, length) in enumerate(zip(x, LENGTHS.tolist(), strict=True)):
        xs, columns = [*sentence[:length]], []
        for unit in range(UNITS):
            columns.append([*lstm(model.units, 0, unit, xs, masks[0, unit, number])])
            columns.append([*lstm(model.units, 1, unit, xs[::-1], masks[1, unit, number])][::-1])
        tokens += [torch.cat(states) for states in zip(*columns, strict=True)]
    return torch.stack(tokens)


def drawn_masks(model: ParallelBiLSTM) -> list[Tensor]:
    masks: list[Tensor] = []
    model.units.dropout.register_forward_hook(
        lambda _, args, mask: masks.append(mask.view(2, UNITS, len(LENGTHS), SIZE))
    )
    return masks


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "with the masks of training"])
def test_outputs_and_gradients_are_those_of_the_equations(training: bool):
    model, x = build_small("model.dropout=0.5").train(training), batch().requires_grad_()
    masks = drawn_masks(model)
    states = unpadded(model(x, LENGTHS))
    assert len(masks) == training  # one draw for all time steps
    mask = masks[0] if training else torch.ones(2, UNITS, len(LENGTHS), SIZE, dtype=torch.float64)
    assert mask.unique().tolist() == ([0, 2] if training else [1])
    expected = equations(model, x, mask)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(states)
    ours, theirs = (
        torch.autograd.grad((outputs * weight).sum(), [x, *model.parameters()])
        for outputs in (states, expected)
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_masks_differ_between_directions_units_sentences_and_calls():
    model = build("model.num_units=3", "model.unit_size=200").train()
    seen: list[Tensor] = []
    model.units.dropout.register_forward_hook(lambda _, args, mask: seen.append(mask))
    x = torch.randn(len(LENGTHS), 7, INPUT)
    model(x, LENGTHS), model(x, LENGTHS)
    masks = torch.cat(seen)
    assert masks.shape == (2 * 2 * 3, len(LENGTHS), 200)
    assert len(masks.flatten(0, 1).unique(dim=0)) == 2 * 2 * 3 * len(LENGTHS)
    torch.testing.assert_close(masks[masks != 0].unique(), torch.tensor([1 / 0.9]))
    assert 0.08 < (masks == 0).double().mean() < 0.12


def test_dropout_on_all_also_masks_input_and_output_with_one_mask_per_sentence():
    model, x = build_small("model/dropout_on=all", "model.dropout=0.5").train(), batch()
    inputs: list[Tensor] = []
    model.units.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    pooled: list[Tensor] = []
    model.pool.register_forward_hook(lambda _, args, states: pooled.append(states))
    outputs = model(x, LENGTHS)
    for before, after in ((x, inputs[0]), (pooled[0], outputs)):
        for number, length in enumerate(LENGTHS.tolist()):
            factors = after[number, :length] / before[number, :length]
            assert {*factors.round(decimals=9).flatten().tolist()} <= {0.0, 2.0}
            torch.testing.assert_close(factors, factors[:1].expand_as(factors))
    without = build_small("model.dropout=0.5").eval()
    without.load_state_dict(model.state_dict())
    torch.testing.assert_close(model.eval()(x, LENGTHS), without(x, LENGTHS), rtol=0, atol=0)


def test_by_default_dropout_is_on_the_recurrent_state_alone():
    with initialize_config_dir(str(CONF), version_base=None):
        assert "ends_dropout" not in compose(overrides=["+model=parallel"]).model
    assert build("model.dropout=0.5").ends_dropout.p == 0


def test_mean_pool_is_the_mean_of_the_units():
    concat, mean = build_small().eval(), build_small("model/pool=mean").eval()
    mean.load_state_dict(concat.state_dict())
    x = batch()
    states = concat(x, LENGTHS).unflatten(2, (UNITS, 2 * SIZE))
    expected = sum(states[:, :, unit] for unit in range(UNITS)) / UNITS
    torch.testing.assert_close(mean(x, LENGTHS), expected, rtol=0, atol=1e-12)
    assert (concat.output_size, mean.output_size) == (UNITS * 2 * SIZE, 2 * SIZE)


@pytest.mark.parametrize(
    ("init", "of_input", "of_recurrent"),
    [("glorot", (6 / (30 + 20)) ** 0.5, (6 / (20 + 20)) ** 0.5), ("pytorch", 20**-0.5, 20**-0.5)],
)
def test_each_matrix_of_a_gate_starts_uniform_within_its_bound(
    init: str, of_input: float, of_recurrent: float
):
    units = build("model.unit_size=20", f"model/init={init}", input_size=30).units
    for weights, bound in [(units.input_weights, of_input), (units.recurrent_weights, of_recurrent)]:
        reached = weights.unflatten(2, (4, 20)).abs().amax(dim=(3, 4))  # 2 x 16 x 4 matrices
        assert reached.max() <= bound
        assert reached.min() > 0.95 * bound
        torch.testing.assert_close(weights.var().item(), bound**2 / 3, rtol=0.05, atol=0)
    assert not units.biases.any()


def test_unit_normal_start():
    units = build("model/init=normal").units
    assert [round(w.std().item(), 1) for w in (units.input_weights, units.recurrent_weights)] == [1, 1]


@pytest.mark.parametrize("units", [1, 2, 16])
def test_k_units_have_one_kth_of_the_recurrent_weights(units: int):
    size = 64 // units
    model = build(f"model.num_units={units}", f"model.unit_size={size}", input_size=30)
    printed = count_parameters(torch.nn.ModuleDict({"model": model}))["model_weights"]
    assert printed == 2 * units * 4 * (size * 30 + size**2)
    assert printed == sum(dict(model.named_parameters())[name].numel() for name in WEIGHTS)
    assert model.units.recurrent_weights.numel() == 2 * 4 * 64**2 / units


def test_cell_state_keeps_its_precision_under_autocast():
    """c grows by 1/1024 a step, less than bfloat16 can add to 1/4."""
    model = build("model.num_units=1", "model.unit_size=1", input_size=1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.units.biases[:] = torch.tensor([40, 40, 1 / 1024, 40])
        with torch.autocast("cpu", torch.bfloat16):
            last = model(torch.zeros(1, 1000, 1), torch.tensor([1000]))[0, -1, 0]
    assert last.item() == pytest.approx(math.tanh(1000 / 1024), abs=1e-3)
