"""Commands of the suite, run in the process of a test."""

import json
from typing import Any

import pytest

from ner_experiments.main import cli


class Ner:
    """`ner-experiments NAME ...`: called, it returns what the command prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        return self._run(arguments, status).out

    def json(self, *arguments: str, status: int = 0) -> Any:
        """The output of the command with --json, read."""
        return json.loads(self(*arguments, "--json", status=status))

    def error(self, *arguments: str) -> str:
        """The message of a command that fails."""
        return self._run(arguments, 1).err

    def _run(self, arguments: tuple[str, ...], status: int) -> Any:
        self.capsys.readouterr()
        found = cli(arguments)
        printed = self.capsys.readouterr()
        assert found == status, printed.err
        return printed
