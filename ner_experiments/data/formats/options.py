"""Options: the settings of a corpus on which reading its files depends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ner_experiments.data.sentence import Tokens
from ner_experiments.data.tag_styles import MultiLabel, TagStyle
from ner_experiments.data.text_files import UTF_8

Gold = Literal["train", "scored", "none"]
Nested = Literal["refuse", "outermost", "innermost"]
Misaligned = Literal["refuse", "split", "expand", "skip"]
Offsets = Literal["characters", "utf16"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every format; those with more settings have a subclass.

    tag_style: how tags are written, such as `B_ORG`; "auto" to detect it.
    multi_label: what becomes of a tag with several labels, such as `B-ORG,B-GPE`: refuse, or keep the first.
    gold: what it decides: in "train", tokens and ends of sentences; "scored", as dev and test are, neither, so that
        mentions that these cannot express, and those that only `misaligned=skip` would skip, are unreachable; "none"
        reads files with or without tags in order to tag them, and texts that were not annotated or rejected, too.
    """

    tag_style: TagStyle | Literal["auto"] = "auto"
    multi_label: MultiLabel = "refuse"
    gold: Gold = "train"


@dataclass(frozen=True, kw_only=True)
class TextOptions(Options):
    """Options of annotated text, in matters that its format leaves open.

    tokens, lines: how text is tokenized, and whether each of its lines is a sentence.
    misaligned: what becomes of a mention that starts or ends inside a token, or is in pieces: refuse the file, split
        the token there, expand the mention to whole tokens, or skip the mention. With "skip", mentions outside their
        text, and those with another text than the file repeats for them, are skipped too.
    nested: which of nested mentions to keep; None for all.
    offsets: the unit of the file's offsets in texts: characters, or units of UTF-16, as in JavaScript and Java.
    names: where tags are numbers, the tag of each number from 0.
    columns: "word", "tag" or "sentence" -> the name of its column in the header, where it is not a usual one.
    """

    tokens: Tokens = "words"
    lines: bool = False
    misaligned: Misaligned = "refuse"
    nested: Nested | None = "refuse"
    offsets: Offsets = "characters"
    encoding: str = UTF_8
    names: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
