"""CONTRIBUTING.md is correct: its files are added to a copy of the checkout, and its commands run there."""

import shutil
from pathlib import Path

import page_commands
import pytest

PAGE = page_commands.ROOT / "CONTRIBUTING.md"
FORMAT_PAGE = page_commands.ROOT / "docs/contributing/format.md"
FILES = page_commands.files(PAGE) | page_commands.files(FORMAT_PAGE)
LINES = [*page_commands.commands(PAGE), *page_commands.commands(FORMAT_PAGE)]
STEPS = [*([line] for line in LINES if "slashes" not in line), [line for line in LINES if "slashes" in line]]
"""The commands of each test. Those on the format `slashes` run in turn: one reads what another has written."""
KINDS = {
    "ner_experiments/commands",
    "ner_experiments/data/formats",
    "ner_experiments/models",
    "conf/model",
    "conf/data",
    "conf/search",
    "sweeps",
    "ner_experiments/analysis",
    "tests/analysis",
    "tests/models",
}
TESTED_ALREADY = ("residual_c", "tests/test_metrics.py")
"""In commands that run tests of this checkout which none of the page's examples changes."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = page_commands.copy_to(tmp_path_factory.mktemp("contribution") / "copy")
    for name, text in FILES.items():
        assert not (folder / name).exists()
        (folder / name).write_text(text, encoding="utf-8")
    (entry,) = (block for block in page_commands.blocks(FORMAT_PAGE, "python") if block.startswith(" "))
    for path, old, new in (
        ("data/formats/registry.py", "hf, jsonl\n", "hf, jsonl, slashes\n"),
        ("data/formats/registry.py", "\n}\n", f"\n{entry}}}\n"),
        ("commands/completion.py", '"attention")\n', '"attention", "mistyped")\n'),
        ("main.py", "  xor [--json] ", "  mistyped RUN [RUN ...]\n  xor [--json] "),
    ):
        replace_in(folder / "ner_experiments" / path, old, new)
    (folder / "data/letters").mkdir(parents=True)
    for number, split in enumerate(("train", "dev", "test")):
        text = f"Ann{number} B-PER\nsat O\n\nBob{number} B-PER\nin O\nRome{number} B-LOC\n\n"
        (folder / f"data/letters/{split}.conll").write_text(text)
    return folder


def replace_in(path: Path, old: str, new: str) -> None:
    """Make a change that the page asks for in a file that exists."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_there_is_an_example_of_each_kind() -> None:
    assert {str(Path(name).parent) for name in FILES} == KINDS


@pytest.mark.slow
@pytest.mark.xdist_group("contributing")  # one copy of the checkout
@pytest.mark.parametrize("lines", STEPS, ids=" && ".join)
def test_commands_run(lines: list[str], checkout: Path) -> None:
    for line in lines:
        if "diagrams" in line and not shutil.which("dot"):
            pytest.skip("Graphviz is not installed")
        if any(part in line for part in TESTED_ALREADY):
            line += " --collect-only"
        page_commands.try_line(line, checkout, NER_DATA_DIR=str(checkout / "data"))
        if "diagrams" in line:
            assert "← LSTM" in (checkout / "docs/diagrams/mixed.svg").read_text(encoding="utf-8")


def test_the_examples_obey_the_rules_of_the_house(checkout: Path) -> None:
    for line in ("ruff format --check .", "ruff check ."):
        page_commands.try_line(f"python -m {line}", checkout)
