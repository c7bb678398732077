"""Schemes, the tags of two types, and all short sequences of them, for tests of tags."""

from itertools import product
from typing import get_args

from hypothesis import settings

from ner_experiments.data.tags import (
    Scheme,
)

seeded = settings(derandomize=True, deadline=None)  # a busy machine breaks no test

SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
BIOES = ("O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B")


def sequences(labels, longest):
    return (tags for length in range(longest + 1) for tags in product(labels, repeat=length))
