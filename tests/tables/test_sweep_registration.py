"""The registration of a sweep: what it refuses, what it proves, and what a skeptical reader would call cheating."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import forked
import pytest
import yaml
from cases import refused
from in_process import Ner
from scipy import stats
from toy_rows import TOY, finish

from ner_experiments.config.compose import jobs
from ner_experiments.main import cli
from ner_experiments.tables import registering, spec, sweep_registration, sweeps
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.sweep_registration import Registration

pytestmark = pytest.mark.usefixtures("elsewhere")
FIXED = ["model=residual", *TOY]
OUTPUT = Path("outputs")
FILE = OUTPUT / "sweeps/layers/registration.yaml"
SWEEP = OUTPUT / "sweeps/layers.yaml"
WRONG = {2: [10, 12, 11], 3: [1, 2, 3]}


def register(seeds: str = "1,2,3", layers: str = "2,3", primary: str = "", name: str = "") -> Registration:
    overrides = [*FIXED, f"layers={layers}", f"seed={seeds}"]
    asked = sweeps.of_jobs(jobs(overrides), name, overrides)
    table = sweeps.record(asked, OUTPUT)
    return registering.register(table, [], asked.seeds, primary, OUTPUT)


def finish_row(layers: int, name: str, first: int = 1, **more: Any) -> list[Path]:
    row = [*FIXED, f"layers={layers}", "output_dir=outputs"]
    return [
        finish(row, seed, wrong, registration=name, **more) for seed, wrong in enumerate(WRONG[layers], first)
    ]


def registered() -> str:
    """Register a sweep and finish its runs; the hash."""
    name = register().hash
    for layers in WRONG:
        finish_row(layers, name)
    return name


def test_the_verdict_rests_on_the_registered_runs(ner: Ner) -> None:
    name = registered()
    content = ner.json("table", "layers")
    found, scores = content["registration"], [row["measured"]["scores"] for row in content["rows"]]
    expected = stats.ttest_ind(*(list(row.values()) for row in scores), equal_var=False)
    assert (found["status"], found["reasons"], found["hash"]) == ("registered", [], name)
    assert found["primary"]["p"] == pytest.approx(expected.pvalue)
    assert found["primary"]["verdict"] == "behind"
    text = f"Registered: layers=2 - layers=3, seeds 1, 2 and 3 ({name}, {FILE}): -"
    for arguments in ([], ["--latex"]):
        printed = ner("table", "layers", *arguments).replace("\\_", "_")
        assert text in printed
        assert "layers=2 is behind layers=3" in printed
    assert cli(["report", "layers"]) == 0
    assert text in Path("outputs/report/layers.html").read_text(encoding="utf-8")


def test_a_sweep_without_a_registration_is_exploratory(ner: Ner) -> None:
    overrides = [*FIXED, "layers=2,3", "seed=1,2,3"]
    sweeps.record(sweeps.of_jobs(jobs(overrides), "", overrides), OUTPUT)
    finish_row(2, "")
    reason = "nothing was registered before its first run"
    assert ner.json("table", "layers")["registration"] == {"status": "exploratory", "reasons": [reason]}
    assert f"Exploratory: {reason}." in ner("table", "layers")


def test_a_registration_that_is_gone_is_missed(ner: Ner) -> None:
    name = register().hash
    finish_row(2, name)
    FILE.unlink()
    (reason,) = ner.json("table", "layers")["registration"]["reasons"]
    assert reason.startswith(f"runs recorded {name}, which is no registration of it here: the file is gone")


def change(path: Path, key: str, value: Any) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(content | {key: value}), encoding="utf-8")


def rows_of_sweep() -> list[Any]:
    rows: list[Any] = yaml.safe_load(SWEEP.read_text(encoding="utf-8"))["rows"]
    return rows


def with_other_settings(name: str) -> None:
    finish_row(3, name)
    change(SWEEP, "rows", [rows_of_sweep()[0], {"label": "layers=3", "run": ["layers=4"]}])
    for seed in (1, 2, 3):
        finish([*FIXED, "layers=4", "output_dir=outputs"], seed, seed, registration=name)


def then(place: Path, key: str, value: Callable[[], Any]) -> Callable[[str], None]:
    """Finish the runs and change what was registered."""

    def cheat(name: str) -> None:
        finish_row(3, name)
        change(place, key, value())

    return cheat


FURTHER = {"label": "deep", "run": ["layers=4"]}
CHEATS: list[tuple[Callable[[str], object], str]] = [
    (
        then(FILE, "primary", lambda: {"a": "layers=3", "b": "layers=2"}),
        "and 5 more: did not record the registra",
    ),
    (lambda _: finish_row(3, ""), "/seed-1 and 2 more: did not record the registration "),
    (lambda name: finish_row(3, name, code="another"), "/seed-1 and 2 more: other code than was registered"),
    (with_other_settings, "/seed-1 and 2 more: other settings or data than were registered"),
    (then(SWEEP, "rows", lambda: rows_of_sweep()[1:]), "registered rows that are gone: layers=2"),
    (then(SWEEP, "rows", lambda: [*rows_of_sweep(), FURTHER]), "rows that were not registered: deep"),
    (
        lambda name: finish([*FIXED, "layers=3", "output_dir=outputs"], 1, 1, registration=name),
        "2 of 6 registered runs are not finished: layers=3 lacks seeds 2 and 3",
    ),
]


@pytest.mark.parametrize(("cheat", "reason"), CHEATS, ids=[reason[:30] for _, reason in CHEATS])
def test_what_departs_from_the_registration_is_exploratory_and_says_why(
    cheat: Callable[[str], None], reason: str, ner: Ner
) -> None:
    name = register().hash
    finish_row(2, name)
    cheat(name)
    found = ner.json("table", "layers")["registration"]
    assert found["status"] == "exploratory"
    assert "p" not in found["primary"]
    assert any(reason in text for text in found["reasons"]), found["reasons"]
    if "did not record" in reason or "than were registered" in reason:
        assert found["reasons"][-1].endswith("under another name: sweep.name=NAME seed=4,5,6")
    assert "Exploratory, although layers=" in ner("table", "layers")


def test_scores_on_another_test_set_are_not_those_that_were_registered() -> None:
    registered()
    page = collect(sweeps.find("layers", OUTPUT))
    assert sweep_registration.standing(page).record()["status"] == "registered"
    results = [
        replace(it, runs={seed: replace(run, test_name="more") for seed, run in it.runs.items()})
        for it in page.results
    ]
    found = sweep_registration.standing(replace(page, results=tuple(results))).record()
    assert found["reasons"] == ["these are scores on more, and those on test were registered"]


def test_a_table_is_registered_for_each_choice_of_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    rows = [{"label": f"{layers} layers", "run": [f"layers={layers}"]} for layers in (2, 3)]
    own = {"title": "Depth", "source": "Mine", "base": FIXED, "seeds": [1, 2], "rows": rows}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/depth.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    monkeypatch.setattr(spec, "SWEEPS", tmp_path / "mine")
    other = ["optimizer.lr=0.02"]
    registrations = {
        tuple(others): registering.register(
            spec.load("depth"), others, [1, 2, 3], "3 layers - 2 layers", OUTPUT
        )
        for others in ([], other)
    }
    assert registrations[()].path == OUTPUT / "sweeps/depth/registration.yaml"
    assert registrations[()].path != registrations[tuple(other)].path
    for layers, wrong in WRONG.items():
        for seed, number in enumerate(wrong, 1):
            row = [*FIXED, f"layers={layers}", *other, "output_dir=outputs"]
            finish(row, seed, number, registration=registrations[tuple(other)].hash)
    assert "Registered: 3 layers - 2 layers, seeds 1, 2 and 3 (" in ner("table", "depth", *other)
    registrations[tuple(other)].path.unlink()
    with pytest.raises(ValueError, match=r"register new seeds: seeds=4,5,6$"):
        registering.register(spec.load("depth"), other, [1, 2, 3], "", OUTPUT)


def test_seeds_added_later_are_named_and_left_out(ner: Ner) -> None:
    name = registered()
    before = ner.json("table", "layers")
    finish_row(2, name, first=4)
    after = ner.json("table", "layers")
    assert after["registration"] == before["registration"]
    assert after["rows"] == before["rows"]
    assert after["notes"] == ["layers=2: without seeds 4, 5 and 6, not registered."]


def test_runs_begun_before_cannot_be_registered_and_new_seeds_can(
    ner: Ner,
) -> None:
    (first, *_) = finish_row(2, "")
    (first / "metrics.json").unlink()  # as if interrupted
    with pytest.raises(ValueError, match=r"seed-1 and 2 more of these runs were begun before.* seed=4,5,6$"):
        register()
    assert not FILE.parent.exists()
    name = register("4,5,6").hash
    finish_row(2, name, first=4)
    finish_row(3, name, first=4)
    content = ner.json("table", "layers")
    assert content["registration"]["status"] == "registered"
    assert content["notes"] == ["layers=2: without seeds 2 and 3, not registered."]


def test_the_same_command_continues_and_another_is_refused() -> None:
    first = register()
    finish_row(2, first.hash)
    assert register() == first
    for changed, rule in (
        (lambda: register("1,2,3,4"), "its seeds cannot change after registering"),
        (lambda: register(primary="layers=3 - layers=2"), "its primary cannot change"),
    ):
        with pytest.raises(ValueError, match=rf"^{FILE}: {rule}"):
            changed()
    FILE.write_text(FILE.read_text(encoding="utf-8").replace("code: ", "code: 0"), encoding="utf-8")
    with pytest.raises(ValueError, match="its rows cannot change"):
        register()


def test_further_registrations_of_the_same_rows_are_named(ner: Ner) -> None:
    register("4,5,6", name="again")
    registered()
    assert ner.json("table", "layers")["registration"]["also_registered"] == ["again"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": "2"}, "a registration compares rows, and seeds has only one"),
        ({"seeds": "1"}, "a test over seeds takes 2 of each row or more, got 1"),
        (
            {"layers": "2,3,4"},
            "layers has 3 rows; name the two whose difference is tested, such as sweep.",
        ),
        (
            {"primary": "layers=3 - layers=4"},
            "sweep.primary=layers=3 - layers=4: expected two rows of layers",
        ),
    ],
)
def test_what_cannot_be_registered_is_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^[^\n]*{re.escape(message)}[^\n]*$"):
        register(**arguments)


COMMANDS = refused("""
-m layers=2,3 sweep.primary='a - b' -> sweep.primary=a - b is registered: add sweep.reg
-m layers=2,3 sweep.register=3 -> sweep.register must be true or false
sweep.register=true -> sweep.register=true requires a sweep: add -m
-m hydra/sweeper=optuna layers=range(2,4) sweep.register=true -> a search chooses by dev and tests nothing
-m layers=2,3 sweep.looks=2,3 sweep.register=true -> has a fixed number of seeds, and sweep.looks adds seeds
""")


@pytest.mark.parametrize(("arguments", "message"), COMMANDS)
def test_a_command_that_cannot_register_is_refused_before_anything_starts(
    arguments: str, message: str, ner: Ner
) -> None:
    assert message in ner.error("train", *shlex.split(arguments), *FIXED)
    assert not OUTPUT.exists()


@pytest.mark.slow
def test_a_registered_sweep_is_run_and_continued() -> None:
    tiny = [
        *("model.hidden_size=4", "model.dense_size=4", "words.module.dim=4"),
        *("data=toy_zh", "data.max_sentences=30", "trainer.max_epochs=1", "runtime.progress=false"),
    ]

    def run(*arguments: str) -> str:
        result = forked.run("-m", *arguments, cwd=Path.cwd())
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    sweep = ["model=residual", *tiny, "layers=1,2", "sweep.register=true"]
    first = run(*sweep, "seed=1,2")
    assert first.startswith("Registered: layers=1 - layers=2, seeds 1 and 2 (")
    assert "Registered: layers=1 - layers=2, seeds 1 and 2 (" in first.rpartition("test F1")[2]
    run_folders = sorted(OUTPUT.glob("*/seed-*/metrics.json"))
    name = sweep_registration.read(FILE).hash
    assert [json.loads(path.read_text())["registration"] for path in run_folders] == [name] * 4
    shutil.rmtree(run_folders[0].parent)
    assert "Exploratory" not in run("table=layers")  # the lacking run is made for the registration too
    assert json.loads(run_folders[0].read_text())["registration"] == name
    again = run("table=layers", "seeds=[1,2]", "sweep.register=true", "sweep.primary=layers=1 - layers=2")
    assert "layers: 0 runs to do, 4 finished" in again
    assert again.count(f"({name}, {FILE})") == 2
    later = run(*sweep[:-1], "seed=3")
    assert re.search(r"seed=3\b.* \(below: without seed 3, not registered\)\n", later)
