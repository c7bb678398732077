"""Tests of the files by which others read the scores of a comparison, with their own schema and parsers."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
from huggingface_hub.repocard_data import model_index_to_eval_results

from ner_experiments import compare
from ner_experiments.comparison.publishing import publish

SCHEMA = json.loads(Path(__file__).with_name("every_eval_ever.schema.json").read_text(encoding="utf-8"))
GOLD = "EU B-ORG\nrejects O\nGerman B-MISC\ncall O\n\nPeter B-PER\nBlackburn I-PER\n\n"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (tmp_path / "test.conll").write_text(GOLD)
    (tmp_path / "1.conll").write_text(GOLD.replace("B-MISC", "O"))
    (tmp_path / "2.conll").write_text(GOLD.replace("B-ORG", "B-LOC"))
    files = {"of two": [tmp_path / "1.conll", tmp_path / "2.conll"], "of one": tmp_path / "1.conll"}
    publish(compare(tmp_path / "test.conll", files), tmp_path / "out", "user/corpus")
    return tmp_path / "out"


@pytest.mark.parametrize("system", ["of-one", "of-two"])
def test_its_record_has_the_schema_of_every_eval_ever(published: Path, system: str) -> None:
    record = json.loads((published / system / "every_eval_ever.json").read_text())
    jsonschema.validate(record, SCHEMA)
    f1 = record["evaluation_results"][0]["score_details"]
    assert f1["score"] == pytest.approx({"of-one": 4 / 5, "of-two": (4 / 5 + 4 / 6) / 2}[system])
    assert ("uncertainty" in f1) == (system == "of-two")


def test_the_hub_reads_its_metadata(published: Path) -> None:
    metadata = yaml.safe_load((published / "of-one" / "model-index.yaml").read_text())
    name, results = model_index_to_eval_results(metadata["model-index"])
    assert (name, results[0].dataset_type, results[0].metric_type) == ("of one", "user/corpus", "f1")
    assert results[0].metric_value == pytest.approx(0.8)
    (entry,) = yaml.safe_load((published / "of-one" / ".eval_results" / "user-corpus.yaml").read_text())
    expected = EvalResultEntry("user/corpus", "default", 80.0, notes=entry["notes"])
    assert eval_result_entries_to_yaml([expected]) == [entry]
