"""The files that tag text with an exported model and without the suite: tag.py, and tokens.py with its tokenization."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from ner_experiments.data import character_tokens, scripts, tokenize, word_tokens
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Tokens
from ner_experiments.export import client

UNITS = ("words", "characters")
"""The units of tokens that need no further package."""
_SPLITTING = ("TokenizedSentence", "tokenize_lines", "_tokens", "_sentence")
_HEAD = '''"""Tokens and sentences of raw text, as ner_experiments splits it. Written by its `export`, for tag.py."""
# ruff: noqa
# fmt: off

from __future__ import annotations
'''
_FOOT = """

def _unit(tokens):
    return {"words": Words, "characters": Characters}[tokens]()
"""


def obstacle(encoder: Encoder, tokens: Tokens) -> str:
    """Why raw text cannot be tagged without the suite; empty if it can."""
    if columns := encoder.required_columns():
        return f"the run reads the columns {', '.join(columns)} besides the words"
    if tokens not in UNITS:
        return f"the run's tokens are cut by a package ({tokens})"
    return ""


def write(folder: Path) -> None:
    """Write the files."""
    (folder / "tag.py").write_text(inspect.getsource(client), encoding="utf-8")
    (folder / "tokens.py").write_text(tokenization(), encoding="utf-8")


def tokenization() -> str:
    """The source of what splits text into words or characters, and these into sentences, as one module."""
    modules = (scripts, word_tokens, character_tokens)
    parts = [*(standalone(module) for module in modules), standalone(tokenize, _SPLITTING)]
    return _HEAD + "\n" + "\n\n\n".join(parts) + "\n" + _FOOT


def standalone(module: ModuleType, names: Collection[str] = ()) -> str:
    """The source of a module without its docstring and what it imports of the suite; with `names`, only these."""
    lines = inspect.getsource(module).splitlines()
    for node in reversed(ast.parse("\n".join(lines)).body):
        own = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("ner_experiments", "__future__")
        )
        other = (
            names
            and not isinstance(node, ast.Import | ast.ImportFrom)
            and getattr(node, "name", "") not in names
        )
        if own or other or node.lineno == 1:
            first = min([node.lineno, *(it.lineno for it in getattr(node, "decorator_list", []))])
            del lines[first - 1 : node.end_lineno]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")
