"""The XOR limit as a training experiment: how many of four phrases can a tagger learn?

Every architecture of conf/model/ before the XOR: measured with random weights, trained on four phrases.

Measurement and experiment for many architectures, in several processes, and what they found.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import hydra
import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from omegaconf import DictConfig
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from ner_experiments.build import build, make_encoder
from ner_experiments.config.compose import CONFIG_NAME, hydra_context
from ner_experiments.config.identity import counted
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.modules.decoding import Decoder
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.provenance import commit, machine
from ner_experiments.xor.certificate import Certificate, letters, titles, to_json
from ner_experiments.xor.measurement import ROUNDING, Pair, Token, crossed_scores, interaction
from ner_experiments.xor.results import Trials


class Outcome(NamedTuple):
    """The most phrases that were right at once, and the step, from 0, at which they first were."""

    right: int
    step: int


def most_right(
    *,
    scores: Callable[[], Float[Tensor, "phrases time tags"]],
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    tags: Int[Tensor, "phrases time"],
    mask: Bool[Tensor, "phrases time"],
    num_steps: int,
) -> Outcome:
    """Trains on all phrases at once until all are right, for `num_steps` steps at most.

    A phrase is right if all its tags are. They are decoded from the scores that the step trains on, so there
    should be no dropout.
    """
    best = Outcome(right=-1, step=0)
    for step in range(num_steps + 1):
        now = scores()
        wrong = (decoder.decode(now.detach(), mask) != tags) & mask
        right = int((~wrong.any(1)).sum())
        if right > best.right:
            best = Outcome(right, step)
        if right == len(tags) or step == num_steps:
            break
        optimizer.zero_grad()
        torch.autograd.backward(decoder.loss(now, tags, mask))
        optimizer.step()
    return best


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
    with hydra_context():
        overrides = [f"model={name}", f"decoder={decoder}", *INPUTS, *OPTIMIZER]
        return hydra.compose(CONFIG_NAME, overrides=overrides)


def corpus_of(sentences: list[Sentence]) -> Corpus:
    return Corpus("xor", "mentions", {"train": sentences}, checksum="")


DECODERS = tuple(TRAINED)
HEADINGS = ("model", "layers", "interaction", "best softmax", "best CRF", "seeds with 4", "limited?")
"""Of `lines`; the seeds are those of softmax, then those of the CRF."""
THREADS = 1
"""Of each process."""
Task = partial[Any]


@dataclass
class Found:
    """Of one architecture: interactions of each draw of weights, and the outcome of each decoder and seed."""

    layers: int | None
    interactions: list[float] = field(default_factory=list)
    outcomes: dict[str, dict[int, Outcome]] = field(default_factory=lambda: {name: {} for name in DECODERS})

    @property
    def interaction(self) -> float:
        return max(self.interactions)

    @property
    def limited(self) -> bool:
        """Whether the scores are sums of past and future, to rounding."""
        return self.interaction < ROUNDING

    def right(self, decoder: str) -> list[int]:
        """The most phrases right at once, seed by seed."""
        return [outcome.right for outcome in self.by_seed(decoder)]

    def by_seed(self, decoder: str) -> list[Outcome]:
        return [outcome for _, outcome in sorted(self.outcomes[decoder].items())]

    def all_right(self) -> list[int]:
        """The same of every decoder."""
        return [right for decoder in DECODERS for right in self.right(decoder)]

    def best(self, decoder: str) -> int:
        return max(self.right(decoder))

    def record(self) -> dict[str, Any]:
        """As JSON; seed by seed right_*, the most phrases right at once, and steps_*, when they were."""
        return {
            "interaction": self.interaction,
            **{f"best_{decoder}": self.best(decoder) for decoder in DECODERS},
            "seeds": len(self.right(DECODERS[0])),
            "limited": self.limited,
            "layers": self.layers,
            "interactions": self.interactions,
            **{f"right_{decoder}": self.right(decoder) for decoder in DECODERS},
            **{
                f"steps_{decoder}": [outcome.step for outcome in self.by_seed(decoder)]
                for decoder in DECODERS
            },
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Found:
        """What `record` was made of."""
        outcomes = {
            decoder: dict(
                enumerate(
                    map(Outcome, record[f"right_{decoder}"], record[f"steps_{decoder}"]),
                )
            )
            for decoder in DECODERS
        }
        return cls(record["layers"], list(record["interactions"]), outcomes)


def trials(
    names: Sequence[str], proved: Sequence[Certificate], *, num_seeds: int, num_processes: int
) -> Trials:
    """What was proved, what `examine` finds of the named architectures, and how it was made."""
    started = time.perf_counter()
    code = {**machine(torch.device("cpu")), "threads": THREADS, "commit": commit()}  # before it changes
    found = examine(names, num_seeds=num_seeds, num_processes=num_processes)
    content = {
        "config": config(names, num_seeds),
        "models": {name: model.record() for name, model in found.items()},
        "certificates": [to_json(certificate) for certificate in proved],
        "seconds": round(time.perf_counter() - started, 1),
        "processes": num_processes,
        **code,
    }
    return Trials(add_checksum(content))


def examine(names: Sequence[str], *, num_seeds: int, num_processes: int) -> dict[str, Found]:
    """Everything about the named architectures, the limited ones first. Progress goes to stderr."""
    found = {name: Found(num_layers(name)) for name in names}
    tasks: list[Task] = [partial(measure, name, DRAWS) for name in names]
    for name in names:
        for decoder in DECODERS:
            tasks += [partial(trial, name, decoder, seed) for seed in range(num_seeds)]
    with progress_bar() as bar:
        row = bar.add_task("", total=len(tasks))
        for task, result in finished(tasks, num_processes):
            if task.func is measure:
                found[task.args[0]].interactions = result
            else:
                name, decoder, seed = task.args
                found[name].outcomes[decoder][seed] = result
            bar.update(row, advance=1, description=" ".join(map(str, task.args[:2])))
    return dict(sorted(found.items(), key=lambda item: (not item[1].limited, item[0])))


def finished(tasks: Sequence[Task], num_processes: int) -> Iterator[tuple[Task, Any]]:
    """Each task with its result, as they come."""
    if num_processes == 1:
        torch.set_num_threads(THREADS)
        yield from ((task, task()) for task in tasks)
        return
    context = get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(num_processes, context, torch.set_num_threads, (THREADS,)) as pool:
        running = {pool.submit(task): task for task in tasks}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C the rest is not waited for


def progress_bar() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def lines(found: Mapping[str, Found]) -> list[list[str]]:
    """A line of a table for each architecture."""
    return [
        [
            name,
            "" if model.layers is None else f"{model.layers}",
            f"{model.interaction:.1e}",
            *(f"{model.best(decoder)} of 4" for decoder in DECODERS),
            ", ".join(f"{model.right(decoder).count(4)}" for decoder in DECODERS),
            "yes" if model.limited else "no",
        ]
        for name, model in found.items()
    ]


def disagreements(found: dict[str, Found]) -> tuple[list[str], list[str]]:
    """Where training and measurement differ: limited but learned, which cannot be; free but not learned."""
    broken = [name for name, model in found.items() if model.limited and max(map(model.best, DECODERS)) > 3]
    missed = [
        name for name, model in found.items() if not model.limited and min(map(model.best, DECODERS)) < 4
    ]
    return broken, missed
