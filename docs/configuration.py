"""docs/configuration.md, the reference of the configuration, made from conf/ and its comments.

The meaning of a setting is the comment on its line in conf/, or in the file that its own file builds on. Its type
follows from its default and from the signature of the class that takes it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.config.conf import hydra_context, options
from ner_experiments.config.config_dirs import CONF
from ner_experiments.launch.local import LocalLauncher
from ner_experiments.launch.search_study import OptunaSweeper, RandomSampler, TPESampler
from ner_experiments.launch.slurm import SlurmLauncher

PAGE = Path(__file__).with_name("configuration.md")
GROUPS = {
    "data": "The corpus. `conll`, `conllu`, `brat`, `conllu_ner`, `csv`, `docbin`, `hf` and `jsonl` read files of "
    "your own, the toy corpora are generated, and the others are corpora from the literature, whose files you bring "
    "or download ([corpora](corpora.md)). The defaults below are those of `conll`, `conllu` and the "
    "toy corpora; the file of each corpus has its own.",
    "words": "The word vectors.",
    "chars": "The character vector of a word, concatenated with its word vector.",
    "features": "Further features of a word, concatenated with its word and character vectors.",
    "direct": "Sparse features that are connected directly to the tag scores, bypassing the encoder.",
    "model": "The encoder, which is the architecture. [architectures](architectures.md) has the equations.",
    "decoder": "Turns tag scores into a tag sequence and a loss.",
    "penalty": "A term added to the loss.",
    "batches": "How training sentences are grouped into batches.",
    "optimizer": "The optimizer.",
    "schedule": "The learning rate of each step, as a factor of `optimizer.lr`.",
    "trainer": "Epochs, early stopping, clipping, precision and devices.",
    "logger": "Where scores and curves are logged besides the run's folder ([report](report.md#wb-and-tensorboard)).",
    "data_trainer": "Settings of a trainer for one corpus only. This group is not chosen directly, but follows from "
    "`data` and `trainer`: on the toy corpora, `trainer=default` ends after at most 20 epochs.",
    "paper": "The complete setting of a paper: a choice for each group above. Overrides on the same line win.",
    "search": "The ranges of a hyperparameter search ([search](search.md#ranges)). A choice selects the "
    "model and `hydra/sweeper=optuna`; a value or range on the command line replaces the one in the file.",
}
WITHOUT_SETTINGS = ("data_trainer", "paper", "search")
"""Groups whose files set what belongs to other groups."""
FIRST = {"data": ("conll", "conllu", "toy_en", "toy_zh")}
"""Choices that come first, and whose defaults stand for their group's."""
WHOLE = {"files", "columns", "sentences", "sha256", "sizes"}
"""Mappings that are one setting."""
TYPES = {bool: "true or false", int: "integer", float: "number", str: "text", list: "list", dict: "mapping"}
RANGES = {
    **{name: limits.formula() for name, limits in values.RANGES.items()},
    **{name: ", ".join(f"`{each}`" for each in words) for name, words in values.WORDS.items()},
    "widths": "each ≥ 1",
    "words.input.max_length": "3 to the model's longest",
    "words.input.overlap": "0 to `max_length` - 3",
}
"""By dotted name, or by last name; each is a check of the suite, which tests/docs/test_configuration.py tries."""
HEAD = """\
# Configuration

<!-- Made by `make generated` from conf/ and its comments; edit those. -->

An experiment is one choice from each group, such as `model=residual`, and the settings of these choices, such as
`model.hidden_size=200`. Both are written after `python run.py`:

```sh
python run.py model=residual layers=3 model.hidden_size=200 --cfg job
```

`--cfg job` prints the composed configuration without training. A misspelled name, an unknown choice or a value of the
wrong type is refused before anything starts. With `-m`, a comma separates alternatives (`layers=2,3`), and every
combination is a run ([sweeps](sweeps.md)).

- Write a list as `'chars.module.widths=[2,3]'` and a mapping as `'data.columns={word: 0, tag: 3}'`. The quotes are
  needed because shells such as zsh interpret brackets themselves.
- Where a number is expected, an integer is accepted. `null` means that nothing is set.
- A default such as `${layers}` follows another setting. *Required* means that there is no default.
- Names in parentheses are the choices that have this default. Without names all choices of the group have it.
- *Reading* marks our interpretation where a paper leaves a point open.
- The name of each choice links to its file in `conf/`.

Changing a setting makes another experiment, with a folder of its own. The exceptions are `seed`, `runtime`, `audit`,
`sweep`, `logger`, the settings of Hydra, and paths, which are not part of an experiment: of a file, only the content
counts.
"""


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting of one choice, as the page prints it. `note` is what the file of the choice adds to the meaning."""

    key: str
    kind: str
    default: str
    meaning: str
    note: str = ""


OF_SWEEPS = [
    Setting(
        "sweep.looks",
        "list",
        "`[]`",
        "with `-m`: the numbers of seeds at which all pairs of rows are compared; seeds are added until it is decided "
        "which row is best, at most up to the last number",
    ),
    Setting(
        "sweep.register",
        "true or false",
        "`false`",
        "with `-m`: write rows, seeds, primary comparison and test to a file before the first run, and let the runs "
        "record its hash",
    ),
    Setting(
        "sweep.primary",
        "text",
        "",
        "with `sweep.register`: the rows of the primary comparison, such as layers=4 - layers=2; by default those of "
        "a sweep that has two",
    ),
]
"""Settings of the sweeper, which conf/ does not have."""
SWEEPER = {
    "n_trials": "how many complete trials the search ends with, those of earlier commands included",
    "n_jobs": "trials proposed at a time; the launcher runs them side by side",
    "study_name": "name of the study; null: the settings that vary, and a hash of all settings",
    "storage": "another database of Optuna, such as `postgresql://...`; null: a file below `output_dir`",
}
SAMPLER = {
    "seed": "determines the proposals",
    "n_startup_trials": "random trials before the sampler starts to use their scores",
    "constant_liar": "true: count running trials as bad ones, so that trials proposed together differ",
}


def page() -> str:
    """The text of the page. ValueError for settings whose meaning no comment says."""
    with hydra_context():
        parts = [HEAD, root(), *map(group, GROUPS), launchers(), sweepers()]
    return "\n".join(parts)


def root() -> str:
    """The settings that belong to no group."""
    config = compose([])
    own = {name: value for name, value in plain(config).items() if name not in (*GROUPS, "hydra")}
    meanings = {key: (comment, "") for key, comment in comments_of(CONF / "config.yaml").items()}
    found = [*settings(own, resolved(config), "", meanings), *OF_SWEEPS]
    return "## Settings of every experiment\n" + table({"": found}, [""])


def group(name: str) -> str:
    """The section of a group: its choices, its settings, and the groups below it."""
    first = FIRST.get(name, ())
    choices = [*first, *(each for each in options(name) if each not in first)]
    purpose = textwrap.fill(GROUPS[name], 120, break_long_words=False, break_on_hyphens=False)
    title = f"## `{name}`\n\n{purpose}\n\n"
    listed = choice_table(name, choices)
    if name in WITHOUT_SETTINGS:
        return title + listed
    found = {choice: settings_of(name, choice) for choice in choices}
    if name == "data":
        choices, found = [""], of_files(found)
    inner = [path.name for path in sorted((CONF / name).iterdir()) if path.is_dir()]
    return (
        title + listed + table(found, choices) + "".join(map(subgroup, (f"{name}/{each}" for each in inner)))
    )


def subgroup(name: str) -> str:
    outer, part = name.split("/")
    users = [choice for choice in options(outer) if part in parts_of(outer, choice)]
    text = f"\n### `{name}`\n\nA part of {', '.join(f'`{outer}={choice}`' for choice in users)}.\n\n"
    return text + choice_table(name, options(name))


def parts_of(group: str, choice: str) -> Mapping[str, str]:
    """The choice's own sub-groups and what it takes from them."""
    entries = (yaml.safe_load(text(CONF / group / f"{choice}.yaml")) or {}).get("defaults", [])
    named = {
        key.removeprefix("override "): value
        for each in entries
        if isinstance(each, dict)
        for key, value in each.items()
    }
    inherited = (parts_of(group, each) for each in entries if isinstance(each, str) and each != "_self_")
    return {**{key: value for parts in inherited for key, value in parts.items()}, **named}


def choice_table(name: str, choices: Sequence[str]) -> str:
    default = default_of(name)
    lines = ["| choice | |", "|---|---|"]
    for choice in choices:
        path = CONF / name / f"{choice}.yaml"
        mark = " (default)" if choice == default else ""
        lines.append(f"| [`{choice}`](../conf/{name}/{choice}.yaml){mark} | {prose(header(path))} |")
    return "\n".join(lines) + "\n"


def default_of(name: str) -> str | None:
    for each in yaml.safe_load(text(CONF / "config.yaml"))["defaults"]:
        if isinstance(each, dict) and name in each:
            return str(each[name])
    return None


def settings_of(group: str, choice: str) -> list[Setting]:
    corpus = [] if group == "data" else ["data=weibo"]  # which changes no other group, as the toys do
    config = compose([*corpus, f"{group}={choice}"])
    return [*settings(plain(config)[group], resolved(config)[group], f"{group}.", comments(group, choice))]


def plain(config: DictConfig) -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))


def resolved(config: DictConfig) -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))


def settings(
    node: Mapping[str, Any],
    values: Mapping[str, Any],
    prefix: str,
    meanings: Mapping[str, tuple[str, str]],
    target: str | None = None,
) -> Iterator[Setting]:
    """Each setting below `node`, in the order of the file; `values` are the same with all references resolved.

    `target` is the class that takes them.
    """
    target = node.get("_target_", target)
    for name, value in node.items():
        key = f"{prefix}{name}"
        if name in ("_target_", "_partial_") or is_class(value) or (name == "stand_in" and value):
            continue
        if isinstance(value, dict) and name not in WHOLE and value:
            yield from settings(value, values[name], f"{key}.", meanings, target)
        else:
            yield Setting(key, kind(key, values[name], target), shown(value), *meanings.get(key, ("", "")))


def is_class(value: object) -> bool:
    """Whether a value is a class or function without settings, which a group of its own chooses."""
    if not isinstance(value, dict) or not value:
        return False
    return value.get("_target_") == "hydra.utils.get_class" or {*value} <= {"_target_", "_partial_"}


def kind(key: str, value: object, target: str | None) -> str:
    """The type in words, with the range where the suite checks one."""
    name = key.rpartition(".")[2]
    hint = hints(target).get(name)
    words = literals(hint) or (TYPES[float] if hint is float else TYPES.get(type(value))) or type_words(hint)
    limits = RANGES.get(key) or RANGES.get(name)
    if limits and words in (TYPES[int], TYPES[float], TYPES[list]):
        words = f"{words}, {limits}"
    elif limits:
        words = limits
    return f"{words}, or null" if value is None or types.NoneType in typing.get_args(hint) else words


def hints(target: str | None) -> Mapping[str, Any]:
    if target is None:
        return {}
    called = get_object(target)
    if inspect.isclass(called) and not dataclasses.is_dataclass(
        called
    ):  # whose hints are those of its bases' modules
        called = called.__init__
    return typing.get_type_hints(called)


def literals(hint: Any) -> str | None:
    """The words that a Literal allows, or a union of such."""
    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(f"`{each}`" for each in typing.get_args(hint))
    functions = [each for each in typing.get_args(hint) if typing.get_origin(each) is Callable]
    others = (each for each in typing.get_args(hint) if each not in (types.NoneType, *functions))
    parts = [literals(each) for each in others]
    if functions and parts and all(parts):
        parts.append("or `{_target_: FUNCTION}`")
    return ", ".join(each for each in parts if each) if parts and all(parts) else None


def type_words(hint: Any) -> str:
    """The first type of a union that has a name on the page."""
    kinds = (typing.get_origin(each) or each for each in typing.get_args(hint) or (hint,))
    return next(TYPES[each] for each in kinds if each in TYPES)


def shown(value: object) -> str:
    """A default as one would write it on the command line."""
    if value == "???":
        return "*required*"
    plain = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True, sort_keys=False)
    return f"`{plain.removesuffix('...' + chr(10)).strip()}`".replace("`'", "`").replace("'`", "`")


def of_files(found: Mapping[str, list[Setting]]) -> dict[str, list[Setting]]:
    """The settings of data: the first file that comments on one says what it means.

    Defaults are those of the choices in `FIRST`; what only a corpus has differs from one to the next.
    """
    known: dict[str, Setting] = {}
    for choice, listed in found.items():
        for each in listed:
            own = each if choice in FIRST["data"] else dataclasses.replace(each, default="*by corpus*")
            if each.key not in known or (each.meaning and not known[each.key].meaning):
                known[each.key] = own
    return {"": [*known.values()]}


def table(found: Mapping[str, list[Setting]], choices: Sequence[str]) -> str:
    """One line for each setting and meaning; a default that is not of all choices names those that it is of."""
    lines: dict[tuple[str, str, str], dict[str, Setting]] = {}
    for choice in choices:
        for each in found[choice]:
            if not each.meaning:
                raise ValueError(f"conf/: {choice}: {each.key} has no comment that says what it means")
            lines.setdefault((each.key, each.kind, each.meaning), {})[choice] = each
    if not lines:
        return ""
    order = list(dict.fromkeys(key for key, _, _ in lines))
    text = "\n| setting | type | default | meaning |\n|---|---|---|---|\n"
    for (key, words, meaning), users in sorted(lines.items(), key=lambda item: order.index(item[0][0])):
        notes: dict[str, list[str]] = {}
        for choice, each in users.items():
            if each.note:
                notes.setdefault(each.note, []).append(f"`{choice}`")
        said = [prose(meaning), *(f"{', '.join(of)}: {prose(note)}" for note, of in notes.items())]
        text += f"| `{key}` | {words} | {default_cell(users, len(choices))} | {'. '.join(said)} |\n"
    return text


def default_cell(users: Mapping[str, Setting], number: int) -> str:
    """The default; where not all choices have it, also which do."""
    defaults: dict[str, list[str]] = {}
    for choice, each in users.items():
        defaults.setdefault(each.default, []).append(choice)
    if len(users) == number and len(defaults) == 1:
        return next(iter(defaults))
    return "; ".join(f"{value} ({', '.join(of)})" for value, of in defaults.items())


def launchers() -> str:
    """The section on launchers, whose settings are dataclasses."""
    text = (
        "## `hydra/launcher`\n\nStarts the runs of a sweep (`-m`).\n\n"
        "| choice | |\n|---|---|\n"
        "| `local` (default) | Side by side, in worker processes ([sweeps](sweeps.md#where-jobs-run)). |\n"
        "| `basic` | One after another, in this process. |\n"
        "| `slurm` | As one array job of SLURM ([clusters](clusters.md#slurm)). |\n"
    )
    for choice, config in (("local", LocalLauncher), ("slurm", SlurmLauncher)):
        meanings = {f"hydra.launcher.{name}": (comment, "") for name, comment in docstring(config).items()}
        default = {**dataclasses.asdict(config()), "_target_": f"{config.__module__}.{config.__name__}"}
        found = [*settings(default, default, "hydra.launcher.", meanings)]
        text += f"\n### `hydra/launcher={choice}`\n{table({choice: found}, [choice])}"
    return text


def sweepers() -> str:
    """The section on sweepers and samplers, whose settings are dataclasses."""
    text = (
        "## `hydra/sweeper`\n\nChooses the runs of a command with `-m`.\n\n"
        "| choice | |\n|---|---|\n"
        "| `table` (default) | All combinations, or the rows of a table ([sweeps](sweeps.md#where-jobs-run)). |\n"
        "| `optuna` | A search by dev score ([search.md](search.md)). |\n"
        "\n### `hydra/sweeper=optuna`\n"
    )
    text += dataclass_table({"optuna": OptunaSweeper}, "hydra.sweeper", SWEEPER)
    text += (
        "\n### `hydra/sweeper/sampler`\n\nA part of `hydra/sweeper=optuna`.\n\n"
        "| choice | |\n|---|---|\n"
        "| `tpe` (default) | Tree-structured Parzen estimator: after random trials, points near the best so far. |\n"
        "| `random` | Independent random points. |\n"
    )
    samplers = {"tpe": TPESampler, "random": RandomSampler}
    return text + dataclass_table(samplers, "hydra.sweeper.sampler", SAMPLER)


def dataclass_table(configs: Mapping[str, type], prefix: str, meanings: Mapping[str, str]) -> str:
    """The settings of dataclasses that `meanings` explains, in its order."""
    found: dict[str, list[Setting]] = {}
    for choice, config in configs.items():
        fields = {each.name: each for each in dataclasses.fields(config)}
        found[choice] = [
            Setting(f"{prefix}.{name}", type_of(fields[name].default), shown(fields[name].default), meaning)
            for name, meaning in meanings.items()
            if name in fields
        ]
    return table(found, [*configs])


def type_of(default: object) -> str:
    return f"{TYPES[str]}, or null" if default is None else TYPES[type(default)]


def docstring(config: type) -> dict[str, str]:
    """Description of each field in the docstring: `name, name: text`, up to the next such line."""
    fields = [each.name for each in dataclasses.fields(config)]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(config.__doc__ or "").splitlines():
        match = re.match(r"([a-z_, ]+): (.*)", line)
        if match and {*match[1].split(", ")} <= {*fields}:
            names, line = match[1].split(", "), match[2]
        for name in names:
            found[name] = f"{found.get(name, '')} {line}".strip()
    return found


# Comments of a file of conf/


def comments(group: str, choice: str) -> dict[str, tuple[str, str]]:
    """Meaning and note by dotted name: a file that builds on another adds its comment to the other's meaning."""
    path = CONF / group / f"{choice}.yaml"
    found: dict[str, tuple[str, str]] = {}
    for each in (yaml.safe_load(text(path)) or {}).get("defaults", []):
        if isinstance(each, str) and each != "_self_":
            found |= comments(group, each)
    for name, comment in comments_of(path).items():
        key = f"{group}.{name}"
        meaning = found[key][0] if key in found else comment
        found[key] = (meaning, "" if meaning == comment else comment)
    return found


def comments_of(path: Path) -> dict[str, str]:
    """The comment at the end of the first line of each setting, by dotted name."""
    lines = text(path).splitlines()

    def visit(node: yaml.Node, prefix: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, yaml.MappingNode) and not node.flow_style:
            for name, value in node.value:
                key = f"{prefix}{name.value}"
                if found := re.search(r"(?:^|\s)#\s+(.*)", rest(name, value)):
                    yield key, found[1]
                yield from visit(value, f"{key}.")

    def rest(name: yaml.Node, value: yaml.Node) -> str:
        """Rest of the line after the value, or after the name where the value is on lines of its own."""
        end = value.end_mark if value.end_mark.line == name.start_mark.line else name.end_mark
        return lines[end.line][end.column :]

    node = yaml.compose("\n".join(lines), Loader=yaml.SafeLoader)
    return dict(visit(node, "")) if node else {}


def header(path: Path) -> str:
    """The comment at the top of a file."""
    found = []
    for line in text(path).splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            found.append(line.removeprefix("# "))
    return " ".join(found)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(comment: str) -> str:
    """A comment as Markdown: a setting with its value is code, and nothing else is markup."""
    comment = comment.replace("|", "\\|").replace("*", "\\*")
    return re.sub(
        r"(?<![\w`/@.])[\w./@]+=(\.\.\.|[^\s,;:)]*[^\s,;:).])", lambda match: f"`{match[0]}`", comment
    )
