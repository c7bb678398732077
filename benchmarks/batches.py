"""Batches of an epoch: their cost, their share of padding, and how they change from epoch to epoch.

    python benchmarks/batches.py [--threads N] [--rounds N] [--output FILE]

Every file of conf/batches (`random` is 32 random sentences), and 64 random sentences, on toy English and,
where NER_DATA_DIR has it, on CoNLL-2003. `together` is the share of the pairs of sentences in one batch that
are in one batch in the next epoch too. Chance alone gives about one over the number of batches.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timing
from hydra.utils import instantiate
from tables import Result, at_most, ms, table
from taggers import CPU

from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import CONF
from ner_experiments.data.batches import Batching, Plan, SentenceCount
from ner_experiments.data.corpus import load
from ner_experiments.data.encoder import EncodedSplit
from ner_experiments.experiment_data import make_encoder

MEASURES = ("data.batches",)

CORPORA = ("toy_en", "conll2003")


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=3))
    result: dict[str, Any] = {"rounds": arguments.rounds, "corpora": {}, "left_out": []}
    for corpus in CORPORA[: 1 if arguments.tiny else None]:
        try:
            split = encoded(corpus)
        except ValueError as error:
            print(f"{corpus} is left out: {error}", flush=True)
            result["left_out"].append(corpus)
            continue
        result["corpora"][corpus] = measure(split, arguments.rounds)
        for name, plan in result["corpora"][corpus]["plans"].items():
            print(f"{corpus} {name}: {in_words(plan)}", flush=True)
    timing.write("batches", result, arguments.output)


def encoded(corpus: str) -> EncodedSplit:
    """The train split, encoded as in the default experiment."""
    cfg = compose([f"data={corpus}"])
    read, encoder = load(instantiate(cfg.data)), make_encoder(cfg)
    encoder.fit(read)
    return encoder.encode(read.splits["train"], CPU)


def measure(split: EncodedSplit, rounds: int) -> dict[str, Any]:
    plans = kinds()
    epochs = {name: epoch(split, kind) for name, kind in plans.items()}
    for run in epochs.values():
        run()
    seconds = timing.measure(epochs, rounds)
    thousands = len(split) / 1000
    by_kind = {}
    for name, kind in plans.items():
        first, second = (kind.plan(split.lengths, np.random.default_rng((1, number))) for number in range(2))
        by_kind[name] = {
            "batches": len(first),
            "processed_per_token": padded(first, split.lengths) / int(split.lengths.sum()),
            "together": together(first, second, len(split)),
            "chance": 1 / len(first),
            "again": again(first, second),
            "seconds_per_1000": {
                "median": seconds[name]["median"] / thousands,
                "quartiles": [value / thousands for value in seconds[name]["quartiles"]],
            },
        }
    return {"sentences": len(split), "tokens": int(split.lengths.sum()), "plans": by_kind}


def kinds() -> dict[str, Batching]:
    names = sorted(path.stem for path in Path(CONF, "batches").glob("*.yaml"))
    of_conf = {f"batches={name}": instantiate(compose([f"batches={name}"]).batches) for name in names}
    return of_conf | {"64 random sentences": SentenceCount(64, pool=1)}


def epoch(split: EncodedSplit, kind: Batching) -> Callable[[], int]:
    """A function that plans an epoch and gathers its batches."""

    def run() -> int:
        plan = kind.plan(split.lengths, np.random.default_rng(0))
        return sum(len(split.batch(sentences).lengths) for sentences in plan)

    return run


def padded(plan: Plan, lengths: np.ndarray) -> int:
    return sum(len(batch) * int(lengths[batch].max()) for batch in plan)


def together(first: Plan, second: Plan, sentences: int) -> float:
    """Share of the pairs in a batch of `first` that are also together in a batch of `second`."""
    place = np.empty(sentences, dtype=np.int64)
    for number, batch in enumerate(second):
        place[batch] = number
    pairs = sum(len(batch) * (len(batch) - 1) for batch in first)
    staying = 0
    for batch in first:
        counts = np.unique(place[batch], return_counts=True)[1]
        staying += int((counts * (counts - 1)).sum())
    return staying / max(pairs, 1)


def again(first: Plan, second: Plan) -> int:
    """The number of batches of several sentences that are repeated unchanged."""
    before = {frozenset(batch.tolist()) for batch in first if len(batch) > 1}
    return sum(frozenset(batch.tolist()) in before for batch in second)


def in_words(plan: dict[str, Any]) -> str:
    return (
        f"{plan['batches']} batches, {plan['processed_per_token']:.3f} processed tokens per real one, "
        f"{1000 * plan['seconds_per_1000']['median']:.1f} ms per 1,000 sentences, "
        f"{plan['together']:.2%} of the pairs stay together (chance {plan['chance']:.2%}), "
        f"{plan['again']} batches come again"
    )


def tables(result: Result) -> list[str]:
    head = (
        "batches",
        "processed tokens per real one",
        "ms per 1,000 sentences",
        "pairs that stay together (chance)",
    )
    texts = []
    for corpus, about in result["corpora"].items():
        rows = [
            [
                name,
                f"{plan['batches']:,}",
                f"{plan['processed_per_token']:.3f}",
                ms(plan["seconds_per_1000"]),
                f"{plan['together']:.2%} ({plan['chance']:.2%})",
                str(plan["again"]),
            ]
            for name, plan in about["plans"].items()
        ]
        title = f"{corpus}: {about['sentences']:,} sentences, {about['tokens']:,} tokens"
        texts.append(table(title, *head, "repeated batches", rows=rows))
    return texts


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    padding = results["batches"]["corpora"]["conll2003"]["plans"]["batches=tokens"]["processed_per_token"]
    yield at_most("processed tokens per real one on CoNLL-2003, batches=tokens", 1.02, "", padding)


if __name__ == "__main__":
    main()
