"""`ner-experiments register`: the registered replication: hashes, cost, commands, verdicts, and their proof."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.utils.text import did_you_mean

if TYPE_CHECKING:
    from ner_experiments.tables.claims import Claim
    from ner_experiments.tables.registered import Outcome
    from ner_experiments.tables.registration import Family
    from ner_experiments.tables.verdicts import Decided


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = (
        "Check the registration, results/registration.yaml, and print for each paper its hash, the verdicts on its "
        "primary tests, the core-hours that its runs take, and the commands that make them. Commit the file before the "
        "first of these runs: a run counts only if its commit follows the one that registers."
    )
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="only these, such as zukov2018")
    text = (
        "check the numbers of seeds, too, by the deviations of the exploratory runs; do it before committing"
    )
    parser.add_argument("--power", action="store_true", help=text)
    text = "print nothing but runs that are not proven to follow the registration, with exit status 1 if there are any"
    parser.add_argument("--verify", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    text = "folder of the registration, the ledger and the archived runs (results)"
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status. Raises ValueError for a registration that breaks a rule."""
    from ner_experiments.tables import claims, registered, registration, verdicts  # slow to import: SciPy

    path = arguments.results / registration.FILE
    if not path.is_file():
        if arguments.verify:
            return 0
        raise ValueError(f"{path}: no such file; nothing is registered")
    ledger = claims.read(arguments.results / claims.FILE)
    families = registration.read(path, ledger)
    known = {family.paper: family for family in families}
    if unknown := [name for name in arguments.papers if name not in known]:
        raise ValueError(f"{path}: there is no paper {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    archived = verdicts.reader(arguments.results)
    found = registered.over_all(
        [
            registered.outcomes(
                family, archived, registered.checker(family, arguments.results.absolute().parent)
            )
            for family in families
        ]
    )
    chosen = [
        (family, outcomes)
        for family, outcomes in zip(families, found, strict=True)
        if not arguments.papers or family.paper in arguments.papers
    ]
    if arguments.power:
        check_power([family for family, _ in chosen], ledger, arguments.results)
    complaints = [text for _, outcomes in chosen for it in outcomes for text in it.complaints]
    if arguments.verify:
        print(*dict.fromkeys(complaints), sep="\n", end="\n" if complaints else "")
        return 1 if complaints else 0
    if arguments.json:
        content = [
            {"paper": family.paper, "hash": family.hash, "tests": [it.record() for it in outcomes]}
            for family, outcomes in chosen
        ]
        print(json.dumps({"papers": content}, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(text_of(family, outcomes, arguments.results) for family, outcomes in chosen))
    return 0


def check_power(families: Sequence[Family], ledger: Sequence[Claim], results: Path) -> None:
    """Raise ValueError for the first test whose number of seeds is not the smallest that has 80 % power."""
    from ner_experiments.tables import registered, registration, verdicts

    exploratory: dict[str, list[Decided]] = {}
    for it in verdicts.decide(ledger, results):
        exploratory.setdefault(it.claim.first_id, []).append(it)
    for family in families:
        for test in family.tests:
            deviations = max(
                exploratory[test.claim.id], key=lambda it: (-it.claim.rung, min(it.runs or (0,)))
            )
            needed = registered.seeds_needed(test, deviations, len(family.testable) or len(family.tests))
            if needed != test.number:
                raise ValueError(
                    f"{results / registration.FILE}: {family.paper}: {test.claim.id}: seeds must be {needed}, the "
                    f"smallest number with 80 % power by the deviations of {deviations.claim.id} (0: more than "
                    f"{registration.MOST_SEEDS} are needed), got {test.number}"
                )


def text_of(family: Family, outcomes: Sequence[Outcome], results: Path) -> str:
    """The hash, the tests with their verdicts, the cost and the commands of a paper."""
    from ner_experiments.tables import registered

    hours = registered.hours(family, registered.archived_seconds(family, results))
    cost = (
        "unknown, as a row has no archived run"
        if hours is None
        else f"{hours:.1f} core-hours by archived runs"
    )
    width = max(len(it.test.claim.id) for it in outcomes)
    lines = [f"{family.paper}: {family.hash}", f"  settings  {' '.join(family.overrides)} ({family.search})"]
    lines += [f"  cost      {cost}"]
    for it in outcomes:
        figures = (
            f"  rung {it.test.claim.rung}, {it.test.number} seeds, the paper {it.test.claim.published:+.2f}"
        )
        if (ours := it.difference) and ours.low is not None and ours.high is not None:
            figures += f", ours {ours.mean:+.2f} ({ours.low:.2f} to {ours.high:.2f}), p {it.p_adjusted:.3f}"
            figures += ", on these test sentences only" * bool(it.sentences_only)
        lines.append(f"  {it.verdict:<18}  {it.test.claim.id:<{width}}{figures}")
        lines += [f"    {text}" for text in it.complaints]
    return "\n".join([*lines, *(f"  run  {command}" for command in registered.commands(family))])
