"""Markdown in the terminal, which may be narrow, and in a pipe, which gets it as it is."""

import io

import pytest
from rich.console import Console

from ner_experiments.utils.terminal import draw, print_markdown
from ner_experiments.utils.text import markdown_table

LINES = [["residual | stacked, 12 layers", "-16.09", "-21.26 to -10.93"], ["a", "", ""]]
TEXT = f"# A title\n\nA paragraph.\n\n{markdown_table(['', 'difference', '95 %'], [':--', '--:', '--:'], *LINES)}\n"


@pytest.mark.parametrize(("width", "parts"), [(80, 1), (45, 1), (35, 2), (20, 2)])
def test_a_table_too_wide_is_drawn_in_parts_with_no_number_cut(width: int, parts: int) -> None:
    drawn = io.StringIO()
    print_markdown(TEXT, Console(file=drawn, width=width))
    lines = drawn.getvalue().splitlines()
    assert sum(line.strip().startswith("residual") for line in lines) == parts
    assert all(sum(cell in line for line in lines) == 1 for cell in LINES[0][1:])
    assert max(map(len, lines)) <= max(width, 45)
    assert lines[0] == "A title"
    assert "A paragraph." in "".join(lines)
    assert "--:" not in drawn.getvalue()


def test_a_wide_table_is_narrowed_between_words_before_it_is_split() -> None:
    drawn = io.StringIO()
    label, cells = "layers=1 decoder=softmax", ["3", "44.11 ± 3.42", "42.76 ± 3.67", "6", "298,509", "24.6"]
    headings = ["", "runs", "dev F1", "test F1", "epoch", "parameters", "seconds"]
    rules = [":--", *["--:"] * 6]
    draw([headings, rules, [label, *cells]], Console(file=drawn, width=80))
    lines = [line.split() for line in drawn.getvalue().splitlines() if line.strip(" ─")]
    assert lines[1:] == [["layers=1", *" ".join(cells).split()], ["decoder=softmax"]]
    assert max(map(len, drawn.getvalue().splitlines())) <= 80


def test_a_pipe_gets_the_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    print_markdown(TEXT)
    assert capsys.readouterr().out == TEXT
