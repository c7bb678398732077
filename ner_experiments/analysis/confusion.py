"""Which type was taken for which, and what was missed or invented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ner_experiments.analysis.kinds import compare
from ner_experiments.analysis.predictions import Predicted
from ner_experiments.data.sentence import Task
from ner_experiments.data.tags import spans

NONE = "none"


@dataclass(frozen=True, slots=True)
class Confusion:
    """`counts[i][j]`: gold mentions of type i for which a predicted one of type j stands (`kinds.compare`).

    The last row is what was invented, the last column what was missed; `types` names the others. So a row
    adds up to the gold mentions of a type, a column to the predicted ones. On the diagonal are those that are
    right and those with a wrong boundary alone. Where each token has a tag, i and j are those of a token,
    and the last row and column are empty.
    """

    types: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rows, and of the columns."""
        return (*self.types, NONE)

    def pairs(self) -> Counter[tuple[str, str]]:
        """Gold and predicted type -> how many; "", which is no type, stands for none."""
        names = [*self.types, ""]
        rows = zip(names, self.counts, strict=True)
        return Counter({(gold, other): n for gold, row in rows for other, n in zip(names, row, strict=True)})

    def record(self) -> dict[str, Any]:
        """As JSON: a row a line."""
        return {"types": list(self.types), "counts": [" ".join(map(str, row)) for row in self.counts]}

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Confusion:
        """What `record` wrote."""
        return cls(tuple(record["types"]), tuple(tuple(map(int, row.split(" "))) for row in record["counts"]))


def confusion(sentences: Sequence[Predicted], task: Task = "mentions") -> Confusion:
    """The types that occur, gold or predicted, from A to Z."""
    found = Counter(pair for sentence in sentences for pair in pairs(sentence, task))
    types = sorted({kind for pair in found for kind in pair if kind})
    names = [*types, ""]
    return Confusion(tuple(types), tuple(tuple(found[gold, other] for other in names) for gold in names))


def pairs(sentence: Predicted, task: Task) -> Iterator[tuple[str, str]]:
    """Gold and predicted type; "", which is no type, where there is none."""
    if task == "tags":
        yield from zip(sentence.gold, sentence.predicted, strict=True)
        return
    compared = compare(spans(sentence.gold), spans(sentence.predicted))
    yield from ((gold[2], predicted[2]) for gold, predicted in compared.pairs)
    yield from ((mention[2], "") for mention in compared.missed)
    yield from (("", mention[2]) for mention in compared.invented)
