"""A run's identity: what must change it, what must not, and that all shipped choices have distinct ones."""

import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.choices import merged
from ner_experiments.config.conf import hydra_context
from ner_experiments.config.config_dirs import CONF
from ner_experiments.config.identity import counted, identity, run_folder


@pytest.fixture(autouse=True, scope="module")
def _conf() -> Iterator[None]:
    with hydra_context():
        yield


def compose(*overrides: str) -> DictConfig:
    return merged(overrides)


@cache
def name(*overrides: str, checksum: str = "abc") -> str:
    return identity(compose(*overrides), checksum)


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def test_it_is_a_digest_and_the_same_each_time() -> None:
    assert re.fullmatch("[0-9a-f]{64}", name())
    assert name() == name()


@pytest.mark.parametrize("group", ["data", "words", "features", "direct", "model"])
def test_every_choice_of_a_group_is_another_experiment(group: str) -> None:
    """Choices that differ only in the path of a file have distinct identities only if the contents differ."""
    names, settings = {}, {}
    for choice in choices(group):
        cfg = compose(f"{group}={choice}")
        names[choice] = identity(cfg, "abc")
        settings[choice] = re.sub(r"(?m)^ *path: (?!torch|ner_exp).*\n", "", OmegaConf.to_yaml(cfg[group]))
    assert len(set(names.values())) == len(set(settings.values())) > 0
    assert identity(compose(), "abc") in names.values()  # the default is one of them


@pytest.mark.parametrize(
    "override",
    [
        "layers=3",  # with a model that has layers
        "model.hidden_size=299",
        "trainer.max_epochs=51",
        "trainer.precision=bf16-mixed",
        "trainer.train_batches=2",
        "data.max_sentences=100",
        "data.sentences.train=999",
        "data.name=mine",
    ],
)
def test_any_real_setting_makes_another_experiment(override: str) -> None:
    assert name("model=residual", override) != name("model=residual")


COUNT_NOTHING = {
    *("seed", "runtime", "audit", "logger", "data_dir", "output_dir", "cache_dir", "sweep"),
    *("layers", "paper"),
}
"""Parts of the config that say who ran an experiment where, or work through the settings that refer to them."""


def test_every_other_part_of_the_config_counts() -> None:
    parts = {*compose()} - COUNT_NOTHING
    assert {"data", "model", "penalty", "batches", "optimizer", "trainer", "init_from"} <= parts
    for part in parts:
        cfg = compose().copy()
        OmegaConf.update(cfg, part, {"of": "another experiment"}, merge=False, force_add=True)
        assert identity(cfg, "abc") != name(), part


def test_the_contents_of_what_was_read_count() -> None:
    assert name(checksum="abc") != name(checksum="abd")


ELSEWHERE = (
    "seed=2",
    "logger=wandb",
    "runtime.accelerator=gpu",
    "runtime.threads=8",
    "runtime.deterministic=true",
    "runtime.progress=false",
    "data_dir=elsewhere",
    "output_dir=elsewhere",
    "cache_dir=elsewhere",
)


@pytest.mark.parametrize(
    ("base", "overrides"),
    [
        (
            "data=conll2003",
            ("data.folder=elsewhere", "data.files.train=a", "data.sha256.train=b", "data.source=c"),
        ),
        ("data=msra", ("data.tokens=words",)),  # how `predict` cuts text
        ("data=ud_ewt", ("data.url=a", "data.licence=b", "data.sizes.train=1")),
        ("words=glove", ("words.input.path=elsewhere", "words.input.cache=elsewhere")),
        ("words=bert_frozen", ("words.input.path=elsewhere",)),
        ("direct=ner_gazetteer", ("direct.gazetteer.input.folder=elsewhere",)),
        ("paper=yang2020_bert", ("words.input.path=elsewhere",)),  # there in two places
    ],
)
def test_the_seed_and_where_things_are_count_nothing(base: str, overrides: tuple[str, ...]) -> None:
    assert name(base, *ELSEWHERE, *overrides) == name(base)


@pytest.mark.parametrize("model", ["residual", "attention"])
def test_the_knob_is_the_setting_that_it_turns(model: str) -> None:
    assert name(f"model={model}", "layers=3") == name(f"model={model}", "model.num_layers=3")
    assert name(f"model={model}", "layers=3") != name(f"model={model}")


def test_a_constant_rate_of_the_first_step_counts_if_the_second_has_a_schedule() -> None:
    settings: Any = OmegaConf.to_container(compose("paper=yang2020_bert"), resolve=True)
    del settings["init_from"]["schedule"]  # so that the first step has that of the second
    assert identity(OmegaConf.create(settings), "abc") != name("paper=yang2020_bert")


def test_an_unused_setting_does_not_change_the_identity() -> None:
    assert name("model=bilstm", "layers=5") == name("model=bilstm")


def test_a_class_is_no_place_although_it_is_given_by_path() -> None:
    cells = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
    assert len({name("model=residual", f"model.cell.path={cell}") for cell in cells}) == len(cells)


@pytest.mark.parametrize("paper", choices("paper"))
def test_a_papers_settings_are_the_same_when_spelt_out(paper: str) -> None:
    whole, spelt = compose(f"paper={paper}"), compose()
    for part in whole:
        OmegaConf.update(spelt, part, whole[part], merge=False)
    assert identity(spelt, "abc") == identity(whole, "abc")
    assert identity(spelt, "abc") != name() or paper == "none"


def test_the_order_of_settings_is_no_setting() -> None:
    def mixed(node: Any) -> Any:
        names = draw.sample(list(node), len(node)) if isinstance(node, dict) else []
        return {name: mixed(node[name]) for name in names} if names else node

    cfg = OmegaConf.to_container(compose("model=residual", "direct=spelling"))
    for seed in range(5):
        draw = random.Random(seed)
        assert identity(OmegaConf.create(mixed(cfg)), "abc") == name("model=residual", "direct=spelling")


def test_the_config_is_left_as_it_was() -> None:
    cfg = compose("data=conll2003", "words=glove")
    before = OmegaConf.to_yaml(cfg)
    identity(cfg, "abc")
    assert OmegaConf.to_yaml(cfg) == before


def test_a_runs_folder_says_what_it_is() -> None:
    cfg = compose("data=toy_zh", "model=residual", "decoder=softmax", "seed=7", "output_dir=there")
    digest = identity(cfg, "abc")
    assert run_folder(cfg, digest) == Path(f"there/toy_zh-residualbilstm-softmax-{digest[:12]}/seed-7")
    peepholes = compose("data=toy_en", "model=bilstm_huang2015", "decoder=softmax")
    assert run_folder(peepholes, digest).parent.name == f"toy_en-bilstm_peepholelstm-softmax-{digest[:12]}"


def test_settings_of_data_that_are_none_are_refused() -> None:
    """As in a config that was written by hand."""
    cfg = OmegaConf.create({**compose(), "data": 5})
    with pytest.raises(ValueError, match="expected the settings of data or of an input, got 5"):
        counted(cfg)
