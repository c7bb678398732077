"""xor.json, the results of `ner-experiments xor`: scores of each architecture, certificates and provenance.

Reading it does not import torch, so that tables and reports can read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ner_experiments.runs import artifacts

FILE, PICTURE = "xor.json", "xor.png"
DECODERS = ("softmax", "crf")
ROUNDING = 1e-9
"""Interactions below this mean a limited architecture. In float64, those of sums are far smaller, all others larger."""
HEADINGS = ("model", "layers", "interaction", "best softmax", "best CRF", "seeds with 4", "limited?")
"""Columns of `table_lines`. The seeds with 4 are counted for softmax, then for the CRF."""


class TrialResult(NamedTuple):
    """The most phrases that were correct at once, and the 0-based step at which this number was first reached."""

    num_correct: int
    step: int


@dataclass
class ModelResult:
    """One architecture: the interaction of each draw of weights, and the trial of each decoder and seed.

    layers: None for an architecture without such a setting.
    """

    layers: int | None
    interactions: list[float] = field(default_factory=list)
    trials: dict[str, dict[int, TrialResult]] = field(
        default_factory=lambda: {decoder: {} for decoder in DECODERS}
    )

    @property
    def interaction(self) -> float:
        return max(self.interactions)

    @property
    def limited(self) -> bool:
        """Whether the scores are sums of past and future, up to rounding."""
        return self.interaction < ROUNDING

    def num_correct(self, decoder: str) -> list[int]:
        """The most phrases correct at once, by seed."""
        return [trial.num_correct for trial in self.by_seed(decoder)]

    def by_seed(self, decoder: str) -> list[TrialResult]:
        return [trial for _, trial in sorted(self.trials[decoder].items())]

    def num_correct_of_all(self) -> list[int]:
        """`num_correct` of every decoder."""
        return [number for decoder in DECODERS for number in self.num_correct(decoder)]

    def best(self, decoder: str) -> int:
        return max(self.num_correct(decoder))

    def record(self) -> dict[str, Any]:
        """Content for JSON. By seed, right_* is the most phrases correct at once, and steps_* the first such step."""
        return {
            "interaction": self.interaction,
            **{f"best_{decoder}": self.best(decoder) for decoder in DECODERS},
            "seeds": len(self.num_correct(DECODERS[0])),
            "limited": self.limited,
            "layers": self.layers,
            "interactions": self.interactions,
            **{f"right_{decoder}": self.num_correct(decoder) for decoder in DECODERS},
            **{f"steps_{decoder}": [trial.step for trial in self.by_seed(decoder)] for decoder in DECODERS},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ModelResult:
        """Inverse of `record`."""
        trials = {
            decoder: dict(enumerate(map(TrialResult, record[f"right_{decoder}"], record[f"steps_{decoder}"])))
            for decoder in DECODERS
        }
        return cls(record["layers"], list(record["interactions"]), trials)


@dataclass(frozen=True)
class XorResults:
    """Results of all architectures. `content` is the whole file: `models` has the scores, `config` the settings."""

    content: Mapping[str, Any]

    @cached_property
    def models(self) -> dict[str, ModelResult]:
        return {name: ModelResult.from_record(record) for name, record in self.content["models"].items()}

    def num_correct(self, name: str, decoder: str) -> list[int]:
        """The most phrases correct at once, by seed; empty for an architecture that was not trained."""
        return self.models[name].num_correct(decoder) if name in self.models else []

    @property
    def num_trainings(self) -> int:
        return sum(len(model.num_correct_of_all()) for model in self.models.values())

    @property
    def num_measurements(self) -> int:
        """Number of draws of weights, over all architectures."""
        return sum(len(model.interactions) for model in self.models.values())

    @property
    def hours(self) -> float:
        """Wall-clock time in hours."""
        return float(self.content["seconds"]) / 3600

    def with_best(self, phrases: int) -> list[str]:
        """Architectures whose best trial got exactly this many phrases correct."""
        return [name for name, model in self.models.items() if max(model.num_correct_of_all()) == phrases]

    def share(self, phrases: int, names: Sequence[str]) -> str:
        """Share of the trainings of these architectures that got exactly this many phrases correct: 6 of 8."""
        numbers = [number for name in names for number in self.models[name].num_correct_of_all()]
        return f"{numbers.count(phrases)} of {len(numbers)}"

    def identical_models(self) -> list[list[str]]:
        """Groups of names with equal results, to the last digit: one model under several names."""
        models = list(self.models.values())
        groups = [[name for name, model in self.models.items() if model == one] for one in models]
        return [group for place, group in enumerate(groups) if len(group) > 1 and group not in groups[:place]]


def read(path: Path) -> XorResults:
    """The results in a file. Raises ValueError if it is damaged."""
    return XorResults(artifacts.read(path))


def table_lines(models: Mapping[str, ModelResult]) -> list[list[str]]:
    """One line per architecture, under `HEADINGS`."""
    return [
        [
            name,
            "" if model.layers is None else f"{model.layers}",
            f"{model.interaction:.1e}",
            *(f"{model.best(decoder)} of 4" for decoder in DECODERS),
            ", ".join(f"{model.num_correct(decoder).count(4)}" for decoder in DECODERS),
            "yes" if model.limited else "no",
        ]
        for name, model in models.items()
    ]


def disagreements(models: Mapping[str, ModelResult]) -> tuple[list[str], list[str]]:
    """Architectures whose training contradicts their measurement.

    First the limited ones that learned four phrases, which is impossible; then the others that did not with at least
    one of the decoders.
    """
    impossible = [
        name for name, model in models.items() if model.limited and max(map(model.best, DECODERS)) > 3
    ]
    not_learned = [
        name for name, model in models.items() if not model.limited and min(map(model.best, DECODERS)) < 4
    ]
    return impossible, not_learned
