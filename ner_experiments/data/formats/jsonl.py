"""JSON Lines: a sentence or document per line, with tags, or with mentions by their characters.

The reader takes the records of Hugging Face's `datasets` (tokens, ner_tags), Doccano, Prodigy, Label Studio, spaCy's
old training data, and `predict`, one per line or in one JSON array.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ner_experiments.data.columns import name_of, read_lines
from ner_experiments.data.formats.annotated import (
    Annotated,
    Characters,
    Options,
    Tagged,
    of_tags,
    of_text,
    of_words,
)
from ner_experiments.data.remarks import Remarks
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import check_string, check_strings, json_object, truncated_repr

WORDS, TAGS = ("tokens", "words"), ("ner_tags", "tags")
MENTIONS = ("entities", "spans", "label", "labels", "mentions")
_START, _END = ("start", "start_offset"), ("end", "end_offset")
_TYPE = ("label", "type", "tag", "entity_group")
_OF_PREDICT = ("line", "start", "end")


def read(path: Path, options: Options, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of a file; the text of a document is split into sentences.

    Every record has tokens, with tags or with mentions by tokens; or it has a text, with mentions by characters. Other
    keys go to `Annotated.keys`. Raises ValueError, with file and line, for anything else.
    """
    return from_records(records(path, options.encoding), options, remarks)


def from_records(
    file: Iterable[tuple[str, int, dict[str, Any]]], options: Options, remarks: Remarks
) -> Iterator[Annotated]:
    """Sentences of the records of a file, each with its place and line."""
    return of_tags(_sentences(file, options, remarks), options, remarks)


def _sentences(
    file: Iterable[tuple[str, int, dict[str, Any]]], options: Options, remarks: Remarks
) -> Iterator[Tagged | Annotated]:
    for place, line, record in file:
        try:
            keys = {
                key: value for key, value in record.items() if key not in (*WORDS, *TAGS, *MENTIONS, "text")
            }
            about: dict[str, Any] = {"keys": keys, "place": place, "line": line}
            words = first_of(record, WORDS)
            if words is not None and "text" not in record:
                check_strings("tokens", words)
                tags = first_of(record, TAGS)
                if tags is not None:
                    tags = named(tags, options.names, len(words))
                    if words:
                        yield Tagged(words=words, tags=tags, at=[place] * len(words), about=about)
                elif words:
                    yield of_words(words, _by_tokens(record, len(words)), **about)
            elif "text" in record:
                yield from _of_text(record, options, remarks, about)
            else:
                raise ValueError('expected "tokens" or "text"')
        except ValueError as error:
            message = str(error)
            at_place = message.startswith(f"{place}: ")
            raise ValueError(message if at_place else f"{place}: {message}") from None


def records(path: Path, encoding: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Place, line and content of each record of a file. In a JSON array, the record's number replaces its line.

    Raises ValueError for a record that is not a JSON object or, in an array, a pair of spaCy's.
    """
    lines = [(number, text) for number, text in read_lines(path, encoding) if text.strip(" \t")]
    if lines and lines[0][1].lstrip().startswith("["):
        try:
            items = json.loads("\n".join(text for _, text in lines))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name_of(path)}: not JSON ({error})") from None
        for number, item in enumerate(items, 1):
            place = f"{name_of(path)}: record {number}"
            yield place, number, _as_record(item, place)
        return
    for number, text in lines:
        place = f"{name_of(path)}:{number}"
        try:
            record = json_object(text)
        except ValueError as error:
            raise ValueError(f"{place}: {error}: {truncated_repr(text)}") from None
        yield place, number, _as_record(record, place)


def _as_record(item: Any, place: str) -> dict[str, Any]:
    """The record, with those of Label Studio and spaCy converted to keys such as `text` and `entities`."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], dict):
        return {"text": item[0], **item[1]}
    if not isinstance(item, dict):
        raise ValueError(f"{place}: expected a JSON object: {truncated_repr(item)}")
    if isinstance(item.get("data"), dict) and "annotations" in item:
        (text_key, text) = next(
            ((k, v) for k, v in item["data"].items() if isinstance(v, str)), ("text", None)
        )
        others = {key: value for key, value in item["data"].items() if key != text_key}
        keys = {key: item[key] for key in ("id",) if key in item} | others
        return {**keys, "text": text, "entities": _of_label_studio(item["annotations"], place)}
    return item


def _of_label_studio(annotations: Any, place: str) -> list[dict[str, Any]]:
    done = [it for it in annotations if isinstance(it, dict) and not it.get("was_cancelled")]
    if len(done) > 1:
        raise ValueError(f"{place}: {len(done)} annotations of one text: export one of them")
    results = [
        it for it in (done[0].get("result", []) if done else []) if it.get("type", "labels") == "labels"
    ]
    return [{**it["value"], "label": (it["value"].get("labels") or [None])[0]} for it in results]


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


def _by_tokens(record: Mapping[str, Any], count: int) -> list[tuple[int, int, str]]:
    mentions = first_of(record, MENTIONS)
    if mentions is None:
        raise ValueError('"tokens" without "ner_tags" or "entities"')
    spans = list(map(_mention, _listed(mentions)))
    for it in spans:
        if not 0 <= it.start < it.end <= count:
            raise ValueError(f"mention {tuple(it)} is not within the {count} tokens of its sentence")
    return [(it.start, it.end, it.type) for it in spans]


def _of_text(
    record: Mapping[str, Any], options: Options, remarks: Remarks, about: dict[str, Any]
) -> Iterator[Annotated]:
    text = record["text"]
    check_string("text", text)
    mentions = [_mention(it) for it in _listed(first_of(record, MENTIONS) or [])]
    tokens = record.get("tokens")
    shift = 0
    if all(isinstance(record.get(key), int) for key in _OF_PREDICT) and "mentions" in record:
        shift = record["start"]  # offsets of `predict` are those of the document
        about = {
            **about,
            "keys": {key: value for key, value in about["keys"].items() if key not in _OF_PREDICT},
        }
    offsets = None if tokens is None else [_offsets(token) for token in tokens]
    if offsets is not None:
        offsets = [(start - shift, end - shift) for start, end in offsets]
        _check_tokens(offsets, len(text))
    mentions = [Characters(it.start - shift, it.end - shift, it.type) for it in mentions]
    yield from of_text(text, mentions, options, remarks, tokens=offsets, **about)


def _check_tokens(offsets: Sequence[tuple[int, int]], length: int) -> None:
    before = 0
    for start, end in offsets:
        if not before <= start < end <= length:
            raise ValueError(
                f"token {(start, end)} is empty, outside the text, or overlaps the one before it"
            )
        before = end


def _offsets(token: Any) -> tuple[int, int]:
    pair = (token.get("start"), token.get("end")) if isinstance(token, dict) else token
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(it) is int for it in pair):
        raise ValueError(f"expected the start and end of a token, got {truncated_repr(token)}")
    return pair[0], pair[1]


def _listed(mentions: Any) -> list[Any]:
    if not isinstance(mentions, list):
        raise ValueError(f"expected a list of mentions, got {truncated_repr(mentions)}")
    return mentions


def _mention(item: Any) -> Characters:
    if isinstance(item, dict):
        item = [first_of(item, _START), first_of(item, _END), first_of(item, _TYPE)]
    if isinstance(item, list) and len(item) == 3:
        start, end, type_ = item
        if type(start) is int and type(end) is int and isinstance(type_, str) and type_:
            return Characters(start, end, type_)
    raise ValueError(f"expected a mention as [start, end, type], got {truncated_repr(item)}")


# Writing


def write_lines(make: Any, sentences: Iterable[Annotated], path: Path) -> None:
    """Write a JSON object per sentence: the keys that came with it, then those that `make` returns for it.

    Values of keys that JSON does not have, such as dates of Parquet files, are written as text.
    """
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            record = {**sentence.keys, **make(sentence)}
            file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")


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


write = partial(write_lines, with_tags)
write_text = partial(write_lines, with_characters)
write_doccano = partial(write_lines, partial(with_characters, key="label"))
write_prodigy = partial(write_lines, as_prodigy)
