"""One experiment, run once: finds what is finished, goes on with what was cut off, and says what failed."""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from ner_experiments import sealed, signs
from ner_experiments.atomic import clear, replacing
from ner_experiments.build import make_encoder, readers
from ner_experiments.claims import claim
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus
from ner_experiments.experiment import run
from ner_experiments.identity import identity, run_folder
from ner_experiments.processes import is_first_process
from ner_experiments.results import write_json
from ner_experiments.sealed import CONFIG, METRICS
from ner_experiments.sigterm import noted

log = logging.getLogger(__name__)


def train(cfg: DictConfig, *, wait: bool = True) -> dict[str, Any]:
    """Runs the experiment, or finds that it was run; returns what metrics.json holds, and its folder.

    Where another process works on the same run: waits for its result, or without `wait` returns the folder
    alone, as "busy". Ends the process with status 143 on SIGTERM, when a checkpoint is written.
    """
    first = is_first_process(cfg)
    if not first:  # it follows the first, which claims, writes and speaks
        logging.getLogger("ner_experiments").setLevel(logging.WARNING)
    start = train(first_step(cfg)) if cfg.first else None
    unread, place = run_folder(cfg, identity(cfg, checksum="")), digest(what_is_read(cfg))
    with traceback_in(unread, f"error-{place}.txt"):
        corpus, encoder = prepare(cfg)
        read = ":".join([checksum(corpus, encoder), *([start["identity"]] if start else [])])
        places = sources(cfg, corpus, encoder)
        refuse_changed(cfg, places)
    name = identity(cfg, read)
    folder = run_folder(cfg, name)
    about = {"identity": name, "checksum": read, "read": places, "seed": cfg.seed}
    if not first:
        return {
            "folder": str(folder),
            **(finished(folder) or about | follow(cfg, corpus, encoder, folder, start)),
        }
    with claim(folder, wait=wait) as ours:
        if not ours:
            return {"busy": str(folder)}
        if (done := finished(folder)) is not None:
            return {"folder": str(folder), **done}
        with traceback_in(folder), noted() as sigterm:
            begin(folder, cfg)
            result = about | run(cfg, corpus, encoder, folder, start, sigterm)
            refuse_changed(cfg, places)  # another command may have finished a run meanwhile
            result = finish(folder, result)
    sigterm.obey()
    return {"folder": str(folder), **result}


def follow(
    cfg: DictConfig, corpus: Corpus, encoder: Encoder, folder: Path, start: dict[str, Any] | None
) -> dict[str, Any]:
    """Told to end, a follower ends well: for a crash Lightning would kill the first process at once."""
    try:
        with noted() as sigterm:
            return run(cfg, corpus, encoder, folder, start, sigterm)
    except SystemExit:
        raise SystemExit(0) from None


def finished(folder: Path) -> dict[str, Any] | None:
    """The run's result. Where one of its files is damaged that is said, and there is none."""
    path = folder / METRICS
    if not path.exists():
        return None
    try:
        result = sealed.read(path)
        sealed.verify(folder, result)
    except sealed.DamagedError as error:
        log.warning("%s; the run is made anew", error)
        return None
    log.info("%s is finished (by commit %s); its result is taken as it is", folder, result["commit"])
    return result


def begin(folder: Path, cfg: DictConfig) -> None:
    """What is there of a result is damaged: it is kept under another name."""
    clear(folder)
    if (folder / METRICS).exists():
        (folder / METRICS).replace(folder / f"{METRICS}.damaged")
    with replacing(folder / CONFIG) as part:
        OmegaConf.save(cfg, part, resolve=True)


def finish(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """metrics.json last: with it a run counts, and needs its checkpoint no more."""
    whole = sealed.seal(result | {sealed.FILES: sealed.checksums(folder)})
    write_json(folder / METRICS, whole)
    for name in (signs.CHECKPOINT, signs.NAME):
        (folder / name).unlink(missing_ok=True)
    return whole


def prepare(cfg: DictConfig) -> tuple[Corpus, Encoder]:
    """What an experiment reads; ValueError or OSError for files that are missing or malformed."""
    corpus = load_corpus(instantiate(cfg.data))
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    return corpus, encoder


def checksum(corpus: Corpus, encoder: Encoder) -> str:
    """Stands for the contents of every file that was read."""
    return ":".join([corpus.checksum, *encoder.checksums()])


def sources(cfg: DictConfig, corpus: Corpus, encoder: Encoder) -> dict[str, str]:
    """For the corpus, and for each input on it, a digest of where it was read: the checksum of what was."""
    data = OmegaConf.to_container(cfg.data, resolve=True)
    found: list[tuple[Any, str]] = [(data, corpus.checksum)]
    for name, part in readers(cfg).items():
        if content := encoder.inputs[name].checksum():
            found.append(([data, OmegaConf.to_container(part.input, resolve=True)], content))
    return {digest(json.dumps(place)): content for place, content in found}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def what_is_read(cfg: DictConfig) -> str:
    """The settings of the corpus and of each input on it: where they are read, and how."""
    inputs = {name: OmegaConf.to_container(part.input, resolve=True) for name, part in readers(cfg).items()}
    return json.dumps([OmegaConf.to_container(cfg.data, resolve=True), inputs])


def refuse_changed(cfg: DictConfig, read: Mapping[str, str]) -> None:
    """ValueError if a finished run under `output_dir` found something else in the same place.

    read: of the corpus and the inputs, as `sources`.
    """
    corpus = glob.escape(cfg.data.name)
    for path in sorted(Path(cfg.output_dir).glob(f"{corpus}-*/seed-*/{METRICS}")):
        try:
            theirs = sealed.read(path).get("read", {})
        except sealed.DamagedError:
            continue
        for place, checksum in theirs.items():
            if read.get(place, checksum) != checksum:
                raise ValueError(
                    f"{cfg.data.name}: files have changed between two runs: their checksum is {read[place]}, "
                    f"and was {checksum} for {path.parent}; put back what it read, or take another output_dir"
                )


def identify(cfg: DictConfig, known: dict[str, str]) -> str:
    """The identity that the experiment's run has or would have: reads its files, and trains nothing."""
    return identity(cfg, now(cfg, known))


def now(cfg: DictConfig, known: dict[str, str]) -> str:
    """The checksum of what the experiment would read.

    `known` keeps those of what was read from call to call. ValueError and OSError as `prepare`.
    """
    before = [identify(first_step(cfg), known)] if cfg.first else []
    files = what_is_read(cfg)
    if files not in known:
        known[files] = checksum(*prepare(cfg))
    return ":".join([known[files], *before])


def first_step(cfg: DictConfig) -> DictConfig:
    """The run whose weights this one starts from: as this one, but for the parts that `first` holds."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return OmegaConf.create(settings | settings["first"] | {"first": {}})


@contextmanager
def traceback_in(folder: Path, name: str = "error.txt") -> Iterator[None]:
    """A failure leaves its traceback in the folder; success takes an older one away."""
    path = folder / name
    try:
        yield
    except Exception as error:
        with suppress(OSError):  # a full disk, say, which the error then tells
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_text(traceback.format_exc(), encoding="utf-8")
            error.add_note(f"(traceback: {path})")
        raise
    path.unlink(missing_ok=True)
