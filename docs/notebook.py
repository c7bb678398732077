"""The notebook docs/python.ipynb, made from docs/python.md: a cell per block of Python, and one for text between."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("python.md")
NOTEBOOK = PAGE.with_suffix(".ipynb")


def notebook() -> str:
    parts = re.split(
        r"^```python\n(.*?)^```\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    cells = [cell(number, part) for number, part in enumerate(parts) if part.strip()]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def cell(number: int, text: str) -> dict[str, Any]:
    common = {"id": f"cell-{number}", "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    if number % 2:
        return {"cell_type": "code", "execution_count": None, "outputs": [], **common}
    return {"cell_type": "markdown", **common}
