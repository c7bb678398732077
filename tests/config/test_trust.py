"""Files of strangers are data: configs and results call nothing, look nothing up, and load no pickle."""

import json
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from attack import Attack, configure, unmarked
from omegaconf import OmegaConf
from safetensors.torch import save_file

from ner_experiments import build, train
from ner_experiments.analysis.archive import archive
from ner_experiments.build import load_with_corpus
from ner_experiments.config import plain_yaml, safe_yaml
from ner_experiments.runs.artifacts import read_config
from ner_experiments.runs.run import Run
from ner_experiments.tables import collecting, results_folder, spec


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(train.train(configure(f"output_dir={tmp_path_factory.mktemp('outputs')}"))["folder"])


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the run to tamper with."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    yield from unmarked(tmp_path)


def test_the_attack_works_on_whoever_unpickles(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Attack(tmp_path / "executed")))
    assert (tmp_path / "executed").exists()


# Configs


def rewrite(run: Path, place: str, value: Any) -> None:
    cfg = OmegaConf.load(run / "config.yaml")
    OmegaConf.update(cfg, place, value, force_add=True)
    OmegaConf.save(cfg, run / "config.yaml")


EVERY_PART = [
    "model",
    "decoder",
    "optimizer",
    "words.input",
    "words.module",
    "data",
    "logger",
    "batches",
    "init_from.x",
]
FOREIGN = [
    "os.system",
    "builtins.eval",
    "builtins.exec",
    "subprocess.Popen",
    "torch.load",
    "torch.hub.load",
    "torch.utils.cpp_extension.load",
    "torch.nn.init.torch.load",
    "torch.nn.modules.module.torch.hub.load",
    "torch.nn.utils.parametrize.copy.os.system",
    "torch.optim.lr_scheduler.LambdaLR",
    "torch.serialization.load",
    "numpy.load",
    "pickle.loads",
    "hydra.utils.instantiate",
    "hydra.utils.get_method",
    "hydra.utils.get_class",  # without the path that is to be looked at
    "ner_experiments.build.torch.load",
    "ner_experiments.runs.provenance.subprocess.run",
    "ner_experiments.runs.provenance.git",
    "ner_experiments.utils.files.os.system",
    "ner_experiments.data.download.download",
    "ner_experiments.utils.files.Path",
    "ner_experiments.models.residual.nn.Module",
    "ner_experiments.models.residual.BiRNN.register_forward_hook",
    "ner_experiments.models.nothing.Here",
    "ner_experiments.models.residual.nothing",
    "ner_experiments.train.train",
    "lightning.pytorch.Trainer",
    ".",
    "",
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_config_may_have_nothing_called_but_what_ours_have(foreign: str, run: Path) -> None:
    rewrite(run, "model._target_", foreign)
    message = (
        f"{run}/config.yaml: model._target_: conf/ does not name {foreign!r}; if it is your own, repeat the command "
        "with --config-dir and the folder of the configs that name it; else a run may name a class of "
        "ner_experiments.models, or what is directly in torch.nn, torch.optim, torch.nn.init"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        build.load(run)


@pytest.mark.parametrize("part", EVERY_PART)
def test_in_no_part_of_a_config(part: str, run: Path, mark: Path) -> None:
    rewrite(run, f"{part}._target_", "os.system")
    rewrite(run, f"{part}._args_", [f"touch {mark}"])
    metrics = json.loads((run / "metrics.json").read_text())
    for load in (
        build.load,
        load_with_corpus,
        lambda run: archive(Run(run, metrics), run / "archived.json", "row"),
    ):
        with pytest.raises(
            ValueError, match=rf"config.yaml: {part}._target_: conf/ does not name 'os.system'"
        ):
            load(run)


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("chars.module.widths", [[{"_target_": "builtins.print"}]], "chars.module.widths.0.0._target_"),
        ("model.cell.path", "subprocess.Popen", "model.cell.path"),
        ("model.cell", {"_target_": "hydra.utils.get_class", "_args_": ["os.system"]}, "model.cell._target_"),
        ("model.cell._recursive_", {"deep": {"_target_": "os.system"}}, "model.cell._target_"),
        ("data.files", {"train": {"_target_": "os.getenv", "key": "HOME"}}, "data.files.train._target_"),
        ("model._target_", ["os.system"], "model._target_"),
        ("model._target_", {"_target_": "os.system"}, "model._target_"),
        ("model._target_", 7, "model._target_"),
        ("model._target_", None, "model._target_"),
    ],
)
def test_nor_hidden_deeper_or_behind_other_keys(place: str, value: Any, named: str, run: Path) -> None:
    rewrite(run, place, value)
    with pytest.raises(ValueError, match=rf"config.yaml: {named}: conf/ does not name "):
        build.load(run)


@pytest.mark.parametrize(
    "reference",
    [
        "${oc.env:SECRET}",
        "${oc.env:SECRET,none}",
        "a ${seed} b",
        "${oc.decode:${oc.env:SECRET}}",
        "${model.x}",
        "${",
    ],
)
def test_a_config_looks_nothing_up(reference: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("  name: toy_en\n", f"  name: '{reference}'\n"))
    for load in (build.load, load_with_corpus, read_config):
        with pytest.raises(
            ValueError, match=r"data.name: .* are values, not interpolations, got '.*\$\{"
        ) as error:
            load(run)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!python/object/apply:os.system [true]", "tags are not allowed, got 'tag:yaml.org,2002:python/"),
        ("a: !!python/name:os.system", "tags are not allowed, got 'tag:yaml.org,2002:python/"),
        ("a: [", "did not find expected node content"),
        ("- a", "expected the settings of a run, got a list"),
        ("3", "expected a mapping, got '3'"),
        ("true", "expected a mapping, got 'true'"),
        ("model: {}", "expected the settings of a run, it lacks init_from, data, words"),
        ("a: \udcff", ":1: not UTF-8 (invalid start byte at byte 4 of the line)"),
    ],
)
def test_what_is_no_config_is_refused_in_a_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=f"{tmp_path}/config.yaml:") as error:
        read_config(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "choice",
    [
        "model.cell.path=torch.nn.RNN",
        "model.activation.path=torch.nn.Tanh",
        "optimizer._target_=torch.optim.RAdam",
        "model._target_=ner_experiments.models.stacked.StackedBiLSTM",
    ],
)
def test_what_the_command_line_may_choose_can_be_loaded(choice: str) -> None:
    safe_yaml.refuse_foreign(OmegaConf.to_container(configure(choice), resolve=True), "here")


def test_an_archived_table_executes_and_looks_up_nothing(tmp_path: Path, mark: Path) -> None:
    """The overrides that its page is made with are composed again; for table 5 that reads the corpus."""
    cfg = configure("data._target_=os.system", f"+data._args_=[touch {mark}]")
    with pytest.raises(ValueError, match=r"the corpus: data._target_: conf/ does not name 'os.system'"):
        collecting.figures_by_seed(spec.CHUNK, {}, cfg.data)
    about = {"table": "li2020_table5", "overrides": ["data.folder=${oc.env:SECRET}"]}
    (tmp_path / "table.json").write_text(json.dumps(about))
    with pytest.raises(
        ValueError, match=r"table.json: overrides must be values, not references, got 'data.f"
    ):
        results_folder.write(tmp_path)


WITHOUT_LIBYAML = """
import sys
from pathlib import Path
import yaml
yaml.__with_libyaml__ = False
from ner_experiments.config import plain_yaml
assert issubclass(plain_yaml.Loader, yaml.SafeLoader)
print(plain_yaml.load(Path(sys.argv[1])))
"""


def test_configs_are_read_as_omegaconf_reads_them_with_and_without_libyaml(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    text = "a: 1e-3\nb: [yes, 2020-01-01, .inf, 1:30, 1_0e5, 1., 0x1F, 1e]\nc: {d: 'x', 1: null}\n"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBYAML, str(path)], capture_output=True, text=True, check=True
    )
    expected = OmegaConf.to_container(OmegaConf.create(text))
    assert issubclass(plain_yaml.Loader, yaml.CSafeLoader)
    assert plain_yaml.load(path) == expected
    assert done.stdout == f"{expected}\n"


# Weights


def test_weights_are_never_unpickled(run: Path, mark: Path) -> None:
    torch.save({"model": Attack(mark)}, run / "model.safetensors")
    with pytest.raises(ValueError, match=r"model.safetensors: expected weights as safetensors: "):
        build.load(run)


@pytest.mark.parametrize("content", ["{", "[]", '{"task": "mentions", "labels": ["O"]}', '{"task": 1}'])
def test_what_no_encoder_has_learned_is_refused_with_its_file(content: str, run: Path) -> None:
    (run / "encoder.json").write_text(content)
    with pytest.raises(ValueError, match=f"^{run}/encoder.json: expected the state of the fitted inputs: "):
        build.load(run)


def test_weights_of_another_model_are_refused_with_their_file(run: Path) -> None:
    save_file({"output.bias": torch.zeros(2)}, run / "model.safetensors")
    with pytest.raises(ValueError, match=f"^{run}/model.safetensors: .*size mismatch for output.bias"):
        build.load(run)
