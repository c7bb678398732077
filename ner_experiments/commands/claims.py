"""`ner-experiments claims [ID ...] [--json]`: print the papers' claims with verdicts computed from archived runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.utils.text import as_json, did_you_mean

if TYPE_CHECKING:
    from ner_experiments.tables.claims import Claim


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Print the claims of the papers in the ledger, results/claims.yaml, with a verdict on each, computed from the "
        "archived runs: holds, equal, opposite or undecided."
    )
    parser.description = text
    text = "print only these, with all that is known of their tests, and how to run their rows"
    parser.add_argument("ids", nargs="*", metavar="ID", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    text = "folder of the ledger and the archived runs (results)"
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help=text)


def run(arguments: argparse.Namespace) -> None:
    """Print the claims. Raises ValueError for a broken ledger and an unknown ID."""
    from ner_experiments.tables import (
        claims,
        claims_page,
        registered,
        results_folder,
        verdicts,
    )  # slow to import: SciPy

    results_folder.check_is_there(arguments.results / claims.FILE, "--results DIR")
    ledger = claims.read(arguments.results / claims.FILE)
    wanted = requested(ledger, arguments.ids, arguments.results / claims.FILE)
    tested = verdicts.with_families(ledger, wanted)
    ids = {claim.id for claim in wanted}
    decided = [it for it in verdicts.decide(tested, arguments.results) if it.claim.id in ids]
    by_claim = verdicts.by_claim(decided)
    if arguments.json:
        print(as_json({"claims": [it.record() for it in by_claim]}))
    elif arguments.ids:
        print("\n\n".join(map(claims_page.details, by_claim)))
    else:
        print(claims_page.listing(by_claim))
        print("", claims_page.headline(registered.replications(arguments.results), ledger), sep="\n")


def requested(ledger: Sequence[Claim], ids: Sequence[str], path: Path) -> list[Claim]:
    """All tests of the claims of these IDs, or of all claims. ValueError for an ID that the ledger does not have."""
    known = {claim.id: claim for claim in ledger}
    if unknown := [name for name in ids if name not in known]:
        raise ValueError(f"{path}: there is no claim {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    firsts = {known[name].first_id for name in ids}
    return [claim for claim in ledger if not ids or claim.first_id in firsts]
