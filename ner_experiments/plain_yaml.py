"""YAML of the plain kind: names, lists and values written out, of which nothing grows or acts when read."""

from __future__ import annotations

from pathlib import Path

import yaml

from ner_experiments.data.columns import read_lines
from ner_experiments.quote import quoted, visible

DEEPEST = 10
_NESTS = {
    yaml.MappingStartEvent: 1,
    yaml.SequenceStartEvent: 1,
    yaml.MappingEndEvent: -1,
    yaml.SequenceEndEvent: -1,
}


def read_text(path: Path) -> str:
    """The file's text, for a parser of YAML.

    ValueError, with file and line: bytes that are no UTF-8 text, text that is no YAML, a value that stands
    alone, more than ten levels, an alias (`*name`, of which a few lines make millions), a tag (`!name`).
    """
    text = "\n".join(line for _, line in read_lines(path))
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += _NESTS.get(type(event), 0)
            if rule := _broken(event, depth):
                raise ValueError(f"{path}:{event.start_mark.line + 1}: {rule}")
    except yaml.YAMLError as error:
        raise ValueError(f"{path}{describe(error, text)}") from error
    return text


def _broken(event: yaml.Event, depth: int) -> str:
    if depth > DEEPEST:
        return f"more than {DEEPEST} levels"
    if isinstance(event, yaml.AliasEvent):
        return f"aliases are not read, got {quoted(f'*{event.anchor}')}"
    if getattr(event, "tag", None):
        return f"tags are not read, got {quoted(event.tag)}"
    if isinstance(event, yaml.ScalarEvent) and not depth:
        return f"expected names, and what each stands for, got {quoted(event.value)}"
    return ""


def describe(error: Exception, text: str) -> str:
    """A parser's error as it follows the name of the file: its line, where it knows one, and its rule."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        rule = " ".join(part for part in (error.context, error.problem) if part)
        return f":{mark.line + 1}: {visible(rule)}" if mark else f": {visible(rule)}"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f":{line}: U+{error.character:04X}: {error.reason}"
    return f": {visible(str(error).partition(chr(10))[0])}"
