"""The sessions in tests/transcript/: commands, each with what it prints, how it exits and which files it writes.

`NER_GOLDEN=write python -m pytest -q tests/test_sessions.py` runs the lines that begin with `$` and writes the rest.

A file opens with what it shows, with `folder: NAME`, the function below that prepares the folder of its commands, and
with masks: what differs between machines, days or versions of the code, and what stands for it. Training rounds
differently on each processor, so scores of trained models are masked. Printed lines follow their command: those of
stderr begin with `2>`, and `->` is the exit status, if it is not 0, and a file that was written (+), changed (~) or
removed (-). Of a long output, the checksum changes too where no shown line does: compare what the command prints before
and after a change.
"""

import difflib
import hashlib
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import toy_rows
from places import RESULTS, ROOT

from ner_experiments import __version__
from ner_experiments.data import toy
from ner_experiments.main import cli

SESSIONS = sorted((Path(__file__).parent / "transcript").glob("*.txt"))
COMMAND = re.compile(r"(?m)^(?=\$ (?:ner-experiments|python run\.py|cat)\b)")
SLOW = {"05_training", "06_a_trained_run", "08_whole_archive"}
LONGEST = 80
"""Lines; the rest of a longer output is represented by its checksum."""


def archive(folder: Path) -> None:
    """The archived runs, and no run of one's own."""
    (folder / "results").symlink_to(RESULTS)


def toy_runs(folder: Path) -> None:
    """Five runs of two rows of a table, with made-up predictions, and a gold file without the first mention."""
    toy_rows.page_of(f"output_dir={folder}/outputs")
    lines = [[*zip(it.words, it.tags, strict=True)] for it in toy_rows.TEST]
    first = next(number for number, it in enumerate(toy_rows.TEST) if {*it.tags} != {"O"})
    lines[first] = [(word, "O") for word, _ in lines[first]]
    blocks = ["".join(f"{word} {tag}\n" for word, tag in it) for it in lines]
    (folder / "gold.conll").write_text("\n".join(blocks))


def texts(folder: Path) -> None:
    """Sentences to tag, as text and in columns."""
    known = toy.sentences("en", "train", 4)
    (folder / "text.txt").write_text("\n".join(" ".join(it.words) for it in known))
    (folder / "columns.conll").write_text(
        "\n".join("".join(f"{word} O\n" for word in it.words) for it in known)
    )


def corpus(folder: Path) -> None:
    """Files of a small corpus in columns, one of them with an illegal tag, and a folder for configs."""
    (folder / "conf").mkdir()
    lines = ["Mary B-PER", "Smith I-PER", "sings O", "", "in O", "Paris B-LOC", ""]
    for split, last in (("train", "Rome B-LOC"), ("dev", "Oslo B-LOC"), ("test", "Bonn I-LOC")):
        (folder / f"{split}.conll").write_text("\n".join([*lines, "to O", last, ""]) + "\n")


def nothing(folder: Path) -> None:
    """An empty folder."""


FOLDERS: dict[str, Callable[[Path], None]] = {
    each.__name__: each for each in (archive, toy_runs, texts, corpus, nothing)
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of a session."""
    folder = tmp_path / "session"
    folder.mkdir()
    monkeypatch.chdir(folder)
    cache = str(tmp_path / "cache")
    variables = {"COLUMNS": "110", "NER_DATA_DIR": "data", "NER_CACHE_DIR": cache, "NER_CONFIG_DIRS": ""}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.mark.filterwarnings("ignore")  # of libraries
@pytest.mark.parametrize(
    "path", [pytest.param(it, id=it.stem, marks=[pytest.mark.slow] * (it.stem in SLOW)) for it in SESSIONS]
)
def test_a_session_is_as_recorded(
    path: Path, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = path.read_text(encoding="utf-8")
    header, *parts = re.split(COMMAND, recorded)
    settings = dict(re.findall(r"^(folder|python): (.+)$", header, re.MULTILINE))
    if not sys.version.startswith(settings.get("python", "")):
        pytest.skip(f"Python {settings['python']} writes it so")
    FOLDERS[settings["folder"]](place)
    masks = [
        # of the first command that needs the kernels, which waits for another process that compiles them
        (r"(?m)^(compiling the CPU kernels |another process compiles the CPU kernels ).*\n", ""),
        (re.escape(str(place)), "FOLDER"),
        (re.escape(str(ROOT)), "CHECKOUT"),
        (re.escape(__version__), "VERSION"),
        (r"(\.\d{9})\d+", r"\1"),  # libraries round differently
        *re.findall(r"^mask: (.+) -> (.*)$", header, re.MULTILINE),
    ]
    found = header
    for part in parts:
        command = part.partition("\n")[0]
        found += "\n".join([command, *transcript(command, place, masks, capsys, monkeypatch), "", ""])
    if os.environ.get("NER_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
        return
    if found != recorded:
        lines = (recorded.splitlines(), found.splitlines())
        difference = "\n".join(difflib.unified_diff(*lines, str(path), "now", lineterm=""))
        pytest.fail(f"{difference}\n\nIf this is intended: NER_GOLDEN=write", pytrace=False)


def transcript(
    line: str,
    place: Path,
    masks: Sequence[tuple[str, str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """The output of a command, its exit status and the files that it writes, a line each."""
    _, *words = shlex.split(line)
    arguments = [name for word in words for name in sorted(map(str, Path().glob(word))) or [word]]
    before = files(place)
    capsys.readouterr()
    status = call(arguments, monkeypatch)
    printed, after = capsys.readouterr(), files(place)
    yield from shortened(masked(printed.out, masks))
    yield from (f"2> {it}" for it in shortened(masked(printed.err, masks)))
    if status:
        yield f"-> {status}"
    changes = {
        "+": after.keys() - before.keys(),
        "~": {path for path in after.keys() & before.keys() if after[path] != before[path]},
        "-": before.keys() - after.keys(),
    }
    for mark, paths in changes.items():
        yield from shortened("\n".join(f"-> {mark} {masked(path, masks)}" for path in sorted(paths)))


def call(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of `ner-experiments NAME ...`, `python run.py ...` or `cat FILE ...`."""
    program, *rest = arguments
    if program == "cat":
        for name in rest:
            print(Path(name).read_text(encoding="utf-8"))
        return 0
    if program == "python":
        rest = ["train", *rest[1:]]
    monkeypatch.setattr(sys, "argv", ["run.py", *rest[rest[:1] == ["train"] :]])
    handlers, logging.root.handlers = logging.root.handlers, []  # none of pytest's: stderr gets warnings
    try:
        return cli(rest)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        logging.root.handlers = handlers


def files(folder: Path) -> dict[str, str]:
    """Digest of the content of each file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def shortened(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    if len(lines) <= LONGEST:
        return lines
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
    return [*lines[: LONGEST // 2], f"... {len(lines) - LONGEST // 2} more lines, {digest}"]


def masked(text: str, masks: Sequence[tuple[str, str]]) -> str:
    for pattern, mask in masks:
        text = re.sub(pattern, mask, text)
    return text
