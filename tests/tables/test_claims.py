"""The ledger: verdicts on made-up runs computed by hand, archived ones by SciPy, and what a ledger may not say."""

import copy
import json
import math
import re
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from cases import refused
from checksummed import edit
from in_process import Ner
from places import RESULTS
from scipy import stats
from small_ledger import CONTENT, ID, ROWS, SOURCE, TABLE, change_runs, ledger, scores, write, write_all

from ner_experiments.tables import claims, claims_page, registered, verdicts
from ner_experiments.tables.verdicts import ClaimTests, Decided

LEDGER = claims.read(RESULTS / claims.FILE)


def with_another(**changes: Any) -> dict[str, Any]:
    """The ledger with a second claim on the source."""
    content = ledger(changes.pop("of_source", ()))
    content["claims"] += ledger(**{"id": "other"} | changes)["claims"]
    return content


@pytest.fixture(scope="module")
def all_decided() -> list[Decided]:
    return verdicts.decide(LEDGER, RESULTS)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


def decide(results: Path, content: Any) -> list[Decided]:
    """The tests of a ledger that is written first."""
    return verdicts.decide(claims.read(write(results / claims.FILE, content)), results)


def decided(results: Path, of_source: Any = (), **of_claim: Any) -> Decided:
    (only,) = decide(results, ledger(of_source, **of_claim))
    return only


def page_of(tests: list[Decided]) -> str:
    return claims_page.markdown(tests, [], RESULTS)


def change_scores(results: Path, label: str, change: float) -> None:
    """Add to the archived test F1 of each run of a row."""

    def add(content: dict[str, Any]) -> None:
        if content["label"] == label:
            content["metrics"]["test"]["f1"] += change

    change_runs(results, add)


def test_a_claim_holds_by_welch_s_test_of_its_two_rows(results: Path) -> None:
    it = decided(results)
    a, b = map(scores, ROWS)
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert it.over_seeds is not None
    assert it.over_seeds.mean == pytest.approx(fmean(a) - fmean(b))
    assert it.over_seeds.p == it.p_adjusted == pytest.approx(expected.pvalue)  # a family of one
    assert it.verdict == "holds"
    assert it.runs == (3, 3)


@pytest.mark.parametrize(
    ("direction", "change", "smallest_effect", "verdict"),
    [
        ("higher", 0.0, 0.3, "holds"),
        ("higher", 0.03, 0.3, "opposite"),
        ("higher", 0.0144, 0.3, "undecided"),
        ("higher", 0.0144, 1.0, "equal"),  # of six runs, more than the noise
        ("lower", 0.0, 1.0, "opposite"),
        ("lower", 0.03, 1.0, "holds"),
        ("equal", 0.0, 1.0, "opposite"),
        ("equal", 0.0144, 1.0, "holds"),
    ],
)
def test_direction_scores_and_smallest_effect_make_the_verdict(
    results: Path, direction: str, change: float, smallest_effect: float, verdict: str
) -> None:
    change_scores(results, ROWS[1], change)
    assert decided(results, {"smallest_effect": smallest_effect}, direction=direction).verdict == verdict


def test_claims_on_one_table_are_corrected_together(results: Path) -> None:
    first, second = decide(results, with_another(a={SOURCE: "random, CRF, NER"}))
    raw = [
        stats.ttest_ind(*map(scores, rows), equal_var=False).pvalue
        for rows in (ROWS, ("random, CRF, NER", ROWS[1]))
    ]
    smaller, larger = sorted(raw)
    expected = {smaller: min(1, 2 * smaller), larger: max(2 * smaller, larger)}
    assert [first.p_adjusted, second.p_adjusted] == pytest.approx([expected[p] for p in raw])


def test_a_claim_without_runs_counts_in_the_correction(results: Path) -> None:
    """Else a verdict could change when the runs of another claim are finished."""
    first, second = decide(results, with_another(a={SOURCE: "random, BI-LSTM-CRF, POS"}))
    assert second.runs == (3,)
    assert first.over_seeds is not None
    assert first.over_seeds.p is not None
    assert first.p_adjusted == pytest.approx(2 * first.over_seeds.p)


@pytest.mark.parametrize("missing", ["3", "[23]"])
def test_a_claim_is_not_tested_before_the_first_look(results: Path, missing: str) -> None:
    for path in (results / TABLE / "runs").glob(f"*-seed-{missing}.json"):
        path.unlink()
    it = decided(results)
    assert (it.verdict, it.p_adjusted) == ("undecided", None)
    assert it.over_seeds is not None
    assert it.over_seeds.mean == pytest.approx(fmean(it.a.values()) - fmean(it.b.values()))


def test_only_planned_seeds_count(results: Path) -> None:
    it = decided(results, {"seeds": [3, 4, 5], "looks": [3]})
    assert ([*it.a], [*it.b], it.look) == ([3], [3], None)


def test_each_look_has_its_level(results: Path) -> None:
    """A p below 0.05 is not enough at the last of two looks, as the first has spent a part of the 0.05."""
    change_scores(results, ROWS[1], 0.009)
    it = decided(results, {"looks": [2, 3], "smallest_effect": 0.01})
    left = 0.05 - 0.05 * math.log(1 + (math.e - 1) * 2 / 3)
    expected = stats.ttest_ind([*it.a.values()], [*it.b.values()], equal_var=False).pvalue
    assert it.look is not None
    assert it.runs == (3, 3)
    assert it.look.test.alpha == pytest.approx(left)
    assert it.p_adjusted == pytest.approx(expected)
    assert left < expected < 0.05
    assert it.verdict == "undecided"


@pytest.mark.parametrize(
    ("difference", "of_first", "counted"),
    [(0.0, "equal", 2), (20.0, "holds", 1)],
    ids=["found equal", "found to differ"],
)
def test_a_claim_found_equal_still_counts_at_later_looks(
    results: Path, monkeypatch: pytest.MonkeyPatch, difference: float, of_first: str, counted: int
) -> None:
    spread = [0.0, 0.1, -0.1, 0.05, -0.05, 0.02]
    near = {seed: 80 + each for seed, each in enumerate(spread, 1)}
    far = {seed: 80 + 30 * each for seed, each in enumerate(spread, 1)}
    first = ({seed: score + difference for seed, score in near.items()}, near)
    both = iter([first, (far, near)])
    monkeypatch.setattr(verdicts, "sides", lambda claim, archived: next(both))
    one, other = decide(results, with_another(of_source={"smallest_effect": 1.0}))
    assert (one.verdict, one.runs) == (of_first, (3, 3))
    assert other.look is not None
    assert (len(other.look.seeds), other.look.test.number) == (6, counted)


def test_a_claim_decided_at_a_look_keeps_its_figures(results: Path) -> None:
    """Equal to within 100 points after two seeds: the third is not looked at."""
    it = decided(results, {"looks": [2, 3], "smallest_effect": 100.0})
    assert it.verdict in ("equal", "holds")
    assert it.runs == (2, 2)
    assert [*it.a] == [1, 2]


def test_without_runs_a_claim_is_open(results: Path) -> None:
    shutil.rmtree(results / TABLE)
    it = decided(results)
    assert (it.verdict, it.lacks_rows, it.runs) == ("undecided", True, ())


def test_the_difference_of_two_rows_is_taken_seed_by_seed(all_decided: list[Decided]) -> None:
    name = "huang-crf-needs-features-more-than-lstm-chunks"
    (it,) = [it for it in all_decided if it.claim.id == name]
    by_seed: dict[str, dict[int, float]] = {}
    for folder in ("huang2015_table2", "huang2015_table3/random_huang2015"):
        for path in (RESULTS / folder / "runs").glob("*.json"):
            run = json.loads(path.read_text(encoding="utf-8"))
            by_seed.setdefault(run["label"], {})[run["metrics"]["seed"]] = 100 * run["metrics"]["test"]["f1"]
    assert len(it.a) in it.claim.source.looks
    lost = [
        [by_seed[f"{model}, chunks"][seed] - by_seed[f"random, {model}, chunks"][seed] for seed in it.a]
        for model in ("CRF", "LSTM")
    ]
    assert [*it.a.values()] == pytest.approx(lost[0])
    assert it.over_seeds is not None
    assert it.over_seeds.p == pytest.approx(stats.ttest_ind(*lost, equal_var=False).pvalue)
    assert it.claim.published == pytest.approx(-8.49 - -2.88)
    assert it.verdict == "opposite"


def test_a_row_of_an_analysis_is_compared_as_its_two_rows(all_decided: list[Decided]) -> None:
    (it,) = [it for it in all_decided if it.claim.id == "li-cross-location"]
    (folder,) = (RESULTS / "li2020_table1").iterdir()
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "runs").glob("*.json")]
    expected = {"WNUT, Cross": 0.0, "WNUT, Baseline": 0.0}
    for run in runs:
        if run["label"] in expected and run["metrics"]["seed"] in it.a:
            bucket = run["errors"]["breakdown"]["type"]["location"]
            f1 = 200 * bucket["correct"] / (bucket["predicted"] + bucket["gold"])
            expected[run["label"]] += f1 / len(it.a)
    assert fmean(it.a.values()) == pytest.approx(expected["WNUT, Cross"])
    assert fmean(it.b.values()) == pytest.approx(expected["WNUT, Baseline"])


def test_a_bound_holds_unless_a_run_exceeds_it(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "xor", tmp_path / "xor")
    (claim,) = [entry for entry in CONTENT["claims"] if entry["id"] == "li-xor-baseline-softmax"]
    sources = {"li-xor": CONTENT["sources"]["li-xor"]}
    for bound, verdict in ((3, "holds"), (2, "opposite")):
        (it,) = decide(tmp_path, {"sources": sources, "claims": [claim | {"bound": bound}]})
        assert it.verdict == verdict


def test_a_test_is_registered_by_the_runs_of_its_seeds_that_recorded_its_hash(results: Path) -> None:
    plan = {"seeds": [1, 2], "looks": [2]}
    assert (decided(results, plan).registered, decided(results, plan).runs_made_for_it) == ("none", 0)
    name = decided(results, plan).claim.hash
    paths = sorted((results / TABLE / "runs").glob("*-seed-[12].json"))
    labels = {path: json.loads(path.read_text(encoding="utf-8"))["label"] for path in paths}
    first, *others = sorted((path for path in paths if labels[path] in ROWS), key=str)
    for of_these, registered_by in (([first], "part"), (others, "full")):
        for path in of_these:
            edit(path, lambda content: content["metrics"].update(claims=[name]))
        assert decided(results, plan).registered == registered_by
    assert decided(results, plan).runs_made_for_it == 4
    another = decided(results, plan, claim="Another wording")
    assert (another.registered, another.runs_made_for_it) == ("none", 0)
    shutil.rmtree(results / TABLE)
    assert decided(results, plan).registered == "none"


def test_what_is_no_part_of_the_hash_changes_nothing_that_runs_recorded(results: Path) -> None:
    """Rung and first looks, and which claim is repeated: a claim can be said to repeat another afterwards."""
    before = decided(results).claim.hash
    assert decided(results, {"first_looks": [3]}, rung=2).claim.hash == before
    assert repeated(results).tests[1].claim.hash == before


def repeated(results: Path, rows: tuple[str, str] = ROWS, look: int = 3) -> ClaimTests:
    """A claim with a test of these rows at this number of seeds, and then that of `small_ledger`."""
    content = ledger(id="first", a={"other": rows[0]}, b={"other": rows[1]})
    content["sources"] |= {"other": content["sources"][SOURCE] | {"looks": [look]}}
    content["sources"] |= ledger()["sources"]
    content["claims"] += ledger(repeats="first")["claims"]
    (claim,) = verdicts.by_claim(decide(results, content))
    return claim


@pytest.mark.parametrize(
    ("rows", "look", "of_tests", "verdict"),
    [
        (ROWS, 6, ["undecided", "holds"], "holds"),
        (ROWS, 3, ["holds", "holds"], "holds"),
        (ROWS[::-1], 3, ["opposite", "holds"], "undecided"),
    ],
    ids=["one decides", "both agree", "they disagree"],
)
def test_a_claim_that_is_tested_twice_has_the_verdict_of_the_test_that_decides_it(
    results: Path, rows: tuple[str, str], look: int, of_tests: list[str], verdict: str
) -> None:
    it = repeated(results, rows, look)
    assert [test.verdict for test in it.tests] == of_tests
    assert (it.verdict, it.disagree) == (verdict, verdict == "undecided")
    assert it.shown is it.tests[of_tests.index(next(name for name in of_tests if name != "undecided"))]


def test_a_claim_that_is_tested_twice_counts_once(results: Path, ner: Ner) -> None:
    repeated(results, look=6)
    out = ner("claims", "--results", str(results))
    assert out.startswith("holds      first  +")
    assert (
        f"; as tested by {ID}\n\n1 of 1 claims have an exploratory verdict, and the others are undecided. Such"
        in out
    )
    assert ner("claims", "first", "--results", str(results)).startswith(
        "first: holds, by 2 tests\n\nfirst\n  claim  "
    )
    (claim,) = ner.json("claims", ID, "--results", str(results))["claims"]
    assert (claim["id"], claim["verdict"]) == ("first", "holds")
    assert [test["id"] for test in claim["tests"]] == ["first", ID]
    assert claim["figures_of"] == ID
    assert claim["hash"] == claim["tests"][1]["hash"]
    page = page_of(verdicts.decide(claims.read(results / claims.FILE), results))
    assert "| undecided; holds in another test | none | 0 |" in page
    assert page.count(": 1 hold, 0 equal, 0 opposite, 0 undecided<") == 1


def test_what_the_verdicts_rest_on_is_counted(results: Path) -> None:
    """One claim whose runs recorded nothing and deviate from the paper; no look was added."""
    page = page_of([decided(results, {"deviates": "fewer sentences"}, rung=1)])
    assert (
        "0 of the 1 were registered in full (all their runs recorded the test's hash when they started), "
        "0 in part, and 1 not at all. 1 rest on another setting than the paper's. By rung: 0 at 0, 1 at 1, 0 at 2 and "
        "0 at 3. 0 exist only through looks that were added when results were known."
    ) in page
    assert "Seeds 1 to 6, tested at 3 and 6.\n" in page


def test_a_verdict_that_needs_an_added_look_is_counted(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seeds of rows one point apart decide nothing; the third, added later, does."""
    a = {1: 80.0, 2: 80.5, 3: 80.25}
    b = {seed: score - 1 for seed, score in a.items()}
    monkeypatch.setattr(verdicts, "sides", lambda claim, archived: (a, b))
    it = decided(results, {"looks": [2, 3], "first_looks": [2]})
    assert (it.verdict, it.first_verdict) == ("holds", "undecided")
    assert it.record()["verdict_before_added_looks"] == "undecided"
    page = page_of([it])
    assert "1 exist only through looks that were added" in page
    assert "tested at 2 and 3; 3 was added when earlier results were known.\n" in page


def test_a_paper_has_one_section_with_all_its_lists(results: Path) -> None:
    """However the tests of papers follow each other in the ledger: each claim counts once, with all its tests."""
    repeated(results, look=6)
    content = yaml.safe_load((results / claims.FILE).read_text(encoding="utf-8"))
    content["claims"].insert(1, copy.deepcopy(content["claims"][0]) | {"id": "another", "paper": "another"})
    page = page_of(decide(results, content))
    assert re.findall(r"<summary>(.*)</summary>", page) == [
        "Huang, Xu & Yu (2015): 1 hold, 0 equal, 0 opposite, 0 undecided",
        "another: 0 hold, 0 equal, 0 opposite, 1 undecided",
    ]


def test_tests_that_disagree_are_named(results: Path, ner: Ner) -> None:
    record = repeated(results, ROWS[::-1]).record()
    assert (record["verdict"], record["size"]) == ("undecided", "")
    assert f"  its tests disagree: opposite by first, holds by {ID}\n" in ner(
        "claims", "--results", str(results)
    )


def test_a_test_without_runs_is_not_shown_before_one_that_a_look_left_open(results: Path) -> None:
    change_scores(results, ROWS[1], 0.0144)
    it = repeated(results, look=6)
    assert it.verdict == "undecided"
    assert it.shown is it.tests[1]


def test_runs_of_another_corpus_are_refused(results: Path) -> None:
    rule = "claim huang-crf-on-lstm-names: corpus must be that of its runs, conll2003"
    with pytest.raises(ValueError, match=rule):
        decided(results, corpus="msra")


BROKEN = refused(rf"""
{{direction: up}} -> claim 1 ('{ID}'): direction must be one of higher, lower, equal, at most, got 'up'
{{id: two words}} -> claim 1 ('two words'): id must be a text without spaces, got 'two words'
{{a: {{huang-featurs: "{ROWS[0]}"}}}} -> a: there is no source 'huang-featurs'; did you mean 'huang-features'?
{{a: {{{SOURCE}: "random, LSTM-CRF"}}}} -> a: huang2015_table2 has no row 'random, LSTM-CRF' of ours
{{a: "{ROWS[0]}"}} -> a must be a source and a label, or two of them, got 'random, LSTM-CRF, NER'
{{a: []}} -> a must be a source and a label, or two of them, got []
{{a: {{1: x}}}} -> a: there is no source 1
{{b: [{{{SOURCE}: a}}, {{{SOURCE}: b}}, {{{SOURCE}: c}}]}} -> b must be one row, or the difference of two, got 3 rows
{{b: []}} -> a claim of huang2015_table2 with direction 'higher' needs b
{{bound: 3}} -> bound belongs to the direction 'at most', and only there
{{direction: at most, bound: 3}} -> with direction 'at most' takes no b: its a is compared by itself
""")
BROKEN_SOURCES = refused("""
{table: huang2015_tabel2} -> table: there is no table 'huang2015_tabel2'
{looks: [7]} -> looks must be at most the number of seeds, 6, got 7
{looks: [6, 3]} -> looks must be ascending numbers of seeds, at least 2 each, such as 3,5,8; got 6,3
{looks: [1]} -> looks must be ascending numbers of seeds, at least 2 each, such as 3,5,8; got 1
{looks: []} -> looks must be ascending numbers of seeds
{first_looks: [6]} -> first_looks must be those that looks begins with, got [6]
{seeds: []} -> seeds must be different whole numbers from 0, at least one, got []
{seeds: [1, 1]} -> seeds must be different whole numbers from 0, at least one, got [1, 1]
""")
OF_REPEATS = refused(f"""
{{id: other, repeats: frist}} -> must be an earlier claim that repeats none, got 'frist'
{{id: other, repeats: other}} -> must be an earlier claim that repeats none, got 'other'
{{id: other, repeats: {ID}, claim: Another}} -> : {ID} has another paper, claim, direction or bound
{{id: other, repeats: {ID}, direction: lower}} -> : {ID} has another paper, claim, direction or bound
""")


def refusal(folder: Path, content: Any) -> str:
    path = write(folder / claims.FILE, content)
    with pytest.raises(ValueError, match=f"^{path}: [^\n]*$") as error:
        claims.read(path)
    return str(error.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(("changes", "message"), BROKEN)
def test_a_broken_claim_is_refused_in_a_line(tmp_path: Path, changes: str, message: str) -> None:
    assert message in refusal(tmp_path, ledger(**yaml.safe_load(changes)))


@pytest.mark.parametrize(("changes", "message"), BROKEN_SOURCES)
def test_a_broken_source_is_refused(tmp_path: Path, changes: str, message: str) -> None:
    said = refusal(tmp_path, ledger(yaml.safe_load(changes)))
    assert said.startswith(f"source {SOURCE}: {message}")


@pytest.mark.parametrize(("changes", "message"), OF_REPEATS)
def test_a_claim_repeats_an_earlier_one_that_says_the_same(
    tmp_path: Path, changes: str, message: str
) -> None:
    said = refusal(tmp_path, with_another(**yaml.safe_load(changes)))
    assert said.startswith(f"claim other: repeats{'' if message.startswith(':') else ' '}{message}")


def test_an_id_is_given_once(tmp_path: Path) -> None:
    assert refusal(tmp_path, with_another(id=ID)) == f"two claims have the id '{ID}'"


def test_the_committed_page_is_that_of_the_ledger(all_decided: list[Decided]) -> None:
    page = claims_page.markdown(all_decided, registered.replications(RESULTS), RESULTS)
    assert (RESULTS / claims_page.PAGE).read_text(encoding="utf-8") == page
