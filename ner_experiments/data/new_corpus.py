"""The config of a corpus from its files: split, format, encoding and columns of each, found by looking at them.

What is found is written into a copy of the format's own config (conf/data/conll.yaml, ...), with its comments.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import yaml

from ner_experiments.data.columns import is_docstart, split_fields
from ner_experiments.data.formats import csv_table
from ner_experiments.data.formats.jsonl import is_line_of_spacy
from ner_experiments.data.formats.registry import FORMATS, READABLE, format_of
from ner_experiments.data.tag_styles import detect_style, labels, to_standard
from ner_experiments.data.text_files import is_blank, open_binary, read_lines

_SPLITS = {
    "dev": re.compile(r"(?<![a-z])(dev(set)?|devel|develop|development|valid|validation|val|testa)(?![a-z])"),
    "test": re.compile(r"(?<![a-z])(test(set)?|tst|testb)(?![a-z])"),
    "train": re.compile(r"(?<![a-z])(train(set)?|training|trn)(?![a-z])"),
}
_IN_ORDER = {1: ("train",), 2: ("train", "test"), 3: ("train", "dev", "test")}
_LINES = 20_000
"""Lines by which columns are told apart."""
_HEADINGS = {"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "entity", "iob", "bio"}
_OF_MENTIONS = re.compile(r"^# *global\.columns|[\t|]NER=")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_SETTING = re.compile(r"^(\w+):[^#\n]*?( *#.*)?$", re.MULTILINE)


def by_split(paths: Sequence[Path]) -> dict[str, Path]:
    """Split -> file, by the names of the files. Files whose name tells none get the splits left, in their order.

    The order of one, two and three files is train; train, test; train, dev, test. Raises ValueError for two files of a
    split, for more than three files, and without a file for train.
    """
    found: dict[str, Path] = {}
    others = []
    for path in paths:
        splits = [split for split, it in _SPLITS.items() if it.search(path.name.lower())]
        if len(splits) != 1:
            others.append(path)
        elif first := found.get(splits[0]):
            raise ValueError(f"{first} and {path}: both names say {splits[0]}")
        else:
            found[splits[0]] = path
    if len(paths) not in _IN_ORDER:
        raise ValueError(
            f"expected a file for each of train, dev and test, got {len(paths)} files: {', '.join(map(str, paths))}"
        )
    left = [split for split in _IN_ORDER[len(paths)] if split not in found]
    found |= dict(zip(left, others, strict=False))
    if "train" not in found:
        raise ValueError(f"no file for train among {', '.join(map(str, paths))}")
    return {split: found[split] for split in ("train", "dev", "test") if split in found}


def settings_of(files: Mapping[str, Path], say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    """The format of files, as named in conf/data, and its settings. `say` gets a line for each thing that was found.

    Raises ValueError for files in which no column has the tags of mentions.
    """
    paths = list(files.values())
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    names = {split: str(path.absolute().relative_to(folder)) for split, path in files.items()}
    settings: dict[str, Any] = {
        "folder": str(folder),
        "files": dict.fromkeys(("train", "dev", "test")) | names,
    }
    say("; ".join(f"{split}: {path}" for split, path in files.items()))
    if "dev" not in files:
        say("no dev file: the last tenth of train is held out as dev (held_out)")
    if "test" not in files:
        say("no test file: no test score until files.test is set")
    if any(path.suffix in it.suffixes for path in paths for it in FORMATS.values() if it.package):
        encoding = "utf-8"  # binary files
    elif all(path.is_dir() for path in paths):
        encoding = encoding_of(path for folder in paths for path in sorted(folder.glob("*.txt")))
    else:
        encoding = encoding_of(paths)
    config, _ = found_config(paths[0], encoding)
    say(f"format: {config} ({READABLE[config]}); encoding: {encoding}")
    if encoding != "utf-8":
        settings["encoding"] = encoding
    if config == "conll":
        settings |= columns_of(paths[0], encoding, say)
    return config, settings


def encoding_of(paths: Iterable[Path]) -> str:
    """The encoding of all files: by a byte order mark, UTF-8 if they are valid, else a guess at GB 18030 or cp1252."""
    contents = []
    for path in paths:
        with open_binary(path) as file:
            contents.append(file.read())
    if any(it.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) for it in contents):
        return "utf-16"
    for codec in ("utf-8", "gb18030", "cp1252"):
        try:
            texts = [it.decode(codec) for it in contents]
        except UnicodeDecodeError:
            continue
        if codec != "gb18030":
            return codec
        foreign = [c for c in chain.from_iterable(texts) if c > "\x7f"]
        if sum(map(bool, map(_CJK.match, foreign))) > 0.8 * len(foreign):
            return codec
    return "latin-1"


def found_config(path: Path, encoding: str) -> tuple[str, str]:
    """The file of conf/data that reads a file's format, and what tells it: "its name" or "its first line".

    CoNLL-U without a key NER or a header of its columns has parts of speech. Columns are the format of what nothing
    tells.
    """
    try:
        config = FORMATS[format_of(path)].config
    except ValueError:
        config = "conll"
    if config == "conllu_ner":
        lines = (line for _, line in islice(read_lines(path, encoding), _LINES))
        return ("conllu_ner" if any(map(_OF_MENTIONS.search, lines)) else "conllu"), "its name and lines"
    if config == "conll":
        first = next((line for _, line in read_lines(path, encoding) if not is_blank(line)), "")
        if first.startswith(("{", "[{", "[[")) or is_line_of_spacy(first):
            return "jsonl", "its first line"
        if first.startswith("# global.columns"):
            return "conllu_ner", "its first line"
        if all({*first.split(",")} & {*names} for names in csv_table.NAMES.values()):
            return "csv", "its first line"
    return config, "its name" if path.suffix else "its lines"


def columns_of(path: Path, encoding: str, say: Callable[[str], None]) -> dict[str, Any]:
    """The setting columns: that of the words and that of the tags, by number, or by name if the first line is a header.

    The tags are in the last column that has nothing but tags of mentions, or in the first one that has the same types.
    The words are in the first column that has neither tags nor the numbers of tokens. `first_character`
    is set if every word is a character and a digit, as in Weibo.
    """
    rows = _rows(path, encoding)
    if not rows:
        raise ValueError(f"{path}: no line with columns")
    header = _header(rows)
    types = _types_by_column(rows[1:] if header else rows)
    if not types:
        columns = f"{len(rows[0])} column{'s' * (len(rows[0]) > 1)}"
        raise ValueError(
            f"{path}: none of its {columns} has the tags of mentions: {' '.join(rows[0])[:60]!r}"
        )
    last = max(types)
    tag = min(column for column, found in types.items() if found >= types[last])
    others = [column for column in types if column != tag]
    numbers = [
        c for c in range(len(rows[0])) if all(row[c].isdecimal() for row in rows[1 if header else 0 :])
    ]
    words = [c for c in range(len(rows[0])) if c not in types and c not in numbers]
    if not words:
        raise ValueError(f"{path}: no column besides the tags has words: {' '.join(rows[0])[:60]!r}")
    found: dict[str, int | str] = {"word": words[0], "tag": tag}
    if header:
        found = {"word": rows[0][words[0]], "tag": rows[0][tag]}
    say(
        f"{len(rows[0])} columns{', named in the first line' * header}; word: {found['word']}, tag: {found['tag']}"
    )
    for column in others:
        shown = ", ".join(sorted(types[column])[:5])
        say(f"column {column} has tags, too ({shown}): data.columns.tag={column} takes them")
    if header or not all(len(row[words[0]]) > 1 and row[words[0]][-1] in "0123456789" for row in rows):
        return {"columns": found}
    say(
        "each word ends in a digit, taken for its position: only its first character is read (first_character)"
    )
    return {"columns": found, "first_character": True}


def _rows(path: Path, encoding: str) -> list[list[str]]:
    """The fields of the lines of tokens at the start of a file, without lines of another width, such as comments.

    Of two widths that are equally frequent, the smaller one counts.
    """
    lines = (line for _, line in islice(read_lines(path, encoding), _LINES) if not is_blank(line))
    rows = [split_fields(line) for line in lines if not is_docstart(line, {"word": 0})]
    tokens = [row for row in rows if not row[0].startswith("#")] or rows
    widths = Counter(map(len, tokens))
    most_frequent = max(sorted(widths), key=widths.__getitem__, default=0)
    return [row for row in tokens if len(row) == most_frequent]


def _header(rows: Sequence[Sequence[str]]) -> bool:
    if not any(field.lower() in _HEADINGS for field in rows[0]):
        return False
    return rows[0] not in rows[1:]


def _types_by_column(rows: Sequence[Sequence[str]]) -> dict[int, set[str]]:
    """The types of mentions in each column that has nothing but tags, with O among them."""
    found = {}
    for column, values in enumerate(zip(*rows, strict=True)):
        tags = {labels(tag)[0] for tag in values if tag}
        style = detect_style(tags)
        types = {to_standard(tag, style)[2:] for tag in tags - {"O", "o"}} if style else set()
        if types and tags & {"O", "o"}:
            found[column] = types
    return found


def character_tokens(words: Iterable[str]) -> bool:
    """Whether tokens are single characters of Chinese or Japanese, so that `predict` should split text into these."""
    sample = list(islice(words, _LINES))
    return sum(len(it) == 1 for it in sample) > 0.9 * len(sample) and any(map(_CJK.match, sample))


def as_yaml(template: str, title: str, settings: Mapping[str, Any]) -> str:
    """The text of a config with other values and a title in its first line; comments stay.

    Raises ValueError for a setting that the template does not have.
    """
    known = {match[1] for match in _SETTING.finditer(template)}
    if unknown := [name for name in settings if name not in known]:
        raise ValueError(f"there is no setting {unknown[0]!r}; there are: {', '.join(sorted(known))}")

    def line(match: re.Match[str]) -> str:
        if match[1] not in settings:
            return match[0]
        text = yaml.safe_dump(
            settings[match[1]], default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False
        )
        value = text.strip().removesuffix("...").strip()
        return f"{match[1]}: {value}{match[2] or ''}"

    _, _, body = template.partition("\n")
    return f"# {title}\n{_SETTING.sub(line, body)}"
