"""Huang, Xu & Yu (2015): the peepholes of eq. 3, direct connections, batches, and the paper's setting."""

from pathlib import Path

import numpy as np
import pytest
import torch
from huang2015_oracles import equation_3
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf
from places import CONF
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ner_experiments.data.batches import TokenTotal
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.sentence import Sentence
from ner_experiments.modules import recurrent
from ner_experiments.modules.direct import SparseScores
from ner_experiments.modules.peephole import PeepholeLayer, PeepholeLSTM
from ner_experiments.modules.recurrent import BiRNN

LENGTHS = [4, 1, 6]


def sentences(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(length, 3, dtype=dtype) for length in LENGTHS]


def large_weights(module: nn.Module) -> None:
    """Large weights, so that gates are far from 1/2 and peepholes matter."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)


def assert_same(ours: Tensor, oracle: Tensor, inputs: list[Tensor]) -> None:
    """Check for equal values, and equal gradients of a random weighting of them."""
    torch.testing.assert_close(ours, oracle, rtol=0, atol=1e-10)
    weights = torch.randn_like(oracle)
    gradients = [torch.autograd.grad((states * weights).sum(), inputs) for states in (ours, oracle)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_peephole_lstm_is_equation_3_and_padding_changes_nothing(num_layers: int):
    xs = [x.requires_grad_() for x in sentences()]
    lstm = PeepholeLSTM(3, 5, num_layers, batch_first=True).double()
    large_weights(lstm)
    expected = []
    for x in xs:
        h = x
        for layer in lstm.layers:
            h = equation_3(layer, h)
        expected.append(h)
    padded = nn.functional.pad(pad_sequence(xs, batch_first=True), (0, 0, 0, 2), value=9.0)
    states = lstm(padded, torch.tensor(LENGTHS))
    unpadded = torch.cat([s[:length] for s, length in zip(states, LENGTHS, strict=True)])
    assert_same(unpadded, torch.cat(expected), [*xs, *lstm.parameters()])


@pytest.mark.parametrize("together", [False, True], ids=["as on a CPU", "as on a GPU"])
def test_a_bidirectional_layer_of_peephole_lstms_is_equation_3_both_ways(
    together: bool, monkeypatch: pytest.MonkeyPatch
):
    if together:
        monkeypatch.setattr(recurrent, "run_together", PeepholeLSTM.with_backward)
    xs = [x.requires_grad_() for x in sentences()]
    rnn = BiRNN(input_size=3, hidden_size=5, cell=PeepholeLSTM).double()
    large_weights(rnn)
    (ahead,), (back,) = rnn.left_to_right.cell.layers, rnn.right_to_left.cell.layers
    expected = [torch.cat([equation_3(ahead, x), equation_3(back, x.flip(0)).flip(0)], dim=1) for x in xs]
    states = rnn(pad_sequence(xs, batch_first=True, padding_value=9.0), torch.tensor(LENGTHS))
    unpadded = torch.cat([s[:length] for s, length in zip(states, LENGTHS, strict=True)])
    assert_same(unpadded, torch.cat(expected), [*xs, *rnn.parameters()])


def test_under_autocast_only_the_input_is_rounded():
    layer = PeepholeLayer(input_size=20, hidden_size=5)
    with torch.no_grad():  # numbers that bfloat16 has, and a projection that changes none of them
        layer.input_weight.copy_(torch.eye(20))
        layer.bias.zero_()
    x, lengths = torch.randn(3, 6, 20).bfloat16().float(), torch.tensor([6, 2, 5])
    with torch.autocast("cpu", torch.bfloat16):
        states = layer(x, lengths)
    assert states.dtype == torch.float32
    assert torch.equal(states, layer(x, lengths))


def test_peephole_weights_start_as_those_of_the_stock_lstm():
    layer = PeepholeLayer(input_size=30, hidden_size=100)
    for name, weight in layer.named_parameters():
        assert weight.abs().max() <= 0.1, name
        # the deviation of uniform numbers, within 5 deviations of itself
        assert weight.std().item() == pytest.approx(0.1 / 3**0.5, rel=5 * (0.2 / weight.numel()) ** 0.5), name


@pytest.mark.parametrize(("sizes", "name"), [((3, 0), "hidden_size"), ((3, 4, 0), "num_layers")])
def test_a_wrong_size_of_the_cell_is_named(sizes: tuple[int, ...], name: str):
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got 0$"):
        PeepholeLSTM(*sizes, batch_first=True)


def rows_of_features() -> Tensor:
    """Rows of 9 features, in int32 as from inputs; one row is empty, one repeats a feature."""
    return torch.tensor([[3, 1, 9], [0, 0, 0], [5, 0, 0], [7, 7, 2], [3, 8, 0]], dtype=torch.int32)


@pytest.mark.parametrize("sparse", [True, False])
def test_direct_scores_are_a_product_with_counts_of_features(sparse: bool):
    ids = rows_of_features()
    module = SparseScores(num_features=9, num_tags=4).double()
    module.sparse = sparse
    assert not module.weight.any()
    nn.init.normal_(module.weight)
    counts = torch.zeros(5, 10, dtype=torch.float64)
    counts.scatter_add_(1, ids.long(), torch.ones(5, 3, dtype=torch.float64))
    counts[:, 0] = 0
    weight = module.weight.detach().clone().requires_grad_()
    scores, expected = module(ids), counts @ weight
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)
    weighting = torch.randn_like(scores)
    (scores * weighting).sum().backward()
    (expected * weighting).sum().backward()
    gradient = module.weight.grad
    assert gradient is not None
    assert gradient.is_sparse == sparse
    torch.testing.assert_close(gradient.to_dense(), weight.grad, rtol=0, atol=1e-12)


def test_direct_scores_need_a_feature():
    with pytest.raises(ValueError, match=r"^num_features must be at least 1, got 0$"):
        SparseScores(num_features=0, num_tags=4)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 40), st.integers(0, 9))
def test_batches_hold_every_sentence_once_and_as_many_tokens_as_fit(
    lengths: list[int], tokens: int, seed: int
):
    batches = TokenTotal(tokens).plan(np.array(lengths), np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    totals = [sum(lengths[number] for number in batch) for batch in batches]
    assert all(total <= tokens or len(batch) == 1 for total, batch in zip(totals, batches, strict=True))
    following = [lengths[batch[0]] for batch in batches[1:]]
    assert all(total + first > tokens for total, first in zip(totals, following, strict=False))


def test_batches_are_drawn_at_random():
    lengths = np.tile([1, 20], 500)
    plans = [TokenTotal(100).plan(lengths, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert [batch.tolist() for batch in plans[0]] == [batch.tolist() for batch in plans[1]]
    assert [batch.tolist() for batch in plans[0]] != [batch.tolist() for batch in plans[2]]
    mixed = [len(set(lengths[batch].tolist())) == 2 for batch in plans[0]]
    assert np.mean(mixed) > 0.9  # long and short sentences stand together


def composed(*overrides: str) -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=["paper=huang2015", *overrides])


@pytest.mark.parametrize(("name", "directions"), [("lstm", 1), ("bilstm", 2)])
def test_the_models_are_one_layer_of_300_with_peepholes_and_no_dropout(name: str, directions: int):
    model = instantiate(composed(f"model={name}_huang2015").model)(input_size=50)
    cells = [module for module in model.modules() if isinstance(module, PeepholeLayer)]
    assert [cell.state_weight.shape for cell in cells] == [(1200, 300)] * directions
    assert [module.p for module in model.modules() if isinstance(module, nn.Dropout)] == [0.0]


@pytest.mark.parametrize(
    ("choice", "columns"),
    [("tagging", []), ("chunking", ["pos"]), ("ner", ["pos", "chunk"]), ("ner_gazetteer", ["pos", "chunk"])],
)
def test_direct_choices_become_scores(choice: str, columns: list[str], tmp_path: Path):
    (tmp_path / "gazetteer").mkdir()
    (tmp_path / "gazetteer" / "LOC.txt").write_text("New York\n", encoding="utf-8")
    words = ("He", "left", "New", "York")
    layers = {"pos": ("PRP", "VBD", "NNP", "NNP"), "chunk": ("I-NP", "I-VP", "I-NP", "I-NP")}
    text = IndexedText.from_sentences([Sentence(words, ("O",) * 4, {name: layers[name] for name in columns})])
    cfg = composed(f"direct={choice}", f"data_dir={tmp_path}")
    names = ["spelling", "context"] + ["gazetteer"] * (choice == "ner_gazetteer")
    assert list(cfg.direct) == names
    assert OmegaConf.to_container(cfg.direct.context.input)["columns"] == columns
    for name in names:
        reader = instantiate(cfg.direct[name].input)
        reader.fit(text, [])
        module = instantiate(cfg.direct[name].module)(num_tags=5, **reader.sizes())
        nn.init.ones_(module.weight)
        ids = torch.from_numpy(reader.encode(text).table)
        assert module(ids)[:, 0].tolist() == (ids > 0).sum(1).tolist()
