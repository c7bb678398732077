"""Output of `ner-experiments watch` on a terminal with lines for only a few of the runs."""

import io

import pytest
from rich.console import Console

from ner_experiments.commands.watch import fitting_table, show_live
from ner_experiments.runs import status


def test_a_low_terminal_has_the_runs_most_worth_seeing_and_counts_the_others() -> None:
    states = ["done"] * 20 + ["waiting"] * 60 + ["running", "failed"]
    runs = [status.Status(f"row {number}", 1, state) for number, state in enumerate(states)]
    lines = screen(runs, 20).splitlines()
    assert len(lines) == 20
    assert lines[0].strip() == "1 running, 20 done, 1 failed, 60 waiting"
    assert [line.split()[:4] for line in lines[4:6]] == [
        ["row", "80", "seed=1", "running"],
        ["row", "81", "seed=1", "failed"],
    ]
    done = sum("done" in line for line in lines[4:-1])
    assert lines[-1].strip() == f"and {20 - done} done, 60 waiting"
    high = screen(runs, 200)
    assert all(f"row {number} " in high for number in range(len(runs)))


def test_many_finished_runs_of_a_row_share_a_line() -> None:
    def done(label: str, seed: int) -> status.Status:
        return status.Status(label, seed, "done", dev=0.8 + seed / 1000, test=0.7 + seed / 1000)

    runs = [done("many", seed) for seed in (*range(1, 12), 20)]
    runs += [status.Status("many", 12, "failed", reason="no space"), *(done("few", seed) for seed in (1, 2))]
    runs += [status.Status("many", 13, "running")]
    lines = [line.split() for line in screen(runs, 200).splitlines()]
    assert lines[0] == ["1", "running,", "14", "done,", "1", "failed"]
    assert lines[4:] == [
        ["many", "seed=1-11,20", "done", "means", "80.72", "70.72"],
        ["many", "seed=12", "failed"],
        ["few", "seed=1", "done", "80.10", "70.10"],
        ["few", "seed=2", "done", "80.20", "70.20"],
        ["many", "seed=13", "running"],
        [],
        ["many", "seed=12:", "no", "space"],
    ]


def test_where_no_screen_can_be_refreshed_each_change_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    states = iter(["running", "running", "done"])

    def poll() -> list[status.Status]:
        return [status.Status("few", 1, next(states))]

    show_live(poll, 0.001)
    shown = capsys.readouterr().out
    assert shown.startswith("1 running\n1 done\n")
    assert "seed=1" in shown


def test_a_low_terminal_has_the_mean_of_all_finished_runs_of_a_row() -> None:
    runs = [status.Status("many", seed, "done", dev=seed / 100, test=seed / 100) for seed in range(1, 41)]
    runs += [status.Status("many", seed, "waiting") for seed in range(41, 141)]
    lines = [line.split() for line in screen(runs, 12).splitlines()]
    assert lines[4] == ["many", "seed=1-40", "done", "means", "20.50", "20.50"]
    assert lines[5][:3] == ["many", "seed=41", "waiting"]
    assert len(lines) == 12
    waiting = sum("waiting" in line for line in lines[4:-1])
    assert lines[-1] == ["and", str(100 - waiting), "waiting"]


def test_eighty_columns_have_the_whole_label_and_all_numbers() -> None:
    label = "model=residual layers=3 optimizer.lr=0.0031622776"
    node, reason = "gpu-node-012.cluster.example.org", "worker killed by SIGKILL, possibly out of memory"
    runs = [
        status.Status(
            *(label, 11, "running", "", 102, 0.35, 1000),
            **{"dev": 0.9123, "best": 0.9234, "left": (3735.0, 93735.0), "host": node, "slurm": "123456_12"},
        ),
        status.Status(label, 12, "done", dev=0.9, best=0.9, test=0.8765, best_epoch=80),
        *(status.Status(label, seed, "failed", reason=reason) for seed in (13, 14)),
    ]
    text = screen(runs, 50, width=80)
    assert max(map(len, text.splitlines())) <= 80
    for shown in ("102.3/1000", "91.23", "92.34", "87.65", "1:02:15 to", "26:02:15"):
        assert shown in text
    first = next(line.index("state") for line in text.splitlines() if "state" in line)
    names = "".join(line[:first].replace(" ", "") for line in text.splitlines())
    for run in runs:
        assert f"{label}seed={run.seed}".replace(" ", "") in names
    assert f"{label} seed=13 and 1 more: {reason}" in " ".join(text.split())


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("", "a: last heartbeat 67 s ago"),
        (
            status.STARTING,
            "a: in its first batch for 67 s; the first run on a machine compiles its kernels there",
        ),
    ],
)
def test_a_run_whose_kernels_are_compiled_is_not_said_to_be_silent(reason: str, said: str) -> None:
    run = status.Status("a", 1, "running", silent=67.0, reason=reason)
    assert said.replace("a:", "a seed=1:") in screen([run], 20)


def screen(runs: list[status.Status], height: int, width: int = 100) -> str:
    file = io.StringIO()
    console = Console(width=width, height=height, file=file)
    console.print(fitting_table(runs, console))
    return file.getvalue()
