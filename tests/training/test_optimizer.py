"""The optimizer of a tagger: which of PyTorch's loops it uses, and that its steps are equal."""

from functools import partial

import pytest
import torch

from ner_experiments.build import build
from ner_experiments.config.compose import compose
from ner_experiments.experiment_data import read_data
from ner_experiments.tagger import Tagger


def tagger(name: str) -> Tagger:
    cfg = compose(["data=toy_en", "model=bilstm", "chars=none", "model.hidden_size=3", f"optimizer={name}"])
    torch.manual_seed(0)
    return build(cfg, read_data(cfg)[1])


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_steps_of_adam_on_a_cpu_are_those_of_the_unfused_loop(name: str) -> None:
    ours, plain = tagger(name), tagger(name)
    optimizers = [each.configure_optimizers() for each in (ours, plain)]
    assert all(group["fused"] for group in optimizers[0].param_groups)
    assert not hasattr(optimizers[0], "_step_supports_amp_scaling"), (
        "Lightning refuses to clip with bf16-mixed"
    )
    for group in optimizers[1].param_groups:
        group["fused"] = False
    for _ in range(20):
        for pair in zip(ours.parameters(), plain.parameters(), strict=True):
            gradient = torch.randn_like(pair[0])
            for weight in pair:
                weight.grad = gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    start = tagger(name)
    for fused, expected, before in zip(
        ours.parameters(), plain.parameters(), start.parameters(), strict=True
    ):
        torch.testing.assert_close(fused, expected, rtol=1e-5, atol=1e-6)
        assert not torch.equal(expected, before)


@pytest.mark.parametrize("name", ["adagrad", "nadam", "sgd"])
def test_others_are_as_pytorch_makes_them(name: str) -> None:
    groups = tagger(name).configure_optimizers().param_groups
    assert not any(group.get("fused") for group in groups)


@pytest.mark.parametrize("choice", ["fused", "foreach"])
def test_a_loop_that_the_config_chooses_is_kept(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tagger("adam")
    monkeypatch.setattr(ours, "make_optimizer", partial(torch.optim.Adam, **{choice: False}))
    (group,) = ours.configure_optimizers().param_groups
    assert group[choice] is False
    assert not group["fused"]
