"""The inputs of Li, Fu & Ma (2020): words with case, and typed characters."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from encoders import text
from torch import Tensor, nn

from ner_experiments.data.inputs import case
from ner_experiments.data.inputs_li2020 import TypedCharacters, WordsWithCase
from ner_experiments.modules.inputs_li2020 import KnownWords, TypedCharCNN

VECTORS = {"the": [1.0, -2.0], "house": [3.0, 0.5], "Ghent": [0.25, 4.0], "USA": [-1.0, 7.0]}


TRAIN = text("The house in Ghent", "the USA")
DEV = text("GHENT has the House")


def words(tmp_path: Path, back_off: bool) -> WordsWithCase:
    path = tmp_path / "vectors.txt"
    lines = (" ".join([word, *map(str, numbers)]) for word, numbers in VECTORS.items())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = WordsWithCase(path=str(path), back_off=back_off)
    read.fit(TRAIN, [DEV])
    return read


def rows(read: WordsWithCase, forms: str) -> tuple[KnownWords, Tensor]:
    module = KnownWords(**read.sizes())
    return module, module(torch.from_numpy(read.encode(text(forms)).table))


@pytest.mark.parametrize("back_off", [False, True])
def test_a_known_word_is_its_vector_and_its_own_case_and_others_share_one_vector(
    tmp_path: Path, back_off: bool
):
    lower = {"The": "the", "House": "house"} if back_off else {}
    read = words(tmp_path, back_off)
    forms = "The the house House in Ghent GHENT USA has neverseen"
    module, vectors = rows(read, forms)
    assert module.output_size == 6
    for form, vector in zip(forms.split(), vectors, strict=True):
        known = VECTORS.get(lower.get(form, form))
        if known is None:
            assert torch.equal(vector, module.unknown), form
        else:
            assert vector.tolist() == [*known, *(float(case(form) == number) for number in range(4))], form
    found = 6 if back_off else 4
    assert read.notes() == [
        f"{found} of 9 words ({found / 9:.1%}) have a pre-trained vector: 4 as they are, {found - 4} "
        "lower-cased; the others share a trained one."
    ]


def test_known_words_are_frozen_and_the_unknown_vector_learns_as_a_whole(tmp_path: Path):
    read = words(tmp_path, back_off=False)
    module, before = rows(read, "Ghent in the IN USA")
    assert [name for name, _ in module.named_parameters()] == ["unknown"]
    before.sum().backward()
    assert module.unknown.grad is not None
    assert module.unknown.grad.tolist() == [2.0] * 6  # `in` and `IN`
    torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.1).step()
    after = module(torch.from_numpy(read.encode(text("Ghent in the IN USA")).table))
    assert torch.equal(after[[0, 2, 4]], before[[0, 2, 4]])
    assert torch.equal(after[1], after[3])
    assert (after[1] != before[1]).all()


def test_words_come_back_from_their_state_and_the_weights(tmp_path: Path):
    read = words(tmp_path, back_off=True)
    module, vectors = rows(read, "the GHENT House neverseen")
    (tmp_path / "vectors.txt").unlink()
    again = WordsWithCase(path="elsewhere", back_off=True)
    again.restore(json.loads(json.dumps(read.state())))
    other, _ = rows(again, "the")
    other.load_state_dict(module.state_dict())
    assert torch.equal(
        other(torch.from_numpy(again.encode(text("the GHENT House neverseen")).table)), vectors
    )
    assert again.notes() == []


def test_the_checksum_is_of_the_file_that_was_read(tmp_path: Path):
    read = words(tmp_path, back_off=True)
    expected = hashlib.sha256((tmp_path / "vectors.txt").read_bytes()).hexdigest()
    (tmp_path / "vectors.txt").write_text("the 1 2\n", encoding="utf-8")
    assert read.checksum() == expected


def char_cnn(**changes) -> TypedCharCNN:
    """Small, all numbers random."""
    settings = {"dim": 3, "num_filters": 2, "widths": [1, 2, 3]} | changes
    module = TypedCharCNN(**({**TypedCharacters(max_length=20).sizes(), **settings}))
    return module.double()


def kind(character: str) -> int | None:
    """0 to 3, by Unicode's opinion of an ASCII character."""
    if not character.isascii():
        return None
    return next(
        i for i, yes in enumerate([character.isupper(), character.islower(), character.isdigit(), 1]) if yes
    )


def cnn_by_loop(module: TypedCharCNN, form: str) -> Tensor:
    visible = [chr(code) for code in range(33, 127)]
    order = sorted(visible, key=lambda character: (kind(character), ord(character)))
    chars = []
    for character in [*form[:20], *[""] * (20 - len(form))]:
        number = 0 if not character else order.index(character) + 2 if character in order else 1
        typed = torch.zeros(4, dtype=torch.float64)
        if number > 1:
            typed[kind(character)] = 1
        chars.append(torch.cat([module.vectors[number], typed]))
    maxima = []
    for layer in module.convolutions:
        for weight in layer.weight:
            windows = range(20 - weight.shape[1] + 1)
            scores = [sum(weight[:, k] @ chars[at + k] for k in range(weight.shape[1])) for at in windows]
            maxima.append(torch.stack(scores).max())
    return torch.stack(maxima)


FORMS = ["a", "Ghent", "U.S.", "42", "Čapek", "über-naïve", "x" * 19 + "Y1", "<\\^_{|}~>", "0123456789" * 3]


@pytest.mark.parametrize("forms", [FORMS, FORMS[:3]], ids=["up to 20 characters", "short ones only"])
def test_char_cnn_equals_a_loop_over_positions_and_filters(forms: list[str]):
    torch.manual_seed(0)
    module = char_cnn()
    ids = torch.from_numpy(TypedCharacters(max_length=20).encode(text(" ".join(forms))).table)
    used = ids[:, : int((ids != 0).sum(1).max())]  # a batch drops columns that are padding in every row
    ours, oracle = module(used), torch.stack([cnn_by_loop(module, form) for form in forms])
    torch.testing.assert_close(ours, oracle, rtol=0, atol=1e-10)
    weights, parameters = torch.randn_like(oracle), [*module.parameters()]
    gradients = [torch.autograd.grad((y * weights).sum(), parameters) for y in (ours, oracle)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-10)


def test_padding_takes_part_in_the_maximum_and_what_is_cut_does_not():
    torch.manual_seed(1)
    module, read = char_cnn(), TypedCharacters(max_length=20)
    ids = torch.from_numpy(read.encode(text("house " + 20 * "b" + " " + 20 * "b" + "Z")).table)
    before = module(ids)
    assert torch.equal(before[1], before[2])
    with torch.no_grad():
        module.vectors[0] *= 100
    assert (module(ids) != before).any(1).tolist() == [True, False, False]


def test_a_character_that_is_not_ascii_is_unknown_and_without_type():
    read = TypedCharacters(max_length=3)
    accented, chinese, plain = read.encode(text("éa 中 a")).table.tolist()
    assert (accented, chinese) == ([1, plain[0], 0], [1, 0, 0])
    assert read.sizes()["types"][:2].tolist() == [[False] * 4] * 2
    assert read.sizes()["types"][2:].sum(1).tolist() == [1] * 94


def test_trained_vectors_start_with_deviation_a_tenth_and_filters_glorot_uniform():
    torch.manual_seed(2)
    module = char_cnn(dim=500, num_filters=40)
    assert module.vectors.std().item() == pytest.approx(0.1, rel=0.02)
    assert KnownWords(vectors=torch.zeros(1, 20_000)).unknown.std().item() == pytest.approx(0.1, rel=0.02)
    for width, layer in zip([1, 2, 3], module.convolutions, strict=True):
        bound = (6 / (width * 504 + width * 40)) ** 0.5
        assert 0.99 * bound < layer.weight.abs().max() <= bound
        assert layer.bias is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: char_cnn(dim=0), "dim must be at least 1, got 0"),
        (lambda: char_cnn(num_filters=0), "num_filters must be at least 1, got 0"),
        (lambda: char_cnn(length=0), "length must be at least 1, got 0"),
        (lambda: char_cnn(widths=[]), r"widths must be one or more numbers from 1 to 20, got \[\]"),
        (lambda: char_cnn(widths=[0, 1]), r"widths must be one or more numbers from 1 to 20, got \[0, 1\]"),
        (lambda: char_cnn(widths=[21]), r"widths must be one or more numbers from 1 to 20, got \[21\]"),
    ],
)
def test_a_wrong_setting_is_named(build: Callable[[], nn.Module], message: str):
    with pytest.raises(ValueError, match=f"^{message}$"):
        build()
