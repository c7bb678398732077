"""`python docs/generated.py`: write what docs/ and README.md make from other files; --check names what is out of date.

The map of docs/map.md is drawn by Graphviz, whose versions draw differently: of it, rooms and arrows are checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import configuration
import notebook
import readme_claims
import rooms

FILES: dict[Path, Callable[[], str]] = {
    configuration.PAGE: configuration.page,
    notebook.NOTEBOOK: notebook.notebook,
    readme_claims.README: readme_claims.readme,
}
"""How each file is made."""


def main(*arguments: str) -> int:
    """Write the files, or check them; return the exit status."""
    try:
        return written(*arguments)
    except ValueError as error:  # such as a setting without a comment
        print(error, file=sys.stderr)
        return 1


def written(*arguments: str) -> int:
    """`main`, with a ValueError for what a file cannot be made from."""
    if arguments == ("--check",):
        changed = [path for path, make in FILES.items() if path.read_text(encoding="utf-8") != make()]
        lines = [f"{path}: not what it is made from now; run `make generated`" for path in changed]
        lines += rooms.complaints()
        print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
        return 1 if lines else 0
    if arguments:
        print(f"usage: python docs/generated.py [--check], got {' '.join(arguments)}", file=sys.stderr)
        return 2
    for path, make in FILES.items():
        path.write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
