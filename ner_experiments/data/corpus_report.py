"""Report of a corpus: its counts, duplicates, checksums and remarks, as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ner_experiments.data.corpus import (
    Source,
    Splits,
    count_shared,
    first_illegal,
    hold_out,
    unreachable_notes,
    windows_and_schemes,
)
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats.annotated import CROSS
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.schemes import printed
from ner_experiments.data.tags import count_illegal, count_mentions
from ner_experiments.utils.text import counted

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
        them; illegal_tags, which violate the scheme, and if there are any, first_illegal_tag with its place; for the
        task "tags", `tags` with the count of each tag. With
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
    counts: dict[str, Report] = {}
    for split, sentences in splits.items():
        lengths = [len(sentence) for sentence in sentences]
        tags = Counter(chain.from_iterable(sentence.tags for sentence in sentences))
        types = Counter(mention.type for it in sentences for mention in it.unreachable)
        types += count_mentions(windows.get(split, Counter()))
        counts[split] = {
            "sentences": len(sentences),
            "tokens": sum(lengths),
            "longest_sentence": max(lengths),
            "mentions": types.total(),
            "mentions_by_type": dict(sorted(types.items())),
            "illegal_tags": (illegal := count_illegal(windows[split], schemes[split]) if schemes else 0),
            **({"first_illegal_tag": first_illegal(sentences, schemes[split])} if illegal else {}),
            **({} if schemes else {"tags": dict(sorted(tags.items()))}),
        }
    for split, number in source.docstart_blocks().items():
        counts[split]["sentences_with_docstart"] = len(splits[split]) + number
    differ = len(set(schemes.values())) > 1
    in_lines = isinstance(source, AnnotatedFiles) and source.lines
    ways_out = {} if in_lines else {CROSS: "data.lines=true makes each line of a text one sentence"}
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
            *unreachable_notes(splits, ways_out),
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
    for split, counts in report["splits"].items():
        if first := counts.get("first_illegal_tag"):
            console.print(f"first illegal tag of {split}: {first}")
    for (one, other), count in zip(combinations(splits, 2), report["duplicates"].values(), strict=True):
        if count:
            verb = "occurs" if count == 1 else "occur"
            console.print(f"{counted(count, 'sentence')} of {other} also {verb} in {one}")
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
