"""The XOR limit of Li, Fu & Ma (2020), sections 3.3 and 3.4, proved by exact certificates.

Baseline-BiLSTM-CNN scores a tag by s = →s(tag | past) + ←s(tag | future) + b(tag); the token itself is in both
contexts. A CRF adds q(tag, next tag) for each transition, start and end included. A context is its words, so phrases
that share a context share a term; a term's printed name is its identity.

Each phrase must score its target tags above every rival: target - rival > 0. Terms on both sides cancel, and so does
the softmax normalizer, which depends on the phrase alone. A solver may require >= 1 instead without loss: the
inequalities are homogeneous, so any solution, divided by its smallest difference, satisfies it.

The terms are free numbers here, which is more than any LSTM can express: if no values satisfy the inequalities, no
weights do, whatever the number and size of the layers. If some do, summing two directions does not rule it out;
whether training finds such weights is another question.

Either some values satisfy a program (`Solution`), or non-negative multipliers, not all zero, make the inequalities
add up to 0 > 0 (`Contradiction`; Gordan's form of Farkas' lemma), which is the paper's 'summing the inequalities'. A
linear program proposes one or the other. Each verifies itself in integers when it is created, wherever it comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise, product
from math import gcd, lcm
from typing import Any, ClassVar, Literal

import numpy as np
import scipy  # imports scipy.optimize when it is first used

Tags = tuple[str, ...]

TAGS: Tags = ("O", "S", "B", "I", "E")

FOLLOWERS = {"start": "OSB", "O": "OSB", "S": "OSB", "B": "IE", "I": "IE", "E": "OSB"}
"""Tags that may come next, for mentions of one type; a sequence may end where a mention may start."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """`tags` are the target tags of the words from index `first` on; the other words are context only."""

    number: int
    words: tuple[str, ...]
    tags: Tags
    first: int = 0

    def __str__(self) -> str:
        """The words with their target tags: Key and/I Peele."""
        tags = dict(enumerate(self.tags, start=self.first))
        return " ".join(f"{word}/{tags[t]}" if t in tags else word for t, word in enumerate(self.words))

    def score(self, tags: Tags, *, transitions: bool) -> Counter[str]:
        """Terms that add up to the score of `tags`, with their counts."""
        terms: Counter[str] = Counter()
        for t, tag in enumerate(tags, start=self.first):
            past, future = " ".join(self.words[: t + 1]), " ".join(self.words[t:])
            terms.update((f"→s({tag} | {past})", f"←s({tag} | {future})", f"b({tag})"))
        if transitions:
            terms.update(f"q({tag}, {following})" for tag, following in pairwise(("start", *tags, "end")))
        return terms


@dataclass(frozen=True, slots=True)
class Inequality:
    """Score of a phrase's target tags minus score of `rival` > 0, without the terms that cancel."""

    phrase: Phrase
    rival: Tags
    terms: Mapping[str, int]

    @property
    def left(self) -> dict[str, int]:
        return {term: count for term, count in self.terms.items() if count > 0}

    @property
    def right(self) -> dict[str, int]:
        return {term: -count for term, count in self.terms.items() if count < 0}

    def difference(self, values: Mapping[str, int]) -> int:
        """Left side minus right side; a term without a value is 0."""
        return sum(count * values.get(term, 0) for term, count in self.terms.items())

    def __str__(self) -> str:
        return " > ".join(" + ".join(write_sum(side)) for side in (self.left, self.right))


@dataclass(frozen=True, slots=True)
class Program:
    """Inequalities that must all hold for every phrase to get its target tags.

    left_out: the phrase that was removed from a case, if any.
    """

    name: str
    section: str
    phrases: tuple[Phrase, ...]
    inequalities: tuple[Inequality, ...]
    left_out: Phrase | None = None

    def without(self, phrase: Phrase) -> Program:
        """The program of the other phrases."""
        return replace(
            self,
            name=f"{self.name}, without phrase {phrase.number}",
            phrases=tuple(other for other in self.phrases if other != phrase),
            inequalities=tuple(row for row in self.inequalities if row.phrase != phrase),
            left_out=phrase,
        )


def programs() -> list[Program]:
    """The cases of both sections: target tags against all others unless the name says otherwise.

    The paper says that Viterbi unties B I E from O O O 'with or without transition probabilities'. Without them,
    this holds if only well-formed sequences compete (O O O is one). If all sequences do, each token is decided
    alone, and 'and' is section 3.3 again.
    """
    token = _phrases("Key You", "and", "Peele I", ("I",), ("O",), first=1)
    every = list(product(TAGS, repeat=3))
    valid = [tags for tags in every if well_formed(tags)]
    return [
        _program("one token, softmax", "3.3", token, list(product(TAGS)), transitions=False),
        _program("O S O or O O O, softmax", "3.4", letters(), every, transitions=False),
        _program("O S O or O O O, CRF", "3.4", letters(), every, transitions=True),
        _program("B I E or O O O, softmax", "3.4", titles(), every, transitions=False),
        _program("B I E or O O O, softmax, well-formed only", "3.4", titles(), valid, transitions=False),
        _program("B I E or O O O, CRF", "3.4", titles(), every, transitions=True),
    ]


def letters() -> tuple[Phrase, ...]:
    """O S O or O O O."""
    return _phrases("a b", "m", "c d", ("O", "S", "O"), ("O", "O", "O"))


def titles() -> tuple[Phrase, ...]:
    """B I E or O O O."""
    return _phrases("Key You", "and", "Peele I", ("B", "I", "E"), ("O", "O", "O"))


def well_formed(tags: Tags) -> bool:
    """Whether `tags` are whole mentions and O: each S alone, each B followed by I* E."""
    return tags[-1] in "OSE" and all(tag in FOLLOWERS[last] for last, tag in pairwise(("start", *tags)))


def write_sum(terms: Mapping[str, int]) -> list[str]:
    """Terms as text, one string per kind, in the paper's order: →s, ←s, b, q."""
    kinds = groupby(sorted(terms.items(), key=lambda item: "→←bq".index(item[0][0])), lambda item: item[0][0])
    return [
        " + ".join(term if count == 1 else f"{count} {term}" for term, count in items) for _, items in kinds
    ]


def _phrases(
    pasts: str, word: str, futures: str, same: Tags, crossed: Tags, first: int = 0
) -> tuple[Phrase, ...]:
    """Phrases in the paper's order: the two matching pairs, tagged `same`, then the two crossed ones."""
    (p1, p2), (f1, f2) = pasts.split(), futures.split()
    pairs = [(p1, f1, same), (p2, f2, same), (p1, f2, crossed), (p2, f1, crossed)]
    return tuple(Phrase(n, (p, word, f), tags, first) for n, (p, f, tags) in enumerate(pairs, start=1))


def _program(
    name: str, section: str, phrases: tuple[Phrase, ...], rivals: Sequence[Tags], *, transitions: bool
) -> Program:
    rows = []
    for phrase in phrases:
        for rival in (tags for tags in rivals if tags != phrase.tags):
            terms = phrase.score(phrase.tags, transitions=transitions)
            terms.subtract(phrase.score(rival, transitions=transitions))
            rows.append(Inequality(phrase, rival, {term: count for term, count in terms.items() if count}))
    return Program(name, section, phrases, tuple(rows))


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Proof that a program has no solution: one multiplier per inequality.

    Raises ValueError unless they are non-negative, not all zero, and make both sides add up to the same.
    """

    feasible: ClassVar[bool] = False
    program: Program
    multipliers: tuple[int, ...]

    def __post_init__(self) -> None:
        name, num_rows = self.program.name, len(self.program.inequalities)
        if len(self.multipliers) != num_rows:
            raise ValueError(f"{name}: expected {num_rows} multipliers, got {len(self.multipliers)}")
        least, most = min(self.multipliers), max(self.multipliers)
        if least < 0 or most == 0:
            raise ValueError(f"{name}: multipliers must be >= 0 and not all 0, got {least} to {most}")
        left, right = self.total("left"), self.total("right")
        for term in left | right:
            if left[term] != right[term]:
                rule = f"{term} must occur equally often on both sides"
                raise ValueError(
                    f"{name}: {rule}, got {left[term]} on the left and {right[term]} on the right"
                )

    def used(self) -> list[tuple[int, Inequality]]:
        """Inequalities that contradict each other, with their multipliers."""
        pairs = zip(self.multipliers, self.program.inequalities, strict=True)
        return [(multiplier, row) for multiplier, row in pairs if multiplier]

    def total(self, side: Literal["left", "right"]) -> Counter[str]:
        """Weighted sum of one side of the inequalities."""
        total: Counter[str] = Counter()
        for multiplier, row in self.used():
            for term, count in (row.left if side == "left" else row.right).items():
                total[term] += multiplier * count
        return total

    def proof(self) -> list[str]:
        used = self.used()
        lines = [f"No scores satisfy these {len(used)} inequalities (of {len(self.program.inequalities)}):"]
        for multiplier, row in used:
            target, rival = " ".join(row.phrase.tags), " ".join(row.rival)
            lines += [
                f"  {multiplier} x  phrase {row.phrase.number}, {target} over {rival}:",
                f"       {row}",
            ]
        first, *more = write_sum(self.total("left"))
        lines += ["Left sides and right sides add up to the same:", f"       {first}"]
        return [*lines, *(f"     + {kind}" for kind in more), "which is 0 > 0: a contradiction."]

    def record(self) -> dict[str, Any]:
        rows = [
            {
                "phrase": row.phrase.number,
                "rival": list(row.rival),
                "multiplier": multiplier,
                "inequality": str(row),
            }
            for multiplier, row in self.used()
        ]
        return {"contradiction": rows}


@dataclass(frozen=True, slots=True)
class Solution:
    """Proof that a program has a solution: values of terms, all others being 0.

    Raises ValueError unless every inequality holds.
    """

    feasible: ClassVar[bool] = True
    program: Program
    values: Mapping[str, int]

    def __post_init__(self) -> None:
        for row in self.program.inequalities:
            if row.difference(self.values) <= 0:
                place = f"{self.program.name}: phrase {row.phrase.number} against {' '.join(row.rival)}"
                raise ValueError(f"{place}: must win by more than 0, got {row.difference(self.values)}")

    def nearest(self, phrase: Phrase) -> tuple[int, Inequality]:
        """Smallest margin of the phrase's target tags, and its inequality."""
        rows = [row for row in self.program.inequalities if row.phrase == phrase]
        return min(((row.difference(self.values), row) for row in rows), key=lambda pair: pair[0])

    def proof(self) -> list[str]:
        lines = [f"These scores, all others 0, satisfy all {len(self.program.inequalities)} inequalities:"]
        lines += [f"       {term} = {value}" for term, value in self.values.items()]
        for phrase in self.program.phrases:
            lead, row = self.nearest(phrase)
            target, rival = " ".join(phrase.tags), " ".join(row.rival)
            lines.append(f"  phrase {phrase.number}: {target} wins by {lead} over the next best, {rival}")
        return lines

    def record(self) -> dict[str, Any]:
        leads = [(phrase.number, *self.nearest(phrase)) for phrase in self.program.phrases]
        nearest = [{"phrase": number, "rival": list(row.rival), "lead": lead} for number, lead, row in leads]
        return {"values": dict(self.values), "nearest": nearest}


Certificate = Contradiction | Solution


def certificates() -> list[Certificate]:
    """Certificates of all `programs`, each contradiction followed by those of its subsets of three phrases.

    All subsets are feasible, so the limit is exactly 3 of 4.
    """
    proofs: list[Certificate] = []
    for program in programs():
        certificate = certify(program)
        proofs.append(certificate)
        if not certificate.feasible:
            proofs += [certify(program.without(phrase)) for phrase in program.phrases]
    return proofs


def cases(certificates: Sequence[Certificate]) -> list[Certificate]:
    """Certificates of the cases themselves, without those of three phrases."""
    return [certificate for certificate in certificates if certificate.program.left_out is None]


def certify(program: Program) -> Certificate:
    """A solution or, if the solver finds none, a contradiction. Raises ValueError if it fails its own check."""
    terms = sorted({term for row in program.inequalities for term in row.terms})
    matrix = np.array([[row.terms.get(term, 0) for term in terms] for row in program.inequalities], float)
    values = _smallest_solution(matrix)
    if values is None:
        return Contradiction(program, tuple(_smallest_integers(_multipliers(matrix))))
    pairs = zip(terms, _smallest_integers(values), strict=True)
    return Solution(program, {term: value for term, value in pairs if value})


def render(certificate: Certificate) -> str:
    """The certificate in the paper's notation, to be checked by hand."""
    program = certificate.program
    lines = [f"Li, Fu & Ma (2020), section {program.section}: {program.name}"]
    lines += [f"  {phrase.number}. {phrase}" for phrase in program.phrases]
    return "\n".join([*lines, *certificate.proof()])


def to_json(certificate: Certificate) -> dict[str, Any]:
    """Content for JSON; inequalities are written as in `render`."""
    program = certificate.program
    return {
        "name": program.name,
        "section": program.section,
        "feasible": certificate.feasible,
        "phrases": [str(phrase) for phrase in program.phrases],
        "num_inequalities": len(program.inequalities),
        **certificate.record(),
    }


def _smallest_solution(matrix: np.ndarray) -> np.ndarray | None:
    """x with matrix @ x >= 1 and minimal sum of |x|, so that few are nonzero; None if there is none."""
    halves = np.hstack([matrix, -matrix])  # x = up - down, both >= 0
    result = scipy.optimize.linprog(
        np.ones(halves.shape[1]), A_ub=-halves, b_ub=np.full(len(matrix), -1.0), method="highs-ds"
    )
    assert result.status in (0, 2), result.message
    return None if result.status == 2 else np.subtract(*np.split(result.x, 2))


def _multipliers(matrix: np.ndarray) -> np.ndarray:
    """y >= 0 with y @ matrix = 0 and sum 1. The simplex method ends in a vertex, where few are nonzero."""
    num_rows, num_terms = matrix.shape
    equations, sums = np.vstack([matrix.T, np.ones(num_rows)]), np.append(np.zeros(num_terms), 1.0)
    result = scipy.optimize.linprog(np.zeros(num_rows), A_eq=equations, b_eq=sums, method="highs-ds")
    assert result.status == 0, result.message
    return result.x


def _smallest_integers(numbers: Iterable[float]) -> list[int]:
    """Smallest integers in the ratio of `numbers`, after rounding these to simple fractions."""
    fractions = [Fraction(float(number)).limit_denominator(1000) for number in numbers]
    scale = lcm(*(fraction.denominator for fraction in fractions))
    integers = [int(fraction * scale) for fraction in fractions]
    return [number // gcd(*integers) for number in integers]
