"""Each message of docs/troubleshooting.md is one that the suite prints; `...` there stands for any text."""

import ast
import logging
import re
from functools import cache
from pathlib import Path

import huggingface_hub
import page_commands
import pytest
from in_process import Ner

import ner_experiments
from ner_experiments.config import values
from ner_experiments.config.compose import compose
from ner_experiments.train import train

PAGE = page_commands.ROOT / "docs/troubleshooting.md"
ROW = re.compile(r"^\| (`+)(.+?)\1 \| ", re.MULTILINE)
MESSAGES = [message.strip() for _, message in ROW.findall(PAGE.read_text(encoding="utf-8"))]
FILES = {
    "ok.conll": "Ann NNP B-PER\nsat VBD O\n\nBob NNP B-PER\n",
    "uneven.conll": "Ann NNP B-PER\nsat VBD\n",
    "other.conll": "Ann B-PER NNP\nsat O VBD\n",
}
COLUMNS = ["data=conll", "data.name=conll", "data.files.test=ok.conll"]
SMALL = ["trainer=smoke", "runtime.progress=false", "runtime.accelerator=cpu"]
TOY = "data.sentences={train: 20, dev: 5, test: 5}"
BERT = "words.input.path=google-bert/bert-base-cased"
MISTAKES = {
    "modle=residual: there": ["modle=residual"],
    "model=residul: model": ["model=residul"],
    "layers=three: layers": ["layers=three"],
    "layers=3: no": ["layers=3"],
    "words=bert needs": ["words=bert"],
    "trainer.max_epochs must": ["trainer.max_epochs=0"],
    "conll2003: not": ["data=conll2003"],
    "...: no such file": ["words=glove"],
    "...: neither a local folder": ["words=bert", BERT],
    "...:2: expected": [*COLUMNS, "data.files.train=uneven.conll"],
    "...:1: not a tag": [*COLUMNS, "data.files.train=other.conll"],
    "...:1: no column": [*COLUMNS, "data.files.train=ok.conll", "data.columns={word: 0, tag: 7}"],
    "conll: there is no": [*COLUMNS, "data.files.train=ok.conll"],
    "runtime.accelerator=gpu": ["runtime.accelerator=gpu"],
    "the loss is nan": [
        *("optimizer=sgd", "optimizer.lr=1e30", "trainer.gradient_clip=0.0", "batches.tokens=30")
    ],
}
"""By the begin of a message, overrides for which it is printed."""
COMMANDS = {
    "...: expected the folder": ["predict", ".", "ok.conll"],
    "there is no table": ["table", "yang2020_tabel12"],
}
OF_OTHERS = {"CUDA out of memory"}  # PyTorch's own


def met(begin: str, text: str) -> bool:
    """Whether the message of the page that begins so is in the text."""
    (message,) = [each for each in MESSAGES if each.startswith(begin)]
    pattern = ".*".join(map(re.escape, message.split("...")))
    return re.search(pattern, text, re.DOTALL) is not None


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")


@cache
def templates() -> list[list[str]]:
    """The texts in the code of the suite, cut where a value stands."""
    found = []
    for path in Path(ner_experiments.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "%s" for part in node.values]
                found.append(re.split("%s", "".join(map(str, parts))))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.split(r"%[sd]|%\.\df", node.value))
    return found


@pytest.mark.parametrize(
    "message", [it for it in MESSAGES if not it.startswith((*MISTAKES, *OF_OTHERS, *COMMANDS))]
)
def test_a_message_is_in_the_code(message: str) -> None:
    """Nothing is done here to get it; where it is made, a test reads it."""
    found = [
        parts
        for parts in templates()
        if len("".join(parts)) > 20 and re.search(".+?".join(map(re.escape, parts)), message)
    ]
    longest = max(found, key=lambda parts: len("".join(parts)))
    assert len("".join(longest)) > 0.4 * len(message)


@pytest.mark.parametrize("begin", MISTAKES)
def test_a_mistake_has_the_message(begin: str) -> None:
    if "gpu" in begin and not values.lack_of_gpu():
        pytest.skip("there is a GPU")
    overrides = MISTAKES[begin]
    small = SMALL if any("data=" in each for each in overrides) else [*SMALL, TOY]

    def run() -> None:
        values.check_jobs([[*small, *overrides]])
        train(compose([*small, *overrides]))

    with pytest.raises(ValueError, match=r"\S") as caught:
        run()
    assert met(begin, str(caught.value))


def test_what_became_of_a_run_is_said(caplog: pytest.LogCaptureFixture) -> None:
    Path("train.conll").write_text(20 * "Ann NNP B-PER\nsat VBD O\n\n")
    cfg = compose([*SMALL, *COLUMNS, "data.files.train=train.conll", "model=none", "chars=none"])
    folder = Path(train(cfg)["folder"])
    with caplog.at_level(logging.INFO):
        train(cfg)
    assert met("... is finished (by", caplog.text)
    with (folder / "encoder.json").open("a") as file:
        file.write(" ")
    caplog.clear()
    train(cfg)
    assert met("... is damaged", caplog.text)
    assert "the run is repeated" in caplog.text
    (folder / "log.csv").unlink()
    caplog.clear()
    train(cfg)
    assert met("... is missing", caplog.text)
    assert "the run is repeated" in caplog.text
    Path("train.conll").write_text(30 * "Ann NNP B-PER\nsat VBD O\n\n")
    with pytest.raises(ValueError, match="files have changed") as caught:
        train(cfg)
    assert met("...: files have", str(caught.value))


@pytest.mark.parametrize("begin", COMMANDS)
def test_a_command_has_the_message(begin: str, ner: Ner) -> None:
    assert met(begin, ner.error(*COMMANDS[begin]))
