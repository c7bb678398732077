"""How files write tags: `B-ORG`, `B_ORG`, `ORG-B`, in lower case, the bare type, or the letter; and several labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Literal

from ner_experiments.data.remarks import Remarks
from ner_experiments.utils.text import truncated_repr

TagStyle = Literal["B-ORG", "B_ORG", "ORG-B", "ORG_B", "ORG", "B"]
"""The example shows the style: the letter before or after the type, joined by a hyphen or an underscore, or no letter,
or no type.

All letters may be in lower case; then O is too.
"""
MultiLabel = Literal["refuse", "first"]

_LETTERS = "BIMESLU"
_PATTERNS: dict[TagStyle, str] = {
    "B-ORG": "(?P<letter>[{letters}])-(?P<type>.+)",
    "B_ORG": "(?P<letter>[{letters}])_(?P<type>.+)",
    "ORG-B": "(?P<type>.+)-(?P<letter>[{letters}])",
    "ORG_B": "(?P<type>.+)_(?P<letter>[{letters}])",
}
LETTERED = tuple(_PATTERNS)
"""The styles with a letter and a type."""
BARE: TagStyle = "ORG"
NO_TYPE: TagStyle = "B"
ONLY_TYPE = "_"
"""The type of all mentions where tags have none, as seqeval calls it."""
_NO_TYPE = re.compile(r"[-_]*.?[-_]*")
_SEPARATORS = re.compile(r"[,|;+]")
_OUTSIDE = ("O", "o")
_TYPELESS = (("O", _LETTERS), ("o", _LETTERS.lower()))


def detect_style(tags: Iterable[str]) -> TagStyle | None:
    """The style that every tag follows; None if there is no such style.

    Tags are read as bare types only if O is among them, none could be of another style, and none is a letter without
    a type. So the tags of another column, such as parts of speech, are not mistaken for types.
    """
    tags = set(tags)
    for style in _PATTERNS:
        if any(_all_match(tags, style, letters) for letters in (_LETTERS, _LETTERS.lower())):
            return style
    if any(tags <= {outside, *letters} for outside, letters in _TYPELESS):
        return NO_TYPE
    mentions = tags - {"O"}
    bare = not any(_NO_TYPE.fullmatch(tag) or _parts(tag, s) for tag in mentions for s in _PATTERNS)
    return BARE if "O" in tags and "o" not in tags and bare else None


def _all_match(tags: set[str], style: TagStyle, letters: str) -> bool:
    outside = "O" if letters.isupper() else "o"
    pattern = re.compile(_PATTERNS[style].format(letters=letters))
    return all(tag == outside or pattern.fullmatch(tag) for tag in tags)


def to_standard(tag: str, style: TagStyle) -> str:
    """The tag as `B-ORG`: letter, hyphen, type. A tag that does not follow the style is returned unchanged.

    A bare type becomes `I-TYPE`, so that adjacent tokens of one type are one mention. A letter without a type gets the
    type `ONLY_TYPE`: all mentions are of one type, as seqeval and conlleval read such tags.
    """
    if tag in _OUTSIDE:
        return "O"
    if style == BARE:
        return f"I-{tag}"
    if style == NO_TYPE:
        return f"{tag.upper()}-{ONLY_TYPE}" if tag.upper() in _LETTERS else tag
    parts = _parts(tag, style)
    return f"{parts['letter'].upper()}-{parts['type']}" if parts else tag


def _parts(tag: str, style: TagStyle) -> re.Match[str] | None:
    return re.fullmatch(_PATTERNS[style].format(letters=_LETTERS + _LETTERS.lower()), tag)


def follows(tag: str, style: TagStyle) -> bool:
    """Whether a tag has a letter and a type in this style."""
    return _parts(tag, style) is not None


def is_of_mention(tag: str) -> bool:
    """Whether a tag, or one of its labels, has a letter and a type in any style."""
    return any(_parts(label, style) for label in labels(tag) for style in _PATTERNS)


def labels(tag: str) -> list[str]:
    """The labels of a tag such as `B-ORG,B-GPE`; only the tag itself if it is a single label."""
    parts = _SEPARATORS.split(tag)
    several = len(parts) > 1 and all(
        part in _OUTSIDE or any(_parts(part, style) for style in _PATTERNS) for part in parts
    )
    return parts if several else [tag]


def check_label(
    tag: str, place: str, multi_label: MultiLabel, remarks: Remarks, *, what: str = "tag"
) -> None:
    """Count a tag with several labels, the first of which is kept. If they are refused, it is a fault."""
    if multi_label == "refuse":
        rule = f"a {what} with several labels (multi_label: first keeps the first)"
        remarks.fault(f"{place}: {rule}: {truncated_repr(tag)}", remedy={"multi_label": "first"})
        return
    remarks.add(f"{what}s of which the first label was kept", os.path.basename(place), tag)


def respelled(
    tags: Iterable[str], style: TagStyle | Literal["auto"], *, bare: bool = True
) -> tuple[dict[str, str], str]:
    """Tag -> its first label as `B-ORG`, for each tag that this changes; and the remark on each, if it was a guess.

    If no style explains all tags, they are not respelled. bare: whether bare types may be detected.
    """
    first = {tag: labels(tag)[0] for tag in tags}
    found = detect_style(first.values()) if style == "auto" else style
    if style == "auto" and found == BARE and not bare:
        found = None
    standard = {label: to_standard(label, found) if found else label for label in first.values()}
    changed = sorted(label for label in standard if standard[label] != label)
    remark = ""
    if changed and style == "auto":
        guess = f"tags are written in another style, detected as {found}"
        guess = "tags have no type" if found == NO_TYPE else guess
        remark = f"{guess}: {changed[0]} is read as {standard[changed[0]]}; such tags"
    return {tag: standard[label] for tag, label in first.items() if standard[label] != tag}, remark
