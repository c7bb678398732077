"""`make round-trips`: corpora through every format that can hold them and back to columns, every mention compared.

CoNLL-2003, Weibo and WNUT 17 are taken where NER_DATA_DIR has them, the toy corpora always. What comes back is read by
a reader of columns that is written here, and its mentions by the oracle of `fuzz`; neither shares code with the suite.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from corpus_files import data_command
from fuzz.oracle import mentions

from ner_experiments.config.corpora import open_source
from ner_experiments.data.formats.registry import FORMATS, WRITABLE

CORPORA = ("toy_en", "toy_zh", "conll2003", "weibo", "wnut17")
AVAILABLE = [name for name in WRITABLE if not FORMATS[name].package or find_spec(FORMATS[name].package)]

Sentence = tuple[list[str], list[str]]
"""Words and tags."""
Mention = tuple[str, str]
"""Type, and text without white space."""


@dataclass(frozen=True)
class Outcome:
    """Counts of one corpus through one format: what it has, and how much of that came back otherwise."""

    sentences: int
    mentions: int
    other_sentences: int
    other_mentions: int


def round_trip(corpus: str, format: str, folder: Path, overrides: Sequence[str] = ()) -> Outcome:
    """Convert all splits of a corpus to a format and back to columns, in `folder`, and compare.

    Of formats that state no tokens, the characters of a sentence are compared instead of its words. Raises RuntimeError
    with what was printed if a conversion ends with another status than 0.
    """
    source = open_source(corpus, overrides)
    convert(corpus, str(folder / "there"), *overrides, "--to", format)
    has_tokens = FORMATS[format].has_tokens
    settings = [f"data.tokens={source.tokens}", *([] if has_tokens else ["data.lines=true"])]
    if FORMATS[format].config == "conll":
        settings = []
    sentences = differ = found = lost = 0
    for split, before in source.read().items():
        (there,) = [path for path in (folder / "there").iterdir() if path.name.partition(".")[0] == split]
        back = folder / f"{split}.back"
        convert(str(there), str(back), *settings, "--from", FORMATS[format].config, "--to", "conll")
        pairs = [([*it.words], [*it.tags]) for it in before], list(columns(back))
        shown = [[it[0] if has_tokens else "".join("".join(it[0]).split()) for it in side] for side in pairs]
        known, read = ([marked(it) for it in side] for side in pairs)
        sentences += len(known)
        found += sum(map(len, known))
        differ += sum(a != b for a, b in zip(*shown, strict=False)) + abs(len(shown[0]) - len(shown[1]))
        lost += sum(a != b for a, b in zip(known, read, strict=False)) + abs(len(known) - len(read))
    return Outcome(sentences, found, differ, lost)


def convert(*arguments: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = data_command(["convert", *arguments])
    if status:
        raise RuntimeError(f"{' '.join(arguments)}: status {status}\n{printed.getvalue()}")


def columns(path: Path) -> Iterator[Sentence]:
    """Sentences of a file of words and tags between tabs."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line]
        if rows:
            yield [row[0] for row in rows], [row[-1] for row in rows]


def marked(sentence: Sentence) -> list[Mention]:
    words, tags = sentence
    return [(kind, "".join("".join(words[start:end]).split())) for start, end, kind in mentions(tags)]


def present() -> list[str]:
    """The corpora whose files are there."""
    found = []
    for name in CORPORA:
        with contextlib.suppress(ValueError):
            open_source(name, overrides()).present()
            found.append(name)
    return found


def overrides() -> list[str]:
    return [f"data_dir={folder}"] if (folder := os.environ.get("NER_DATA_DIR")) else []


def main() -> int:
    """Print a line for each corpus and format, and return 1 if anything came back otherwise."""
    began, wrong, total = time.perf_counter(), 0, 0
    for corpus in present():
        for format in AVAILABLE:
            with tempfile.TemporaryDirectory() as folder:
                it = round_trip(corpus, format, Path(folder), [] if "toy" in corpus else overrides())
            wrong += it.other_sentences + it.other_mentions
            total += it.mentions
            print(
                f"{corpus} {format}: {it.sentences:,} sentences, {it.other_sentences:,} of them otherwise; "
                f"{it.mentions:,} mentions, in {it.other_mentions:,} sentences otherwise",
                flush=True,
            )
    print(f"{total:,} mentions, {wrong:,} differences, {(time.perf_counter() - began) / 60:.1f} minutes")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
