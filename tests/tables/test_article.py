"""`ner-experiments table NAME --paper`: what its files say of runs, and that LaTeX accepts them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from in_process import Ner
from places import ROOT
from toy_rows import TOY, finish

from ner_experiments.config.compose import jobs
from ner_experiments.main import cli
from ner_experiments.tables import registering, spec, sweeps

SWEEP = ["paper=yang2020", "model=residual", "layers=2,3", "model.dropout=0.1,0.2", *TOY]
WRONG = {"2 0.1": (15, 16, 17), "2 0.2": (1, 2, 3), "3 0.1": (1, 3, 2), "3 0.2": (20, 19, 22)}
"""Wrong test sentences of three seeds, by layers and dropout."""
OTHERS = "817c44a36fd0"
"""The hash of another sweep's registration."""
MINE = f"""
title: Layers
source: mine
base: [paper=yang2020, model=residual, {", ".join(f'"{it}"' for it in TOY)}]
seeds: [1, 2]
rows:
  - {{label: two, run: [layers=2]}}
  - {{label: three, run: [layers=3]}}
  - {{label: four, run: [layers=4]}}
"""
COMPILED = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex and bibtex")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files for an article of a grid of two settings, of which two rows are alike."""
    folder = tmp_path_factory.mktemp("runs")
    place = f"output_dir={folder}"
    for row, wrong in WRONG.items():
        layers, dropout = row.split()
        overrides = [*SWEEP[:2], f"layers={layers}", f"model.dropout={dropout}", *TOY, place]
        for seed, number in enumerate(wrong, start=1):
            finish(overrides, seed, number)
    assert cli(["table", *SWEEP, "--over", "--output", str(folder), "--paper", str(folder / "paper")]) == 0
    return folder / "paper/sweep"


@pytest.fixture(scope="module", params=["huang2015_table3", "zukov2018_table2"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert cli(["table", request.param, "--paper", str(folder)]) == 0
    return folder / request.param


@pytest.fixture
def mine(elsewhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of one's own, one of whose rows is also that of a registered sweep, with other seeds."""
    folder = Path("sweeps").absolute()
    folder.mkdir()
    (folder / "mine.yaml").write_text(MINE, encoding="utf-8")
    monkeypatch.setattr(spec, "SWEEPS", folder)
    for layers, wrong in {2: (15, 11), 3: (1, 2), 4: (2, 8)}.items():
        for seed, number in enumerate(wrong, start=1):
            finish([*SWEEP[:2], f"layers={layers}", *TOY, "output_dir=outputs"], seed, number)
    for seed, number in ((11, 10), (12, 17)):
        finish([*SWEEP[:2], "layers=2", *TOY, "output_dir=outputs"], seed, number, registration=OTHERS)


@pytest.mark.usefixtures("mine")
def test_a_table_of_one_s_own_has_its_own_comparisons_and_claims_no_other_sweep_s_registration(
    ner: Ner,
) -> None:
    ner("table", "mine", "--paper")
    methods = " ".join(Path("paper/mine/methods.tex").read_text(encoding="utf-8").split())
    assert "This table has no registration of its own, so its comparisons are exploratory." in methods
    assert OTHERS not in methods
    assert "2 pairs of rows (each row and the first on its data) were compared over seeds" in methods
    assert "over 2 to 4 seeds, two is behind three ($-$" in methods
    content = ner.json("table", "mine")
    for it in content["comparisons"]:
        assert f"corrected p = {it['p_adjusted']:.3f}" in methods
    remark = (
        "Seeds 11 and 12 counted too, though not in the table's seeds: the p values assume that seeds were not added "
        "because of scores."
    )
    assert remark in methods
    assert content["notes"] == [remark]
    assert f"mine: {remark}" in ner("compare", "mine")
    table = Path("paper/mine/table.tex").read_text(encoding="utf-8")
    assert [r"\textbf" in line for line in re.findall(r"(?m)^\w.* & .* \\\\$", table)] == [False, True, False]
    assert "Bold: the highest mean." in table


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("finished", [2, 3])
def test_a_registered_sweep_says_what_was_registered(ner: Ner, finished: int) -> None:
    overrides = [*SWEEP[:2], "layers=2,3", *TOY, "seed=1,2,3"]
    table = sweeps.record(sweeps.of_jobs(jobs(overrides), "", overrides), Path("outputs"))
    name = registering.register(table, [], (1, 2, 3), "", Path("outputs")).hash
    for layers in (2, 3):
        for seed in range(1, finished + 1):
            row = [*SWEEP[:2], f"layers={layers}", *TOY, "output_dir=outputs"]
            finish(row, seed, 5 * layers + seed, registration=name)
    ner("table", "layers", "--paper")
    methods = " ".join(Path("paper/layers/methods.tex").read_text(encoding="utf-8").split())
    if finished == 3:
        text = "comparison, layers=2 - layers=3, were registered before the first run"
        assert f"Rows, seeds and the primary {text} (hash {name}); all others are exploratory." in methods
    else:
        text = f"The registration {name} is of other runs or scores than these, so that all comparisons"
        assert f"{text} are exploratory." in methods


def test_settings_are_columns_and_rows_that_are_not_behind_are_bold(sweep: Path) -> None:
    text = (sweep / "table.tex").read_text(encoding="utf-8")
    heading, *lines = re.findall(r"(?m)^(.* & .*) \\\\$", text)
    assert heading == r"layers & dropout & test F1 & 95 \% interval"
    assert [line.split(" & ")[:2] for line in lines] == [row.split() for row in WRONG]
    assert [r"\textbf" in line for line in lines] == [False, True, True, False]


def test_the_effects_of_a_grid_have_a_table_a_figure_and_a_sentence(sweep: Path) -> None:
    text = (sweep / "effects.tex").read_text(encoding="utf-8")
    tests, *_ = re.findall(r"(?s)\\midrule\n(.*?)\\bottomrule", text)
    assert [line.split(" & ")[0] for line in tests.splitlines()] == [
        "layers",
        "dropout",
        r"layers $\times$ dropout",
    ]
    assert r"(layers=3 $-$ 2) $\times$ (model.dropout=0.2 $-$ 0.1)" in text
    preview = (sweep / "preview.tex").read_text(encoding="utf-8")
    assert r"test F1 by layers $\times$ dropout" in preview
    assert preview.count(r"\includegraphics") == len([*sweep.glob("figure-*.pdf")]) == 2
    methods = (sweep / "methods.tex").read_text(encoding="utf-8")
    assert (
        r"were tested by an analysis of variance~\cite{montgomery2017} with seeds as blocks, with Holm"
        in methods
    )


def test_the_methods_say_what_was_done(sweep: Path) -> None:
    text = " ".join((sweep / "methods.tex").read_text(encoding="utf-8").split())
    assert r"The taggers~\cite{yang2020,lafferty2001} were trained and scored with ner\_experiments" in text
    assert r"All rows have paper=yang2020, model=residual, data=toy\_zh, data.sentences=" in text
    assert "Each row was run with 3 random seeds" in text
    assert "All 6 pairs of rows were compared over seeds by Welch's two-sided $t$-test" in text
    assert "has no registration of its own, so its comparisons are exploratory" in text


def test_other_settings_than_the_paper_s_are_said(published: Path) -> None:
    text = (published / "methods.tex").read_text(encoding="utf-8")
    assert "Not the paper's settings: " in text
    assert r"glove.6B.50d.10k" in text or r"random\_huang2015" in text


def test_every_citation_has_an_entry(sweep: Path, published: Path) -> None:
    for folder in (sweep, published):
        methods, entries = ((folder / name).read_text() for name in ("methods.tex", "references.bib"))
        cited = {key for keys in re.findall(r"\\cite\{(.*?)\}", methods) for key in keys.split(",")}
        assert cited == {*re.findall(r"(?m)^@\w+\{(\w+),", entries)}


@COMPILED
@pytest.mark.slow
def test_latex_accepts_it(sweep: Path, published: Path) -> None:
    for folder in (sweep, published):
        latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "preview"]
        for command in (latex, ["bibtex", "preview"], latex, latex):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        log = (folder / "preview.log").read_text(encoding="utf-8", errors="replace")
        assert "undefined" not in log
        assert "PDF version" not in log
        assert "Warning--" not in (folder / "preview.blg").read_text()


def test_a_table_without_training_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["table", "yang2020_table7", "--output", str(tmp_path), "--paper", str(tmp_path)]) == 1
    said = "yang2020_table7: --paper describes training runs, and none of its rows has a finished one\n"
    assert capsys.readouterr().err == said
