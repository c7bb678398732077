"""xor.json, what `ner-experiments xor` leaves: what was proved, measured and trained, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.runs import artifacts

if TYPE_CHECKING:  # it needs Lightning, which whoever reads phrases alone does not
    from ner_experiments.xor.experiment import Found

FILE, PICTURE = "xor.json", "xor.png"


@dataclass(frozen=True)
class Trials:
    """`content` is all that the file has: `models` the figures, `config` what decides them."""

    content: Mapping[str, Any]

    def right(self, name: str, decoder: str) -> list[int]:
        """The most phrases right at once, seed by seed; empty for an architecture that was left out."""
        models = self.content["models"]
        return list(models[name][f"right_{decoder}"]) if name in models else []

    @cached_property
    def found(self) -> dict[str, Found]:
        """Of each architecture."""
        from ner_experiments.xor.experiment import Found

        return {name: Found.of(model) for name, model in self.content["models"].items()}

    @property
    def trainings(self) -> int:
        return sum(len(model.all_right()) for model in self.found.values())

    @property
    def measurements(self) -> int:
        """Draws of weights, of all architectures."""
        return sum(len(model.interactions) for model in self.found.values())

    @property
    def hours(self) -> float:
        """From beginning to end."""
        return float(self.content["seconds"]) / 3600

    def learned(self, phrases: int) -> list[str]:
        """The architectures that got so many phrases right at once, and never more."""
        return [name for name, model in self.found.items() if max(model.all_right()) == phrases]

    def share(self, phrases: int, names: Sequence[str]) -> str:
        """How many trainings of the architectures ended with so many phrases: 6 of 8."""
        right = [number for name in names for number in self.found[name].all_right()]
        return f"{right.count(phrases)} of {len(right)}"

    def twins(self) -> list[list[str]]:
        """Names that share all figures, to the last digit: one model under several names."""
        models = list(self.found.values())
        groups = [[name for name, model in self.found.items() if model == one] for one in models]
        return [group for place, group in enumerate(groups) if len(group) > 1 and group not in groups[:place]]


def read(path: Path) -> Trials:
    """ValueError for a file that is damaged, or of a version that did not write how it was made."""
    content = artifacts.read(path)
    if "config" not in content:
        rule = "expected settings and how it was made, but it has no config"
        raise ValueError(f"{path}: {rule}; run `ner-experiments xor` again")
    return Trials(content)
