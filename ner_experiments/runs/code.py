"""The code that a run depends on: a digest of each module that its config names, or that those import.

Modules are found and parsed, never imported, so that a folder of runs from anywhere can be read. Comments, layout and
docstrings do not count. Neither do installed libraries, nor the rooms of the suite that find, compare and show runs.
"""

from __future__ import annotations

import ast
import hashlib
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ner_experiments.config.config_dirs import PACKAGE
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import json_object, listed, read_json_object

if TYPE_CHECKING:
    from omegaconf import DictConfig

Code = Mapping[str, str]
"""Name of each module -> 16 hexadecimal digits, equal for two versions that differ in what does not count alone."""

SUITE = PACKAGE.name
TRAINING = f"{SUITE}.train"
"""The module that every run depends on, whatever its config names."""
NO_NUMBERS = tuple(
    f"{SUITE}.{room}"
    for room in (
        *("commands", "report", "launch", "tables", "predict", "export", "xor", "loggers", "analysis"),
        *("comparison", "view", "runs", "config", "main", "__main__"),
    )
)
"""Rooms of the suite by which no score can change."""
NOT_RECORDED = "its code was not recorded"
SHOWN = 3
"""Maximum number of files that a message names."""


class Module(NamedTuple):
    """A module of source code: its digest, and the names that it imports, of which some may be no modules."""

    digest: str
    imports: tuple[str, ...]


def code_of(cfg: DictConfig) -> dict[str, str]:
    """The code that a run of this config depends on, by name of module.

    Imports inside functions count, those under `TYPE_CHECKING` and by `import_module` do not. ValueError, with the
    file, for a module that is not Python.
    """
    # they import OmegaConf, which files of predictions do without
    from ner_experiments.config.identity import counted
    from ner_experiments.config.safe_yaml import targets

    return dict(_closure(tuple(sorted({TRAINING, *(str(name) for _, name in targets(counted(cfg)))}))))


@cache  # the runs of a sweep have few different sets of classes
def _closure(roots: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name in found or not is_counted(name):
            continue
        if (module := module_named(name)) is not None:
            found[name] = module.digest
            waiting += module.imports
        if "." in name:  # a class's module; or the package of a module, which is imported with it
            waiting.append(name.rpartition(".")[0])
    return tuple(sorted(found.items()))


def is_counted(name: str) -> bool:
    """Whether a module's code counts, if there is such a module: it is the suite's, or no installed library's."""
    top = name.partition(".")[0]
    if top == SUITE:
        return name != SUITE and not any(name == room or name.startswith(f"{room}.") for room in NO_NUMBERS)
    return _is_own(top)


INSTALLED = ("site-packages", "dist-packages")
"""Names of the folders of installed libraries."""


@cache
def _is_own(top: str) -> bool:
    spec = _spec(top)
    if spec is None:
        return False
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.has_location else [])]
    standard = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    folders = [folder for place in places for folder in Path(place).resolve().parents]
    # by name, as an environment may borrow the libraries of another, such as the system's
    return bool(places) and not any(it in standard or it.name in INSTALLED for it in folders)


def _spec(top: str) -> ModuleSpec | None:
    """Where a module without a dot in its name would be imported from, by this process or one in this folder."""
    try:
        return find_spec(top) or PathFinder.find_spec(top, [str(Path.cwd())])
    except (ValueError, OSError):  # __main__ has no spec
        return None


def module_named(name: str) -> Module | None:
    """The module of that name; None if there is no such file of source code."""
    path = _path(name)
    return None if path is None else _read(path)


def _path(name: str) -> Path | None:
    top, *parts = name.split(".")
    if not all(part.isidentifier() for part in (top, *parts)):
        return None
    if top == SUITE:
        folders = [PACKAGE]
    else:
        spec = _spec(top)
        if spec is None:
            return None
        if not parts:
            return (
                Path(spec.origin)
                if spec.has_location and spec.origin and spec.origin.endswith(".py")
                else None
            )
        folders = [*map(Path, spec.submodule_search_locations or ())]
    for folder in folders:
        place = folder.joinpath(*parts)
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None


@cache  # for as long as the process lives, as Python keeps the modules that it has imported
def _read(path: Path) -> Module:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{path}: expected a module of Python: {error}") from error
    parts: list[str] = []
    _describe(tree, parts)
    return Module(hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16], tuple(_imports(tree, path)))


def _describe(node: ast.AST, parts: list[str]) -> None:
    """Append what counts of a syntax tree. Empty fields do not: versions of Python differ in them."""
    parts.append(type(node).__name__)
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if name == "body" and _has_docstring(node):
            value = value[1:]
        if value is None or value == []:
            continue
        parts.append(name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                _describe(item, parts)
            else:
                parts.append(repr(item))
    parts.append(".")


def _has_docstring(node: ast.AST) -> bool:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None


def _imports(tree: ast.AST, path: Path) -> Iterator[str]:
    """The names that a module imports when it runs. `from a import b` imports a, and a.b if that is a module.

    `iter_modules` imports all modules of the folder.
    """
    for node in _run_time_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(node, path) if node.level else node.module or ""
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "iter_modules"
        ):
            package = _absolute(
                ast.ImportFrom(names=[], level=1), path
            )  # a registry finds every file of its folder
            yield from (f"{package}.{it.stem}" for it in sorted(path.parent.glob("*.py")))


def _run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from _run_time_nodes(child)


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    """The package that a relative import names: folders with an __init__.py above the file."""
    folder = path.parent
    for _ in range(node.level - 1):
        folder = folder.parent
    parts = [node.module] if node.module else []
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def digest(code: Code) -> str:
    """SHA-256 of the code."""
    return json_digest(dict(code))


def recorded(path: Path) -> dict[str, str]:
    """The code in the code.json of a run. ValueError, with the path, for any other content."""
    content = read_json_object(path)
    if not all(isinstance(value, str) for value in content.values()):
        raise ValueError(f"{path}: expected a digest for each module")
    return content


def outdated(path: Path) -> str:
    """Why a run with this code.json is not of the present code: "models/x.py has changed since"; empty if it is."""
    if not path.is_file():  # it was made before code was recorded
        return NOT_RECORDED
    return _outdated(path.read_bytes())


@cache  # most runs depend on the same code
def _outdated(record: bytes) -> str:
    try:
        code = dict(json_object(record.decode()))
    except ValueError:
        return NOT_RECORDED
    return _changed(
        [name for name, then in code.items() if getattr(module_named(name), "digest", "") != then]
    )


def _changed(names: Sequence[str]) -> str:
    return f"{_shown(names)} {'have' if names[1:] else 'has'} changed since" if names else ""


def other_tags(path: Path, cfg: DictConfig) -> str:
    """Why a tagger of the run with this code.json may give other tags now, as `outdated`.

    The code that a tagger of its config executes counts, and not that of training. Empty without a code.json.
    """
    from ner_experiments.config.identity import counted  # as in `code_of`
    from ner_experiments.config.safe_yaml import targets

    if not path.is_file():
        return ""
    used = dict(_closure(tuple(sorted(str(name) for _, name in targets(counted(cfg))))))
    record = recorded(path)
    return _changed([name for name, now in used.items() if record.get(name, now) != now])


def _shown(names: Sequence[str]) -> str:
    """The files of modules, three at most, such as "ner_experiments/models/residual.py and 2 more"."""
    files = [_file(name) for name in names[:SHOWN]]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return listed([*files, *more])


def _file(name: str) -> str:
    path = _path(name)
    if path is None:
        return f"{name} (not found here)"
    root = PACKAGE.parent if name.startswith(f"{SUITE}.") else Path.cwd()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def conflicts(codes: Iterable[Code]) -> str:
    """The files that are not the same in all codes that have them, as text; empty if there are none."""
    versions: dict[str, set[str]] = {}
    for code in codes:
        for name, version in code.items():
            versions.setdefault(name, set()).add(version)
    return _shown(sorted(name for name, known in versions.items() if len(known) > 1))
