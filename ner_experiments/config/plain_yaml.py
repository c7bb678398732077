"""Plain values of untrusted YAML files: a config, a table, a claim. Nothing here imports OmegaConf.

YAML aliases, tags and deep nesting are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml import MarkedYAMLError, YAMLError

from ner_experiments.data.text_files import read_lines
from ner_experiments.utils.text import printable, truncated_repr

MAX_DEPTH = 10
MAX_BYTES = 2**20
"""Size of the largest YAML file that is read: parsing takes a second. A run's config has some 5 kB."""
_NESTS = {
    yaml.MappingStartEvent: 1,
    yaml.SequenceStartEvent: 1,
    yaml.MappingEndEvent: -1,
    yaml.SequenceEndEvent: -1,
}
RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
"""Rules by which PyYAML tells numbers, dates and so on from texts, by a value's first character."""


class Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """Plain values, read as OmegaConf does: 1e-3 is a number, a date is a text, and a repeated key is an error.

    With libyaml if it is there: it is ten times as fast as OmegaConf's own loader, which is written in Python.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, rule) for tag, rule in rules if not tag.endswith(":timestamp")]
        for first, rules in RESOLVERS.items()
    }

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        found: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in found:
                rule = f"found duplicate key {key.value}"
                raise MarkedYAMLError("while constructing a mapping", node.start_mark, rule, key.start_mark)
            found.add(key.value)
        return dict(super().construct_mapping(node, deep=deep))


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(_[0-9]+)*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read_text(path: Path) -> str:
    """The text of a file, checked to be plain YAML.

    ValueError, with file and line, for bytes that are not UTF-8, invalid YAML, a bare value, more than ten levels,
    an alias (`*name`: a few lines of them expand to millions) and a tag (`!name`).
    """
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ValueError(f"{path}: expected at most {MAX_BYTES:,} bytes, got {size:,}")
    text = "\n".join(line for _, line in read_lines(path))
    depth = 0
    try:
        for event in yaml.parse(text, Loader=Loader):
            depth += _NESTS.get(type(event), 0)
            if rule := _broken(event, depth):
                raise ValueError(f"{path}:{event.start_mark.line + 1}: {rule}")
    except YAMLError as error:
        raise ValueError(f"{path}{describe(error, text)}") from error
    return text


def load(path: Path) -> Any:
    """The content of a file as dictionaries and lists.

    ValueError as `read_text`, and for values that cannot be read.
    """
    text = read_text(path)
    try:
        content = yaml.load(text, Loader)  # noqa: S506  it makes plain values alone
    except (YAMLError, ValueError) as error:  # such as a number of 5,000 digits
        raise ValueError(f"{path}{describe(error, text)}") from error
    return {} if content is None else content


def to_yaml(content: Mapping[str, Any]) -> str:
    """The content as YAML that `load` reads."""
    return yaml.dump(content, Dumper=Dumper, allow_unicode=True, sort_keys=False)


class Dumper(yaml.SafeDumper):
    """Quotes the texts that `Loader` would read as other values."""

    yaml_implicit_resolvers = Loader.yaml_implicit_resolvers


def _broken(event: yaml.Event, depth: int) -> str:
    if depth > MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels"
    if isinstance(event, yaml.AliasEvent):
        return f"aliases are not allowed, got {truncated_repr(f'*{event.anchor}')}"
    if getattr(event, "tag", None):
        return f"tags are not allowed, got {truncated_repr(event.tag)}"
    if isinstance(event, yaml.ScalarEvent) and not depth:
        return f"expected a mapping, got {truncated_repr(event.value)}"
    return ""


def describe(error: Exception, text: str = "") -> str:
    """A parser's error as a suffix to the file's name: the line, if known, and the rule."""
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        rule = " ".join(part for part in (error.context, error.problem) if part)
        if not mark:
            return f": {printable(rule)}"
        line = min(mark.line, text.count("\n")) + 1  # libyaml puts the end of a file one line below its last
        return f":{line}: {printable(rule)}"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.encode()[: error.position].count(b"\n") + 1
        return f":{line}: U+{error.character:04X}: {error.reason}"
    return f": {printable(str(error).partition(chr(10))[0])}"
