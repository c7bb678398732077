"""What comes from others is data: configs, weights, checkpoints, caches and results execute nothing here."""

import ast
import hashlib
import itertools
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import pytest
import tiny_bert
import torch
from omegaconf import DictConfig, OmegaConf

from ner_experiments import build, checkpoints, pages, run_config, runs, settings, train
from ner_experiments.analysis import figures, measure, trained
from ner_experiments.data import bert_files, frozen, vectors

PACKAGE = Path(run_config.__file__).parent
SMALL = [
    "model=residual",
    "model.hidden_size=8",
    "model.dense_size=8",
    "chars.module.num_filters=4",
    "data.max_sentences=20",
    "trainer=smoke",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]


def configure(*overrides: str) -> DictConfig:
    with settings.conf():
        return hydra.compose(settings.ROOT, overrides=[*SMALL, *overrides])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(train.train(configure(f"output_dir={tmp_path_factory.mktemp('outputs')}"))["folder"])


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy to be tampered with."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def execute(mark: Path) -> None:
    mark.touch()


class Attack:
    """What a pickle can do to whoever loads it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.mark}",)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    """Exists when an attack has succeeded."""
    mark = tmp_path / "executed"
    yield mark
    assert not mark.exists()


def test_the_attack_works_on_whoever_unpickles(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Attack(tmp_path / "executed")))
    assert (tmp_path / "executed").exists()


CODE = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "hydra_plugins").glob("*.py")]
ONLY_ERRORS_OF = {"yaml", "tarfile", "runpy"}
ONLY_ERRORS_OF |= {"pickle", "_pickle", "shelve", "marshal", "dill", "cloudpickle", "joblib"}
"""What is imported of these are errors. YAML is read by OmegaConf, whose loader makes no objects."""
BUILTINS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    "system",
    "popen",
    "extract",
    "extractall",
    "unpack_archive",
    "load_from_checkpoint",
    "read_pickle",
}
SAFE = {
    "np.load": ("allow_pickle", False),
    "torch.load": ("weights_only", True),
    "make_model.from_pretrained": ("weights_only", True),
}


def test_no_code_of_ours_unpickles_evaluates_or_unpacks() -> None:
    for node in itertools.chain.from_iterable(ast.walk(ast.parse(path.read_bytes())) for path in CODE):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & (ONLY_ERRORS_OF - {"yaml"})
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in ONLY_ERRORS_OF:
            assert all(alias.name.endswith("Error") for alias in node.names)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in BUILTINS
            assert name.rpartition(".")[2] not in METHODS
            assert not name.startswith("yaml.") or name == "yaml.parse"  # into events, not objects
            given = {item.arg: item.value for item in node.keywords}
            assert "shell" not in given
            if name in SAFE:
                argument, value = SAFE[name]
                assert ast.literal_eval(given[argument]) is value, name


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
    "first.x",
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
    "ner_experiments.results.subprocess.run",
    "ner_experiments.results.git",
    "ner_experiments.atomic.os.system",
    "ner_experiments.data.download.download",
    "ner_experiments.data.checksum.Path",
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
        f"{run}/config.yaml: model._target_: a run may name what conf/ names, a class of "
        "ner_experiments.models, or what is directly in torch.nn, torch.optim, torch.nn.init, "
        f"got {foreign!r}"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        build.load(run)


@pytest.mark.parametrize("part", EVERY_PART)
def test_in_no_part_of_a_config(part: str, run: Path, mark: Path) -> None:
    rewrite(run, f"{part}._target_", "os.system")
    rewrite(run, f"{part}._args_", [f"touch {mark}"])
    with pytest.raises(ValueError, match=rf"config.yaml: {part}._target_: .* got 'os.system'"):
        build.load(run)
    with pytest.raises(ValueError, match=rf"config.yaml: {part}._target_: .* got 'os.system'"):
        trained.load(run)
    with pytest.raises(ValueError, match=rf"config.yaml: {part}._target_: .* got 'os.system'"):
        runs.keep(runs.Run(run, json.loads((run / "metrics.json").read_text())), run / "kept.json", "row")


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
    with pytest.raises(ValueError, match=rf"config.yaml: {named}: a run may name .* got "):
        build.load(run)


@pytest.mark.parametrize(
    "reference",
    [
        "${oc.env:SECRET}",
        "${oc.env:SECRET,none}",
        "a ${seed} b",
        "${oc.decode:${oc.env:SECRET}}",
        "${model.x}",
    ],
)
def test_a_config_looks_nothing_up(reference: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    rewrite(run, "data.name", reference)
    for load in (build.load, trained.load, run_config.read):
        with pytest.raises(
            ValueError, match=r"data.name: .* are values, not references, got '.*\$\{"
        ) as error:
            load(run)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!python/object/apply:os.system [true]", "could not determine a constructor for the tag"),
        ("a: !!python/name:os.system", "could not determine a constructor for the tag"),
        ("a: [", "expected the node content"),
        ("a: ${", "no viable alternative"),
        ("- a", "expected the settings of a run, got a list"),
        ("model: {}", "expected the settings of a run, it lacks data, words, chars"),
        ("a: \udcff", "can't decode byte 0xff"),
    ],
)
def test_what_is_no_config_is_refused_in_a_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=f"{tmp_path}/config.yaml: ") as error:
        run_config.read(tmp_path)
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
    run_config.refuse_foreign(OmegaConf.to_container(configure(choice), resolve=True), "here")


def test_a_kept_table_has_nothing_called_and_looks_nothing_up(tmp_path: Path, mark: Path) -> None:
    """The overrides that its page is made with are composed again; for table 5 that reads the corpus."""
    cfg = configure("data._target_=os.system", f"+data._args_=[touch {mark}]")
    with pytest.raises(ValueError, match=r"the corpus: data._target_: a run may name .* got 'os.system'"):
        figures.by_seed(measure.CHUNK, {}, cfg.data)
    about = {"table": "li2020_table5", "overrides": ["data.folder=${oc.env:SECRET}"]}
    (tmp_path / "table.json").write_text(json.dumps(about))
    with pytest.raises(
        ValueError, match=r"table.json: overrides must be values, not references, got 'data.f"
    ):
        pages.write(tmp_path)


# Weights, checkpoints and caches


def test_weights_are_never_unpickled(run: Path, mark: Path) -> None:
    torch.save({"model": Attack(mark)}, run / "model.safetensors")
    with pytest.raises(ValueError, match=r"model.safetensors: expected weights as safetensors: "):
        build.load(run)


def test_a_checkpoint_with_code_in_it_is_no_checkpoint(
    tmp_path: Path, mark: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where PyTorch is told to trust everything; the run starts anew and ends as it should."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    cfg = configure(f"output_dir={tmp_path}")
    folder = Path(train.train(cfg)["folder"])
    (folder / "metrics.json").unlink()
    state = {"callbacks": {"LastCheckpoint": {"made_by": checkpoints.made_by()}}}
    content = {**state, "loops": Attack(mark)}
    checkpoints.InPlace().save_checkpoint(content, folder / checkpoints.NAME)  # with its checksum
    assert checkpoints.resumable(folder) is None
    assert f"{folder}/last.ckpt is damaged (UnpicklingError); the run starts anew" in caplog.text
    assert train.train(cfg)["epochs"] == 1


def with_code(path: Path, mark: Path) -> None:
    np.save(path, np.array([Attack(mark)], dtype=object), allow_pickle=True)


def test_a_cache_of_vectors_with_code_in_it_is_made_again(tmp_path: Path, mark: Path) -> None:
    """Even if its checksum is right, which is only to find accidents."""
    (tmp_path / "vectors.txt").write_text("cat 1 2\ndog 3 4\n")
    words, cache = ["cat", "dog"], tmp_path / "cache"
    expected = vectors.load_vectors(tmp_path / "vectors.txt", words, cache=cache).matrix.copy()
    (summary,) = cache.glob("*.json")
    entry = summary.with_suffix("")
    with_code(entry.with_suffix(".matrix.npy"), mark)
    steps = json.loads(summary.read_text())["steps"]
    summary.write_text(json.dumps({"steps": steps, "checksum": vectors._checksum(entry, steps)}))
    again = vectors.load_vectors(tmp_path / "vectors.txt", words, cache=cache)
    np.testing.assert_array_equal(again.matrix, expected)


def test_a_cache_of_bert_with_code_in_it_does_not_count(tmp_path: Path, mark: Path) -> None:
    path = tmp_path / "x.bert.npy"
    with_code(path, mark)
    path.write_bytes(path.read_bytes() + hashlib.sha256(path.read_bytes()).digest())
    assert frozen._load(path, (1,)) is None


def test_a_berts_weights_with_code_in_them_are_refused(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    folder = tiny_bert.save(tmp_path)
    torch.save({"embeddings": Attack(mark)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(
        ValueError, match=r"pytorch_model.bin: damaged, or more than weights \(UnpicklingError\)$"
    ):
        bert_files.read_model(folder)


FETCHED = {
    "attn_implementation": "somebody/kernel",
    "_attn_implementation": "somebody/kernel",
    "auto_map": {"AutoModel": "modeling.Model", "AutoConfig": "modeling.Config"},
    "trust_remote_code": True,
    "quantization_config": {"quant_method": "somebodys"},
    "dtype": "load",
}
"""Settings by which transformers is told to fetch and run code, or to look names up."""


@pytest.mark.parametrize("name", FETCHED)
def test_a_bert_that_names_code_of_its_own_is_not_asked_for_it(name: str, tmp_path: Path, mark: Path) -> None:
    """Neither the folder of one, nor what a run keeps of its config."""
    folder = tiny_bert.save(tmp_path / "bert")
    (folder / "modeling.py").write_text(f"open({str(mark)!r}, 'w')")
    config = bert_files.read_config(folder) | {name: FETCHED[name]}
    plain = settings_of(bert_files.read_model(folder))
    (folder / "config.json").write_text(json.dumps(config))
    for made in (bert_files.read_model(folder), bert_files.untrained(config)):
        assert type(made).__name__ == "BertModel"
        assert settings_of(made) == plain
    with pytest.raises(ValueError, match="model_type must be bert or ernie, got 'somebodys'"):
        bert_files.untrained({**config, "model_type": "somebodys"})


def settings_of(bert: Any) -> dict[str, Any]:
    of_the_folder = ("_name_or_path", "dtype")
    return {name: value for name, value in bert.config.to_dict().items() if name not in of_the_folder}
