"""The committed ledger: what its claims say agrees with sweeps/ and with the settings of their rows."""

import functools
from typing import Any

import pytest
from places import RESULTS, ROOT

from ner_experiments.config.compose import compose
from ner_experiments.tables import claims, spec
from ner_experiments.tables.claims import Claim

LEDGER = claims.read(RESULTS / claims.FILE)


@functools.cache
def corpora_of(paper: str) -> set[str]:
    """The corpora of the published tables of a paper."""
    names = [path.stem for path in (ROOT / "sweeps").glob(f"{paper}_*.yaml")]
    tables = [spec.load(name) for name in names]
    return {
        compose([*table.base, *(row.run or ())]).data.name
        for table in tables
        for row in table.rows
        if row.run is not None and not table.analysis
    }


def settings_of(claim: Claim) -> list[Any]:
    """The composed settings of all rows of a claim."""
    found = []
    for reference in claim.references:
        measure = reference.row.measure
        table = spec.load(spec.load(reference.source.table).runs_of)
        labels = [measure.of, measure.over] if measure else [reference.label]
        found += [
            compose([*table.base, *(row.run or ()), *reference.source.overrides])
            for row in table.rows
            if row.label in labels
        ]
    return found


@pytest.mark.parametrize("claim", [it for it in LEDGER if it.corpus != "xor"], ids=lambda claim: claim.id)
def test_the_rung_of_a_test_follows_from_its_settings(claim: Claim) -> None:
    """Fewer sentences are 3, another corpus than any of the paper's is 2, another deviation is 1."""
    composed = settings_of(claim)
    assert composed
    expected = (
        3
        if any(cfg.data.max_sentences for cfg in composed)
        else 2
        if claim.corpus not in corpora_of(claim.paper)
        else 1
        if any(reference.source.deviates for reference in claim.references)
        else 0
    )
    assert claim.rung == expected


@pytest.mark.parametrize("claim", [it for it in LEDGER if it.repeats], ids=lambda claim: claim.id)
def test_both_tests_of_a_claim_have_the_paper_s_difference(claim: Claim) -> None:
    (first,) = [it for it in LEDGER if it.id == claim.repeats]
    assert claim.published == pytest.approx(first.published)


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_a_typed_difference_is_that_of_figures_in_sweeps(claim: Claim) -> None:
    """Published differences are the paper's; sweeps/ has them as drops, or as scores on another corpus."""
    table = claim.source.table
    if (
        claim.published is None
        or claim.bound is not None
        or not (len(claim.a) == 2 or table == "ours_huang2015_pos")
    ):
        return
    if len(claim.a) == 2:
        expected = claim.a[0].row.also["drop"] - claim.b[0].row.also["drop"]
    else:
        rows = {row.label: row.published for row in spec.load("huang2015_table2").rows}
        a, b = (rows[f"random, {side[0].label}, POS"] for side in (claim.a, claim.b))
        assert isinstance(a, float)
        assert isinstance(b, float)
        expected = a - b
    assert claim.published == pytest.approx(expected)
