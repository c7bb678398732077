"""`ner-experiments completion bash|zsh|fish`: a script that completes commands, settings, tables, sweeps and runs.

The script asks `completion query LINE` at each Tab, where LINE is the command line up to the cursor.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ner_experiments.launch.shell_scripts import QUERY, SHELLS, script

TABLES = ("table", "rescore", "report", "dashboard")
RUNS = ("predict", "export", "errors", "cases", "attention")
OUTPUTS = (Path("outputs"), Path("results"))


def main(arguments: Sequence[str]) -> int:
    if [*arguments[:1]] == [QUERY]:
        print(*candidates(arguments[1] if arguments[1:] else ""), sep="\n")
        return 0
    parser = argparse.ArgumentParser(prog="ner-experiments completion", description=__doc__)
    parser.add_argument("shell", choices=SHELLS, help='bash, zsh: eval "$(...)"; fish: ... | source')
    print(script(parser.parse_args(arguments).shell, ["ner-experiments"]), end="")
    return 0


def candidates(line: str) -> list[str]:
    """Completions of the last word of the line. Empty for a line of another program."""
    program, *words = [*line.split(), *([""] if line[-1:].isspace() else [])] or [""]
    if Path(program).name.startswith("python"):
        if len(words) < 2 or Path(words[0]).name != "run.py":
            return []
        words[0] = "train"
    elif Path(program).name == "run.py":
        words = ["train", *words]
    if not words:
        return []
    command, *rest = words
    if not rest:
        commands = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
        return starting(command, [*commands, "--help", "--version"])
    word = rest[-1]
    if command == "train":
        return overrides(rest)
    if command in TABLES:
        return starting(word, table_names())
    if command == "claims":
        return starting(word, claim_ids())
    if command == "watch":
        return overrides(rest)
    if command in RUNS:
        return starting(word, run_folders())
    if command == "smoke":
        return starting(word, published())
    if command == "data":
        if len(rest) == 1:
            return starting(word, ["check", "convert", "get", "new"])
        return starting(word, [] if rest[0] == "new" else group("data"))
    return starting(word, SHELLS if command == "completion" else [])


def starting(word: str, known: Sequence[str]) -> list[str]:
    return [each for each in known if each.startswith(word)]


def published() -> list[str]:
    from ner_experiments.tables import spec

    return spec.names()


def table_names() -> list[str]:
    from ner_experiments.tables import sweeps

    return [*published(), *sweeps.names(OUTPUTS[0])]


def claim_ids() -> list[str]:
    from ner_experiments.tables import claims

    path = OUTPUTS[1] / claims.FILE
    return [claim.id for claim in claims.read(path)] if path.is_file() else []


def run_folders() -> list[str]:
    """The finished runs below the working directory."""
    return sorted(str(path.parent) for place in OUTPUTS for path in place.glob("*/seed-*/metrics.json"))


def group(name: str) -> list[str]:
    from ner_experiments.config import conf

    return conf.names(name)


def overrides(words: Sequence[str]) -> list[str]:
    """Completions of the last word: groups, choices, settings and values, by Hydra, and the suite's own items."""
    *before, word = words
    key = word.partition("=")[0]
    if word.startswith("-"):
        return starting(word, ["-m", "--cfg", "--help", "--version"])
    if "=" in word:
        own: dict[str, Callable[[], list[str]]] = {"table": table_names, "search": lambda: group("search")}
        if key in own:
            return starting(word, [f"{key}={each}" for each in own[key]()])
    from hydra._internal.core_plugins.bash_completion import BashCompletion

    from ner_experiments.config.conf import CONFIG_NAME, groups, hydra_context, loader

    with hydra_context():
        items = [item for item in before if not item.startswith("-") and item.partition("=")[0] not in SUITE]
        plugin: Any = BashCompletion
        found = plugin(loader())._query(CONFIG_NAME, " ".join([*items, word]) if items or word else " ")
        chosen = [f"{name}=" for name in groups()]
    hidden = () if word.startswith("hydra") else ("hydra/", "hydra.")
    more = starting(word, [*chosen, *(f"{name}=" for name in SUITE)]) if "=" not in word else []
    names = [
        str(each) for each in found if str(each) != "hydra" and not str(each).startswith((*hidden, "search"))
    ]
    return [*dict.fromkeys([*names, *more])]


SUITE = ("table", "seeds", "sweep.name", "sweep.looks", "sweep.register", "sweep.primary", "search")
"""Items of a command line besides the settings of conf/."""
