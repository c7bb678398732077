"""Tag schemes: against seqeval, against adjacency rules written here, and round trips."""

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOBES, Entities

from ner_experiments.data.tags import (
    Scheme,
    Span,
    allowed_transitions,
    convert,
    encode,
    illegal,
    spans,
    strict_spans,
)

seeded = settings(derandomize=True, deadline=None)  # a busy machine breaks no test

SCHEMES: tuple[Scheme, ...] = ("iob1", "iob2", "bioes", "bmes")
BIOES = ("O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B")
TYPES = ("A", "B", "creative-work", "GPE_X", "PER.NOM", "O", "I", "-")


def sequences(labels, longest):
    return (tags for length in range(longest + 1) for tags in product(labels, repeat=length))


def of_seqeval(tags):
    return [(start, end + 1, type_) for type_, start, end in get_entities(list(tags))]


def strict_of_seqeval(sentences):
    read = Entities([list(tags) for tags in sentences], IOBES).entities
    return [[(entity.start, entity.end, entity.tag) for entity in sentence] for sentence in read]


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


# Reading tags


def test_spans_is_seqevals_conlleval_reading_of_all_short_sequences():
    for tags in sequences(BIOES, 4):
        assert spans(tags) == of_seqeval(tags), tags
    for tags in sequences(("O", "B-A", "I-A", "B-B", "I-B"), 6):  # IOB1 and IOB2, illegal ones too
        assert spans(tags) == of_seqeval(tags), tags


@seeded
@given(st.lists(st.sampled_from(BIOES), max_size=40))
def test_spans_is_seqevals_conlleval_reading_of_long_sequences(tags):
    assert spans(tags) == of_seqeval(tags)


@seeded
@given(st.lists(st.sampled_from(BIOES), max_size=40))
def test_spans_reads_m_as_i_and_loses_no_token(tags):
    assert spans([tag.replace("I-", "M-") for tag in tags]) == spans(tags)
    covered = {(i, type_) for start, end, type_ in spans(tags) for i in range(start, end)}
    assert covered == {(i, tag[2:]) for i, tag in enumerate(tags) if tag != "O"}


def test_spans_of_written_examples():
    assert spans(["I-PER", "I-PER", "B-PER", "I-LOC", "O", "I-LOC"]) == [
        (0, 2, "PER"),
        (2, 3, "PER"),
        (3, 4, "LOC"),
        (5, 6, "LOC"),
    ]
    assert spans(["B-creative-work", "I-creative-work", "I-creative"]) == [
        (0, 2, "creative-work"),
        (2, 3, "creative"),
    ]
    assert spans(["B-O", "I-O", "O"]) == [(0, 2, "O")]


def test_strict_spans_is_seqevals_strict_reading_of_all_short_sequences():
    tags = [*sequences(BIOES, 4), *product(BIOES[:7], repeat=5)]
    tags = [sequence for sequence in tags if sequence]
    assert list(map(strict_spans, tags)) == strict_of_seqeval(tags)


@seeded
@given(st.lists(st.lists(st.sampled_from(BIOES), min_size=1, max_size=40), min_size=1, max_size=5))
def test_strict_spans_is_seqevals_strict_reading_of_long_sequences(sentences):
    assert list(map(strict_spans, sentences)) == strict_of_seqeval(sentences)


# Writing tags


@seeded
@given(mentions(), st.sampled_from(SCHEMES), st.randoms())
def test_spans_encode_spans(case, scheme, random):
    found, length = case
    shuffled = random.sample(found, len(found))
    tags = encode(shuffled, length, scheme)
    assert len(tags) == length
    assert spans(tags) == found
    assert illegal(tags, scheme) == []
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
        ("iob1", "O I-A B-A I-A I-B I-A O I-X-Y"),
        ("iob2", "O B-A B-A I-A B-B B-A O B-X-Y"),
        ("bioes", "O S-A B-A E-A S-B S-A O S-X-Y"),
        ("bmes", "O S-A B-A E-A S-B S-A O S-X-Y"),
    ],
)
def test_encode_written_example(scheme, tags):
    found: list[Span] = [(1, 2, "A"), (2, 4, "A"), (4, 5, "B"), (5, 6, "A"), (7, 8, "X-Y")]
    assert " ".join(encode(found, 8, scheme)) == tags


def test_encode_inner_letters():
    assert encode([(0, 4, "A")], 4, "bioes") == ("B-A", "I-A", "I-A", "E-A")
    assert encode([(0, 4, "A")], 4, "bmes") == ("B-A", "M-A", "M-A", "E-A")


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


# Breaking a scheme


def breaks(scheme, before, tag, after):
    """The rules, each read off two neighbours, as somebody would say them."""

    def goes_on(left, right, letters):
        return right[0] in letters and left[0] in "BIM" and left[1:] == right[1:]

    if tag == "O":
        return False
    if scheme == "iob1":
        return tag[0] == "B" and not (before[0] in "BI" and before[1:] == tag[1:])
    if scheme == "iob2":
        return tag[0] == "I" and not goes_on(before, tag, "I")
    without_beginning = tag[0] in "IME" and not goes_on(before, tag, "IME")
    without_end = tag[0] in "BIM" and not goes_on(tag, after, "IME")
    return without_beginning or without_end


@pytest.mark.parametrize("scheme", SCHEMES)
def test_illegal_against_rules_over_neighbours(scheme):
    letters = {"iob1": "IB", "iob2": "BI", "bioes": "BIES", "bmes": "BMES"}[scheme]
    labels = ("O", *(f"{letter}-{type_}" for letter in letters for type_ in "AB"))
    for tags in sequences(labels, 4):
        padded = ("O", *tags, "O")
        expected = [i for i in range(len(tags)) if breaks(scheme, *padded[i : i + 3])]
        assert illegal(tags, scheme) == expected, tags


@pytest.mark.parametrize(
    ("tag", "scheme", "letters"),
    [
        ("S-PER", "iob1", "I-, B-"),
        ("E-PER", "iob2", "B-, I-"),
        ("M-PER", "bioes", "B-, I-, E-, S-"),
        ("I-PER", "bmes", "B-, M-, E-, S-"),
        ("b-PER", "iob2", "B-, I-"),
        ("BI-PER", "iob2", "B-, I-"),
        ("-PER", "iob2", "B-, I-"),
        ("B-", "iob2", "B-, I-"),
        ("B", "iob2", "B-, I-"),
        ("PER", "iob2", "B-, I-"),
        ("o", "iob2", "B-, I-"),
        ("O-PER", "iob2", "B-, I-"),
        ("O ", "iob2", "B-, I-"),
        ("", "iob2", "B-, I-"),
    ],
)
def test_a_tag_that_is_not_of_the_scheme_is_named(tag, scheme, letters):
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole message follows
        illegal(["O", tag], scheme)
    assert str(error.value) == f"tag {tag!r} is neither O nor one of {letters} followed by a type"


def test_readers_of_tags_refuse_what_is_no_tag():
    with pytest.raises(ValueError, match=r"tag 'X-PER' is neither O nor one of B-, I-, M-, E-, S- followed"):
        spans(["O", "X-PER"])
    with pytest.raises(ValueError, match=r"tag 'M-PER' is neither O nor one of B-, I-, E-, S- followed"):
        strict_spans(["M-PER"])
    with pytest.raises(ValueError, match=r"tag '<pad>' is neither O"):
        allowed_transitions(["<pad>", "O"])


# What may follow what


@pytest.mark.parametrize(
    "labels", [BIOES, BIOES[::-1], ("I-B", "O", "E-A", "B-A", "S-B"), ("B-A", "E-A"), ("O",)]
)
def test_allowed_transitions_allow_just_what_strict_spans_reads_whole(labels):
    allowed = allowed_transitions(labels)
    for path in sequences(range(len(labels)), 5 if len(labels) < 9 else 4):
        if not path:
            continue
        keeps = allowed.start[path[0]] and allowed.end[path[-1]]
        keeps = keeps and all(allowed.pairs[i][j] for i, j in pairwise(path))
        tags = [labels[i] for i in path]
        read = sum(end - start for start, end, _ in strict_spans(tags))
        assert keeps == (read == sum(tag != "O" for tag in tags)), tags
