"""What a finished run predicted: the sentences of its predictions/test.conll."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import Span, encode, spans, strict_spans
from ner_experiments.utils.files import replacing


@dataclass(frozen=True, slots=True)
class Predicted:
    """A sentence's tokens with their gold and predicted tags, mentions as IOB2; spaces are written U+2423."""

    words: tuple[str, ...]
    gold: tuple[str, ...]
    predicted: tuple[str, ...]


def read(run: Path, split: str = "test") -> list[Predicted]:
    """The sentences of test, or of dev, in the order of the corpus. ValueError if the run has none."""
    return read_file(file(run, f"predictions/{split}.conll"))


def read_file(path: Path) -> list[Predicted]:
    blocks = path.read_text(encoding="utf-8").removesuffix("\n\n").split("\n\n")
    return [sentence(block) for block in blocks]


def file(run: Path, name: str) -> Path:
    """ValueError if the folder has none."""
    path = run / name
    if not path.is_file():
        raise ValueError(f"{run}: expected the folder of a finished run, but it has no {name}")
    return path


def units(tags: Sequence[str], task: Task) -> list[Span]:
    """What is scored: the mentions, or of a corpus that is tagged token by token each token with its tag."""
    if task == "mentions":
        return spans(tags)
    return [(place, place + 1, tag) for place, tag in enumerate(tags)]


def as_field(text: str) -> str:
    """A word or tag of the corpus as the files of predictions have it."""
    return text.replace(" ", "␣")


def sentence(block: str) -> Predicted:
    words, gold, predicted = zip(*(line.rsplit(" ", 2) for line in block.split("\n")), strict=True)
    return Predicted(words, gold, predicted)


def write_predictions(
    path: Path, task: Task, sentences: Sequence[Sentence], predicted: Iterable[Sequence[str]]
) -> None:
    """Token, gold and predicted tag, one space between: ready for conlleval.

    Mentions are written as IOB2. Spaces in a token or tag become U+2423: every line has three fields.
    """
    path.parent.mkdir(exist_ok=True)
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for sentence, tags in zip(sentences, predicted, strict=True):
            columns = [sentence.tags, tags] if task == "tags" else [iob2(sentence.tags), iob2(tags)]
            for fields in zip(sentence.words, *columns, strict=True):
                file.write(" ".join(map(as_field, fields)) + "\n")
            file.write("\n")


def seqeval_f1(path: Path) -> float:
    """F1 of a file of predicted mentions, by seqeval."""
    from seqeval.metrics import f1_score  # with scikit-learn: a second

    found = read_file(path)
    gold, predicted = [[*it.gold] for it in found], [[*it.predicted] for it in found]
    return float(f1_score(gold, predicted, zero_division=0))


def iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """The strict mentions of BIOES tags, so that conlleval finds what the metric counted."""
    return encode(strict_spans(tags), len(tags), "iob2")
