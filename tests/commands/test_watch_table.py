"""Output of `ner-experiments watch` on a terminal with lines for only a few of the runs."""

import io

from rich.console import Console

from ner_experiments.commands.watch import fitting_table
from ner_experiments.runs import status


def test_a_low_terminal_has_the_runs_most_worth_seeing_and_counts_the_others() -> None:
    states = ["done"] * 20 + ["waiting"] * 60 + ["running", "failed"]
    runs = [status.Status(f"row {number}", 1, state) for number, state in enumerate(states)]
    lines = screen(runs, 20).splitlines()
    assert len(lines) == 20
    assert lines[0].strip() == "1 running, 20 done, 1 failed, 60 waiting"
    assert [line.split()[:4] for line in lines[4:6]] == [
        ["row", "80", "1", "running"],
        ["row", "81", "1", "failed"],
    ]
    done = sum("done" in line for line in lines[4:-1])
    assert lines[-1].strip() == f"and {20 - done} done, 60 waiting"
    high = screen(runs, 200)
    assert all(f"row {number} " in high for number in range(len(runs)))


def screen(runs: list[status.Status], height: int) -> str:
    file = io.StringIO()
    console = Console(width=100, height=height, file=file)
    console.print(fitting_table(runs, console))
    return file.getvalue()
