"""tools/audit.py with the real pip-audit, against a database of the test's own."""

import json
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_server import Quiet, served
from places import ROOT

AUDIT = ROOT / "tools" / "audit.py"
FAULT = {
    "id": "OSV-1",
    "aliases": ["CVE-1"],
    "summary": "made up",
    "affected": [
        {
            "package": {"name": "bad", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
            "versions": ["1.0"],
        }
    ],
}


class Database(Quiet):
    def do_GET(self) -> None:
        self.send_error(405)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = asked["package"]["name"]
        self.send_response(500 if name == "broken" else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"vulns": [FAULT]} if name == "bad" else {}).encode())


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with served(Database) as url:
        yield f"{url}/query"


def audit(folder: Path, requirements: str, url: str, python: str = sys.executable) -> tuple[int, str]:
    path = folder / "constraints.txt"
    path.write_text(requirements)
    command = [python, str(AUDIT), str(path), url]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={"no_proxy": "*", "HOME": str(folder)}
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.replace(str(path), "PATH")


def test_a_known_fault_fails_and_is_named(tmp_path: Path, database: str) -> None:
    found = audit(tmp_path, "good==2.0\nbad==1.0\n", database)
    lines = "audit: 1 known faults in the 2 packages of PATH\nbad 1.0: CVE-1, OSV-1 (fixed in 1.1)\n"
    assert found == (1, lines)


def test_without_faults_a_line_says_so(tmp_path: Path, database: str) -> None:
    assert audit(tmp_path, "good==2.0\n", database) == (
        0,
        "audit: 0 known faults in the 1 packages of PATH\n",
    )


def test_a_database_that_breaks_off_fails_nothing(tmp_path: Path, database: str) -> None:
    status, printed = audit(tmp_path, "good==2.0\nbroken==1.0\n", database)
    assert (status, printed.startswith("audit: skipped, ")) == (0, True)
    assert printed.count("\n") == 1


def test_what_pip_audit_cannot_read_fails(tmp_path: Path, database: str) -> None:
    status, printed = audit(tmp_path, "good==2.0\nbad = 1.0\n", database)
    assert (status, printed.startswith("audit: "), "line 2" in printed) == (1, True, True)


def test_a_missing_pip_audit_fails(tmp_path: Path, database: str) -> None:
    venv.create(tmp_path / "env")
    status, printed = audit(tmp_path, "good==2.0\n", database, str(tmp_path / "env/bin/python"))
    assert (status, printed.endswith(": No module named pip_audit\n")) == (1, True)


def test_without_a_network_it_is_skipped_at_once(tmp_path: Path) -> None:
    started = time.monotonic()
    with socket.socket() as silent:  # takes connections, and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/query"
        assert audit(tmp_path, "good==2.0\n", url) == (0, f"audit: skipped, {url} cannot be reached\n")
    assert time.monotonic() - started < 10
