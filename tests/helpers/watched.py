"""`python watched.py REPORT OVERRIDES ...`: one run per OVERRIDES, with a record of its external requests.

The JSON file REPORT receives one list per run: the addresses that it tried to connect to, and the programs that it
started. Connections are refused, except in runs with a logger that needs them.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

OF_THE_NETWORK = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "socket.sendmsg",
)
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system")
events: list[tuple[str, str]] = []
refuse = True


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in OF_THE_NETWORK and not is_local(arguments):
        events.append((event, repr(arguments)))
        if refuse:
            raise PermissionError(f"no {event} here: {arguments!r}")
    elif event in STARTS:
        events.append((event, os.path.basename(str(arguments[0]))))


def is_local(arguments: tuple[Any, ...]) -> bool:
    """Whether the address is a path or empty, as for local sockets."""
    return isinstance(arguments[-1], str | bytes | None)


if __name__ == "__main__":
    sys.addaudithook(watch)
    from ner_experiments.main import cli

    report, *runs = sys.argv[1:]
    found = []
    for overrides in runs:
        refuse = "wandb" not in overrides
        assert cli(["train", *overrides.split()]) == 0
        found.append(list(events))
        events.clear()
    Path(report).write_text(json.dumps(found))
