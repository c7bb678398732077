"""Overrides that `compose` accepts and refuses, and its messages."""

import re
import shlex
from pathlib import Path

import pytest
from cases import refused
from omegaconf import OmegaConf

from ner_experiments.config.compose import compose, jobs
from ner_experiments.experiment_data import init_config

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS_IN_DOCS = sorted(
    {found for page in DOCS.glob("*.md") for found in re.findall(r"data\.columns=\{.*?\}", page.read_text())}
)


@pytest.mark.parametrize("override", ["data=conll data.comments", "data=msra data.empty_tag"])
def test_null_is_accepted_where_the_parameter_may_be_none(override: str) -> None:
    data, key = override.split()
    assert OmegaConf.select(compose([data, f"{key}=null"]), key) is None


REFUSED = refused("""
data.encoding=null -> data.encoding must be a text or an integer or a number, got null
data.tag_style=null -> data.tag_style must be a text or an integer or a number, got null
seed=null -> seed must be an integer, got null
init_from={optimizer: {lr: 0.1}} -> init_from has no 'optimizer.lr' yet; to add it: +init_from=
+init_from={optimizer: {lrr: 0.1}} -> there is no setting 'optimizer.lrr'; did you mean 'optimizer.lr'?
+init_from={optimizer: {lr: fast}} -> optimizer.lr must be a number, got fast
init_from.optimizer.lr=0.1 -> init_from has no 'optimizer.lr' yet; to add it: +init_from.optimizer.lr
+init_from.optimizer.lrr=0.1 -> there is no setting 'optimizer.lrr'; did you mean 'optimizer.lr'?
+init_from.optimizer.lr=fast -> optimizer.lr must be a number, got fast
+init_from={optimizer: sgd} -> optimizer must be a mapping, got sgd
output_dir=/tmp/é -> quote values with special characters: 'output_dir="/tmp/é"'
seed=1,2, -> it ends with a comma: write the values of a sweep without spaces
data.comments=# -> quote values with special characters: 'data.comments="#"'
data.name=a=b -> quote values with special characters: 'data.name="a=b"'
data.name=a(b -> Hydra has no such function; to pass this as text, quote it: 'data.name="a(b"'
data.files={train: é} -> not a valid list or mapping: close all brackets, and quote texts with
größe=3 -> expected KEY=VALUE, such as seed=1
seed -> expected KEY=VALUE, such as seed=1
data.columns.pos.tag=1 -> there is no setting 'data.columns.pos.tag'
data.columns.pos=true -> data.columns.pos must be an integer or a text, got true
data.files.more=a -> there is no setting 'data.files.more'
seeds=[1] -> seeds is only for sweeps on the command line (python run.py -m)
table=yang2020_table12 -> table is only for sweeps on the command line (python run.py -m)
sweep.looks=[3,5] -> sweep.looks is only for sweeps on the command line (python run.py -m)
model=residual,stacked -> several values make a sweep: `jobs` returns the overrides of each
logger=[wandb,tensorboard] -> logger takes one choice, not a list
seed=1-3 -> seed must be an integer, got 1-3; for a sweep: seed=range(1,4)
seed=1..3 -> seed must be an integer, got 1..3; for a sweep: seed=range(1,4)
seed=[1,2,3] -> seed must be an integer, got [1,2,3]; for a sweep: seed=1,2,3
seed=range(1,3) -> several values make a sweep: `jobs` returns the overrides of each
""")


@pytest.mark.parametrize(("override", "rule"), REFUSED)
def test_an_override_is_refused_with_the_rule(override: str, rule: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'{override}: {rule}')}"):
        compose(["data=conll", override])


@pytest.mark.parametrize("name", ["schedule", "optimizer.lr", "words.input.cache"])
def test_a_setting_of_the_first_run_can_be_removed(name: str) -> None:
    before, after = (compose(["paper=yang2020_bert", *more]) for more in ([], [f"~init_from.{name}"]))
    assert OmegaConf.select(before.init_from, name) is not None
    assert OmegaConf.select(after.init_from, name) is None


def test_a_first_run_is_the_experiment_with_changes() -> None:
    second = compose(["+init_from={optimizer: {lr: 0.1}, trainer: {max_epochs: 3}}"])
    expected = compose(["optimizer.lr=0.1", "trainer.max_epochs=3"])
    assert init_config(second) == expected
    assert compose(["+init_from.optimizer.lr=0.1", "+init_from.trainer.max_epochs=3"]) == second


def test_a_part_with_a_class_and_an_empty_part_replace_those_of_the_experiment() -> None:
    part = "{_target_: torch.optim.SGD, _partial_: true, lr: 0.1}"
    second = compose(["schedule=linear", f"+init_from={{optimizer: {part}, schedule: {{}}}}"])
    first = init_config(second)
    assert first.optimizer == OmegaConf.create(part)
    assert first.schedule == {}


@pytest.mark.parametrize("text", ["/tmp/é", "#", "a=b", "it's", 'say "é"', "a(b"])
def test_a_text_quoted_as_the_message_says_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="quote") as error:
        compose([f"output_dir={text}"])
    _, _, quoted = str(error.value).removeprefix(f"output_dir={text}").rpartition(": ")
    assert compose(shlex.split(quoted)).output_dir == text


@pytest.mark.parametrize("others", [["data=conll"], ["data=csv"], ["data=csv", "hydra.run.dir=a"]])
@pytest.mark.parametrize("override", [*COLUMNS_IN_DOCS, "data.columns.pos=POS", "+data.columns.pos=POS"])
def test_columns_of_any_name_can_be_set(override: str, others: list[str]) -> None:
    expected = compose([*others, f"++{override.lstrip('+')}"])
    assert compose([*others, override]) == expected
    assert "data.columns={sentence: id, word: form, tag: ner}" in COLUMNS_IN_DOCS
    assert [compose(job).data for job in jobs([*others, override, "seed=1,2"])] == [expected.data] * 2


def test_a_corpus_without_columns_has_none() -> None:
    rule = "data.columns.pos=1: data=jsonl has no columns.pos; with it: conll2000, conll2003"
    with pytest.raises(ValueError, match=f"^{rule}"):
        compose(["data=jsonl", "data.columns.pos=1"])


SHARED = [
    (["model=residual,residual_c", "model.dense_size=7"], ["model.dense_size"]),
    (["decoder=softmax,softmax_sum", "decoder.reduction=token"], ["decoder.reduction"]),
    (
        ["model=attention,cross", "model.num_layers=1", "model.dropout=0.1"],
        ["model.num_layers", "model.dropout"],
    ),
]


@pytest.mark.parametrize(("overrides", "keys"), SHARED, ids=[" ".join(case[0]) for case in SHARED])
@pytest.mark.parametrize("order", [1, -1])
def test_a_setting_of_every_swept_choice_is_set_after_the_choice(
    overrides: list[str], keys: list[str], order: int
) -> None:
    typed = dict(item.split("=") for item in overrides)
    for job in jobs(overrides[::order]):
        assert [str(OmegaConf.select(compose(job), key)) for key in keys] == [typed[key] for key in keys]


def test_a_setting_that_a_swept_choice_lacks_is_refused_with_the_choices_that_have_it() -> None:
    message = r"model.dense_size=7: model=bilstm has no dense_size; with it: residual"
    ways = re.escape("; rows with settings of their own are a file in sweeps/ (docs/own_architecture.md)")
    with pytest.raises(ValueError, match=f"^model=bilstm: {message}{ways}$"):
        jobs(["model=residual,bilstm", "model.dense_size=7"])
    with pytest.raises(ValueError, match=f"^{message}, residual_c$"):
        jobs(["model=bilstm", "model.dense_size=7"])
    rule = "layers=1: no part of this experiment has a number of layers to set; with one: model=stacked"
    with pytest.raises(ValueError, match=f"^model=lstm: {rule}{ways}"):
        jobs(["model=stacked,lstm", "layers=1,2"])


@pytest.mark.parametrize("models", ["bilstm,parallel", "parallel,bilstm"])
def test_an_unknown_setting_of_a_sweep_is_near_one_of_any_model_which_is_named_if_others_lack_it(
    models: str,
) -> None:
    def near(override: str) -> str:
        with pytest.raises(ValueError, match="there is no setting") as error:
            jobs([f"model={models}", "chars=none,cnn", override])
        return str(error.value).rpartition("; ")[2]

    assert near("model.dropuot=3") == "did you mean 'model.dropout'?"
    assert near("model.num_unit=3") == "did you mean 'model.num_units' (model=parallel)?"
    assert near("num_unit=3") == "did you mean 'model.num_units' (model=parallel)?"
    assert near("+init_from.model.num_unit=3") == "did you mean 'model.num_units' (model=parallel)?"
    assert near("chars.module.dims=3") == "did you mean 'chars.module.dim' (chars=cnn)?"
    assert "model.hidden_size (model=bilstm)" in near("model.qqqqqqqq=3")
