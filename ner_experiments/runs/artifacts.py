"""Artifacts of a finished run: their names, and their SHA-256 checksums, which metrics.json holds (its own too)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.utils.files import json_digest, sha256
from ner_experiments.utils.text import printable, read_json_object, truncated_repr

if TYPE_CHECKING:
    from omegaconf import DictConfig

CHECKSUM, FILES = "sha256", "files"
METRICS_FILE = "metrics.json"
CONFIG, CODE, ENCODER, WEIGHTS = "config.yaml", "code.json", "encoder.json", "model.safetensors"
TAGGER = (METRICS_FILE, CONFIG, ENCODER, WEIGHTS)
"""The files of a run that `ner_experiments.load` reads."""
LOG, TEST_LOG, GRADIENTS = "log.csv", "test_every_epoch.csv", "gradients.csv"
TEST_PREDICTIONS = "predictions/test.conll"
PREDICTIONS = ("predictions/dev.conll", TEST_PREDICTIONS)
PROBABILITIES = "predictions/test.probabilities"
ARTIFACTS = (CONFIG, CODE, ENCODER, GRADIENTS, LOG, WEIGHTS, TEST_LOG, *PREDICTIONS, PROBABILITIES)
SCORED = (CONFIG, CODE, LOG, TEST_PREDICTIONS)
"""The files of a run that tables and reports read. If metrics.json records one that is missing, the run is damaged."""
RECORDED: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("identity", "checksum", "task"), (str,)),
    "commit": (str, NoneType),
    **dict.fromkeys(("seed", "epochs", "best_epoch"), (int,)),
    **dict.fromkeys(("data", "dev"), (dict,)),
}
"""Required keys of a finished run's metrics.json, and their types. Outside a checkout, commit is None."""
OPTIONAL: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("test", "read", FILES, "parameters_of", "peak_memory_bytes", "versions"), (dict,)),
    **dict.fromkeys(("seconds", "tokens_per_second"), (int, float)),
    **dict.fromkeys(("parameters", "model_weights", "threads"), (int,)),
    **dict.fromkeys(("device", "hint"), (str,)),
    "extra_tests": (dict,),
}
"""Keys that not every run has, and the types of their values."""
COUNTS = ("correct", "predicted", "gold")
NO_SCORES = (*COUNTS, "illegal_tags", "types")
"""Keys of what `SpanF1.compute` or `TagAccuracy.compute` reports that are counts or reports by type, not scores."""
MAX_NUMBER = 2**63
"""Upper limit of a number in metrics.json. All are at least 0."""


class DamagedError(ValueError):
    """A file's checksum differs from the recorded one."""


def scores_of(report: Mapping[str, Any]) -> list[str]:
    """The names of the scores of a report, all in [0, 1]: precision, recall, F1 and others, in its order."""
    return [name for name in report if name not in NO_SCORES]


def unread_error_name(files: str) -> str:
    """Name of the file with the error of a run whose data were not read. files: digest of the settings of its files."""
    return f"error-{files}.txt"


def add_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its own SHA-256 added."""
    return {**content, CHECKSUM: json_digest(content)}


def read(path: Path) -> dict[str, Any]:
    """Content of a JSON file, after its own checksum has been verified. Raises `DamagedError` with the path."""
    try:
        content = read_json_object(path)
    except ValueError as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    return verify_checksum(content, path)


def read_metrics(path: Path, *, whole: bool = True) -> dict[str, Any]:
    """Content of a run's metrics.json. Raises `DamagedError` as `read`, and for a value of another type than a run's.

    whole: with all that every run records, not its task alone.
    """
    metrics = read(path)
    for key, expected, value in faults(metrics, whole=whole):
        got = truncated_repr(value)
        raise DamagedError(f"{path} is damaged: {printable(key)}: expected {expected}, got {got}")
    return metrics


def faults(metrics: Mapping[str, Any], *, whole: bool) -> Iterator[tuple[str, str, Any]]:
    """The key of each value that metrics.json cannot have, what is expected there, and the value."""
    for name, types in (RECORDED | OPTIONAL).items():
        required = name in RECORDED and (whole or name == "task")
        if (name in metrics or required) and not is_of_types(value := metrics.get(name), types):
            yield name, " or ".join(each.__name__.removesuffix("Type") for each in types), value
    for name, value in numbers(metrics):
        if not is_of_types(value, (int, float)):
            yield name, "a number", value
    if metrics.get("epochs") == 0:
        yield "epochs", "at least 1", 0
    for name in ("name", "checksum"):
        if not isinstance(value := metrics.get("data", {}).get(name, ""), str):
            yield f"data.{name}", "str", value
    if metrics["task"] not in PRIMARY_METRIC:
        yield "task", " or ".join(PRIMARY_METRIC), metrics["task"]
    for split in ("dev", "test"):
        score = metrics.get(split, {}).get(PRIMARY_METRIC[metrics["task"]][0])
        if split in metrics and not (isinstance(score, int | float) and 0 <= score <= 1):
            yield split, "a score from 0 to 1", score


def numbers(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The dotted key and the value of what has to be a number in the mappings of metrics.json."""
    for place in ("parameters_of", "peak_memory_bytes", "dev", "test"):
        for name, value in metrics.get(place, {}).items():
            if place in ("dev", "test") and name == "types" and isinstance(value, dict):
                for kind, scores in value.items():
                    of_kind = scores.items() if isinstance(scores, dict) else [("", scores)]
                    yield from ((f"{place}.types.{kind}.{score}", number) for score, number in of_kind)
            else:
                yield f"{place}.{name}", value


def is_of_types(value: Any, types: tuple[type, ...]) -> bool:
    """Whether a value has one of the types and, if it is a number, is one that a run can have."""
    in_range = not isinstance(value, int | float) or 0 <= value < MAX_NUMBER
    return isinstance(value, types) and in_range


def verify_checksum(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """The content, if its own checksum is right. Raises `DamagedError`, with the path, otherwise."""
    if CHECKSUM not in content:
        raise DamagedError(
            f"{path}: expected a file of a run or of results/, but it does not record its SHA-256"
        )
    actual = json_digest({name: value for name, value in content.items() if name != CHECKSUM})
    if actual != content[CHECKSUM]:
        raise DamagedError(f"{path} is damaged: its SHA-256 is {actual}, but it records {content[CHECKSUM]}")
    return content


def prediction_file(name: str) -> str:
    """The file of the predicted tags of a split or a further test set."""
    return f"predictions/{name}.conll"


def scoring_of_test(metrics: Mapping[str, Any]) -> str:
    """Note on when a finished run scored test; empty if it never did."""
    every_epoch = TEST_LOG in metrics.get(FILES, {})
    if "test" in metrics:
        besides = "; also after each epoch, without influence on the choice" if every_epoch else ""
        return f"test was scored once, by that epoch's weights{besides}"
    return "test was scored after each epoch, without influence on the choice" if every_epoch else ""


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 by name of the artifacts that exist in a run's folder, and of its predictions on further test sets."""
    extra = [path.relative_to(folder).as_posix() for path in sorted(folder.glob(prediction_file("*")))]
    names = [name for name in ARTIFACTS if (folder / name).exists()]
    return {name: sha256(folder / name) for name in dict.fromkeys([*names, *extra])}


def verify(folder: Path, metrics: Mapping[str, Any], names: Iterable[str] = ARTIFACTS) -> None:
    """Raise `DamagedError` if a file's checksum differs from the recorded one, or one of `SCORED` is missing.

    Other files may have been deleted, such as the weights.
    """
    names = list(names)
    verify_present(folder, metrics, names)
    for name in names:
        path, expected = folder / name, metrics.get(FILES, {}).get(name)
        if expected is not None and path.exists() and (actual := sha256(path)) != expected:
            raise DamagedError(
                f"{path} is damaged: its SHA-256 is {actual}, but metrics.json records {expected}"
            )


def verify_present(folder: Path, metrics: Mapping[str, Any], names: Iterable[str] = SCORED) -> None:
    """Raise `DamagedError` if one of `SCORED` is missing, but recorded."""
    for name in names:
        if name in SCORED and name in metrics.get(FILES, {}) and not (folder / name).is_file():
            raise DamagedError(f"{folder / name} is missing, but metrics.json records it")


def read_config(folder: Path) -> DictConfig:
    """The config.yaml of a run's folder. Raises ValueError as `safe_yaml.read_config`."""
    from ner_experiments.config import safe_yaml  # imports OmegaConf, which files of predictions do without

    return safe_yaml.read_config(folder / CONFIG)
