"""No code of ours unpickles, evaluates, starts a shell or unpacks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

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
PARTS_OF_LOADERS = {"SafeConstructor", "CParser", "Resolver"}
"""Classes of PyYAML that make plain values, or none."""
SAFE = {
    "np.load": ("allow_pickle", False),
    "torch.load": ("weights_only", True),
    "make_model.from_pretrained": ("weights_only", True),
}
ALLOWED = {
    "modules/kernels/compilation.py: import pickle",  # the kernels that numba has compiled and cached here
    "data/vector_packages.py: import tarfile",  # reads a file of an archive, and unpacks none
    "config/safe_yaml.py: yaml.load(text, Loader)",  # into dictionaries, lists and plain values
}


def test_no_code_of_ours_unpickles_evaluates_or_unpacks() -> None:
    assert len(CODE) > 200
    found = {
        f"{path.relative_to(PACKAGE.parent).as_posix().removeprefix(f'{PACKAGE.name}/')}: {ast.unparse(node)}"
        for path in CODE
        for node in refused(path.read_bytes())
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "from yaml import unsafe_load",
        "yaml.unsafe_load(text)",
        "eval(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
    ],
)
def test_such_code_is_found(code: str) -> None:
    assert [ast.unparse(node) for node in refused(code)] == [code]


def refused(code: bytes | str) -> Iterator[ast.AST]:
    """The imports and calls that could run code of a file that is read."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import) and {alias.name.split(".")[0] for alias in node.names} & MODULES:
            yield node
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in {*MODULES, "yaml"}:
            if not all(
                alias.name.endswith("Error") or alias.name in PARTS_OF_LOADERS for alias in node.names
            ):
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
