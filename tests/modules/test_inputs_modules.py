"""Words, characters and features as vectors, against loops and against stock layers word by word."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from ner_experiments.modules.chars import CharBiLSTM, CharCNN, LastState, MaxOverTime
from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.features import OneHot
from ner_experiments.modules.words import PretrainedEmbedding, RandomEmbedding

LENGTHS = [1, 6, 2, 3, 4]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def forms(lengths: list[int]) -> Tensor:
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.int32)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(1, 9, (length,), dtype=torch.int32)
    return ids


def cnn(widths: Sequence[int] = (3,), dim: int = 4, num_filters: int = 3, dropout: float = 0.0) -> CharCNN:
    module = CharCNN(num_chars=9, dim=dim, num_filters=num_filters, widths=widths, dropout=dropout)
    for layer in module.convolutions:
        nn.init.normal_(layer.bias)
    return module.double()


def assert_same(ours: Tensor, oracle: Tensor, module: nn.Module, atol: float = 1e-10) -> None:
    """Check for equal values, and equal gradients of a random weighting of them for every parameter."""
    torch.testing.assert_close(ours, oracle, rtol=0, atol=atol)
    weights, parameters = torch.randn_like(oracle), list(module.parameters())
    gradients = [torch.autograd.grad((vectors * weights).sum(), parameters) for vectors in (ours, oracle)]
    torch.testing.assert_close(*gradients, rtol=0, atol=atol)


def cnn_by_loop(module: CharCNN, form: list[int]) -> Tensor:
    """One form alone: every filter at every window, as sums over characters."""
    maxima = []
    for width, layer in zip(module.widths, module.convolutions, strict=True):
        for weight, bias in zip(layer.weight, layer.bias, strict=True):
            scores = []
            for start in range(-(width // 2), len(form) + width // 2 - width + 1):
                score = bias
                for k in range(width):
                    if 0 <= start + k < len(form):
                        score = score + weight[:, k] @ module.embedding.weight[form[start + k]]
                scores.append(score)
            maxima.append(torch.stack(scores).max())
    return torch.stack(maxima)


def lstms(pool: nn.Module) -> tuple[CharBiLSTM, nn.LSTM]:
    """A character BiLSTM, and a stock bidirectional LSTM with the same weights."""
    module = CharBiLSTM(num_chars=9, dim=4, hidden_size=3, pool=pool).double()
    stock = nn.LSTM(4, 3, bidirectional=True, batch_first=True).double()
    ahead, back = module.lstm.left_to_right.cell, module.lstm.right_to_left.cell
    weights = dict(ahead.named_parameters())
    weights |= {f"{name}_reverse": weight for name, weight in back.named_parameters()}
    stock.load_state_dict(weights)
    return module, stock


def random_words(rate: float, **bound: float) -> RandomEmbedding:
    """Five words; 2 and 4 are singletons."""
    once = torch.tensor([False, False, True, False, True])
    return RandomEmbedding(num_words=5, dim=3, singletons=once, replace_singletons=rate, **bound)


FILE = torch.arange(15.0).view(5, 3)
FOUND = torch.tensor([False, True, False, True, False])


def pretrained(trainable: bool, rate: float = 0.0, found: Tensor = FOUND) -> PretrainedEmbedding:
    """Words 1 and 3 are in the file, 2 and 4 are not; 3 and 4 are singletons."""
    singletons = torch.tensor([False, False, False, True, True])
    words = {"vectors": FILE.clone(), "found": found, "singletons": singletons}
    return PretrainedEmbedding(**words, replace_singletons=rate, trainable=trainable)


@pytest.mark.parametrize("widths", [[3], [1, 2, 3], [4, 5]])
def test_char_cnn_equals_a_loop_over_characters_and_filters(widths: list[int]) -> None:
    module, ids = cnn(widths), forms(LENGTHS)
    expected = torch.stack([cnn_by_loop(module, row[row > 0].tolist()) for row in ids])
    assert module.output_size == expected.shape[1]
    assert_same(module(ids), expected, module)


@pytest.mark.parametrize("pool", [LastState(), MaxOverTime()])
def test_char_bilstm_equals_a_stock_lstm_on_each_word_alone(pool: nn.Module) -> None:
    module, stock = lstms(pool)
    ids = forms(LENGTHS)
    expected = []
    for row in ids:
        states, (last, _) = stock(module.embedding(row[row > 0][None]))
        expected.append(last.flatten() if isinstance(pool, LastState) else states[0].max(0).values)
    torch.testing.assert_close(module(ids), torch.stack(expected), rtol=0, atol=1e-10)
    assert module.output_size == len(expected[0])


@pytest.mark.parametrize(
    "build", [lambda: cnn([1, 2, 3, 6]), lambda: lstms(LastState())[0], lambda: lstms(MaxOverTime())[0]]
)
def test_longer_padding_changes_no_vector_and_no_gradient(build: Callable[[], nn.Module]) -> None:
    module, ids = build(), forms(LENGTHS)
    assert_same(module(nn.functional.pad(ids, (0, 7))), module(ids), module, atol=1e-12)


def test_the_vector_of_padding_is_zero_and_stays_so() -> None:
    module = cnn([3])
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    before = module.embedding.weight.detach().clone()
    module(forms([1, 5])).sum().backward()
    optimizer.step()
    assert torch.equal(module.embedding.weight[0], torch.zeros(4, dtype=torch.double))
    assert not torch.equal(module.embedding.weight[1:], before[1:])


def test_char_cnn_drops_embeddings_in_training_only() -> None:
    module, ids = cnn([1], dropout=0.5), forms([1] * 2000)
    nn.init.ones_(module.embedding.weight)
    nn.init.eye_(module.convolutions[0].weight[:, :, 0])
    nn.init.zeros_(module.convolutions[0].bias)
    kept = module(ids)  # filter i returns number i of the character's embedding
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert kept.mean().item() == pytest.approx(1, abs=5 / 6000**0.5)
    assert torch.equal(module.eval()(ids), torch.ones(2000, 3, dtype=torch.double))


@pytest.mark.parametrize("dim", [30, 100])
def test_embeddings_start_uniform_with_variance_one_over_dim_and_filters_as_glorot(dim: int) -> None:
    words = RandomEmbedding(num_words=2000, dim=dim, singletons=torch.zeros(2000) > 0, replace_singletons=0.0)
    chars = CharCNN(num_chars=2001, dim=dim, num_filters=dim, widths=[3], dropout=0.0)
    (layer,) = chars.convolutions
    bound = (3 / dim) ** 0.5
    for vectors in (words.vectors, chars.embedding.weight[1:]):
        assert 0.999 * bound < vectors.abs().max() <= bound
        assert vectors.var().item() == pytest.approx(1 / dim, rel=0.03)
    assert 1 < random_words(0.0, bound=3.0).vectors.abs().max() <= 3
    bound = (6 / (3 * dim + 3 * dim)) ** 0.5  # Glorot: inputs and outputs of a filter's three positions
    assert 0.99 * bound < layer.weight.abs().max() <= bound
    assert not layer.bias.any()


def test_singletons_and_only_they_become_unknown_at_the_given_rate_in_training() -> None:
    module = random_words(0.3)
    ids = torch.randint(0, 5, (50_000,))
    unknown = (module(ids) == module.vectors[0]).all(1)
    deviation = (0.3 * 0.7 / 10_000) ** 0.5
    for word, rate in enumerate([1.0, 0.0, 0.3, 0.0, 0.3]):
        share = unknown[ids == word].double().mean().item()
        assert share == pytest.approx(rate, abs=5 * deviation if rate == 0.3 else 0)
    assert torch.equal(module.eval()(ids), module.vectors[ids])


@pytest.mark.parametrize("trainable", [True, False])
def test_pretrained_singletons_become_unknown_in_training_only(trainable: bool) -> None:
    module = pretrained(trainable, rate=1.0)
    assert torch.equal(module(torch.tensor([3, 4])), module.unknown.expand(2, 3))
    assert torch.equal(module(torch.tensor([1])), FILE[[1]])
    assert torch.equal(module.eval()(torch.tensor([3])), FILE[[3]])


def test_replaced_singletons_train_the_unknown_vector_instead_of_their_own() -> None:
    module = random_words(1.0)
    module(torch.tensor([1, 2, 4, 4])).sum().backward()
    assert module.vectors.grad is not None
    assert module.vectors.grad.tolist() == [[3.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]


def test_frozen_vectors_stay_and_are_saved_and_the_one_unknown_vector_learns() -> None:
    module = pretrained(trainable=False)
    assert [name for name, _ in module.named_parameters()] == ["unknown"]
    before = module.unknown.detach().clone()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.1)
    module(torch.arange(5)).sum().backward()
    assert module.unknown.grad is not None
    assert module.unknown.grad.tolist() == [3.0] * 3  # words 0, 2 and 4
    optimizer.step()
    vectors = module(torch.arange(5))
    assert torch.equal(vectors[FOUND], FILE[FOUND])
    assert torch.equal(vectors[~FOUND], module.unknown.expand(3, 3))
    assert (module.unknown != before).all()
    other = pretrained(trainable=False)
    other.vectors.zero_()
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(torch.arange(5)), vectors)


def test_tuned_vectors_start_from_the_file_and_all_learn() -> None:
    module = pretrained(trainable=True)
    start = module(torch.arange(5))
    assert torch.equal(start[FOUND], FILE[FOUND])
    assert (start[~FOUND].abs() <= 1).all()  # sqrt(3 / dim), not the file's numbers
    assert len(start.unique(dim=0)) == 5  # words that were not found differ from each other and from unknown
    start.sum().backward()
    torch.optim.SGD(module.parameters(), lr=0.5).step()
    torch.testing.assert_close(module(torch.arange(5)), start - 0.5)


def test_a_vector_from_the_file_for_the_unknown_word_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="row 0 is the unknown word and cannot come from the file"):
        pretrained(trainable=False, found=~FOUND)


def test_one_hot_is_a_unit_vector_in_the_precision_of_the_module() -> None:
    module = OneHot(num_values=4).double()
    expected = torch.tensor([[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=torch.double)
    assert torch.equal(module(torch.tensor([2, 0, 3])), expected)
    assert module.output_size == 4
    assert not module.state_dict()


def test_variational_dropout_draws_one_mask_per_sentence_in_training_only() -> None:
    x = torch.rand(200, 7, 20) + 1
    assert torch.equal(VariationalDropout(0.35).eval()(x), x)
    assert torch.equal(VariationalDropout(0.0)(x), x)
    ratio = VariationalDropout(0.35)(x) / x
    mask = ratio[:, 0]
    torch.testing.assert_close(ratio, mask[:, None].expand_as(x))
    torch.testing.assert_close(mask, (mask > 0) / 0.65)
    assert len((mask > 0).unique(dim=0)) == 200
    assert mask.mean().item() == pytest.approx(1, abs=5 * (0.35 / 0.65 / mask.numel()) ** 0.5)  # 5 deviations


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: VariationalDropout(1.0), "p must be at least 0 and below 1, got 1.0"),
        (lambda: VariationalDropout(-0.1), "p must be at least 0 and below 1, got -0.1"),
        (lambda: random_words(1.5), r"replace_singletons must be at least 0 and at most 1, got 1.5"),
        (lambda: random_words(0.5, bound=0.0), "bound must be above 0, got 0.0"),
        (lambda: pretrained(True, -0.5), r"replace_singletons must be at least 0 and at most 1, got -0.5"),
        (lambda: cnn(dim=0), "dim must be at least 1, got 0"),
        (lambda: cnn(num_filters=0), "num_filters must be at least 1, got 0"),
        (lambda: cnn(dropout=1.0), "dropout must be at least 0 and below 1, got 1.0"),
        (lambda: cnn(widths=()), r"widths must be one or more numbers of at least 1, got \[\]"),
        (lambda: cnn(widths=(3, 0)), r"widths must be one or more numbers of at least 1, got \[3, 0\]"),
    ],
)
def test_a_wrong_setting_says_what_it_may_be(build: Callable[[], nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        build()
