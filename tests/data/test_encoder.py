"""From sentences to batches: against one sentence and one token at a time, in plain Python."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders import CPU, assert_equal, fitted, sentence
from hypothesis import given, settings
from hypothesis import strategies as st

from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.indexed_text import IndexedText, PerToken, apply_in_chunks
from ner_experiments.data.inputs import Case, Characters, Input, PretrainedWords, RandomWords
from ner_experiments.data.inputs_li2020 import WordsWithCase
from ner_experiments.data.pieces import plan_windows
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import encode
from ner_experiments.modules.inputs_li2020 import KnownWords
from ner_experiments.modules.words import PretrainedEmbedding

LONGEST = 4  # characters
seeded = settings(derandomize=True, deadline=None, max_examples=60)


def beginnings(sentence: Sentence) -> list[list[int]]:
    """At each token, the lengths of the words up to it."""
    return [list(map(len, sentence.words[: place + 1])) for place in range(len(sentence))]


@dataclass
class WordLengths(Input):
    """`beginnings`: what depends on the sentence."""

    def encode(self, text: IndexedText) -> PerToken:
        longest = max(map(len, text.sentences))
        rows = [row + [0] * (longest - len(row)) for s in text.sentences for row in beginnings(s)]
        return PerToken(np.array(rows))

    def sizes(self) -> dict[str, Any]:
        return {}


words = st.text(alphabet="abBZß中é'-19\u2028\U0001f600", min_size=1, max_size=6)
tags = st.sampled_from(["O", "S-A", "S-creative-work", "S-PER.NOM"])
sentences = st.lists(st.tuples(words, tags), min_size=1, max_size=6).map(
    lambda pairs: Sentence(*(tuple(column) for column in zip(*pairs, strict=True)))
)
texts = st.lists(sentences, min_size=1, max_size=6)


def inputs() -> dict[str, Input]:
    return {
        "words": RandomWords(lowercase=False),
        "lower": RandomWords(lowercase=True),
        "chars": Characters(max_length=LONGEST),
        "lengths": WordLengths(),
    }


def naive(train: Sequence[Sentence], sentence: Sentence, name: str) -> list[Any]:
    """Features of each token by the input, without padding."""
    seen = [word for s in train for word in s.words]
    if name in ("words", "lower"):
        normal = str.lower if name == "lower" else str
        known = list(dict.fromkeys(map(normal, seen)))
        return [known.index(normal(w)) + 1 if normal(w) in known else 0 for w in sentence.words]
    if name == "chars":
        known = sorted(set("".join(seen)))
        return [[known.index(c) + 2 if c in known else 1 for c in w[:LONGEST]] for w in sentence.words]
    return beginnings(sentence)


@seeded
@given(texts, texts, st.data())
def test_a_batch_is_its_sentences_one_by_one(
    train: list[Sentence], dev: list[Sentence], data: st.DataObject
) -> None:
    encoder = fitted(train, dev, **inputs())
    numbers = data.draw(st.lists(st.sampled_from(range(len(dev))), min_size=1, unique=True))
    batch = encoder.encode(dev, CPU).batch(np.array(numbers))
    chosen = [dev[number] for number in numbers]
    assert (batch.sentences.tolist(), batch.lengths.tolist()) == (numbers, list(map(len, chosen)))
    longest = max(map(len, chosen))
    assert batch.mask.tolist() == [[place < len(s) for place in range(longest)] for s in chosen]
    ids = [[encoder.labels.index(tag) for tag in s.tags] + [0] * (longest - len(s)) for s in chosen]
    assert batch.tags.tolist() == ids
    for name in encoder.inputs:
        assert_rows(batch, name, [naive(train, s, name) for s in chosen])
    forms = {word for s in chosen for word in s.words}  # each is computed once
    assert len(batch.inputs["words"]) == len(batch.inputs["chars"]) == len(forms)


def assert_rows(batch: Batch, name: str, expected: list[list[Any]]) -> None:
    rows = batch.inputs[name]
    spread = batch.spread(name, rows)
    if rows.ndim == 2:
        width = max(len(row) for sentence in expected for row in sentence)
        assert rows.shape[1] == width, f"{name}: wider than its longest row"
        expected = [[row + [0] * (width - len(row)) for row in sentence] for sentence in expected]
    for found, right in zip(spread.tolist(), expected, strict=True):
        assert found[: len(right)] == right, name
    values = {json.dumps(row) for sentence in expected for row in sentence}
    assert {json.dumps(row) for row in rows.tolist()} == values, f"{name}: rows of other sentences"


def test_labels_are_all_four_tags_of_every_type_of_every_split() -> None:
    splits = {
        "train": [Sentence(("a", "b"), ("B-PER", "E-PER"))],
        "dev": [Sentence(("a",), ("O",))],
        "test": [Sentence(("a", "b"), ("S-creative-work", "S-LOC"))],
    }
    encoder = Encoder({})
    encoder.fit(Corpus("mine", "mentions", splits, checksum=""))
    kinds = ("LOC", "PER", "creative-work")
    assert encoder.labels == ("O", *(f"{prefix}-{kind}" for kind in kinds for prefix in "BIES"))
    written = [Sentence(("w",) * 4, encode([(0, 3, "LOC"), (3, 4, "creative-work")], 4, "bioes"))]
    batch = encoder.encode(written, CPU).batch(np.array([0]))
    assert [encoder.labels[tag] for tag in batch.tags[0]] == list(written[0].tags)


def test_labels_of_parts_of_speech_are_the_tags_as_they_are() -> None:
    splits = {"train": [Sentence(("a", "b"), ("VB", "B-X"))], "test": [Sentence(("c",), ("NN",))]}
    encoder = Encoder({})
    encoder.fit(Corpus("mine", "tags", splits, checksum=""))
    assert encoder.labels == ("B-X", "NN", "VB")
    assert encoder.encode(splits["test"], CPU).batch(np.array([0])).tags.tolist() == [[1]]


@seeded
@given(texts, texts)
def test_a_restored_encoder_reads_new_text_alike(train: list[Sentence], new: list[Sentence]) -> None:
    encoder, restored = fitted(train, new, **inputs()), Encoder(inputs())
    restored.restore(json.loads(json.dumps(encoder.state())))
    assert (restored.labels, restored.task) == (encoder.labels, encoder.task)
    first, second = (e.encode(new, CPU).batch(np.arange(len(new))) for e in (encoder, restored))
    assert torch.equal(first.tags, second.tags)
    for name, input in encoder.inputs.items():
        assert torch.equal(first.inputs[name], second.inputs[name]), name
        assert torch.equal(first.places[name], second.places[name]), name
        assert_equal(input.sizes(), restored.inputs[name].sizes())


@pytest.mark.parametrize("lowercase", [False, True])
def test_singletons_are_the_words_seen_once_in_train(lowercase: bool) -> None:
    train = [sentence("The cat the dog"), sentence("dog Cat cat A")]
    sizes = (
        fitted(train, [sentence("new new A")], words=RandomWords(lowercase=lowercase)).inputs["words"].sizes()
    )
    seen = [word.lower() if lowercase else word for s in train for word in s.words]
    assert sizes["num_words"] == len(set(seen)) + 1
    expected = [count == 1 for count in Counter(seen).values()]
    assert sizes["singletons"].tolist() == [False, *expected]  # the unknown word is none


def test_characters_beyond_the_limit_change_nothing() -> None:
    train = [sentence("abcdef abcdxy ab")]
    encoder = fitted(train, chars=Characters(max_length=4))
    batch = encoder.encode(train, CPU).batch(np.array([0]))
    assert batch.spread("chars", batch.inputs["chars"]).tolist() == [[[2, 3, 4, 5]] * 2 + [[2, 3, 0, 0]]]
    assert encoder.inputs["chars"].sizes() == {"num_chars": 2 + len("abcdefxy")}
    longer = encoder.encode([sentence("abcd" * 100 + " ?a")], CPU).batch(np.array([0]))
    assert longer.spread("chars", longer.inputs["chars"]).tolist() == [[[2, 3, 4, 5], [1, 2, 0, 0]]]
    with pytest.raises(ValueError, match="chars: max_length must be an integer of at least 1, got 0"):
        Characters(max_length=0)


@pytest.mark.parametrize(
    ("forms", "kind"),
    [
        ("USA U.S. I A1 ÉTÉ F-16 3D", 0),
        ("Ada Ada's X-ray Été R2d McDonald O'Brien", 1),  # as in Li et al.'s released code
        ("hello 1990s x-ray été ß n't 3rd", 2),
        ("iPhone aB 123 . 中 -Ada", 3),
    ],
)
def test_case(forms: str, kind: int) -> None:
    encoded = fitted([sentence(forms)], features=Case()).encode([sentence(forms)], CPU)
    batch = encoded.batch(np.array([0]))
    assert batch.spread("features", batch.inputs["features"]).tolist() == [[kind] * len(forms.split())]


def test_batches_that_share_their_forms_say_the_same() -> None:
    text = ["a bb a", "ccc a bb dd", "bb"]
    corpus = [sentence(line) for line in text]
    encoded = fitted(corpus, **inputs()).encode(corpus, CPU)
    for numbers in ([0], [2, 1]):
        alone, shared = (encoded.batch(np.array(numbers), share=share) for share in (False, True))
        assert shared.shared == {"words", "lower", "chars"}  # the others depend on the sentence
        for name in alone.inputs:
            rows = [batch.spread(name, batch.inputs[name])[batch.mask] for batch in (alone, shared)]
            width = min(row.shape[-1] for row in rows) if rows[0].ndim == 2 else None
            assert torch.equal(*(row[..., :width] if width else row for row in rows))


def test_a_table_in_chunks_is_made_row_by_row() -> None:
    table = torch.tensor([[3, 1, 0, 0], [2, 0, 0, 0], [5, 1, 4, 1], [9, 9, 0, 0], [1, 0, 0, 0]])
    seen: list[tuple[int, ...]] = []

    def add_up(rows: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(rows.shape))
        return rows.sum(1, keepdim=True).float()

    assert apply_in_chunks(add_up, table, size=2).flatten().tolist() == [4, 2, 11, 18, 1]
    assert seen == [(2, 1), (2, 2), (1, 4)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(1, 20), st.data())
def test_windows_cover_overlap_and_are_no_more_than_needed(
    lengths: list[int], longest: int, data: Any
) -> None:
    overlap = data.draw(st.integers(0, longest - 1))
    windows = plan_windows(np.array(lengths), longest, overlap)
    for length, first, count in zip(lengths, windows.first, windows.counts, strict=True):
        spans = [
            (windows.starts[w], windows.starts[w] + windows.lengths[w]) for w in range(first, first + count)
        ]
        assert spans[0][0] == 0
        assert spans[-1][1] == length
        assert all(end - start == min(length, longest) for start, end in spans)
        assert all(end - start >= overlap for (_, end), (start, _) in pairwise(spans))
        fewer = count - 1
        assert count == 1 or longest * fewer - overlap * (fewer - 1) < length


VECTORS = {"the": [1.0, 2.0], "Ada": [3.0, 4.0], "ada": [5.0, 6.0], "0000": [7.0, 8.0], "d00-x": [9.0, 10.0]}


@pytest.fixture
def pretrained(tmp_path: Path) -> PretrainedWords:
    lines = "".join(f"{word} {x} {y}\n" for word, (x, y) in VECTORS.items())
    (tmp_path / "vectors.txt").write_text(lines + "unused 0.0 0.0\n", encoding="utf-8")
    return PretrainedWords(path=str(tmp_path / "vectors.txt"), cache=str(tmp_path / "cache"))


def test_pretrained_words_are_looked_up_with_back_off(pretrained: PretrainedWords) -> None:
    train = [sentence("The zork 1815 Ada twice twice"), sentence("THE the")]
    dev = [sentence("ADA D12-X 2026 blick zork 1815 nowhere")]
    encoder = fitted(train, dev, words=pretrained)
    sizes = pretrained.sizes()

    def vectors_of(text: str) -> list[Any]:
        batch = encoder.encode([sentence(text)], CPU).batch(np.array([0]))
        ids = batch.spread("words", batch.inputs["words"])[0]
        return [sizes["vectors"][id].tolist() if sizes["found"][id] else int(id) for id in ids]

    expected = [VECTORS[key] for key in ("the", "the", "the", "Ada", "ada", "0000", "0000", "d00-x")]
    assert vectors_of("The THE the Ada ADA 1815 2026 D12-X") == expected
    found = sizes["found"].nonzero().flatten().tolist()
    assert found == [1, 2, 3, 4, 5]  # one row for each vector that a word of the corpus ends at
    assert vectors_of("zork twice blick nowhere") == [6, 7, 0, 0]  # of its own, only if train has it
    assert sizes["singletons"].tolist() == [*[False] * 6, True, False]
    (note,) = encoder.notes()
    assert note.startswith("8 of 12 words (66.7%) have a pre-trained vector: 2 (16.7%) as they are")


@pytest.mark.parametrize("kind", ["words", "words with case"])
def test_an_extended_input_gives_new_words_the_vectors_that_fit_would_have(
    pretrained: PretrainedWords, kind: str
) -> None:
    """Expected are those of an input that was fitted on both texts; a word in neither file nor train is unknown."""

    def new() -> Input:
        case = WordsWithCase(path=pretrained.path, back_off=True)
        return case if kind == "words with case" else PretrainedWords(pretrained.path, pretrained.cache)

    def module_of(input: Input) -> Any:
        torch.manual_seed(0)
        if isinstance(input, WordsWithCase):
            return KnownWords(**input.sizes())
        return PretrainedEmbedding(**input.sizes(), replace_singletons=0.5, trainable=True).eval()

    def vectors_of(encoder: Encoder, module: Any) -> tuple[torch.Tensor, torch.Tensor]:
        batch = encoder.encode(text, CPU).batch(np.array([0]))
        ids = batch.inputs["words"]
        return batch.spread("words", ids)[0], batch.spread("words", module(ids))[0].detach()

    train, text = [sentence("The zork zork 1815")], [sentence("the THE Ada ADA ada D12-X 2026 zork nowhere")]
    input, whole = new(), new()
    own, both = fitted(train, words=input), fitted(train, text, words=whole)
    encoder, rows = own.extended(text)
    module = module_of(input)
    ids, ours = vectors_of(encoder, module.extended(torch.from_numpy(rows["words"])))
    _, expected = vectors_of(both, module_of(whole))
    num_found = 5 if kind == "words with case" else 7  # without digits as 0, D12-X and 2026 are not found
    assert (ids[:num_found] > 0).all()
    assert torch.equal(ours[:num_found], expected[:num_found])
    assert ids[-1] == 0
    before, _ = vectors_of(own, module)
    assert before.max() < len(module.vectors)


def test_restored_pretrained_words_need_no_file(pretrained: PretrainedWords, tmp_path: Path) -> None:
    train = [sentence("The zork 1815 Ada"), sentence("THE the twice twice")]
    encoder = fitted(train, words=pretrained)
    restored = Encoder({"words": PretrainedWords(path=str(tmp_path / "gone"), cache=str(tmp_path / "gone"))})
    restored.restore(json.loads(json.dumps(encoder.state())))
    new = [sentence("zork unheard The THE 1815 1999 twice Ada ADA")]
    first, second = (e.encode(new, CPU).batch(np.array([0])) for e in (encoder, restored))
    ids = first.spread("words", first.inputs["words"])[0]
    assert ids.tolist() == [4, 0, 1, 1, 2, 2, 5, 3, 0]
    assert torch.equal(ids, second.spread("words", second.inputs["words"])[0])
    ours, theirs = pretrained.sizes(), restored.inputs["words"].sizes()
    assert ours["vectors"].shape == theirs["vectors"].shape
    assert (theirs["vectors"] == 0).all()  # the weights bring the vectors
    assert_equal({**ours, "vectors": 0}, {**theirs, "vectors": 0})


def test_the_checksum_is_of_the_vectors_that_are_used(pretrained: PretrainedWords) -> None:
    file, checksums = Path(pretrained.path), []
    for old, new in (("", ""), ("unused 0.0", "unused 1.0"), ("the 1.0", "the 1.5")):
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        inputs = {"chars": Characters(max_length=50), "words": pretrained}
        checksums += fitted([sentence("the zork")], **inputs).checksums()
    assert checksums[0] == checksums[1] != checksums[2]
