"""Checks of the arguments of a command that argparse cannot express."""

from __future__ import annotations

import argparse


def refuse(arguments: argparse.Namespace, *names: str, reason: str) -> None:
    """Raise ValueError, such as "--format is for --to files", for any of these that is given, as it changes nothing."""
    for name in names:
        if (value := getattr(arguments, name)) is not None and value is not False:
            raise ValueError(f"--{name} {reason}")
