"""The guides are correct: their files are added to a copy of the checkout, and their commands run there."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import page_commands
import pytest

import ner_experiments
from ner_experiments.data import toy

DOCS = page_commands.ROOT / "docs"


@pytest.fixture(params=page_commands.IN_TURN)
def page(request: pytest.FixtureRequest) -> Path:
    return DOCS / request.param


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the files of all guides, and with corpora and texts such as their readers have."""
    folder = page_commands.copy_to(tmp_path_factory.mktemp("guides") / "copy")
    given = {
        path: text
        for name in page_commands.IN_TURN
        for path, text in page_commands.files(DOCS / name).items()
    }
    given |= {
        **{f"data/mine/{split}.txt": columns("zh", split) for split in toy.SPLITS},
        "products.conll": columns("en", "train"),
        "products-test.conll": columns("en", "test"),
        "posts.txt": "Vera Stavsen lives in Vantora.\nHugo Lornsen left Dalmia.\n",
        "vectors.txt": "the 0.1 0.2\nof 0.3 0.4\n",
        "text.txt": "王小明住在上海。\n",
    }
    for name, text in given.items():
        path = folder / name
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def columns(language: toy.Language, split: toy.Split) -> str:
    """Sixty sentences, a token and its tag per line."""
    sentences = toy.sentences(language, split, 60)
    pairs = (zip(it.words, it.tags, strict=True) for it in sentences)
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in each) for each in pairs)


@pytest.mark.slow
@pytest.mark.xdist_group("guides")  # one copy of the checkout
def test_its_commands_run_in_turn(page: Path, checkout: Path) -> None:
    """A run's folder on the page stands for the newest run; a toy stands in for a table's own corpus."""
    shutil.rmtree(checkout / "outputs", ignore_errors=True)  # of another guide
    for line in page_commands.commands(page):
        runs = sorted(
            checkout.glob("outputs/*/seed-1/metrics.json"), key=lambda path: path.stat().st_mtime_ns
        )
        finished = runs[-1].parent if runs else None
        if "-m table=" in line and " data=" not in line:
            line += " data=toy_zh"
        page_commands.try_line(line, checkout, finished, NER_DATA_DIR=str(checkout / "data"))


def asked(port: int, body: bytes | Iterable[bytes]) -> int:
    """The status of the answer, as soon as there is one."""
    for _ in range(600):
        try:
            with urlopen(f"http://127.0.0.1:{port}", data=body) as answer:
                json.load(answer)
                return answer.status
        except HTTPError as error:
            return error.code
        except URLError:
            time.sleep(0.1)
    raise TimeoutError


def test_the_service_answers_with_mentions_and_refuses_what_it_cannot_read(
    toy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = DOCS / "service.md"
    (code,) = page_commands.files(page).values()
    (client,) = [block for block in page_commands.blocks(page, "python") if code not in block]
    (tmp_path / "service.py").write_text(code, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "service.py", str(toy_run), str(port)], cwd=tmp_path)
    try:
        assert asked(port, b"") == 200
        client = client.replace(":8000", f":{port}")
        text = "Vera Stavsen of Brennholt lives in Vantora."
        exec(re.sub(r'text = ".*?"', f"text = {text!r}", client), {})
        answers = [line.rsplit(" ", 1)[0] for line in capsys.readouterr().out.splitlines()]
        tagged = [it for sentence in ner_experiments.load(toy_run).tag(text) for it in sentence.mentions]
        assert answers == [f"{it.start} {it.end} {it.type} {text[it.start : it.end]}" for it in tagged]
        assert tagged
        assert asked(port, b"\0") == 400
        assert asked(port, b"\xff") == 400
        assert asked(port, iter([b"a", b"b"])) == 411  # sent in chunks, without Content-Length
    finally:
        server.kill()
        server.wait()
