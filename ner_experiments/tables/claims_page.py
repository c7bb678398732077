"""The ledger with its verdicts, as results/CLAIMS.md, as tables of other pages, and on the command line."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from ner_experiments.analysis.sequential import error_with_added_looks
from ner_experiments.tables import claims, results_folder, spec
from ner_experiments.tables.claims import RUNGS, ClaimSource
from ner_experiments.tables.experiments import joined
from ner_experiments.tables.render import Grid, as_markdown, interval, probability
from ner_experiments.tables.results_folder import Read
from ner_experiments.tables.significance import ALPHA
from ner_experiments.tables.verdicts import ClaimTests, Decided, by_claim, decide

PAGE = "CLAIMS.md"
PAPERS = {
    "huang2015": "Huang, Xu & Yu (2015)",
    "zukov2018": "Zukov-Gregoric, Bachrach & Coope (2018)",
    "yang2020": "Yang & Xu (2020)",
    "li2020": "Li, Fu & Ma (2020)",
}
"""Titles of sections; a paper that is not among them is called by its name in the ledger."""
VERDICT = "exploratory verdict"
HEADINGS = ("claim", "the paper", "ours", "95 %", "p (Holm)", "seeds", VERDICT, "registered", "rung")
LEGEND = (
    "Differences in points of test F1 (accuracy for parts of speech, phrases for XOR), with the 95 % interval over "
    "seeds. A claim *holds* if the difference has the claimed sign and p over seeds, after Holm's correction for all "
    "claims in its list below, is at most 0.05; if a plan has several looks, each has a stricter level, such as 0.019. "
    "A claim is *opposite* if p is as small and the sign is the other one, *equal* if the difference is shown to be "
    "smaller than the smallest effect (0.3 points unless the ledger says otherwise), and otherwise *open*. A claim "
    "that there is no difference holds if the rows are equal. *Smaller* and *larger*: the claim holds, but the paper's "
    "difference is outside our interval. No verdict rests on a single seed."
)
COLUMNS = (
    "*Registered*: whether all (full), some (part) or none of the runs of a test recorded its hash when they were "
    f"started, before their test score was known. *Rung*: {'; '.join(f'{n}, {text}' for n, text in enumerate(RUNGS))}."
)
REPEATED = (
    "A claim with several tests, of other settings or of new seeds, is in several lists and counts once. It has the "
    "verdict of the tests that decide it, and is open if none does or if they disagree."
)
ORIGIN = (
    "All figures and verdicts are computed from the archived runs by `ner-experiments claims`; "
    "[claims.yaml](claims.yaml) says what is compared, and [statistics](../docs/statistics.md) how."
)

READING = (
    "The verdicts are computed and exploratory ([all claims](CLAIMS.md), with what this and the columns mean). What "
    "follows is the author's reading."
)


def write(results: Path, read: Read = results_folder.read) -> list[Path]:
    """Write CLAIMS.md and return it; nothing without a ledger."""
    path = results / claims.FILE
    if not path.is_file():
        return []
    page = results / PAGE
    page.write_text(markdown(decide(claims.read(path), results, read)), encoding="utf-8")
    return [page]


def markdown(decided: Sequence[Decided]) -> str:
    """The page of all claims, paper by paper."""
    all_claims = by_claim(decided)
    lines = [
        "# Claims of the papers",
        "",
        summary(all_claims),
        "",
        LEGEND,
        "",
        COLUMNS,
        "",
        error_rate(decided),
        "",
        *[f"{REPEATED}{agreement(all_claims)}", ""] * (len(all_claims) < len(decided)),
        ORIGIN,
        "",
    ]
    for paper in dict.fromkeys(it.claim.paper for it in decided):
        members = [it for it in decided if it.claim.paper == paper]
        lines += [f"## {PAPERS.get(paper, paper)}", "", f"Exploratory: {counted(by_claim(members))}.", ""]
        for source, of_source in groupby(members, key=lambda it: it.claim.source):
            lines += [about(source), "", grid([*of_source], all_claims), ""]
    return "\n".join(lines)


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
    text = f"Seeds {seeds}, tested at {joined_words([*map(str, source.looks)])}"
    if not source.added_looks:
        return f"{text}."
    added = joined_words([*map(str, source.added_looks)])
    return f"{text}; {added} {'was' if len(source.added_looks) == 1 else 'were'} added when earlier results were known."


def summary(all_claims: Sequence[ClaimTests]) -> str:
    """How many claims have a verdict, and what the verdicts rest on: registration, settings, and added looks."""
    decided = [it for it in all_claims if it.verdict != "open"]
    text = f"{len(decided)} of {len(all_claims)} claims have a verdict, and {len(all_claims) - len(decided)} are open."
    if not decided:
        return text
    tests = [it.shown for it in decided]
    number = Counter[str](it.registered for it in tests)
    elsewhere = sum(bool(it.claim.source.deviates) for it in tests)
    added = sum(it.first_verdict == "open" for it in decided)
    rungs = Counter(it.claim.rung for it in tests)
    of_rungs = [f"{rungs[rung]} at {rung} ({name})" for rung, name in enumerate(RUNGS)]
    return (
        f"{text} All verdicts are *exploratory*: they say what these runs suggest, and confirm or refute no paper. "
        f"{number['full']} of the {len(decided)} were registered in full (all their runs recorded the test's hash "
        f"when they started), {number['part']} in part, and {number['none']} not at all. {elsewhere} rest on "
        f"another setting than the paper's. By rung: {joined_words(of_rungs)}. {added} exist only through looks that "
        "were added when results were known."
    )


def joined_words(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def error_rate(decided: Sequence[Decided]) -> str:
    """The probability of a wrong verdict in a list, with and without added looks."""
    sources = {it.claim.source for it in decided}
    changed = [source for source in sources if source.added_looks]
    text = (
        "In each list, the probability that any claim wrongly *holds* or is wrongly *opposite* is at most 5 %"
    )
    if changed:
        bounds = [error_with_added_looks(source.first_looks, source.looks, ALPHA) for source in changed]
        text += (
            f", but up to {100 * max(bounds):.0f} % in the {len(changed)} to which looks were added when results were "
            "known"
        )
    return f"{text}. For a claim in several lists, the probabilities add up."


def agreement(all_claims: Iterable[ClaimTests]) -> str:
    """On how many claims several tests reach a verdict, and on how many the same; empty if on none."""
    several = [it for it in all_claims if sum(test.verdict != "open" for test in it.tests) > 1]
    if not several:
        return ""
    agree = sum(not it.disagree for it in several)
    noun = "claim" if len(several) == 1 else "claims"
    return f" On {len(several)} {noun}, more than one test reaches a verdict, and on {agree} they agree."


def counted(all_claims: Iterable[ClaimTests]) -> str:
    """`3 hold, 1 is equal, 0 are opposite and 2 are open`."""
    number = Counter[str](it.verdict for it in all_claims)
    holds = f"{number['holds']} hold{'s' * (number['holds'] == 1)}"
    others = [f"{number[name]} {'is' if number[name] == 1 else 'are'} {name}" for name in OTHERS]
    return f"{holds}, {others[0]}, {others[1]} and {others[2]}"


OTHERS = ("equal", "opposite", "open")


def grid(decided: Sequence[Decided], all_claims: Iterable[ClaimTests]) -> str:
    """The tests as a Markdown table. all_claims: those of the ledger, for the verdicts of other tests."""
    found = {it.claim.id: claim for claim in all_claims for it in claim.tests}
    lines = [
        [*line(it)[:-1], outcome_among(it, found[it.claim.id]), it.registered, str(it.claim.rung)]
        for it in decided
    ]
    return as_markdown(Grid([*HEADINGS], lines))


def line(it: Decided) -> list[str]:
    """The cells of a claim."""
    claim, ours = it.claim, it.over_seeds
    if claim.bound is not None:
        published = f"at most {claim.bound:g}"
        measured = f"at most {max(it.a.values()):g}" if it.a else ""
    else:
        published = "" if claim.published is None else f"{claim.published:+.2f}"
        measured = "" if ours is None else f"{ours.mean:+.2f}"
    return [
        claim.claim,
        published,
        measured,
        interval(ours.low, ours.high) if ours else "",
        probability(it.p_adjusted),
        seeds(it),
        outcome(it),
    ]


def seeds(it: Decided) -> str:
    """`3`, or `3 and 1` if the sides differ."""
    return " and ".join(str(number) for number in dict.fromkeys(it.runs))


def outcome(it: Decided) -> str:
    """The verdict; of an open claim, also what it would take, and of one that holds, whether by another difference."""
    return (
        f"{it.verdict}: needs {it.needs}"
        if it.needs
        else f"{it.verdict}, {it.size}"
        if it.size
        else it.verdict
    )


def outcome_among(it: Decided, claim: ClaimTests) -> str:
    """The verdict of a test, with those of the claim's other tests that differ from it and decide the claim."""
    others = {other.verdict for other in claim.tests if other is not it} - {"open", it.verdict}
    return "; ".join([outcome(it), *(f"{verdict} in another test" for verdict in sorted(others))])


def listing(all_claims: Sequence[ClaimTests]) -> str:
    """One line per claim: verdict, ID, difference, what it needs, and which test is shown if it is not the first."""
    width = max((len(it.id) for it in all_claims), default=0)
    lines = [f"{it.verdict:<8}  {it.id:<{width}}  {in_short(it)}".rstrip() for it in all_claims]
    return "\n".join([*lines, "", summary(all_claims)])


def in_short(it: ClaimTests) -> str:
    if it.disagree:
        decisive = [test for test in it.tests if test.verdict != "open"]
        return f"its tests disagree: {', '.join(f'{test.verdict} by {test.claim.id}' for test in decisive)}"
    _, published, ours, range_, p, *_ = line(it.shown)
    parts = [ours, f"({range_})" if range_ else "", f"p {p}" if p else ""]
    text = " ".join(part for part in parts if part) or "no runs"
    text += f", the paper {published}" if published else ""
    text += f"; needs {it.needs}" if it.needs else ""
    return text + (f"; as tested by {it.shown.claim.id}" if it.shown is not it.tests[0] else "")


def details(claim: ClaimTests) -> str:
    """All that is known of a claim, test by test, and the commands that run its rows."""
    tests = [details_of_test(it, claim) for it in claim.tests]
    if len(tests) > 1:
        tests.insert(0, f"{claim.id}: {claim.verdict}, by {len(claim.tests)} tests")
    return "\n\n".join(tests)


def details_of_test(it: Decided, of_claim: ClaimTests) -> str:
    claim, source = it.claim, it.claim.source
    _, published, ours, range_, p, number, _ = line(it)
    lines = {
        "repeats": claim.repeats,
        "claim": f"{claim.claim} ({PAPERS.get(claim.paper, claim.paper)}, {claim.place})",
        "verdict": f"{outcome_among(it, of_claim)} (exploratory)",
        "the paper": published,
        "ours": f"{ours}{f', 95 % {range_}' if range_ else ''}{f', p {p} (Holm){level(it)}' if p else ''}",
        "a": " - ".join(each.label for each in claim.a),
        "b": " - ".join(each.label for each in claim.b),
        "direction": claim.direction,
        "corpus": claim.corpus,
        "seeds": f"{number or 'none'} of {len(source.seeds)}, looks at {', '.join(map(str, source.looks))}",
        "detects": "" if it.detectable is None else f"a difference of {it.detectable:.2f} points",
        "hours": f"{source.hours:g} planned for all rows of {source.table}",
        "deviates": source.deviates,
        "rung": f"{claim.rung}: {RUNGS[claim.rung]}",
        "registered": it.registered,
        "hash": f"{claim.hash}, recorded by {it.runs_made_for_it} runs",
    }
    text = [claim.id, *(f"  {name:<10}  {value}" for name, value in lines.items() if value)]
    return "\n".join([*text, *(f"  run         {command}" for command in commands(it))])


def level(it: Decided) -> str:
    """`, at a level of 0.0146` if the plan has several looks; else empty."""
    return f", at a level of {it.look.test.alpha:.4f}" if it.look and len(it.claim.source.looks) > 1 else ""


def commands(it: Decided) -> list[str]:
    """The commands that run the rows of a claim and record its hash, without duplicates."""
    found = []
    for reference in it.claim.references:
        source, measure = reference.source, reference.row.measure
        table = spec.load(spec.load(source.table).runs_of)
        labels = [measure.of, measure.over] if measure else [reference.label]
        for row in (row for row in table.rows if row.label in labels and row.run is not None):
            settings = joined(table.base, row.run or (), source.overrides)
            seeds = ",".join(map(str, source.seeds))
            of_claim = (f"seed={seeds}", f"sweep.claims=[{it.claim.hash}]")
            found.append(shlex.join(["python", "run.py", "-m", *settings, *of_claim]))
    return [*dict.fromkeys(found)] or [table.command for table in [spec.load(it.claim.source.table)]]


def for_templates(results: Path, read: Read) -> Callable[..., str]:
    """`claims(SOURCE, ...)` of templates: the claims of these sources as a table, and what follows it.

    ValueError for an unknown source.
    """

    @cache
    def all_decided() -> Sequence[Decided]:
        return decide(claims.read(results / claims.FILE), results, read)

    def table(*sources: str) -> str:
        chosen = [it for it in all_decided() if it.claim.source.name in sources]
        known = {it.claim.source.name for it in all_decided()}
        if unknown := [name for name in sources if name not in known]:
            raise ValueError(f"{claims.FILE} has no claims of source {unknown[0]!r}")
        return f"{grid(chosen, by_claim(all_decided()))}\n\n{READING}"

    return table
