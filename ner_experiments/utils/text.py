"""Text for error messages, on one line, printable and shortened; Markdown tables; JSON objects from text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

MAX_LENGTH = 80
MAX_JSON_BYTES = 256 * 2**20
"""Size of the largest JSON file that is read; the largest that the suite writes are the vocabularies of a run."""


def truncated_repr(value: object) -> str:
    """`repr` of a value, shortened to about 80 characters."""
    if not isinstance(value, str):
        return shortened(repr(value))
    length = MAX_LENGTH
    while len(text := repr(shortened(value, length))) > MAX_LENGTH + 2:  # an escape has up to ten characters
        length -= 1
    return text


def printable(text: str, length: int = MAX_LENGTH) -> str:
    """A text on one line, with unprintable characters escaped, shortened to `length` characters."""
    return shortened("".join(c if c.isprintable() else repr(c)[1:-1] for c in text), length)


def shortened(text: str, length: int = MAX_LENGTH) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def message_of(error: Exception) -> str:
    """The message of an error; of one of the operating system, the file and what is wrong with it."""
    if isinstance(error, OSError) and error.strerror and (name := error.filename2 or error.filename):
        return f"{name}: {error.strerror}"  # of a rename, the target
    return str(error)


def counted(number: int, what: str) -> str:
    """`1 sentence`, `2 sentences`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; empty without any."""
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def on_one_line(error: Exception) -> str:
    """Type and message of a library's error, shortened, to be part of a message of one line."""
    return f"{type(error).__name__}: {printable(' '.join(str(error).split()), 2 * MAX_LENGTH)}"


def did_you_mean(name: str, known: Iterable[str], needs: Mapping[str, str] = {}) -> str:
    """The end of an error message: the closest of the known names, or all of them if they are few.

    needs: for a name, the choice that it needs, which is put in brackets after it.
    """
    known = list(known)
    after = {it: f" ({choice})" for it, choice in needs.items() if choice}
    folded = {it.casefold(): it for it in known}
    if close := get_close_matches(name.casefold(), folded, n=1, cutoff=0.6):
        return f"; did you mean {folded[close[0]]!r}{after.get(folded[close[0]], '')}?"
    listed = ", ".join(f"{it}{after.get(it, '')}" for it in known)
    return f"; there are: {listed}" if len(known) <= 30 else ""


def markdown_table(headings: Sequence[str], rule: Sequence[str], *rows: Sequence[str]) -> str:
    """A Markdown table of cells, whose bars are escaped.

    rule: the alignment of each column, such as ":--" to the left and "--:" to the right.
    """
    lines = ([cell.replace("|", "\\|") for cell in cells] for cells in (headings, rule, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


class RepeatedKeyError(ValueError):
    """A JSON object repeats a key; Python would keep only the last value."""


def parse_json(text: str) -> Any:
    """Parse a text as JSON. ValueError for anything else, and for an object with a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeated_keys)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at character {error.pos + 1})") from None
    except RepeatedKeyError:
        raise
    except (ValueError, RecursionError):
        raise ValueError("JSON that cannot be read (a number too long, or nested too deep)") from None


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        key = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise RepeatedKeyError(f"the key {truncated_repr(key)} appears more than once in a JSON object")
    return content


def record_with_repeated_key(array: str) -> int:
    """Number, from 1, of the record of a JSON array for which `parse_json` raises RepeatedKeyError."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    number, place = 1, array.index("[") + 1
    while True:
        while array[place] in " \t\r\n,":
            place += 1
        try:
            _, place = decoder.raw_decode(array, place)
        except RepeatedKeyError:
            return number
        number += 1


def json_object(text: str) -> dict[str, Any]:
    """Parse a text as a JSON object. ValueError for anything else."""
    content = parse_json(text)
    if not isinstance(content, dict):
        raise ValueError("expected a JSON object")
    return content


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file. ValueError for anything else, and for a file of more than 256 MiB."""
    if (size := path.stat().st_size) > MAX_JSON_BYTES:
        raise ValueError(f"expected at most {MAX_JSON_BYTES:,} bytes, got {size:,}")
    return json_object(path.read_text(encoding="utf-8"))


def check_strings(name: str, words: Any) -> None:
    """Raise ValueError unless `words` is a list or tuple of non-empty strings."""
    if not isinstance(words, list | tuple):
        raise ValueError(f"{name} must be a list of strings")
    for number, word in enumerate(words, 1):
        if word == "":
            raise ValueError(f"empty word: item {number} of {name}")
        check_string(f"item {number} of {name}", word)


def check_string(name: str, text: Any) -> None:
    """Raise ValueError for a value that a UTF-8 file without NUL cannot contain."""
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string")
    if "\0" in text:
        raise ValueError(f"NUL in {name}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half a surrogate pair in {name}, at character {error.start + 1}") from None


def as_json(content: Any) -> str:
    """The content as indented JSON, with all letters as they are."""
    return json.dumps(content, indent=2, ensure_ascii=False)


def percent(score: float | None) -> str:
    """The score in percent with two decimals; empty without one."""
    return "" if score is None else f"{100 * score:.2f}"
