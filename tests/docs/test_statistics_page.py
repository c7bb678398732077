"""The figures of docs/statistics.md are those of the pages of results/."""

import re

from page_commands import ROOT

PAGE = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")


def test_the_example_stands_in_the_table() -> None:
    page = PAGE.split("\n## ")[1]
    table = (ROOT / "results/huang2015_table2/README.md").read_text(encoding="utf-8")
    rows = [line.removesuffix("|") for line in page.splitlines() if line.startswith("| random")]
    assert len(rows) == 6
    assert all(row in table for row in rows)


def test_a_later_section_quotes_the_interval_of_the_example() -> None:
    (quoted,) = re.findall(r"may\s+still\s+be: (\S+ to\s+\S+) in the example", PAGE)
    assert f"| {' '.join(quoted.split())} |" in PAGE


def test_the_scores_by_another_gold_are_those_of_its_pages() -> None:
    section = PAGE.split("\n## Another gold file\n")[1].split("\n## ")[0]
    links = re.findall(r"\]\(\.\./(results/\S+/(?:conllpp|cleanconll)\.md)\)", section)
    pages = {link: (ROOT / link).read_text(encoding="utf-8") for link in links}
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if re.match(r"\| \S.*\d", line)]
    assert len(rows) == 6
    for name, _, own, conllpp, rise, cleanconll, fall in rows:
        paper = "zukov2018" if "Zukov" in name else "huang2015"
        label = "16 units" if "Zukov" in name else f"random, {name.removesuffix(' (Huang)')}, NER"
        for gold, score, change in (("conllpp", conllpp, rise), ("cleanconll", cleanconll, fall)):
            (page,) = (text for link, text in pages.items() if paper in link and f"/{gold}.md" in link)
            line = next(line for line in page.splitlines() if line.startswith(f"| {label} |"))
            cells = [cell.split(" ")[0] for cell in line.strip("| ").split(" | ")]
            assert [it for it in cells if it in (own, score, change)] == [own, score, change]
