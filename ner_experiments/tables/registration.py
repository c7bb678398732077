"""The registration, results/registration.yaml: what is tested of each paper, fixed before its runs are made.

A registration has a hash of all that it says, which runs record when they are started (`sweep.registration`); that of a
sweep is in `sweep_registration.py`.
A paper is a family: one primary test for each of its claims, a fixed number of new seeds without looks, and Holm's
correction over the tests. `tables.registered` computes the verdicts, and checks that the runs followed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ner_experiments.config.safe_yaml import read_plain
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.claims import HASH_LENGTH, ROWS, RUNGS, Claim, ClaimSource, parsed_side
from ner_experiments.utils.checks import TEXT, TEXTS, checked, is_count, is_number
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import did_you_mean, truncated_repr

FILE = "registration.yaml"
FIRST_SEED = 101
"""The first seed of registered runs: those with lower ones are exploratory."""
MOST_SEEDS = 12
FEWEST_SEEDS = 3
"""Two seeds may agree by accident, which makes any difference look certain."""


@dataclass(frozen=True, kw_only=True)
class RegisteredTest:
    """The primary test of a claim.

    claim: of the ledger, with the rows and the setting of this test; its seeds are the registered ones.
    number: seeds per row; 0 if the claim is not testable with `MOST_SEEDS`, which leaves it out of the family.
    margin: half of the paper's difference: an interval within it on both sides of 0 shows that there is no such one.
    """

    claim: Claim
    number: int
    margin: float

    @property
    def testable(self) -> bool:
        return self.number > 0

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(FIRST_SEED, FIRST_SEED + self.number))


@dataclass(frozen=True, kw_only=True)
class Family:
    """The registration of a paper.

    overrides: the settings that dev chose for the paper's reference row, the same for all rows. search: where they are
    from. secondary: further test sets, as `audit.extra_tests`. secondary_corpus: whose rows alone are scored on them;
    "" for all. gpu_hours: what the runs take on a GPU, if CPUs are too slow for them; else None. hash: SHA-256 of all
    that is registered, as 12 hexadecimal digits.
    """

    paper: str
    overrides: tuple[str, ...]
    search: str
    secondary: Mapping[str, Any]
    secondary_corpus: str
    gpu_hours: float | None
    tests: tuple[RegisteredTest, ...]
    hash: str

    @cached_property
    def testable(self) -> tuple[RegisteredTest, ...]:
        return tuple(test for test in self.tests if test.testable)

    def secondary_of(self, test: RegisteredTest) -> Mapping[str, Any]:
        """The further test sets on which a test's runs are scored."""
        return self.secondary if self.secondary_corpus in ("", test.claim.corpus) else {}


def read(path: Path, ledger: Sequence[Claim]) -> tuple[Family, ...]:
    """The families of a registration. ValueError with file, paper, claim, rule and value if it breaks a rule."""
    content = checked(read_plain(path), REGISTRATION, f"{path}", ("papers",))
    return tuple(
        family(str(paper), entry, ledger, f"{path}: {paper}") for paper, entry in content["papers"].items()
    )


def family(paper: str, content: Any, ledger: Sequence[Claim], place: str) -> Family:
    settings = checked(content, FAMILY, place, REQUIRED_OF_FAMILY)
    overrides = tuple(settings["overrides"])
    tests = [
        registered_test(paper, entry, overrides, ledger, f"{place}: test {number}")
        for number, entry in enumerate(settings["tests"], start=1)
    ]
    for name, number in Counter(test.claim.id for test in tests).items():
        if number > 1:
            raise ValueError(f"{place}: a claim has one primary test, got {number} of {name}")
    return Family(
        paper=paper,
        overrides=overrides,
        search=settings["search"],
        secondary=settings.get("secondary", {}),
        secondary_corpus=settings.get("secondary_corpus", ""),
        gpu_hours=settings.get("gpu_hours"),
        tests=tuple(tests),
        hash=digest(paper, settings),
    )


def digest(name: str, content: Any) -> str:
    """The hash of what a registration says of a paper or a sweep."""
    return json_digest([name, content])[:HASH_LENGTH]


def unrecorded(run: Run, name: str) -> str:
    """Why a run is not proven to have been started for the registration of this hash, or ""."""
    found = run.metrics.get("registration")
    if found == name:
        return ""
    return f"did not record the registration {name} when it was started" + (f", but {found}" if found else "")


def registered_test(
    paper: str, content: Any, overrides: tuple[str, ...], ledger: Sequence[Claim], place: str
) -> RegisteredTest:
    if isinstance(content, dict) and isinstance(content.get("claim"), str):
        place = f"{place} ({truncated_repr(content['claim'])})"
    settings = checked(content, TEST, place, REQUIRED_OF_TEST)
    firsts = {claim.id: claim for claim in ledger if claim.paper == paper and not claim.repeats}
    if (claim := firsts.get(settings["claim"])) is None:
        hint = did_you_mean(settings["claim"], firsts)
        raise ValueError(
            f"{place}: claim must be one of {paper}'s that repeats none, got {settings['claim']!r}{hint}"
        )
    if not claim.published:
        raise ValueError(
            f"{place}: the paper prints no difference, so no margin and no number of seeds follow"
        )
    number = settings["seeds"]
    if number and not FEWEST_SEEDS <= number <= MOST_SEEDS:
        raise ValueError(
            f"{place}: seeds must be 0 (not testable) or from {FEWEST_SEEDS} to {MOST_SEEDS}, got {number}"
        )
    margin = abs(claim.published) / 2
    if abs(settings["margin"] - margin) > MARGIN_DIGITS:
        raise ValueError(
            f"{place}: margin must be half of the paper's difference, {margin:.3f}, got {settings['margin']}"
        )
    source: dict[str, Any] = {
        "overrides": overrides,
        "seeds": tuple(range(FIRST_SEED, FIRST_SEED + max(number, 1))),
        "looks": (max(number, 1),),
        "hours": 0.0,
        "smallest_effect": margin,
    }
    tables = {name: ClaimSource(name=name, table=name, **source) for name in spec.names()}
    a, b = (parsed_side(settings.get(name, []), tables, f"{place}: {name}") for name in ("a", "b"))
    if bool(b) == bool(spec.load(a[0].source.table).analysis):
        raise ValueError(f"{place}: {'a row of an analysis takes no b' if b else 'a needs b'}")
    corpus = settings.get("corpus", claim.corpus)
    tested = replace(claim, a=a, b=b, rung=settings["rung"], corpus=corpus)
    return RegisteredTest(claim=tested, number=number, margin=margin)


MARGIN_DIGITS = 0.005
REGISTRATION = {"papers": (lambda value: isinstance(value, dict), "families by paper")}
FAMILY = {
    "overrides": TEXTS,
    "search": TEXT,
    "secondary": (lambda value: isinstance(value, dict), "test sets by name"),
    "secondary_corpus": TEXT,
    "gpu_hours": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "tests": (lambda value: isinstance(value, list) and bool(value), "a list of tests"),
}
REQUIRED_OF_FAMILY = ("overrides", "search", "tests")
TEST = {
    "claim": TEXT,
    "corpus": TEXT,
    "a": (lambda value: isinstance(value, dict | list) and bool(value), ROWS),
    "b": (lambda value: isinstance(value, dict | list) and bool(value), ROWS),
    "seeds": (is_count, "a whole number from 0"),
    "margin": (lambda value: is_number(value) and value > 0, "a number above 0"),
    "rung": (
        lambda value: is_count(value) and value < len(RUNGS),
        f"a whole number from 0 to {len(RUNGS) - 1}",
    ),
}
REQUIRED_OF_TEST = ("claim", "a", "seeds", "margin", "rung")
