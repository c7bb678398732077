"""Error messages: texts of others in one short printable line, and the file that an operation failed on; tables."""

from pathlib import Path

import pytest

from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import markdown_table, message_of, truncated_repr


@pytest.mark.parametrize("character", ["a", "'", "\\", "\x1e", "\u200b", "\U0001f469", "\U0010ffff"])
def test_a_long_text_is_short_in_a_message_whatever_its_characters(character: str) -> None:
    shown = truncated_repr("B" + 500 * character)
    assert shown.isprintable()
    assert 70 < len(shown) <= 82
    assert shown.startswith(("'B", '"B'))
    assert shown[1:-1].endswith("...")


def test_a_short_text_is_whole_in_a_message() -> None:
    assert truncated_repr(80 * "a") == repr(80 * "a")


def test_the_message_of_a_failed_rename_names_the_target(tmp_path: Path) -> None:
    with pytest.raises(OSError) as error, atomic_write(tmp_path) as part:  # noqa: PT011  the message follows
        part.write_text("a")
    assert message_of(error.value) == f"{tmp_path}: Is a directory"


def test_a_bar_in_a_cell_of_a_table_ends_no_cell() -> None:
    """Tags of the Penn Treebank have bars, as heads of columns too."""
    table = markdown_table(["", "JJ|NN"], [":--", "--:"], ["JJ|NN", "1"])
    assert table.splitlines() == [r"|  | JJ\|NN |", "| :-- | --: |", r"| JJ\|NN | 1 |"]
