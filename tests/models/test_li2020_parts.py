"""Parts of the model Att of Li, Fu & Ma (2020) alone, and the figures of its attention."""

import pytest
import torch
from li2020_models import HEAD, LENGTHS, batch, build_small
from torch import Tensor, nn

from ner_experiments.models.attention import only


def table_5(model: nn.Module, x: Tensor) -> tuple[nn.Linear, Tensor, dict[str, Tensor]]:
    """An output layer, the scores, and the scores with one part alone."""
    torch.manual_seed(5)
    output = nn.Linear(model.output_size, 3).double()
    alone = {}
    for part in model.parts():
        with only(part, of=model):
            alone[part] = output(model(x, LENGTHS))
    return output, output(model(x, LENGTHS)), alone


def test_a_part_alone_scores_as_if_the_others_were_zero():
    model, x = build_small("attention"), batch()
    output, scores, alone = table_5(model, x)
    states = model.bilstm(x, LENGTHS)
    contexts, _ = model.attention(states, LENGTHS)
    first, second = contexts.split(HEAD, dim=2)
    vectors = {"H": states, "C": contexts, "C1": first, "C2": second}
    columns = {"H": range(0, 6), "C": range(6, 14), "C1": range(6, 10), "C2": range(10, 14)}
    assert [*alone] == [*vectors]
    for part, vector in vectors.items():
        by_hand = vector @ output.weight[:, [*columns[part]]].T + output.bias
        torch.testing.assert_close(alone[part], by_hand, rtol=0, atol=1e-12)
    whole = alone["H"] + alone["C1"] + alone["C2"] - 2 * output.bias
    torch.testing.assert_close(scores, whole, rtol=0, atol=1e-12)


def test_the_full_output_is_restored_after_a_part_alone():
    model, x = build_small("attention"), batch()
    before, names = model(x, LENGTHS), [*model.state_dict()]
    with only("C1", of=model):
        assert [*model.state_dict()] == names
    assert torch.equal(model(x, LENGTHS), before)
    with pytest.raises(ZeroDivisionError), only("C1", of=model):
        _ = 1 / 0
    assert torch.equal(model(x, LENGTHS), before)


def test_an_unknown_part_is_named():
    model = build_small("attention")
    with (
        pytest.raises(ValueError, match=r"^part must be one of H, C, C1, C2, got 'C3'$"),
        only("C3", of=model),
    ):
        pass
