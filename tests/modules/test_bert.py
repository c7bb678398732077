"""Pieces, windows, and BERT's vectors, tuned and frozen, against loops over words and windows."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_bert import VOCABULARY, WORDS, batch, fitted, random_text, save, sentences, vectors
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertModel, BertTokenizer

from ner_experiments.data.pieces import Pieces
from ner_experiments.modules import bert as bert_module
from ner_experiments.modules.bert import Bert, FrozenBert

UNKNOWN = VOCABULARY.index("[UNK]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("bert") / "tiny")


def pieces(folder: Path, max_length: int = 40, overlap: int = 10) -> Pieces:
    return Pieces(path=str(folder), max_length=max_length, overlap=overlap)


def word_by_word(folder: Path, words: tuple[str, ...]) -> list[list[int]]:
    tokenizer = BertTokenizer.from_pretrained(folder)
    return [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)) or [UNKNOWN] for word in words]


def by_loop(folder: Path, made: list[list[int]], longest: int, overlap: int) -> Tensor:
    """The vector of each word's first piece, each window alone through the model."""
    bert = BertModel.from_pretrained(folder).eval()
    flat = [piece for word in made for piece in word]
    number = 1
    while longest * number - overlap * (number - 1) < len(flat):
        number += 1
    starts = [i * max(0, len(flat) - longest) // max(1, number - 1) for i in range(number)]
    cls, sep = VOCABULARY.index("[CLS]"), VOCABULARY.index("[SEP]")
    states = []
    for start in starts:
        window = torch.tensor([[cls, *flat[start : start + longest], sep]])
        with torch.no_grad():
            states.append(bert(window).last_hidden_state[0, 1:-1])
    rows, place = [], 0
    for word in made:
        margins = [min(place - s, s + len(x) - 1 - place) for s, x in zip(starts, states, strict=True)]
        best = margins.index(max(margins))
        rows.append(states[best][place - starts[best]])
        place += len(word)
    return torch.stack(rows)


def test_a_token_is_the_first_piece_of_its_word(folder: Path) -> None:
    text = random_text(7, 1, 12, 9)
    together = batch(fitted(pieces(folder), text), text)
    ids, mask = together.inputs["words"]
    firsts = ids.flatten()[together.places["words"]]
    for number, sentence in enumerate(text.sentences):
        made = word_by_word(folder, sentence.words)
        assert firsts[number][together.mask[number]].tolist() == [word[0] for word in made]
        flat = [piece for word in made for piece in word]
        assert ids[number][mask[number]].tolist() == [2, *flat, 3]


@pytest.mark.parametrize(
    ("tokens", "max_length", "overlap"), [(1000, 16, 6), (90, 16, 0), (90, 16, 13), (90, 40, 11), (30, 3, 0)]
)
def test_windows_equal_each_window_alone_and_lose_no_token(
    folder: Path, tokens: int, max_length: int, overlap: int
) -> None:
    text = random_text(tokens, 3, 20)
    input = fitted(pieces(folder, max_length, overlap), text)
    module = Bert(**input.sizes()).eval()
    expected = [
        by_loop(folder, word_by_word(folder, sentence.words), max_length - 2, overlap)
        for sentence in text.sentences
    ]
    together = batch(input, text)
    assert together.inputs["words"].pieces.shape[1] <= max_length
    torch.testing.assert_close(vectors(module, together), torch.cat(expected), rtol=0, atol=1e-5)


def test_tokens_without_a_piece_are_unknown_and_counted(folder: Path) -> None:
    text = sentences(["", "\u200b", "\ufe0f", "🙂", "q", "a"])
    input = fitted(pieces(folder), text)
    together = batch(input, text)
    firsts = together.inputs["words"].pieces.flatten()[together.places["words"]]
    assert firsts.tolist() == [[UNKNOWN] * 5 + [VOCABULARY.index("a")]]
    expected = "5 of 6 tokens (83.33%) begin with BERT's [UNK]; 0 of 1 sentences have over 40 pieces"
    assert input.notes()[0].startswith(expected)


def test_special_pieces_in_the_text_and_what_the_folder_says_of_length_are_ignored(tmp_path: Path) -> None:
    folder = save(tmp_path / "tiny")
    BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=False).save_pretrained(folder)
    settings = json.loads((folder / "tokenizer.json").read_text())
    assert "[SEP]" in [piece["content"] for piece in settings["added_tokens"]]
    tokenizer = Tokenizer.from_str(json.dumps(settings))
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(folder / "tokenizer.json"))
    text = sentences(["[SEP]", "a", "中" * 9], ["a"])
    windows, mask = batch(fitted(pieces(folder), text), text).inputs["words"]
    made = [VOCABULARY[piece] for piece in windows[0].tolist()]
    assert made == ["[CLS]", "[", "[UNK]", "]", "a", *"中" * 9, "[SEP]"]
    assert windows[1].tolist() == [2, VOCABULARY.index("a"), 3, *[0] * 12]
    assert mask.sum(1).tolist() == [15, 3]


def test_many_windows_are_processed_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(1, 50, 4, 17)
    input = fitted(pieces(folder, 16, 4), text)
    module, together = Bert(**input.sizes()).eval(), batch(input, text)
    expected = vectors(module, together)
    calls: list[object] = []
    module.bert.register_forward_hook(lambda *call: calls.append(call))
    monkeypatch.setattr(bert_module, "MAX_PIECES", 40)
    torch.testing.assert_close(vectors(module, together), expected, rtol=0, atol=1e-5)
    assert len(calls) > 2


def test_bert_drops_in_training_and_learns_and_frozen_bert_does_neither(folder: Path) -> None:
    text = random_text(9)
    input = fitted(pieces(folder), text)
    tuned, still = Bert(**input.sizes()), FrozenBert(**input.sizes())
    windows = batch(input, text).inputs["words"]
    assert not torch.equal(tuned(windows), tuned(windows))
    torch.testing.assert_close(still.train()(windows), tuned.eval()(windows))
    tuned(windows).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in tuned.parameters())
    assert not still(windows).requires_grad
    assert not any(weight.requires_grad for weight in still.parameters())
    assert tuned.output_size == still.output_size == 32


def test_a_finished_run_needs_the_folder_no_more(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "bert"
    shutil.copytree(folder, place)
    text, new = random_text(9, 20), random_text(5, 30, words=[*WORDS, "new", "cd"], seed=1)
    input = fitted(pieces(place, 16, 4), text)
    module = Bert(**input.sizes()).eval()
    shutil.rmtree(place)
    again = pieces(place, 16, 4)
    again.restore(json.loads(json.dumps(input.state())))
    empty = Bert(**again.sizes()).eval()
    empty.load_state_dict(module.state_dict())
    assert torch.equal(vectors(empty, batch(again, new)), vectors(module, batch(input, new)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 41}, "max_length must be from 3 to the model's 40, got 41"),
        ({"max_length": 2}, "max_length must be from 3 to the model's 40, got 2"),
        ({"max_length": 16, "overlap": 14}, "overlap must be from 0 to max_length - 3, got 14"),
        ({"overlap": -1}, "overlap must be from 0 to max_length - 3, got -1"),
    ],
)
def test_a_wrong_setting_says_what_it_may_be(folder: Path, settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        pieces(folder, **settings).fit(random_text(2), [])
