"""Ranges of numeric settings: the check, its message, and the words of the configuration reference."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Finite numbers from `low` to `high`. above: `low` is excluded. below: `high` is excluded."""

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        if not math.isfinite(value):
            return False
        over = value > self.low if self.above else value >= self.low
        return over and (value < self.high if self.below else value <= self.high)

    def check(self, name: str, value: float) -> None:
        """Raise ValueError, with the name and the rule, for a value outside the range."""
        if value not in self:
            raise ValueError(f"{name} must be {self.rule()}, got {value}")

    def rule(self) -> str:
        """The range in words, such as "at least 1" or "at least 0 and below 1"."""
        low = f"{'above' if self.above else 'at least'} {number(self.low)}"
        if math.isinf(self.high):
            return low
        return f"{low} and {'below' if self.below else 'at most'} {number(self.high)}"

    def formula(self) -> str:
        """The range as a formula, such as "≥ 1" or "0 ≤ x < 1"."""
        if math.isinf(self.high):
            return f"{'>' if self.above else '≥'} {number(self.low)}"
        return f"{number(self.low)} {'<' if self.above else '≤'} x {'<' if self.below else '≤'} {number(self.high)}"


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


AT_LEAST_0 = Range(0)
AT_LEAST_1 = Range(1)
RATE = Range(0, 1, below=True)
PROBABILITY = Range(0, 1)
POSITIVE = Range(0, above=True)
