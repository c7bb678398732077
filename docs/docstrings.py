"""Griffe extension for `make docs`: what a docstring says of arguments by their names becomes a list."""

from __future__ import annotations

import re
from typing import Any

import griffe

NAMED = re.compile(r"^(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*): (?=\S)", re.MULTILINE)
"""The begin of a line such as `path: the file`, whose further lines are indented."""


class NamedArguments(griffe.Extension):
    """Rewrites docstrings as Markdown, which would join their lines."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_lists(obj.docstring.value)


def as_lists(docstring: str) -> str:
    paragraphs = []
    for paragraph in docstring.split("\n\n"):
        listed = NAMED.sub(lambda match: f"\n- `{match['names'].replace(', ', '`, `')}`: ", paragraph)
        paragraphs.append(listed.strip("\n"))
    return "\n\n".join(paragraphs)
