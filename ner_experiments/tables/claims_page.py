"""The claims of the papers with their verdicts, as results/CLAIMS.md, in pages of papers, and on the command line.

Registered tests come first; all others are exploratory, and folded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from ner_experiments.analysis.statistics import Difference, summarize
from ner_experiments.config.row_settings import run_command
from ner_experiments.tables import claims, registered, results_folder, spec
from ner_experiments.tables.claims import RUNGS, Claim, ClaimSource
from ner_experiments.tables.experiments import row_settings
from ner_experiments.tables.registered import Outcome, Replication
from ner_experiments.tables.registration import MOST_SEEDS
from ner_experiments.tables.results_folder import Read
from ner_experiments.tables.verdicts import TEST, ClaimTests, Decided, by_claim, decide
from ner_experiments.utils.text import listed
from ner_experiments.view import cells, charts, pages
from ner_experiments.view.charts import ForestRow
from ner_experiments.view.table import Grid

PAGE, PLOTS, README_PLOT = "CLAIMS.md", "plots", "registered"
TITLE = "Difference of the paper, and ours with its 95 % interval"
PAPERS = {
    "huang2015": "Huang, Xu & Yu (2015)",
    "zukov2018": "Zukov-Gregoric, Bachrach & Coope (2018)",
    "yang2020": "Yang & Xu (2020)",
    "li2020": "Li, Fu & Ma (2020)",
}
"""Titles of sections; a paper that is not among them is called by its name in the ledger."""
OURS = "ours (95 %)"
WITH_P = ("p (Holm)", "p, all papers")
DIRECTED = ("replicates", "smaller", "larger", "opposite")
VERDICTS = (*DIRECTED, "no such difference", "undecided")
"""Verdicts that runs can have; the others are on their absence."""


def write(results: Path, read: Read = results_folder.read) -> list[Path]:
    """Write CLAIMS.md, its plots, and a page for each paper with runs on further test sets; return the pages.

    Nothing without a ledger.
    """
    path = results / claims.FILE
    if not path.is_file():
        return []
    decided, replications = decide(claims.read(path), results, read), registered.replications(results, read)
    texts = {PAGE: markdown(decided, replications, results)}
    for it in replications:
        if text := test_sets(it):
            texts[test_sets_page(it)] = text
        else:  # a new registration may have taken the runs of the page
            (results / test_sets_page(it)).unlink(missing_ok=True)
    for name, text in texts.items():
        (results / name).write_text(text, encoding="utf-8")
    (results / PLOTS).mkdir(exist_ok=True)
    for name, rows in forests(replications, by_claim(decided)).items():
        chart = charts.forest(rows, TITLE, "points")
        (results / PLOTS / f"{name}.svg").write_text(chart.svg(), encoding="utf-8")
    return [results / name for name in texts]


def markdown(decided: Sequence[Decided], replications: Sequence[Replication], results: Path) -> str:
    """The page of all claims: registered tests paper by paper, then the exploratory ones, folded."""
    all_claims = by_claim(decided)
    drawn = forests([], all_claims)
    exploratory = []
    for paper in dict.fromkeys(it.claim.paper for it in decided):
        members = [it for it in decided if it.claim.paper == paper]
        of_sources = groupby(members, key=lambda it: it.claim.source)
        lists = [(about(source), exploratory_grid([*tests], all_claims)) for source, tests in of_sources]
        title = f"{PAPERS.get(paper, paper)}: {counted(by_claim(members))}"
        exploratory.append((title, picture(f"{paper}-exploratory", drawn), lists))
    return pages.page(
        "claims.md.j2",
        headline=headline(replications, [it.claim for it in decided]),
        rungs=RUNGS,
        registered=[(title_of(it), registered_section(it, results)) for it in replications],
        summary=summary(all_claims),
        exploratory=exploratory,
    )


def title_of(it: Replication) -> str:
    return PAPERS.get(it.family.paper, it.family.paper)


def picture(name: str, drawn: Collection[str]) -> str:
    """A forest plot in Markdown; empty if it is not drawn."""
    return f"![{TITLE}]({PLOTS}/{name}.svg)" if name in drawn else ""


def forests(
    replications: Iterable[Replication], all_claims: Iterable[ClaimTests]
) -> dict[str, list[ForestRow]]:
    """The rows of forest plots by name: of each paper registered and exploratory, of README registered."""
    found: dict[str, list[ForestRow]] = {}

    def add(name: str, claim: Claim, difference: Difference | None, verdict: str, note: str) -> None:
        if difference and claim.published is not None and claim.bound is None:
            row = ForestRow(
                group=PAPERS.get(claim.paper, claim.paper),
                claim=claim.claim,
                published=claim.published,
                mean=difference.mean,
                low=difference.low,
                high=difference.high,
                verdict=verdict,
                note=f"{note}rung {claim.rung}",
            )
            found.setdefault(name, []).append(row)

    for outcome in (each for it in replications for each in it.outcomes if not each.reason):
        claim = outcome.claim
        for name in (f"{claim.paper}-registered", README_PLOT):
            add(name, claim, outcome.difference, outcome.verdict, "")
    for it in all_claims:
        claim = it.shown.claim
        add(f"{claim.paper}-exploratory", claim, it.shown.over_seeds, it.verdict, "exploratory, ")
    return found


# Registered tests


def headline(replications: Sequence[Replication], ledger: Iterable[Claim]) -> str:
    """How many registered tests have which verdict, and what the others lack."""
    number_of_claims = sum(not claim.repeats for claim in ledger)
    outcomes = [it for paper in replications for it in paper.outcomes]
    if not outcomes:
        return (
            f"Nothing is registered yet, so there is no verdict on any of the {number_of_claims} claims. What the runs "
            "made so far suggest is *exploratory*."
        )
    made, runs = (sum(each) for each in zip(*((it.made, it.runs) for it in replications), strict=True))
    sentences = [
        f"{len(outcomes)} of {number_of_claims} claims are registered; {made:,} of {runs:,} registered runs are done."
    ]
    decided = [
        (it.claim.rung, PAPERS[paper.family.paper], it.verdict)
        for paper in replications
        for it in paper.outcomes
        if it.verdict in VERDICTS
    ]
    for rungs, what in (((0, 1), "Verdicts"), ((2, 3), "Evidence from substitutes")):
        found: dict[tuple[int, str], Counter[str]] = {}
        for rung, title, verdict in decided:
            if rung in rungs:
                found.setdefault((rung, title), Counter())[verdict] += 1
        counts = [
            f"{title}, rung {rung}: {listed([f'{number[name]} *{name}*' for name in VERDICTS if number[name]])}"
            for (rung, title), number in sorted(found.items())
        ]
        sentences += [f"{what}: {'; '.join(counts)}."] if counts else []
    number = Counter[str](it.verdict for it in outcomes)
    sentences += [f"{text}: {number[name]}." for name, text in WITHOUT_VERDICT.items() if number[name]]
    return f"{' '.join(sentences)} All other claims, and all earlier runs, are *exploratory*."


WITHOUT_VERDICT = {
    "not run": "Not yet run",
    "needs a GPU": "Need a GPU",
    "not testable": f"Not testable, as they would need more than {MOST_SEEDS} seeds per row",
}


def registered_section(it: Replication, results: Path) -> str:
    """The table of a paper's primary tests, those on further test sets, and what is not run, with commands and cost."""
    return pages.page(
        "registered.md.j2",
        it=it,
        primary=Grid.by_heading([*map(registered_cells, it.outcomes)]).without_empty((OURS, *WITH_P)),
        plot=picture(f"{it.family.paper}-registered", forests([it], [])),
        secondary=secondary_grid(it),
        test_sets=test_sets_page(it),
        not_run=not_run(it, results) if it.missing else "",
    ).rstrip()


def registered_cells(it: Outcome) -> dict[str, str]:
    """The cells of a registered test by heading."""
    claim, number = it.claim, len(it.claim.source.seeds)
    p = map(cells.probability, (it.p_adjusted, it.p_over_all))
    return {
        "claim": claim.claim,
        "the paper": published(claim),
        OURS: cells.difference(it.difference),
        "verdict": registered_verdict(it),
        "registered": f"{number} seeds per row" if number else "no runs",
        "rung": str(claim.rung),
    } | dict(zip(WITH_P, p, strict=True))


def registered_verdict(it: Outcome) -> str:
    """The verdict, with what limits it."""
    only = ", on these test sentences only" if it.sentences_only and it.verdict in DIRECTED else ""
    # what is tested is the paper's difference, also where its claim is that there is none
    printed = (
        " (the printed difference, which the claim takes for chance)" if it.claim.direction == "equal" else ""
    )
    hair = ", by less than the rounding of the paper's scores" if it.within_rounding else ""
    return (
        f"{it.verdict}{hair}{printed if it.difference else ''}{only}{f': {it.reason}' if it.reason else ''}"
    )


def not_run(it: Replication, results: Path) -> str:
    """A line on the runs that are missing and what they take."""
    gpu_hours = it.family.gpu_hours
    hours = None if gpu_hours else registered.hours(it.missing, results)
    cost = (
        f"{gpu_hours:g} hours of a GPU for all runs of the paper"
        if gpu_hours
        else "an unknown time, as a row has no archived run"
        if hours is None
        else f"some {hours:.1f} core-hours, by archived runs"
    )
    return f"Not run: {it.runs - it.made:,} runs, which take {cost}"


def test_sets_page(it: Replication) -> str:
    return f"{it.family.paper}_test_sets.md"


def secondary_grid(it: Replication) -> Grid:
    names = [*it.family.secondary]
    lines = [
        [
            each.claim.claim,
            *map(cells.difference, (each.difference, *(each.secondary.get(it) for it in names))),
        ]
        for each in it.outcomes
        if each.secondary
    ]
    return Grid(["claim", TEST, *names], lines)


def test_sets(it: Replication) -> str:
    """The page of a paper's registered rows on further test sets; empty if none of its runs was scored on one."""
    names = [TEST, *it.family.secondary]
    lines = []
    for row in it.planned:
        scored = [
            [run.on(name) for run in row.runs.values() if name in run.extra_tests] for name in names[1:]
        ]
        scores = [[run.score for run in group] for group in (row.runs.values(), *scored)]
        if any(scores[1:]):
            _, label = next(iter(row.rows))
            lines.append([label, *(cells.score(summarize(it)) if it else "" for it in scores)])
    if not lines:
        return ""
    grid = Grid(["", *names], lines)
    return pages.page("test_sets.md.j2", title=title_of(it), paper=it.family.paper, grid=grid)


def published(claim: Claim) -> str:
    if claim.bound is not None:
        return f"at most {claim.bound:g}"
    return "" if claim.published is None else f"{claim.published:+.2f}"


# Exploratory tests


def about(source: ClaimSource) -> str:
    """The line above the list of a source's claims: its table, how its runs deviate, and what was planned."""
    table = spec.load(source.table)
    deviates = f" Our runs deviate from the paper: {source.deviates}." if source.deviates else ""
    return f"`{source.name}`: {table.source}: {table.title}.{deviates} {plan(source)}"


def plan(source: ClaimSource) -> str:
    """`Seeds 1 to 12, tested at 3, 6 and 12.`"""
    first, last = source.seeds[0], source.seeds[-1]
    consecutive = source.seeds == tuple(range(first, last + 1))
    seeds = f"{first} to {last}" if consecutive and first < last else ", ".join(map(str, source.seeds))
    text = f"Seeds {seeds}, tested at {listed([*map(str, source.looks)])}"
    if not source.added_looks:
        return f"{text}."
    added = listed([*map(str, source.added_looks)])
    return f"{text}; {added} {'was' if len(source.added_looks) == 1 else 'were'} added when earlier results were known."


def summary(all_claims: Sequence[ClaimTests]) -> str:
    """How many claims have a verdict, and what the verdicts rest on: registration, settings, and added looks."""
    decided = [it for it in all_claims if it.verdict != "undecided"]
    text = f"{len(decided)} of {len(all_claims)} claims have an exploratory verdict, and the others are undecided."
    if not decided:
        return text
    tests = [it.shown for it in decided]
    number = Counter[str](it.registered for it in tests)
    rungs = Counter(it.claim.rung for it in tests)
    of_rungs = [f"{rungs[rung]} at {rung}" for rung in range(len(RUNGS))]
    return (
        f"{text} Such verdicts say what these runs suggest, and confirm or refute no paper. "
        f"{number['full']} of the {len(decided)} were registered in full (all their runs recorded the test's hash "
        f"when they started), {number['part']} in part, and {number['none']} not at all. "
        f"{sum(bool(it.claim.source.deviates) for it in tests)} rest on another setting than the paper's. By rung: "
        f"{listed(of_rungs)}. {sum(it.first_verdict == 'undecided' for it in decided)} exist only through looks that "
        "were added when results were known."
    )


def counted(all_claims: Iterable[ClaimTests]) -> str:
    """`3 hold, 1 equal, 0 opposite, 2 undecided`."""
    number = Counter[str](it.verdict for it in all_claims)
    return f"{number['holds']} hold, " + ", ".join(
        f"{number[it]} {it}" for it in ("equal", "opposite", "undecided")
    )


def exploratory_grid(decided: Sequence[Decided], all_claims: Iterable[ClaimTests]) -> Grid:
    """The tests as a table. all_claims: those of the ledger, for the verdicts of other tests."""
    found = {it.claim.id: claim for claim in all_claims for it in claim.tests}
    return Grid.by_heading([exploratory_cells(it, found[it.claim.id]) for it in decided])


def exploratory_cells(it: Decided, of_claim: ClaimTests) -> dict[str, str]:
    """The cells of a test by heading; its seeds are `3`, or `3 and 1` if the sides differ."""
    measured = cells.difference(it.over_seeds)
    if it.claim.bound is not None:
        measured = f"at most {max(it.a.values()):g}" if it.a else ""
    return {
        "claim": it.claim.claim,
        "the paper": published(it.claim),
        OURS: measured,
        "p (Holm)": cells.probability(it.p_adjusted),
        "seeds": " and ".join(str(number) for number in dict.fromkeys(it.runs)),
        "exploratory verdict": outcome_among(it, of_claim),
        "registered": it.registered,
        "rung": str(it.claim.rung),
    }


def outcome_among(it: Decided, claim: ClaimTests) -> str:
    """The verdict of a test, with those of the claim's other tests that differ from it and decide the claim."""
    own = f"{it.verdict}, {it.size}" if it.size else it.verdict
    others = {other.verdict for other in claim.tests if other is not it} - {"undecided", it.verdict}
    return "; ".join([own, *(f"{verdict} in another test" for verdict in sorted(others))])


# On the command line


def listing(all_claims: Sequence[ClaimTests]) -> str:
    """One line per claim: exploratory verdict, ID, difference, and which test is shown if it is not the first."""
    width = max((len(it.id) for it in all_claims), default=0)
    lines = [f"{it.verdict:<9}  {it.id:<{width}}  {in_short(it)}".rstrip() for it in all_claims]
    return "\n".join([*lines, "", summary(all_claims)])


def in_short(it: ClaimTests) -> str:
    if it.disagree:
        decisive = [test for test in it.tests if test.verdict != "undecided"]
        return f"its tests disagree: {', '.join(f'{test.verdict} by {test.claim.id}' for test in decisive)}"
    found = exploratory_cells(it.shown, it)
    p, paper = found["p (Holm)"], found["the paper"]
    parts = [found[OURS] or "no runs", f"p {p}" if p else "", f"the paper {paper}" if paper else ""]
    shown = "" if it.shown is it.tests[0] else f"; as tested by {it.shown.claim.id}"
    return ", ".join(filter(None, parts)) + shown


def details(claim: ClaimTests) -> str:
    """All that is known of a claim, test by test, and the commands that run its rows."""
    tests = [details_of_test(it, claim) for it in claim.tests]
    if len(tests) > 1:
        tests.insert(0, f"{claim.id}: {claim.verdict}, by {len(claim.tests)} tests")
    return "\n\n".join(tests)


DETAILS = (
    *("repeats", "place", "a", "b", "direction", "corpus", "table", "overrides", "deviates", "level"),
    *("verdict_before_added_looks", "hash", "runs_made_for_it"),
)
"""Keys of a test's record that are shown beside its cells."""


def details_of_test(it: Decided, of_claim: ClaimTests) -> str:
    values: dict[str, Any] = {**exploratory_cells(it, of_claim)}
    values |= {name.replace("_", " "): it.record()[name] for name in DETAILS}
    lines = [
        f"  {name:<26}  {', '.join(value) if isinstance(value, list) else value}"
        for name, value in values.items()
        if value not in (None, "", [])
    ]
    seeds = ",".join(map(str, it.claim.source.seeds))
    recorded = (f"seed={seeds}", f"sweep.claims=[{it.claim.hash}]")
    runs = dict.fromkeys(
        spec.load(name).command
        or run_command(*row_settings(name, label, reference.source.overrides), *recorded)
        for reference in it.claim.references
        for name, label in reference.trained
    )
    return "\n".join([it.claim.id, *lines, *(f"  {'run':<26}  {command}" for command in runs)])


# In templates of papers' pages


def for_templates(results: Path, read: Read) -> dict[str, Callable[..., Any]]:
    """Functions of templates, by name. They raise ValueError for an unknown source or paper.

    claims(SOURCE, ...): the exploratory tests of these sources as a folded table, and what follows it.
    registered(PAPER): the registered tests of a paper. headline(): how many tests have which verdict.
    """

    @cache
    def decided() -> tuple[Sequence[Decided], Sequence[ClaimTests]]:
        found = decide(claims.read(results / claims.FILE), results, read)
        return found, by_claim(found)

    @cache
    def replications() -> Sequence[Replication]:
        return registered.replications(results, read)

    def table(*sources: str) -> str:
        found, all_claims = decided()
        known = {it.claim.source.name for it in found}
        if unknown := [name for name in sources if name not in known]:
            raise ValueError(f"{claims.FILE} has no claims of source {unknown[0]!r}")
        chosen = [it for it in found if it.claim.source.name in sources]
        title = f"Exploratory tests: {counted(by_claim(chosen))}"
        grid = exploratory_grid(chosen, all_claims)
        return pages.page("exploratory.md.j2", title=title, grid=grid).rstrip()

    def of_paper(paper: str) -> str:
        if paper not in {it.claim.paper for it in decided()[0]}:
            raise ValueError(f"{claims.FILE} has no claims of paper {paper!r}")
        found = [it for it in replications() if it.family.paper == paper]
        how = "[How this is done](replication.md), and [what the columns mean](CLAIMS.md)."
        if not found:
            return (
                f"No test of this paper is registered yet: all verdicts on this page are *exploratory*. {how}"
            )
        return f"## Registered tests\n\n{registered_section(found[0], results)}\n\n{how} All below is *exploratory*."

    return {
        "claims": table,
        "registered": of_paper,
        "headline": lambda: headline(replications(), [it.claim for it in decided()[0]]),
        "replications": replications,
    }
