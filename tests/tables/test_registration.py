"""The registration: what it may not say, verdicts by hand on made-up scores, and the proof by commits."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from in_process import Ner
from scipy import stats
from small_ledger import ID, ROWS, TABLE, change_runs, scores, write, write_all

from ner_experiments.tables import claims, registered, registration
from ner_experiments.tables.registered import Outcome, Replication


def small(**changes: Any) -> dict[str, Any]:
    """A registration of one test with three seeds."""
    test = {"claim": ID, "a": {TABLE: ROWS[0]}, "b": {TABLE: ROWS[1]}, "seeds": 3, "margin": 2.14, "rung": 0}
    family = {"overrides": [], "search": "the paper leaves nothing open", "tests": [test | changes]}
    return {"papers": {"huang2015": family}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The folder of results of a Git repository, with a committed registration and its runs, made by that commit."""
    folder = tmp_path / "results"
    write_all(folder)
    git(tmp_path, "init", "-q")
    write(folder / registration.FILE, small())
    commit = commit_all(tmp_path)
    change_metrics(folder, lambda metrics: metrics.update(seed=100 + metrics["seed"]))
    record(folder, commit)
    return folder


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


def read(results: Path) -> registration.Family:
    (family,) = registration.read(results / registration.FILE, claims.read(results / claims.FILE))
    return family


def change_metrics(results: Path, change: Any) -> None:
    change_runs(results, lambda content: change(content["metrics"]))


def record(results: Path, commit: str, name: str | None = None) -> None:
    """Let the runs have recorded the registration and a commit."""
    name = name or read(results).hash
    change_metrics(results, lambda metrics: metrics.update(registration=name, commit=commit))


def outcome(results: Path) -> Outcome:
    (only,) = replication(results).outcomes
    return only


def replication(results: Path) -> Replication:
    (only,) = registered.replications(results, repository=results.parent)
    return only


def test_a_verdict_rests_on_all_registered_seeds_of_both_rows(results: Path) -> None:
    it = outcome(results)
    expected = stats.ttest_ind(*map(scores, ROWS), equal_var=False)
    assert it.difference is not None
    assert it.difference.p == it.p_adjusted == pytest.approx(expected.pvalue)
    assert it.verdict == "smaller"  # +1.50 in place of +4.28
    assert replication(results).complaints == ()
    next((results / TABLE / "runs").glob("*-seed-3.json")).unlink()
    assert outcome(results).verdict in ("smaller", "not run")
    for path in (results / TABLE / "runs").glob("*-seed-3.json"):
        path.unlink()
    assert outcome(results).verdict == "not run"


def test_runs_with_earlier_seeds_decide_nothing(results: Path) -> None:
    change_metrics(results, lambda metrics: metrics.update(seed=metrics["seed"] - 100))
    assert outcome(results).verdict == "not run"


def test_a_row_below_half_of_the_paper_s_score_or_with_few_found_mentions_decides_nothing(
    results: Path,
) -> None:
    change_metrics(results, lambda metrics: metrics["test"].update(correct=29))
    assert outcome(results).verdict == "undecided"
    change_metrics(results, lambda metrics: metrics["test"].update(correct=30))
    assert outcome(results).verdict == "smaller"
    shutil.copytree(results / TABLE / "runs", results / "kept")
    change_metrics(
        results, lambda metrics: metrics.update(seed=metrics["seed"] - 100, test={"f1": 0.1, "correct": 1})
    )
    for path in (results / "kept").glob("*.json"):  # beside bad exploratory runs
        shutil.copy(path, results / TABLE / "runs" / f"new-{path.name}")
    assert outcome(results).verdict == "smaller"
    shutil.rmtree(results / TABLE / "runs")
    shutil.copytree(results / "kept", results / TABLE / "runs")
    change_metrics(results, lambda metrics: metrics["test"].update(f1=metrics["test"]["f1"] / 3))
    assert outcome(results).verdict == "undecided"


def test_tests_of_a_paper_are_corrected_together_and_those_of_all_papers_too(results: Path) -> None:
    content = small()
    content["papers"]["huang2015"]["tests"].append(
        {
            "claim": "other",
            "a": {TABLE: "random, CRF, NER"},
            "b": {TABLE: ROWS[1]},
            "seeds": 3,
            "margin": 1.6,
            "rung": 0,
        }
    )
    ledger = yaml.safe_load((results / claims.FILE).read_text())
    ledger["claims"].append(copy.deepcopy(ledger["claims"][0]) | {"id": "other", "published": 3.2})
    (results / claims.FILE).write_text(yaml.safe_dump(ledger))
    write(results / registration.FILE, content)
    record(results, commit_all(results.parent))
    both = replication(results)
    found = both.outcomes
    raw = [it.difference.p for it in found if it.difference]
    smaller, larger = sorted(raw)
    expected = {smaller: min(1, 2 * smaller), larger: max(2 * smaller, larger)}
    assert [it.p_adjusted for it in found] == pytest.approx([expected[p] for p in raw])
    papers = registered.over_all([replace(both, outcomes=(it,)) for it in found])
    assert [it.p_over_all for paper in papers for it in paper.outcomes] == pytest.approx(
        [expected[p] for p in raw]
    )


def test_a_run_is_proven_by_its_record_and_its_commit(results: Path) -> None:
    repository, name = results.parent, read(results).hash
    registering = git(repository, "rev-list", "--max-parents=0", "HEAD")
    later = commit_all(repository)
    record(results, later)
    assert outcome(results).verdict == "smaller"
    record(results, later, "another")
    assert "did not record the registration" in replication(results).complaints[0]
    record(results, f"{later}+")
    assert "made with uncommitted changes" in replication(results).complaints[0]
    git(repository, "checkout", "-q", "--orphan", "elsewhere")
    elsewhere = commit_all(repository)
    record(results, elsewhere)
    git(repository, "checkout", "-q", "-f", "-B", "main", later)
    shutil.rmtree(results / TABLE)
    git(repository, "checkout", "-q", elsewhere, "--", f"results/{TABLE}")
    record(results, elsewhere, name)
    (text, *_) = replication(results).complaints
    assert text.endswith(
        f"its commit {elsewhere[:12]} does not follow {registering[:12]}, which registers it"
    )
    assert outcome(results).verdict == "not run"


def test_what_was_not_committed_is_not_registered(results: Path) -> None:
    write(results / registration.FILE, small(rung=1))
    record(results, git(results.parent, "rev-parse", "HEAD"))
    assert "registers" in replication(results).complaints[0]
    assert outcome(results).verdict == "not run"


def test_the_command_verifies_and_prints(results: Path, ner: Ner) -> None:
    command = ["register", "--results", str(results)]
    assert ner(*command, "--verify") == ""
    out = ner(*command)
    name = read(results).hash
    assert out.startswith(f"huang2015: {name}\n")
    assert re.search(rf"smaller +{ID}  rung 0, 3 seeds, the paper \+4\.28, ours \+1\.\d\d", out)
    assert out.endswith("6 of 6 runs are done\n")
    (paper,) = ner.json(*command)["papers"]
    assert (paper["hash"], paper["tests"][0]["verdict"], paper["tests"][0]["rung"]) == (name, "smaller", 0)
    record(results, "0" * 40)
    assert "does not follow" in ner(*command, "--verify", status=1)
    out = ner(*command)
    assert re.search(
        r"0 of 6 runs are done\n  Not run: 6 runs, which take some \d+\.\d core-hours, by archived runs\n",
        out,
    )
    assert f"model=lstm_huang2015 seed=101,102,103 sweep.registration={name}\n" in out


def test_nothing_is_verified_in_a_shallow_clone(results: Path, tmp_path: Path, ner: Ner) -> None:
    record(results, "0" * 40)
    commit_all(results.parent)
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{results.parent}", "clone")
    assert "not verified, as the history of commits is not here" in ner(
        "register", "--verify", "--results", str(tmp_path / "clone" / results.name)
    )


def test_a_test_on_another_corpus_names_it(results: Path) -> None:
    write(results / registration.FILE, small(corpus="msra"))
    record(results, commit_all(results.parent))
    with pytest.raises(ValueError, match=f"claim {ID}: corpus must be that of its runs, conll2003, got msra"):
        replication(results)


def test_without_a_registration_there_is_nothing_to_verify(tmp_path: Path, ner: Ner) -> None:
    ner("register", "--verify", "--results", str(tmp_path))
    assert "no such file; nothing is registered" in ner.error("register", "--results", str(tmp_path))


def test_the_number_of_seeds_is_the_smallest_with_enough_power(results: Path, ner: Ner) -> None:
    """By Welch's test at 5 %, with the deviations of the three exploratory seeds of each row."""
    change_metrics(results, lambda metrics: metrics.update(seed=metrics["seed"] - 100))
    write(results / registration.FILE, small(seeds=12))
    err = ner.error("register", "--power", "--results", str(results))
    needed = int(re.search(r"seeds must be (\d+), the smallest number with 80 % power", err)[1])  # type: ignore[index]
    write(results / registration.FILE, small(seeds=needed))
    ner("register", "--power", "--results", str(results))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"claim": "huang"}, "claim must be one of huang2015's that repeats none, got 'huang'"),
        ({"seeds": 13}, "seeds must be 0 (not testable) or from 3 to 12, got 13"),
        ({"seeds": 2}, "seeds must be 0 (not testable) or from 3 to 12, got 2"),
        ({"margin": 0.3}, "margin must be half of the paper's difference, 2.140, got 0.3"),
        ({"rung": 4}, "rung must be a whole number from 0 to 3, got 4"),
        ({"a": {TABLE: "random, LSTM"}}, f"a: {TABLE} has no row 'random, LSTM' of ours"),
        ({"a": {"no_table": "x"}}, "there is no source 'no_table'"),
        ({"looks": [3]}, "there is no 'looks'"),
    ],
)
def test_a_broken_registration_is_refused_in_a_line(
    results: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(results / registration.FILE, small(**changes))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read(results)
    assert str(error.value).startswith(f"{path}: huang2015: test 1")
    assert "\n" not in str(error.value)


def test_a_claim_has_one_primary_test(results: Path) -> None:
    content = small()
    tests = content["papers"]["huang2015"]["tests"]
    tests.append(copy.deepcopy(tests[0]))
    write(results / registration.FILE, content)
    with pytest.raises(ValueError, match=f"a claim has one primary test, got 2 of {ID}"):
        read(results)


def test_a_claim_that_is_not_testable_is_no_part_of_the_family(results: Path) -> None:
    write(results / registration.FILE, small(seeds=0))
    assert outcome(results).verdict == "not testable"
    assert read(results).testable == ()


def test_rows_of_another_corpus_have_no_further_test_sets(results: Path) -> None:
    content = small()
    content["papers"]["huang2015"] |= {
        "secondary": {"better": {"path": "x"}},
        "secondary_corpus": "conll2003",
    }
    write(results / registration.FILE, content)
    (row, _) = replication(results).planned
    assert "'audit.extra_tests={better: {path: x}}'" in row.command(read(results))
    other = replace(read(results), secondary_corpus="conll2000")
    assert other.secondary_of(other.tests[0]) == {}
    content["papers"]["huang2015"]["secondary_corpus"] = "conll203"
    write(results / registration.FILE, content)
    with pytest.raises(ValueError, match="must be one of conll2003, got 'conll203'"):
        read(results)


def test_an_override_that_the_table_has_anyway_finds_the_runs_of_its_own_setting(results: Path) -> None:
    content = small()
    content["papers"]["huang2015"]["overrides"] = ["trainer.max_epochs=10"]
    write(results / registration.FILE, content)
    record(results, commit_all(results.parent))
    assert outcome(results).difference is not None
    content["papers"]["huang2015"]["overrides"] = ["trainer.max_epochs=9"]
    write(results / registration.FILE, content)
    record(results, commit_all(results.parent))
    assert outcome(results).verdict == "not run"
