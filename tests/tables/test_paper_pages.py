"""results/PAPER.md: its figures against the archived runs, recomputed, and what a template may not do."""

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from places import RESULTS

from ner_experiments.tables import paper_pages, results_folder, spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row

TABLE = "yang2020_table12"
CALL = f'table("{TABLE}", "data=weibo", "trainer.max_epochs=3")'


def measured(*results: Result) -> paper_pages.Measured:
    """These rows as a template has them."""
    return paper_pages.Measured(Page(spec.load(TABLE), results), Path(), "")


def rendered(template: str, folder: Path) -> str:
    (folder / TABLE).symlink_to(RESULTS / TABLE)
    (folder / paper_pages.TEMPLATES).mkdir()
    (folder / paper_pages.TEMPLATES / "paper.md.j2").write_text(template, encoding="utf-8")
    (path,) = paper_pages.write_all(folder)
    assert path == folder / "paper.md"
    return path.read_text(encoding="utf-8")


def metrics(label: str) -> list[dict[str, Any]]:
    """Scores of the row's archived runs, in the order of their seeds."""
    files = (RESULTS / TABLE / "weibo-max_epochs-3" / "runs").glob("*.json")
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    own = [run["metrics"] for run in runs if run["label"] == label]
    return sorted(own, key=lambda run: run["seed"])


def scores(label: str) -> list[float]:
    return [100 * run["test"]["f1"] for run in metrics(label)]


def test_kept_output_is_read(tmp_path: Path) -> None:
    (tmp_path / "corpora").symlink_to(RESULTS / "corpora")
    assert rendered('{{ kept("corpora/conll2003").splits.train.sentences }}', tmp_path) == "14041"
    with pytest.raises(ValueError, match=r"corpora/none\.json: no such file"):
        paper_pages.kept(tmp_path, "corpora/none")


def test_a_row_and_a_gap_are_those_of_the_runs(tmp_path: Path) -> None:
    a, b = "residual, 2 layers", "stacked, 2 layers"
    calls = (f"ours({a!r})", f"published({a!r})", f"gap({a!r}, {b!r})", f"published_gap({a!r}, {b!r})")
    template = "\n".join(f"{{{{ {CALL}.{call} }}}}" for call in calls)
    ours, published, gap, published_gap = rendered(template, tmp_path).splitlines()
    assert ours == f"{mean(scores(a)):.2f} ± {stdev(scores(a)):.2f} (3)"
    assert published == "91.38"
    difference = mean(x - y for x, y in zip(scores(a), scores(b), strict=True))
    assert gap.startswith(f"{difference:+.2f} (")
    assert published_gap == "+0.83"


def test_dev_is_the_mean_of_what_the_chosen_epochs_had(tmp_path: Path) -> None:
    label = "residual, 2 layers"
    other = "stacked, 2 layers"
    calls = f"{{{{ t.dev({label!r}) }}}} {{{{ t.dev_difference({label!r}, {other!r}) }}}}"
    dev, difference = rendered(f"{{% set t = {CALL} %}}{calls}", tmp_path).split()
    ours, theirs = (100 * mean(run["dev"]["f1"] for run in metrics(row)) for row in (label, other))
    assert float(dev) == pytest.approx(ours)
    assert difference == f"{ours - theirs:+.2f}"


def test_rows_plots_and_hours_are_shown(tmp_path: Path) -> None:
    call = "{{ t.rows() }}\n{{ t.plots() }}\n{{ t.hours() }}"
    text = rendered(f"{{% set t = {CALL} %}}{call}", tmp_path)
    assert text.count("\n| ") == 2 - 1 + 8
    (picture,) = re.findall(r"\]\((.+)\)", text)
    root = ElementTree.fromstring((tmp_path / picture).read_text(encoding="utf-8"))
    assert "var(" not in ElementTree.tostring(root, encoding="unicode")
    assert float(root.get("width", "0")) > 100
    assert re.search(r"^\d+\.\d$", text, re.MULTILINE)


def test_costs_stand_beside_the_scores(tmp_path: Path) -> None:
    calls = "{{ t.rows() }}\n{{ t.rows_and_costs() }}"
    rows = rendered(f"{{% set t = {CALL} %}}{calls}", tmp_path).splitlines()
    plain, costly = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    assert costly[0] == f"{plain[0]} weights of the model | s per epoch |"
    for with_costs, without in zip(costly[2:], plain[2:], strict=True):
        label = without.split(" | ")[0].removeprefix("| ")
        own = metrics(label)
        seconds = sum(run["seconds"] for run in own) / sum(run["epochs"] for run in own)
        assert with_costs == f"{without} {own[0]['model_weights']:,} | {seconds:.1f} |"


def test_an_analysis_is_made_of_the_archived_runs_of_its_table() -> None:
    (folder,) = (RESULTS / "li2020_table1").iterdir()
    overrides = json.loads((folder / "table.json").read_text(encoding="utf-8"))["overrides"]
    archived = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "runs").glob("*.json")]
    location = {
        (run["label"], run["metrics"]["seed"]): run["errors"]["breakdown"]["type"]["location"]
        for run in archived
    }
    figures = {
        row: 200 * group["correct"] / (group["predicted"] + group["gold"]) for row, group in location.items()
    }
    gains = [
        score - figures["WNUT, Baseline", seed]
        for (label, seed), score in figures.items()
        if label == "WNUT, Cross" and ("WNUT, Baseline", seed) in figures
    ]
    found = paper_pages.measured(RESULTS, results_folder.read, "li2020_table3", *overrides)
    assert found.ours("Cross, WNUT, location").startswith(f"{mean(gains):.2f} ")
    assert found.place == f"li2020_table3/{folder.name}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ('{{ table("yang2020_table12") }}', "no runs of yang2020_table12 are archived"),
        ('{{ run("a_rum") }}', "a_rum.json: no such file; did you mean 'a_run'?"),
        (f'{{{{ {CALL}.ours("residual, 9 layers") }}}}', "has no row 'residual, 9 layers'; did you mean"),
        ("{{ tabel }}", "'tabel' is undefined"),
        (f"{{{{ {CALL}.ours() }}}}", "missing 1 required positional argument"),
        ("{% if", "unexpected 'end of template'"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ],
)
def test_an_error_in_a_template_is_reported_with_its_name(
    template: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "a_run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        rendered(template, tmp_path)
    assert str(error.value).startswith(f"{tmp_path}/templates/paper.md.j2: ")


@pytest.mark.parametrize("published", [None, "relied on", ["a", "b"]])
def test_what_is_no_published_number_is_refused_with_its_row(published: object) -> None:
    rows = measured(Result(Row(label="one", published=published), {1: 90.0}))  # type: ignore[arg-type]
    message = re.escape(f"{TABLE}, row 'one': expected a published number, got {published!r}")
    for call in (rows.published, lambda label: rows.published_gap(label, label)):
        with pytest.raises(ValueError, match=message):
            call("one")


@pytest.mark.parametrize(
    ("first", "words", "expected"),
    [
        (0, "Defender Ann Lee rose", "Defender [Ann Lee]PER rose"),
        (1, "Ann Lee rose", "[Ann Lee]PER rose"),
        (3, "rose to Rome", "rose to [Rome]LOC"),
        (3, "rose to", "rose to"),
    ],
)
def test_words_are_shown_with_their_mentions_in_brackets(first: int, words: str, expected: str) -> None:
    tags = ("O", "B-PER", "E-PER", "O", "O", "S-LOC")
    assert paper_pages.bracketed(tags, words.split(), first) == expected


@pytest.mark.parametrize(
    ("first", "words", "message"),
    [
        (0, "Defender Ann", "a PER mention goes beyond 'Defender Ann'"),
        (2, "Lee rose", "a PER mention goes beyond 'Lee rose'"),
        (-1, "a b", "'a b' from word -1 on: the sentence has 4 words"),
        (3, "a b", "'a b' from word 3 on: the sentence has 4 words"),
    ],
)
def test_words_that_cut_a_mention_or_leave_their_sentence_are_refused(
    first: int, words: str, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        paper_pages.bracketed(("O", "B-PER", "I-PER", "O"), words.split(), first)


def test_runs_that_tag_words_alike_are_counted() -> None:
    def run(*tags: str) -> Any:
        return SimpleNamespace(predicted_tags=lambda: [("O",), tags])

    runs = {seed: run("B-PER", "O") for seed in (1, 2)} | {3: run("O", "O")}
    rows = measured(Result(Row(label="one"), dict.fromkeys(runs, 90.0), runs=runs))
    assert rows.tagged("one", 1, 0, "Ann rose") == "[Ann]PER rose (2), Ann rose (1)"


def test_a_row_without_runs_has_its_published_number_and_no_other() -> None:
    rows = measured(*(Result(Row(label=label, published=it)) for label, it in (("a", 97.55), ("b", 97.11))))
    assert rows.published_gap("a", "b") == "+0.44"
    with pytest.raises(ValueError, match=f"{TABLE} has no run of row 'a'"):
        rows.ours("a")


def test_rows_of_two_tables_are_held_against_each_other() -> None:
    row = Row(label="one", published=90.0, also={"drop": -1.44})
    below, above = (measured(Result(row, {1: score, 2: score})) for score in (88, 90))
    assert below.gap("one", "one", above).startswith("-2.00 (")
    assert below.gap("one", "one").startswith("+0.00 (")
    alone = measured(Result(row, {1: 87}))
    assert alone.gap("one", "one", alone) == "+0.00 (one seed)"
    assert above.gap("one", "one", alone) == "+3.00 (seeds: 2 against 1)"
    higher = measured(Result(replace(row, published=91.25)))
    assert below.published_gap("one", "one", higher) == "-1.25"
    assert below.published_also("one", "drop") == "-1.44"
    with pytest.raises(ValueError, match=f"{TABLE}, row 'one': has no 'drip'; did you mean 'drop'"):
        below.published_also("one", "drip")
