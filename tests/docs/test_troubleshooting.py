"""Each message of docs/troubleshooting.md is one that the suite prints; `...` there stands for any text."""

import ast
import re
from functools import cache
from pathlib import Path

import page_commands
import pytest
from in_process import Ner

import ner_experiments
from ner_experiments.config import values

PAGE = page_commands.ROOT / "docs/troubleshooting.md"
ROW = re.compile(r"^\| (`+)(.+?)\1 \| ", re.MULTILINE)
MESSAGES = [message.strip() for _, message in ROW.findall(PAGE.read_text(encoding="utf-8"))]
MISTAKES = {
    "modle=residual: there": "modle=residual",
    "model=residul: model": "model=residul",
    "layers=three: layers": "layers=three",
    "words=bert needs": "words=bert",
    "conll2003: not": "data=conll2003",
    "trainer.max_epochs must be": "trainer.max_epochs=0",
}
"""By the begin of a message that is hardly a text in the code, the override that is refused with it."""
NO_TABLE = "there is no table"
OF_OTHERS = {"CUDA out of memory"}  # PyTorch's own


def met(begin: str, text: str) -> bool:
    """Whether the message of the page that begins so is in the text."""
    (message,) = [each for each in MESSAGES if each.startswith(begin)]
    pattern = ".*".join(map(re.escape, message.split("...")))
    return re.search(pattern, text, re.DOTALL) is not None


@cache
def templates() -> list[list[str]]:
    """The texts in the code of the suite, cut where they have values."""
    found = []
    for path in Path(ner_experiments.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "%s" for part in node.values]
                found.append(re.split("%s", "".join(map(str, parts))))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.split(r"%[sd]|%\.\df", node.value))
    return [parts for parts in found if len("".join(parts)) > 20]


def is_in(parts: list[str], message: str) -> bool:
    """Whether the message has the parts in turn, with values between them."""
    place = -1
    for part in parts:
        place = message.find(part, place + 1)
        if place < 0:
            return False
        place += len(part)
    return True


@pytest.mark.parametrize(
    "message", [it for it in MESSAGES if not it.startswith((*MISTAKES, *OF_OTHERS, NO_TABLE))]
)
def test_a_message_is_in_the_code(message: str) -> None:
    """Nothing is done here to get it; where it is made, a test reads it."""
    longest = max(len("".join(parts)) for parts in templates() if is_in(parts, message))
    assert longest > 0.4 * len(message)


@pytest.mark.parametrize("begin", MISTAKES)
def test_a_mistake_has_the_message(begin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path))
    with pytest.raises(ValueError, match=r"\S") as caught:
        values.check_jobs([[MISTAKES[begin]]])
    assert met(begin, str(caught.value))


def test_a_command_has_the_message(ner: Ner) -> None:
    assert met(NO_TABLE, ner.error("table", "yang2020_tabel12"))
