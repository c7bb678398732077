"""CITATION.cff is what Citation File Format 1.2.0 asks for, and the changelog what Keep a Changelog does."""

import re
import tomllib
from datetime import date
from typing import Any

import pytest
import yaml
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
REQUIRED = {"cff-version", "message", "title", "authors"}
ALLOWED = REQUIRED | {"type", "abstract", "version", "license", "keywords", "references"}
OF_A_REFERENCE = {
    **dict.fromkeys(("type", "title", "collection-title", "journal", "volume", "issue", "notes", "doi"), str),
    **dict.fromkeys(("start", "end"), str),
    "year": int,
    "authors": list,
    "conference": dict,
    "identifiers": list,
}
PAPERS = {"Huang 2015", "Žukov-Gregorič 2018", "Yang 2020", "Li 2020"}
KINDS = ["Numbers", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_citation_has_what_the_format_asks_for_and_nothing_else() -> None:
    assert CITATION.keys() >= REQUIRED
    assert CITATION.keys() <= ALLOWED
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] in ("software", "dataset")
    assert all(author.keys() == {"name"} for author in CITATION["authors"])
    assert len(set(CITATION["keywords"])) == len(CITATION["keywords"])


def test_it_agrees_with_the_package() -> None:
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]


def test_the_four_papers_are_referred_to() -> None:
    references = CITATION["references"]
    assert {f"{each['authors'][0]['family-names']} {each['year']}" for each in references} == PAPERS
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(reference["title"].split("?")[0] in readme for reference in references)


@pytest.mark.parametrize("reference", CITATION["references"], ids=lambda each: str(each["year"]))
def test_a_reference_is_well_formed(reference: dict[str, Any]) -> None:
    assert reference.keys() >= {"type", "title", "authors", "year"}
    assert all(type(value) is OF_A_REFERENCE[key] for key, value in reference.items())
    assert reference["type"] in ("article", "conference-paper")
    assert all(person.keys() == {"given-names", "family-names"} for person in reference["authors"])
    assert re.fullmatch(r"10\.\d{4,9}/\S+", reference.get("doi", "10.1000/none"))
    for identifier in reference.get("identifiers", []):
        assert identifier.keys() == {"type", "value"}
        assert identifier["type"] in ("doi", "url", "swh", "other")
    if conference := reference.get("conference"):
        assert conference.keys() == {"name", "city", "country", "date-start", "date-end"}
        assert re.fullmatch("[A-Z]{2}", conference["country"])
        assert isinstance(conference["date-start"], date)
        assert conference["date-start"] < conference["date-end"]


def test_the_changelog_has_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.startswith("# Changelog\n")
    releases = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert releases[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", release) for release in releases[1:])
    for release in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], "unknown, or out of order"


def test_the_figures_of_the_changelog_are_those_that_are_kept() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    page = (ROOT / "results/README.md").read_text(encoding="utf-8")
    scores = re.findall(r"^\| \[`conll2003_\w+`\]\S+ \| [\d.]+ \| ([\d.]+) \|", page, re.MULTILINE)
    assert scores
    assert [score for score in scores if score not in changelog] == []
    bars = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    speed = next(line for line in changelog.split("- **") if line.startswith("Speed"))
    for factor in re.findall(r"(\d+\.\d+)(?: times|th)", speed):
        assert re.search(rf"\| {factor}\d? \|", bars), factor
