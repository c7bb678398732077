"""No code of ours unpickles, evaluates, starts a shell or unpacks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import ner_experiments

PACKAGE = Path(ner_experiments.__file__).parent
CODE = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "hydra_plugins").rglob("*.py")]
MODULES = {"tarfile", "runpy", "pickle", "_pickle", "shelve", "marshal", "dill", "cloudpickle", "joblib"}
"""Modules of which only errors are imported."""
BUILTINS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    "system",
    "popen",
    "extract",
    "extractall",
    "unpack_archive",
    "load_from_checkpoint",
    "read_pickle",
}
YAML = {"yaml.parse", "yaml.safe_dump"}
"""Functions of PyYAML that make no objects: events and text."""
SAFE = {
    "np.load": ("allow_pickle", False),
    "torch.load": ("weights_only", True),
    "make_model.from_pretrained": ("weights_only", True),
}
ALLOWED = {
    "modules/kernels/compilation.py: import pickle",  # the kernels that numba has compiled and cached here
    "config/safe_yaml.py: yaml.load(text, Loader)",  # into dictionaries, lists and plain values
}


def test_no_code_of_ours_unpickles_evaluates_or_unpacks() -> None:
    assert len(CODE) > 200
    found = {
        f"{path.relative_to(PACKAGE.parent).as_posix().removeprefix(f'{PACKAGE.name}/')}: {ast.unparse(node)}"
        for path in CODE
        for node in refused(path)
    }
    assert found == ALLOWED


def refused(path: Path) -> Iterator[ast.AST]:
    """The imports and calls of a file that could run code of a file that it reads."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import) and {alias.name.split(".")[0] for alias in node.names} & MODULES:
            yield node
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in MODULES:
            if not all(alias.name.endswith("Error") for alias in node.names):
                yield node
        elif isinstance(node, ast.Call) and is_refused(node):
            yield node


def is_refused(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    given = {item.arg: item.value for item in call.keywords}
    if name in BUILTINS or name.rpartition(".")[2] in METHODS or "shell" in given:
        return True
    if name.startswith("yaml."):
        return name not in YAML
    argument, value = SAFE.get(name, ("", None))
    return name in SAFE and (argument not in given or ast.literal_eval(given[argument]) is not value)
