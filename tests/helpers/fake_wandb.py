"""A local W&B server that accepts everything it is sent, and stops answering after some seconds of a run."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

from local_server import Quiet

VIEWER = {"id": "v", "username": "me", "entity": "me", "email": "", "flags": "{}", "teams": {"edges": []}}
BUCKET = {
    **{"id": "b", "name": "r", "displayName": "r", "description": "", "config": "{}", "sweepName": None},
    "project": {"id": "p", "name": "project", "entity": {"id": "e", "name": "me"}},
    **{"historyLineCount": 0, "summaryMetrics": "{}", "files": {"edges": []}},
}


class Handler(Quiet):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_GET(self) -> None:
        self.answer({})

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = json.loads(sent) if self.path.endswith("graphql") else {"query": ""}
        query = asked["query"]
        if "upsertBucket" in query:
            self.server.began = self.server.began or time.monotonic()
            self.answer({"data": {"upsertBucket": {"bucket": BUCKET, "inserted": True}}})
        elif "viewer" in query:
            self.answer({"data": {"viewer": VIEWER}})
        elif "model(" in query:
            self.answer({"data": {"model": None}})
        elif "createRunFiles" in query:
            files = [{"name": name, "uploadUrl": self.upload_url} for name in asked["variables"]["files"]]
            self.answer({"data": {"createRunFiles": {"runID": "b", "uploadHeaders": [], "files": files}}})
        else:
            self.answer({"data": {}})

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({})

    @property
    def upload_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/upload"

    def answer(self, content: Any) -> None:
        began = self.server.began
        if self.server.seconds == 0 or (began and time.monotonic() - began > self.server.seconds):
            self.server.over.wait()
            return
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served(seconds: float) -> Iterator[str]:
    """URL of the server. It stops answering `seconds` after a run has begun; with 0 it never answers."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seconds, server.began, server.over = seconds, None, threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
