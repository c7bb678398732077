"""Sweeps as tables: what is recorded, how it is found again, and every command that takes it."""

import errno
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import forked
import pytest
from cases import refused
from in_process import Ner
from omegaconf import OmegaConf
from toy_rows import TOY, finish

from ner_experiments.analysis.search_trials import Search, Trial
from ner_experiments.analysis.search_trials import write as write_search
from ner_experiments.config.compose import compose, jobs
from ner_experiments.experiment_data import unread_error
from ner_experiments.main import cli
from ner_experiments.runs.run import open_run
from ner_experiments.tables import spec, sweeps

pytestmark = pytest.mark.usefixtures("elsewhere")
SWEEP = ["model=residual", "layers=2,3", *TOY, "seed=1,2"]
FIXED = ["model=residual", *TOY]


def of(*overrides: str, name: str = "") -> spec.Table:
    return sweeps.of_jobs(jobs(overrides), name, overrides)


def recorded(*overrides: str, name: str = "") -> spec.Table:
    return sweeps.record(of(*overrides, name=name), Path("outputs"))


def test_a_recorded_sweep_is_shown_where_nothing_can_be_written(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = recorded(*SWEEP)

    def read_only(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(sweeps, "atomic_write", read_only)
    after = recorded(*SWEEP)
    assert (after.name, after.rows, after.seeds) == (before.name, before.rows, before.seeds)
    assert "Read-only file system; the sweep is recorded there already" in caplog.text
    with pytest.raises(OSError, match="Read-only file system"):
        recorded(*SWEEP[:-1], "seed=1,2,3")


@pytest.fixture
def finished(elsewhere: None) -> spec.Table:
    """A recorded sweep of two rows with two runs each, of which those of the second are better."""
    for layers, num_wrong in ((2, [10, 12]), (3, [1, 2])):
        for seed, wrong in enumerate(num_wrong, start=1):
            finish([*FIXED, f"layers={layers}", "output_dir=outputs"], seed, wrong)
    return recorded(*SWEEP)


def failed(*overrides: str) -> Path:
    """The folder of a run that failed before it had read its data."""
    path = unread_error(compose([*FIXED, *overrides]))
    path.parent.mkdir(parents=True)
    path.write_text("Traceback\nMemoryError: all of it")
    return path.parent


def test_a_row_whose_runs_failed_is_not_one_that_was_not_run(finished: spec.Table, ner: Ner) -> None:
    recorded(*FIXED, "layers=2,4", "seed=1,2", name="failing")
    folder = failed("layers=4", "seed=2")
    said = ner("table", "failing")
    assert f"Not counted: layers=4: 1 of 2 runs failed ({folder}: MemoryError: all of it); repeat the" in said
    assert "not counted" in said
    assert "were not run need" not in said


def test_every_output_says_which_runs_of_a_row_failed_or_were_short(
    finished: spec.Table, ner: Ner, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(*SWEEP[:-1], "seed=1,2,3,4")
    finish([*FIXED, "layers=2", "output_dir=outputs"], 3, 5, hint="only about 90 weight updates")
    folder = failed("layers=3", "seed=3")
    reason = (
        f"2 of 4 runs failed ({folder}: MemoryError: all of it); repeat the command of the sweep to retry"
    )
    failed("layers=3", "seed=4")
    said = ["1 of 3 runs of layers=2: only about 90 weight updates", f"layers=3: {reason}"]
    notes = ner.json("table", "layers")["notes"]
    assert notes[-2:] == said
    assert all(f"\n- {it}\n" in ner("table", "layers") for it in said)
    assert cli(["table", "layers", "--paper"]) == 0
    assert capsys.readouterr().err.splitlines() == said
    ner("report", "layers", "--output", "report")
    page = Path("report/layers.html").read_text(encoding="utf-8")
    assert all(it in page for it in said)


@pytest.mark.parametrize("command", ["predict", "export", "attention", "xor"])
def test_a_command_that_takes_one_run_names_those_of_a_sweep(
    command: str, finished: spec.Table, ner: Ner
) -> None:
    first, *others = ner.error(command, *["--run"] * (command == "xor"), "layers").splitlines()
    assert first == "layers: expected the folder of one run; those of layers, by dev F1:"
    runs = sorted(Path("outputs").glob("*/seed-*/"), key=lambda it: -open_run(it).metrics["dev"]["f1"])
    assert [Path(line.split()[1]) for line in others] == runs
    assert [line.split()[2] for line in others] == ["(layers=3)", "(layers=3)", "(layers=2)", "(layers=2)"]


def test_a_sweep_is_recorded_as_a_file_of_sweeps() -> None:
    table = recorded(*SWEEP)
    path = Path("outputs/sweeps/layers.yaml")
    assert spec.read(path) == table
    assert [row.label for row in table.rows] == ["layers=2", "layers=3"]
    assert table.seeds == (1, 2)
    assert table.title == "layers=2,3"
    assert "model=residual" in table.base
    assert list(table.overrides) == SWEEP
    assert table.is_sweep


def test_the_same_rows_are_the_same_sweep_in_any_order_and_seeds_are_added() -> None:
    recorded(*SWEEP)
    again = recorded(*TOY, "layers=3,2", "model=residual", "seed=5")
    assert (again.name, again.seeds) == ("layers", (1, 2, 5))
    assert sweeps.names(Path("outputs")) == ["layers"]


def test_commands_that_add_seeds_at_once_lose_none(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(*SWEEP)
    tables = [of(*SWEEP[:-1], f"seed={seed}") for seed in (5, 6, 7, 8)]
    read = spec.read

    def slowly(path: Path) -> spec.Table:
        table = read(path)
        time.sleep(0.05)
        return table

    monkeypatch.setattr(spec, "read", slowly)
    with ThreadPoolExecutor(4) as pool:
        [*pool.map(lambda table: sweeps.record(table, Path("outputs")), tables)]
    assert read(Path("outputs/sweeps/layers.yaml")).seeds == (1, 2, 5, 6, 7, 8)


def test_other_rows_are_another_sweep() -> None:
    recorded(*SWEEP)
    assert recorded(*FIXED, "layers=2,4").name == "layers_2"
    assert recorded(*FIXED, "layers=2,4", name="deeper").name == "deeper"
    assert recorded(*FIXED, "model.dropout=0.1,0.2", "layers=2,4").name == "dropout_layers"
    assert recorded(*FIXED, "seed=1,2").name == "seeds"
    with pytest.raises(ValueError, match=r"sweep\.name=deeper: .*deeper.yaml is a sweep of other rows"):
        recorded(*FIXED, "layers=2,5", name="deeper")


def test_rows_that_differ_only_in_the_files_that_they_read_are_other_rows() -> None:
    files = [*FIXED, "words=glove", "optimizer.lr=1"]
    recorded(*files, "words.input.path=a.txt,b.txt")
    before = Path("outputs/sweeps/path.yaml").read_bytes()
    assert recorded(*files, "words.input.path=c.txt,d.txt", "seed=7").name == "path_2"
    with pytest.raises(ValueError, match=r"sweep\.name=path: .*path.yaml is a sweep of other rows"):
        recorded(*files, "words.input.path=c.txt,d.txt", name="path")
    assert Path("outputs/sweeps/path.yaml").read_bytes() == before
    assert recorded(*files, "words.input.path=b.txt,a.txt", "++optimizer.lr=1.0").name == "path"


def test_a_sweep_that_can_no_longer_be_composed_does_not_hide_the_others(
    finished: spec.Table, ner: Ner
) -> None:
    path = Path("outputs/sweeps/mine.yaml")
    path.write_text(sweeps.as_yaml(replace(finished, base=("data=mine",))), encoding="utf-8")
    before = path.read_bytes()
    *_, first, second = sorted(ner("table").splitlines()[-2:])
    assert first.startswith("layers ")
    assert second.startswith("mine ")
    assert "; left out: mine, row 'layers=2': data=mine: " in second
    for command in ("table", "watch"):
        assert ner.json(command, *SWEEP)
    assert recorded(*SWEEP).name == "layers"
    with pytest.raises(ValueError, match=r"mine\.yaml is a sweep of other rows"):
        recorded(*SWEEP, name="mine")
    assert path.read_bytes() == before
    assert "data=mine: " in ner.error("table", "mine")


def test_a_name_of_a_published_table_is_refused_before_anything_is_written() -> None:
    with pytest.raises(ValueError, match=r"sweep\.name=xor: a published table has this name"):
        recorded(*FIXED, "layers=2,5", name="xor")
    assert not Path("outputs").exists()


REFUSED = refused("""
seed=1,1 -> two jobs of the sweep are the same run: seed=1
model=residual layers=2,2 -> are the same run: model=residual layers=2
optimizer.lr=0.1,1e-1 -> are the same run: optimizer.lr=0.1
output_dir=a,b -> output_dir=a,b: no part of an experiment
runtime.threads=1,2 -> runtime.threads=1,2: no part of an experiment
sweep.name=a/b seed=1,2 -> sweep.name must be made of letters
sweep.name=index seed=1,2 -> sweep.name=index: the index page of a report has this name
sweep.looks=3 layers=2,3 model=residual -> expected numbers of seeds, such as sweep.looks=3,5,8
sweep.looks=[3,2] layers=2,3 model=residual -> looks must be ascending
sweep.looks=[2,3] seed=1,2 -> seed=1,2: sweep.looks=[2,3] sets the number of seeds
sweep.looks=[2,3] model=residual layers=2,3 seed=4294967294 -> at least 0 and at most 4,294,967,295, got 4294967296
sweep.looks=[2,3] model=residual -> sweep.looks=2,3 compares rows, and this sweep has only one
table=yang2020_table9 sweep.looks=[2,3] -> compares rows, and yang2020_table9 has only one
table=yang2020_table12 sweep.name=mine -> sweep.name=mine: a table already has a name
""")


@pytest.mark.parametrize(("sweep", "rule"), REFUSED)
def test_a_wrong_sweep_is_refused_before_anything_starts(sweep: str, rule: str, ner: Ner) -> None:
    error = ner.error("train", "-m", *sweep.split())
    assert rule in error
    assert error.endswith("Nothing was started.\n")
    assert not Path("outputs").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train sweep.name=mine", "sweep.name=mine requires a sweep: add -m"),
        ("table layer", "there is no table or sweep in outputs/sweeps named 'layer'; did you mean 'layers'?"),
        *(
            (f"{command} layer", "layer: there is no such run, table or sweep; did you mean 'layers'?")
            for command in ("errors", "cases", "compare")
        ),
        (
            "table yang2020_table12 layers",
            "expected one table or sweep and then overrides, got yang2020_table12 and",
        ),
    ],
)
def test_a_wrong_name_is_refused(command: str, message: str, ner: Ner) -> None:
    recorded(*SWEEP)
    assert message in ner.error(*command.split())


def test_a_value_of_several_lines_cannot_be_swept() -> None:
    values = 'words.input.path="a\nb",c'
    with pytest.raises(ValueError, match="a sweep is recorded with values of one line"):
        sweeps.of_jobs([["words.input.path=a\nb"], ["words.input.path=c"]], "", [values])


def test_a_table_of_a_sweep_by_name_and_by_its_overrides(finished: spec.Table, ner: Ner) -> None:
    by_name = ner.json("table", "layers")
    assert ner.json("table", *SWEEP, "logger=csv") == by_name
    assert [row["label"] for row in by_name["rows"]] == ["layers=2", "layers=3"]
    (pair,) = by_name["pairs"]
    assert (pair["a"], pair["b"]) == ("layers=2", "layers=3")
    means = [row["measured"]["mean"] for row in by_name["rows"]]
    assert pair["difference"] == pytest.approx(means[0] - means[1])
    assert pair["low"] < pair["difference"] < pair["high"]


def test_the_page_of_a_sweep_begins_with_its_answer_and_its_formats_agree(
    finished: spec.Table, ner: Ner
) -> None:
    text = ner("table", "layers")
    heading, _, verdict, *_ = text.split("\n\n")
    assert heading == "# layers=2,3"
    lines = [line for line in text.splitlines() if line.startswith("    layers=")]
    assert len(lines) == 2
    assert lines[0].index("|") < lines[1].index("|")  # more wrong: further left
    for line in text.split("Runs:\n\n")[1].splitlines():
        folder, seeds = line.split("`")[1], line.split(": ")[-1]
        assert [(Path(folder) / seed / "metrics.json").is_file() for seed in seeds.split(", ")] == [True] * 2
    content = ner.json("table", "layers")
    assert "comparisons" not in content
    assert content["verdict"] == verdict
    assert verdict in ner("table", "layers", "--latex")
    assert "**Not the sweep's settings:** `optimizer.lr=0.5`" in ner("table", "layers", "optimizer.lr=0.5")


def test_finished_runs_that_were_no_sweep_are_collected_on_request(
    finished: spec.Table, capsys: pytest.CaptureFixture[str], ner: Ner
) -> None:
    Path("outputs/sweeps/layers.yaml").unlink()
    assert "`ner-experiments table --over` collects finished runs" in ner.error("table", *SWEEP)
    content = ner.json("table", "--over", *FIXED, "layers=2,3,4")
    assert [bool(row["measured"]) for row in content["rows"]] == [True, True, False]
    assert len(content["pairs"]) == 1
    assert cli(["table", "--over", *FIXED, "layers=2,3", "optimizer.lr=0.25"]) == 0
    first, *rows = capsys.readouterr().err.splitlines()
    assert first == "No finished run has these settings."
    assert [re.sub("outputs/.*?,", "DIR,", row) for row in rows] == [
        f"layers={layers}: the nearest, DIR, has optimizer.lr=0.001" for layers in (2, 3)
    ]


def test_the_answer_names_seeds_that_were_run_outside_the_sweep(finished: spec.Table, ner: Ner) -> None:
    assert "though not of the recorded sweep" not in ner.json("table", "layers")["verdict"]
    finish([*FIXED, "layers=3", "output_dir=outputs"], 3, 1)
    verdict = ner.json("table", "layers")["verdict"]
    assert "Seed 3 counted too, though not of the recorded sweep: the p values assume that" in verdict
    assert "though not of" not in ner.json("table", "--over", *FIXED, "layers=2,3")["verdict"]


def test_a_damaged_record_does_not_hide_the_others(finished: spec.Table, ner: Ner) -> None:
    Path("outputs/sweeps/broken.yaml").write_text("rows: [", encoding="utf-8")
    assert ner.json("table", *SWEEP)["name"] == "layers"
    assert "outputs/sweeps/broken.yaml" in ner.error("table", "broken")


def test_errors_and_cases_take_a_sweep(finished: spec.Table, ner: Ner) -> None:
    text = ner("cases", "layers")
    assert (text.count("(layers=2)"), text.count("(layers=3)")) == (2, 2)
    for command in ("errors", "cases"):
        by_name = ner(command, "layers", "--json")
        assert ner(command, *SWEEP, "output_dir=outputs", "--json") == by_name
        unknown = ner.error(command, *FIXED, "layers=4,5")
        assert "outputs/sweeps has no sweep with the rows of model=residual" in unknown
        no_name = ner.error(command, "output_dir=outputs")
        assert no_name.startswith("output_dir=outputs: expected a run, or a table or sweep")
    recorded(*FIXED, "layers=5,6", name="never")
    assert "never: no run of it is finished in outputs\n" in ner.error("cases", "never")


def test_every_command_names_rows_that_are_not_counted(
    finished: spec.Table, ner: Ner, caplog: pytest.LogCaptureFixture
) -> None:
    for path in Path("outputs").glob("*/seed-*/code.json"):
        if OmegaConf.load(path.with_name("config.yaml")).layers == 2:
            path.write_text('{"ner_experiments.models.residual": "another"}')
    text = ner("cases", "layers")
    assert (text.count("(layers=2)"), text.count("(layers=3)")) == (0, 2)
    reason = "layers=2: runs by other code: ner_experiments/models/residual.py has changed since"
    assert f"not counted: {reason}" in caplog.text
    gold = next(Path("outputs").glob("*/seed-1/predictions/test.conll"))
    rescored = ner("rescore", "layers", "--gold", str(gold), "--gold-columns", "word=0,tag=1")
    assert f"- {reason}" in rescored
    printed = ner("table", "layers")
    assert (
        printed.index(f"Not counted: {reason}") < printed.index("Exploratory") < printed.rindex(reason)
    )  # the last among notes
    ner("report", "layers", "--output", "report")
    page = Path("report/layers.html").read_text(encoding="utf-8")
    assert page.index('id="answer"') < page.index(reason) < page.index('id="results"')


def test_errors_of_runs_on_changed_data_say_so(
    finished: spec.Table, ner: Ner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ner_experiments.experiment_data.Fingerprints.__call__", lambda *_: "other")
    assert "layers: no run of it is finished in outputs: " in (printed := ner.error("errors", "layers"))
    assert "read other files" in printed


def test_a_record_learns_seeds_and_looks_and_watch_shows_them(ner: Ner) -> None:
    table = recorded(*SWEEP)
    table = sweeps.add_to_record(table, Path("outputs"), [3], [2, 3])
    assert spec.read(Path("outputs/sweeps/layers.yaml")) == table
    assert (table.seeds, table.looks) == ((1, 2, 3), (2, 3))
    assert recorded(*SWEEP).looks == (2, 3)
    published = spec.load("yang2020_table12")
    assert sweeps.add_to_record(published, Path("outputs"), [99]).seeds[-1] == 99
    assert sweeps.names(Path("outputs")) == ["layers"]
    for arguments in (["layers"], SWEEP[:-1]):
        assert ner.json("watch", *arguments, status=3)["counts"]["waiting"] == 6


def test_the_looks_of_a_record_and_their_first_seed_cannot_change(ner: Ner) -> None:
    sweeps.add_to_record(recorded(*SWEEP), Path("outputs"), [3], [2, 3])
    rows = SWEEP[:-1]
    first = "the looks of layers start from its first seed, 1; a sweep of another name"
    looks = "layers was declared with sweep.looks=2,3, which cannot change; "
    for more, message in (
        ([*rows, "seed=0"], f"seed=0: {first}"),
        ([*rows, "seed=0", "sweep.name=layers"], f"seed=0: {first}"),
        ([*rows, "seed=7", "sweep.looks=[2,3]"], f"seed=7: {first}"),
        ([*rows, "sweep.looks=[2,4]"], f"sweep.looks=2,4: {looks}"),
        ([*rows, "sweep.looks=[2,4]", "sweep.name=layers"], f"sweep.looks=2,4: {looks}"),
        (["table=layers", "sweep.looks=[3]"], f"sweep.looks=[3]: {looks}"),
        (["table=layers", "seeds=[0]"], first),
    ):
        assert message in ner.error("train", "-m", *more)
    assert spec.read(Path("outputs/sweeps/layers.yaml")).seeds == (1, 2, 3)


def test_a_recorded_sweep_is_not_archived(finished: spec.Table, tmp_path: Path, ner: Ner) -> None:
    assert ner.error("table", "layers", "--archive", str(tmp_path / "results")).startswith(
        "layers is not a table of sweeps/, and only those are archived; "
    )
    over = ["table", "--over", *SWEEP, "--archive", str(tmp_path / "results")]
    assert "--over names none" in ner.error(*over)
    assert not (tmp_path / "results").exists()


def test_a_record_moved_to_sweeps_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, ner: Ner) -> None:
    tiny = ("model.hidden_size=4", "model.dense_size=4", "trainer.max_epochs=1,2", "data=toy_zh")
    recorded("model=residual", *tiny, "seed=1", name="moved")
    Path("outputs/sweeps").rename("moved_to")
    monkeypatch.setattr(spec, "SWEEPS", Path("moved_to").absolute())
    for arguments in (["table", "moved"], ["table"], ["report", "moved"], ["smoke", "moved"]):
        ner(*arguments)
    ner("watch", "moved", "--json", status=3)


def test_a_search_is_found_by_its_name(ner: Ner) -> None:
    trial = Trial(0, "complete", ("optimizer.lr=0.1",), 0.0, (0.0,), ("outputs/a/seed-1",))
    search = Search("rates", "F1", ("model=bilstm",), ("optimizer.lr=0.1,0.2",), (1,), 2, "TPE", (trial,))
    path = Path("elsewhere/searches/rates/search.json")
    path.parent.mkdir(parents=True)
    write_search(search, path)
    text = ner("table", "rates", "output_dir=elsewhere")
    assert "The best: outputs/a/seed-1" in text
    assert "All trials have a dev F1 of 0, which usually means too few training steps" in text
    assert "search over optimizer.lr; 1 of 2 trials, best dev F1 0.00" in ner(
        "table", "--output", "elsewhere"
    )
    page = Path(ner("report", "rates", "output_dir=elsewhere").strip())
    assert page.name == "search-elsewhere-rates.html"
    assert "rates" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("swept", "rows", "said"),
    [
        ([], ["layers=2", "layers=3"], "2 of 2 rows, up to 1 seed, layers=3 leads: 1 undecided"),
        (
            ["data=toy_en,toy_zh"],
            [
                f"{corpus} {layers}"
                for corpus in ("data=toy_en", "data=toy_zh")
                for layers in ("layers=2", "layers=3")
            ],
            "data=toy_en layers=3 leads: 1 undecided; data=toy_zh layers=3 leads: 1 undecided",
        ),
        (["data=toy_en,toy_zh"], ["data=toy_en", "data=toy_zh"], "2 of 2 rows, up to 1 seed"),
    ],
    ids=["one corpus", "two corpora", "one row on each corpus"],
)
def test_the_list_names_the_leader_on_each_corpus(
    swept: list[str], rows: list[str], said: str, ner: Ner
) -> None:
    for row in rows:
        finish([*FIXED, *row.split(), "output_dir=outputs"], 1, 10 if "layers=2" in row else 1)
    recorded(*FIXED, *swept, *["layers=2,3"] * ("layers" in rows[0]))
    assert ner("table").splitlines()[-1].endswith(said)


def test_a_report_of_a_sweep_is_one_page_with_the_answer_first(finished: spec.Table, ner: Ner) -> None:
    for number, arguments in enumerate((["layers"], SWEEP)):
        ner("report", *arguments, "--output", f"report{number}")
        page = Path(f"report{number}/layers.html").read_text(encoding="utf-8")
        assert page.index('id="answer"') < page.index('id="differences"') < page.index('id="results"')
        index = Path(f"report{number}/index.html").read_text(encoding="utf-8")
        assert "layers.html" in index
        assert "yang2020" not in index


@pytest.mark.slow
def test_a_sweep_is_recorded_answered_and_run_again_by_its_name() -> None:
    tiny = [
        *("model=residual", "model.hidden_size=4", "model.dense_size=4", "words.module.dim=4"),
        *("data=toy_zh", "data.max_sentences=30", "trainer.max_epochs=1", "runtime.progress=false"),
    ]

    def run(*arguments: str) -> str:
        result = forked.run("-m", *arguments, cwd=Path.cwd())
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    first = run(*tiny, "layers=1,2", "seed=1")
    assert "No verdict rests on a single seed" in first
    assert "Recorded as layers" in first
    again = run("table=layers", "seeds=1,2")
    assert "layers: 2 runs to do, 2 finished" in again
    assert "| layers=1 - layers=2 |" in again
    looked = run(*tiny, "layers=1,2", "sweep.looks=2,3", "sweep.name=decided")
    assert "Look at 2 seeds (level " in looked
    assert "outputs/toy_zh" not in looked.rpartition("Look at")[2]
    table = spec.read(Path("outputs/sweeps/decided.yaml"))
    assert table.looks == (2, 3)
    assert table.seeds in ((1, 2), (1, 2, 3))
    assert spec.read(Path("outputs/sweeps/layers.yaml")).seeds == (1, 2)
