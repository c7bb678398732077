"""Tables of sweeps/ that are refused: with file, row, rule and value, or the nearest name."""

import re
from pathlib import Path

import pytest
from cases import refused

from ner_experiments.tables import spec

GOOD = "title: t\nsource: s\nseeds: [1]\n"
OWN = "title: t\nsource: ours\nextends: yang2020_table12\nrows: [{label: ours, run: [model=cross]}]\n"
ROWS = refused(r"""
[] -> rows must not be empty
[3] -> row 1: expected label, published
[{run: []}] -> row 1: label is missing
[{label: a, run: [], publised: 1}] -> row 1 ('a'): there is no 'publised'; did you mean 'published'?
[{label: a, run: layers=3}] -> run must be a list of texts, got 'layers=3'
[{label: a, run: [], published: true}] -> published must be a number, a text or a list of texts, got True
[{label: a, run: [], published: .nan}] -> published must be a number, a text or a list of texts, got nan
[{label: a, run: [], published: 1, sd: -3}] -> sd must be a number of at least 0, got -3
[{label: a, run: [], sd: .inf}] -> sd must be a number of at least 0, got inf
[{label: a, run: [], published: 1, runs: 0}] -> runs must be a whole number of at least 1, got 0
[{label: a, run: []}, {label: a, run: []}] -> two rows have the label 'a'
[{label: a, run: [], cited: true}] -> a cited row has a published number, and nothing to run
[{label: a, published: 1}] -> row 'a' needs run, or cited: true
[{label: a, run: [], trial: [a]}] -> trial belongs to the rows of a command's table
[{label: a, run: [], measure: {of: b, figure: type, key: c}}] -> 'a': measure belongs to the rows of an analysis
[{label: a, run: [], repeats: [b]}] -> repeats must be a table and a label of its rows
[{label: a, run: [], repeats: [yang2020_tabel11, type A]}] -> row 1 ('a'): repeats: there is no table 'yang2020_tabel11'
[{label: a, run: [], repeats: [yang2020_table11, typeA]}] -> no row 'typeA' with a published figure; did you mean 'type
[{label: a, run: [], repeats: [yang2020_table11, type A], sd: 1}] -> ('a'): sd is that of the row it repeats; got 1
[ -> broken.yaml:4: while parsing a flow node did not find expected node content
[]\nseeds: [2] -> broken.yaml:5: while constructing a mapping found duplicate key seeds
&a [a]\nbase: *a -> broken.yaml:5: aliases are not allowed, got '*a'
!!set {a} -> broken.yaml:4: tags are not allowed, got 'tag:yaml.org,2002:set'
!!timestamp 2001-13-45 -> broken.yaml:4: tags are not allowed
${ -> broken.yaml:
""")
MEASURES = refused(r"""
type -> row 1 ('a'): measure: expected of, figure, key, over, only by name, got 't
{of: b, figure: type} -> row 1 ('a'): measure: key is missing
{of: b, figure: kind, key: c} -> row 1 ('a'): measure: figure must be one of type, length, chunk, got 'kind'
{of: b, figure: length, key: '4'} -> key of figure length must be one of 1, 2, 3, more than 3, got '4'
{of: b, figure: chunk, key: M} -> key of figure chunk must be one of O, S, B, I, E, got 'M'
{of: b, figure: type, key: c, only: C1} -> only belongs to figure chunk, not to type
{of: b, figure: chunk, key: O, only: C0} -> only must be H, C (all heads) or a head such as C1, got 'C0'
{of: b, figure: chunk, key: O, over: b} -> over must be another row than of, got 'b' twice
{of: 'WNUT, Atta', figure: type, key: c} -> of must be a row of li2020_table1 that is run, got 'WNUT, Atta'; did
{of: 'WNUT, Att', figure: type, key: c, over: x} -> row 'a': measure: over must be a row of li2020_table1 that is run
""")
FILES = [
    ("", "broken.yaml: title is missing"),
    ("3", "broken.yaml:1: expected a mapping, got '3'"),
    ("- a", "expected title, source, rows, extends, base, seeds, analysis, command, notes, overrides, "),
    (GOOD + 'rows: [{label: "a\\n", run: []}]', r"label must be a text of one line, got 'a\n'"),
    (GOOD + 'rows: [{label: "a\\nb", run: []}]', r"label must be a text of one line, got 'a\nb'"),
    (OWN.replace("table12", "tabel12"), "extends: there is no table 'yang2020_tabel12'; did you mean"),
    (OWN + "base: [data=weibo]\n", "base is that of the table it extends; got ('data=weibo',)"),
    (OWN.replace("label: ours", "label: 'stacked, 2 layers'"), "two rows have the label 'stacked, 2 lay"),
    (OWN.replace("yang2020_table12", "xor"), "table of runs that extends none; xor has command"),
    (OWN.replace("yang2020_table12", "3"), "extends must be a text, got 3"),
    (GOOD + "row: []", "there is no 'row'; did you mean 'rows'?"),
    (GOOD + "analysis: xor\nrows: [{label: a, run: []}]", "takes no run: the table has no runs of its own"),
    ("title: t\nsource: s\nanalysis: xr\nrows: [{label: a}]", "there is no table 'xr'; did you mean 'xor'?"),
    ("title: t\nsource: s\nrows: [{label: a, run: []}]", "seeds must be different whole numbers, at least"),
    (GOOD.replace("1", "1, 1") + "rows: [{label: a, run: []}]", "seeds must be different whole numbers"),
    (GOOD + f"rows: [{{label: a, run: [], published: {'9' * 400}}}]", f"got {'9' * 77}..."),
    (GOOD + f"rows: [{{label: a, run: [], published: {'9' * 5000}}}]", "Exceeds the limit (4300 digits)"),
    (GOOD + f"{'a' * 100}: 1\nrows: []", f"there is no '{'a' * 77}...'"),
    (GOOD + f"rows: {'[' * 5000}", "broken.yaml:4: more than 10 levels"),
    ("title: a\n---\ntitle: b", "broken.yaml:2: expected a single document in the stream but found another"),
    ("title: caf\udce9", "broken.yaml:1: not UTF-8 (unexpected end of data at byte 11 of the line)"),
    ("title: a\nsource: \0", "broken.yaml:2: NUL byte"),
    ("title: a\nsource: \x07", "broken.yaml:2: U+0007: control characters are not allowed"),
]


def check(text: str, message: str, folder: Path) -> None:
    path = folder / "broken.yaml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        spec.read(path)
    assert type(error.value) is ValueError
    assert str(error.value).startswith(f"{path}:")
    assert str(error.value).isprintable()


@pytest.mark.parametrize(("text", "message"), FILES, ids=[message[:40] for _, message in FILES])
def test_a_broken_table_is_refused_with_file_row_rule_and_value(
    text: str, message: str, tmp_path: Path
) -> None:
    check(text, message, tmp_path)


@pytest.mark.parametrize(("rows", "message"), ROWS)
def test_broken_rows_are_refused(rows: str, message: str, tmp_path: Path) -> None:
    check(f"{GOOD}rows: {rows}", message, tmp_path)


@pytest.mark.parametrize(("measure", "message"), MEASURES)
def test_a_broken_measure_is_refused(measure: str, message: str, tmp_path: Path) -> None:
    rows = f"rows: [{{label: a, measure: {measure}}}]"
    check(f"title: t\nsource: s\nanalysis: li2020_table1\n{rows}", message, tmp_path)


def test_an_unknown_table_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no table 'yang2020_table_12'; did you mean 'yang2020_table12'\?"):
        spec.load("yang2020_table_12")
