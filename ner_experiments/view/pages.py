"""Pages of text from the templates of this room, as Markdown or LaTeX."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ner_experiments.view.table import latex


def page(template: str, **context: Any) -> str:
    """Render a template. Its paragraphs stand between empty lines; those that come out empty leave no trace."""
    text = environment().get_template(template).render(context)
    text = re.sub(r"\n{3,}", "\n\n", text).strip("\n")
    return f"{text}\n" if text else ""


@cache
def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ner_experiments.view"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["latex"] = latex
    environment.filters["braced"] = "{{{}}}".format
    return environment
