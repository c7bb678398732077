"""Damage to bytes: truncation, duplication, swaps, overwriting, and troublesome characters."""

from random import Random

TOKENS = [
    *(b"\n", b"\n\n", b"\r", b"\r\n", b"\t", b" ", b"  ", b" \t\n", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80"),
    *(sign.encode() for sign in "\ufeff\u200b\u200f\u202e\u00a0\u3000\u2028\x85"),
    *b"O B- I- E-PER S-LOC M-PER -X B-PER I-LOC L-PER B_PER b-per -DOCSTART- # * (PER* *) (LOC) _".split(),
    *(b"# newdoc", b"#begin document", b"#end document", b"\x1f\x8b", b"9" * 30, b"9" * 5000),
    *b"1 1-2 1.1 0 -1 nan inf 1e999 &a *a !!set !!python/name:os.system".split(),
    *(sign * 300 for sign in (b"A", b"[", b"{", b"- ")),
    *(b": ", b"? ", b"---\n", b"|\n", *b"${ ${a} ??? ' \" 2001-13-45 .nan << %YAML".split()),
]


def damaged(rng: Random, content: bytes) -> bytes:
    """The bytes after one to four random changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = rng.choice(CHANGES)(rng, content)
    return content


def rubbish(rng: Random) -> bytes:
    """A file of a few unrelated pieces."""
    return b"".join(rng.choice((rng.choice(TOKENS), rng.randbytes(3))) for _ in range(rng.randint(0, 12)))


def insert(rng: Random, content: bytes) -> bytes:
    place = rng.randint(0, len(content))
    return content[:place] + rng.choice(TOKENS) + content[place:]


def overwrite(rng: Random, content: bytes) -> bytes:
    token, place = rng.choice(TOKENS), rng.randint(0, len(content))
    return content[:place] + token + content[place + len(token) :]


def flip(rng: Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) or 1)
    return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]


def drop(rng: Random, content: bytes) -> bytes:
    start, end = sorted(rng.randint(0, len(content)) for _ in range(2))
    end = min(end, start + rng.choice((1, 2, 8, 60)))
    return content[:start] + content[end:]


def double(rng: Random, content: bytes) -> bytes:
    start = rng.randint(0, len(content))
    piece = content[start : start + rng.choice((1, 2, 8, 60))]
    place = rng.randint(0, len(content))
    return content[:place] + piece + content[place:]


def truncate(rng: Random, content: bytes) -> bytes:
    return content[: rng.randint(0, len(content))]


def swap_lines(rng: Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def swap_fields(rng: Random, content: bytes) -> bytes:
    """Swap two fields: a tag with a word, or with a tag of another sentence."""
    separator = rng.choice((b" ", b"\t", b"\n"))
    pieces = content.split(separator)
    one, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    pieces[one], pieces[other] = pieces[other], pieces[one]
    return separator.join(pieces)


def replace_field(rng: Random, content: bytes) -> bytes:
    separator = rng.choice((b" ", b"\t", b"\n"))
    pieces = content.split(separator)
    pieces[rng.randrange(len(pieces))] = rng.choice(TOKENS)
    return separator.join(pieces)


CHANGES = (insert, overwrite, flip, drop, double, truncate, swap_lines, swap_fields, replace_field)
