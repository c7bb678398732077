"""Refusals of `ner-experiments predict`: one line each, with place and rule."""

from pathlib import Path

import pytest

from ner_experiments.main import cli


def refusal(capsys: pytest.CaptureFixture[str], run: Path, *arguments: str) -> str:
    """The one line on standard error."""
    assert cli(["predict", str(run), *arguments]) == 1
    error = capsys.readouterr().err.removesuffix("\n")
    assert error.isprintable()
    return error


REFUSED = {
    "NUL": ("text", b"a b\nc \0d", "input:2: NUL byte: 'c \\x00d'"),
    "Latin-1": (
        "text",
        b"a\ncaf\xe9 b\n",
        "input:2: not UTF-8 (invalid continuation byte at byte 4 of the line",
    ),
    "UTF-16": (
        "text",
        "a b".encode("utf-16"),
        "input:1: not UTF-8 (invalid start byte at byte 1 of the line)",
    ),
    "a surrogate": (
        "text",
        b"\xed\xa0\x80",
        "input:1: not UTF-8 (invalid continuation byte at byte 1 of the",
    ),
    "CR in columns": ("conll", b"a\rb\n", "input:1: carriage return inside a line (lines end in LF or CRLF)"),
    "a column comes": ("conll", b"a\nb O\n", "input:2: expected 1 columns, got 2: 'b O'"),
    "an empty word": (
        "conll",
        b"\tO\n",
        "input:1: empty word (set empty_word to the word that it stands for): '\\tO'",
    ),
    "no JSON": (
        "jsonl",
        b'{"text": "a"}\n{"text"}',
        "input:2: not JSON (Expecting ':' delimiter at character 8): ",
    ),
    "no object": ("jsonl", b'["a"]', "input:1: expected a JSON object: '[\"a\"]'"),
    "neither": ("jsonl", b'{"txt": "a"}', 'input:1: expected either "text" or "words": '),
    "both": ("jsonl", b'{"text": "a", "words": ["a"]}', 'input:1: expected either "text" or "words": '),
    "no string": ("jsonl", b'{"text": 7}', "input:1: text must be a string: "),
    "no list": ("jsonl", b'{"words": "a b"}', "input:1: words must be a list of strings: "),
    "null": ("jsonl", b'{"words": null}', "input:1: words must be a list of strings: "),
    "a number": ("jsonl", b'{"words": ["a", 7]}', "input:1: item 2 of words must be a string: "),
    "a word of nothing": ("jsonl", b'{"words": ["a", ""]}', "input:1: empty word: item 2 of words: "),
    "half a pair": (
        "jsonl",
        b'{"text": "a\\ud800"}',
        "input:1: half a surrogate pair in text, at character 2: ",
    ),
    "an escaped NUL": ("jsonl", b'{"text": "a\\u0000"}', "input:1: NUL in text: "),
    "nested": (
        "jsonl",
        b"[" * 100_000,
        "input:1: JSON that cannot be read (a number too long, or nested too",
    ),
    "a long number": (
        "jsonl",
        b"9" * 10_000,
        "input:1: JSON that cannot be read (a number too long, or nested",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_line(
    case: str, toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    form, content, message = REFUSED[case]
    (tmp_path / "input").write_bytes(content)
    found = refusal(capsys, toy_run, str(tmp_path / "input"), f"--input={form}")
    assert found.replace(f"{tmp_path}/", "").startswith(message)


def test_a_run_a_file_or_a_device_that_is_not_there_is_named(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = "expected the folder of a finished run, but"
    assert f"{expected} it has no metrics.json" in refusal(capsys, tmp_path)
    assert refusal(capsys, tmp_path / "none") == f"{tmp_path}/none: {expected} there is no such folder"
    for seed in (2, 1):
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}/metrics.json").touch()
    expected = f"{expected} it has no metrics.json; its runs are seed-1, seed-2"
    assert refusal(capsys, tmp_path) == f"{tmp_path}: {expected}"
    missing = f"{tmp_path}/missing"
    assert refusal(capsys, toy_run, missing) == f"{missing}: No such file or directory"
    for device in ("nonsense", "cuda:99"):
        rule = f"device {device!r}: expected cpu, or a GPU that PyTorch can use, such as cuda ("
        assert refusal(capsys, toy_run, f"--device={device}").startswith(rule)
    (tmp_path / "text").touch()
    output = f"{missing}/out.jsonl"
    assert (
        refusal(capsys, toy_run, str(tmp_path / "text"), f"--to={output}")
        == f"{output}: No such file or directory"
    )
    for wrong, rule in (
        ("word", "expected word=COLUMN, then more such as tag=COLUMN"),
        ("word=", "expected word=COLUMN, then more such as tag=COLUMN"),
        ("tag=1", "expected word=COLUMN among others"),
    ):
        with pytest.raises(SystemExit, match="2"):
            cli(["predict", str(toy_run), f"--columns={wrong}"])
        assert f"{rule}, got '{wrong}'" in capsys.readouterr().err
