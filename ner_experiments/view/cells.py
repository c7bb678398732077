"""Statistics as cells of a table: means, intervals, differences and p, empty for what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Protocol


class Interval(Protocol):
    """Whatever has both ends of an interval, or neither."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class Estimate(Interval, Protocol):
    """A mean, or a difference of two, with its interval."""

    @property
    def mean(self) -> float: ...


class Summary(Estimate, Protocol):
    """The mean of n scores with its standard deviation."""

    @property
    def sd(self) -> float | None: ...
    @property
    def n(self) -> int: ...


def score(summary: Summary | None) -> str:
    """`91.20 ± 0.10 (3)`: mean, standard deviation, and number of runs."""
    return f"{summary.mean:.2f}{deviation(summary.sd, summary.n)}" if summary else ""


def published(value: float | tuple[str, ...] | str | None, sd: float | None, runs: int | None) -> str:
    """`91.48 ± 0.22 (10)` as a paper prints it, or its text."""
    text = " / ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
    return (f"{value:.2f}" if isinstance(value, float) else text) + deviation(sd, runs)


def deviation(sd: float | None, runs: int | None) -> str:
    """` ± 0.10 (3)`, to follow a mean."""
    return ("" if sd is None else f" ± {sd:.2f}") + ("" if runs is None else f" ({runs})")


def spread(mean: float, sd: float | None, digits: int) -> str:
    """`1,234.5 ± 6.7`, or the mean alone if nothing varies, as the number of parameters does not."""
    return f"{mean:,.{digits}f}" + (f" ± {sd:,.{digits}f}" if sd else "")


def interval(it: Interval | None) -> str:
    """`88.52 to 93.48`."""
    return "" if it is None or it.low is None or it.high is None else f"{it.low:.2f} to {it.high:.2f}"


def difference(it: Estimate | None, otherwise: str = "") -> str:
    """`+1.20 (0.40 to 2.00)`; with `otherwise` in the parentheses if there is no interval."""
    if it is None:
        return ""
    between = interval(it) or otherwise
    return f"{it.mean:+.2f}" + (f" ({between})" if between else "")


def points(value: float | None, sign: str = "") -> str:
    """`1.20`, or `+1.20` with the sign "+"."""
    return "" if value is None else f"{value:{sign}.2f}"


def probability(p: float | None) -> str:
    """p with three decimals, or `< 0.001`."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def numbers(values: Sequence[int]) -> str:
    """`3`, or `3 to 1,200`: the first and the last of ascending numbers."""
    return " to ".join(f"{number:,}" for number in dict.fromkeys([values[0], values[-1]]))


def seed_counts(a: Sized, b: Sized) -> str:
    """Why the difference of two rows has no interval: too few seeds, or scores that do not vary."""
    if min(len(a), len(b)) > 1:
        return "scores do not vary"
    return "one seed" if len(a) == len(b) else f"seeds: {len(a)} against {len(b)}"


def figures(by_name: Mapping[str, float]) -> str:
    """` [precision 90.10, recall 89.00]`, to follow a score."""
    return f" [{', '.join(f'{name} {value:.2f}' for name, value in by_name.items())}]" if by_name else ""
