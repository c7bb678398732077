"""Reading tags: against seqeval, and against adjacency rules written here."""

import re
from collections import Counter
from itertools import pairwise, product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOBES, Entities
from tag_sequences import BIOES, SCHEMES, seeded, sequences

from ner_experiments.data.tags import (
    Scheme,
    allowed_transitions,
    convert,
    count_illegal,
    count_mentions,
    count_windows,
    encode,
    illegal_positions,
    spans,
    strict_spans,
    windows_of,
)


def of_seqeval(tags):
    return [(start, end + 1, type_) for type_, start, end in get_entities(list(tags))]


def strict_of_seqeval(sentences):
    read = Entities([list(tags) for tags in sentences], IOBES).entities
    return [[(entity.start, entity.end, entity.tag) for entity in sentence] for sentence in read]


# Reading tags


def test_spans_is_seqevals_conlleval_reading_of_all_short_sequences():
    for tags in sequences(BIOES, 4):
        assert spans(tags) == of_seqeval(tags), tags
    for tags in sequences(("O", "B-A", "I-A", "B-B", "I-B"), 6):  # IOB1 and IOB2, illegal ones too
        assert spans(tags) == of_seqeval(tags), tags


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


# Breaking a scheme

LETTERS = {"iob1": "IB", "iob2": "BI", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}


def labels_of(scheme):
    return ("O", *(f"{letter}-{type_}" for letter in LETTERS[scheme] for type_ in "AB"))


def breaks(scheme, before, tag, after):
    """The rules, each stated for two adjacent tags."""

    def goes_on(left, right, letters):
        return right[0] in letters and left[0] in "BIM" and left[1:] == right[1:]

    if tag == "O":
        return False
    if scheme == "iob1":
        return tag[0] == "B" and not (before[0] in "BI" and before[1:] == tag[1:])
    if scheme == "iob2":
        return tag[0] == "I" and not goes_on(before, tag, "I")
    without_beginning = tag[0] in "IMEL" and not goes_on(before, tag, "IMEL")
    without_end = tag[0] in "BIM" and not goes_on(tag, after, "IMEL")
    return without_beginning or without_end


@pytest.mark.parametrize("scheme", SCHEMES)
def test_illegal_against_rules_over_neighbours(scheme):
    labels = labels_of(scheme)
    for tags in sequences(labels, 4):
        padded = ("O", *tags, "O")
        expected = [i for i in range(len(tags)) if breaks(scheme, *padded[i : i + 3])]
        assert illegal_positions(tags, scheme) == expected, tags


def test_readers_of_tags_refuse_what_is_no_tag():
    with pytest.raises(
        ValueError, match=r"tag 'X-PER' is neither O nor one of B-, I-, M-, E-, S-, L-, U- followed"
    ):
        spans(["O", "X-PER"])
    with pytest.raises(ValueError, match=r"tag 'M-PER' is neither O nor one of B-, I-, E-, S- followed"):
        strict_spans(["M-PER"])
    with pytest.raises(ValueError, match=r"tag '<pad>' is neither O"):
        allowed_transitions(["<pad>", "O"])


# Windows


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_window_of_a_tag_determines_its_counterpart_in_another_scheme(scheme):
    for tags in sequences(BIOES, 4):  # spans reads M as I, and L and U as E and S
        assert tuple(convert(window, scheme)[1] for window in windows_of(tags)) == convert(tags, scheme), tags


@pytest.mark.parametrize("scheme", SCHEMES)
def test_counts_of_windows_are_those_of_sentences(scheme):
    every = [*sequences(labels_of(scheme), 3)]
    for texts in [[tags] for tags in every] + [every]:
        counts = count_windows(texts)
        assert count_mentions(counts) == Counter(type_ for tags in texts for _, _, type_ in spans(tags))
        assert count_illegal(counts, scheme) == sum(len(illegal_positions(tags, scheme)) for tags in texts)


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


def test_the_page_on_corpora_lists_every_scheme_with_the_tags_that_it_writes() -> None:
    page = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \w+ \| `(\w+)` \| .* \| `([^`]+)` \|$", page, re.MULTILINE))
    assert listed == {
        scheme: " ".join(encode([(0, 2, "PER"), (2, 3, "PER")], 3, scheme)) for scheme in get_args(Scheme)
    }
