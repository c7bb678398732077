"""`ner-experiments predict` as a user calls it: forms of input and output, hostile text, memory, streams."""

import io
import json
import re
import subprocess
import sys
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tiny_runs import columns_of_test

from ner_experiments.data.toy import sentences
from ner_experiments.main import cli
from ner_experiments.runs.predictions import read
from ner_experiments.view.mentions import for_terminal

LONG = 100_000
GIB = 2**30
TEXT = "\n".join(" ".join(it.words) for it in sentences("en", "test", 12))
CODE = "import sys; from ner_experiments.main import cli; sys.exit(cli(sys.argv[1:]))"


def predict(capsys: pytest.CaptureFixture[str], run: Path, *arguments: str) -> str:
    assert cli(["predict", str(run), *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_json_lines_say_where_everything_stands(
    toy_run: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [json.loads(line) for line in predict(capsys, toy_run, str(text), "--lines").splitlines()]
    assert [record["line"] for record in records] == list(range(1, 13))
    found = [mention for record in records for mention in record["mentions"]]
    for record in records:
        assert TEXT[record["start"] : record["end"]] == record["text"]
        assert [TEXT[start:end] for start, end in record["tokens"]] == record["text"].split(" ")
    for mention in found:
        assert TEXT[mention["start"] : mention["end"]] == mention["text"]
        assert 0 < mention["probability"] <= 1
    assert len(found) > 5


def test_every_form_of_input_gets_the_tags_of_the_evaluation(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conll = columns_of_test(tmp_path / "test.conll", "en")
    jsonl, bare, turned = (tmp_path / name for name in ("jsonl", "bare", "turned"))
    test = sentences("en", "test", 40)
    jsonl.write_text("".join(json.dumps({"words": it.words, "id": 7}) + "\n" for it in test))
    bare.write_text("\n".join("".join(f"{word}\n" for word in it.words) for it in test))
    turned.write_text("\n".join("".join(f"x\t{word}\n" for word in it.words) for it in test))
    expected = [list(zip(it.words, it.predicted, strict=True)) for it in read(toy_run)]
    by_columns = ("--input=conll", "--columns=word=1")
    ways = (
        (conll, "--input=conll"),
        (bare, "--input=conll"),
        (jsonl, "--input=jsonl"),
        (turned, *by_columns),
    )
    for path, *arguments in ways:
        blocks = columns(predict(capsys, toy_run, str(path), *arguments, "--output=conll"))
        assert [[(row[0], row[-1]) for row in block] for block in blocks] == expected


def columns(text: str) -> list[list[list[str]]]:
    """Sentence by sentence, token by token."""
    return [
        [line.split(" ") for line in block.split("\n")] for block in text.removesuffix("\n\n").split("\n\n")
    ]


def test_columns_have_the_offsets_and_probabilities_of_json_lines(
    toy_run: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [json.loads(line) for line in predict(capsys, toy_run, str(text), "--lines").splitlines()]
    blocks = columns(predict(capsys, toy_run, str(text), "--lines", "--output=conll"))
    for record, block in zip(records, blocks, strict=True):
        assert [[int(start), int(end)] for _, start, end, _, _ in block] == record["tokens"]
        for word, start, end, probability, tag in block:
            assert TEXT[int(start) : int(end)] == word
            around = [it for it in record["mentions"] if it["start"] <= int(start) < it["end"]]
            assert [f"{it['probability']:.4f}" for it in around] == [probability] * (tag != "O")
            assert (tag == "O") == (probability == "_")


class Page(HTMLParser):
    """Its text, and that of each mark with its title."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.marks, self.stack = "", [], []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ("html", "head", "meta", "title", "style", "body", "p", "mark", "small")
        self.stack.append(tag)
        if tag == "mark":
            self.marks.append(["", dict(attributes)["title"]])

    def handle_endtag(self, tag: str) -> None:
        while self.stack.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "p" in self.stack and "small" not in self.stack:
            self.text += data
            if "mark" in self.stack:
                self.marks[-1][0] += data


def test_a_page_shows_all_text_and_each_mention_and_runs_nothing(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = '<script>alert(1)</script> & "x" <img src=x onerror=y> \u202e\x1b[31m'
    (tmp_path / "text").write_text(f"{TEXT}\n{hostile}\n", encoding="utf-8")
    arguments = (str(tmp_path / "text"), "--lines")
    page = Page(predict(capsys, toy_run, *arguments, "--output=html"))
    records = [json.loads(line) for line in predict(capsys, toy_run, *arguments).splitlines()]

    def escaped(text: str) -> str:
        return text.replace("\u202e", r"\u202e").replace("\x1b", r"\x1b")

    assert page.text == escaped("".join(record["text"] for record in records))
    expected = [
        [
            escaped(it["text"]),
            f"{it['type']}, probability {it['probability']:.4f}, characters {it['start']} to {it['end']}",
        ]
        for record in records
        for it in record["mentions"]
    ]
    assert page.marks == expected


def test_a_terminal_gets_each_mention_with_its_type_and_no_character_that_acts(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text(f"{TEXT}\na\x1b[31mb \u202ec [/] d\x07\n", encoding="utf-8")
    arguments = (str(tmp_path / "text"), "--lines")
    shown = predict(capsys, toy_run, *arguments, "--output=terminal").splitlines()
    records = [json.loads(line) for line in predict(capsys, toy_run, *arguments).splitlines()]
    assert len(shown) == len(records) == 13
    for line, record in zip(shown[:12], records, strict=False):
        assert re.sub(r" \[[A-Z]+ \d\.\d\d\]", "", line) == record["text"]
        for mention in record["mentions"]:
            marked = re.escape(f"{mention['text']} [{mention['type']} ") + r"(\d\.\d\d)\]"
            probabilities = [float(it) for it in re.findall(marked, line)]
            assert pytest.approx(mention["probability"], abs=0.0051) in probabilities  # both are rounded
    assert re.sub(r" \[[A-Z]+ \d\.\d\d\]", "", shown[12]) == r"a\x1b[31mb \u202ec [/] d\x07"


def test_columns_have_no_character_that_acts_and_the_offsets_of_the_text(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("a\x1b[31mb \u202ec\u200f d\x07\n", encoding="utf-8")
    lines = predict(capsys, toy_run, str(tmp_path / "text"), "--lines", "--output=conll").splitlines()
    fields = [line.split(" ") for line in lines if line]
    assert "".join(field[0] for field in fields) == r"a\x1b[31mb\u202ec\u200fd\x07"
    assert {len(field) for field in fields} == {5}
    assert fields[-1][2] == "14"
    assert all(line.isprintable() for line in lines)


def test_on_a_terminal_a_line_end_is_a_space_and_nothing_else_ends_a_line() -> None:
    assert (
        for_terminal("He lives in\n") + "Paris" + for_terminal(" \r\n\n\tsince") == "He lives in Paris since"
    )
    assert for_terminal("a\u2028b\x85c\rd\n") == r"a\u2028b\x85c\rd "
    spaces = "100\u00a0km, 東京\u3000大阪"
    assert for_terminal(spaces) == spaces


SAME = {
    "byte order mark": (b"\xef\xbb\xbf", b""),
    "no final newline": (b"", b""),
    "blank lines": (b"", b"\n \t\n\n"),
    "final CR": (b"", b"\r"),
}


@pytest.mark.parametrize("case", SAME)
def test_no_layout_changes_what_is_found(
    case: str, toy_run: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = predict(capsys, toy_run, str(text))
    before, after = SAME[case]
    text.write_bytes(before + TEXT.encode() + after)
    assert predict(capsys, toy_run, str(text)) == expected


@pytest.mark.parametrize(
    ("form", "content"),
    [(form, content) for form in ("text", "jsonl", "conll") for content in ("", "\ufeff", " \n\t\n")]
    + [("text", "\u3000\u2028")],
    ids=ascii,
)
def test_nothing_is_found_in_nothing(
    form: str, content: str, toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").write_text(content, encoding="utf-8")
    assert predict(capsys, toy_run, str(tmp_path / "empty"), f"--input={form}") == ""


def test_what_hostile_text_holds_is_in_the_output_once(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "a\u200bb \u202ec\u202c \ufeffd e\u0301 👩\u200d🔬 \x0b\x1c\x7f \ufffd " + "x" * 10**6 + " z"
    (tmp_path / "text").write_text(hostile, encoding="utf-8")
    (line,) = predict(capsys, toy_run, str(tmp_path / "text")).splitlines()
    record = json.loads(line)
    assert [hostile[start:end] for start, end in record["tokens"]] == hostile.split()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["conll", "text"])
def test_100_000_tokens_take_less_than_2_gib(form: str, toy_run: Path, tmp_path: Path) -> None:
    """As one sentence in columns, and as a document, by VmHWM: ru_maxrss would count the tests' process as well."""
    words = ("Ann saw Mia Roe in Oslo , and left . " * (LONG // 10)).split()
    path = tmp_path / "long"
    path.write_text("\n".join(words) if form == "conll" else " ".join(words), encoding="utf-8")
    code = CODE.replace("sys.exit(cli(sys.argv[1:]))", "status = cli(sys.argv[1:])")
    code += "; import re; status = open('/proc/self/status').read()"
    code += "; print(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1], file=sys.stderr)"
    arguments = ["predict", str(toy_run), str(path), f"--input={form}", "--output=conll"]
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert [line.split(" ")[0] for line in result.stdout.splitlines() if line] == words
    assert result.stdout.count("\n\n") == (1 if form == "conll" else LONG // 10)
    assert int(result.stderr) * 1024 < 2 * GIB


def test_without_a_file_the_standard_input_is_tagged(
    toy_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for files in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ann left Oslo.\n")))
        (line,) = predict(capsys, toy_run, *files, "--output=jsonl").splitlines()
        assert json.loads(line)["text"] == "Ann left Oslo."


@pytest.mark.slow
def test_sentences_come_out_before_the_text_ends_and_a_reader_may_leave(toy_run: Path) -> None:
    """A pipe that is never closed on our side: 17,000 tokens are more than a chunk."""
    command = [sys.executable, "-c", CODE, "predict", str(toy_run), "--output=conll"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"Ann left Oslo .\n\n" * 4_250)
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"Ann ")
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.write(b"Ann left Oslo .\n\n" * 4_250)
            process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
