"""conlleval's rules in plain loops: which tags begin and end a chunk, the pass over the lines, the output.

The rules are those of version 2004-01-26, for B, I, E and O. They proceed line by line, and see the end of a sentence
as a line with O as both tags. Tests compare the output with that of the original in conlleval/*.txt.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

Line = tuple[str, str]
"""Gold and predicted tag."""

BEGINS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
"""Letters of two adjacent tags of one type. Where the type changes, every tag but O also begins or ends a chunk."""
BREAK = ("O", "O")


@dataclass
class Counts:
    """Counts of chunks by type, and of tokens."""

    correct: Counter[str] = field(default_factory=Counter)
    predicted: Counter[str] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    right_tokens: int = 0


@cache
def parse(tag: str) -> tuple[str, str]:
    letter, _, kind = tag.partition("-")
    return letter, kind


@cache
def begins(before: str, tag: str) -> bool:
    (a, kind), (b, other) = parse(before), parse(tag)
    return a + b in BEGINS or (b != "O" and kind != other)


@cache
def ends(before: str, tag: str) -> bool:
    (a, kind), (b, other) = parse(before), parse(tag)
    return a + b in ENDS or (a != "O" and kind != other)


def count(sentences: Iterable[Iterable[Line]]) -> Counts:
    found, before, together = Counts(), BREAK, False
    for sentence in sentences:
        lines = list(sentence)
        for number, now in enumerate([*lines, BREAK]):
            end = [ends(*pair) for pair in zip(before, now, strict=True)]
            begin = [begins(*pair) for pair in zip(before, now, strict=True)]
            gold, predicted = parse(now[0])[1], parse(now[1])[1]
            if together and all(end) and parse(before[0])[1] == parse(before[1])[1]:
                together = False
                found.correct[parse(before[0])[1]] += 1
            elif together and (end[0] != end[1] or gold != predicted):
                together = False
            if all(begin) and gold == predicted:
                together = True
            found.gold[gold] += begin[0]
            found.predicted[predicted] += begin[1]
            if number < len(lines):
                found.tokens += 1
                found.right_tokens += now[0] == now[1]
            before = now
    return found


def figures(correct: int, predicted: int, gold: int) -> str:
    precision = 100 * correct / predicted if predicted else 0.0
    recall = 100 * correct / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def printed(found: Counts) -> str:
    """The report in the format of the original."""
    totals = [found.correct.total(), found.predicted.total(), found.gold.total()]
    lines = [
        f"processed {found.tokens} tokens with {totals[2]} phrases; "
        f"found: {totals[1]} phrases; correct: {totals[0]}.",
        f"accuracy: {100 * found.right_tokens / found.tokens:6.2f}%; {figures(*totals)}",
    ]
    for kind in sorted(kind for kind, number in (found.gold + found.predicted).items() if number):
        counts = [counter[kind] for counter in (found.correct, found.predicted, found.gold)]
        lines.append(f"{kind:>17}: {figures(*counts)}  {counts[1]}")
    return "\n".join(lines) + "\n"
