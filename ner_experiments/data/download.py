"""Files fetched from their owners, each checked by SHA-256 before it takes its place."""

from __future__ import annotations

import glob
import http.client
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from ner_experiments.atomic import clear, replacing
from ner_experiments.data.checksum import sha256

LIMIT = 256 * 2**20
"""Bytes; no corpus here is a tenth of it."""

_CHUNK = 2**16


def download(
    urls: Mapping[str, str],
    checksums: Mapping[str, str],
    folder: Path,
    *,
    limit: int = LIMIT,
    timeout: float = 30,
) -> None:
    """Fetches each file of `urls` into `folder`; progress goes to stderr.

    urls, checksums: file name -> URL (http or https) and SHA-256 in hexadecimal.
    limit: bytes that a file may have. timeout: seconds to wait for the next piece of it.
    A right file that is there already stays; a wrong one stays too, and is an error. A file appears whole and
    checked, or not at all. ValueError: with the URL or the file, the rule, and what came instead.
    """
    for name, url in urls.items():
        if name in ("", ".", "..") or Path(name).name != name or "\\" in name:
            raise ValueError(f"{name!r}: expected a file name without folders, for {url}")
        if name not in checksums:
            raise ValueError(f"{url}: no SHA-256 is known for {name}")
        if not _is_http(url):
            raise ValueError(f"{url}: expected http or https")
    for name, url in urls.items():
        target = folder / name
        if target.exists():
            _check_present(target, checksums[name])
            _say(f"{target}: already there")
        else:
            _fetch(url, target, checksums[name], limit, timeout)


def _check_present(path: Path, checksum: str) -> None:
    if (found := sha256(path)) != checksum:
        raise ValueError(
            f"{path}: already there with SHA-256 {found}, expected {checksum}; move it away first"
        )


def _fetch(url: str, target: Path, checksum: str, limit: int, timeout: float) -> None:
    try:
        with urllib.request.build_opener(_OnlyHttp).open(url, timeout=timeout) as response:
            target.parent.mkdir(parents=True, exist_ok=True)
            clear(target.parent, glob.escape(target.name))
            with replacing(target) as part:
                with part.open("wb") as file:
                    _copy(response, file, url, limit)
                if (found := sha256(part)) != checksum:
                    raise ValueError(f"{url}: SHA-256 is {found}, expected {checksum}")
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"{url}: the server answered {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(f"{url}: not fetched: {error}") from error


def _copy(response: http.client.HTTPResponse, file: BinaryIO, url: str, limit: int) -> None:
    header = response.headers.get("Content-Length")
    expected = int(header) if header and header.isdecimal() else None
    if expected is not None and expected > limit:
        raise ValueError(f"{url}: larger than the limit of {limit:,} bytes: {expected:,}")
    size = 0
    while chunk := response.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise ValueError(f"{url}: larger than the limit of {limit:,} bytes")
        file.write(chunk)
        if sys.stderr.isatty():
            _say(f"\r{url}: {size:,} bytes", end="")
    if (
        expected is not None and size != expected
    ):  # read() itself only complains where it is asked for everything
        raise ValueError(f"{url}: broke off after {size:,} of {expected:,} bytes")
    _say(f"\r{url}: {size:,} bytes" if sys.stderr.isatty() else f"{url}: {size:,} bytes")


def _say(message: str, end: str = "\n") -> None:
    print(message, end=end, file=sys.stderr, flush=True)


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https")


class _OnlyHttp(urllib.request.HTTPRedirectHandler):
    """urllib itself refuses redirections to file, but follows them to ftp."""

    def redirect_request(
        self, request: Any, response: Any, code: int, reason: str, headers: Any, url: str
    ) -> Any:
        if not _is_http(url):
            reason = f"{reason} - Redirection to url '{url}' is not allowed"
            raise urllib.error.HTTPError(request.full_url, code, reason, headers, response)
        return super().redirect_request(request, response, code, reason, headers, url)
