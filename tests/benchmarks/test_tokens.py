"""Agreement of tokens and sentences with corpora whose figures are computed by hand."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tokens.py"
ROW = "{}\t{}\t_\t_\t_\t_\t_\t_\t_\t{}\n"


def measured(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tokens.py", *map(str, arguments)])
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].strip("|").split("|")]


def test_conllu_with_its_text_or_its_spaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`No-one` is two of nine tokens in the corpus and one for us: 7 of 9 and 8, so 14 / 17.

    A sentence that goes on after `!` is one of two in the corpus, and two of three for us: 1 of 2 and 3, so 2 / 5.
    """
    rows = ROW.format("1-2", "don't", "_") + ROW.format(1, "do", "_") + ROW.format(2, "n't", "_")
    one = f"# newdoc\n# newpar\n# text = Ann don't go.\n{ROW.format(1, 'Ann', '_')}"
    one += rows.replace("1-2", "2-3").replace("2\tn't", "3\tn't").replace("1\tdo", "2\tdo")
    one += ROW.format(4, "go", "SpaceAfter=No") + ROW.format(5, ".", "_")
    two = ROW.format(1, "No", "SpaceAfter=No") + ROW.format(2, "-one", "SpaceAfter=No")
    two += ROW.format(3, "!", "_") + ROW.format("3.1", "empty", "_") + ROW.format(4, "\u1234", "_")
    path = tmp_path / "a.conllu"
    path.write_text(f"{one}\n{two}\n", encoding="utf-8")
    assert measured(capsys, path) == ["a.conllu", "9", "82.4", "2", "40.0"]


def test_columns_are_spaced_as_in_print_or_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        '-DOCSTART- O\n\n" O\nGo O\n. O\n" O\n\nAnn O\n\'s O\n( O\nU.S. O\n) O\n', encoding="utf-8"
    )
    assert measured(capsys, path) == ["a.txt", "9", "100.0", "2", "100.0"]
    path.write_text("O 中0\nO 国1\nO 。0\n\nO 好0\n", encoding="utf-8")
    options = ("--tokens", "characters", "--column", 1, "--first-character")
    assert measured(capsys, *options, path) == ["a.txt", "4", "100.0", "2", "100.0"]
