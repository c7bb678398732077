"""`export --to hub-folder`, and `load` from such a folder and from a hub, which a local server stands for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from hub_server import Repository, hub
from safetensors.torch import load_file

import ner_experiments
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.frozen import FrozenPieces
from ner_experiments.export import hub as hub_export
from ner_experiments.main import cli
from ner_experiments.runs.run import open_run

TEXT = "Vera Stavsen of Brennholt lives in Vantora."
NAMES = ["README.md", "config.json", "config.yaml", "encoder.json", "metrics.json", "model.safetensors"]


@pytest.fixture(scope="module")
def exported(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "toy"
    arguments = ["export", str(toy_run), "--to", "hub-folder", "--output", str(folder), "--license", "mit"]
    assert cli(arguments) == 0
    return folder


def test_the_folder_tags_as_the_run_does(exported: Path, toy_run: Path) -> None:
    assert sorted(path.name for path in exported.iterdir()) == NAMES
    assert ner_experiments.load(exported).tag(TEXT) == ner_experiments.load(toy_run).tag(TEXT)
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (exported, toy_run))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_card_has_what_the_hub_reads(exported: Path, toy_run: Path) -> None:
    card = (exported / "README.md").read_text(encoding="utf-8")
    _, head, body = card.split("---\n", 2)
    metrics = json.loads((toy_run / "metrics.json").read_text())
    about = yaml.safe_load(head)
    assert (about["library_name"], about["license"]) == ("ner_experiments", "mit")
    assert about["pipeline_tag"] == "token-classification"
    scores = {it["dataset"]["split"]: it["metrics"][0]["value"] for it in about["model-index"][0]["results"]}
    assert scores == {split: round(metrics[split]["f1"], 4) for split in ("dev", "test")}
    for title in ("Use", "Intended use", "Data", "Scores", "Limits"):
        assert f"\n## {title}\n\n" in body
    assert metrics["data"]["checksum"] in body
    settings = json.loads((exported / "config.json").read_text())
    assert "B-PER" in settings["id2label"]
    assert settings["model"]["_target_"].startswith("ner_experiments.models.")


def test_the_card_shows_how_to_tag_what_the_run_reads(exported: Path) -> None:
    card = (exported / "README.md").read_text(encoding="utf-8")
    assert 'print(tagger.tag("...")[0].mentions)\n' in card
    assert "expects tokens" not in card
    assert "expect tokens" not in card
    reads = SimpleNamespace(required_columns=lambda: ["pos", "chunk"])
    card = hub_export.text(open_run(exported), reads, None)  # type: ignore[arg-type]
    assert 'print(tagger.tag_words(["..."], pos=["..."], chunk=["..."]).mentions)\n' in card


def test_a_run_whose_vectors_come_from_elsewhere_is_refused(
    toy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = Encoder({"words": FrozenPieces("nowhere", 128, 32, "cache")})
    monkeypatch.setattr(hub_export.build, "load", lambda _: (None, encoder))
    assert cli(["export", str(toy_run), "--to", "hub-folder", "--output", str(tmp_path / "hub")]) == 1
    reason = "its vectors come from a BERT that is not part of the run"
    assert capsys.readouterr().err == f"words: FrozenPieces cannot be exported: {reason}\n"
    assert list(tmp_path.iterdir()) == []


def test_the_card_is_read_by_the_package_of_the_hub(exported: Path) -> None:
    package = pytest.importorskip("huggingface_hub")
    card = package.ModelCard.load(exported / "README.md")
    (dev, test) = card.data.eval_results
    assert (dev.dataset_split, test.dataset_split, test.metric_type) == ("dev", "test", "f1")


def test_an_open_corpus_gives_its_license(toy_run: Path) -> None:
    from omegaconf import OmegaConf

    from ner_experiments.export.hub import licence_of

    for text, expected in (("CC BY 4.0", "cc-by-4.0"), ("LDC user agreement", "other"), (None, "other")):
        assert licence_of(OmegaConf.create({"data": {"licence": text}})) == expected


def test_what_cannot_be_exported_is_said(
    exported: Path, toy_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["export", str(toy_run), "--to", "hub-folder", "--output", str(exported)]) == 1
    assert f"{exported} already exists" in capsys.readouterr().err
    assert cli(["export", str(toy_run), "--license", "mit"]) == 1
    assert capsys.readouterr().err == "--license is for --to hub-folder\n"
    for name, value in (("--format", "onnx"), ("--sentences", "10")):
        assert cli(["export", str(toy_run), "--to", "hub-folder", name, value]) == 1
        assert capsys.readouterr().err == f"{name} is for --to files\n"


@pytest.fixture
def endpoint(exported: Path) -> Iterator[str]:
    with hub(Repository("models", "me/toy", exported)) as url:
        yield url


def test_a_tagger_is_loaded_by_its_name(
    endpoint: str, toy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text(TEXT)
    code = "import sys; from ner_experiments.main import cli; sys.exit(cli(sys.argv[1:]))"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, "predict", run, "text.txt"], capture_output=True, text=True
        )
        for run in (str(toy_run), "me/toy")
    ]
    assert outputs[1].returncode == 0, outputs[1].stderr
    assert outputs[0].stdout == outputs[1].stdout
    assert '"mentions": [{' in outputs[1].stdout
    fetched = {path.name for path in (tmp_path / "cache").rglob("snapshots/*/*")}
    assert fetched == {*NAMES} - {"README.md", "config.json"}
    refused = subprocess.run(
        [sys.executable, "-c", code, "predict", "me/none", "text.txt"], capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("me/none: neither a folder nor on the hub (")
    assert refused.stderr.count("\n") == 1


def test_the_package_of_the_hub_is_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ner_experiments.predict.hub.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"^me/toy: no such folder; .*: pip install huggingface_hub$"):
        ner_experiments.load("me/toy")
