"""Batch plans: nothing lost, nothing over the budget, little padding; seed and epoch alone decide."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lightning.pytorch import LightningModule, Trainer

from ner_experiments.data.batches import Batching, Plan, SentenceCount, TokenBudget
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence

seeded = settings(derandomize=True, deadline=None)

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=80).map(np.array)
budgets = st.builds(TokenBudget, st.integers(1, 300))
counts = st.builds(SentenceCount, st.integers(1, 20), st.integers(1, 5))


def plan(batching: Batching, lengths: np.ndarray, seed: int = 1, epoch: int = 0) -> Plan:
    return batching.plan(lengths, np.random.default_rng((seed, epoch)))


def as_lists(plan: Plan) -> list[list[int]]:
    return [batch.tolist() for batch in plan]


def padding(plan: Plan, lengths: np.ndarray) -> float:
    """Share of padding among the positions of the batches."""
    positions = sum(len(batch) * lengths[batch].max() for batch in plan)
    return 1 - lengths.sum() / positions


def assert_each_once(plan: Plan, lengths: np.ndarray) -> None:
    assert all(len(batch) for batch in plan)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))


def like_conll2003() -> np.ndarray:
    """As many lengths as its train has, with its mean and its quantiles to within a token or two."""
    draws = np.random.default_rng(0)
    headlines, body = draws.poisson(6, 6700) + 1, draws.normal(22, 11, 7341).round()
    return np.concatenate([headlines, body]).astype(np.int64).clip(1, 113)


@seeded
@given(lengths, st.one_of(budgets, counts), st.integers(0, 2**31))
@example(np.array([7]), TokenBudget(3), 0)
@example(np.array([7]), SentenceCount(5, 2), 0)
@example(np.array([2, 500, 2]), TokenBudget(10), 0)
def test_every_sentence_comes_once(lengths: np.ndarray, batching: Batching, seed: int) -> None:
    assert_each_once(plan(batching, lengths, seed), lengths)


@seeded
@given(lengths, budgets, st.integers(0, 2**31))
@example(np.array([2, 500, 2]), TokenBudget(10), 0)
def test_only_a_sentence_alone_exceeds_the_budget(
    lengths: np.ndarray, batching: TokenBudget, seed: int
) -> None:
    in_order = batching.in_order(lengths)
    assert_each_once(in_order, lengths)
    drawn = plan(batching, lengths, seed)
    assert len(drawn) <= len(in_order) + 1  # only the first batch is cut short
    for batch in [*drawn, *in_order]:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= batching.tokens


@seeded
@given(lengths, budgets)
def test_in_order_is_from_short_to_long_and_batches_are_as_large_as_can_be(
    lengths: np.ndarray, batching: TokenBudget
) -> None:
    in_order = batching.in_order(lengths)
    assert as_lists(in_order) == as_lists(batching.in_order(lengths))
    assert np.concatenate(in_order).tolist() == sorted(range(len(lengths)), key=lambda s: (lengths[s], s))
    for batch, following in pairwise(in_order):
        assert (len(batch) + 1) * lengths[following[0]] > batching.tokens


@seeded
@given(lengths, counts, st.integers(0, 2**31))
def test_sentence_counts(lengths: np.ndarray, batching: SentenceCount, seed: int) -> None:
    sizes = [len(batch) for batch in plan(batching, lengths, seed)]
    full, rest = divmod(len(lengths), batching.sentences)
    assert sorted(sizes, reverse=True) == [batching.sentences] * full + [rest] * (rest > 0)


def test_a_pool_is_sorted_and_pools_are_random() -> None:
    """Within a pool no batch's lengths overlap another's; a pool of 1 is as good as no sorting."""
    lengths = np.random.default_rng(0).integers(1, 100, 1000)
    spans = sorted(
        (lengths[batch].min(), lengths[batch].max()) for batch in plan(SentenceCount(10, 100), lengths)
    )
    assert all(longest <= shortest for (_, longest), (shortest, _) in pairwise(spans))
    unsorted = plan(SentenceCount(10, 1), lengths)
    chance = np.split(np.random.default_rng(1).permutation(1000), 100)
    assert padding(unsorted, lengths) == pytest.approx(padding(chance, lengths), abs=0.02)
    assert padding(unsorted, lengths) > 0.4 > 0.1 > padding(plan(SentenceCount(10, 10), lengths), lengths)


@pytest.mark.parametrize("batching", [TokenBudget(512), SentenceCount(32, 1), SentenceCount(32, 20)])
def test_seed_and_epoch_alone_decide(batching: Batching) -> None:
    lengths = like_conll2003()[::10]
    plans = {
        (seed, epoch): as_lists(plan(batching, lengths, seed, epoch))
        for seed in (1, 2)
        for epoch in (0, 1, 2)
    }
    assert all(as_lists(plan(batching, lengths.copy(), *key)) == value for key, value in plans.items())
    compositions = {frozenset(map(frozenset, value)) for value in plans.values()}
    assert len(compositions) == len(plans)
    orders = {tuple(len(batch) for batch in value) for value in plans.values()}
    assert len(orders) == len(plans) or isinstance(batching, SentenceCount)


@pytest.mark.parametrize("batching", [TokenBudget(512), SentenceCount(32, 20)])
def test_long_sentences_come_at_any_time(batching: Batching) -> None:
    """Over 40 epochs the longest sentence's batch comes on average half way: order is no curriculum."""
    lengths = like_conll2003()[::10]
    longest = int(lengths.argmax())
    places = []
    for epoch in range(40):
        batches = plan(batching, lengths, epoch=epoch)
        places.append(next(n for n, batch in enumerate(batches) if longest in batch) / len(batches))
    assert 0.3 < np.mean(places) < 0.7
    assert min(places) < 0.2
    assert max(places) > 0.8


def test_company_changes_from_epoch_to_epoch() -> None:
    """Most sentences of a batch are in different ones in the next epoch, though all are of one length."""
    lengths = like_conll2003()
    first, second = (plan(TokenBudget(512), lengths, epoch=epoch) for epoch in (0, 1))
    assert sorted(map(len, first)) != sorted(map(len, second))  # the boundaries have moved
    home = np.empty(len(lengths), dtype=np.int64)
    for number, batch in enumerate(second):
        home[batch] = number
    kept = sum((np.bincount(home[batch]) ** 2).sum() - len(batch) for batch in first)
    pairs = sum(len(batch) * (len(batch) - 1) for batch in first)
    assert kept / pairs < 0.25


def test_padding_on_lengths_like_conll2003() -> None:
    lengths = like_conll2003()
    assert (len(lengths), round(lengths.mean())) == (14041, 15)
    assert padding(plan(TokenBudget(2048), lengths), lengths) <= 0.03
    assert padding(TokenBudget(2048).in_order(lengths), lengths) <= 0.03


class Recorder(LightningModule):
    """Callback that records the sentences of each training step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def training_step(self, batch, _):
        self.seen.append(batch.sentences.tolist())
        return self.weight * 1.0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def transfer_batch_to_device(self, batch, *_):
        return batch


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # Lightning's own
def test_lightning_asks_for_a_new_plan_in_each_epoch(tmp_path: Path) -> None:
    words = [("w",) * length for length in (1, 2, 3, 4, 5, 6, 7, 8) * 3]
    sentences = [Sentence(form, ("O",) * len(form)) for form in words]
    corpus = Corpus("mine", "mentions", {"train": sentences, "dev": sentences[:1]}, "")
    encoder = Encoder({})
    encoder.fit(corpus)
    module, recorder = CorpusModule(corpus, encoder, TokenBudget(20), seed=3), Recorder()
    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    trainer = Trainer(
        accelerator="cpu", max_epochs=3, reload_dataloaders_every_n_epochs=1, limit_val_batches=0, **quiet
    )
    trainer.fit(recorder, datamodule=module)
    lengths = np.array([len(sentence) for sentence in sentences])
    expected = [plan(TokenBudget(20), lengths, seed=3, epoch=epoch) for epoch in range(3)]
    assert recorder.seen == [batch for epoch in expected for batch in as_lists(epoch)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TokenBudget(0), "tokens per batch must be at least 1, got 0"),
        (lambda: SentenceCount(0, 1), "sentences per batch and pool must be at least 1, got 0, 1"),
        (lambda: SentenceCount(4, 0), "sentences per batch and pool must be at least 1, got 4, 0"),
    ],
)
def test_sizes_below_one_are_refused(make: Callable[[], Batching], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
