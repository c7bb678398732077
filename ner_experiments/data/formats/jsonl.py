"""JSON Lines: a sentence or document per line, with tags, or with mentions by their characters.

The reader takes the records of Hugging Face's `datasets` (tokens, ner_tags), Doccano, Prodigy, Label Studio, spaCy
(`Doc.to_json()`, and its old training data), and `predict`, one per line or in one JSON array.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ner_experiments.data.formats.annotated import (
    DISAGREE,
    Annotated,
    Stated,
    Tagged,
    of_text,
    of_tokens,
    of_words,
    skip,
    to_characters,
)
from ner_experiments.data.formats.format import Claim, Format
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Unreachable
from ner_experiments.data.tag_styles import check_label
from ner_experiments.data.tags import Span
from ner_experiments.data.text_files import name_of, read_lines
from ner_experiments.utils.text import (
    RepeatedKeyError,
    check_string,
    check_strings,
    parse_json,
    record_with_repeated_key,
    truncated_repr,
)

WORDS, TAGS = ("tokens", "words"), ("ner_tags", "tags")
MENTIONS = ("entities", "ents", "spans", "label", "labels", "mentions")
_START, _END = ("start", "start_offset"), ("end", "end_offset")
_TYPE = ("label", "type", "tag", "entity_group", "labels")
_OF_PREDICT = ("line", "start", "end")
_REFUSED = ("reject", "ignore")
"""Prodigy's answers other than "accept"."""


def read(path: Path, options: TextOptions, remarks: Remarks) -> Iterator[Tagged | Annotated]:
    """Sentences of a file; the text of a document is split into sentences.

    Every record has tokens, with tags or with mentions by tokens, but not both; or it has a text, with mentions by
    characters. Other keys go to `Annotated.keys`. Anything else is a fault, see `Remarks.fault`.
    """
    return from_records(records(path, options.encoding, remarks), options, remarks)


def from_records(
    file: Iterable[tuple[str, int, dict[str, Any]]], options: TextOptions, remarks: Remarks
) -> Iterator[Tagged | Annotated]:
    """Sentences of the records of a file, each with its place and line."""
    for place, line, item in file:
        try:
            record = _of_label_studio(item, options, remarks, place) if "annotations" in item else item
            if record is None or (record.get("answer") in _REFUSED and options.gold != "none"):
                remarks.add("records skipped because they are not annotated or were rejected", place)
                continue
            found = [*_of_record(record, options, remarks, place, line)]
            if not found:
                remarks.add("records without a token, left out", place)
            yield from found
        except ValueError as error:
            message = str(error)
            remarks.fault(message if message.startswith(f"{place}: ") else f"{place}: {message}")


def _of_record(
    record: Mapping[str, Any], options: TextOptions, remarks: Remarks, place: str, line: int
) -> Iterator[Tagged | Annotated]:
    """Sentences of a record; none if it has no token."""
    keys = {key: value for key, value in record.items() if key not in (*WORDS, *TAGS, *MENTIONS, "text")}
    about: dict[str, Any] = {"keys": keys, "place": place, "line": line}
    words = first_of(record, WORDS)
    if words is not None and "text" not in record:
        check_strings("tokens", words)
        tags = first_of(record, TAGS)
        if tags is not None:
            if mentions_key := next(iter(_filled(record)), None):
                tags_key = next(key for key in TAGS if key in record)
                rule = f'"{tags_key}" and "{mentions_key}" both hold annotations: remove one of them'
                raise ValueError(rule)
            tags = named(tags, options.names, len(words))
            if words:
                yield of_tokens(words, tags, [place] * len(words), keys=keys, line=line)
        elif words:
            mentions, outside = _by_tokens(record, len(words), options, remarks, place)
            yield of_words(words, mentions, unreachable=outside, **about)
    elif "text" in record:
        yield from _of_text(record, options, remarks, about)
    else:
        raise ValueError('expected "tokens" or "text"')


def records(path: Path, encoding: str, remarks: Remarks) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Place, line and content of each record of a file. In a JSON array, the record's number replaces its line.

    A file whose first line is a pair of spaCy's has a record per line; such a pair becomes a record with the keys
    `text` and `entities`. A record that is neither a pair nor a JSON object is a fault, see `Remarks.fault`. Raises
    ValueError for records of several lines, and for a damaged array.
    """
    for place, number, item in _items(path, encoding, remarks):
        if _is_pair(item):
            yield place, number, {"text": item[0], **item[1]}
        elif isinstance(item, dict):
            yield place, number, item
        else:
            remarks.fault(f"{place}: expected a JSON object: {truncated_repr(item)}")


def _items(path: Path, encoding: str, remarks: Remarks) -> Iterator[tuple[str, int, Any]]:
    lines = [(number, text) for number, text in read_lines(path, encoding) if text.strip(" \t")]
    if lines and lines[0][1].lstrip().startswith("[") and not is_line_of_spacy(lines[0][1]):
        array = "\n".join(text for _, text in lines)
        try:
            items = parse_json(array)
        except RepeatedKeyError as error:
            number = record_with_repeated_key(array)
            raise ValueError(f"{name_of(path)}: record {number}: {error}") from None
        except ValueError as error:
            raise ValueError(f"{name_of(path)}: {error}") from None
        yield from (
            (f"{name_of(path)}: record {number}", number, item) for number, item in enumerate(items, 1)
        )
        return
    for number, text in lines:
        place = f"{name_of(path)}:{number}"
        try:
            item = parse_json(text)
        except ValueError as error:
            if number == lines[0][0] and (height := _height(text for _, text in lines)) > 1:
                rule = f"the first record has {height} lines; in JSON Lines, each record is one line"
                raise ValueError(f"{place}: {rule} (`jq -c .` writes them so)") from None
            remarks.fault(f"{place}: {error}: {truncated_repr(text)}")
        else:
            yield place, number, item


def _height(lines: Iterable[str]) -> int:
    """Number of lines, without blank ones, of the JSON object with which a file starts; 0 if it starts otherwise."""
    text = "\n".join(lines).lstrip()
    try:
        record, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return 0
    return text.count("\n", 0, end) + 1 if isinstance(record, dict) else 0


def is_line_of_spacy(text: str) -> bool:
    """Whether a line is a pair of a text and its annotations, as in spaCy's old training data."""
    try:
        return _is_pair(parse_json(text))
    except ValueError:
        return False


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and [type(it) for it in item] == [str, dict]


def _of_label_studio(
    item: dict[str, Any], options: TextOptions, remarks: Remarks, place: str
) -> dict[str, Any] | None:
    """The record of a Label Studio task, with the keys `text` and `entities`; None if the task is not annotated.

    Its text is `text` in the task's data, else the longest string. Raises ValueError for several annotations, for
    labels that are not on plain text, and for a result that is malformed.
    """
    data = item.get("data")
    if not isinstance(data, dict):
        return item
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    if not texts:
        raise ValueError('expected a text in "data"')
    text_key = "text" if "text" in texts else max(texts, key=lambda key: len(texts[key]))
    if "text" not in texts and len(texts) > 1:
        remarks.add(f'texts read from "{text_key}", the longest in "data"', place)
    done = [it for it in _listed(item["annotations"]) if isinstance(it, dict) and not it.get("was_cancelled")]
    if len(done) > 1:
        raise ValueError(f"{len(done)} annotations of one text: export one of them")
    if not done and options.gold != "none":
        return None
    mentions = []
    for result in _listed(done[0].get("result", []), "results") if done else []:
        kind = result.get("type", "labels") if isinstance(result, dict) else None
        if not isinstance(kind, str) or (kind == "labels" and not isinstance(result.get("value"), dict)):
            raise ValueError(f"expected a result of Label Studio, got {truncated_repr(result)}")
        if kind == "labels":
            mentions.append(result["value"])
        elif kind.endswith("labels"):
            raise ValueError(f'expected labels on plain text, got a result of type "{kind}"')
        else:
            remarks.add("results other than labels, such as choices and relations", place, kind)
    others = {key: value for key, value in data.items() if key != text_key}
    keys = {"id": item["id"]} if "id" in item else {}
    return {**keys, **others, "text": texts[text_key], "entities": mentions}


def first_of(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if name in record), None)


def named(tags: Any, names: Sequence[str], count: int) -> list[str]:
    """The tags as strings, with numbers replaced by their `names`.

    Raises ValueError unless there is one tag per token, and a name for each number.
    """
    if not isinstance(tags, list) or len(tags) != count:
        found = f"{len(tags):,}" if isinstance(tags, list) else truncated_repr(tags)
        raise ValueError(f"expected one tag per token ({count:,}), got {found}")
    strings: list[str] = []
    for tag in tags:
        if isinstance(tag, int) and not isinstance(tag, bool):
            if not 0 <= tag < len(names):
                rule = (
                    "set names to the tags in their order" if not names else f"there are {len(names)} names"
                )
                raise ValueError(f"no name for tag {tag}: {rule}")
            tag = names[tag]
        check_string("a tag", tag)
        strings.append(tag)
    return strings


def mentions_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The mentions of a record, not parsed; None if it has no key for mentions.

    A list of names, such as the labels of a whole text, holds no mentions. Raises ValueError if two keys hold different
    mentions.
    """
    there = {key: record[key] for key in MENTIONS if key in record}
    full = _filled(record)
    first, *others = full or [""]
    if differ := next((key for key in others if full[key] != full[first]), None):
        raise ValueError(f'"{first}" and "{differ}" hold different mentions: remove one of them')
    empty = {key: value for key, value in there.items() if value == []}
    return _listed(next(iter((full or empty or there).values()))) if there else None


def other_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a record without its text, its tokens, and what the reader would take as their mentions or tags."""
    own = {"text", *WORDS, *_filled(record), *(() if "text" in record else TAGS)}
    own |= {key for key in MENTIONS if record.get(key) == []}
    if isinstance(record.get("data"), dict):
        own.add("annotations")  # those of a task of Label Studio
    return {key: value for key, value in record.items() if key not in own}


def _filled(record: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Each key for mentions that has some, and its value."""
    return {
        key: value
        for key in MENTIONS
        if isinstance(value := record.get(key), list) and any(isinstance(it, dict | list) for it in value)
    }


def _by_tokens(
    record: Mapping[str, Any], count: int, options: TextOptions, remarks: Remarks, place: str
) -> tuple[list[Span], tuple[Unreachable, ...]]:
    """The mentions of a record by its tokens, and those outside of these."""
    mentions = mentions_of(record)
    if mentions is None and options.gold == "none":
        return [], ()
    if mentions is None:
        raise ValueError('"tokens" without "ner_tags" or "entities"')
    found: list[Span] = []
    outside: list[Unreachable] = []
    for item in mentions:
        start, end, type_ = it = _mention(item, options, remarks, place)[:3]
        if 0 <= start < end <= count:
            found.append(it)
            continue
        fault = f"mention {it} is not within the {count} tokens of its sentence"
        if options.misaligned != "skip":
            remarks.fault(f"{place}: {fault}", skip(options))
        elif options.gold != "train":
            outside.append(Unreachable(type_, ("",), DISAGREE))
        else:
            remarks.add(f"mentions that {DISAGREE}, skipped", place, fault)
    return found, tuple(outside)


def _of_text(
    record: Mapping[str, Any], options: TextOptions, remarks: Remarks, about: dict[str, Any]
) -> Iterator[Annotated]:
    text = record["text"]
    check_string("text", text)
    place, found, tokens = about["place"], mentions_of(record), record.get("tokens")
    if found is None:
        if tags := next((key for key in TAGS if key in record), None):
            raise ValueError(f'"{tags}" without "tokens"')
        remarks.add('texts without "entities", "spans" or "label", read as having no mentions', place)
    mentions = [_mention(it, options, remarks, place) for it in found or []]
    character = to_characters(text, options.offsets)
    shift = 0
    if all(isinstance(record.get(key), int) for key in _OF_PREDICT) and "mentions" in record:
        shift = record["start"]  # offsets of `predict` are those of the document
        about = {
            **about,
            "keys": {key: value for key, value in about["keys"].items() if key not in _OF_PREDICT},
        }
    offsets = None if tokens is None else [_offsets(token) for token in _listed(tokens, "tokens")]
    if offsets is not None:
        offsets = [(character(start - shift), character(end - shift)) for start, end in offsets]
        _check_tokens(offsets, text)
    mentions = [
        it._replace(start=character(it.start - shift), end=character(it.end - shift)) for it in mentions
    ]
    sentences = None if offsets is None else [offsets]
    yield from of_text(text, mentions, options, remarks, tokens=sentences, **about)


def _check_tokens(offsets: Sequence[tuple[int, int]], text: str) -> None:
    """Raise ValueError unless the tokens are in order and cover all of the text but its white space."""
    before = 0
    for start, end in offsets:
        if not before <= start < end <= len(text):
            raise ValueError(
                f"token {(start, end)} is empty, outside the text, or overlaps the one before it"
            )
        before = end
    gaps = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *offsets, (len(text), len(text))])]
    if left_out := next((gap for gap in map(str.strip, gaps) if gap), None):
        raise ValueError(f"no token covers {truncated_repr(left_out)}")


def _offsets(token: Any) -> tuple[int, int]:
    pair = (token.get("start"), token.get("end")) if isinstance(token, dict) else token
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(it) is int for it in pair):
        raise ValueError(f"expected the start and end of a token, got {truncated_repr(token)}")
    return pair[0], pair[1]


def _listed(found: Any, what: str = "mentions") -> list[Any]:
    if not isinstance(found, list):
        raise ValueError(f"expected a list of {what}, got {truncated_repr(found)}")
    return found


def _mention(item: Any, options: TextOptions, remarks: Remarks, place: str) -> Stated:
    parts, written = item, None
    if isinstance(item, dict):
        written = item.get("text") if isinstance(item.get("text"), str) else None
        parts = [first_of(item, _START), first_of(item, _END), first_of(item, _TYPE)]
    if isinstance(parts, list) and len(parts) == 3:
        start, end, type_ = parts
        if isinstance(type_, list) and type_:  # as Label Studio writes it
            if len(type_) > 1:
                check_label(str(type_), place, options.multi_label, remarks, what="mention")
            type_ = type_[0]
        if type(start) is int and type(end) is int and isinstance(type_, str) and type_:
            return Stated(start, end, type_, place, written)
    raise ValueError(f"expected a mention as [start, end, type], got {truncated_repr(item)}")


# Writing


def lines(make: Callable[[Annotated], dict[str, Any]], sentences: Iterable[Annotated]) -> Iterator[str]:
    """A JSON object per sentence: the keys that came with it, then those that `make` returns for it.

    Values of keys that JSON does not have, such as dates of Parquet files, are written as text.
    """
    for it in sentences:
        yield json.dumps({**it.keys, **make(it)}, ensure_ascii=False, default=str) + "\n"


def with_tags(sentence: Annotated) -> dict[str, Any]:
    """Tokens and their IOB2 tags; if mentions are nested, tokens and mentions by tokens."""
    tokens = {"tokens": list(sentence.words)}
    try:
        return {**tokens, "ner_tags": list(sentence.tags())}
    except ValueError:
        keys = ("start", "end", "type")
        return {**tokens, "entities": [dict(zip(keys, it, strict=True)) for it in sentence.mentions]}


def with_characters(sentence: Annotated, key: str = "entities") -> dict[str, Any]:
    """The text, and mentions as [start, end, type] by characters."""
    return {"text": sentence.text, key: [list(it) for it in sentence.characters()]}


def as_prodigy(sentence: Annotated) -> dict[str, Any]:
    """Text, tokens and spans in Prodigy's format."""
    tokens = [
        {"text": word, "start": start, "end": end, "id": number}
        for number, (word, (start, end)) in enumerate(zip(sentence.words, sentence.offsets, strict=True))
    ]
    spans = [
        {"start": it.start, "end": it.end, "token_start": first, "token_end": last - 1, "label": it.type}
        for it, (first, last, _) in zip(sentence.characters(), sentence.mentions, strict=True)
    ]
    return {"text": sentence.text, "tokens": tokens, "spans": spans}


def claims(first: str) -> Claim:
    return "claimed" if first.startswith(("{", "[{", "[[")) or is_line_of_spacy(first) else ""


FORMATS = {
    "jsonl": Format(
        about="JSON lines of tokens and tags, also read with texts and mentions",
        read=read,
        lines=partial(lines, with_tags),
        suffixes=(".jsonl", ".json", ".ndjson"),
        claims=claims,
        nested=True,
    ),
    "jsonl_text": Format(
        about="JSON lines of texts and [start, end, type]",
        lines=partial(lines, with_characters),
        nested=True,
        has_tokens=False,
    ),
    "doccano": Format(
        about="Doccano's JSON lines",
        lines=partial(lines, partial(with_characters, key="label")),
        nested=True,
        has_tokens=False,
    ),
    "prodigy": Format(about="Prodigy's JSON lines", lines=partial(lines, as_prodigy), nested=True),
}
