"""Registered verdicts on made-up runs against an oracle that shares no code; pages with zero, some and all runs."""

import re
import runpy
from pathlib import Path

import made_up_replication
import pytest
import registered_oracle
import yaml
from in_process import Ner
from places import RESULTS, ROOT

from ner_experiments.main import cli
from ner_experiments.tables import claims, claims_page, registered, registration
from ner_experiments.tables.registered import Replication

LEDGER = claims.read(RESULTS / claims.FILE)
readme_verdicts = runpy.run_path(str(ROOT / "docs/readme_claims.py"))["verdicts"]


@pytest.fixture(scope="module", params=["zero", "some", "all"])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "results"
    made_up_replication.write(folder, request.param)
    return folder


@pytest.fixture(scope="module")
def replications(results: Path) -> list[Replication]:
    return registered.replications(results)


def made(results: Path) -> str:
    return results.parent.name.rstrip("0123456789")


def test_verdicts_are_those_of_the_oracle(results: Path, replications: list[Replication]) -> None:
    found = {it.family.paper: {each.claim.id: each.verdict for each in it.outcomes} for it in replications}
    assert found == registered_oracle.verdicts(results)
    said = {verdict for paper in found.values() for verdict in paper.values()}
    if made(results) == "all":
        assert said == {*claims_page.VERDICTS, *claims_page.WITHOUT_VERDICT}
    elif made(results) == "zero":
        assert said == {*claims_page.WITHOUT_VERDICT}


def test_what_is_registered_is_counted(results: Path, replications: list[Replication]) -> None:
    """Runs of rows that two tables have are planned once: 16 units are size 64."""
    text = claims_page.headline(replications, LEDGER)
    number = {"zero": 0, "some": 15, "all": 76}[made(results)]
    assert text.startswith(f"14 of 93 claims are registered; {number} of 90 registered runs are done. ")
    evidence = "Evidence from substitutes: Huang, Xu & Yu (2015), rung 3: 1 *replicates*."
    assert (evidence in text) == (made(results) == "all")
    assert (
        "Need a GPU: 1. Not testable, as they would need more than 12 seeds per row: 1. All other claims"
        in text
    )


def test_a_page_has_verdicts_then_other_test_sets_then_what_is_not_run(
    results: Path, replications: list[Replication]
) -> None:
    page = claims_page.markdown([], replications, results)
    assert [*re.findall(r"(?m)^## (.*)$", page)][-1] == "Exploratory tests"
    assert page.count("| verdict | registered | rung |") == 4
    gpu = "<summary>Not run: 10 runs, which take 12 hours of a GPU for all runs of the paper</summary>"
    assert gpu in page
    assert "seed=101,102,103,104,105 sweep.registration=" in page
    zukov, *_ = replications
    other = claims_page.test_sets(zukov)
    if made(results) == "zero":
        assert other == ""
        assert "further test sets" not in page
        return
    assert "| 16 units | 88.00 ± 0.08 (5) | 88.41 ± 0.08 (5) | 79.00 ± 0.08 (5) |" in other
    assert "| 16 parallel units are better than 1 | +0.95 (0.84 to 1.06) | +0.95 (0.84" in page
    replicated = (
        "| +0.95 (0.84 to 1.06) | replicates, on these test sentences only | 5 seeds per row | 1 | < 0.001 |"
    )
    assert replicated in page


def test_a_page_whose_runs_a_new_registration_took_is_removed(tmp_path: Path) -> None:
    made_up_replication.write(tmp_path, "zero")
    old = tmp_path / "zukov2018_test_sets.md"
    old.write_text("| 16 units | 89.08 |")
    assert cli(["tables", str(tmp_path)]) == 0
    assert not old.exists()


def test_readme_has_decided_verdicts_on_the_lowest_rung_alone(
    results: Path, replications: list[Replication]
) -> None:
    text = readme_verdicts(replications, LEDGER)
    papers = yaml.safe_load((results / "registration.yaml").read_text())["papers"]
    rungs = {paper: {it["claim"]: it["rung"] for it in content["tests"]} for paper, content in papers.items()}
    rows = re.findall(
        r"(?m)^\| \[(.*?)\]\(results/(\w+)\.md\): .* \| ([\w ]+\w)[^|]*\| \d+ seeds per row \| \d \|$", text
    )
    assert [(paper, verdict) for _, paper, verdict in rows] == [
        (paper, verdict)
        for paper, by_claim in registered_oracle.verdicts(results).items()
        for claim, verdict in by_claim.items()
        if verdict not in (*claims_page.WITHOUT_VERDICT, "undecided")
        and rungs[paper][claim] == min(rungs[paper].values())
    ]
    assert ("registered.svg" in text) == (made(results) != "zero")


def test_without_a_registration_nothing_is_claimed(ner: Ner, tmp_path: Path) -> None:
    made_up_replication.write(tmp_path, "zero")
    (tmp_path / "registration.yaml").unlink()
    assert registered.replications(tmp_path) == []
    said = "Nothing is registered yet, so there is no verdict on any of the 93 claims."
    assert readme_verdicts([], LEDGER).replace("\n", " ").startswith(said)
    assert ner("claims", "--results", str(tmp_path)).splitlines()[-1].startswith(said)


def test_a_difference_that_a_missing_test_may_still_decide_is_no_such_difference_only_when_all_are_made(
    results: Path, replications: list[Replication]
) -> None:
    """By hand: within the margin of 0.4, and p 0.03 before correction."""
    test = next(it for it in replications[0].family.tests if it.id == "zukov-16-units-over-32")
    ours = registered.Difference(0.1, low=0.01, high=0.19, p=0.03)
    assert registered.verdict_of(test, ours, 0.2, unsettled=True) == "undecided"
    assert registered.verdict_of(test, ours, 0.2) == "no such difference"


@pytest.mark.parametrize(
    ("low", "high", "verdict", "within"),
    [
        (0.32, 0.488, "smaller", True),
        (0.32, 0.47, "smaller", False),
        (0.495, 0.6, "larger", True),
        (0.32, 0.5, "replicates", False),
    ],
)
def test_a_difference_outside_by_the_rounding_of_the_papers_scores_is_remarked(
    low: float, high: float, verdict: registered.RegisteredVerdict, within: bool
) -> None:
    """The paper has 94.13 and 93.64, which may be 94.125 and 93.645."""
    family = registration.read(RESULTS / registration.FILE, LEDGER)
    (claim,) = (it for each in family for it in each.tests if it.id == "huang-crf-on-bilstm-chunks")
    ours = registered.Difference((low + high) / 2, low=low, high=high, p=0.0001)
    assert registered.verdict_of(claim, ours, 0.01) == verdict
    outcome = registered.Outcome(claim=claim, verdict=verdict, difference=ours)
    assert outcome.within_rounding == within
    assert ("rounding" in claims_page.registered_verdict(outcome)) == within
