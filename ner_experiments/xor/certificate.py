"""The XOR limit of Li, Fu & Ma (2020), sections 3.3 and 3.4, proved by exact certificates.

The terms of `inequalities` are free numbers here, which is more than any LSTM can make of them: what they
cannot satisfy, no weights can, whatever the number and size of the layers. What they can satisfy is not
ruled out by summing two directions; whether training finds it is another question.

Either some values satisfy a program (`Solution`), or non-negative multipliers, not all zero, make the
inequalities add up to 0 > 0 (`Contradiction`; Gordan's form of Farkas' lemma), which is the paper's 'summing
the inequalities'. A linear program proposes one or the other. Each checks itself in whole numbers when it is
made, whoever proposed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import linprog

from ner_experiments.xor.inequalities import Inequality, Phrase, Program, programs, write_sum


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
        """The inequalities that contradict each other, with their multipliers."""
        pairs = zip(self.multipliers, self.program.inequalities, strict=True)
        return [(multiplier, row) for multiplier, row in pairs if multiplier]

    def total(self, side: Literal["left", "right"]) -> Counter[str]:
        """The weighted sum of one side of the inequalities."""
        total: Counter[str] = Counter()
        for multiplier, row in self.used():
            for term, count in (row.left if side == "left" else row.right).items():
                total[term] += multiplier * count
        return total

    def proof(self) -> list[str]:
        used = self.used()
        lines = [f"No scores satisfy these {len(used)} inequalities (of {len(self.program.inequalities)}):"]
        for multiplier, row in used:
            wanted, rival = " ".join(row.phrase.tags), " ".join(row.rival)
            lines += [
                f"  {multiplier} x  phrase {row.phrase.number}, {wanted} over {rival}:",
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
    """Proof that a program has a solution: values of terms, the others being 0.

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
        """By how much the phrase's wanted tags win at least, and the inequality where that is."""
        rows = [row for row in self.program.inequalities if row.phrase == phrase]
        return min(((row.difference(self.values), row) for row in rows), key=lambda pair: pair[0])

    def proof(self) -> list[str]:
        lines = [f"These scores, all others 0, satisfy all {len(self.program.inequalities)} inequalities:"]
        lines += [f"       {term} = {value}" for term, value in self.values.items()]
        for phrase in self.program.phrases:
            lead, row = self.nearest(phrase)
            wanted, rival = " ".join(phrase.tags), " ".join(row.rival)
            lines.append(f"  phrase {phrase.number}: {wanted} wins, by {lead} from the next best, {rival}")
        return lines

    def record(self) -> dict[str, Any]:
        leads = [(phrase.number, *self.nearest(phrase)) for phrase in self.program.phrases]
        nearest = [{"phrase": number, "rival": list(row.rival), "lead": lead} for number, lead, row in leads]
        return {"values": dict(self.values), "nearest": nearest}


Certificate = Contradiction | Solution


def certificates() -> list[Certificate]:
    """Each case of `programs`, and after each contradiction its four choices of three phrases.

    All these are feasible, so that the limit is exactly 3 of 4.
    """
    found: list[Certificate] = []
    for program in programs():
        certificate = certify(program)
        found.append(certificate)
        if not certificate.feasible:
            found += [certify(program.without(phrase)) for phrase in program.phrases]
    return found


def certify(program: Program) -> Certificate:
    """A solution or, where the solver finds none, a contradiction; never what fails its own check."""
    terms = sorted({term for row in program.inequalities for term in row.terms})
    matrix = np.array([[row.terms.get(term, 0) for term in terms] for row in program.inequalities], float)
    values = _smallest_solution(matrix)
    if values is None:
        return Contradiction(program, tuple(_whole(_multipliers(matrix))))
    pairs = zip(terms, _whole(values), strict=True)
    return Solution(program, {term: value for term, value in pairs if value})


def render(certificate: Certificate) -> str:
    """The certificate in the paper's terms, for people to check."""
    program = certificate.program
    lines = [f"Li, Fu & Ma (2020), section {program.section}: {program.name}"]
    lines += [f"  {phrase.number}. {phrase}" for phrase in program.phrases]
    return "\n".join([*lines, *certificate.proof()])


def to_json(certificate: Certificate) -> dict[str, Any]:
    """The certificate as dicts and lists for `json.dump`; inequalities are written as in `render`."""
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
    """x with matrix @ x >= 1 and the smallest sum of |x|, so that few are not 0; None if there is none."""
    halves = np.hstack([matrix, -matrix])  # x = up - down, both >= 0
    result = linprog(
        np.ones(halves.shape[1]), A_ub=-halves, b_ub=np.full(len(matrix), -1.0), method="highs-ds"
    )
    assert result.status in (0, 2), result.message
    return None if result.status == 2 else np.subtract(*np.split(result.x, 2))


def _multipliers(matrix: np.ndarray) -> np.ndarray:
    """y >= 0 with y @ matrix = 0 and sum 1. The simplex method ends in a vertex, where few are not 0."""
    num_rows, num_terms = matrix.shape
    equations, sums = np.vstack([matrix.T, np.ones(num_rows)]), np.append(np.zeros(num_terms), 1.0)
    result = linprog(np.zeros(num_rows), A_eq=equations, b_eq=sums, method="highs-ds")
    assert result.status == 0, result.message
    return result.x


def _whole(numbers: Iterable[float]) -> list[int]:
    """The smallest whole numbers in the ratio of `numbers`, once these are rounded to simple fractions."""
    fractions = [Fraction(float(number)).limit_denominator(1000) for number in numbers]
    scale = lcm(*(fraction.denominator for fraction in fractions))
    whole = [int(fraction * scale) for fraction in fractions]
    return [number // gcd(*whole) for number in whole]
