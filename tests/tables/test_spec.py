"""sweeps/*.yaml: each figure against the papers' transcription, each row against its declared change."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from ner_experiments.tables import spec
from ner_experiments.tables.experiments import compose, experiments, joined
from ner_experiments.tables.spec import Row

PAPERS = os.environ.get("NER_PAPERS_DIR")
NAMES = spec.names()
EXPECTED = [
    *(f"huang2015_table{number}" for number in range(2, 7)),
    *("li2020_figure2", "li2020_table1", "li2020_table3", "li2020_table4", "li2020_table5"),
    *("ours_huang2015_pos", "ours_huang2015_readings", "ours_zukov2018_readings", "xor"),
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
    assert [stated(row) for row in spec.load(name).rows] == expected


@pytest.mark.skipif(PAPERS is None, reason="NER_PAPERS_DIR is not set")
@pytest.mark.parametrize(("name", "contradiction"), [("5", "text_says"), ("7", "tables_11_to_13_say")])
def test_where_the_paper_contradicts_itself_a_note_says_so(name: str, contradiction: str) -> None:
    papers: Any = OmegaConf.to_container(OmegaConf.load(Path(str(PAPERS)) / "published.yaml"))
    (row,) = [row for row in spec.load(f"yang2020_table{name}").rows if row.note]
    assert str(papers["yang2020"][f"table{name}"][contradiction]) in row.note


@pytest.mark.skipif(PAPERS is None, reason="NER_PAPERS_DIR is not set")
@pytest.mark.parametrize("number", ["2", "3", "4"])
def test_units_are_those_of_the_figure(number: str) -> None:
    papers: Any = OmegaConf.to_container(OmegaConf.load(Path(str(PAPERS)) / "published.yaml"))
    rows, figures = spec.load(f"zukov2018_table{number}").rows, papers["zukov2018"][f"table{number}"]
    for row, printed in zip(rows, figures, strict=True):
        settings = dict(item.split("=") for item in row.run or ())
        for key, setting in (("units", "model.num_units"), ("unit_size", "model.unit_size")):
            assert str(printed.get(key)) == str(settings.get(setting))
            assert printed.get(key) is None or str(printed[key]) in re.findall(r"\d+", row.label)


FOLLOWERS = {
    "layers": ["model.num_layers"],
    "trainer.max_epochs": ["trainer.patience"],
    "words.input.path": ["init_from.words.input.path"],
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
    table = spec.load(name)
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
    """Table 4's rows are rows of table 2: the same settings, written differently."""
    rows = {experiment.row.label: experiment for experiment in experiments(spec.load("huang2015_table2"))}
    (plain, senna) = experiments(spec.load("huang2015_table4"))
    assert plain.cfg == rows["random, BI-LSTM-CRF, POS"].cfg
    assert senna.cfg == rows["Senna, BI-LSTM-CRF, POS"].cfg


def test_of_overrides_with_one_key_the_last_counts() -> None:
    assert joined(("data=msra", "layers=4"), ("layers=3",), ("data=weibo",)) == ("data=weibo", "layers=3")
