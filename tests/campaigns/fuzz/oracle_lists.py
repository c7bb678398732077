"""The oracles for lists: the names of a gazetteer, found in a text, and the vectors of words."""

import gzip
import re
import struct

from fuzz.oracle import Faulty, decoded


def gazetteer(content: bytes) -> set[tuple[str, ...]]:
    lines, faults = decoded(content)
    names = {tuple(piece for piece in re.split("[ \t]", line) if piece) for line in lines.values()} - {()}
    if faults or not names:
        raise Faulty(faults)
    return names


def in_names(words: list[str], names: set[tuple[str, ...]]) -> list[int]:
    """1, 2, 3, 4 where a name begins, continues, ends, or is a single word; the longest name from left to right."""
    found = [0] * len(words)
    place = 0
    while place < len(words):
        ends = [end for end in range(place + 1, len(words) + 1) if tuple(words[place:end]) in names]
        if ends:
            found[place : ends[-1]] = [2] * (ends[-1] - place)
            found[place], found[ends[-1] - 1] = 1, 3
            if ends[-1] == place + 1:
                found[place] = 4
        place = ends[-1] if ends else place + 1
    return found


def vectors(content: bytes, wanted: set[bytes]) -> dict[bytes, list[float]]:
    """The first vector of each wanted word in a file that is known to be valid."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    first, _, rest = content.partition(b"\n")
    fields = first.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r").replace(b"\t", b" ").split(b" ")
    fields = [field for field in fields if field]
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
        count, width = int(fields[0]), int(fields[1])
        numbers = rest.partition(b"\n")[0].partition(b" ")[2]
        if len(numbers) < 2 * width - 1 or re.search(rb"[^ -~\t\r]", numbers):
            return binary_vectors(rest, count, width, wanted)
    else:
        width = len(first.partition(b" ")[2].split())
        rest = content.removeprefix(b"\xef\xbb\xbf")
    found: dict[bytes, list[float]] = {}
    for line in rest.split(b"\n"):
        word, _, numbers = line.partition(b" ")
        word = b" ".join([word, *numbers.split()[:-width]])
        if word in wanted and word not in found and len(numbers.split()) >= width:
            found[word] = [as_float32(float(number)) for number in numbers.split()[-width:]]
    return found


def binary_vectors(content: bytes, count: int, width: int, wanted: set[bytes]) -> dict[bytes, list[float]]:
    found: dict[bytes, list[float]] = {}
    for _ in range(count):
        word, _, content = content.partition(b" ")
        if word.lstrip(b"\n") in wanted:
            found.setdefault(word.lstrip(b"\n"), list(struct.unpack(f"<{width}f", content[: 4 * width])))
        content = content[4 * width :]
    return found


def as_float32(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]
