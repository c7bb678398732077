"""The oracle for word vectors."""

import gzip
import re
import struct


def vectors(content: bytes, wanted: set[bytes]) -> dict[bytes, list[float]]:
    """The first vector of each wanted word in a file that is known to be valid."""
    if content[:3] == b"\x1f\x8b\x08":
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
