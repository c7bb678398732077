"""A local hub of Hugging Face with one repository, as `huggingface_hub` and `datasets` ask for it over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from local_server import Quiet, served

COMMIT = "0123456789" * 4


@dataclass(frozen=True)
class Repository:
    """A repository with one commit. asked: method and path of each request, without what follows the question mark."""

    kind: Literal["models", "datasets"]
    name: str
    folder: Path
    asked: list[str] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"/api/{self.kind}/{self.name}"

    @property
    def files(self) -> str:
        return f"{'/datasets' if self.kind == 'datasets' else ''}/{self.name}/resolve/"

    def about(self, path: Path) -> dict[str, Any]:
        """Description of a file or folder, as the hub returns it."""
        content = path.read_bytes() if path.is_file() else b""
        return {
            "type": "file" if path.is_file() else "directory",
            "path": path.relative_to(self.folder).as_posix(),
            "oid": sha1(content).hexdigest(),
            "size": len(content),
        }


class Hub(Quiet):
    """The handler of a server with `repository`."""

    repository: Repository

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        repository = self.repository
        path = unquote(urlsplit(self.path).path)
        repository.asked.append(f"{self.command} {path}")
        if path.startswith(repository.files):
            self.send_file(path.removeprefix(repository.files))
        elif path == repository.api or path.startswith(f"{repository.api}/revision/"):
            found = [repository.about(it) for it in sorted(repository.folder.rglob("*"))]
            siblings = [{"rfilename": it["path"]} for it in found if it["type"] == "file"]
            self.send_json({"id": repository.name, "sha": COMMIT, "siblings": siblings})
        elif path.startswith(f"{repository.api}/tree/"):
            folder = repository.folder / path.removeprefix(f"{repository.api}/tree/").partition("/")[2]
            if folder.is_dir():
                recursive = "recursive=true" in urlsplit(self.path).query.lower()
                paths = folder.rglob("*") if recursive else folder.iterdir()
                self.send_json([repository.about(it) for it in sorted(paths)])
            else:
                self.refuse("EntryNotFound")
        else:
            self.refuse("RepoNotFound")

    def send_file(self, revision_and_name: str) -> None:
        path = self.repository.folder / revision_and_name.partition("/")[2]
        if not path.is_file():
            self.refuse("EntryNotFound")
            return
        content = path.read_bytes()
        tag = sha256(content).hexdigest()
        self.send(200, content, {"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'})

    def send_json(self, value: Any) -> None:
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def refuse(self, code: str) -> None:
        self.send(404, b"{}", {"X-Error-Code": code})

    def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def hub(repository: Repository) -> Iterator[str]:
    """The URL of a hub, which HF_ENDPOINT names."""
    with served(type("HubOfOne", (Hub,), {"repository": repository})) as url:
        yield url
