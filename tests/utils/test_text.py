"""Texts of others in error messages, one short printable line, and command lines."""

import shlex
from pathlib import Path

import pytest

from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import message_of, shell_line, truncated_repr


@pytest.mark.parametrize("character", ["a", "'", "\\", "\x1e", "\u200b", "\U0001f469", "\U0010ffff"])
def test_a_long_text_is_short_in_a_message_whatever_its_characters(character: str) -> None:
    shown = truncated_repr("B" + 500 * character)
    assert shown.isprintable()
    assert 70 < len(shown) <= 82
    assert shown.startswith(("'B", '"B'))
    assert shown[1:-1].endswith("...")


def test_a_short_text_is_whole_in_a_message() -> None:
    assert truncated_repr(80 * "a") == repr(80 * "a")


def test_a_command_line_is_what_a_shell_reads_and_quoted_only_where_it_must_be() -> None:
    plain = ["python", "run.py", "seeds=1,2", "data/any=thing"]
    assert shell_line(plain) == " ".join(plain)
    arguments = [
        *plain,
        "words.stand_in=a 'small' BERT",
        "data.columns={word: 0, tag: 3}",
        "a=[1]",
        "b=$HOME",
        "c=`d`",
        "e='f'",
        "",
    ]
    assert shlex.split(shell_line(arguments)) == arguments
    assert shell_line(["~logger", "output_dir=~/x", "a=[1,2]"]) == "'~logger' 'output_dir=~/x' 'a=[1,2]'"


def test_the_message_of_a_failed_rename_names_the_target(tmp_path: Path) -> None:
    with pytest.raises(OSError) as error, atomic_write(tmp_path) as part:  # noqa: PT011  the message follows
        part.write_text("a")
    assert message_of(error.value) == f"{tmp_path}: Is a directory"
