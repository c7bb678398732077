"""`python tools/audit.py [CONSTRAINTS [URL]]`: asks OSV, by pip-audit, for known faults of what CI runs.

Ends with 1 if there are any, or if pip-audit is missing or cannot read CONSTRAINTS. Where OSV cannot be
reached, or breaks off, a line says that nothing was asked.
"""

import json
import subprocess
import sys
from contextlib import suppress
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

CONSTRAINTS, URL = "constraints.txt", "https://api.osv.dev/v1/query"
PATIENCE = 4.0
"""Seconds for an answer of any kind: a machine without a network must not wait longer for its checks."""


def main(constraints: str = CONSTRAINTS, url: str = URL) -> int:
    command = [sys.executable, "-m", "pip_audit", "--requirement", constraints, "--no-deps", "--disable-pip"]
    command += ["--progress-spinner=off", "--format=json"]
    read = subprocess.run([*command, "--dry-run"], capture_output=True, text=True)  # asks nobody
    if read.returncode:
        print(f"audit: {end(read.stderr)}")
        return 1
    if not answers(url):
        return skipped(f"{url} cannot be reached")
    command += ["--vulnerability-service=osv", f"--osv-url={url}"]
    asked = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(asked.stdout)["dependencies"]
    except ValueError:
        return skipped(end(asked.stderr))
    faults = [
        f"{package['name']} {package['version']}: {', '.join([fault['id'], *fault['aliases']])}"
        f" (fixed in {', '.join(fault['fix_versions']) or 'no version'})"
        for package in packages
        for fault in package.get("vulns", [])
    ]
    print(
        f"audit: {len(faults)} known faults in the {len(packages)} packages of {constraints}",
        *faults,
        sep="\n",
    )
    return 1 if faults else 0


def end(text: str) -> str:
    """The last 200 characters, in a line."""
    return " ".join(text.split())[-200:]


def skipped(why: str) -> int:
    print(f"audit: skipped, {why}")
    return 0


def answers(url: str) -> bool:
    """Whether there is a server, in `PATIENCE` seconds at most: looking up its name knows no time limit."""
    found: list[bool] = []

    def ask() -> None:
        with suppress(OSError):
            try:
                urlopen(url, timeout=PATIENCE).close()
            except HTTPError as error:
                error.close()
            found.append(True)

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
