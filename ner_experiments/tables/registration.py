"""The registration, results/registration.yaml: what is tested of each paper, fixed before its runs are made.

A registration has a hash of all that it says, which runs record when they are started (`sweep.registration`); that of a
sweep is in `sweep_registration.py`.
A paper is a family: one primary test for each of its claims, a fixed number of new seeds without looks, and Holm's
correction over the tests. `tables.registered` computes the verdicts, and checks that the runs followed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from ner_experiments.config import plain_yaml
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.claims import HASH_LENGTH, SOME_ROWS, Claim, ClaimSource, Rung, parsed_side
from ner_experiments.utils.checks import (
    Count,
    Positive,
    Rule,
    Text,
    Texts,
    built,
    checked,
    is_list,
    is_mapping,
    numbered,
    parsed,
)
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import did_you_mean

FILE = "registration.yaml"
FIRST_SEED = 101
"""The first seed of registered runs: those with lower ones are exploratory."""
MOST_SEEDS = 12
FEWEST_SEEDS = 3
"""Two seeds may agree by accident, which makes any difference look certain."""
MARGIN_DIGITS = 0.005
TESTS = Rule(lambda value: is_list(value) and bool(value), "a list of tests")


@dataclass(frozen=True)
class Registration:
    """The content of the file."""

    papers: Annotated[Mapping[str, Any], Rule(is_mapping, "families by paper")]


@dataclass(frozen=True, kw_only=True)
class Test:
    """The content of the file on the primary test of a claim.

    claim: its ID. corpus: that of the runs, if it is not the claim's. seeds: their number; 0 if the claim is not
    testable with `MOST_SEEDS`, which leaves it out of the family. margin: half of the paper's difference.
    """

    claim: Text
    corpus: Text = ""
    a: Annotated[Any, SOME_ROWS]
    b: Annotated[Any, SOME_ROWS] = ()
    seeds: Count
    margin: Positive
    rung: Rung


@dataclass(frozen=True, kw_only=True)
class Family:
    """The registration of a paper.

    overrides: the settings that dev chose for the paper's reference row, the same for all rows. search: where they are
    from. secondary: further test sets, as `audit.extra_tests`. secondary_corpus: whose rows alone are scored on them;
    "" for all. gpu_hours: what the runs take on a GPU, if CPUs are too slow for them; else None. hash: SHA-256 of all
    that is registered, as 12 hexadecimal digits.
    tests: the claims of the ledger, each with the rows and the setting of its primary test; the seeds of its source are
        the registered ones, none if it is not testable, and the smallest effect is its margin: an interval within it on
        both sides of 0 shows that there is no such difference as the paper's.
    """

    paper: str
    overrides: Texts
    search: Text
    secondary: Annotated[Mapping[str, Any], Rule(is_mapping, "test sets by name")] = field(
        default_factory=dict
    )
    secondary_corpus: Text = ""
    gpu_hours: Positive | None = None
    tests: Annotated[tuple[Claim, ...], TESTS]
    hash: str

    @cached_property
    def testable(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.tests if claim.source.seeds)

    def secondary_of(self, claim: Claim) -> Mapping[str, Any]:
        """The further test sets on which a test's runs are scored."""
        return self.secondary if self.secondary_corpus in ("", claim.corpus) else {}


def read(path: Path, ledger: Sequence[Claim]) -> tuple[Family, ...]:
    """The families of a registration. ValueError with file, paper, claim, rule and value if it breaks a rule."""
    papers = parsed(plain_yaml.load(path), Registration, f"{path}").papers
    return tuple(family(str(paper), entry, ledger, f"{path}: {paper}") for paper, entry in papers.items())


def family(paper: str, content: Any, ledger: Sequence[Claim], place: str) -> Family:
    settings = checked(content, Family, place)
    tests = tuple(
        registered_test(paper, entry, settings["overrides"], ledger, where)
        for where, entry in numbered(settings["tests"], Test, f"{place}: test")
    )
    for name, number in Counter(claim.id for claim in tests).items():
        if number > 1:
            raise ValueError(f"{place}: a claim has one primary test, got {number} of {name}")
    corpora, corpus = {claim.corpus for claim in tests}, settings.get("secondary_corpus", "")
    if corpus and corpus not in corpora:
        rule = f"secondary_corpus must be one of {', '.join(sorted(corpora))}, got {corpus!r}"
        raise ValueError(f"{place}: {rule}{did_you_mean(corpus, corpora)}")
    return built(settings, Family, place, paper=paper, tests=tests, hash=digest(paper, settings))


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
    paper: str, content: Any, overrides: Sequence[str], ledger: Sequence[Claim], place: str
) -> Claim:
    test = parsed(content, Test, place)
    firsts = {claim.id: claim for claim in ledger if claim.paper == paper and not claim.repeats}
    if (claim := firsts.get(test.claim)) is None:
        hint = did_you_mean(test.claim, firsts)
        raise ValueError(
            f"{place}: claim must be one of {paper}'s that repeats none, got {test.claim!r}{hint}"
        )
    if not claim.published:
        raise ValueError(
            f"{place}: the paper prints no difference, so no margin and no number of seeds follow"
        )
    if test.seeds and not FEWEST_SEEDS <= test.seeds <= MOST_SEEDS:
        rule = f"seeds must be 0 (not testable) or from {FEWEST_SEEDS} to {MOST_SEEDS}"
        raise ValueError(f"{place}: {rule}, got {test.seeds}")
    margin = abs(claim.published) / 2
    if abs(test.margin - margin) > MARGIN_DIGITS:
        raise ValueError(
            f"{place}: margin must be half of the paper's difference, {margin:.3f}, got {test.margin}"
        )
    tables = {
        name: ClaimSource(
            name=name,
            table=name,
            overrides=tuple(overrides),
            seeds=tuple(range(FIRST_SEED, FIRST_SEED + test.seeds)),
            looks=(test.seeds,),
            hours=0.0,
            smallest_effect=margin,
        )
        for name in spec.names()
    }
    a, b = (parsed_side(content.get(name, []), tables, f"{place}: {name}") for name in ("a", "b"))
    if bool(b) == bool(spec.load(a[0].source.table).analysis):
        raise ValueError(f"{place}: {'a row of an analysis takes no b' if b else 'a needs b'}")
    return replace(claim, a=a, b=b, rung=test.rung, corpus=test.corpus or claim.corpus)
