"""Writing tags: examples, refusals, and round trips through all schemes."""

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tag_sequences import BIOES, SCHEMES, seeded

from ner_experiments.data.tags import (
    Span,
    convert,
    encode,
    illegal_positions,
    spans,
    strict_spans,
)

TYPES = ("A", "B", "creative-work", "GPE_X", "PER.NOM", "O", "I", "-")


@st.composite
def mentions(draw):
    """Mentions in order, often adjacent and of one type, and a length that holds them."""
    found, position = [], 0
    for gap, length, type_ in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(TYPES)), max_size=8)
    ):
        found.append((position + gap, position + gap + length, type_))
        position += gap + length
    return found, position + draw(st.integers(0, 2))


# Writing tags


@seeded
@given(mentions(), st.sampled_from(SCHEMES), st.randoms())
def test_spans_encode_spans(case, scheme, random):
    found, length = case
    shuffled = random.sample(found, len(found))
    tags = encode(shuffled, length, scheme)
    assert len(tags) == length
    assert spans(tags) == found
    assert illegal_positions(tags, scheme) == []
    if scheme == "bioes":
        assert strict_spans(tags) == found


@seeded
@given(mentions())
def test_iob1_writes_b_only_where_i_would_change_the_mentions(case):
    found, length = case
    tags = encode(found, length, "iob1")
    for i, tag in enumerate(tags):
        if tag.startswith("B-"):
            assert spans([*tags[:i], "I-" + tag[2:], *tags[i + 1 :]]) != found


@seeded
@given(st.lists(st.sampled_from(BIOES), max_size=20), st.sampled_from(SCHEMES))
def test_convert_keeps_the_mentions_of_any_tags_and_is_idempotent(tags, to):
    converted = convert(tags, to)
    assert spans(converted) == spans(tags)
    assert convert(converted, to) == converted


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("iob1", "O I-A B-A I-A I-B I-A O I-X-Y I-X-Y I-X-Y"),
        ("iob2", "O B-A B-A I-A B-B B-A O B-X-Y I-X-Y I-X-Y"),
        ("bioes", "O S-A B-A E-A S-B S-A O B-X-Y I-X-Y E-X-Y"),
        ("bmes", "O S-A B-A E-A S-B S-A O B-X-Y M-X-Y E-X-Y"),
        ("bilou", "O U-A B-A L-A U-B U-A O B-X-Y I-X-Y L-X-Y"),
    ],
)
def test_encode_written_example(scheme, tags):
    found: list[Span] = [(1, 2, "A"), (2, 4, "A"), (4, 5, "B"), (5, 6, "A"), (7, 10, "X-Y")]
    assert " ".join(encode(found, 10, scheme)) == tags


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([(0, 2, "A"), (1, 3, "B")], r"mention \(1, 3, 'B'\) overlaps the one before it, which ends at 2"),
        ([(0, 3, "A"), (1, 2, "B")], r"mention \(1, 2, 'B'\) overlaps the one before it, which ends at 3"),
        ([(0, 1, "A"), (0, 1, "B")], r"mention \(0, 1, 'B'\) overlaps"),
        ([(2, 4, "A")], r"mention \(2, 4, 'A'\) is not within the 3 tokens of its sentence"),
        ([(-1, 1, "A")], r"mention \(-1, 1, 'A'\) is not within the 3 tokens"),
        ([(1, 1, "A")], r"mention \(1, 1, 'A'\) is not within the 3 tokens"),
    ],
)
def test_encode_refuses(found, message):
    with pytest.raises(ValueError, match=message):
        encode(found, 3, "bioes")


def test_all_short_tags_of_a_scheme_survive_every_other():
    for length, (one, other) in product(range(5), permutations(SCHEMES, 2)):
        for cut in product(("", "A", "B"), repeat=length):
            whole = [(n, n + 1, kind) for n, kind in enumerate(cut) if kind]
            tags = encode(whole, length, one)
            assert convert(convert(tags, other), one) == tags
