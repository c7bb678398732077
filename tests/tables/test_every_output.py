"""Every table of sweeps/ and every archived setting in every output of `table`; `watch` and `report` over them all."""

import csv
import html
import json
import re
from functools import cache, partial
from pathlib import Path
from urllib.parse import unquote

import pytest
from in_process import Ner
from places import RESULTS

from ner_experiments.main import answer
from ner_experiments.runs.store import archives
from ner_experiments.tables import pages, spec

ARCHIVED = [(spec.load(it.table), it.overrides) for it in archives(RESULTS)]
SETTINGS = [
    *((name,) for name in spec.names()),
    *((table.name, *overrides) for table, overrides in ARCHIVED if overrides),
]
LITERAL = re.compile(
    r"\\[&%$#_{}]|\\text(backslash|asciitilde|asciicircum)\{\}|\$(\\pm|<|>)\$|\\(top|mid|bottom)rule"
)
"""The LaTeX of special characters, and of booktabs' lines."""


@pytest.fixture(autouse=True)
def _only_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").symlink_to(RESULTS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("setting", SETTINGS, ids=" ".join)
def test_a_table_has_its_rows_and_our_means_in_every_output(
    setting: tuple[str, ...], ner: Ner, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect = cache(partial(pages.page, spec.load(setting[0])))  # once for all outputs
    monkeypatch.setattr(pages, "page", lambda _, overrides, results: collect(tuple(overrides), results))

    def printed(*options: str) -> str:
        return ner("table", *setting, *options)

    content = json.loads(printed("--json"), parse_constant=refuse)
    rows = spec.load(setting[0]).rows
    assert [row["label"] for row in content["rows"]] == [row.label for row in rows]
    means = [row["measured"] and row["measured"]["mean"] for row in content["rows"]]
    headings, *lines = csv.reader(printed("--csv").splitlines())
    assert {len(line) for line in lines} == {len(headings)}
    found = [dict(zip(headings, line, strict=True)) for line in lines]
    assert [line["label"] for line in found] == [row.label for row in rows]
    assert [float(line["mean"]) if line["mean"] else None for line in found] == means
    for grid in (first_grid(printed()), first_tabular(printed("--latex"))):
        assert len(grid) == len(rows)
        for cells, row, mean in zip(grid, rows, means, strict=True):
            assert cells[0].startswith(row.label)
            assert mean is None or any(cell.startswith(f"{mean:.2f} ") for cell in cells)


def refuse(constant: str) -> None:
    raise ValueError(f"no JSON: {constant}")


def first_grid(text: str) -> list[list[str]]:
    """Cells of the rows of the first table; all tables of the text must be rectangular."""
    grids = [
        [[cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block]
        for block in (part.splitlines() for part in text.split("\n\n"))
        if block[0].startswith("|")
    ]
    assert all(len({len(line) for line in grid}) == 1 for grid in grids)
    return grids[0][2:]


def first_tabular(text: str) -> list[list[str]]:
    """Cells of the rows of the first tabular. All must be rectangular, and their text and the rest without markup."""
    grids, rest = [], text
    for block in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL):
        first, *lines, last = block.splitlines()
        columns = re.fullmatch(r"\\begin\{tabular\}\{(l+r*)\}", first)
        assert columns
        assert last == r"\end{tabular}"
        assert [lines[0], lines[2], lines[-1]] == [r"\toprule", r"\midrule", r"\bottomrule"]
        cells = [
            [cell.strip() for cell in re.split(r"(?<!\\)&", line[:-2])] for line in [lines[1], *lines[3:-1]]
        ]
        assert {len(line) for line in cells} == {len(columns[1])}
        assert all(line.endswith(r"\\") for line in [lines[1], *lines[3:-1]])
        grids.append([[plain(cell) for cell in line] for line in cells[1:]])
        rest = rest.replace(block, "")
    plain(rest)
    return grids[0]


def plain(text: str) -> str:
    """The text that LaTeX would print, which must have no markup but that of `LITERAL`."""
    assert not re.search(r"[\\{}$#%_^~&<>]", LITERAL.sub("", text)), text
    named = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"$\pm$": "±"}
    return LITERAL.sub(lambda found: named.get(found[0], found[0].strip("\\$")), text)


@pytest.mark.parametrize("name", [name for name in spec.names() if not spec.load(name).command])
def test_watch_waits_for_every_row_that_is_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    unfinished = 3
    assert answer(["watch", name, "--json"]) == unfinished  # archived runs have no folder
    content = json.loads(capsys.readouterr().out, parse_constant=refuse)
    rows = spec.load(spec.load(name).runs_of).rows
    assert {run["label"] for run in content["runs"]} == {row.label for row in rows if row.run is not None}
    assert content["counts"]["waiting"] == len(content["runs"])


@pytest.mark.slow
def test_the_report_of_the_archive_has_every_table_and_no_dead_link() -> None:
    assert answer(["report"]) == 0
    folder = Path("outputs/report")
    pages = {path.name: links(path.read_text(encoding="utf-8")) for path in folder.glob("*.html")}
    linked = {link for found in pages.values() for link in found}
    assert [link for link in sorted(linked) if not (folder / link).is_file()] == []
    assert pages.keys() - {"index.html"} <= linked
    assert {f"{name}.html" for name in spec.names()} <= pages.keys()
    text = {name: (folder / name).read_text(encoding="utf-8") for name in pages}
    for table, overrides in ARCHIVED:
        of_table = [page for name, page in text.items() if re.match(rf"{table.name}[.-]", name)]
        assert any(all(html.escape(item) in page for item in overrides) for page in of_table), table.name


def links(page: str) -> set[str]:
    """Files that the page links to."""
    targets = re.findall(r'\b(?:href|src)="([^"#?]+)', page)
    return {unquote(html.unescape(target)) for target in targets if not re.match("[a-z]+:", target)}
