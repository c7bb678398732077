"""Pages of archived runs: their runs, their statement about the code, and their folder."""

import json
from pathlib import Path

import made_up_trials
import pytest
from cases import refused
from checksummed import edit
from in_process import Ner
from toy_rows import TOY, page_of

from ner_experiments.runs import store
from ner_experiments.tables import origin, results_folder, spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.scores import Page


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return page_of(f"output_dir={tmp_path}")


def test_a_page_says_how_the_runs_in_its_rows_were_made_and_no_others(page: Page, tmp_path: Path) -> None:
    """The two runs of a row that has been renamed are on no page."""
    folder = results_folder.add(page, tmp_path / "results")
    assert "- 5 runs," in (folder / results_folder.PAGE).read_text()
    for path in (folder / store.RUNS).glob("*.json"):
        edit(path, lambda it: it.update(label=it["label"].replace("stacked, 2 layers", "stacked")))
    results_folder.write(folder)
    text = (folder / results_folder.PAGE).read_text()
    assert "- 3 runs," in text
    assert "seeds=1,2,3`" in text


def test_a_page_without_runs_says_nothing_of_their_making(page: Page, tmp_path: Path) -> None:
    folder = results_folder.add(page, tmp_path / "results")
    (folder / store.TABLE).write_text(
        json.dumps({"table": page.table.name, "overrides": [*TOY, "optimizer.lr=0.002"]})
    )
    results_folder.write(folder)
    assert "How it was made" not in (folder / results_folder.PAGE).read_text()


def test_a_changed_source_is_marked_at_its_commit() -> None:
    shown = {"0123456789abcdef": "0123456789ab", "0123456789abcdef+": "0123456789ab+", None: "unknown"}
    assert {it: origin.short_commit({"commit": it}) for it in shown} == shown


def test_an_analysis_is_archived_with_the_runs_it_is_made_from(tmp_path: Path) -> None:
    page = collect(spec.load("li2020_table4"))
    with pytest.raises(ValueError, match="li2020_table4 is made from the runs of li2020_table1; archive"):
        results_folder.add(page, tmp_path)


def test_the_folder_of_a_command_s_table_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "a,b {c}" / "xor"
    keep_trials(folder)
    assert results_folder.write(folder).results[0].scores == {0: 3, 1: 3}


def keep_trials(folder: Path) -> None:
    """Four trainings of one architecture, which took 90 seconds, beside three measurements."""
    made_up_trials.write(folder, {"baseline": made_up_trials.model([3, 3], [3, 2], [0.0, 1e-16, 2e-16])})
    (folder / store.TABLE).write_text(json.dumps({"table": "xor", "overrides": []}))


def test_what_a_command_measured_has_its_trainings_cost_and_making_on_its_page(
    tmp_path: Path, ner: Ner
) -> None:
    keep_trials(tmp_path / "xor")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.md.j2").write_text("{{ 1 + 1 }} pages")
    assert ner("tables", str(tmp_path)) == f"{tmp_path}/xor/README.md\n{tmp_path}/page.md\n"
    assert (tmp_path / "page.md").read_text() == "2 pages"
    assert (
        "| [xor](xor/README.md) | the paper's | 2 of 6 | 2 | 4 | 0.0 |  |"
        in (tmp_path / results_folder.INDEX).read_text()
    )
    text = (tmp_path / "xor" / results_folder.PAGE).read_text()
    assert "| baseline | 2 | 2.0e-16 | 3 of 4 | 3 of 4 | 0, 0 | yes |" in text
    assert "](xor.png)" in text
    cost = "4 trainings and 3 measurements at random weights, in 1.5 minutes by 2 processes"
    assert f"- {cost}, on test (1 thread); torch 2." in text
    assert "- Code: checksum def, commit abc." in text


DAMAGED = refused("""
 -> not JSON (Expecting value at character 1)
[] -> expected a JSON object
{} -> table is missing
{"table": 3, "overrides": []} -> table must be a text, got 3
{"table": "xor", "overrides": [1]} -> overrides must be a list of texts, got [1]
""")


@pytest.mark.parametrize(("text", "message"), DAMAGED)
def test_a_damaged_table_json_is_named(text: str, message: str, tmp_path: Path, ner: Ner) -> None:
    path = tmp_path / "xor" / store.TABLE
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert ner.error("tables", str(tmp_path)) == f"{path}: {message}\n"


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["words.input.path=data/glove/glove.6B.50d.txt", "data=weibo"], "glove.6B.50d-weibo"),
        (["model/norm=none", "trainer.max_epochs=3"], "norm-none-max_epochs-3"),
        (["words.input.folder=/b/bert/", "optimizer.lr=0.003"], "bert-lr-0.003"),
        (["++data.sentences={train: 20, dev: 5}", "~chars"], "train-20-dev-5-chars"),
        (["model=" + 100 * "a"], 60 * "a"),
        (["model=" + 59 * "a", "data=weibo"], 59 * "a"),
        (["model=runs"], "runs-2"),
    ],
)
def test_a_folder_is_named_by_the_values_of_its_overrides(
    overrides: list[str], name: str, tmp_path: Path
) -> None:
    assert results_folder.new_folder(tmp_path, "a", overrides) == tmp_path / "a" / name
    (tmp_path / "a" / name).mkdir(parents=True)
    assert results_folder.new_folder(tmp_path, "a", overrides).name in (f"{name}-2", "runs-3")
    assert results_folder.new_folder(tmp_path, "a", []) == tmp_path / "a"


def test_a_folder_is_found_by_its_overrides_whatever_its_name(tmp_path: Path) -> None:
    archived = {
        "": [],
        "any": ["words.input.path=data/glove.txt", "layers=2"],
        "name": ["words.input.path=data/glove.txt"],
    }
    for name, overrides in archived.items():
        (tmp_path / "a" / name).mkdir(exist_ok=True, parents=True)
        content = json.dumps({"table": "a", "overrides": overrides})
        (tmp_path / "a" / name / store.TABLE).write_text(content)
    archived["any"] = ["layers=2", "words.input.path=/corpora/glove.txt"]
    for name, overrides in archived.items():
        found = store.find_archive(tmp_path, "a", overrides)
        assert found is not None
        assert found.folder == tmp_path / "a" / name
    assert store.find_archive(tmp_path, "a", ["layers=2"]) is None
    assert store.find_archive(tmp_path, "b", []) is None


def test_runs_of_the_same_overrides_are_archived_in_one_folder(page: Page, tmp_path: Path) -> None:
    results = tmp_path / "results"
    folder = results_folder.add(page, results)
    assert folder == results / page.table.name / "toy_zh-train-20-dev-5-test-30"
    renamed = folder.rename(folder.with_name("renamed"))
    assert results_folder.add(page, results) == renamed
    assert [it.folder for it in store.archives(results)] == [renamed]
