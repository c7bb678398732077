"""The models of Li, Fu & Ma (2020) against the paper's equations, written out in `li2020_equations`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from li2020_equations import Equations, Masks, attention
from li2020_models import HEAD, HEADS, HIDDEN, INPUT, LENGTHS, MODELS, REAL, batch, build_small
from torch import Tensor, nn

from ner_experiments.models import attention as attention_model
from ner_experiments.models.attention import AttBiLSTM, SelfAttention
from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.variational_lstm import VariationalLSTMs


@contextmanager
def masks_of(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Factors of each dropout, [LSTMs and sentences, size], recorded in a run of the model."""
    found: dict[str, Tensor] = {}

    def noting(name: str):
        def note(module: nn.Module, args: tuple[Tensor], output: Tensor) -> None:
            factors = (output / args[0]).detach()
            found[name] = factors[:, 0] if isinstance(module, VariationalDropout) else factors.flatten(0, 1)

        return note

    modules = {n: m for n, m in model.named_modules() if isinstance(m, VariationalDropout | nn.Dropout)}
    handles = [module.register_forward_hook(noting(name)) for name, module in modules.items()]
    yield found
    for handle in handles:
        handle.remove()


def expected(name: str, model: nn.Module, x: Tensor, masks: dict[str, Tensor], num_layers: int) -> Tensor:
    """The equations' output for the real tokens of the batch."""
    p = dict(model.named_parameters())
    if name == "attention":
        p |= dict(model.bilstm.named_parameters())
        masks = {mask.removeprefix("bilstm."): rows for mask, rows in masks.items()}
    outputs = []
    for sentence, length in enumerate(LENGTHS.tolist()):
        equations = Equations(p, Masks(masks), sentence, len(LENGTHS), num_layers)
        states = (equations.cross if name == "cross" else equations.baseline)([*x[sentence, :length]])
        if name == "attention":
            contexts, _ = attention(dict(model.attention.named_parameters()), states, HEADS, HEAD)
            states = equations.joined(states, contexts)
        outputs += states
    return torch.stack(outputs)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients_are_those_of_the_equations(name: str, training: bool, layers: int):
    model, x = build_small(name, f"layers={layers}").train(training), batch().requires_grad_()
    with masks_of(model) as masks:
        ours = model(x, LENGTHS)[REAL]
    assert len(masks) == (2 * layers if training else layers) + 1  # evaluation asks for none within the LSTMs
    assert {round(kept, 9) for rows in masks.values() for kept in rows.flatten().tolist()} <= (
        {0, round(1 / 0.65, 9)} if training else {1}
    )
    theirs = expected(name, model, x, masks, layers)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    weight = torch.randn_like(theirs)
    gradients = [torch.autograd.grad((y * weight).sum(), [x, *model.parameters()]) for y in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


def test_attention_of_each_head_and_token_is_that_of_the_equations():
    torch.manual_seed(2)
    module = SelfAttention(input_size=7, num_heads=HEADS, head_size=HEAD).double()
    h = 3 * torch.randn(len(LENGTHS), REAL.shape[1], 7, dtype=torch.float64)
    contexts, weights = module(h, LENGTHS)
    for sentence, length in enumerate(LENGTHS.tolist()):
        vectors, alphas = attention(dict(module.named_parameters()), [*h[sentence, :length]], HEADS, HEAD)
        torch.testing.assert_close(contexts[sentence, :length], torch.stack(vectors), rtol=0, atol=1e-10)
        for head, rows in zip(weights[sentence], alphas, strict=True):
            torch.testing.assert_close(head[:length, :length], torch.stack(rows), rtol=0, atol=1e-10)
    torch.testing.assert_close(weights.sum(3), torch.ones_like(weights[..., 0]))
    assert not weights.masked_select(~REAL[:, None, None]).any()


@pytest.mark.parametrize("lengths", [[40, 31, 1], [40]], ids=["several", "one"])
def test_attention_of_long_sentences_stores_no_weights_and_is_the_same(
    lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in training: before, 50,000 tokens took 50 GB there, and minutes to tag."""
    torch.manual_seed(2)
    model = AttBiLSTM(input_size=5, num_layers=1, hidden_size=4, num_heads=HEADS, head_size=HEAD, dropout=0.0)
    x = torch.randn(len(lengths), 40, 5, dtype=torch.float64, requires_grad=True)
    real = torch.arange(40) < torch.tensor(lengths)[:, None]
    weight = torch.randn(len(lengths), 40, model.output_size, dtype=torch.float64)[real]
    seen: list[torch.Tensor] = []
    model.double().attention.register_forward_hook(lambda *call: seen.append(call[-1]))

    def output_and_gradients() -> list[torch.Tensor]:
        output = model(x, torch.tensor(lengths))[real]
        return [output, *torch.autograd.grad((output * weight).sum(), [x, *model.parameters()])]

    expected = output_and_gradients()
    assert len(seen) == 1
    monkeypatch.setattr(attention_model, "LONG", 12)
    torch.testing.assert_close(output_and_gradients(), expected)
    assert len(seen) == 1


def second_difference(name: str, layers: int) -> float:
    """s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2) of random scores of a token: largest, relative to s."""
    model = build_small(name, f"layers={layers}")
    torch.manual_seed(3)
    pasts = [torch.randn(length, INPUT, dtype=torch.float64) for length in (1, 3)]
    token = torch.randn(1, INPUT, dtype=torch.float64)
    futures = [torch.randn(length, INPUT, dtype=torch.float64) for length in (2, 1)]
    scores = nn.Linear(model.output_size, 4).double()
    s = []
    for past in pasts:
        for future in futures:
            x = torch.cat([past, token, future])
            s.append(scores(model(x[None], torch.tensor([len(x)])))[0, len(past)])
    return ((s[0] - s[1] - s[2] + s[3]).abs().max() / torch.stack(s).abs().max()).item()


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_no_weights_of_baseline_can_tag_an_xor_of_past_and_future(layers: int):
    assert second_difference("baseline", layers) < 1e-14


@pytest.mark.parametrize("name", ["cross", "attention"])
def test_cross_and_attention_are_not_sums_over_past_and_future(name: str):
    assert second_difference(name, 2) > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_each_sentence_and_each_lstm_draws_masks_of_its_own(name: str):
    model, sentences = build_small(name, "model.hidden_size=20", input_size=20).train(), 100
    x = torch.randn(sentences, 2, 20, dtype=torch.float64)
    with masks_of(model) as masks:
        model(x, torch.full((sentences,), 2))
    for place, rows in masks.items():
        assert len(rows) == (2 if "layers" in place else 1) * sentences
        assert len(rows.unique(dim=0)) > 0.98 * len(rows)
        deviation = (0.35 / 0.65 / rows.numel()) ** 0.5
        assert rows.mean().item() == pytest.approx(1, abs=5 * deviation)


def test_the_backward_direction_starts_at_the_last_token():
    model, x = build_small("baseline"), batch()
    changed = x.clone()
    changed[0, 2] += 1  # the third of four tokens
    differ = (model(x, LENGTHS) != model(changed, LENGTHS))[0, :4].split(HIDDEN, dim=-1)
    assert [half.any(dim=-1).nonzero().flatten().tolist() for half in differ] == [[2, 3], [0, 1, 2]]


def test_an_lstm_without_dropout_is_the_stock_one():
    ours = VariationalLSTMs(input_size=INPUT, hidden_size=HIDDEN, dropout=0.0).double()
    x = torch.randn(2, 3, 6, INPUT, dtype=torch.float64)
    ahead, back = ours(x, torch.tensor([6, 6, 6]))
    for read, states, *weights in zip(
        [x[0], x[1].flip(1)], [ahead, back.flip(1)], *(part[:, 0] for part in ours.parameters()), strict=True
    ):
        stock = nn.LSTM(INPUT, HIDDEN, batch_first=True).double()
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        stock.load_state_dict(dict(zip(names, [*weights, torch.zeros(4 * HIDDEN)], strict=True)))
        torch.testing.assert_close(states, stock(read)[0], rtol=0, atol=1e-12)
