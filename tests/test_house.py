"""Which part may import which: data knows no model, modules know no config; and how large files may be."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ner_experiments"
FORBIDDEN = {
    "data": (
        "hydra",
        "omegaconf",
        "ner_experiments.models",
        "ner_experiments.modules",
        "ner_experiments.train",
    ),
    "modules": ("hydra", "omegaconf", "lightning", "ner_experiments.data", "ner_experiments.models"),
    "models": ("hydra", "omegaconf", "lightning", "ner_experiments.data"),
    "report": ("hydra", "omegaconf", "lightning", "ner_experiments.train"),
    "xor": ("hydra", "omegaconf", "lightning", "ner_experiments.data"),
}
WIRING = {f"xor/{name}.py" for name in ("architectures", "crossing", "trained")}
"""What puts the suite's parts together to measure and train them; proofs and formulas do not know it."""
CONFIGURED = {"main", "build", "train", "experiment", "job", "launched", "identity", "settings", "summary"}
CONFIGURED |= {"tables", "table_runs", "table_scores", "table_command", "runs", "smoke"}
CONFIGURED |= {"architectures", "trained", "run_config", "trainer", "processes"}
CALLBACKS = {"callbacks", "curves", "progress", "gradients"}
ONLY_IN = {
    "hydra": CONFIGURED,
    "omegaconf": CONFIGURED,
    "lightning": {"experiment", "trainer", "tagger", "checkpoints", "datamodule", *CALLBACKS},
}
FILES = sorted(PACKAGE.rglob("*.py"))
HOUSE = ("ner_experiments", "hydra_plugins", "tools", "benchmarks", "tests")
EVERYWHERE = [ROOT / "run.py", *sorted(path for part in HOUSE for path in (ROOT / part).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module or "")
    return names


def starts_with(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    place = path.relative_to(PACKAGE)
    forbidden = [] if place.as_posix() in WIRING else list(FORBIDDEN.get(place.parts[0], ()))
    forbidden += [library for library, places in ONLY_IN.items() if path.stem not in places]
    wrong = {name for name in imported(path) for prefix in forbidden if starts_with(name, prefix)}
    assert not wrong


@pytest.mark.parametrize("path", EVERYWHERE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_what_it_is_and_stays_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.startswith('"""')
    assert text.count("\n") <= 250
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = [(node.end_lineno - node.lineno + 1, node.name) for node in functions]
    assert not [(number, name) for number, name in lines if number > 40]


@pytest.mark.parametrize("path", sorted((ROOT / "conf").rglob("*.yaml")), ids=lambda path: path.stem)
def test_a_config_says_what_it_is(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[lines[0] == "# @package _global_"].startswith("# ")
