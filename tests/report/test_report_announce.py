"""Progress that a report prints while it is written, to a terminal and elsewhere."""

import os
import pty
import sys
from contextlib import suppress

import pytest

from ner_experiments.report.announce import tracked


def test_elsewhere_each_item_is_a_line_printed_before_the_item_is_used(capsys: pytest.CaptureFixture) -> None:
    steps = tracked(["a", "b"], "writing table", str.upper)
    found = [(item, capsys.readouterr().err) for item in steps]
    assert found == [("a", "writing table 1 of 2: A\n"), ("b", "writing table 2 of 2: B\n")]
    assert len([*tracked(range(25), "writing table", str)]) == 25
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"writing table {number} of 25: {number - 1}" for number in range(1, 26, 2)]


def everything(main: int) -> str:
    """All output to a terminal that is closed now. A read may return a part of it, and raises OSError at the end."""
    parts = []
    with suppress(OSError):
        while part := os.read(main, 100_000):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    main, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", terminal)
        assert list(tracked(["a", "[b]"], "writing table", str)) == ["a", "[b]"]
    shown = everything(main)
    assert "writing table [b]" in shown
    assert "2/2" in shown
    assert shown.endswith("\x1b[2K")
