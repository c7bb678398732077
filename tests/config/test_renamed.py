"""Runs and archives of earlier versions, rewritten as those wrote them, are read like those of now."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from attack import configure
from omegaconf import OmegaConf

from ner_experiments import train
from ner_experiments.analysis.archive import archive, run_errors
from ner_experiments.config import renamed
from ner_experiments.config.compose import compose
from ner_experiments.config.identity import counted, identity
from ner_experiments.main import cli
from ner_experiments.runs.archived_run import open_archived_run
from ner_experiments.runs.artifacts import CHECKSUM, FILES, add_checksum, read_config
from ner_experiments.runs.run import open_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("outputs")
    return Path(train.train(configure(f"output_dir={output}", "audit.test_every_epoch=true"))["folder"])


def rechecksummed(content: dict[str, Any]) -> str:
    return json.dumps(add_checksum({name: value for name, value in content.items() if name != CHECKSUM}))


@pytest.fixture
def old(finished: Path, tmp_path: Path) -> Path:
    """The run as the first version wrote it: its settings' names, logger, file of test scores and checksums."""
    run = Path(shutil.copytree(finished, tmp_path / finished.parent.name / finished.name))
    cfg: Any = OmegaConf.to_container(OmegaConf.load(run / "config.yaml"))
    cfg["first"] = cfg.pop("init_from")
    cfg["audit"] = {"peek": cfg["audit"]["test_every_epoch"], "gradients": 0}
    cfg["logger"]["_target_"] = "ner_experiments.loggers.csv"
    del cfg["sweep"]
    OmegaConf.save(OmegaConf.create(cfg), run / "config.yaml")
    (run / "test_every_epoch.csv").rename(run / "peek.csv")
    metrics = json.loads((run / "metrics.json").read_text())
    del metrics[FILES]["config.yaml"]
    metrics[FILES]["peek.csv"] = metrics[FILES].pop("test_every_epoch.csv")
    (run / "metrics.json").write_text(rechecksummed(metrics))
    return run


def test_its_settings_have_the_names_of_now_and_the_identity_they_had(old: Path, finished: Path) -> None:
    cfg = read_config(old)
    assert cfg.init_from == {}
    assert cfg.audit == {"test_every_epoch": True, "gradients": 0}
    assert cfg.logger._target_ == "ner_experiments.loggers.base.csv"
    metrics = json.loads((finished / "metrics.json").read_text())
    assert identity(cfg, metrics["checksum"]) == metrics["identity"]
    assert counted(cfg) == counted(read_config(finished))


def test_its_test_scores_of_each_epoch_are_read(old: Path, finished: Path) -> None:
    with (finished / "test_every_epoch.csv").open() as file:
        expected = [100 * float(row["test_f1"]) for row in csv.DictReader(file)]
    assert open_run(old).test_every_epoch() == expected
    assert expected
    (old / "peek.csv").write_text("epoch,test_f1\n1,1.0\n")
    with pytest.raises(ValueError, match=r"peek.csv is damaged"):
        open_run(old).test_every_epoch()


def test_it_can_tag_and_be_shown(old: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Ann lives in Rome .\n")
    assert cli(["predict", str(old), str(tmp_path / "text.txt")]) == 0
    assert cli(["errors", str(old)]) == 0
    assert cli(["watch", "--once", "--output", str(old.parent.parent)]) == 0
    assert "1 done" in capsys.readouterr().out


def test_its_archive_has_the_names_of_now(old: Path, tmp_path: Path) -> None:
    archive(open_run(old), tmp_path / "now.json", "row")
    content = json.loads((tmp_path / "now.json").read_text())
    content["peeked"] = content.pop("test_every_epoch")
    content["config"]["first"] = content["config"].pop("init_from")
    errors = content["errors"]
    errors["kinds"] |= {"missed": errors["kinds"].pop("missing"), "invented": errors["kinds"].pop("spurious")}
    for scores in (
        errors["outcomes"],
        *(it for groups in errors["breakdown"].values() for it in groups.values()),
    ):
        scores["right"] = scores.pop("correct")
    (tmp_path / "old.json").write_text(rechecksummed(content))
    now, earlier = (open_archived_run(tmp_path / name) for name in ("now.json", "old.json"))
    assert earlier.test_every_epoch() == now.test_every_epoch() == open_run(old).test_every_epoch()
    assert run_errors(earlier).record() == run_errors(now).record() == run_errors(open_run(old)).record()
    assert earlier.settings() == now.settings() == counted(read_config(old))


@pytest.mark.parametrize(
    ("override", "now"),
    [("audit.peek=true", "audit.test_every_epoch"), ("+first.words.dim=3", "init_from.words.dim")],
)
def test_an_override_with_an_earlier_name_is_answered_by_the_name_of_now(override: str, now: str) -> None:
    key = override.partition("=")[0].removeprefix("+")
    message = f"{override}: there is no setting {key!r}; it is called {now} now"
    with pytest.raises(ValueError, match=re.escape(message)):
        compose([override])


@pytest.mark.parametrize("target", renamed.TARGETS.values())
def test_every_name_of_now_is_one_that_conf_has(target: str) -> None:
    files = Path(renamed.__file__).parents[2].joinpath("conf").rglob("*.yaml")
    assert any(f"_target_: {target}" in file.read_text() for file in files)
