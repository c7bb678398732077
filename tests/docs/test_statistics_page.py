"""The figures of docs/statistics.md are those of the pages of results/."""

import re

from page_commands import ROOT

PAGE = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")


def test_the_example_stands_in_the_table() -> None:
    page = PAGE.split("\n## ")[1]
    table = (ROOT / "results/huang2015_table2/README.md").read_text(encoding="utf-8")
    rows = [line.removesuffix("|") for line in page.splitlines() if line.startswith("| random")]
    assert len(rows) == 5
    assert all(row in table for row in rows)


def test_a_later_section_quotes_the_interval_of_the_example() -> None:
    (quoted,) = re.findall(r"may\s+still\s+be: (\S+ to\s+\S+) in the example", PAGE)
    assert f"| {' '.join(quoted.split())} |" in PAGE


def test_the_scores_by_another_gold_are_those_of_its_pages() -> None:
    section = PAGE.split("\n## Another gold file\n")[1]
    links = re.findall(r"\]\(\.\./(results/\S+/(?:conllpp|cleanconll)\.md)\)", section)
    pages = " ".join((ROOT / link).read_text(encoding="utf-8") for link in links)
    assert len(links) == 4
    figures = re.findall(r"[+-]?\d\d?\.\d\d(?= )", section.split("\n| :-- ")[1].split("\n\n")[0])
    assert len(figures) == 30
    assert [it for it in figures if f" {it} " not in pages] == []
