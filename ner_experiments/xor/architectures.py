"""Every architecture of conf/model/ before the XOR: measured with random weights, trained on four phrases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import hydra
import numpy as np
import torch
from omegaconf import DictConfig

from ner_experiments import settings
from ner_experiments.build import build, make_encoder
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.identity import counted
from ner_experiments.xor.crossing import Pair, Token, crossed_scores
from ner_experiments.xor.experiment import Outcome, most_right
from ner_experiments.xor.inequalities import letters, titles
from ner_experiments.xor.measurement import ROUNDING, interaction

NUM_STEPS = {"softmax": 150, "crf": 250}
"""Of a training. Those that learn all four phrases do so in some 70 and 210 at most, over 20 seeds."""
TRAINED = {"softmax": titles(), "crf": letters()}
"""What is trained with each decoder: four phrases that no sum of past and future can all tag with it.

A CRF could tell B I E from O O O, see `inequalities.programs`.
"""
INPUTS = ("words=random", "chars=none", "features=none", "direct=none", "penalty=none")
OPTIMIZER = ("optimizer=adam", "optimizer.lr=0.01", "+optimizer.fused=true")
SMALL = {"hidden_size": 100, "dense_size": 100, "unit_size": 8, "dropout": 0.0}
"""For training, in place of an architecture's own settings, where it has them."""
SHARED = ("words", "chars", "features", "direct", "penalty", "optimizer")
"""Parts of the config that are the same for all architectures; corpus and trainer are not made use of."""
DRAWS = 20
NUM_WORDS = 20
PAIRS_PER_DRAW = 5
LONGEST_CONTEXT = 5


class Phrases(NamedTuple):
    """What a trial needs that is the same for all seeds."""

    cfg: DictConfig
    encoder: Encoder
    batch: Batch


def num_layers(name: str) -> int | None:
    """As configured; None for an architecture without the setting."""
    return compose(name, "softmax").model.get("num_layers")


def config(names: Sequence[str], num_seeds: int) -> dict[str, Any]:
    """All that decides what `measure` and `trial` find, but for the code. They read no file."""
    made = {decoder: counted(compose(names[0], decoder)) for decoder in TRAINED}
    measured = {name: counted(compose(name, "softmax"))["model"] for name in names}
    trained = {name: counted(small(compose(name, "softmax")))["model"] for name in names}
    return {
        **{part: made["softmax"][part] for part in SHARED},
        "measured": {
            "draws": DRAWS,
            "words": NUM_WORDS,
            "pairs_per_draw": PAIRS_PER_DRAW,
            "longest_context": LONGEST_CONTEXT,
            "rounding": ROUNDING,
            "model": measured,
        },
        "trained": {
            "seeds": num_seeds,
            "steps": dict(NUM_STEPS),
            "phrases": {decoder: [str(phrase) for phrase in phrases] for decoder, phrases in TRAINED.items()},
            "decoder": {decoder: parts["decoder"] for decoder, parts in made.items()},
            "model": trained,
        },
    }


def measure(name: str, draws: int) -> list[float]:
    """Interaction for each draw of weights and contexts: the largest of its pairs.

    The architecture is as large as conf/ has it. A draw's pasts and futures have 1 to 5 words each.
    """
    words = [f"w{number}" for number in range(NUM_WORDS)]
    corpus = corpus_of([Sentence(tuple(words), ("S-name",) * len(words))])
    cfg = compose(name, "softmax")
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    found = []
    for draw in range(draws):
        torch.manual_seed(draw)
        pairs = random_pairs(words, np.random.default_rng(draw))
        found.append(float(interaction(crossed_scores(build(cfg, encoder), encoder, pairs)).max()))
    return found


def random_pairs(words: Sequence[str], rng: np.random.Generator) -> list[Pair]:
    """Tokens in sentences of random words, with others in other such sentences."""

    def token() -> Token:
        past, future = rng.integers(1, LONGEST_CONTEXT + 1, size=2)
        length = past + 1 + future
        return Token(Sentence(tuple(rng.choice(words, length)), ("O",) * length), int(past))

    return [Pair(token(), token()) for _ in range(PAIRS_PER_DRAW)]


def trial(name: str, decoder: str, seed: int) -> Outcome:
    """The most of the decoder's four phrases that one training gets right at once."""
    phrases = prepared(name, decoder)
    torch.manual_seed(seed)
    tagger = build(phrases.cfg, phrases.encoder)
    return most_right(
        scores=lambda: tagger(phrases.batch),
        decoder=tagger.decoder,
        optimizer=tagger.configure_optimizers(),
        tags=phrases.batch.tags,
        mask=phrases.batch.mask,
        num_steps=NUM_STEPS[decoder],
    )


@cache
def prepared(name: str, decoder: str) -> Phrases:
    cfg = small(compose(name, decoder))
    corpus = corpus_of(
        [
            Sentence(phrase.words, tuple(tag if tag == "O" else f"{tag}-name" for tag in phrase.tags))
            for phrase in TRAINED[decoder]
        ]
    )
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    sentences = corpus.splits["train"]
    encoded = encoder.encode(sentences, torch.device("cpu"))
    return Phrases(cfg, encoder, encoded.batch(np.arange(len(sentences))))


def small(cfg: DictConfig) -> DictConfig:
    """With what `SMALL` has for its architecture."""
    for key in SMALL.keys() & cfg.model.keys():
        cfg.model[key] = SMALL[key]
    return cfg


def compose(name: str, decoder: str) -> DictConfig:
    with settings.conf():
        overrides = [f"model={name}", f"decoder={decoder}", *INPUTS, *OPTIMIZER]
        return hydra.compose(settings.ROOT, overrides=overrides)


def corpus_of(sentences: list[Sentence]) -> Corpus:
    return Corpus("xor", "mentions", {"train": sentences}, checksum="")
