"""Damage to bytes: truncation, duplication, swaps, overwriting, and troublesome characters."""

from random import Random

TOKENS = [
    *(b"\n", b"\n\n", b"\r", b"\r\n", b"\t", b" ", b"  ", b" \t\n", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80"),
    *(
        token.encode()
        for token in ("\ufeff", "\u200b", "\u200f", "\u202e", "\u00a0", "\u3000", "\u2028", "\x85")
    ),
    *(
        b"O",
        b"B-",
        b"I-",
        b"E-PER",
        b"S-LOC",
        b"M-PER",
        b"-X",
        b"B-PER",
        b"I-LOC",
        b"L-PER",
        b"B_PER",
        b"b-per",
    ),
    *(
        b"-DOCSTART-",
        b"#",
        b"# newdoc",
        b"#begin document",
        b"#end document",
        b"*",
        b"(PER*",
        b"*)",
        b"(LOC)",
    ),
    *(b"1", b"1-2", b"1.1", b"0", b"-1", b"nan", b"inf", b"1e999", b"9" * 30, b"9" * 5000, b"_", b"\x1f\x8b"),
    *(b"A" * 300, b"[" * 300, b"{" * 300, b"- " * 300, b"&a", b"*a", b"!!set", b"!!python/name:os.system"),
    *(
        b"${",
        b"${a}",
        b"???",
        b": ",
        b"? ",
        b"'",
        b'"',
        b"2001-13-45",
        b".nan",
        b"<<",
        b"%YAML",
        b"---\n",
        b"|\n",
    ),
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
