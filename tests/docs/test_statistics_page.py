"""The example of docs/statistics.md is that of the archived table."""

from page_commands import ROOT


def test_the_example_stands_in_the_table() -> None:
    page = (ROOT / "docs/statistics.md").read_text(encoding="utf-8").split("\n## ")[1]
    table = (ROOT / "results/huang2015_table2/README.md").read_text(encoding="utf-8")
    rows = [line.removesuffix("|") for line in page.splitlines() if line.startswith("| random")]
    assert len(rows) == 5
    assert all(row in table for row in rows)
