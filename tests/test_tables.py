"""sweeps/*.yaml: each figure against the papers' transcription, each row against what it says it changes."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from ner_experiments import tables
from ner_experiments.table_runs import compose, experiments, joined
from ner_experiments.tables import Row

PAPERS = os.environ.get("NER_PAPERS_DIR")
NAMES = tables.names()
EXPECTED = [
    *(f"huang2015_table{number}" for number in range(2, 7)),
    *("li2020_figure2", "li2020_table1", "li2020_table3", "li2020_table4", "li2020_table5"),
    *("ours_huang2015_pos", "xor"),
    *(f"yang2020_table{number}" for number in range(4, 15)),
    *(f"zukov2018_table{number}" for number in range(1, 6)),
]
Figures = list[dict[str, Any]]
"""What a row states, by the names that the transcription has for it."""


def test_every_table_is_there_in_the_order_of_its_number() -> None:
    assert EXPECTED == NAMES


def stated(row: Row) -> dict[str, Any]:
    figures = {"published": row.published, "sd": row.sd, "runs": row.runs, "cited": row.cited or None}
    return {name: value for name, value in (figures | row.also).items() if value is not None}


def entry(of: dict[str, Any], key: str, **more: Any) -> dict[str, Any]:
    known = {name: of[name] for name in ("sd", "runs", "cited") if of.get(name)}
    return {"published": of[key]} | known | more


def huang2015(number: str, table: Any) -> Figures:
    columns = ("pos", "chunk", "ner", "ner_gazetteer")
    if number == "2":
        models = [model for part in table.values() for model in part.values()]
        return [entry(model, column) for model in models for column in columns if column in model]
    if number == "3":
        pairs = [model[column] for model in table.values() for column in columns[:3]]
        return [{"published": value, "drop": drop} for value, drop in pairs]
    return [entry(system, "acc" if number == "4" else "f1") for system in table.values()]


def zukov2018(number: str, table: Any) -> Figures:
    if number == "1":
        return [entry(row, "f1") for row in [*list(table.values())[1:], table["this_paper"]]]
    return [entry(row, "f1") for row in table]


def yang2020(number: str, table: Any) -> Figures:
    if number == "12":
        return [{"published": value} for part in ("stacked", "residual") for value in table[part].values()]
    cited = [{"published": value, "cited": True} for value in table.get("cited", {}).values()]
    meta = ("data", "cited", "text_says", "tables_11_to_13_say")
    return cited + [{"published": value} for key, value in table.items() if key not in meta]


def li2020(number: str, table: Any) -> Figures:
    if number == "3":
        return [{"published": value} for model in table.values() for value in model.values()]
    if number == "4":
        lists = [values for model in table.values() for values in model.values()]
        return [{"published": value} for values in lists for value in values]
    if number == "5":
        return [{"published": value} for tag in "OSBIE" for value in table[tag]]
    of_cnn, of_idcnn, of_crf = (table[key] for key in list(table)[:3])
    precision, recall, f1 = of_cnn["ontonotes5"]
    cited = [
        {"published": f1, "sd": of_cnn["sd"], "cited": True, "precision": precision, "recall": recall},
        entry(of_idcnn, "ontonotes5_f1"),
        entry(of_crf, "ontonotes5_f1"),
        {"published": of_crf["wnut17_f1"], "cited": True},
    ]
    for data in ("ontonotes5", "wnut17"):
        for model in ("baseline", "cross", "att"):
            precision, recall, f1 = table[model][data]
            sd = table[model][f"{data}_sd"]
            cited.append({"published": f1, "sd": sd, "runs": 6, "precision": precision, "recall": recall})
    return cited


READ = {"huang2015": huang2015, "zukov2018": zukov2018, "yang2020": yang2020, "li2020": li2020}


@pytest.mark.skipif(PAPERS is None, reason="NER_PAPERS_DIR is not set")
@pytest.mark.parametrize("name", [name for name in EXPECTED if "_table" in name])
def test_rows_and_figures_are_those_of_the_paper(name: str) -> None:
    papers: Any = OmegaConf.to_container(OmegaConf.load(Path(str(PAPERS)) / "published.yaml"))
    paper, number = name.split("_table")
    expected = READ[paper](number, papers[paper][f"table{number}"])
    assert [stated(row) for row in tables.load(name).rows] == expected


@pytest.mark.skipif(PAPERS is None, reason="NER_PAPERS_DIR is not set")
@pytest.mark.parametrize(("name", "contradiction"), [("5", "text_says"), ("7", "tables_11_to_13_say")])
def test_where_the_paper_contradicts_itself_a_note_says_so(name: str, contradiction: str) -> None:
    papers: Any = OmegaConf.to_container(OmegaConf.load(Path(str(PAPERS)) / "published.yaml"))
    (row,) = [row for row in tables.load(f"yang2020_table{name}").rows if row.note]
    assert str(papers["yang2020"][f"table{name}"][contradiction]) in row.note


@pytest.mark.skipif(PAPERS is None, reason="NER_PAPERS_DIR is not set")
@pytest.mark.parametrize("number", ["2", "3", "4"])
def test_units_are_those_of_the_figure(number: str) -> None:
    papers: Any = OmegaConf.to_container(OmegaConf.load(Path(str(PAPERS)) / "published.yaml"))
    rows, figures = tables.load(f"zukov2018_table{number}").rows, papers["zukov2018"][f"table{number}"]
    for row, printed in zip(rows, figures, strict=True):
        settings = dict(item.split("=") for item in row.run or ())
        for key, setting in (("units", "model.num_units"), ("unit_size", "model.unit_size")):
            assert str(printed.get(key)) == str(settings.get(setting))
            assert printed.get(key) is None or str(printed[key]) in re.findall(r"\d+", row.label)


FOLLOWERS = {
    "layers": ["model.num_layers"],
    "trainer.max_epochs": ["trainer.patience"],
    "words.input.path": ["first.words.input.path"],
}
"""Settings that take up another's value in conf/."""


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(node, dict):
        return {prefix: node}
    return {
        key: value for name in node for key, value in flat(node[name], f"{prefix}.{name}".strip(".")).items()
    }


def settings_of(overrides: tuple[str, ...]) -> dict[str, Any]:
    return flat(OmegaConf.to_container(compose(overrides, "test"), resolve=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_differs_from_its_tables_base_in_what_it_says_alone(name: str) -> None:
    table = tables.load(name)
    if table.command or table.analysis:
        assert not any(row.run for row in table.rows)
        return
    base = settings_of(table.base)
    for experiment in experiments(table):
        own = settings_of(experiment.overrides)
        changed = {key for key in own.keys() | base.keys() if own.get(key, "-") != base.get(key, "-")}
        said = [item.partition("=")[0].replace("/", ".") for item in experiment.row.run or ()]
        said += [follower for key in said for follower in FOLLOWERS.get(key, [])]
        unsaid = {key for key in changed if not any(f"{key}.".startswith(f"{place}.") for place in said)}
        assert not unsaid, experiment.row.label


def test_rows_of_one_table_may_count_in_another() -> None:
    """Table 4's rows are rows of table 2: the same settings, by other words."""
    rows = {experiment.row.label: experiment for experiment in experiments(tables.load("huang2015_table2"))}
    (plain, senna) = experiments(tables.load("huang2015_table4"))
    assert plain.cfg == rows["random, BI-LSTM-CRF, POS"].cfg
    assert senna.cfg == rows["Senna, BI-LSTM-CRF, POS"].cfg


def test_of_overrides_with_one_key_the_last_counts() -> None:
    assert joined(("data=msra", "layers=4"), ("layers=3",), ("data=weibo",)) == ("data=weibo", "layers=3")


GOOD = "title: t\nsource: s\nseeds: [1]\n"
ANALYSIS = "title: t\nsource: s\nanalysis: li2020_table1\nrows: [{{label: a, measure: {}}}]"
BROKEN = [
    ("source: s\nrows: []", "title is missing"),
    (GOOD + "rows: []", "rows must not be empty"),
    (GOOD + "row: []", "there is no 'row'; did you mean 'rows'?"),
    (
        GOOD + "rows: [{label: a, run: [], publised: 1}]",
        "row 1 ('a'): there is no 'publised'; did you mean 'published'?",
    ),
    (
        GOOD + "rows: [{label: a, run: [], published: true}]",
        "published must be a number, a text or a list of texts, got True",
    ),
    (GOOD + "rows: [{label: a, run: layers=3}]", "run must be a list of texts, got 'layers=3'"),
    (GOOD + "rows: [{run: []}]", "row 1: label is missing"),
    (GOOD + "rows: [3]", "row 1: expected label, published"),
    (GOOD + "rows: [{label: a, run: []}, {label: a, run: []}]", "two rows have the label 'a'"),
    (
        GOOD + "rows: [{label: a, run: [], cited: true}]",
        "a cited row has a published number, and nothing to run",
    ),
    (GOOD + "rows: [{label: a, published: 1}]", "row 'a' needs run, or cited: true"),
    (GOOD + "analysis: xor\nrows: [{label: a, run: []}]", "takes no run: the table has no runs of its own"),
    ("title: t\nsource: s\nanalysis: xr\nrows: [{label: a}]", "there is no table 'xr'; did you mean 'xor'?"),
    (GOOD + "rows: [{label: a, run: [], trial: [a]}]", "trial belongs to the rows of a command's table"),
    (
        "title: t\nsource: s\nrows: [{label: a, run: []}]",
        "seeds must be different whole numbers, at least one",
    ),
    (
        "title: t\nsource: s\nseeds: [1, 1]\nrows: [{label: a, run: []}]",
        "seeds must be different whole numbers",
    ),
    (GOOD + "rows: [", "broken.yaml:4: while parsing a flow node expected the node content"),
    (GOOD + "rows: []\nseeds: [2]", "broken.yaml:5: while constructing a mapping found duplicate key seeds"),
    (GOOD + "rows: [{label: a, run: [], published: .nan}]", "published must be a number, a text or a list"),
    (GOOD + "rows: [{label: a, run: [], sd: .inf}]", "sd must be a number, got inf"),
    (GOOD + f"rows: [{{label: a, run: [], published: {'9' * 400}}}]", f"got {'9' * 77}..."),
    (GOOD + f"rows: [{{label: a, run: [], published: {'9' * 5000}}}]", "Exceeds the limit (4300 digits)"),
    (GOOD + f"{'a' * 100}: 1\nrows: []", f"there is no '{'a' * 77}...'"),
    (GOOD + "notes: &a [a]\nbase: *a\nrows: []", "broken.yaml:5: aliases are not read, got '*a'"),
    (GOOD + "rows: !!set {a}", "broken.yaml:4: tags are not read, got 'tag:yaml.org,2002:set'"),
    (GOOD + "rows: !!timestamp 2001-13-45", "broken.yaml:4: tags are not read"),
    (GOOD + f"rows: {'[' * 5000}", "broken.yaml:4: more than 10 levels"),
    (GOOD + "rows: ${", "broken.yaml: "),
    ("3", "broken.yaml:1: expected names, and what each stands for, got '3'"),
    (
        "- a",
        "expected title, source, rows, extends, base, seeds, analysis, command, notes by name, got ['a']",
    ),
    ("", "broken.yaml: title is missing"),
    ("title: a\n---\ntitle: b", "broken.yaml:2: expected a single document in the stream but found another"),
    ("title: caf\udce9", "broken.yaml:1: not UTF-8 (unexpected end of data at byte 11 of the line)"),
    ("title: a\nsource: \0", "broken.yaml:2: NUL byte"),
    ("title: a\nsource: \x07", "broken.yaml:2: U+0007: special characters are not allowed"),
    (
        GOOD + "rows: [{label: a, run: [], measure: {of: b, figure: type, key: c}}]",
        "row 'a': measure belongs to the rows of an analysis",
    ),
    (
        ANALYSIS.format("type"),
        "row 1 ('a'): measure must be of, figure and key, and over or only, by name, got 't",
    ),
    (ANALYSIS.format("{of: b, figure: type}"), "row 1 ('a'): measure: key is missing"),
    (
        ANALYSIS.format("{of: b, figur: type, key: c}"),
        "row 1 ('a'): measure: there is no 'figur'; did you mean 'figure'?",
    ),
    (ANALYSIS.format("{of: b, figure: length, key: 1}"), "row 1 ('a'): measure: key must be a text, got 1"),
    (
        ANALYSIS.format("{of: b, figure: kind, key: c}"),
        "row 1 ('a'): measure: figure must be one of type, length, chunk, got 'kind'",
    ),
    (
        ANALYSIS.format("{of: b, figure: length, key: '4'}"),
        "key of figure length must be one of 1, 2, 3, more than 3, got '4'",
    ),
    (
        ANALYSIS.format("{of: b, figure: chunk, key: M}"),
        "key of figure chunk must be one of O, S, B, I, E, got 'M'",
    ),
    (
        ANALYSIS.format("{of: b, figure: type, key: c, only: C1}"),
        "only belongs to figure chunk, not to type",
    ),
    (
        ANALYSIS.format("{of: b, figure: chunk, key: O, only: C0}"),
        "only must be H, C (all heads) or a head such as C1, got 'C0'",
    ),
    (
        ANALYSIS.format("{of: b, figure: chunk, key: O, over: b}"),
        "over must be another row than of, got 'b' twice",
    ),
    (
        ANALYSIS.format("{of: 'WNUT, Atta', figure: type, key: c}"),
        "row 'a': measure: of must be a row of li2020_table1 that is run, got 'WNUT, Atta'; did you mean",
    ),
    (
        ANALYSIS.format(
            "{of: 'WNUT, Att', figure: type, key: c, over: 'WNUT, CRF-BiLSTM-BiLSTM (Lin et al. 2017)'}"
        ),
        "row 'a': measure: over must be a row of li2020_table1 that is run, got 'WNUT, CRF-BiLSTM",
    ),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[message[:40] for _, message in BROKEN])
def test_a_broken_table_is_refused_with_file_row_rule_and_value(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        tables.read(path)
    assert type(error.value) is ValueError
    assert str(error.value).startswith(f"{path}:")
    assert str(error.value).isprintable()


def test_an_unknown_table_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no table 'yang2020_table_12'; did you mean 'yang2020_table12'\?"):
        tables.load("yang2020_table_12")
