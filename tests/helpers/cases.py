"""Tables of cases as text: what is given, an arrow, and the message that it gets."""

import pytest


def refused(text: str) -> list:
    """A parameter set (given, message) for each line `GIVEN -> MESSAGE`; in what is given, \\n ends a line."""
    pairs = [line.split(" -> ") for line in text.strip("\n").splitlines()]
    return [
        pytest.param(given.strip().replace("\\n", "\n"), message.strip(), id=given.strip()[:60])
        for given, message in pairs
    ]
