"""The guides are correct: their files are added to a copy of the checkout, and their commands run there."""

import json
import os
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
import tiny_bert

import ner_experiments
from ner_experiments.data import toy

DOCS = page_commands.ROOT / "docs"
PAGES = {page: page_commands.commands(page) for page in page_commands.GUIDES}
COLLECTED = ("residual_c", "tests/test_metrics.py")
"""In commands that run tests of this checkout which no example changes."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the files of all pages, and with corpora and texts such as their readers have."""
    folder = page_commands.copy_to(tmp_path_factory.mktemp("guides") / "copy")
    given = {path: text for page in PAGES for path, text in page_commands.files(page).items()}
    given |= {
        **{f"data/mine/{split}.txt": columns("zh", split) for split in toy.SPLITS},
        **{f"data/letters/{split}.conll": columns("en", split) for split in toy.SPLITS},
        **{f"products{end}.conll": columns("en", "test") for end in ("", "-dev", "-test")},
        **{
            f"NER-de-{split}.tsv": "#\thttp://a.de [2009]\n1\tAnn\tB-PER\tO\n2\tsaß\tO\tO\n\n"
            for split in ("dev", "test")
        },
        "news.jsonl": '{"tokens": ["Ann", "sat"], "ner_tags": ["B-PER", "O"]}\n',
        "vectors.txt": "the 0.1 0.2\nof 0.3 0.4\n",
        **{f"{name}.txt": "Vera Stavsen lives in Vantora.\n王小明住在上海。\n" for name in TEXTS},
    }
    for name, text in given.items():
        path = folder / name
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for corpus in page_commands.CORPORA:
        path = Path(os.environ.get("NER_DATA_DIR", "data")).absolute() / corpus
        if path.is_dir():
            (folder / "data" / corpus).symlink_to(path)
    tiny_bert.save(folder / "minilm", max_position_embeddings=128)
    return folder


TEXTS = ("news", "tweets", "chinese", "posts", "text")


def columns(language: toy.Language, split: toy.Split) -> str:
    """Sixty sentences, a token and its tag per line."""
    sentences = toy.sentences(language, split, 60)
    pairs = (zip(it.words, it.tags, strict=True) for it in sentences)
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in each) for each in pairs)


@pytest.mark.slow
@pytest.mark.xdist_group("guides")  # one copy of the checkout
@pytest.mark.parametrize("page", [page for page in PAGES if PAGES[page]], ids=lambda page: page.name)
def test_its_commands_run_in_turn(page: Path, checkout: Path, toy_run: Path) -> None:
    """A run's folder on the page stands for the newest run."""
    shutil.rmtree(checkout / "outputs", ignore_errors=True)  # of another page
    (checkout / "outputs").mkdir()
    for line in dict.fromkeys(PAGES[page]):
        runs = [*checkout.glob("outputs/*/seed-1/metrics.json")]
        newest = max(runs, key=lambda path: path.stat().st_mtime_ns).parent if runs else toy_run
        line += " --collect-only" * any(part in line for part in COLLECTED)
        page_commands.try_line(line, checkout, newest, NER_DATA_DIR=str(checkout / "data"))


@pytest.mark.slow
@pytest.mark.xdist_group("guides")
def test_the_examples_obey_the_rules_of_the_house(checkout: Path) -> None:
    for arguments in (["ruff", "format", "--check", "."], ["ruff", "check", "."]):
        page_commands.run_in_checkout(["-m", *arguments], checkout)


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
    page = DOCS / "predict.md"
    (code,) = page_commands.files(page).values()
    (client,) = [block for block in page_commands.blocks(page, "python") if "urlopen" in block]
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
