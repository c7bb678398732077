"""The features of Huang, Xu & Yu (2015): spelling by the paper's examples, and what all features share."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from encoders import context, text
from huang2015_oracles import assert_same_up_to_numbering
from read_files import read_columns

from ner_experiments.data.context import Context
from ner_experiments.data.gazetteer import Gazetteer
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.spelling import Spelling, spelling_features

DATA = os.environ.get("NER_DATA_DIR")
PROPERTIES = {
    *("initial capital", "all capitals", "all lower", "non-initial capital"),
    *("letters and digits", "punctuation", "apostrophe"),
}


def values(form: str, kind: str) -> list[str]:
    features = [feature.partition(" ") for feature in spelling_features(form) if feature not in PROPERTIES]
    return [value for name, _, value in features if name == kind]


def test_all_spelling_features_of_a_word():
    assert sorted(spelling_features("D56y-3")) == sorted(
        [
            *("word d56y-3", "initial capital", "letters and digits", "punctuation"),
            *("prefix D5", "prefix D56", "prefix D56y", "prefix D56y-"),
            *("suffix -3", "suffix y-3", "suffix 6y-3", "suffix 56y-3"),
            *("letters Dy", "others 56-3", "pattern A00a-0", "summary A0a-0"),
        ]
    )


@pytest.mark.parametrize(
    ("form", "letters", "others", "pattern", "summary"),
    [
        ("D56y-3", ["Dy"], ["56-3"], "A00a-0", "A0a-0"),
        ("I.B.M.", ["IBM"], ["..."], "A.A.A.", "A.A.A."),
        ("A.T.&T", ["ATT"], ["..&"], "A.A.&A", "A.A.&A"),
        ("A.T.&T.", ["ATT"], ["..&."], "A.A.&A.", "A.A.&A."),
        ("Reuters", ["Reuters"], [], "Aaaaaaa", "Aa"),
        ("1996-08-30", [], ["1996-08-30"], "0000-00-00", "0-0-0"),
        ("--", [], ["--"], "--", "-"),
        ("Ångström", ["Ångström"], [], "Aaaaaaaa", "Aa"),
        ("中文5", ["中文"], ["5"], "中文0", "中文0"),
    ],
)
def test_letters_others_and_patterns(
    form: str, letters: list[str], others: list[str], pattern: str, summary: str
):
    assert (values(form, "letters"), values(form, "others")) == (letters, others)
    assert (values(form, "pattern"), values(form, "summary")) == ([pattern], [summary])


@pytest.mark.parametrize(
    ("form", "properties"),
    [
        ("German", {"initial capital"}),
        ("EU", {"initial capital", "all capitals", "non-initial capital"}),
        ("I.B.M.", {"initial capital", "all capitals", "non-initial capital", "punctuation"}),
        ("A", {"initial capital", "all capitals"}),
        ("eBay", {"non-initial capital"}),
        ("lamb", {"all lower"}),
        ("1990s", {"all lower", "letters and digits"}),
        ("1990", set()),
        ("'s", {"all lower", "punctuation", "apostrophe"}),
        ("Peter’s", {"initial capital", "punctuation", "apostrophe"}),
        ("its'", {"all lower", "punctuation"}),
        ("$", {"punctuation"}),
        ("中国", set()),
    ],
)
def test_properties(form: str, properties: set[str]):
    assert PROPERTIES.intersection(spelling_features(form)) == properties


@pytest.mark.parametrize(
    ("form", "prefixes", "suffixes"),
    [
        ("a", [], []),
        ("at", ["at"], ["at"]),
        ("Call", ["Ca", "Cal", "Call"], ["ll", "all", "Call"]),
        ("boycott", ["bo", "boy", "boyc", "boyco"], ["tt", "ott", "cott", "ycott"]),
    ],
)
def test_affixes_have_two_to_five_characters(form: str, prefixes: list[str], suffixes: list[str]):
    assert (values(form, "prefix"), values(form, "suffix")) == (prefixes, suffixes)


@pytest.mark.parametrize("min_count", [1, 2, 3])
def test_spelling_rows_hold_the_features_that_train_has_often_enough(min_count: int):
    train, other = text("Gary left Mary", "Mary left ."), text("Gary McDonald 's")
    counts = Counter(
        feature
        for form in ("Gary", "left", "Mary", "Mary", "left", ".")
        for feature in spelling_features(form)
    )
    known = {feature for feature, count in counts.items() if count >= min_count}
    reader = Spelling(min_count=min_count)
    reader.fit(train, [other])
    assert reader.sizes() == {"num_features": len(known)}
    assert reader.notes() == [f"spelling: {len(known)} features"]
    texts = (train, other)
    forms = [form for each in texts for form in each.forms]
    tables = [reader.encode(each).table.tolist() for each in texts]
    expected = [known.intersection(spelling_features(form)) for form in forms]
    assert_same_up_to_numbering([row for table in tables for row in table], expected, len(known))


@pytest.mark.parametrize("kind", ["spelling", "context", "gazetteer"])
def test_what_was_learned_is_put_down_as_json_and_taken_up_without_corpus_and_files(
    kind: str, tmp_path: Path
):
    readers: dict[str, Callable[[Path], Spelling | Context | Gazetteer]] = {
        "spelling": lambda _: Spelling(min_count=2),
        "context": lambda _: context(window=1),
        "gazetteer": lambda folder: Gazetteer(folder=str(folder), lowercase=False),
    }
    (tmp_path / "PER.txt").write_text("Ada\n", encoding="utf-8")
    (tmp_path / "LOC.txt").write_text("New York\nYork\n", encoding="utf-8")
    fitted, restored = readers[kind](tmp_path), readers[kind](tmp_path / "gone")
    fitted.fit(text("Ada likes New York", "New Ada"), [])
    restored.restore(json.loads(json.dumps(fitted.state())))
    new = text("York likes Ada", "new York")
    assert np.array_equal(restored.encode(new).table, fitted.encode(new).table)
    assert restored.encode(new).table.any()
    assert (restored.sizes(), restored.notes()) == (fitted.sizes(), fitted.notes())


def with_pos_and_without() -> IndexedText:
    return IndexedText.from_sentences(
        [Sentence(("a",), ("O",), {"pos": ("N",), "x": ("Y",)}), Sentence(("b",), ("O",), {"pos": ("N",)})]
    )


def empty_list(folder: Path) -> Gazetteer:
    (folder / "PER.txt").write_text("\n \n", encoding="utf-8")
    return Gazetteer(folder=str(folder), lowercase=False)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda _: Spelling(min_count=0), "spelling: min_count must be at least 1, got 0"),
        (lambda _: context(min_count=0), "context: min_count must be at least 1, got 0"),
        (lambda _: context(window=-1), "context: window must be at least 0, got -1"),
        (
            lambda _: context(columns=["pos", "x"]).fit(with_pos_and_without(), []),
            "context: the corpus has no column 'x'; it has: pos; see direct.context.input.columns",
        ),
        (
            lambda _: context(columns=["pos"]).fit(text("a b"), []),
            "context: the corpus has no column 'pos'; it has: none; see direct.context.input.columns",
        ),
        (
            lambda folder: Gazetteer(folder=f"{folder}/none", lowercase=False).fit(text("a"), []),
            "gazetteer: no list in {folder}/none; put a file there for each type of name, such as PER.txt, "
            "with one name per line, or set direct.gazetteer.input.folder=...",
        ),
        (
            lambda folder: empty_list(folder).fit(text("a"), []),
            "{folder}/PER.txt: expected one name per line, got none",
        ),
    ],
)
def test_an_error_says_what_to_do(build: Callable[[Path], object], message: str, tmp_path: Path):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        build(tmp_path)
    assert str(error.value) == message.format(folder=tmp_path)


@pytest.mark.skipif(DATA is None, reason="NER_DATA_DIR is not set")
def test_conll2003_has_features_on_the_paper_s_scale():
    path = Path(str(DATA)) / "conll2003" / "eng.train"
    train = IndexedText.from_sentences(
        list(read_columns(path, columns={"word": 0, "pos": 1, "chunk": 2, "tag": 3}))
    )
    readers = Spelling(min_count=1), context(columns=["pos", "chunk"])
    for reader in readers:
        reader.fit(train, [])
    total = sum(reader.sizes()["num_features"] for reader in readers)
    assert 341_000 / 2 < total < 341_000 * 2  # section 4.2: 341K; the window is not given
