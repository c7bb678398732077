"""Downloads from a corpus' owners, verified by size and SHA-256 before they appear under their names.

`pooch` is not used. It overwrites an existing file with another checksum, does not limit what a server may send, and
does not check sizes, so most of this file would remain.
"""

from __future__ import annotations

import glob
import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from ner_experiments.utils.files import atomic_write, remove_partial_files, sha256

_CHUNK = 2**16


def download(
    urls: Mapping[str, str],
    checksums: Mapping[str, str],
    sizes: Mapping[str, int],
    folder: Path,
    *,
    timeout: float = 30,
) -> None:
    """Download each file of `urls` into `folder`, with progress on stderr.

    urls, checksums, sizes: file name -> URL (http or https), SHA-256 in hexadecimal, and number of bytes.
    timeout: seconds to wait for the next chunk of a file.

    An existing file is left unchanged; one with another checksum than expected raises ValueError. A new file appears
    complete and verified, or not at all. Raises ValueError with the URL or the file, the expected and the actual value.
    """
    for name, url in urls.items():
        if name in ("", ".", "..") or Path(name).name != name or "\\" in name:
            raise ValueError(f"{name!r}: expected a file name without folders, for {url}")
        if name not in checksums:
            raise ValueError(f"{url}: no SHA-256 is known for {name}")
        if name not in sizes:
            raise ValueError(f"{url}: no size is known for {name}")
        if not _is_http(url):
            raise ValueError(f"{url}: expected http or https")
    for name, url in urls.items():
        if not is_present(folder / name, checksums[name]):
            _fetch(url, folder / name, checksums[name], sizes[name], timeout)


def is_present(path: Path, checksum: str) -> bool:
    """Whether there is a file, which is said. Raises ValueError if it has another checksum than expected."""
    if not path.exists():
        return False
    if (actual := sha256(path)) != checksum:
        raise ValueError(
            f"{path}: already there with SHA-256 {actual}, expected {checksum}; move it away first"
        )
    say(f"{path}: already there")
    return True


@contextmanager
def verified(target: Path, checksum: str, source: str) -> Iterator[Path]:
    """A temporary path to write to, which becomes `target`. Raises ValueError if it has another checksum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_partial_files(target.parent, glob.escape(target.name))
    with atomic_write(target) as part:
        yield part
        if (actual := sha256(part)) != checksum:
            raise ValueError(f"{source}: SHA-256 is {actual}, expected {checksum}")


def _fetch(url: str, target: Path, checksum: str, size: int, timeout: float) -> None:
    try:
        with (
            urllib.request.build_opener(_OnlyHttp).open(url, timeout=timeout) as response,
            verified(target, checksum, url) as part,
            part.open("wb") as file,
        ):
            _copy(response, file, url, size)
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"{url}: the server answered {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(f"{url}: download failed: {error}") from error


def _copy(response: http.client.HTTPResponse, file: BinaryIO, url: str, size: int) -> None:
    header = response.headers.get("Content-Length")
    if header and header.isdecimal() and int(header) != size:
        raise ValueError(f"{url}: {int(header):,} bytes, expected {size:,}")
    done = 0
    while chunk := response.read(_CHUNK):
        done += len(chunk)
        if done > size:
            raise ValueError(f"{url}: more than the expected {size:,} bytes")
        file.write(chunk)
        if sys.stderr.isatty():
            say(f"\r{url}: {done:,} bytes", end="")
    if done != size:  # read(size) returns short data without an error
        raise ValueError(f"{url}: connection closed after {done:,} of {size:,} bytes")
    say(f"\r{url}: {done:,} bytes" if sys.stderr.isatty() else f"{url}: {done:,} bytes")


def say(message: str, end: str = "\n") -> None:
    """Print a line of progress to stderr."""
    print(message, end=end, file=sys.stderr, flush=True)


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https")


class _OnlyHttp(urllib.request.HTTPRedirectHandler):
    """Refuse redirections to ftp, which urllib follows; it refuses those to file itself."""

    def redirect_request(
        self, request: Any, response: Any, code: int, reason: str, headers: Any, url: str
    ) -> Any:
        if not _is_http(url):
            reason = f"{reason} - Redirection to url '{url}' is not allowed"
            raise urllib.error.HTTPError(request.full_url, code, reason, headers, response)
        return super().redirect_request(request, response, code, reason, headers, url)
