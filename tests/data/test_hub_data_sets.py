"""`data=hf data.path=user/name`: a data set by its name on a hub, which a local server stands for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import COMMIT, Repository, hub

CARD = """---
configs:
- config_name: en
  data_files:
  - {split: train, path: en/train-*}
  - {split: validation, path: en/validation-*}
- config_name: de
  data_files:
  - {split: train, path: de/train-*}
---
# Toy
"""
NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
FILES: dict[str, tuple[list[list[str]], list[list[int]]]] = {
    "en/train-00000-of-00002": ([["Ada", "Lovelace", "sang"], ["Rain"]], [[1, 2, 0], [0]]),
    "en/train-00001-of-00002": ([["in", "Oslo"]], [[0, 3]]),
    "en/validation-00000-of-00001": ([["Bo", "left"]], [[1, 0]]),
    "de/train-00000-of-00001": ([["Mia", "schrieb"]], [[1, 0]]),
}
RUN = """
import json, sys
from ner_experiments.main import cli
sys.exit(sum(cli(arguments) for arguments in json.loads(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A data set of two subsets, with the names of its tags in the files."""
    datasets, pyarrow = (pytest.importorskip(name) for name in ("datasets", "pyarrow"))
    from pyarrow import parquet

    folder = tmp_path_factory.mktemp("repository")
    (folder / "README.md").write_text(CARD)
    labels = datasets.ClassLabel(names=NAMES)
    features = datasets.Features({"tokens": [datasets.Value("string")], "ner_tags": [labels]})
    for name, (tokens, tags) in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        rows = {"tokens": tokens, "ner_tags": tags}
        table = pyarrow.Table.from_pydict(rows, schema=features.arrow_schema)
        parquet.write_table(table, folder / f"{name}.parquet")
    return Repository("datasets", "me/toy", folder)


@pytest.fixture(scope="module")
def endpoint(repository: Repository) -> Iterator[str]:
    with hub(repository) as url:
        yield url


def run(
    endpoint: str, folder: Path, *commands: str, offline: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run commands in a process of their own, as `datasets` reads HF_ENDPOINT when it is imported."""
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "cache"),
        "HF_HUB_OFFLINE": str(int(offline)),
    }
    arguments = json.dumps([command.split() for command in commands])
    return subprocess.run(
        [sys.executable, "-c", RUN, arguments],
        env={**os.environ, **settings, "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"},
        capture_output=True,
        text=True,
        cwd=folder,
    )


def test_subsets_and_revisions_are_read_over_http_and_then_offline(
    endpoint: str, repository: Repository, tmp_path: Path
) -> None:
    english = "data convert hf {} --to conll data.path=me/toy data.name=toy data.subset=en"
    german = "data convert hf de --to conll data.path=me/toy data.name=toy data.subset=de data.revision=v1"
    done = run(endpoint, tmp_path, english.format("en"), german)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("??/*")} == {
        "en/train.conll",
        "en/dev.conll",
        "de/train.conll",
    }
    expected = "Ada\tB-PER\nLovelace\tI-PER\nsang\tO\n\nRain\tO\n\nin\tO\nOslo\tB-LOC\n\n"
    assert (tmp_path / "en/train.conll").read_text() == expected
    assert (tmp_path / "en/dev.conll").read_text() == "Bo\tB-PER\nleft\tO\n\n"
    assert (tmp_path / "de/train.conll").read_text() == "Mia\tB-PER\nschrieb\tO\n\n"
    fetched = sorted(
        path for path in repository.asked if path.startswith("GET ") and path.endswith(".parquet")
    )
    assert fetched == [f"GET /datasets/me/toy/resolve/{COMMIT}/{name}.parquet" for name in sorted(FILES)]
    assert "HEAD /datasets/me/toy/resolve/v1/README.md" in repository.asked
    repository.asked.clear()
    assert run(endpoint, tmp_path, english.format("again"), offline=True).returncode == 0
    assert (tmp_path / "again/train.conll").read_text() == expected
    assert not repository.asked


def test_what_the_hub_does_not_have_is_refused_in_a_line(endpoint: str, tmp_path: Path) -> None:
    names = ["me/none", "me/toy", "me/toy data.subset=fr"]
    done = run(endpoint, tmp_path, *(f"data check hf data.path={name}" for name in names))
    assert (done.returncode, done.stdout) == (3, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    sort = "no such folder, and as a data set on the hub: "
    assert lines[0].startswith(
        f"data.path=me/none: {sort}DatasetNotFoundError: Dataset 'me/none' doesn't exist"
    )
    assert lines[1].startswith(
        f"data.path=me/toy: {sort}ValueError: Config name is missing. Please pick one among"
    )
    assert "'en', 'de'" in lines[1]
    assert lines[2].startswith(f"data.path=me/toy: {sort}ValueError: BuilderConfig 'fr' not found.")
