"""Corpora in their folders, with made files where the real ones are absent: each trains, its gold unchanged."""

import json
import os
from pathlib import Path

import pytest
from in_process import Ner
from omegaconf import OmegaConf
from places import CONF, ROOT

from ner_experiments.commands.smoke import write_corpus
from ner_experiments.config.compose import compose
from ner_experiments.config.stand_ins import build_part
from ner_experiments.data.corpus import load
from ner_experiments.data.tags import spans
from ner_experiments.runs import predictions
from ner_experiments.train import train

DATA = Path(os.environ.get("NER_DATA_DIR", "data"))
IN_FOLDERS = [
    path.stem for path in (CONF / "data").glob("*.yaml") if "folder: ${data_dir}/" in path.read_text()
]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results" / "corpora").glob("*.json")), ids=lambda path: path.stem
)
def test_the_counts_in_results_are_those_of_the_files(
    path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    if not (DATA / path.stem).is_dir():
        pytest.skip(f"{path.stem} is not here")
    monkeypatch.setenv("NER_DATA_DIR", str(DATA))
    assert ner.json("data", "check", path.stem) == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(IN_FOLDERS))
def test_a_corpus_trains_and_its_gold_is_unchanged(name: str, tmp_path: Path) -> None:
    is_here = (DATA / name).is_dir()
    small = ["model.hidden_size=4", "chars=none", "trainer=smoke", "data.max_sentences=150"]
    places = [f"data_dir={DATA if is_here else tmp_path}", f"output_dir={tmp_path}/outputs"]
    cfg = compose([f"data={name}", *small, *places, "runtime.progress=false", "runtime.accelerator=cpu"])
    if not is_here:
        write_corpus(OmegaConf.to_container(cfg.data, resolve=True))  # type: ignore[arg-type]
    source = build_part(cfg.data)
    corpus, result = load(source), train(cfg)
    read = [list, spans][corpus.task == "mentions"]
    gold = [read(it.gold) for it in predictions.read(Path(result["folder"]))]
    assert gold == [read(it.tags) for it in corpus.splits["test"]]
