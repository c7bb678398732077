"""A training step with PyTorch's own optimizers, and with the suite's choices for them, by the size of the vocabulary.

    python benchmarks/optimizers.py [--threads N] [--rounds N] [--clock processor] [--output FILE]

The default BiLSTM-CRF without characters, trained in batches of at most 512 tokens. With Adam the suite takes the fused
loop (`tagger.Tagger.optimizer_of`); with SGD and Adagrad, without clipping, weight decay and momentum, it takes sparse
gradients of the word vectors (`modules.lookup`).
"""

from typing import Any

import timing
from tables import Result, ms, ratio, table
from taggers import Trial, made_up

from ner_experiments.data.sentence import Corpus
from ner_experiments.modules.lookup import Lookup

MEASURES = ("modules.lookup",)

UNCLIPPED = "trainer.gradient_clip=0"
OPTIMIZERS = {
    "adam": ["optimizer=adam"],
    "adagrad": ["optimizer=adagrad", UNCLIPPED],
    "sgd": ["optimizer=sgd", UNCLIPPED],
}
DRAWS = (5_000, 28_000, 130_000)
"""Numbers of word forms that are drawn, some of them twice."""
TOKENS_PER_DRAW = 5
"""Enough that nearly all forms occur."""


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    cases = []
    for draws in (100,) if arguments.tiny else DRAWS:
        corpus = made_up(draws * TOKENS_PER_DRAW // 12, range(5, 20), forms=draws)
        forms = len({word for sentence in corpus.splits["train"] for word in sentence.words})
        for name, overrides in OPTIMIZERS.items():
            steps = measure(corpus, overrides, arguments.rounds)
            timing.say(f"{forms:,} forms, {name}", steps)
            cases.append({"forms": forms, "optimizer": name, "step": steps})
    timing.write("optimizers", {"rounds": arguments.rounds, "cases": cases}, arguments.output)


def measure(corpus: Corpus, overrides: list[str], rounds: int) -> dict[str, timing.Times]:
    trials = {
        kind: Trial(corpus, ["model=bilstm", "chars=none", *overrides]) for kind in ("PyTorch's", "ours")
    }
    use_defaults_of_pytorch(trials["PyTorch's"])
    batch = trials["ours"].batches()[0]
    runs: dict[str, Any] = {kind: lambda trial=trial: trial.step(batch) for kind, trial in trials.items()}
    return timing.measure(runs, rounds)


def use_defaults_of_pytorch(trial: Trial) -> None:
    for group in trial.optimizer.param_groups:
        group["fused"] = None
    for module in trial.tagger.modules():
        if isinstance(module, Lookup):
            module.sparse = False


def tables(result: Result) -> list[str]:
    kinds = ("PyTorch's", "ours")
    rows = [
        [
            f"{case['forms']:,}",
            case["optimizer"],
            *(ms(case["step"][kind]) for kind in kinds),
            ratio(*(case["step"][kind] for kind in kinds)),
        ]
        for case in result["cases"]
    ]
    return [table("forms", "optimizer", *(f"{kind}, ms" for kind in kinds), "gain", rows=rows)]


if __name__ == "__main__":
    main()
