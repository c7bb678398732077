"""The code that a run depends on: what counts of it, and what an edit of it changes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ner_experiments import build
from ner_experiments.config import config_dirs, safe_yaml
from ner_experiments.config.choices import merged
from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import names
from ner_experiments.export import hub
from ner_experiments.launch.sweeper import show_table
from ner_experiments.report import own_runs
from ner_experiments.runs import code, status
from ner_experiments.runs.progress import CHECKPOINT
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.sweeps import of_jobs
from ner_experiments.tables.table_view import TableView
from ner_experiments.train import train

OWN = '''"""An encoder of a user's own."""

from torch import nn

from .sizes import DOUBLE


class Own(nn.Module):
    """A linear layer."""

    def __init__(self, *, input_size: int):
        super().__init__()
        self.output_size = DOUBLE * 3  # twice three
        self.layer = nn.Linear(input_size, self.output_size)

    def forward(self, x, lengths):
        from own_encoders.late import activation

        return activation(self.layer(x))
'''
FILES = {
    "own_encoders/__init__.py": "",
    "own_encoders/linear.py": OWN,
    "own_encoders/sizes.py": "DOUBLE = 2\n",
    "own_encoders/late.py": "import torch\n\n\ndef activation(x):\n    return torch.tanh(x)\n",
    "own_encoders/unrelated.py": "X = 1\n",
}
TINY = [
    *("model=none", "model._target_=own_encoders.linear.Own", "chars=none", "trainer.max_epochs=1"),
    *("data.sentences={train: 20, dev: 5, test: 10}", "runtime.progress=false", "runtime.accelerator=cpu"),
]


def forget() -> None:
    """Empty the caches that a new process would not have."""
    for known in (code._closure, code._is_own, code._read, code._outdated, safe_yaml.targets_in):
        known.cache_clear()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a package of a user's own, on Python's path, and the folder of its config."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "conf/model").mkdir(parents=True)
    (tmp_path / "conf/model/own.yaml").write_text("_target_: own_encoders.linear.Own\n_partial_: true\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(config_dirs.VARIABLE, str(tmp_path / "conf"))
    forget()
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "own_encoders"]:
        del sys.modules[name]
    forget()


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    forget()


def code_of_own() -> dict[str, str]:
    return code.code_of(merged(TINY))


def test_the_code_of_a_class_is_its_module_and_what_that_imports(own: Path) -> None:
    mine = {name for name in code_of_own() if name.startswith("own_encoders")}
    assert mine == {"own_encoders", *(f"own_encoders.{name}" for name in ("linear", "sizes", "late"))}


@pytest.mark.parametrize(
    ("edits", "counts"),
    [
        (
            [
                ("linear", "# twice three", "# two times three"),
                ("linear", '"""A linear layer."""', '"""One layer."""'),
                ("linear", '"""An encoder of a user\'s own."""', ""),
                ("linear", "DOUBLE * 3  #", "(DOUBLE *\n            3)  #"),
                ("unrelated", "1", "2"),
            ],
            False,
        ),
        (
            [
                ("late", "torch.tanh(x)", "torch.relu(x)"),
                ("linear", "DOUBLE * 3", "DOUBLE * 4"),
                ("sizes", "2", "4"),
            ],
            True,
        ),
        ([("linear", "DOUBLE * 3", "3 * DOUBLE")], True),
    ],
)
def test_comments_docstrings_layout_and_other_modules_do_not_count(
    own: Path, edits: list[tuple[str, str, str]], counts: bool
) -> None:
    first = code_of_own()
    for file, before, after in edits:
        edit(own / f"own_encoders/{file}.py", before, after)
    second = code_of_own()
    changed = [name for name in first if second[name] != first[name]]
    assert sorted(changed) == [f"own_encoders.{file}" for file, _, _ in edits if counts]
    assert (code.digest(first) != code.digest(second)) is counts


@pytest.mark.parametrize("model", names("model"))
def test_the_code_of_an_architecture_is_no_room_that_only_finds_or_shows_runs(model: str) -> None:
    cfg = compose([f"model={model}"])
    found = code.code_of(cfg)
    assert cfg.model._target_.rpartition(".")[0] in found
    assert not [name for name in found if name.startswith(code.NO_NUMBERS)]


def test_a_run_on_columns_depends_on_no_format_of_annotated_text() -> None:
    formats = {
        name.rpartition(".")[2] for name in code.code_of(compose(["data=weibo"])) if ".formats" in name
    }
    assert "columns" in formats
    assert formats.isdisjoint({"registry", "brat", "jsonl"})


def test_a_run_of_an_edited_class_is_trained_again_beside_the_old_one(
    own: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    cfg = merged([*TINY, f"output_dir={tmp_path}/outputs"])
    first = train(cfg)
    assert json.loads((Path(first["folder"]) / "code.json").read_text()) == code.code_of(cfg)
    edit(own / "own_encoders/late.py", "torch.tanh(x)", "torch.relu(x)  # better?")
    second = train(cfg)
    assert second["folder"] != first["folder"]
    assert Path(second["folder"]).parents[1] == Path(first["folder"]).parents[1]
    assert second["identity"] == first["identity"]
    (said,) = [it for it in caplog.messages if it.startswith(first["folder"]) and "trained again" in it]
    assert "own_encoders/late.py has changed since" in said
    assert train(cfg)["folder"] == second["folder"]
    caplog.clear()
    build.load(Path(second["folder"]))
    assert not caplog.messages
    build.load(Path(first["folder"]))
    (said,) = caplog.messages
    assert said.startswith(first["folder"])
    assert "late.py has changed since, by which its weights may give other tags" in said

    edit(own / "own_encoders/late.py", "torch.relu(x)  # better?", "torch.tanh(x)")  # as it was
    assert train(cfg)["folder"] == first["folder"]

    edit(own / "own_encoders/late.py", "torch.tanh(x)", "torch.sin(x)")
    caplog.clear()
    reused = train(merged([*TINY, "runtime.reuse=any", f"output_dir={tmp_path}/outputs"]))
    assert reused["folder"] == second["folder"]  # the last of them
    assert "reused, as runtime.reuse=any" in caplog.text

    for folder in map(Path, (first["folder"], second["folder"])):  # as if they had been interrupted
        (folder / "metrics.json").rename(folder / CHECKPOINT)
    train(cfg)
    (said,) = [it for it in caplog.messages if it.startswith(f"{first['folder']} was interrupted")]
    assert "own_encoders/late.py has changed since; it starts over in a folder beside it" in said


@pytest.mark.parametrize(("after", "differs"), [("-torch.tanh(x)", True), ("torch.tanh(x) + 0", False)])
def test_no_export_carries_scores_of_other_tags(own: Path, tmp_path: Path, after: str, differs: bool) -> None:
    run, output = Path(train(merged([*TINY, f"output_dir={tmp_path}/outputs"]))["folder"]), tmp_path / "hub"
    edit(own / "own_encoders/late.py", "torch.tanh(x)", after)
    del sys.modules["own_encoders.late"]
    if not differs:
        hub.export(run, output, licence=None)
    else:
        with pytest.raises(ValueError, match=r"late.py has changed since, by which \d+ of 10 test sentences"):
            hub.export(run, output, licence=None)
    assert output.exists() is not differs


def test_tables_reports_and_watch_show_the_runs_of_the_present_code(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    place = f"output_dir={tmp_path}/outputs"
    for seed in (1, 2):
        train(merged([*TINY, f"seed={seed}", place]))
    edit(own / "own_encoders/sizes.py", "2", "3")
    for name in [name for name in sys.modules if name.partition(".")[0] == "own_encoders"]:
        del sys.modules[name]
    table = of_jobs([[*TINY, f"seed={seed}"] for seed in (1, 2)], "mine", TINY)
    statuses = status.all_statuses(tmp_path / "outputs")
    assert not statuses
    assert "and 1 other run: " in caplog.text
    assert "own_encoders/sizes.py has changed since" in caplog.text
    page = collect(table, [place])
    (result,) = page.results
    assert not result.runs
    assert "own_encoders/sizes.py has changed since; runtime.reuse=any counts such runs" in result.missing
    assert (TableView(page).measured(result), page.needs) == ("not counted", [])
    show_table(page, of_a_table=False)
    assert capsys.readouterr().out == f"Not counted: {result.row.label}: {result.missing}\n"

    third = train(merged([*TINY, "seed=1", place]))
    (result,) = collect(table, [place]).results
    assert [str(run.folder) for run in result.runs.values()] == [third["folder"]]
    (entry,) = own_runs.own_entries(tmp_path / "outputs", [])
    assert [str(run.folder) for run in entry.runs] == [third["folder"]]
    assert "runtime.reuse=any shows such runs" in caplog.text
    assert [it.folder for it in status.all_statuses(tmp_path / "outputs")] == [third["folder"]]
    planned = [status.planned_run("mine", merged([*TINY, "seed=2", place]))]
    (left_out,) = status.sweep_statuses(planned, tmp_path / "outputs")
    assert left_out.state == "waiting"
    assert left_out.reason.startswith("its run is left out: ")
    assert left_out.reason.endswith("own_encoders/sizes.py has changed since")

    page = collect(table, [place, "runtime.reuse=any"])
    assert [*page.results[0].runs] == [1, 2]
    assert page.results[0].runs[1].folder == Path(third["folder"])  # the present code is preferred
    (said,) = [text for text in TableView(page).notes if "different code" in text]
    assert "mixes runs of different code" in said
    assert "own_encoders/sizes.py" in said

    edit(own / "own_encoders/sizes.py", "3", "4")
    (result,) = collect(table, [place, "runtime.reuse=any"]).results
    assert result.runs[1].folder == Path(third["folder"])  # the last of other code
    assert "counted, as runtime.reuse=any: " in caplog.text
    planned = [status.planned_run("mine", merged([*TINY, "seed=1", "runtime.reuse=any", place]))]
    assert [it.folder for it in status.sweep_statuses(planned, tmp_path / "outputs")] == [third["folder"]]


def test_a_record_from_anywhere_is_read_as_data(own: Path, tmp_path: Path) -> None:
    (own / "own_encoders/__init__.py").write_text("raise SystemExit('executed')")
    forget()
    path = tmp_path / "code.json"
    path.write_text(json.dumps(code_of_own()))
    assert code.outdated(path) == ""
    for content, reason in (
        ("[]", code.NOT_RECORDED),
        ("{", code.NOT_RECORDED),
        ('{"../../etc/passwd": "x"}', "../../etc/passwd (not found here) has changed since"),
        ('{"no_such_module.a": "x", "..": ""}', "no_such_module.a (not found here) has changed since"),
    ):
        path.write_text(content)
        assert code.outdated(path) == reason
    path.write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"code\.json: expected a digest for each module"):
        code.recorded(path)
    assert "own_encoders" not in sys.modules


def test_a_module_that_is_not_python_is_named(own: Path) -> None:
    edit(own / "own_encoders/late.py", "return", "return return")
    with pytest.raises(ValueError, match=r"late\.py: expected a module of Python"):
        code_of_own()
