"""What a user wrote, as an error shows it: on one line, with nothing hidden, and not all of a long text."""

from __future__ import annotations

LONGEST = 80


def quoted(value: object) -> str:
    """`repr`, of which no more than about 80 characters."""
    if isinstance(value, str):
        return repr(shortened(value))
    return shortened(repr(value))


def visible(text: str) -> str:
    """A library's words as they are, but for what a line of an error cannot hold."""
    return shortened("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
