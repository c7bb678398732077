"""`ner-experiments data check|new|convert|get ...`: check, convert or download a corpus, or write a config for one."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console

from ner_experiments.config import plain_yaml
from ner_experiments.config.choices import as_value
from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import CONF, config_dirs, file_of
from ner_experiments.config.corpora import instantiated, open_source
from ner_experiments.data import raw_text
from ner_experiments.data.corpus import Source
from ner_experiments.data.corpus_report import corpus_report, print_report, refusal
from ner_experiments.data.download import download
from ner_experiments.data.files import ColumnFiles, Files
from ner_experiments.data.format_files import AnnotatedFiles, annotated_splits
from ner_experiments.data.formats.annotated import Annotated, flat
from ner_experiments.data.formats.registry import (
    FORMATS,
    WRITABLE,
    config_of,
    detect,
    format_of,
    require,
    write,
)
from ner_experiments.data.glove import PACKAGES, get_vectors
from ner_experiments.data.new_corpus import (
    as_yaml,
    by_split,
    character_tokens,
    decided_settings,
    files_in,
    listed_splits,
    settings_of,
)
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tokenize import UNITS
from ner_experiments.utils.files import as_file
from ner_experiments.utils.text import counted, truncated_repr

_SETTING = re.compile(r"\+{0,2}data(_dir|\.[a-z_.]+)?=")
_NAME = re.compile(r"[\w-]+")


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand and return the exit status. Raises ValueError or OSError for user errors."""
    return int(arguments.run(arguments) or 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the subcommands of the command to its parser."""
    parser.description = "Check, convert and download corpora, and write the config of a new one."
    actions = parser.add_subparsers(dest="action", required=True)
    parser.set_defaults(subcommands=actions.choices)
    _add_check(actions.add_parser("check", help="print statistics of a corpus or of files"))
    _add_convert(actions.add_parser("convert", help="write a corpus or a file in another format"))
    _add_new(actions.add_parser("new", help="look at the files of a corpus, and write its config"))
    _add_get(actions.add_parser("get", help="download a corpus with an open license, or word vectors"))


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=check, usage_error=parser.error)
    parser.add_argument(
        "names",
        nargs="+",
        metavar="CORPUS|FILE|OVERRIDE",
        help="a corpus of conf/data, or files (- for standard input) or a folder with one per split; and settings, as "
        "of train, such as data.columns.tag=2, data.scheme=iob2, data.empty_tag=O or data.encoding=latin-1",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="of files (by their names and first lines): "
        + "; ".join(f"{n}: {it.about}" for n, it in FORMATS.items()),
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=convert)
    parser.add_argument("source", metavar="FROM", help="a corpus of conf/data, or a file or folder")
    parser.add_argument(
        "target", metavar="TO", help="the file to write; of a corpus, the folder of a file per split"
    )
    parser.add_argument(
        "settings", nargs="*", metavar="OVERRIDE", help="settings of FROM, such as data.lines=true"
    )
    parser.add_argument("--from", dest="from_format", choices=FORMATS, help="(by the name of FROM)")
    parser.add_argument(
        "--to",
        dest="to_format",
        choices=WRITABLE,
        help="(by the name of TO) " + "; ".join(f"{n}: {FORMATS[n].about}" for n in WRITABLE),
    )


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=new)
    parser.add_argument("name", metavar="NAME", help="the name of the corpus, for data=NAME")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE|OVERRIDE",
        help="train, dev and test, told apart by their names or else by their order, or the folder in which they have "
        "such names; and settings, such as "
        "data.columns.tag=2. The config is written below the folder of --config-dir (./conf)",
    )


def _add_get(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=get)
    parser.add_argument("name", metavar="CORPUS", help=f"a corpus of conf/data, or {' or '.join(PACKAGES)}")


def check(arguments: argparse.Namespace) -> None:
    """Print statistics of a corpus or of files, as text or JSON."""
    with standard_input_as_file(arguments.names) as names:
        found = {name: ([], []) if _is_corpus(name) else files_in(Path(name)) for name in names}
        remarks = [line for _, lines in found.values() for line in lines]
        folders = [name for name, (files, _) in found.items() if files]
        alone = len(folders) == 1 and folders == [name for name in names if not _SETTING.match(name)]
        splits = by_split(found[folders[0]][0]) if alone else {}
        if splits:
            remarks.append(listed_splits(splits))
        names = [file for name, (files, _) in found.items() for file in [*map(str, files)] or [name]]
        guessed = [*remarks, *_guess_format(arguments, names)]
        report = corpus_report(_source(arguments, names, splits))
        report["remarks"] = [*guessed, *report["remarks"]]
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report, Console(markup=False, emoji=False, highlight=False))


def _is_corpus(name: str) -> bool:
    """Whether a name is that of a corpus, which a folder may have as well."""
    return bool(_NAME.fullmatch(name)) and file_of(f"data/{name}").is_file()


def _guess_format(arguments: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Set `--format` for files without it, and return the line that says so; no line for a corpus of conf/data.

    Raises ValueError for a file that does not exist, and for files of several formats.
    """
    files = [name for name in names if not _SETTING.match(name)]
    if arguments.format or not any(os.path.exists(name) or not _NAME.fullmatch(name) for name in files):
        return []
    if len(files) == 1 and _is_corpus(files[0]):
        return []
    if missing := [name for name in files if not os.path.exists(name)]:
        raise ValueError(f"{missing[0]}: no such file")
    encoding = next((name.partition("=")[2] for name in names if name.startswith("data.encoding=")), None)
    found = {name: detect(Path(name), encoding) for name in files}
    arguments.format, reason = found[files[0]]
    for name, (other, _) in found.items():
        if other != arguments.format:
            raise ValueError(f"{files[0]} is {arguments.format}, {name} is {other}: check them one by one")
    return [f"format: {arguments.format}, by {reason}; --format sets another"]


def _source(arguments: argparse.Namespace, names: Sequence[str], splits: Mapping[str, Path]) -> Source:
    """The corpus to check: NAME in conf/data, or the FILEs in a format, with the settings.

    splits: split -> FILE, if their folder was named. Without it, all are read as train is.
    """
    settings = [name for name in names if _SETTING.match(name)]
    names = [name for name in names if name not in settings]
    names += [setting.removeprefix("data=") for setting in settings if setting.startswith("data=")]
    settings = [setting for setting in settings if not setting.startswith("data=")]
    if arguments.format is None:
        if len(names) != 1:
            arguments.usage_error("check takes one NAME of a corpus, or files")
        return open_source(names[0], settings)
    if not names:
        arguments.usage_error("--format takes files")
    files = {split: str(path) for split, path in splits.items()} or _keys(names)
    return _of_format(arguments.format, settings, {"files": files})


def _of_format(name: str, overrides: Sequence[str], settings: dict[str, Any]) -> Source:
    """Files in a format, with these overrides and settings."""
    config, reads = config_of(name)
    return open_source(config, overrides, {**reads, **settings})


@contextmanager
def standard_input_as_file(names: Sequence[str]) -> Iterator[list[str]]:
    """The names, with `-` replaced by a temporary file of standard input; errors call it <stdin>."""
    if "-" not in names:
        yield list(names)
        return
    with as_file(sys.stdin.buffer) as path:
        yield [str(path) if name == "-" else name for name in names]


def _keys(paths: Sequence[str]) -> dict[str, str]:
    """Paths keyed by file name, or by the whole path where file names repeat."""
    shared = Counter(os.path.basename(path) for path in paths)
    return {path if shared[os.path.basename(path)] > 1 else os.path.basename(path): path for path in paths}


def new(arguments: argparse.Namespace) -> None:
    """Write the config of a new corpus, and print what its files look like and a check of them.

    Raises ValueError for files that cannot be read so; nothing is written then.
    """
    name = arguments.name
    if not _NAME.fullmatch(name):
        raise ValueError(f"{truncated_repr(name)}: expected a name of letters, digits, - and _")
    folder = next(iter(reversed(config_dirs())), Path("conf"))
    path = folder / "data" / f"{name}.yaml"
    for place in (file_of(f"data/{name}"), path):
        if place.exists():
            raise ValueError(f"{place}: already exists: choose another name, or remove it")
    overrides = [item for item in arguments.files if _SETTING.match(item)]
    files = [Path(item) for item in arguments.files if item not in overrides]
    if missing := [str(file) for file in files if not file.exists()]:
        raise ValueError(f"{missing[0]}: no such file")
    if not files:
        raise ValueError(f"{name}: no file is named")
    if len(files) == 1:
        in_folder, left_out = files_in(files[0])
        files = in_folder or files
        for line in left_out:
            print(line)
    config, settings = settings_of(by_split(files), print)
    settings = {"name": name, **settings}
    values = [f"data.{key}={_quoted(value)}" for key, value in settings.items()]
    composed = OmegaConf.to_container(compose([f"data={config}", *values, *overrides]).data, resolve=True)
    assert isinstance(composed, dict)
    data = {str(key): value for key, value in composed.items()}
    source = instantiated(data)
    report = corpus_report(source)
    if isinstance(source, ColumnFiles):
        data |= decided_settings(source)
    splits = source.read()
    if character_tokens(word for it in next(iter(splits.values())) for word in it.words):
        data["tokens"] = "characters"
        print("tokens are single characters; predict splits text into these (tokens)")
    print_report(report, Console(markup=False, emoji=False, highlight=False))
    tokens = data.get("tokens", source.tokens)
    if found := raw_text.raw_text(chain.from_iterable(splits.values()), tokens):
        print(raw_text.line(found))
    template = file_of(f"data/{config}")
    defaults = plain_yaml.load(template)
    changed = {key: value for key, value in data.items() if defaults.get(key) != value}
    title = f"{name}: {source.task} in {', '.join(map(str, files))}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_yaml(template.read_text(encoding="utf-8"), title, changed), encoding="utf-8")
    option = "" if folder.absolute() == CONF else f" --config-dir {folder}"
    print(f"written: {path}")
    first = "give it a dev set, then " if refusal(source, splits) else ""
    print(f"next: {first}ner-experiments train data={name}{option}")


def _quoted(value: Any) -> str:
    """A setting's value in the grammar of Hydra's overrides."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}: {_quoted(item)}" for key, item in value.items()) + "}"
    return as_value(value) if isinstance(value, str) else "null" if value is None else str(value)


def convert(arguments: argparse.Namespace) -> int:
    """Write FROM as TO, read it back, and print what is left out or differs; return exit status 1 if mentions differ.

    Raises ValueError, before anything is written, if a file to write exists or the corpus cannot be read. After an
    error in a later file, those before it are removed.
    """
    target, remarks = Path(arguments.target), Remarks()
    if target.suffix == ".gz":
        raise ValueError(
            f"{target}: gzip files are not written; write {target.with_suffix('')} and compress it"
        )
    source, to, targets = _source_and_targets(arguments)
    if existing := [path for path in targets.values() if path.exists()]:
        raise ValueError(f"{existing[0]}: already exists: remove it, or choose another name for TO")
    if target not in targets.values() and target.exists() and not target.is_dir():
        raise ValueError(f"{target}: already exists, and is no folder: choose another name for TO")
    splits = annotated_splits(source, remarks)
    if not FORMATS[to].nested:
        nested = source.nested or "refuse" if isinstance(source, AnnotatedFiles) else "refuse"
        splits = {split: [flat(it, nested, remarks) for it in splits[split]] for split in targets}
    with ExitStack() as undo:
        if target not in targets.values() and not target.exists():
            target.mkdir(parents=True)
            undo.callback(target.rmdir)
        for split, path in targets.items():
            write(to, splits[split], path)
            undo.callback(shutil.rmtree if path.is_dir() else Path.unlink, path)
        differ = sum(_read_back(splits[split], path, to, source) for split, path in targets.items())
        undo.pop_all()
    for remark in remarks.with_places():
        print(remark)
    if columns := sorted({name for split in targets for it in splits[split] for name in it.columns}):
        print(f"columns left out: {', '.join(columns)}")
    if settings := _settings_to_read(to, source):
        print(f"to be read with {' '.join(settings)}")
    return 1 if differ else 0


def _source_and_targets(arguments: argparse.Namespace) -> tuple[Source, str, dict[str, Path]]:
    """FROM, the format to write, and split -> file to write; "file" -> TO if FROM is a file or folder."""
    source_path, target = Path(arguments.source), Path(arguments.target)
    if source_path.exists() or arguments.from_format:
        name = arguments.from_format or format_of(source_path)
        source = _of_format(name, arguments.settings, {"files": {"file": str(source_path)}})
        to = arguments.to_format or format_of(target)
        require(to)
        return source, to, {"file": target}
    source = open_source(arguments.source, arguments.settings)
    to = arguments.to_format or "jsonl"
    require(to)
    suffix = (FORMATS[to].suffixes or FORMATS[FORMATS[to].config].suffixes or ("",))[0]
    return source, to, {split: target / f"{split}{suffix}" for split in source.present()}


def _settings_to_read(to: str, source: Source) -> list[str]:
    """The settings, where not the defaults, with which a converted file is read as it was written."""
    lines = [] if FORMATS[to].has_tokens else ["data.lines=true"]
    return (
        [*lines, f"data.tokens={source.tokens}"]
        if source.tokens in UNITS and source.tokens != "words"
        else lines
    )


def _read_back(sentences: Sequence[Annotated], path: Path, to: str, source: Source) -> int:
    """Compare the sentences with what is read from their file; return the number of mentions that differ.

    Raises ValueError for a file that cannot be read.
    """
    try:
        again = _of_format(to, _settings_to_read(to, source), {"files": {"file": str(path)}})
        read = annotated_splits(again, Remarks())["file"]
    except ValueError as error:
        raise ValueError(
            f"the format {to} cannot hold these sentences; reading them back failed: {error}"
        ) from None
    before, after = ([text for it in part for text in it.texts()] for part in (sentences, read))
    sizes = [[_size(part, unit) for part in (sentences, read)] for unit in ("sentences", "tokens")]
    changed = [one if one == other else f"{one}, read as {other}" for one, other in sizes]
    joined = sum(len(it.scored[1:]) for it in sentences)
    ends = (
        f"; joined to the one before, as a mention crosses its end: {counted(joined, 'sentence')}"
        if joined
        else ""
    )
    print(f"{path}: {', '.join(changed)}, {len(before):,} mentions{ends}")
    if before == after:
        return 0
    lost, added = Counter(before) - Counter(after), Counter(after) - Counter(before)
    for what, found in (("not kept", lost), ("read in addition", added)):
        for (type_, text), number in found.items():
            print(f"{what}: {type_} {truncated_repr(text)}{f' ({number} times)' if number > 1 else ''}")
    if not lost and not added:
        print("mentions in another order")
    return lost.total() + added.total() or 1


def _size(sentences: Sequence[Annotated], unit: str) -> str:
    number = len(sentences) if unit == "sentences" else sum(len(it.words) for it in sentences)
    return f"{number:,} {unit}"


def get(arguments: argparse.Namespace) -> None:
    """Download a corpus or word vectors. Raises ValueError if a corpus has no open license."""
    if arguments.name in PACKAGES:
        get_vectors(arguments.name, Path(compose([]).data_dir) / "glove")
        return
    source = open_source(arguments.name)
    if not isinstance(source, Files):
        raise ValueError(f"{source.name}: generated, nothing to download")
    if not source.url:
        raise ValueError(
            f"{source.name}: no open license ({source.licence}), so it cannot be downloaded; source: {source.source}"
        )
    files = {split: file for split, file in source.files.items() if file is not None}
    download(
        {file: f"{source.url}/{file}" for file in files.values()},
        {files[split]: checksum for split, checksum in source.sha256.items()},
        {files[split]: size for split, size in source.sizes.items()},
        source.place,
    )
