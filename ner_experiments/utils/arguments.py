"""Checks of the arguments of a command that argparse cannot express."""

from __future__ import annotations

import argparse


def refuse(arguments: argparse.Namespace, *names: str, reason: str) -> None:
    """Raise ValueError, such as "--format is for --to files", for any of these that is given, as it changes nothing."""
    for name in names:
        if (value := getattr(arguments, name)) is not None and value is not False:
            raise ValueError(f"--{name} {reason}")


def interval(text: str) -> float:
    """Seconds to wait. ArgumentTypeError for anything that is not a number above 0 and at most a day."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"expected seconds above 0 and at most 86400, got {text!r}")
    return seconds
