"""The identity of a run: a hash of the settings that can change its result.

It names the run's folder, and decides which runs count for a row of a table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.stand_ins import without_stand_ins
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import truncated_repr

NOT_THE_EXPERIMENT = ("seed", "runtime", "audit", "logger", "data_dir", "output_dir", "cache_dir", "sweep")
DEPTH = "layers"
"""The setting that `model.num_layers` refers to; models of a fixed depth do not."""
KNOBS = (DEPTH, "paper")
"""Settings that only take effect through others, which refer to them and are hashed."""
PLACES = ("folder", "files", "path", "cache", "source", "licence", "url", "sha256", "sizes")
"""Settings of data and inputs that say where a file is; the checksum of its content is hashed instead."""
TOKENIZER = "tokens"
"""The setting of data for the tokenizer, which training uses only where the files have no tokens of their own."""
TOKEN_CORPORA = "ner_experiments.data.files."
"""The module of the corpora whose files say what the tokens are, so that only `predict` tokenizes text."""
TOKEN_FORMATS = ("csv", "conllu_ner", "docbin")
"""The formats of annotated text of which the same is true."""


def identity(cfg: DictConfig, checksum: str) -> str:
    """SHA-256 as 64 hexadecimal digits, equal for two runs exactly if only their seeds and where they ran differ.

    checksum: that of the content of every file that was read.
    """
    text = json.dumps([as_numbers(counted(cfg)), checksum], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def experiment(cfg: DictConfig) -> str:
    """A name like `identity`, but without the content of files, so that it is known before any file is read."""
    return f"experiment-{identity(cfg, checksum='')[:12]}"


def counted(cfg: DictConfig) -> dict[Any, Any]:
    """The settings that can change a run's result."""
    settings = without_stand_ins(OmegaConf.to_container(cfg, resolve=True))
    assert isinstance(settings, dict)
    for name in (*NOT_THE_EXPERIMENT, *KNOBS):
        settings.pop(name, None)
    for reader in (settings["data"], *inputs(settings)):
        if not isinstance(reader, dict):  # in a config that was written by hand
            raise ValueError(f"expected the settings of data or of an input, got {truncated_repr(reader)}")
        for name in PLACES:
            reader.pop(name, None)
    if not is_tokenized(settings["data"]):
        settings["data"].pop(TOKENIZER, None)
    return settings


def is_tokenized(data: Mapping[str, Any]) -> bool:
    """Whether the suite's tokenizer may make the tokens of a corpus. True for a class that is not the suite's."""
    return not data.get("_target_", "").startswith(TOKEN_CORPORA) and data.get("format") not in TOKEN_FORMATS


def as_numbers(node: Any) -> Any:
    """The settings with every integer as a float, so that 0 and 0.0 are equal."""
    if isinstance(node, dict):
        return {name: as_numbers(value) for name, value in node.items()}
    if isinstance(node, list):
        return [as_numbers(value) for value in node]
    return float(node) if type(node) is int else node


def file_settings(cfg: DictConfig) -> list[Any]:
    """The settings of the corpus and of every input, which say what files are read."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return [settings["data"], *inputs(settings)]


def files_digest(cfg: DictConfig) -> str:
    """16 hexadecimal digits for `file_settings`."""
    return json_digest(file_settings(cfg))[:16]


def inputs(part: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """The settings of every input, wherever they are: words.input, direct.spelling.input, init_from.words.input."""
    for name, value in part.items():
        if name == "input":
            yield value
        elif isinstance(value, dict):
            yield from inputs(value)


def run_name(identity: str, code: str) -> str:
    """Name of a run: 64 hexadecimal digits for its identity and the digest of the code that makes it.

    Runs of the same settings and data by different versions of the code are thus in folders beside each other.
    """
    return json_digest([identity, code])


def run_folder(cfg: DictConfig, name: str) -> Path:
    """output_dir/DATA-MODEL-DECODER-NAME/seed-SEED, where NAME is the first 12 characters of `name`."""
    parts = [cfg.data.name, model_kind(cfg.model), kind(cfg.decoder), name[:12]]
    return Path(cfg.output_dir) / "-".join(parts) / f"seed-{cfg.seed}"


def unread_folder(cfg: DictConfig) -> Path:
    """The folder of a run that has not read its data, so that its identity is unknown: named by the settings alone."""
    return run_folder(cfg, identity(cfg, checksum=""))


def kind(part: DictConfig) -> str:
    """Name of a part's class or function, in lower case."""
    return part._target_.rsplit(".", 1)[-1].lower()


def model_kind(model: DictConfig) -> str:
    """Name of a model's class, and of its cell unless that is the LSTM: `bilstm_peepholelstm`."""
    cell = str(OmegaConf.select(model, "cell.path", default="LSTM")).rsplit(".", 1)[-1].lower()
    return kind(model) if cell == "lstm" else f"{kind(model)}_{cell}"


def tags(cfg: DictConfig) -> list[str]:
    """Tags of a run for loggers. The last one is shared by all runs that count for the same row of a table."""
    parts = [str(cfg.get("paper", "none")), cfg.data.name, model_kind(cfg.model), kind(cfg.decoder)]
    return [*dict.fromkeys(part for part in parts if part != "none"), experiment(cfg)]
