"""The ledger of claims: results/claims.yaml, checked when it is read.

A claim is a contrast of rows of archived tables. `tables.verdicts` computes from the runs whether it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from ner_experiments.analysis.sequential import levels
from ner_experiments.config import plain_yaml
from ner_experiments.tables import spec
from ner_experiments.tables.spec import Row, Table
from ner_experiments.utils.checks import (
    Counts,
    Flag,
    Number,
    Positive,
    Rule,
    Seeds,
    Text,
    Texts,
    built,
    checked,
    is_count,
    is_list,
    is_mapping,
    numbered,
    parsed,
)
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import did_you_mean, truncated_repr

FILE = "claims.yaml"
HASH_LENGTH = 12

Direction = Literal["higher", "lower", "equal", "at most"]
RUNGS = (
    "the paper's setting",
    "a stand-in that leaves model, corpus and size alone",
    "another corpus of the task",
    "a smaller size",
)
"""How far runs are from the paper, by the number that the ledger gives."""
NOT_HASHED = ("repeats", "rung", "first_looks")
"""Keys that are no part of a claim's hash: they say how its verdict is counted and read, not what is tested."""


def is_side(value: Any) -> bool:
    return isinstance(value, dict | list)


ROWS = "a source and a label, or two of them"
SOME_ROWS = Rule(lambda value: is_side(value) and bool(value), ROWS)
Name = Annotated[
    str,
    Rule(
        lambda it: isinstance(it, str) and bool(it) and not any(map(str.isspace, it)), "a text without spaces"
    ),
]
Rung = Annotated[
    int, Rule(lambda it: is_count(it) and it < len(RUNGS), f"a whole number from 0 to {len(RUNGS) - 1}")
]


@dataclass(frozen=True)
class Ledger:
    """The content of the file."""

    sources: Annotated[Mapping[str, Any], Rule(is_mapping, "sources by name")]
    claims: Annotated[Sequence[Any], Rule(is_list, "a list")]


@dataclass(frozen=True, kw_only=True)
class ClaimSource:
    """An archived table, and what was planned before the runs of its claims are made.

    table, overrides: the folder of results/ that has the runs.
    seeds: the seeds of each row. looks: the numbers of seeds at which a verdict may be taken.
    first_looks: the looks before any were added to results that were known; empty if none were.
    hours: budget of CPU or GPU time for all rows.
    smallest_effect: two rows whose difference is shown to be smaller than this are called equal, in points.
    deviates: how the runs deviate from the paper; empty if they do not.
    """

    name: str
    table: Text
    overrides: Texts = ()
    seeds: Seeds
    looks: Counts
    hours: Positive
    smallest_effect: Positive
    first_looks: Counts = ()
    deviates: Text = ""

    @property
    def added_looks(self) -> tuple[int, ...]:
        """The looks that were added when results were known."""
        return tuple(look for look in self.looks if self.first_looks and look not in self.first_looks)


@dataclass(frozen=True)
class Reference:
    """A row of a source."""

    source: ClaimSource
    label: str

    @property
    def row(self) -> Row:
        """The row of the source's table, which `read` has found there."""
        return next(row for row in spec.load(self.source.table).rows if row.label == self.label)

    @property
    def trained(self) -> list[tuple[str, str]]:
        """Table and label of each row whose runs it needs: itself, or the two that a row of an analysis compares."""
        measure, table = self.row.measure, spec.load(self.source.table).runs_of
        return [(table, label) for label in ([measure.of, measure.over] if measure else [self.label])]


Side = tuple[Reference, ...]
"""A row, or two rows whose difference is meant, seed by seed."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper about `a` minus `b`, or about `a` alone if it is a row of an analysis or has a bound.

    paper, place: such as huang2015, and the section or table. claim: what it says, in our words.
    corpus: that of our runs.
    published: the paper's difference in points; None if the paper prints none.
    bound: the score that no run of `a` exceeds, with direction "at most".
    repeats: the id of the claim that this one tests again with other runs; empty if it is the first test.
    rung: how far its runs are from the paper, as a place in `RUNGS`.
    readme: once, whether README lists it; some entries have it still, as it is a part of hashes that runs recorded.
    hash: SHA-256 of all that the ledger says of it and its sources but `NOT_HASHED`, as 12 hexadecimal digits.
    """

    id: Name
    paper: Text
    place: Text
    claim: Text
    corpus: Text
    rung: Rung
    a: Annotated[Side, SOME_ROWS]
    b: Annotated[Side, Rule(is_side, ROWS)] = ()
    direction: Direction
    published: Number | None = None
    bound: Number | None = None
    repeats: Name = ""
    readme: Flag = False
    hash: str

    @property
    def source(self) -> ClaimSource:
        """The source of the first row, whose plan and family of tests are the claim's."""
        return self.a[0].source

    @property
    def first_id(self) -> str:
        """The id of the first test of what the claim says: the one that it repeats, or its own."""
        return self.repeats or self.id

    @property
    def references(self) -> Side:
        return (*self.a, *self.b)


def read(path: Path) -> tuple[Claim, ...]:
    """The claims of a ledger. Raises ValueError with file, claim, rule and value if the ledger breaks a rule."""
    ledger = parsed(plain_yaml.load(path), Ledger, f"{path}")
    sources = {
        name: parsed_source(str(name), entry, f"{path}: source {name}")
        for name, entry in ledger.sources.items()
    }
    claims = [
        parsed_claim(entry, ledger.sources, sources, place)
        for place, entry in numbered(ledger.claims, Claim, f"{path}: claim")
    ]
    for name, number in Counter(claim.id for claim in claims).items():
        if number > 1:
            raise ValueError(f"{path}: two claims have the id {truncated_repr(name)}")
    check_repeats(claims, path)
    return tuple(claims)


def check_repeats(claims: Sequence[Claim], path: Path) -> None:
    """Check that a claim which repeats another follows it and says the same."""
    first: dict[str, Claim] = {}
    for claim in claims:
        place = f"{path}: claim {claim.id}: repeats"
        if not claim.repeats:
            first[claim.id] = claim
        elif claim.repeats not in first:
            hint = did_you_mean(claim.repeats, first)
            raise ValueError(
                f"{place} must be an earlier claim that repeats none, got {truncated_repr(claim.repeats)}{hint}"
            )
        elif said_by(claim) != said_by(first[claim.repeats]):
            raise ValueError(f"{place}: {claim.repeats} has another paper, claim, direction or bound")


def said_by(claim: Claim) -> tuple[str, str, str, float | None]:
    return claim.paper, claim.claim, claim.direction, claim.bound


def parsed_source(name: str, content: Any, place: str) -> ClaimSource:
    source = parsed(content, ClaimSource, place, name=name)
    spec.check_name(source.table, f"{place}: table: ")
    try:
        levels(source.looks, alpha=0.05)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    if source.looks[: len(source.first_looks)] != source.first_looks:
        raise ValueError(
            f"{place}: first_looks must be those that looks begins with, got {[*source.first_looks]}"
        )
    if unplanned := [look for look in source.looks if look > len(source.seeds)]:
        raise ValueError(
            f"{place}: looks must be at most the number of seeds, {len(source.seeds)}, got {unplanned[0]}"
        )
    return source


def parsed_claim(
    content: Any, texts: Mapping[str, Any], sources: Mapping[str, ClaimSource], place: str
) -> Claim:
    """The claim of an entry. texts: the sources as they are written, which are part of the claim's hash."""
    settings = checked(content, Claim, place)
    a, b = (parsed_side(settings.get(name, []), sources, f"{place}: {name}") for name in ("a", "b"))
    table = spec.load(a[0].source.table)
    check_contrast(settings, table, a, b, place)
    names = {reference.source.name for reference in (*a, *b)}
    digest = json_digest([hashed(settings), {name: hashed(texts[name]) for name in names}])
    figure = settings.get("published", published(a, b))
    return built(settings, Claim, place, a=a, b=b, published=figure, hash=digest[:HASH_LENGTH])


def hashed(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_HASHED}


def parsed_side(content: Any, sources: Mapping[str, ClaimSource], place: str) -> Side:
    entries = content if isinstance(content, list) else [content]
    if len(entries) > 2:
        raise ValueError(f"{place} must be one row, or the difference of two, got {len(entries)} rows")
    return tuple(parsed_reference(entry, sources, place) for entry in entries)


def parsed_reference(content: Any, sources: Mapping[str, ClaimSource], place: str) -> Reference:
    if not isinstance(content, dict) or len(content) != 1:
        raise ValueError(f"{place} must be a source and a label, got {truncated_repr(content)}")
    ((name, label),) = content.items()
    if name not in sources:
        hint = did_you_mean(str(name), sources)
        raise ValueError(f"{place}: there is no source {truncated_repr(name)}{hint}")
    labels = [row.label for row in spec.load(sources[name].table).rows if not row.cited]
    if label not in labels:
        hint = did_you_mean(str(label), labels)
        raise ValueError(f"{place}: {sources[name].table} has no row {truncated_repr(label)} of ours{hint}")
    return Reference(sources[name], label)


def check_contrast(settings: Mapping[str, Any], table: Table, a: Side, b: Side, place: str) -> None:
    """Check that the claim compares two sides, or is about one that needs no other."""
    bounded = settings["direction"] == "at most"
    if bounded != ("bound" in settings):
        raise ValueError(f"{place}: bound belongs to the direction 'at most', and only there")
    if bool(b) == (bounded or bool(table.analysis)):
        rule = "takes no b: its a is compared by itself" if b else "needs b"
        raise ValueError(f"{place}: a claim of {table.name} with direction {settings['direction']!r} {rule}")


def published(a: Side, b: Side) -> float | None:
    """The paper's difference, if the rows have published numbers and each side is one row."""
    numbers = [reference.row.published for reference in (*a, *b)]
    if len(a) > 1 or len(b) > 1 or not all(isinstance(number, int | float) for number in numbers):
        return None
    first, *others = (float(number) for number in numbers if isinstance(number, int | float))
    return first - sum(others)
