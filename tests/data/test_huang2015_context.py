"""Context and gazetteers of Huang, Xu & Yu (2015), against n-grams and names found by brute force."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from encoders import context, text
from huang2015_oracles import assert_same_up_to_numbering, longest_names, ngrams
from hypothesis import given
from hypothesis import strategies as st

from ner_experiments.data.gazetteer import Gazetteer
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.sentence import Sentence


@st.composite
def a_sentence(draw: st.DrawFn) -> Sentence:
    length = draw(st.integers(1, 5))
    layer = lambda symbols: tuple(draw(st.sampled_from(symbols)) for _ in range(length))  # noqa: E731
    words = layer("abB")
    return Sentence(words, ("O",) * length, {"pos": layer("NV"), "chunk": layer("XY"), "other": layer("PQ")})


SENTENCES = st.lists(a_sentence(), min_size=1, max_size=6)


@given(
    SENTENCES,
    SENTENCES,
    st.integers(0, 3),
    st.sampled_from([[], ["pos"], ["pos", "chunk"]]),
    st.integers(1, 2),
)
def test_context_is_every_ngram_of_the_window_that_train_has_there(
    train: list[Sentence], other: list[Sentence], window: int, columns: list[str], min_count: int
):
    reader = context(columns=columns, window=window, min_count=min_count)
    texts = IndexedText.from_sentences(train), IndexedText.from_sentences(other)
    reader.fit(texts[0], [texts[1]])
    extracted = [
        [
            set(ngrams(sentence, place, columns, window))
            for sentence in split
            for place in range(len(sentence))
        ]
        for split in (train, other)
    ]
    counts = Counter(feature for features in extracted[0] for feature in features)
    known = {feature for feature, count in counts.items() if count >= min_count}
    assert reader.sizes() == {"num_features": len(known)}
    rows = [row for each in texts for row in reader.encode(each).table.tolist()]
    expected = [features & known for split in extracted for features in split]
    assert_same_up_to_numbering(rows, expected, len(known))


def test_context_of_a_written_sentence():
    reader = context(window=1)
    reader.fit(text("EU rejects German call"), [])
    number_of = {
        form: (reader.encode(text(form)).table > 0).sum(1).tolist() for form in ("German", "EU", "lamb")
    }
    # alone: the word, its left edge, its right edge; of the pairs with an edge, train has the left one of EU
    assert number_of == {"German": [3], "EU": [4], "lamb": [2]}


def test_lower_cased_context_knows_no_case():
    reader = context(lowercase=True)
    reader.fit(text("The EU rejects"), [])
    assert np.array_equal(
        reader.encode(text("the eu REJECTS")).table, reader.encode(text("The EU rejects")).table
    )


NAMES = st.lists(st.lists(st.sampled_from("abAB"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8)
TOKENS = st.lists(st.lists(st.sampled_from("abAB"), min_size=1, max_size=9), min_size=1, max_size=4)


def gazetteer(
    folder: Path, lists: dict[str, Sequence[tuple[str, ...]]], lowercase: bool = False
) -> Gazetteer:
    for kind, names in lists.items():
        lines = "\n\n".join(map(" ".join, names))
        (folder / f"{kind}.txt").write_text(f"{lines}\n", encoding="utf-8")
    return Gazetteer(folder=str(folder), lowercase=lowercase)


@given(NAMES, NAMES, TOKENS, st.booleans())
def test_gazetteer_marks_the_longest_names_of_each_list(
    first: list[tuple[str, ...]], second: list[tuple[str, ...]], sentences: list[list[str]], lowercase: bool
):
    corpus = text(*map(" ".join, sentences))
    lists = {"LOC": first, "PER": second}
    with TemporaryDirectory() as folder:
        reader = gazetteer(Path(folder), lists, lowercase)
        reader.fit(corpus, [])
    assert reader.sizes() == {"num_features": 8}
    normal: Callable[[str], str] = str.lower if lowercase else str
    marks = []
    for names in lists.values():
        normal_names = {tuple(map(normal, name)) for name in names}
        marks.append([mark for s in sentences for mark in longest_names([*map(normal, s)], normal_names)])
    numbers = [
        {4 * place + "BIES".index(mark) + 1 for place, mark in enumerate(of_token) if mark}
        for of_token in zip(*marks, strict=True)
    ]
    rows = reader.encode(corpus).table.tolist()
    assert [{id for id in row if id} for row in rows] == numbers
    assert all(row == sorted(row, reverse=True) for row in rows)


def test_gazetteer_says_what_it_read_and_its_checksum_is_of_that(tmp_path: Path):
    lists = {"PER": [("Ada",), ("Ada", "Lovelace"), ("Ada",)], "LOC": [("St.", "John", "'s")]}
    renamed = {"ORG": lists["PER"], "LOC": lists["LOC"]}
    shortened = lists | {"PER": [("Ada",)]}

    def read(folder: str, lists: dict[str, Sequence[tuple[str, ...]]]) -> Gazetteer:
        (tmp_path / folder).mkdir()
        reader = gazetteer(tmp_path / folder, lists)
        reader.fit(text("Ada"), [])
        return reader

    one = read("one", lists)
    checksum = one.checksum()
    assert one.notes() == ["gazetteer: names by list: 1 LOC, 2 PER"]
    assert read("same", lists).checksum() == checksum
    assert read("renamed", renamed).checksum() != checksum
    assert read("shortened", shortened).checksum() != checksum
    (tmp_path / "one" / "PER.txt").write_text("Ada\n", encoding="utf-8")
    assert one.checksum() == checksum  # of what `fit` read
