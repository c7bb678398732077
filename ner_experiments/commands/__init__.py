"""Commands of `ner-experiments`, one file each, with `add_arguments` and `run`. Nothing imports them.

The first line of a file is the command's line in `ner-experiments --help`.
"""

from pathlib import Path

COMMANDS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
