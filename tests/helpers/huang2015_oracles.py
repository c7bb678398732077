"""The oracles of `test_huang2015*`: the paper's equation 3, and its features by brute force."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from ner_experiments.data.sentence import Sentence
from ner_experiments.modules.peephole import PeepholeLayer


def equation_3(layer: PeepholeLayer, xs: Tensor) -> Tensor:
    """States of one sentence [time in], a token at a time, with the paper's diagonal matrices as peepholes."""
    w_xi, w_xf, w_xc, w_xo = layer.input_weight.chunk(4)
    w_hi, w_hf, w_hc, w_ho = layer.state_weight.chunk(4)
    w_ci, w_cf, w_co = (torch.diag(diagonal) for diagonal in layer.peepholes)
    b_i, b_f, b_c, b_o = layer.bias.chunk(4)
    h = c = xs.new_zeros(layer.state_weight.shape[1])
    states = []
    for x in xs:
        i = torch.sigmoid(w_xi @ x + w_hi @ h + w_ci @ c + b_i)
        f = torch.sigmoid(w_xf @ x + w_hf @ h + w_cf @ c + b_f)
        c = f * c + i * torch.tanh(w_xc @ x + w_hc @ h + b_c)
        o = torch.sigmoid(w_xo @ x + w_ho @ h + w_co @ c + b_o)
        h = o * torch.tanh(c)
        states.append(h)
    return torch.stack(states)


def assert_same_up_to_numbering(
    rows: Sequence[Sequence[int]], expected: Sequence[set[object]], num_features: int
) -> None:
    """Check that ids are 1 to `num_features`, padded with 0, and that each marks the rows of one expected feature."""
    ids = [[id for id in row if id] for row in rows]
    assert all(list(row[: len(kept)]) == kept for row, kept in zip(rows, ids, strict=True))
    assert all(1 <= id <= num_features for row in ids for id in row)
    assert sorted(where(ids)) == sorted(where(expected))


def where(rows: Iterable[Iterable[object]]) -> list[list[int]]:
    """For each distinct item, the numbers of the rows that contain it."""
    found: dict[object, list[int]] = {}
    for number, row in enumerate(rows):
        for thing in row:
            found.setdefault(thing, []).append(number)
    return list(found.values())


def ngrams(
    sentence: Sentence, place: int, columns: Sequence[str], window: int
) -> Iterator[tuple[object, ...]]:
    """Every n-gram within the window, with its position; None is before the sentence, ... after it."""
    for column in ("", *columns):
        symbols = sentence.columns[column] if column else sentence.words
        padded = [*[None] * window, *symbols, *[...] * window]
        around = padded[place : place + 2 * window + 1]
        for order in (1, 2, 3) if column else (1, 2):
            for start in range(len(around) - order + 1):
                yield column, start - window, *around[start : start + order]


def longest_names(tokens: Sequence[str], names: set[tuple[str, ...]]) -> list[str]:
    """B, I, E, S or "": names are taken from left to right, longer ones first, unless they overlap."""
    spans = [
        (i, j)
        for i in range(len(tokens))
        for j in range(i + 1, len(tokens) + 1)
        if tuple(tokens[i:j]) in names
    ]
    marks = [""] * len(tokens)
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not any(marks[start:stop]):
            marks[start:stop] = ["S"] if stop - start == 1 else ["B", *"I" * (stop - start - 2), "E"]
    return marks
