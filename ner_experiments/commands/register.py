"""`ner-experiments register [PAPER ...]`: check the registered replication; print its hashes, cost and verdicts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.utils.text import as_json, did_you_mean

if TYPE_CHECKING:
    from ner_experiments.tables.registered import Replication
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
    from ner_experiments.tables import registered, registration  # slow to import: SciPy

    path = arguments.results / registration.FILE
    if not path.is_file():
        if arguments.verify:
            return 0
        raise ValueError(f"{path}: no such file; nothing is registered")
    repository = arguments.results.absolute().parent
    if arguments.verify and not registered.has_history(repository):
        print(f"{repository}: not verified, as the history of commits is not here; try it in a full clone")
        return 0
    found = registered.replications(arguments.results, repository=repository)
    known = {it.family.paper: it for it in found}
    if unknown := [name for name in arguments.papers if name not in known]:
        raise ValueError(f"{path}: there is no paper {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    chosen = [it for name, it in known.items() if not arguments.papers or name in arguments.papers]
    if arguments.power:
        check_power([it.family for it in chosen], arguments.results)
    if arguments.verify:
        complaints = [text for it in chosen for text in it.complaints]
        print(*complaints, sep="\n", end="\n" if complaints else "")
        return 1 if complaints else 0
    if arguments.json:
        content = [
            {
                "paper": it.family.paper,
                "hash": it.family.hash,
                "tests": [each.record() for each in it.outcomes],
            }
            for it in chosen
        ]
        print(as_json({"papers": content}))
    else:
        print("\n\n".join(text_of(it, arguments.results) for it in chosen))
    return 0


def check_power(families: Sequence[Family], results: Path) -> None:
    """Raise ValueError for the first test whose number of seeds is not the smallest that has 80 % power."""
    from ner_experiments.tables import claims, registered, registration, verdicts

    exploratory: dict[str, list[Decided]] = {}
    for it in verdicts.decide(claims.read(results / claims.FILE), results):
        exploratory.setdefault(it.claim.first_id, []).append(it)
    for family in families:
        for claim in family.tests:
            deviations = max(exploratory[claim.id], key=lambda it: (-it.claim.rung, min(it.runs or (0,))))
            needed = registered.seeds_needed(claim, deviations, len(family.testable) or len(family.tests))
            if needed != (number := len(claim.source.seeds)):
                raise ValueError(
                    f"{results / registration.FILE}: {family.paper}: {claim.id}: seeds must be {needed}, the "
                    f"smallest number with 80 % power by the deviations of {deviations.claim.id} (0: more than "
                    f"{registration.MOST_SEEDS} are needed), got {number}"
                )


def text_of(it: Replication, results: Path) -> str:
    """The hash, the tests with their verdicts, the cost of the missing runs and the commands that make them."""
    from ner_experiments.tables.claims_page import not_run, registered_verdict
    from ner_experiments.view import cells

    family = it.family
    width = max(len(each.claim.id) for each in it.outcomes)
    lines = [f"{family.paper}: {family.hash}", f"  settings  {' '.join(family.overrides)} ({family.search})"]
    for each in it.outcomes:
        claim, measured = each.claim, cells.difference(each.difference)
        figures = f"rung {claim.rung}, {len(claim.source.seeds)} seeds, the paper {claim.published:+.2f}"
        figures += f", ours {measured}, p {each.p_adjusted:.3f}" if measured else ""
        lines.append(f"  {each.verdict:<18}  {claim.id:<{width}}  {figures}")
        lines += [f"    {registered_verdict(each)}"] * (registered_verdict(each) != each.verdict)
    lines += [f"  {text}" for text in it.complaints]
    lines += [f"  {it.made:,} of {it.runs:,} runs are done"]
    if it.missing:
        lines += [f"  {not_run(it, results)}", *(f"  run  {row.command(family)}" for row in it.missing)]
    return "\n".join(lines)
