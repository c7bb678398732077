"""Markdown in the terminal: whole where it is narrow, and as it is in a pipe."""

import io

import pytest
from rich.console import Console

from ner_experiments.utils.terminal import print_markdown
from ner_experiments.utils.text import markdown_table

LINES = [["residual | stacked, 12 layers", "-16.09", "-21.26 to -10.93"], ["a", "", ""]]
TEXT = f"# A title\n\nA paragraph.\n\n{markdown_table(['', 'difference', '95 %'], [':--', '--:', '--:'], *LINES)}\n"


def test_a_table_is_drawn_with_no_cell_cut_however_narrow_the_terminal_is() -> None:
    drawn = io.StringIO()
    print_markdown(TEXT, Console(file=drawn, width=20))
    lines = drawn.getvalue().splitlines()
    (line,) = [line for line in lines if line.strip().startswith("residual")]
    assert line.split("  ")[0].strip() == LINES[0][0]
    assert all(cell in line for cell in LINES[0])
    assert lines[0] == "A title"
    assert "A paragraph." in "".join(lines)
    assert "--:" not in drawn.getvalue()


def test_a_pipe_gets_the_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    print_markdown(TEXT)
    assert capsys.readouterr().out == TEXT
