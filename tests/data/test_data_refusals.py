"""Refusals of `ner-experiments data`: one line per fault, and a message for wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus_files import data_command


def test_a_stated_scheme_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.conll"
    path.write_text("Ada I-PER\n")
    for scheme, illegal in (("iob1", 0), ("iob2", 1)):
        assert data_command(["check", "--format", "conll", "--scheme", scheme, "--json", str(path)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["scheme"], found["splits"]["a.conll"]["illegal_tags"]) == (scheme, illegal)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Ada B-PER\n\nrains\n", ":3: expected 2 columns, got 1: 'rains'"),
        ("Ada B-PER\n\nrain PER\n", ":3: not a tag of iob2: tag 'PER' is neither O nor "),
        ("\n\n", None),
    ],
)
def test_a_malformed_file_gets_one_line(
    text: str, fault: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.conll"
    path.write_text(text)
    assert data_command(["check", "--format", "conll", str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert ("(to read it: data.bad_lines=skip)" in printed.err) == bool(fault)
    expected = f"{path}{fault}" if fault else f"conll: a.conll has no sentence: {path}\n"
    assert printed.err.startswith(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "wiebo"], "data=wiebo: data has no 'wiebo'; did you mean 'weibo'?\n"),
        (["get", "wiebo"], "data=wiebo: data has no 'wiebo'; did you mean 'weibo'?\n"),
        (["check", "--format", "conll", "/absent/a.conll"], "conll: not found: /absent/a.conll\n"),
        (
            ["check", "--format", "conllu", "--tag", "pos", __file__],
            "conllu: tag must be one of upos, xpos, got 'pos'\n",
        ),
    ],
)
def test_what_cannot_be_read_gets_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data_command(arguments) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", message.format(here=Path.cwd()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["check", "weibo", "msra"],
            "check takes one NAME of a corpus, or files; --tag and the like are for files",
        ),
        (
            ["check", "a", "--tag", "1"],
            "check takes one NAME of a corpus, or files; --tag and the like are for files",
        ),
        (
            ["check", "a", "--format", "conll", "--columns", "word"],
            "argument --columns: expected word=COLUMN, then more such as tag=COLUMN, got 'word'",
        ),
        (
            ["check", "a", "--format", "conllu", "--scheme", "iob1"],
            "--scheme requires --format conll",
        ),
        (["check", "a", "--format", "xml"], "argument --format: invalid choice: 'xml'"),
        ([], "the following arguments are required: action"),
    ],
)
def test_wrong_usage_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        data_command(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
