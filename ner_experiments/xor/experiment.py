"""The XOR limit as an experiment: every architecture of conf/model/, measured at random weights and trained.

The measurement is the interaction of past and future in the scores. The training is on four phrases that no sum of
past and future can all tag: how many of them can a tagger learn?
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ner_experiments.build import build
from ner_experiments.config.choices import merged
from ner_experiments.config.identity import counted
from ner_experiments.config.targets import check_targets
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.experiment_data import make_encoder
from ner_experiments.modules.decoding import Decoder
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.provenance import commit, machine, package_digest
from ner_experiments.utils.terminal import progress_bar
from ner_experiments.xor.certificate import Certificate, letters, titles, to_json
from ner_experiments.xor.measurement import Pair, Token, crossed_scores, interaction
from ner_experiments.xor.results import DECODERS, ROUNDING, ModelResult, TrialResult, XorResults

if TYPE_CHECKING:
    from omegaconf import DictConfig

DRAWS = 20
NUM_WORDS = 20
PAIRS_PER_DRAW = 5
LONGEST_CONTEXT = 5
NUM_STEPS = {"softmax": 150, "crf": 250}
"""Maximum number of training steps. Over 20 seeds, runs that learn all four phrases need at most about 70 and 210."""
PHRASES = {"softmax": titles(), "crf": letters()}
"""Training data of each decoder: four phrases that it cannot all tag by a sum of past and future.

The phrases differ because a CRF could tag B I E and O O O by such a sum: see `certificate.programs`.
"""
INPUTS = ("words=random", "chars=none", "features=none", "direct=none", "penalty=none")
OPTIMIZER = ("optimizer=adam", "optimizer.lr=0.01", "+optimizer.fused=true")
SMALL = {"hidden_size": 100, "dense_size": 100, "unit_size": 8, "dropout": 0.0}
"""Settings for training that replace an architecture's own, where it has them."""
SHARED = ("words", "chars", "features", "direct", "penalty", "optimizer")
"""Parts of the config that are the same for all architectures; corpus and trainer are not used."""
THREADS = 1
"""CPU threads of each process."""

Task = partial[Any]


class TrialData(NamedTuple):
    """Config, encoder and batch of a trial, the same for all seeds."""

    cfg: DictConfig
    encoder: Encoder
    batch: Batch


def run_experiment(
    names: Sequence[str], certificates: Sequence[Certificate], *, num_seeds: int, num_processes: int
) -> XorResults:
    """Measure and train the named architectures; return the results with the certificates and provenance.

    Raises ValueError as `targets.check_targets`.
    """
    for name in names:
        check_targets(compose(name, "softmax"))
    started = time.perf_counter()
    # Read first, because the checkout may change meanwhile.
    provenance = {
        **machine(torch.device("cpu")),
        "threads": THREADS,
        "commit": commit(),
        "code": package_digest(),
    }
    models = measure_and_train(names, num_seeds=num_seeds, num_processes=num_processes)
    content = {
        "config": config(names, num_seeds),
        "models": {name: model.record() for name, model in models.items()},
        "certificates": [to_json(certificate) for certificate in certificates],
        "seconds": round(time.perf_counter() - started, 1),
        "processes": num_processes,
        **provenance,
    }
    return XorResults(add_checksum(content))


def measure_and_train(names: Sequence[str], *, num_seeds: int, num_processes: int) -> dict[str, ModelResult]:
    """Results of the named architectures, the limited ones first. Progress goes to stderr."""
    models = {name: ModelResult(num_layers(name)) for name in names}
    tasks: list[Task] = [partial(measure, name, DRAWS) for name in names]
    for name in names:
        for decoder in DECODERS:
            tasks += [partial(run_trial, name, decoder, seed) for seed in range(num_seeds)]
    with progress_bar() as bar:
        row = bar.add_task("", total=len(tasks))
        for task, result in run_tasks(tasks, num_processes):
            if task.func is measure:
                models[task.args[0]].interactions = result
            else:
                name, decoder, seed = task.args
                models[name].trials[decoder][seed] = result
            bar.update(row, advance=1, description=" ".join(map(str, task.args[:2])))
    return dict(sorted(models.items(), key=lambda item: (not item[1].limited, item[0])))


def run_tasks(tasks: Sequence[Task], num_processes: int) -> Iterator[tuple[Task, Any]]:
    """Yield each task with its result, in the order in which they finish."""
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
            pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C, do not wait for the rest


def measure(name: str, draws: int) -> list[float]:
    """Interaction of each draw of weights and contexts: the largest over its pairs.

    The architecture has the sizes of conf/. The pasts and futures of a draw have 1 to 5 words each.
    """
    words = [f"w{number}" for number in range(NUM_WORDS)]
    corpus = corpus_of([Sentence(tuple(words), ("S-name",) * len(words))])
    cfg = compose(name, "softmax")
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    interactions = []
    for draw in range(draws):
        torch.manual_seed(draw)
        pairs = random_pairs(words, np.random.default_rng(draw))
        interactions.append(float(interaction(crossed_scores(build(cfg, encoder), encoder, pairs)).max()))
    return interactions


def random_pairs(words: Sequence[str], rng: np.random.Generator) -> list[Pair]:
    """Pairs of tokens, each in its own sentence of random words."""

    def token() -> Token:
        past, future = rng.integers(1, LONGEST_CONTEXT + 1, size=2)
        length = past + 1 + future
        return Token(Sentence(tuple(rng.choice(words, length)), ("O",) * length), int(past))

    return [Pair(token(), token()) for _ in range(PAIRS_PER_DRAW)]


def run_trial(name: str, decoder: str, seed: int) -> TrialResult:
    """Train on the decoder's four phrases with one seed."""
    data = trial_data(name, decoder)
    torch.manual_seed(seed)
    tagger = build(data.cfg, data.encoder)
    return train_until_correct(
        scores=lambda: tagger(data.batch),
        decoder=tagger.decoder,
        optimizer=tagger.configure_optimizers(),
        tags=data.batch.tags,
        mask=data.batch.mask,
        num_steps=NUM_STEPS[decoder],
    )


def train_until_correct(
    *,
    scores: Callable[[], Float[Tensor, "phrases time tags"]],
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    tags: Int[Tensor, "phrases time"],
    mask: Bool[Tensor, "phrases time"],
    num_steps: int,
) -> TrialResult:
    """Train on all phrases at once until all are correct, for at most `num_steps` steps.

    A phrase is correct if all its tags are. Tags are decoded from the scores that the step trains on, so there
    should be no dropout.
    """
    best = TrialResult(num_correct=-1, step=0)
    for step in range(num_steps + 1):
        current = scores()
        wrong = (decoder.decode(current.detach(), mask) != tags) & mask
        num_correct = int((~wrong.any(1)).sum())
        if num_correct > best.num_correct:
            best = TrialResult(num_correct, step)
        if num_correct == len(tags) or step == num_steps:
            break
        optimizer.zero_grad()
        torch.autograd.backward(decoder.loss(current, tags, mask))
        optimizer.step()
    return best


@cache
def trial_data(name: str, decoder: str) -> TrialData:
    """Data of the trials of an architecture, at the sizes of `SMALL`, with a decoder."""
    cfg = shrink(compose(name, decoder))
    corpus = corpus_of(
        [
            Sentence(phrase.words, tuple(tag if tag == "O" else f"{tag}-name" for tag in phrase.tags))
            for phrase in PHRASES[decoder]
        ]
    )
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    sentences = corpus.splits["train"]
    encoded = encoder.encode(sentences, torch.device("cpu"))
    return TrialData(cfg, encoder, encoded.batch(np.arange(len(sentences))))


def corpus_of(sentences: list[Sentence]) -> Corpus:
    return Corpus("xor", "mentions", {"train": sentences}, checksum="")


def config(names: Sequence[str], num_seeds: int) -> dict[str, Any]:
    """All settings that decide the results of `measure` and `run_trial`, neither of which reads a file."""
    of_decoder = {decoder: counted(compose(names[0], decoder)) for decoder in PHRASES}
    measured = {name: counted(compose(name, "softmax"))["model"] for name in names}
    trained = {name: counted(shrink(compose(name, "softmax")))["model"] for name in names}
    return {
        **{part: of_decoder["softmax"][part] for part in SHARED},
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
            "phrases": {decoder: [str(phrase) for phrase in phrases] for decoder, phrases in PHRASES.items()},
            "decoder": {decoder: parts["decoder"] for decoder, parts in of_decoder.items()},
            "model": trained,
        },
    }


def num_layers(name: str) -> int | None:
    """Number of layers in conf/; None for an architecture without such a setting."""
    return compose(name, "softmax").model.get("num_layers")


def shrink(cfg: DictConfig) -> DictConfig:
    """The config with the settings of `SMALL` that its architecture has."""
    for key in SMALL.keys() & cfg.model.keys():
        cfg.model[key] = SMALL[key]
    return cfg


def compose(name: str, decoder: str) -> DictConfig:
    return merged([f"model={name}", f"decoder={decoder}", *INPUTS, *OPTIMIZER])
