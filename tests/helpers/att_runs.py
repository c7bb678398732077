"""Small runs of Att and Baseline, and the recall of their output layer on a part of its input, by a loop."""

from pathlib import Path

import torch
from torch import Tensor

from ner_experiments.commands.smoke import write_vectors
from ner_experiments.config.compose import compose
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.tagger import Tagger
from ner_experiments.train import train

SMALL = [
    "data=toy_en",
    "data.sentences={train: 120, dev: 30, test: 30}",
    "model.hidden_size=16",
    "model.dropout=0.0",
    "decoder=softmax",
    "batches=tokens",
    "batches.tokens=60",
    "optimizer=adam",
    "optimizer.lr=0.02",
    "trainer.max_epochs=5",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]
Run = tuple[Tagger, Encoder, Corpus]


def small(folder: Path) -> list[str]:
    """Settings of small runs that read and write all files in the folder."""
    write_vectors(folder)
    return [*SMALL, *(f"{name}_dir={folder}" for name in ("data", "output", "cache"))]


def trained_runs(place: list[str]) -> dict[tuple[str, int], Path]:
    """Folders of two seeds of Att and one of Baseline, by (model, seed), with the protocol of li2020_table1."""
    found = {}
    for model, seed in (("attention", 1), ("attention", 2), ("baseline", 2)):
        cfg = compose(["paper=li2020", f"model={model}", *place, f"seed={seed}"], "test")
        found[model, seed] = Path(train(cfg)["folder"])
    return found


def states(run: Run, sentence: Sentence) -> Tensor:
    """Input of the output layer for a sentence that is alone in its batch, [time size]."""
    tagger, encoder, _ = run
    seen: list[Tensor] = []
    handle = tagger.model.register_forward_hook(lambda _, __, output: seen.append(output))
    with torch.no_grad():
        tagger(encoder.encode([sentence], torch.device("cpu")).batch(torch.arange(1).numpy()))
    handle.remove()
    return seen[0][0]


def recall(run: Run, first: int, end: int) -> dict[str, float]:
    """Recall of each chunk tag, in percent, if the output layer sees only dimensions `first` to `end` of the state."""
    tagger, encoder, corpus = run
    weight, bias = tagger.output.weight.detach(), tagger.output.bias.detach()
    right, gold = dict.fromkeys("OSBIE", 0), dict.fromkeys("OSBIE", 0)
    for sentence in corpus.splits["dev"]:
        for state, tag in zip(states(run, sentence), sentence.tags, strict=True):
            scores = weight[:, first:end] @ state[first:end] + bias
            predicted = encoder.labels[int(scores.argmax())]
            gold[tag[0]] += 1
            right[tag[0]] += predicted[0] == tag[0]
    return {tag: 100 * right[tag] / gold[tag] for tag in gold}
