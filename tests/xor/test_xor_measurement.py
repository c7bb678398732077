"""The interaction of past and future: of scorers made by hand, of every architecture, of a trained run."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import hydra
import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from ner_experiments.build import build, load
from ner_experiments.config.compose import compose
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.config.config_dirs import names
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.experiment_data import make_encoder
from ner_experiments.tagger import Tagger
from ner_experiments.train import train
from ner_experiments.xor import experiment
from ner_experiments.xor.measurement import (
    Measurement,
    Pair,
    Token,
    choose_pairs,
    crossed_scores,
    decided,
    interaction,
    measure_run,
    second_difference,
    tags_form_xor,
)

LIMITED = {
    "baseline",
    "bilstm",
    "bilstm_huang2015",
    "lstm",
    "lstm_huang2015",
    "none",
    "parallel",
    "residual_d",
}
"""By their equations: what reads the past and what reads the future meet in the tag scores only."""


def test_the_second_difference_of_a_scorer_is_its_product_term():
    """s(p, f) = 3 p - 5 f + k p f + 7, with k of three tags: the difference is k (p1 - p2)(f1 - f2)."""
    past, future = torch.tensor([1.0, 4.0])[:, None, None], torch.tensor([2.0, -3.0])[None, :, None]
    k = torch.tensor([0.0, 2.0, -1.0])
    scores = (3 * past - 5 * future + k * past * future + 7)[None]
    expected = k * (1 - 4) * (2 - -3)
    assert torch.equal(second_difference(scores)[0], expected)
    assert interaction(scores).item() == pytest.approx(30 / 46)  # 46 = 3 * 4 + 5 * 3 + 4 * 3 + 7
    assert interaction(-8 * scores).item() == interaction(scores).item()


def test_scores_that_are_all_0_do_not_interact():
    assert interaction(torch.zeros(1, 2, 2, 5)).item() == 0


def some_sum_has(pattern: Iterable[int], num_tags: int) -> bool:
    """Whether a(p1), a(p2), c(f1), c(f2) exist whose sums have these four best tags: a linear program."""
    rows = []
    for (i, j), best in zip(product(range(2), repeat=2), pattern, strict=True):
        for rival in set(range(num_tags)) - {best}:
            row = np.zeros((4, num_tags))
            row[[i, 2 + j], best] -= 1
            row[[i, 2 + j], rival] += 1
            rows.append(row.ravel())
    result = linprog(np.zeros(4 * num_tags), A_ub=rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
    return result.status == 0


def test_an_xor_of_tags_is_all_that_no_sum_can_have():
    for pattern in product(range(4), repeat=4):
        scores = torch.eye(4)[torch.tensor(pattern)].view(1, 2, 2, 4)
        assert tags_form_xor(scores).item() is not some_sum_has(pattern, 4), pattern


def test_a_tag_is_decided_by_interaction_if_the_sum_of_the_other_three_gives_another():
    scores = torch.zeros(2, 2, 2, 2)
    scores[:, 0, 0] = torch.tensor([1.0, 0.0])
    scores[0, 0, 1] = torch.tensor([0.0, 3.0])  # would make (p1, f1) 0, 3
    scores[1, 0, 1] = torch.tensor([3.0, 0.0])
    assert decided(scores).tolist() == [True, False]


def token(words: str, word: str, **columns: str) -> Token:
    split = tuple(words.split())
    tags = tuple("S-PER" if form.istitle() else "O" for form in split)
    named = {name: tuple(column.split()) for name, column in columns.items()}
    return Token(Sentence(split, tags, named), split.index(word))


def test_a_pair_puts_the_token_between_both_pasts_and_futures():
    pair = Pair(token("a b Ann c", "Ann", pos="A B N C"), token("d Bob e f", "Bob", pos="D M E F"))
    contexts = pair.contexts()
    assert contexts[0] == pair.token
    assert [" ".join(it.sentence.words) for it in contexts] == [
        "a b Ann c",
        "a b Ann e f",
        "d Ann c",
        "d Ann e f",
    ]
    assert [" ".join(it.sentence.columns["pos"]) for it in contexts] == [
        "A B N C",
        "A B N E F",
        "D N C",
        "D N E F",
    ]
    assert {it.word for it in contexts} == {"Ann"}
    assert {it.tag for it in contexts} == {"S-PER"}


@pytest.mark.parametrize("name", names("model"))
def test_past_and_future_interact_in_all_architectures_but_those_that_keep_them_apart(name: str):
    found = experiment.measure(name, draws=3)
    assert max(found) < 1e-12 if name in LIMITED else min(found) > 1e-6
    assert len(set(found)) == (1 if max(found) == 0 else 3)


@pytest.mark.parametrize("name", ["cross", "residual", "residual_a", "residual_b", "stacked"])
def test_one_layer_alone_lets_nothing_interact(name: str):
    assert one_layer_interaction(name) < 1e-12


def test_attention_needs_one_layer_only():
    assert one_layer_interaction("attention") > 1e-6


def one_layer_interaction(name: str) -> float:
    cfg = experiment.compose(name, "softmax")
    cfg.model.num_layers = 1
    words = [f"w{number}" for number in range(9)]
    encoder = make_encoder(cfg)
    encoder.fit(Corpus("", "mentions", {"train": [Sentence(tuple(words), ("S-X",) * 9)]}, ""))
    pairs = experiment.random_pairs(words, np.random.default_rng(0))
    return float(interaction(crossed_scores(build(cfg, encoder), encoder, pairs)).max())


SENTENCES = [
    Sentence(tuple(words.split()), tuple(tags.split()))
    for words, tags in (
        ("Ann met Bob there", "S-PER O S-PER O"),
        ("she saw Bob leave", "O O S-PER O"),
        ("they met again today", "O O O O"),
        ("only Carl stays", "O S-PER O"),
    )
]


def test_features_of_single_words_do_not_interact_in_a_tagger_without_other_inputs():
    cfg = compose(["model=none", "words=none", "chars=none", "direct=context"], "test")
    encoder = make_encoder(cfg)
    encoder.fit(Corpus("", "mentions", {"train": SENTENCES}, ""))
    tagger = build(cfg, encoder)
    for weight in tagger.parameters():
        torch.nn.init.normal_(weight)
    pairs, _ = choose_pairs(SENTENCES, 4, np.random.default_rng(0))
    scores = crossed_scores(tagger, encoder, pairs)
    assert scores.std() > 1
    assert interaction(scores).max() < 1e-12


def test_partners_are_other_contexts_of_the_word_or_else_of_the_tag():
    pairs, left_out = choose_pairs(SENTENCES, 4, np.random.default_rng(0))
    assert len(pairs) + left_out == 15
    for pair in pairs:
        assert pair.other.past != pair.token.past
        assert pair.other.future != pair.token.future
        assert pair.other.word == pair.token.word if pair.token.word in ("met", "Bob") else True
        assert pair.other.tag == pair.token.tag
    assert {pair.token.word for pair in pairs} >= {"Ann", "Carl", "met", "Bob"}


def test_tokens_without_another_context_are_counted():
    one = Sentence(("Ann", "sat"), ("S-PER", "O"))
    assert choose_pairs([one, one], 9, np.random.default_rng(0)) == ([], 4)


@pytest.fixture(scope="module", params=["baseline", "cross"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    overrides = [
        f"model={request.param}",
        "trainer=smoke",
        "model.hidden_size=8",
        "data.max_sentences=30",
        f"output_dir={tmp_path_factory.mktemp('outputs')}",
        "runtime.progress=false",
    ]
    with hydra_context():
        cfg = hydra.compose(CONFIG_NAME, overrides=overrides)
    return Path(train(cfg)["folder"])


def best_tag(tagger: Tagger, encoder, sentence: Sentence, place: int) -> str:
    encoded = encoder.encode([sentence], torch.device("cpu"))
    with torch.inference_mode():
        scores = tagger(encoded.batch(np.array([0])))
    return encoder.labels[int(scores[0, place].argmax())]


def test_a_trained_run_is_measured_on_its_own_test_set(run: Path, tmp_path: Path):
    measured = measure_run(run, num_sentences=5)
    assert (measured.name, measured.split) == ("toy_en", "test")
    tagger, encoder = load(run)
    tagger.double()
    for pair, tag in list(zip(measured.pairs, measured.tags, strict=True))[:20]:
        assert tag == best_tag(tagger, encoder, pair.token.sentence, pair.token.place)
    if "baseline" in str(run):
        assert measured.interactions.max() < 1e-12
        assert not measured.decided.any()
        assert not measured.xor.any()
    else:
        assert np.quantile(measured.interactions, 0.1) > 1e-6
    measured.write(tmp_path / "tokens.tsv")
    rows = [line.split("\t") for line in (tmp_path / "tokens.tsv").read_text().splitlines()]
    assert len(rows) == len(measured.pairs) + 1
    assert [float(row[0]) for row in rows[1:]] == sorted((float(row[0]) for row in rows[1:]), reverse=True)


def test_where_no_mentions_are_tagged_all_tokens_are_one_group():
    pairs = [Pair(token("a b c", "b"), token("d e f", "e"))]
    facts = {
        "left_out": 0,
        "tags": ["X"],
        "interactions": np.ones(1),
        "decided": np.ones(1),
        "xor": np.zeros(1),
    }
    assert list(Measurement("ud", "tags", "test", pairs, **facts).groups()) == ["all tokens"]


def test_each_group_has_the_shares_of_its_own_tokens():
    """Three pairs: in a mention with the same word, and outside with the same and with another word."""
    sentence = Sentence(("Ann", "sat", "up"), ("S-PER", "O", "O"))
    other = Sentence(("he", "Ann", "sat", "too"), ("O", "S-PER", "O", "O"))
    places = [(0, 1), (1, 2), (2, 3)]
    pairs = [Pair(Token(sentence, first), Token(other, second)) for first, second in places]
    decided, xor = np.array([True, True, False]), np.array([True, False, False])
    tags = ["S-PER", "O", "O"]
    measured = Measurement(
        "toy", "mentions", "test", pairs, 4, tags, np.array([0.5, 0.25, 1.0]), decided, xor
    )
    found = measured.record()
    shares = {
        name: [found[name][key] for key in ("tokens", "same_word", "interaction_largest", "decided", "xor")]
        for name in ("all_tokens", "in_mentions", "outside")
    }
    assert shares == {
        "all_tokens": [3, pytest.approx(2 / 3), 1.0, pytest.approx(2 / 3), pytest.approx(1 / 3)],
        "in_mentions": [1, 1.0, 0.5, 1.0, 1.0],
        "outside": [2, 0.5, 1.0, 0.5, 0.0],
    }
    assert found["left_out"] == 4
