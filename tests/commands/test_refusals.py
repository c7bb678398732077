"""Invalid settings are refused before any job: in one line, at once, and without a folder left."""

from pathlib import Path
from typing import Any

import pytest
from cases import refused
from in_process import Ner

from ner_experiments.config import values
from ner_experiments.config.job import CommandLine
from ner_experiments.launch import search
from ner_experiments.main import cli

SETTINGS = refused("""
trainer.max_epochs=2.5 -> trainer.max_epochs must be an integer, got 2.5
trainer.max_epochs=null -> trainer.max_epochs must be an integer, got null
+trainer.max_epoch=3 -> no setting 'trainer.max_epoch'; did you mean 'trainer.max_epochs'?
model/norm=none -> model/norm=none: the chosen model has no part 'norm'
modle=bilstm -> no setting 'modle'; did you mean 'model'?
model.num_layer=3 model=stacked -> did you mean 'model.num_layers'?
decoder.constrained=1 -> decoder.constrained must be true or false, got 1
data.max_sentences=many -> data.max_sentences must be an integer, got many
layers=3 -> no part of this experiment has a number of layers to set; with one: model=attention, baseline,
lr=0.1 -> lr=0.1: there is no setting 'lr'; here it is optimizer.lr
optimizer.learning_rate=1 -> 'optimizer.learning_rate'; here it is optimizer.lr
batch_size=8 -> here it is batches.tokens; batches=random has batches.sentences
model.gate_bias=1 -> no setting 'model.gate_bias'; there are: model.hidden_size, model.dropout
seed=1-3 -> seed=1-3: seed must be an integer, got 1-3; for a sweep: seed=range(1,4)
data=conll data.files=my.conll -> data.files must be a mapping, got my.conll
trainer=null -> trainer=null: trainer has no 'null'; there are:
model -> model: expected KEY=VALUE, such as seed=1
data.name=mü -> data.name=mü: quote values with special characters: 'data.name="mü"'
layers=[2 -> layers=[2: not a valid list or mapping: close all brackets
model=residual model/norm=lyer -> model/norm has no 'lyer'; did you mean 'layer'?
""")
VALUES = refused("""
words=bert -> words=bert needs words.input.path=..., a folder, or a name on the Hugging Face hub
words=vectors -> words=vectors needs words.input.path=..., the file of vectors
words=bert_frozen -> words=bert_frozen needs words.input.path=..., a folder
words=glove -> glove.6B.50d.txt: no such file of word vectors
words=bert words.input.path=/no/such -> /no/such: no such folder; give a folder with config.json
direct=gazetteer -> gazetteer: no list in
data=conll2003 -> eng.train, eng.testa, eng.testb
data=conll -> data=conll needs data.name=..., the corpus's name in folders and tables
data=conll data.name=mine -> mine: no file is named; set data.files.train, .dev and .test
data.sentences.train=0 -> toy_en: sentences.train must be at least 1, got 0
runtime.accelerator=gpu -> runtime.accelerator=gpu: there is no GPU here
runtime.accelerator=tpu -> runtime.accelerator must be one of auto, cpu, gpu, cuda, mps, got tpu
model.hidden_size=1000000000000 -> model.hidden_size must be at least 1 and at most 65,536
model.dropout=1.5 -> model.dropout must be at least 0 and below 1, got 1.5
seed=-1 -> seed must be at least 0 and at most 4,294,967,295, got -1
trainer.gradient_clip=nan -> trainer.gradient_clip must be at least 0, got nan
optimizer.lr=1e300 -> optimizer.lr must be above 0 and at most 1e+30, got 1e+300
seed=${nosuch} -> seed: Interpolation key 'nosuch' not found
~seed -> ~seed: an experiment needs each of its settings; to change it: seed=VALUE
~runtime.threads -> ~runtime.threads: an experiment needs each of its settings
output_dir= -> output_dir is empty; the current folder is output_dir=.
output_dir=/dev/null -> output_dir=/dev/null: expected a folder, but /dev/null is not one
output_dir=/dev/null/a/b -> output_dir=/dev/null/a/b: expected a folder, but /dev/null is not one
hydra/launcher=nosuch -> there are: basic, local, slurm
hydra/sweeper=nosuch -> hydra/sweeper has no 'nosuch'; there are: optuna, table
hydra.swep.dir=x -> hydra.swep.dir=x: there is no setting 'hydra.swep.dir'; did you mean 'hydra.sweep.dir'?
hydra/lancher=slurm -> there is no setting 'hydra/lancher'; did you mean 'hydra/launcher'?
+hydra.lancher.gpus=[4] -> there is no setting 'hydra.lancher.gpus'; did you mean 'hydra.launcher.gpus'?
hydra.launcher.partion=x -> did you mean 'hydra.launcher.partition' (hydra/launcher=slurm)?
hydra.launcher.partition=x -> hydra.launcher.partition=x: hydra.launcher.partition needs hydra/launcher=slurm
hydra.launcher.gpus.x=3 -> did you mean 'hydra.launcher.gpus'?
hydra/launcher=local hydra.launcher.minutes=nan -> hydra.launcher.minutes must be at least 0, got nan
""")
"""Beside those of tests/transcript/02_refusals.txt."""


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(values, "lack_of_gpu", lambda: "there is no GPU here")
    monkeypatch.chdir(tmp_path)


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert cli(["train", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.err.endswith("\nNothing was started.\n")
    assert printed.err.count("\n") == 2
    assert not printed.out
    assert not [path for path in Path().iterdir() if path.name != "data"]
    return printed.err


@pytest.mark.parametrize(("overrides", "message"), [*SETTINGS, *VALUES])
@pytest.mark.parametrize("sweep", [[], ["-m", "model.dropout=0.1,0.2"]], ids=["run", "sweep"])
def test_a_wrong_setting_is_refused_before_anything_starts(
    sweep: list[str], overrides: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    varied = [item for item in sweep if item.partition("=")[0] not in overrides]
    assert message in refusal([*varied, *overrides.split()], capsys)


@pytest.mark.parametrize(("overrides", "message"), SETTINGS)
def test_a_config_with_a_wrong_setting_is_not_shown(
    overrides: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refusal(["--cfg", "job", *overrides.split()], capsys)


def test_a_folder_that_cannot_be_made_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Root may write anywhere, and to /proc by its permissions, but nobody can make a folder there."""
    rule = "output_dir=/proc/b/c: no folder can be made in /proc: "
    assert rule in refusal(["output_dir=/proc/b/c"], capsys)


COMMANDS = refused("""
-m model=residual layers=0,1 -> layers must be at least 1
-m table=yang2020_table12 data=toy_en trainer.max_epochs=0 -> trainer.max_epochs must be at least 1
-m table=yang2020_table12 seeds=[1,4294967296] data=toy_en -> seed must be at least 0
-m table=yang2020_table12 data=weibo -> weibo: not found in
-m hydra/sweeper=optuna words=vectors layers=1,2 model=residual -> words=vectors needs words.input.path
-m hydra/launcher=basic trainer=ddp seed=1,2 -> requires hydra/launcher=local or slurm
-m hydra/launcher=basic table=yang2020_table12 data=toy_en trainer=ddp -> requires hydra/launcher=local or slurm
-m hydra/launcher=basic hydra/sweeper=optuna trainer.devices=1,2 -> requires hydra/launcher=local or slurm
-m seed=range(0) -> seed=range(0): no value, so there is nothing to run
-m layers=1,2 model=residual seed=glob(*) -> seed=glob(*): no value, so there is nothing to run
-m data=glob(zzz*) -> data=glob(zzz*): no value, so there is nothing to run
-m chars=none,cnn words=none -> all are none, so the tagger has no input
-m model=parallel,residual penalty=orthogonality -> penalty: OrthogonalityPenalty needs parallel units,
-m hydra/sweeper=optuna model=parallel,residual penalty=orthogonality -> penalty: OrthogonalityPenalty needs
-m hydra/sweeper=basic seed=1,2 -> hydra/sweeper has no 'basic'; there are: optuna, table
-m penalty=none,orthogonality -> penalty: OrthogonalityPenalty needs
-m table=yang2020_table12 data=toy_en penalty=orthogonality -> penalty: OrthogonalityPenalty needs
+init_from={penalty:{_target_:ner_experiments.modules.penalty.OrthogonalityPenalty,weight:0.1}} -> penalty: Orthog
-m words=random,glove -> ; words.input.path is a setting of words=glove alone, and rows with settings of their own
-m words=bert,random -> ; words.input.path is a setting of words=bert alone, and rows with settings of their own
-m words=random,glove words.input.path=x -> words=random has no input.path; with it: glove; rows with settings of
-m words=glove,senna -> or NER_DATA_DIR, the folder that holds your copies
-m direct=none,gazetteer -> folder=...; direct.gazetteer.input.folder is a setting of direct=gazetteer alone, and
seed=0 -m layers=0 -> no part of this experiment has a number of layers
""")


@pytest.mark.parametrize(("arguments", "message"), COMMANDS)
def test_a_wrong_command_is_refused(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(arguments.split(), capsys)


class WithMore:
    def __init__(
        self, *, input_size: int, hidden_size: int, dropout: float, cell: Any, more: int
    ) -> None: ...


class WithLess:
    def __init__(self, *, input_size: int, hidden_size: int, cell: Any) -> None: ...


@pytest.mark.parametrize(
    "command", ["seed=1,2", "model=residual,bilstm", "hydra/sweeper=optuna optimizer.lr=0.1,0.2"]
)
@pytest.mark.parametrize(
    ("kind", "message"),
    [(WithMore, "model.more: {} requires the argument"), (WithLess, "model.dropout: {} has no argument")],
)
def test_a_class_and_its_yaml_that_disagree_are_refused_before_a_sweep(
    command: str,
    kind: type,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = "ner_experiments.models.bilstm.BiLSTM"
    monkeypatch.setattr(target, kind)
    monkeypatch.setattr("ner_experiments.config.targets.with_files", lambda name, _: name)
    assert message.format(target) in refusal(["-m", *command.split()], capsys)


@pytest.mark.parametrize("sweep", ["seed=1,2", "table=yang2020_table12 data=toy_en"])
def test_a_cluster_is_refused_where_there_is_no_slurm(
    sweep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    message = refusal(["-m", "hydra/launcher=slurm", *sweep.split()], capsys)
    assert "SLURM is not installed here (command sbatch not found)" in message


def test_files_and_gpus_of_a_cluster_are_not_looked_for_here() -> None:
    with pytest.raises(ValueError, match="no GPU"):
        values.check_jobs([["runtime.accelerator=gpu"]])
    values.check_jobs([["runtime.accelerator=gpu", "data=conll2003"]], files=False, devices=False)


def test_files_of_a_cluster_are_not_looked_for_before_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sbatch", "srun"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    asked = ["data=conll2003", "hydra/sweeper=optuna", "optimizer.lr=interval(0.1,1)"]
    assert search.planned(CommandLine.of([*asked, "hydra/launcher=slurm"]))
    with pytest.raises(ValueError, match=r"eng\.train, eng\.testa, eng\.testb"):
        search.planned(CommandLine.of(asked))


def test_every_input_that_names_a_place_is_checked() -> None:
    from ner_experiments.config.compose import resolved
    from ner_experiments.config.config_dirs import CONF
    from ner_experiments.config.identity import inputs
    from ner_experiments.data.needed_files import INPUTS

    for group in ("words", "chars", "features", "direct"):
        for path in (CONF / group).glob("*.yaml"):
            for reader in inputs(resolved((f"{group}={path.stem}",))):
                if {"path", "folder"} & reader.keys():
                    assert INPUTS[reader["_target_"].rpartition(".")[2]][0] in reader


def test_a_search_of_shipped_ranges_takes_the_settings_of_its_sweeper(
    ner: Ner,
) -> None:
    items = ["search=residual", "hydra.sweeper.n_trials=3", "audit.test_every_epoch=true,false"]
    assert "audit.test_every_epoch cannot change a result" in ner.error("train", "-m", *items)


@pytest.mark.parametrize(
    ("command", "path", "argument"),
    [("claims", "results/claims.yaml", "--results DIR"), ("tables", "results", "DIR")],
)
def test_without_a_checkout_the_archived_runs_are_said_to_be_in_one(
    command: str, path: str, argument: str, ner: Ner
) -> None:
    assert ner.error(command) == (
        f"{path}: not found; the archived runs are in the repository, not in the installed package: run this in a "
        f"checkout of it, or give the folder as {argument}\n"
    )
