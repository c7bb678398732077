"""`ner-experiments new model NAME`: write an architecture of your own to start from, with config, search and test."""

from __future__ import annotations

import argparse
import keyword
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ner_experiments.config.config_dirs import PACKAGE, config_dirs, file_of
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import truncated_repr
from ner_experiments.view import pages

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = (
        "Write an architecture to start from: a module (layers of a BiLSTM with highway connections), its config, its "
        "search space, and a test of its equation and of padding. In a checkout they go beside the suite's own; "
        "elsewhere the module and the test into the present folder, the configs below the folder of --config-dir "
        "(./conf). Prints the commands that test, train and search it."
    )
    parser.add_argument("kind", choices=("model",), help="what to write")
    parser.add_argument("name", metavar="NAME", help="lower-case letters, digits and _; chosen by model=NAME")


def run(arguments: argparse.Namespace) -> None:
    """Write the files, and print them and the next commands.

    Raises ValueError, before anything is written, for a name that is no module's or is taken, and for a file that
    exists.
    """
    name = arguments.name
    in_checkout = Path.cwd() == PACKAGE.parent
    check_name(name, in_checkout)
    folder = Path("conf") if in_checkout else next(iter(reversed(config_dirs())), Path("conf"))
    module = Path("ner_experiments/models" if in_checkout else "", f"{name}.py")
    test = Path("tests/models" if in_checkout else "", f"test_{name}.py")
    files = {
        module: "new_model.py.j2",
        folder / "model" / f"{name}.yaml": "new_model.yaml.j2",
        folder / "search" / f"{name}.yaml": "new_search.yaml.j2",
        test: "new_test.py.j2",
    }
    if existing := next(filter(Path.exists, files), None):
        raise ValueError(f"{existing}: already exists: choose another name, or remove it")
    context = {
        "name": name,
        "config": (folder / "model" / f"{name}.yaml").as_posix(),
        "test": test.as_posix(),
        "module": ".".join(module.with_suffix("").parts),
        "class_name": f"{''.join(map(str.capitalize, name.split('_')))}BiLSTM",
    }
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part:
            part.write_text(pages.environment().get_template(template).render(context), encoding="utf-8")
        print(f"written: {path}")
    print("next:")
    for command in commands(name, test, "" if in_checkout else f" --config-dir {folder}"):
        print(f"  {command}")
    if not in_checkout:
        print(
            f"Commands on its runs (predict, errors, ...) take --config-dir {folder} and PYTHONPATH=., too."
        )


def commands(name: str, test: Path, option: str) -> Iterator[str]:
    """The commands that test, train and search the architecture, and show whether it has the XOR limit.

    option: that of a folder of one's own; empty in a checkout, whose tests find the architecture.
    """
    suite = "PYTHONPATH=. ner-experiments" if option else "ner-experiments"
    train = f"{suite} train" if option else "python run.py"
    yield f"python -m pytest -q {test}"
    if not option:
        yield f"python -m pytest -q tests/models/test_models.py -k {name}"
    yield f"{train} model={name} data=toy_en trainer=smoke{option}"
    yield f"{train} -m search={name} data=toy_en trainer.max_epochs=2 hydra.sweeper.n_trials=3{option}"
    yield f"{suite} xor --models {name} --seeds 2{option}"


def check_name(name: str, in_checkout: bool) -> None:
    """Raise ValueError for a name that no module can have, or that is taken, with one that is free."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        words = "_".join(re.findall("[a-z0-9]+", name.lower())).lstrip("0123456789_") or "model"
        free = _free(words, in_checkout)
        rule = "expected lower-case letters, digits and _, from a letter on"
        if keyword.iskeyword(name):
            rule = "a keyword of Python, which names no module"
        raise ValueError(f"{truncated_repr(name)}: {rule}; {free} is free")
    if by := _taken(name, in_checkout):
        raise ValueError(f"{name}: {by}; {_free(name, in_checkout)} is free")


def _free(name: str, in_checkout: bool) -> str:
    names = [name, *(f"{name}_{number}" for number in range(2, 100))]
    return next(it for it in names if not keyword.iskeyword(it) and not _taken(it, in_checkout))


def _taken(name: str, in_checkout: bool) -> str:
    """The model or package that has the name already; empty if there is none."""
    if (config := file_of(f"model/{name}")).exists():
        return f"there is a model of that name ({config})"
    if not in_checkout and not Path(f"{name}.py").exists() and find_spec(name):
        return "there is a Python package of that name, which the module would hide"
    return ""
