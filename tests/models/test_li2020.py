"""The models of Li, Fu & Ma (2020) against the paper's equations, written out in `li2020_equations`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from li2020_equations import Equations, Masks, attention
from li2020_models import HEAD, HEADS, LENGTHS, MODELS, REAL, batch, build_small
from torch import Tensor, nn

from ner_experiments.models import attention as attention_model
from ner_experiments.models.attention import AttBiLSTM, SelfAttention
from ner_experiments.modules.dropout import VariationalDropout


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
