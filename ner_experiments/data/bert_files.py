"""A BERT in a folder or on the Hugging Face hub: its files, its tokenizer, and its weights.

Needs the extra `bert`. transformers and its companions are imported inside functions, because they are optional and
slow to import. torch is too, because `check_path` is called before a run is started.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError  # noqa: TID251
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ner_experiments.utils.files import sha256
from ner_experiments.utils.text import json_object, truncated_repr

if TYPE_CHECKING:
    from torch import nn

Config = dict[str, Any]
"""Content of config.json."""

CONFIGS = ("config.json", "bert_config.json")
VOCABULARIES = ("tokenizer.json", "vocab.txt")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
PARTS = (CONFIGS, VOCABULARIES, WEIGHTS)
"""A folder must have one file of each group. Of several, the first is used."""

SPECIAL = ("[CLS]", "[SEP]", "[UNK]")
CLASSES = {"bert": ("BertConfig", "BertModel"), "ernie": ("ErnieConfig", "ErnieModel")}
SETTINGS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings"),
    *("type_vocab_size", "initializer_range", "layer_norm_eps", "pad_token_id"),
    *("task_type_vocab_size", "use_task_id"),
)
"""The settings that define the model. All others are dropped: attn_implementation can make transformers fetch code."""
NOT_APPLIED: Config = {
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "feed_forward_type": "original",
    "pruned_heads": {},
    "quantization_config": None,
    "auto_map": None,
}
"""Settings that would change the vectors and are not applied, with the only value that is accepted."""
NEUTRAL_WEIGHTS = ("position_ids", "token_type_ids")
"""Ends of the names of constants that old files hold beside the weights."""
SIZES = ("vocab_size", "hidden_size", "max_position_embeddings")
"""The settings that are read and validated here."""
INSTALL = "BERT needs transformers: pip install -e '.[bert]'"
ADVICE = "give a folder with config.json, vocab.txt and model.safetensors (words.input.path=...)"
HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def find(path: str) -> Path:
    """The folder at this path, or a local copy of the hub's model of this name.

    The hub is only asked if there is no such folder. Raises ValueError if it cannot provide the model, or if a file
    is missing.
    """
    folder = Path(path).expanduser()
    return with_all_parts(folder if folder.is_dir() else _from_hub(path))


def check_path(path: str) -> None:
    """Raise ValueError if `path` is neither a folder that `read_config` accepts nor a possible name on the hub.

    Raises ValueError too if transformers is not installed. The hub is not asked.
    """
    folder = Path(path).expanduser()
    if folder.is_dir():
        read_config(with_all_parts(folder))
    else:
        _check_name(path)
    if find_spec("transformers") is None:
        raise ValueError(INSTALL)


def checksum(folder: Path) -> str:
    """SHA-256 over all files that determine the model's output for a text."""
    names = [*(_first(folder, names).name for names in PARTS), "tokenizer_config.json"]
    present = [folder / name for name in names if (folder / name).is_file()]
    return hashlib.sha256("".join(f"{file.name} {sha256(file)}\n" for file in present).encode()).hexdigest()


def read_config(folder: Path) -> Config:
    """The content of the configuration file, with `model_type` "bert" where it has none, as in old folders.

    Raises ValueError if it is invalid, or if it describes another model than `CLASSES` and `SETTINGS` can build.
    """
    file = _first(folder, CONFIGS)
    config = _read_json(file)
    kind = config.setdefault("model_type", "bert")
    if kind not in CLASSES:
        raise ValueError(f"{file}: model_type must be {' or '.join(CLASSES)}, got {kind!r}")
    for name in SIZES:
        if type(size := config.get(name)) is not int or size < 1:
            raise ValueError(f"{file}: {name} must be an integer of at least 1, got {size!r}")
    for name, value in NOT_APPLIED.items():
        if config.get(name, value) not in (value, None):
            raise ValueError(
                f"{file}: {name} must be {json.dumps(value)}, as in an ordinary BERT; others are not supported, "
                f"got {truncated_repr(config[name])}"
            )
    return config


def read_tokenizer(folder: Path) -> str:
    """The tokenizer as JSON. Raises ValueError if its vocabulary lacks a special piece or is larger than the model's.

    It lower-cases if the folder's settings say so, or if the vocabulary has lower-case letters and no
    capitals. Google's Chinese BERT has such a vocabulary, but the settings of its copy on the hub do not
    lower-case: with them, "A" would become [UNK].
    """
    _transformers()
    from tokenizers.normalizers import BertNormalizer  # slow to import, and only needed for BERT

    file = _first(folder, VOCABULARIES)
    tokenizer = _from_json(file) if file.suffix == ".json" else _from_vocabulary(file)
    vocabulary = tokenizer.get_vocab()
    if missing := [piece for piece in SPECIAL if piece not in vocabulary]:
        raise ValueError(
            f"{file}: the vocabulary must hold {', '.join(SPECIAL)}; it lacks {', '.join(missing)}"
        )
    vectors = read_config(folder)["vocab_size"]
    if len(vocabulary) > vectors:
        raise ValueError(
            f"{file}: {len(vocabulary):,} pieces, but the model's config has vectors for {vectors:,}"
        )
    letters = "".join(piece for piece in vocabulary if not re.fullmatch(r"\[.+\]", piece))
    if letters.islower() and isinstance(tokenizer.normalizer, BertNormalizer):
        tokenizer.normalizer.lowercase = True
    return tokenizer.to_str()


def make_tokenizer(content: str) -> Any:
    """The tokenizer that `read_tokenizer` returned as JSON."""
    _transformers()
    from tokenizers import Tokenizer

    return Tokenizer.from_str(content)


def read_model(folder: Path) -> nn.Module:
    """The model without its pooling layer, in float32. Executes no code from the folder.

    Raises ValueError if the file is damaged, lacks weights, has weights of another model, or holds more than weights.
    """
    import torch
    from safetensors import SafetensorError

    config, file = read_config(folder), _first(folder, WEIGHTS)
    settings, make_model = _config_and_class(config)
    try:
        with _suppress_output(_transformers()):
            model, report = make_model.from_pretrained(
                folder,
                config=settings,
                add_pooling_layer=False,
                dtype=torch.float32,
                local_files_only=True,
                output_loading_info=True,
                weights_only=True,
            )
    except (UnpicklingError, SafetensorError, EOFError, RuntimeError) as error:
        # PyTorch's own message suggests executing the file's content.
        raise ValueError(f"{file}: damaged, or holds more than weights ({type(error).__name__})") from error
    if report["missing_keys"]:
        names = sorted(report["missing_keys"])
        raise ValueError(f"{file}: {len(names)} of the model's weights are missing: {names[0]} ...")
    own = re.compile(r"(\w+\.)?(embeddings|encoder)\.")  # heads and the pooling layer are unused
    unexpected = (name for name in sorted(report["unexpected_keys"]) if own.match(name))
    if extra := [name for name in unexpected if not name.endswith(NEUTRAL_WEIGHTS)]:
        place = _first(folder, CONFIGS).name
        raise ValueError(
            f"{file}: {len(extra)} weights do not belong to a BERT with the settings of {place}: {extra[0]} ..."
        )
    return model


def untrained(config: Config) -> nn.Module:
    """The model with random weights, into which a run's weights are loaded."""
    settings, make_model = _config_and_class(config)
    return make_model(settings, add_pooling_layer=False)


def _config_and_class(config: Config) -> tuple[Any, Any]:
    """The transformers config and the model's class. Raises ValueError if the model's type is none of `CLASSES`."""
    kind = config.get("model_type")
    if kind not in CLASSES:
        raise ValueError(f"model_type must be {' or '.join(CLASSES)}, got {kind!r}")
    make_config, make_model = (getattr(_transformers(), name) for name in CLASSES[kind])
    return make_config(**{name: config[name] for name in SETTINGS if name in config}), make_model


def _transformers() -> ModuleType:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise ValueError(INSTALL) from error
    return transformers


def with_all_parts(folder: Path) -> Path:
    """The folder. Raises ValueError if a file is missing."""
    for names in PARTS:
        _first(folder, names)
    return folder


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"{folder}: a folder with a BERT must hold {' or '.join(names)}")


def _from_hub(name: str) -> Path:
    _transformers()
    from huggingface_hub import snapshot_download

    _check_name(name)
    *other_files, weights = [*CONFIGS, *VOCABULARIES, "tokenizer_config.json", WEIGHTS[0]]
    try:
        folder = Path(snapshot_download(name, allow_patterns=[*other_files, weights]))
        if not (folder / weights).is_file():
            folder = Path(snapshot_download(name, allow_patterns=[*other_files, WEIGHTS[1]]))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{name}: neither a local folder nor a model that could be fetched from the Hugging Face Hub; {ADVICE}"
        ) from error
    return folder


def _check_name(name: str) -> None:
    if not HUB_NAME.fullmatch(name):
        raise ValueError(f"{name}: no such folder; {ADVICE}")


def _from_json(file: Path) -> Any:
    content = _read_text(file)
    try:
        return make_tokenizer(content)
    except Exception as error:  # the library raises no narrower one
        raise ValueError(f"{file}: expected a tokenizer as JSON: {error}") from None


def _from_vocabulary(file: Path) -> Any:
    """BERT's tokenizer for a vocabulary file with one piece per line."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    lines = _read_text(file).removesuffix("\n").split("\n")
    vocabulary = {line: number for number, line in enumerate(lines)}
    settings = file.with_name("tokenizer_config.json")
    options = _read_json(settings) if settings.is_file() else {}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=options.get("do_lower_case", False),
        strip_accents=options.get("strip_accents"),
        handle_chinese_chars=options.get("tokenize_chinese_chars", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _read_json(file: Path) -> Config:
    text = _read_text(file)
    try:
        return json_object(text)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not UTF-8 ({error.reason} at byte {error.start + 1})") from None


@contextmanager
def _suppress_output(transformers: ModuleType) -> Iterator[None]:
    """Suppress transformers' progress bar and its report on the unused weights of heads."""
    logging = transformers.utils.logging
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
