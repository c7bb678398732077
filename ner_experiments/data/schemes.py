"""The scheme of a corpus's tags: the one that its config states, or the one detected from the tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Any, Literal

from ner_experiments.data.tags import Scheme, Window, count_illegal, distinct_tags

SchemeOrAuto = Scheme | Literal["auto"]
Stated = SchemeOrAuto | Mapping[str, SchemeOrAuto]
"""The scheme of all splits, or split -> scheme where they differ; "auto" to detect it."""
Schemes = dict[str, Scheme]
"""Split -> the scheme of its tags."""

DECISIVE: dict[Scheme, str] = {"bmes": "M", "bilou": "LU", "bioes": "ES"}
"""Letters by which a scheme is detected, in this order; without them it is iob1 or iob2."""


def schemes_of(stated: Stated, windows: Mapping[str, Counter[Window]]) -> Schemes:
    """The scheme of each split: the stated one, or else the one detected from its windows of tags.

    Tags with M are bmes, with L or U bilou, and with E or S bioes. Otherwise they are iob1 if fewer tags break it than
    iob2, else iob2. A single "auto" detects one scheme for all splits; with an "auto" for each split, each is
    detected by itself.
    """
    schemes = by_letters(stated, {split: distinct_tags(counts) for split, counts in windows.items()})
    for group in detected_together(stated, windows):
        if schemes[group[0]] == "iob2":
            counts = sum((windows[split] for split in group), Counter[Window]())
            illegal = count_illegal(counts, "iob2")
            if illegal and count_illegal(counts, "iob1") < illegal:
                schemes |= dict.fromkeys(group, "iob1")
    return schemes


def by_letters(stated: Stated, tags: Mapping[str, Set[str]]) -> Schemes:
    """The schemes by the letters of each split's distinct tags alone, so that iob1 is returned as iob2.

    Strings that are no tags are ignored.
    """
    schemes: dict[str, Any] = {
        split: stated if isinstance(stated, str) else stated.get(split, "auto") for split in tags
    }
    for group in detected_together(stated, tags):
        letters = {tag[0] for split in group for tag in tags[split] if tag[1:2] == "-"}
        detected = next((scheme for scheme, own in DECISIVE.items() if letters & set(own)), "iob2")
        schemes |= dict.fromkeys(group, detected)
    return schemes


def detected_together(stated: Stated, splits: Iterable[str]) -> list[list[str]]:
    """The groups of splits whose scheme is detected, each from the tags of all its splits."""
    if isinstance(stated, str):
        return [[*splits]] if stated == "auto" else []
    return [[split] for split in splits if stated.get(split, "auto") == "auto"]


def printed(schemes: Schemes) -> str:
    """The scheme as text, or that of each split where they differ."""
    if len(set(schemes.values())) == 1:
        return next(iter(schemes.values()))
    return ", ".join(f"{scheme} in {split}" for split, scheme in schemes.items())
