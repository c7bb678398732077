"""The recurrent layers against PyTorch's own over packed sequences, in float64."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ner_experiments.models.bilstm import BiLSTM
from ner_experiments.models.lstm import LSTM
from ner_experiments.models.none import NoEncoder
from ner_experiments.modules.lstm import reverse
from ner_experiments.modules.recurrent import BiRNN, Cell

LENGTHS = torch.tensor([5, 1, 3, 7])


def ragged_batch(size: int) -> tuple[Tensor, Tensor]:
    """Vectors of four sentences padded to 8, and their mask."""
    torch.manual_seed(0)
    return torch.randn(4, 8, size, dtype=torch.float64), torch.arange(8) < LENGTHS[:, None]


def packed(layer: nn.RNNBase, x: Tensor) -> Tensor:
    states, _ = layer(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]


def test_reverse_turns_each_sentence_and_leaves_padding():
    x, _ = ragged_batch(size=2)
    by_hand = torch.stack([torch.cat([s[:n].flip(0), s[n:]]) for s, n in zip(x, LENGTHS, strict=True)])
    assert torch.equal(reverse(x, LENGTHS), by_hand)
    assert torch.equal(reverse(x, LENGTHS.int()), by_hand)
    assert torch.equal(reverse(by_hand, LENGTHS), x)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_birnn_is_the_stock_layer_over_packed_sequences(cell: Cell):
    x, real = ragged_batch(size=3)
    ours = BiRNN(input_size=3, hidden_size=4, cell=cell).double()
    stock = cell(3, 4, batch_first=True, bidirectional=True).double()
    pairs = [(stock, "", ours.left_to_right), (stock, "_reverse", ours.right_to_left)]
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    parameters = [
        (getattr(layer, name + suffix), getattr(one_way.cell, name))
        for layer, suffix, one_way in pairs
        for name in names
    ]
    with torch.no_grad():
        for theirs, mine in parameters:
            mine.copy_(theirs)

    expected, states = packed(stock, x), ours(x, LENGTHS)
    torch.testing.assert_close(states[real], expected[real], rtol=0, atol=1e-12)
    weight = torch.randn_like(expected) * real[..., None]
    stock_gradients = torch.autograd.grad((expected * weight).sum(), [theirs for theirs, _ in parameters])
    gradients = torch.autograd.grad((states * weight).sum(), [mine for _, mine in parameters])
    for mine, theirs in zip(gradients, stock_gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_lstm_of_two_layers_is_the_stock_one_over_packed_sequences():
    x, real = ragged_batch(size=3)
    model = LSTM(input_size=3, num_layers=2, hidden_size=4, dropout=0.0).double()
    stock = nn.LSTM(3, 4, 2, batch_first=True).double()
    stock.load_state_dict(model.layers.cell.state_dict())
    torch.testing.assert_close(model(x, LENGTHS)[real], packed(stock, x)[real], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "layer"),
    [
        (LSTM(input_size=40, num_layers=1, hidden_size=40, dropout=0.25), "layers"),
        (BiLSTM(input_size=40, hidden_size=20, dropout=0.25), "layer"),
    ],
    ids=["lstm", "bilstm"],
)
def test_dropout_is_on_the_input_and_on_the_output(model: nn.Module, layer: str):
    x, real = ragged_batch(size=40)
    seen: list[Tensor] = []
    model.double().get_submodule(layer).register_forward_hook(
        lambda _, args, output: seen.extend([args[0], output])
    )
    output = model(x, LENGTHS)
    for before, after in [(x, seen[0]), (seen[1], output)]:
        before, after = before[real], after[real]
        kept = after != 0
        torch.testing.assert_close(after[kept], before[kept] / 0.75)
        assert 0.7 < kept.double().mean() < 0.8


def test_no_encoder_gives_its_input():
    x, _ = ragged_batch(size=3)
    assert NoEncoder(input_size=3)(x, LENGTHS) is x
