"""Sparse gradients of weight tables: which taggers have them, and that they change no step."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ner_experiments.build import build
from ner_experiments.config.compose import compose
from ner_experiments.experiment_data import read_data
from ner_experiments.modules.direct import SparseScores
from ner_experiments.modules.lookup import Lookup, set_sparse
from ner_experiments.modules.words import PretrainedEmbedding, RandomEmbedding

NONE = torch.zeros(10, dtype=torch.bool)
FOUND = torch.arange(10) % 2 == 1
IDS = torch.tensor([3, 1, 9, 5, 7, 2, 8, 3, 0, 1])
ACTIVE = [0, 1, 2, 3, 5, 7, 8, 9]
FEATURES = ACTIVE[1:]
"""Without 0, which is padding."""

MODULES: dict[str, tuple[Callable[[], Lookup], Tensor, list[int]]] = {
    "direct": (lambda: SparseScores(num_features=9, num_tags=4), IDS.view(5, 2), FEATURES),
    "random words": (
        lambda: RandomEmbedding(num_words=10, dim=4, singletons=NONE, replace_singletons=0.0),
        IDS,
        ACTIVE,
    ),
    "pretrained words": (
        lambda: PretrainedEmbedding(
            vectors=torch.randn(10, 4), found=FOUND, singletons=NONE, replace_singletons=0.0, trainable=True
        ),
        IDS,
        ACTIVE,
    ),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adagrad])
def test_steps_are_those_with_dense_gradients_and_touch_only_what_was_looked_up(
    kind: Callable[..., torch.optim.Optimizer], name: str
) -> None:
    create, ids, active = MODULES[name]
    modules = [create(), create()]
    modules[1].load_state_dict(modules[0].state_dict())
    set_sparse(modules[0])
    before = table(modules[0]).detach().clone()
    for module in modules:
        optimizer = kind(module.parameters(), lr=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            output = module(ids)
            nn.functional.cross_entropy(output, torch.arange(len(output)) % 4).backward()
            optimizer.step()
    for ours, dense in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        torch.testing.assert_close(ours, dense)
    gradient = table(modules[0]).grad
    assert gradient is not None
    assert gradient.coalesce().indices().flatten().tolist() == active
    rest = [row for row in range(10) if row not in active]
    assert torch.equal(table(modules[0])[rest], before[rest])
    assert not torch.equal(table(modules[0]), before)


def table(module: nn.Module) -> nn.Parameter:
    return max(module.parameters(), key=Tensor.numel)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (
            ["paper=huang2015", "direct=ner", "direct.context.input.columns=[]"],
            {"words", "spelling", "context"},
        ),
        (["optimizer=adagrad", "trainer.gradient_clip=0"], {"words"}),
        (["optimizer=adagrad", "trainer.gradient_clip=5"], set()),
        (["optimizer=sgd", "optimizer.weight_decay=0.1", "trainer.gradient_clip=0"], set()),
        (["optimizer=sgd", "optimizer.momentum=0.9", "trainer.gradient_clip=0"], set()),
        (["optimizer=sgd", "trainer.gradient_clip=0", "trainer.devices=2"], set()),
        (
            ["optimizer=sgd", "~optimizer.weight_decay", "~optimizer.momentum", "trainer.gradient_clip=0"],
            {"words"},
        ),
        (["optimizer=adam", "trainer.gradient_clip=0"], set()),
    ],
)
def test_taggers_have_them_where_they_change_nothing(overrides: list[str], expected: set[str]) -> None:
    cfg = compose(["data=toy_en", "model=bilstm", "chars=none", "model.hidden_size=3", *overrides])
    tagger = build(cfg, read_data(cfg)[1])
    parts = {**tagger.inputs, **tagger.direct}
    assert {name for name, module in parts.items() if getattr(module, "sparse", False)} == expected
