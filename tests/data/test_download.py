"""download(): against a server of the test's own; whatever goes wrong, nothing is left behind."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_server import Quiet, served
from omegaconf import OmegaConf
from places import CONF

from ner_experiments.data.download import download

TEXT = b"Ada B-PER\nlaughs O\n\n" * 20_000  # several times the size of what is read at once
CHECKSUM = hashlib.sha256(TEXT).hexdigest()
SIZE = len(TEXT)
SOURCES = CONF / "data"


class Server(Quiet):
    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        places = {"/away": "/good", "/file": "file:///etc/hostname", "/ftp": "ftp://127.0.0.1/good"}
        if self.path in places:
            self.send_response(302)
            self.send_header("Location", places[self.path])
            self.end_headers()
        elif self.path == "/absent":
            self.send_error(404)
        elif self.path == "/stalls":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(TEXT[:10])
            self.rfile.read(1)  # until the client gives up
        else:
            self.send_response(200)
            if self.path != "/unannounced":
                self.send_header("Content-Length", str(len(TEXT)))
            self.end_headers()
            self.wfile.write(TEXT[:1000] if self.path == "/broken" else TEXT)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    Server.requests = []
    with served(Server) as url:
        yield url


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.parametrize("path", ["good", "unannounced", "away"])
def test_a_right_file_arrives_whole(
    server: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "folder"
    download({"a.conll": f"{server}/{path}"}, {"a.conll": CHECKSUM}, {"a.conll": SIZE}, folder)
    assert [file.name for file in folder.iterdir()] == ["a.conll"]
    assert (folder / "a.conll").read_bytes() == TEXT
    (tmp_path / "other").touch()
    assert (folder / "a.conll").stat().st_mode == (tmp_path / "other").stat().st_mode
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{server}/{path}: {len(TEXT):,} bytes\n"


@pytest.mark.parametrize(
    ("path", "checksum", "size", "message"),
    [
        ("good", "0" * 64, SIZE, f"SHA-256 is {CHECKSUM}, expected {'0' * 64}"),
        ("absent", CHECKSUM, SIZE, "the server answered 404 Not Found"),
        ("broken", CHECKSUM, SIZE, f"connection closed after 1,000 of {SIZE:,} bytes"),
        ("file", CHECKSUM, SIZE, "the server answered 302 Found - Redirection to url 'file:///etc/hostname'"),
        ("ftp", CHECKSUM, SIZE, "the server answered 302 Found - Redirection to url 'ftp://127.0.0.1/good'"),
        ("stalls", CHECKSUM, SIZE, "download failed: timed out"),
        ("good", CHECKSUM, SIZE - 1, f"{SIZE:,} bytes, expected {SIZE - 1:,}"),
        ("good", CHECKSUM, SIZE + 1, f"{SIZE:,} bytes, expected {SIZE + 1:,}"),
        ("unannounced", CHECKSUM, 70_000, "more than the expected 70,000 bytes"),
        ("unannounced", CHECKSUM, SIZE + 1, f"connection closed after {SIZE:,} of {SIZE + 1:,} bytes"),
    ],
)
def test_a_wrong_answer_leaves_nothing(
    server: str, path: str, checksum: str, size: int, message: str, tmp_path: Path
) -> None:
    url = f"{server}/{path}"
    with pytest.raises(ValueError, match="^" + re.escape(f"{url}: {message}")):
        download({"a.conll": url}, {"a.conll": checksum}, {"a.conll": size}, tmp_path, timeout=0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_connection_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # taken, and not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/good"
        with pytest.raises(ValueError, match=r"/good: download failed: .*Connection refused"):
            download({"a.conll": url}, {"a.conll": CHECKSUM}, {"a.conll": SIZE}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_correct_file_is_left_unchanged(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "a.conll"
    target.write_bytes(TEXT)
    os.utime(target, (1, 1))
    Server.requests.clear()
    download({"a.conll": f"{server}/good"}, {"a.conll": CHECKSUM}, {"a.conll": SIZE}, tmp_path)
    assert Server.requests == []
    assert target.stat().st_mtime == 1
    assert capsys.readouterr().err == f"{target}: already there\n"


def test_an_existing_wrong_file_is_left_unchanged_too(server: str, tmp_path: Path) -> None:
    target = tmp_path / "a.conll"
    target.write_bytes(b"my own\n")
    own = hashlib.sha256(b"my own\n").hexdigest()
    with pytest.raises(ValueError, match="already there") as caught:
        download({"a.conll": f"{server}/good"}, {"a.conll": CHECKSUM}, {"a.conll": SIZE}, tmp_path)
    assert str(caught.value) == (
        f"{target}: already there with SHA-256 {own}, expected {CHECKSUM}; move it away first"
    )
    assert target.read_bytes() == b"my own\n"


@pytest.mark.parametrize(
    ("name", "url", "message"),
    [
        ("../a", "http://x/a", "'../a': expected a file name without folders, for http://x/a"),
        ("..", "http://x/a", "'..': expected a file name without folders, for http://x/a"),
        ("/etc/a", "http://x/a", "'/etc/a': expected a file name without folders, for http://x/a"),
        ("b\\a", "http://x/a", "'b\\\\a': expected a file name without folders, for http://x/a"),
        ("", "http://x/a", "'': expected a file name without folders, for http://x/a"),
        ("a", "file:///etc/hostname", "file:///etc/hostname: expected http or https"),
        ("a", "ftp://x/a", "ftp://x/a: expected http or https"),
        ("unknown", "http://x/a", "http://x/a: no SHA-256 is known for unknown"),
        ("unmeasured", "http://x/a", "http://x/a: no size is known for unmeasured"),
    ],
)
def test_what_may_not_be_asked_for(name: str, url: str, message: str, tmp_path: Path) -> None:
    checksums = {} if name == "unknown" else {name: CHECKSUM}
    sizes = {} if name == "unmeasured" else {name: SIZE}
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        download({name: url}, checksums, sizes, tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_fetched_if_any_entry_is_wrong(server: str, tmp_path: Path) -> None:
    Server.requests.clear()
    with pytest.raises(ValueError, match="no SHA-256 is known for b"):
        download({"a": f"{server}/good", "b": f"{server}/good"}, {"a": CHECKSUM}, {"a": SIZE}, tmp_path)
    assert Server.requests == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_may_be_downloaded_is_pinned_by_checksum_and_size(path: Path) -> None:
    """The commit in the URL is not enough: what it serves is checked."""
    yaml: Any = OmegaConf.load(path)
    if "url" in yaml:
        assert list(yaml.sha256) == list(yaml.sizes) == list(yaml.files)
        assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in yaml.sha256.values())
        assert yaml.url.startswith("https://")
