"""A whole experiment in one process: selected on dev alone, reproducible, loadable without executing code."""

import json
import re
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import hydra
import pytest
import torch
from omegaconf import DictConfig, open_dict
from places import ROOT
from safetensors.torch import load_file
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from ner_experiments import build, train
from ner_experiments.config.compose import compose
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.runs.run import Run
from ner_experiments.tagger import of_its_size
from ner_experiments.training.progress import hint_of_few_updates
from ner_experiments.training.scoring import Scorer

SMALL = [
    "model.hidden_size=16",
    "chars.module.num_filters=5",
    "data.max_sentences=100",
    "trainer.max_epochs=4",
    "optimizer.lr=0.01",
    "batches.tokens=200",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]


def configure(*overrides: str) -> DictConfig:
    with hydra_context():
        return hydra.compose(CONFIG_NAME, overrides=[*SMALL, *overrides])


def weights(result: dict[str, Any]) -> dict[str, torch.Tensor]:
    return load_file(Path(result["folder"]) / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return train.train(configure(f"output_dir={tmp_path_factory.mktemp('outputs')}"))


def test_another_seed_gives_other_weights_in_a_folder_beside_it(trained: dict[str, Any]) -> None:
    other = train.train(configure(f"output_dir={Path(trained['folder']).parents[1]}", "seed=2"))
    assert not same(weights(trained), weights(other))
    assert Path(trained["folder"]).parent == Path(other["folder"]).parent


def test_the_claims_that_a_run_is_made_for_are_recorded_and_do_not_change_its_identity(
    trained: dict[str, Any], tmp_path: Path
) -> None:
    settings = ("trainer.max_epochs=1", "trainer.train_batches=1")
    result = train.train(configure(f"output_dir={tmp_path}", *settings, "sweep.claims=[0123456789ab]"))
    metrics = json.loads((Path(result["folder"]) / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["claims"] == ["0123456789ab"]
    again = train.train(configure(f"output_dir={tmp_path}", *settings))
    assert again["folder"] == result["folder"]
    assert "claims" not in trained


def test_a_process_that_is_killed_after_it_scored_test_does_not_score_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ner_experiments.loggers import final

    def killed(*_: Any) -> None:
        raise SystemExit(137)

    cfg = configure(f"output_dir={tmp_path}", "trainer.max_epochs=1", "logger=tensorboard")
    monkeypatch.setattr(final, "log_final", killed)
    with pytest.raises(SystemExit):
        train.train(cfg)
    (path,) = tmp_path.glob("*/seed-1/metrics.json")
    monkeypatch.setattr(Scorer, "score", lambda *_: pytest.fail("scored again"))
    assert train.train(cfg)["test"] == json.loads(path.read_text())["test"]


def test_scoring_test_in_every_epoch_changes_nothing_and_is_written_aside(
    trained: dict[str, Any], tmp_path: Path
) -> None:
    result = train.train(
        configure(f"output_dir={tmp_path}", "audit.test_every_epoch=true", "model.hidden_size=16")
    )
    assert same(weights(trained), weights(result))
    assert Path(result["folder"]).parent.name == Path(trained["folder"]).parent.name
    assert [result[name] for name in ("dev", "test", "best_epoch")] == [
        trained[name] for name in ("dev", "test", "best_epoch")
    ]
    test_scores = Run(Path(result["folder"]), result).test_every_epoch()
    assert len(test_scores) == result["epochs"]
    assert test_scores[result["best_epoch"] - 1] == pytest.approx(100 * result["test"]["f1"])
    assert Run(Path(trained["folder"]), trained).test_every_epoch() == []


def test_the_best_epoch_is_restored_not_the_last(tmp_path: Path) -> None:
    """The learning rate ruins the model, so an early epoch is the best; its score is reported."""
    overrides = [
        f"output_dir={tmp_path}",
        "trainer.max_epochs=6",
        "optimizer.lr=0.3",
        "trainer.gradient_clip=0",
    ]
    result = train.train(configure(*overrides))
    rows = (Path(result["folder"]) / "log.csv").read_text().splitlines()
    column = rows[0].split(",").index("dev_f1")
    scores = [float(row.split(",")[column]) for row in rows[1:]]
    assert scores[-1] < max(scores)
    assert result["dev"]["f1"] == max(scores)
    assert result["best_epoch"] == 1 + scores.index(max(scores))


def columns(folder: Path, text: str) -> list[str]:
    """Overrides for a corpus whose three files contain `text`."""
    files = []
    for split in ("train", "dev", "test"):
        (folder / split).write_text(text)
        files.append(f"data.files.{split}={folder}/{split}")
    return ["data=conll", "data.name=conll", *files, f"output_dir={folder}/outputs"]


TAGS = "".join(f"{word}\t{tag}\n" for word, tag in (("a", "DET"), ("cat", "NOUN"), ("sat", "VERB"))) + "\n"


def test_early_stopping_waits_for_its_patience(tmp_path: Path) -> None:
    overrides = ["data.task=tags", "optimizer.lr=1e-300", "trainer.max_epochs=9", "trainer.patience=2"]
    result = train.train(configure(*columns(tmp_path, TAGS + "a\tNOUN\na\tDET\na\tVERB\n\n"), *overrides))
    assert result["dev"]["accuracy"] > 0
    assert result["epochs"] == 3


def test_patience_is_not_lost_before_anything_is_found(tmp_path: Path) -> None:
    """With a learning rate of 0 and a bias against mentions no epoch predicts one, and none counts."""
    overrides = ["optimizer.lr=1e-300", "trainer.max_epochs=5", "trainer.patience=1"]
    text = "it O\n" * 30 + "\nAnn B-PER\nLee I-PER\nFox I-PER\nRay I-PER\nMay I-PER\n\n"
    result = train.train(configure(*columns(tmp_path, text), *overrides))
    assert result["dev"]["f1"] == 0
    assert result["epochs"] == 5


def test_once_something_was_found_each_epoch_takes_of_the_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Including epochs that predict nothing, as after a divergence."""
    scores, compute = chain([0.0, 0.5], repeat(0.0)), TagAccuracy.compute
    monkeypatch.setattr(TagAccuracy, "compute", lambda metric: compute(metric) | {"accuracy": next(scores)})
    overrides = ["data.task=tags", "trainer.max_epochs=9", "trainer.patience=2"]
    result = train.train(configure(*columns(tmp_path, TAGS), *overrides))
    assert (result["best_epoch"], result["epochs"]) == (2, 4)


def test_a_loaded_run_decodes_as_it_did(trained: dict[str, Any]) -> None:
    folder = Path(trained["folder"])
    tagger, encoder = build.load(folder)
    corpus = load_corpus(hydra.utils.instantiate(configure().data))
    encoded = encoder.encode(corpus.splits["test"], torch.device("cpu"))
    metric = SpanF1(encoder.labels)
    for number in range(len(encoded)):
        batch = encoded.batch(torch.tensor([number]).numpy())
        with torch.inference_mode():
            metric.update(tagger.decoder.decode(tagger(batch), batch.mask), batch.tags, batch.mask)
    assert metric.compute() == trained["test"]


@pytest.mark.parametrize("paper", ["huang2015", "zukov2018", "yang2020"])
def test_what_the_suite_trains_it_loads(paper: str, tmp_path: Path) -> None:
    overrides = [
        f"paper={paper}",
        "words=random",
        "direct=spelling",
        "trainer=smoke",
        f"output_dir={tmp_path}",
    ]
    with hydra_context():
        cfg = hydra.compose(CONFIG_NAME, overrides=[*overrides, "data.max_sentences=20"])
    folder = Path(train.train(cfg)["folder"])
    assert not build.load(folder)[0].training


def test_pos_tags_are_scored_by_accuracy(tmp_path: Path) -> None:
    result = train.train(configure(*columns(tmp_path, TAGS * 20), "data.task=tags"))
    assert result["test"]["accuracy"] == 1.0
    assert result["test"]["types"]["NOUN"] == {"accuracy": 1.0, "correct": 20, "gold": 20}


def test_a_corpus_without_test_is_scored_on_dev_alone_and_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train").write_text("Ann B-PER\nsat O\n\n" * 30)
    overrides = [
        "data=conll",
        "data.name=conll",
        f"data.files.train={tmp_path}/train",
        f"output_dir={tmp_path}/outputs",
    ]
    result = train.train(configure(*overrides))
    assert "test" not in result
    assert any("development set" in note for note in result["data"]["notes"])
    monkeypatch.setattr(train, "score_tests", None)
    assert train.train(configure(*overrides)) == result


def test_each_corpus_that_is_refused_leaves_a_traceback_of_its_own(tmp_path: Path) -> None:
    """It stays until the corpus can be read. Both share the experiment's folder, as paths are not part of identity."""
    files = [f"data.files.{split}={split}" for split in ("train", "dev", "test")]
    configs = {
        name: configure(
            "data=conll",
            "data.name=conll",
            *files,
            f"data.folder={tmp_path}/{name}",
            f"output_dir={tmp_path}/runs",
        )
        for name in ("one", "two")
    }
    tracebacks = {}
    for name, cfg in configs.items():
        with pytest.raises(ValueError, match=f"not found in {tmp_path}/{name}") as caught:
            train.train(cfg)
        tracebacks[name] = Path(caught.value.__notes__[0].removeprefix("(traceback: ").removesuffix(")"))
    assert tracebacks["one"].parent == tracebacks["two"].parent
    assert all(f"not found in {tmp_path}/{name}" in path.read_text() for name, path in tracebacks.items())
    (tmp_path / "one").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "one" / split).write_text("Ann B-PER\nsat O\n")
    assert train.train(configs["one"])["test"]["gold"] == 1
    assert not tracebacks["one"].exists()
    assert tracebacks["two"].exists()


def test_a_file_that_changed_after_a_run_is_refused_without_a_trace(tmp_path: Path) -> None:
    changed = tmp_path / "train"
    changed.write_text("Ann B-PER\nsat O\n\n" * 30)
    overrides = ["data=conll", "data.name=conll", f"output_dir={tmp_path}/outputs"]
    train.train(configure(*overrides, f"data.files.train={changed}"))
    before = [*(tmp_path / "outputs").rglob("*")]
    changed.write_text("Ann B-LOC\nsat O\n\n" * 30)
    with pytest.raises(ValueError, match="give the new files another name, or choose another output_dir"):
        train.train(configure(*overrides, f"data.files.train={changed}", "seed=2"))
    assert [*(tmp_path / "outputs").rglob("*")] == before
    train.train(configure(*overrides, f"data.files.train={changed.rename(tmp_path / 'corrected')}"))


def test_what_was_measured_says_where(trained: dict[str, Any]) -> None:
    metrics = json.loads((Path(trained["folder"]) / "metrics.json").read_text())
    assert torch.__version__.startswith(metrics["versions"]["torch"])
    assert metrics["data"]["name"] == "toy_en"
    assert metrics["tokens_per_second"] > 0


BASE = "ner_experiments.models"
ENCODERS = {
    f"model: write `_partial_: true` below `_target_: {BASE}.bilstm.BiLSTM`: input_size is known only later": {
        "_partial_": False
    },
    f"model._target_={BASE}.bilstm.BiLTSM: {BASE}.bilstm has no 'BiLTSM'; did you mean 'BiLSTM'?": {
        "_target_": f"{BASE}.bilstm.BiLTSM"
    },
    f"model._target_={BASE}.bilstn.BiLSTM: {BASE} has no 'bilstn'; did you mean 'bilstm'?": {
        "_target_": f"{BASE}.bilstn.BiLSTM"
    },
    f"model._target_={BASE}.bilstm.Bilstm: {BASE}.bilstm has no 'Bilstm'; did you mean 'BiLSTM'?": {
        "_target_": f"{BASE}.bilstm.Bilstm"
    },
    "model._target_=none_here.BiLSTM: No module named 'none_here'": {"_target_": "none_here.BiLSTM"},
    "model.cell._target_=broken_here.Cell: broken_here: SyntaxError: ": {
        "cell": {"_target_": "broken_here.Cell", "_partial_": True}
    },
    f"model.droput: {BASE}.bilstm.BiLSTM (conf/model/bilstm.yaml) has no argument 'droput': remove the line, or add "
    "it to the class; did you mean 'dropout'?": {"droput": 0.5},
}


@pytest.mark.parametrize("message", ENCODERS)
def test_a_config_of_an_encoder_that_cannot_be_built_is_refused_in_one_line(
    message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_here.py").write_text("class Cell(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(ROOT)
    cfg = configure(f"output_dir={tmp_path / 'outputs'}", "model=bilstm")
    with open_dict(cfg):
        cfg.model.update(ENCODERS[message])
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        train.train(cfg)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_split_with_fewer_sentences_than_processes_is_refused_before_training(
    split: str, tmp_path: Path
) -> None:
    """Each process needs a batch; what a process without one does at the end of all epochs is never reached."""
    files = []
    for name in ("train", "dev", "test"):
        (tmp_path / name).write_text("Ann B-PER\n\n" * (1 if name == split else 2))
        files.append(f"data.files.{name}={name}")
    data = ["data=conll", "data.name=few", f"data.folder={tmp_path}", *files, f"output_dir={tmp_path}/o"]
    message = (
        f"few: {split} has 1 sentence, too few for 2 processes; with trainer.devices=1 each would have one"
    )
    with pytest.raises(ValueError, match=f"^{message}"):
        train.train(configure(*data, "trainer=ddp"))
    assert not [*(tmp_path / "o").glob("*/*/log.csv")]


def test_an_encoder_without_output_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{BASE}.bilstm.BiLSTM.__init__", lambda self, **settings: nn.Module.__init__(self))
    message = (
        f"model: {BASE}.bilstm.BiLSTM has no output_size: set it in the constructor to the size of what it"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        train.train(configure(f"output_dir={tmp_path}", "model=bilstm"))


@pytest.mark.parametrize(("group", "name"), [("models.bilstm", "BiLSTM"), ("modules.chars", "CharCNN")])
def test_a_part_whose_output_size_is_wrong_is_named(
    group: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        f"ner_experiments.{group}.{name}.output_size", property(lambda _: 7, lambda *_: None), raising=False
    )
    message = (
        rf"^ner_experiments.{group}.{name}: expected it to return a tensor of shape \(.*, 7\), which are "
    )
    with pytest.raises(ValueError, match=message):
        train.train(configure(f"output_dir={tmp_path}", "model=bilstm"))


OUTPUTS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "a tensor of shape (2, 3, 4)": lambda x, lengths: x[:, :-1],
    "a tensor of shape (4, 2, 4)": lambda x, lengths: x.transpose(0, 1),
    "a tensor of shape (2, 4)": lambda x, lengths: x.mean(1),
    "a tuple": lambda x, lengths: (x, lengths),
    "a PackedSequence": lambda x, lengths: pack_padded_sequence(x, lengths, batch_first=True),
    "a NoneType": lambda x, lengths: None,
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_of_the_wrong_shape_is_named_with_the_class(output: str) -> None:
    class Own(nn.Module):
        output_size = 4

    returned = OUTPUTS[output](torch.zeros(2, 4, 4), torch.tensor([4, 2]))
    message = "Own: expected it to return a tensor of shape (2, 4, 4), which are batch, time and its output_size, got "
    with pytest.raises(ValueError, match=re.escape(f"{message}{output}") + "$"):
        of_its_size(Own(), returned, 2, 4)


def test_a_decoder_without_num_tags_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ner_experiments.modules.crf.CRF.__init__", lambda self, **_: nn.Module.__init__(self)
    )
    message = (
        "decoder: ner_experiments.modules.crf.CRF has no num_tags: set it in the constructor to the number of"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        train.train(configure(f"output_dir={tmp_path}", "model=bilstm"))


def test_a_corpus_without_a_mention_in_train_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Ada sang."}\n' * 4)
    overrides = ["data=jsonl", "data.name=typo", f"data.files.train={tmp_path}/a.jsonl", "data.held_out=0.5"]
    with pytest.raises(
        ValueError, match=r"typo: train has no mentions \(sentences: 2\); `ner-experiments data check`"
    ):
        train.train(configure(*overrides, f"output_dir={tmp_path}/outputs"))


def test_a_small_corpus_is_told_what_to_set(tmp_path: Path) -> None:
    result = train.train(configure("data=toy_en", "trainer.max_epochs=2", f"output_dir={tmp_path}"))
    assert result["hint"].startswith("only about ")
    assert result["hint"].endswith("such as trainer.max_epochs=100")
    again = train.train(configure("data=toy_en", "trainer.max_epochs=2", f"output_dir={tmp_path}"))
    assert again == result  # as finished runs of a table are asked


def test_a_smoke_run_is_short_on_purpose(tmp_path: Path) -> None:
    smoke = ["data=toy_en", "trainer.train_batches=2", f"output_dir={tmp_path}"]
    assert "hint" not in train.train(configure(*smoke))


@pytest.mark.parametrize(
    ("best", "scores", "updates", "enough", "decays"),
    [
        (2, [0.1, 1.0], 10, 0, False),
        (2, [0.1, 0.2], 999, 3, False),
        (2, [0.1, 0.2], 999, 0, True),
        (1, [0.0, 0.0], 10, 200, True),
        (1, [0.058, 0.0], 10, 200, False),
        (1, [0.2, 0.1], 10, 0, False),
        (2, [0.1, 0.2], 1000, 0, False),
    ],
)
def test_the_hint_is_for_short_runs_that_were_still_improving(
    best: int, scores: list[float], updates: int, enough: int, decays: bool
) -> None:
    hint = hint_of_few_updates(
        {"sentences": 32}, best, scores, updates, decays=decays, score="F1", sentence=9.5
    )
    assert bool(hint) == bool(enough)
    said, smaller = (
        (900, ", or smaller batches, such as batches.sentences=28") if updates == 999 else (10, "")
    )
    assert not hint or hint.endswith(f"such as trainer.max_epochs={enough}{smaller}")
    assert not hint or hint.startswith(f"only about {said} weight updates, and dev F1")


@pytest.mark.parametrize(
    ("tokens", "updates", "proposed"),
    [(512, 328, "=153"), (512, 319, "=153"), (64, 200, "=12"), (64, 100, "")],
)
def test_the_hint_proposes_batches_that_are_enough_but_none_below_the_mean_sentence(
    tokens: int, updates: int, proposed: str
) -> None:
    hint = hint_of_few_updates({"tokens": tokens}, 1, [0.2], updates, decays=False, score="F1", sentence=9.5)
    assert hint.partition("batches.tokens")[2] == proposed


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.name='../up'", "data.name must be printable text without / and"),
        ("logger=wandb logger.project=a/b", r"logger.project must have 1 to 128 characters, none of them / "),
        (f"data.name='{'ñ' * 76}'", "data.name must have at most 150 bytes, got 'ñ"),
        ("optimizer.lr=nan", "optimizer.lr must be above 0"),
        ("words=vectors", "words.input.path has no value, but is required: words.input.path=..."),
        ("seed=${nosuch}", "seed: Interpolation key 'nosuch' not found"),
    ],
)
def test_a_value_that_the_command_line_refuses_is_refused(
    override: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        train.train(compose([*override.split(), f"output_dir={tmp_path}/outputs"]))
    assert not [*tmp_path.iterdir()]
