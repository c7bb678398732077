"""The config of a corpus from its files: split, format, encoding and columns of each, found by looking at them.

What is found is written into a copy of the format's own config (conf/data/conll.yaml, ...), with its comments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from ner_experiments.data.files import ColumnFiles
from ner_experiments.data.formats.layout import AUTO
from ner_experiments.data.formats.registry import FORMATS, config_of, detect
from ner_experiments.data.text_files import CJK, guessed_encoding

_SPLITS = {
    "dev": re.compile(r"(?<![a-z])(dev(set)?|devel|develop|development|valid|validation|val|testa)(?![a-z])"),
    "test": re.compile(r"(?<![a-z])(test(set)?|tst|testb)(?![a-z])"),
    "train": re.compile(r"(?<![a-z])(train(set)?|training|trn)(?![a-z])"),
}
_IN_ORDER = {1: ("train",), 2: ("train", "test"), 3: ("train", "dev", "test")}
_LINES = 20_000
"""Lines by which columns are told apart."""
_SETTING = re.compile(r"^(\w+):[^#\n]*?( *#.*)?$", re.MULTILINE)


def files_in(folder: Path) -> tuple[list[Path], list[str]]:
    """The files or folders in a folder whose names tell their split, one of them train; and a line about similar files.

    Empty for anything else than a folder, and for one of BRAT, Parquet or Arrow. Raises ValueError for other folders.
    """
    if not folder.is_dir() or any(folder.glob("*.ann")):
        return [], []
    there = [it for it in sorted(folder.iterdir()) if not it.name.startswith(".")]
    found = [it for it in there if splits_named(it)]
    if any("train" in splits_named(it) for it in found):
        kinds = {it.suffix for it in found}
        others = [it.name for it in there if it not in found and it.suffix in kinds]
        rule = "left out, as their names tell no split (to use them, name the files)"
        return found, [f"{rule}: {_some(others)}"] if others else []
    if any(folder.rglob("*.ann")) or FORMATS["hf"].files(folder):
        return [], []
    rule = "neither a file name that tells train nor .ann of BRAT"
    way_out = f"; to use its files, name them: {_some([it.name for it in there])}" if there else ""
    raise ValueError(f"{folder}: {rule}{way_out}")


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:5], *([f"{len(names) - 5:,} more"] if len(names) > 5 else [])])


def splits_named(path: Path) -> list[str]:
    return [split for split, it in _SPLITS.items() if it.search(path.name.lower())]


def by_split(paths: Sequence[Path]) -> dict[str, Path]:
    """Split -> file, by the names of the files. Files whose name tells none get the splits left, in their order.

    The order of one, two and three files is train; train, test; train, dev, test. Raises ValueError for two files of a
    split, for more than three files, and without a file for train.
    """
    found: dict[str, Path] = {}
    others = []
    for path in paths:
        splits = splits_named(path)
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


def listed_splits(files: Mapping[str, Path]) -> str:
    return "; ".join(f"{split}: {path}" for split, path in files.items())


def settings_of(files: Mapping[str, Path], say: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    """The format of files, as named in conf/data, and its settings. `say` gets a line for each thing that was found."""
    paths = list(files.values())
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    names = {split: str(path.absolute().relative_to(folder)) for split, path in files.items()}
    settings: dict[str, Any] = {
        "folder": str(folder),
        "files": dict.fromkeys(("train", "dev", "test")) | names,
    }
    say(listed_splits(files))
    if "dev" not in files:
        say("no dev file: the last tenth of train is held out as dev (held_out)")
    if "test" not in files:
        say("no test file: no test score until files.test is set")
    if any(path.suffix in it.suffixes for path in paths for it in FORMATS.values() if not it.encodings):
        encoding = "utf-8"
    elif all(path.is_dir() for path in paths):
        encoding = guessed_encoding(path for folder in paths for path in sorted(folder.glob("*.txt")))
    else:
        encoding = guessed_encoding(paths)
    name, _ = detect(paths[0], encoding)
    say(f"format: {name} ({FORMATS[name].about}); encoding: {encoding}")
    if encoding != "utf-8":
        settings["encoding"] = encoding
    config, reads = config_of(name)
    return config, settings | reads


def decided_settings(source: ColumnFiles) -> dict[str, Any]:
    """The settings of a corpus in columns that were detected: the columns, and `first_character`.

    Columns are given by name if all files have a header with it, else by number. What differs between files stays
    as it is, to be detected for each.
    """
    found = source.layouts()
    if any(layout.separator == "spaces" and "\t" in survey.first[1] for _, survey, layout in found):
        return {}  # only the search for a column of tags splits lines with tabs at spaces, too
    layouts = [layout for _, _, layout in found]
    columns: dict[str, int | str] = dict(source.columns)
    for name, column in columns.items():
        numbers = {layout.columns[name] for layout in layouts}
        names = {layout.names[layout.columns[name]] if layout.header else "" for layout in layouts}
        if column == AUTO and len(names) == 1 and "" not in names:
            columns[name] = names.pop()
        elif column == AUTO and len(numbers) == 1:
            columns[name] = numbers.pop()
    positioned = {layout.first_character for layout in layouts}
    return {"columns": columns} | ({"first_character": positioned.pop()} if len(positioned) == 1 else {})


def character_tokens(words: Iterable[str]) -> bool:
    """Whether tokens are single characters of Chinese or Japanese, so that `predict` should split text into these."""
    sample = list(islice(words, _LINES))
    return sum(len(it) == 1 for it in sample) > 0.9 * len(sample) and any(map(CJK.match, sample))


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
