"""Real files, if present: each corpus trains for an epoch, and its gold mentions come out unchanged."""

import json
import os
from pathlib import Path

import hydra
import pytest
from places import ROOT

from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.data.corpus import load
from ner_experiments.data.tags import spans
from ner_experiments.main import cli
from ner_experiments.train import train

DATA = Path(os.environ.get("NER_DATA_DIR", "data"))
PRIMARY_METRIC = {
    "weibo": "f1",
    "msra": "f1",
    "wnut17": "f1",
    "conll2000": "f1",
    "conll2003": "f1",
    "ud_ewt": "accuracy",
}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results" / "corpora").glob("*.json")), ids=lambda path: path.stem
)
def test_the_counts_in_results_are_those_of_the_files(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (DATA / path.stem).is_dir():
        pytest.skip(f"{path.stem} is not here")
    monkeypatch.setenv("NER_DATA_DIR", str(DATA))
    assert cli(["data", "check", path.stem, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PRIMARY_METRIC)
def test_a_corpus_trains_an_epoch(name: str, tmp_path: Path) -> None:
    if not (DATA / name).is_dir():
        pytest.skip(f"{name} is not here")
    small = [
        "model.hidden_size=20",
        "trainer.max_epochs=1",
        "data.max_sentences=150",
        "runtime.progress=false",
    ]
    with hydra_context():
        overrides = [f"data={name}", *small, f"output_dir={tmp_path}", "runtime.accelerator=cpu"]
        cfg = hydra.compose(CONFIG_NAME, overrides=overrides)
    result = train(cfg)
    assert 0 <= result["test"][PRIMARY_METRIC[name]] <= 1
    corpus = load(hydra.utils.instantiate(cfg.data))
    blocks = (Path(result["folder"]) / "predictions/test.conll").read_text(encoding="utf-8").split("\n\n")
    gold = [[line.split(" ")[1] for line in block.split("\n")] for block in blocks if block.strip("\n")]
    if corpus.task == "mentions":
        assert [spans(tags) for tags in gold] == [spans(sentence.tags) for sentence in corpus.splits["test"]]
    else:
        assert gold == [list(sentence.tags) for sentence in corpus.splits["test"]]
