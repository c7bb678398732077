"""Report of a corpus: its counts, duplicates, checksums and remarks, as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ner_experiments.data.corpus import (
    Source,
    Splits,
    count_shared,
    hold_out,
    unreachable_notes,
    windows_and_schemes,
)
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.schemes import printed
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Scheme, Window, count_illegal, count_mentions

Report = dict[str, Any]

_MAX_COLUMNS = 4
_ROWS = {
    "sentences": "sentences",
    "sentences_with_docstart": "with DOCSTART lines",
    "tokens": "tokens",
    "longest_sentence": "longest sentence",
}
_ROWS_OF_MENTIONS = {"mentions": "mentions", "illegal_tags": "illegal tags"}


def corpus_report(source: Source) -> Report:
    """Statistics of a corpus as JSON, before `load` holds out a part or limits the number of sentences.

    splits: by split, sentences, tokens, longest_sentence; mentions and mentions_by_type, as conlleval counts
        them; illegal_tags, which violate the scheme; for the task "tags", `tags` with the count of each tag. With
        DOCSTART lines also sentences_with_docstart, the number in papers that count those lines.
    duplicates: "train/test" -> number of test sentences whose words are those of a train sentence.
    checksum: SHA-256 over all files. official: whether they are the published ones; null if unknown.
    unofficial: splits whose files differ from the published ones.
    remarks: what was skipped, filled in or guessed, and why training refuses the corpus.
    scheme: that of all splits, or split -> scheme where they differ; null for the task "tags".
    """
    remarks = Remarks()
    splits = source.read(remarks)
    windows, schemes = windows_and_schemes(source, splits)
    counts = {
        split: _count(sentences)
        | (_count_mentions(sentences, windows[split], schemes[split]) if schemes else _count_tags(sentences))
        for split, sentences in splits.items()
    }
    for split, number in source.sentences_with_docstart().items():
        counts[split]["sentences_with_docstart"] = number
    differ = len(set(schemes.values())) > 1
    unofficial = source.unofficial()
    return {
        "name": source.name,
        "task": source.task,
        "scheme": schemes if differ else next(iter(schemes.values()), None),
        "splits": counts,
        "duplicates": {"/".join(pair): count for pair, count in count_shared(splits).items()},
        "checksum": source.checksum(),
        "official": None if unofficial is None else not unofficial,
        "unofficial": unofficial or [],
        "remarks": [
            *remarks.layouts(printed(schemes) if schemes else ""),
            *remarks.with_places(),
            *unreachable_notes(splits),
            *refusal(source, splits),
        ],
    }


def refusal(source: Source, splits: Splits) -> list[str]:
    """Why training refuses a corpus whose files can be read, as at most one remark: no dev set, and none held out."""
    if "train" in splits and "dev" not in splits:
        try:
            hold_out(source, splits)
        except ValueError as error:
            return [f"train will refuse this corpus: {error}"]
    return []


def _count(sentences: Sequence[Sentence]) -> Report:
    lengths = [len(sentence) for sentence in sentences]
    return {"sentences": len(sentences), "tokens": sum(lengths), "longest_sentence": max(lengths)}


def _count_mentions(sentences: Sequence[Sentence], windows: Counter[Window], scheme: Scheme) -> Report:
    by_type = count_mentions(windows) + Counter(
        mention.type for it in sentences for mention in it.unreachable
    )
    return {
        "mentions": by_type.total(),
        "mentions_by_type": dict(sorted(by_type.items())),
        "illegal_tags": count_illegal(windows, scheme),
    }


def _count_tags(sentences: Sequence[Sentence]) -> Report:
    tags = Counter(tag for sentence in sentences for tag in sentence.tags)
    return {"mentions": 0, "mentions_by_type": {}, "illegal_tags": 0, "tags": dict(sorted(tags.items()))}


def print_report(report: Report, console: Console) -> None:
    """Print the report as tables of counts, with at most four files side by side."""
    splits = list(report["splits"])
    scheme = report["scheme"]
    if isinstance(scheme, dict):
        scheme = printed(scheme)
    what = "part-of-speech tags" if report["task"] == "tags" else f"mentions, {scheme}"
    console.print(f"{report['name']} ({what})")
    for remark in report["remarks"]:
        console.print(remark)
    for start in range(0, len(splits), _MAX_COLUMNS):
        console.print(_table(report, splits[start : start + _MAX_COLUMNS]))
    for (one, other), count in zip(combinations(splits, 2), report["duplicates"].values(), strict=True):
        if count:
            console.print(f"{count:,} sentences of {other} also occur in {one}")
    if report["unofficial"]:
        console.print(f"SHA-256 differs from the published files: {', '.join(report['unofficial'])}")
    elif report["official"]:
        console.print("SHA-256 equals the published files")
    console.print(f"checksum {report['checksum']}")


def _table(report: Report, splits: Sequence[str]) -> Table:
    table = Table("", *splits, box=SIMPLE, pad_edge=False)
    for column in table.columns[1:]:
        column.justify, column.overflow = "right", "fold"
    counts = [report["splits"][split] for split in splits]
    of_tags = report["task"] == "tags"
    for key, label in (_ROWS if of_tags else _ROWS | _ROWS_OF_MENTIONS).items():
        if any(key in count for count in counts):
            table.add_row(label, *(f"{count[key]:,}" if key in count else "" for count in counts))
    by_label = [count["tags" if of_tags else "mentions_by_type"] for count in counts]
    if of_tags:
        table.add_row("different tags", *(str(len(labels)) for labels in by_label))
    table.add_section()
    for label in sorted(set().union(*by_label)):
        table.add_row(label, *(f"{labels.get(label, 0):,}" for labels in by_label))
    return table
