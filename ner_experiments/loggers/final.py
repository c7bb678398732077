"""What a logger is given of a finished run: its summary, errors by type, predictions, attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.loggers.base import Logger
from ner_experiments.loggers.epoch import scores
from ner_experiments.runs.artifacts import TEST_LOG

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ner_experiments.analysis.attention import Attended
    from ner_experiments.analysis.errors import Confusion
    from ner_experiments.data.datamodule import CorpusModule
    from ner_experiments.data.sentence import Task
    from ner_experiments.tagger import Tagger

SPLITS = ("dev", "test")
ATTENTION_MAPS = 5
"""Sentences of which attention is drawn."""


def log_final(
    logger: Logger, folder: Path, result: Mapping[str, Any], tagger: Tagger, data: CorpusModule
) -> None:
    """`result` is what `experiment.run` returns. The tagger may end up on the CPU, and in evaluation."""
    logger.summary(summary(result, test_every_epoch=(folder / TEST_LOG).exists()))
    for split in SPLITS:
        if split in result:
            log_errors(logger, folder, split, result)
    if logger.sentences:
        for split in SPLITS:
            if split in result:
                columns = ("sentence", "errors", "gold", "predicted")
                rows = partial(predictions, folder, split, result["task"], logger.sentences)
                logger.table(f"{split}/predictions", columns, rows)
        log_attention(logger, tagger, data)


def summary(result: Mapping[str, Any], *, test_every_epoch: bool) -> dict[str, str | float]:
    """best/dev_f1, best/test_types_PER, ... of the epoch that dev chose; costs; what they are scores of."""
    found: dict[str, str | float] = {"best/epoch": result["best_epoch"]}
    for split in SPLITS:
        if split in result:
            of_split = scores(split, result[split])
            found |= {f"best/{name.replace('/', '_', 1)}": score for name, score in of_split.items()}
    for name in ("parameters", "model_weights", "epochs", "seconds", "tokens_per_second"):
        found[name] = result[name]
    found |= {f"memory/{place}_mib": size / 2**20 for place, size in result["peak_memory_bytes"].items()}
    about = {
        "task": result["task"],
        "data": result["data"]["name"],
        "checksum": result["data"]["checksum"],
        "selection": selection(tested="test" in result, test_every_epoch=test_every_epoch),
        "commit": result["commit"] or "",
        "device": result["device"],
        **result["data"]["leakage"],
    }
    return found | {f"protocol/{name}": value for name, value in about.items()}


def selection(*, tested: bool, test_every_epoch: bool) -> str:
    """What chose the epoch, and when test was scored."""
    if not tested:
        return "dev chose the epoch"
    besides = "; besides after each epoch, by which nothing chose" if test_every_epoch else ""
    return f"dev chose the epoch; test was scored once, by that epoch's weights{besides}"


def log_errors(logger: Logger, folder: Path, split: str, result: Mapping[str, Any]) -> None:
    """By type as bars and as a table; which type was taken for which as a table and as a heat map."""
    types: Mapping[str, Mapping[str, float]] = result[split]["types"]
    columns = list(next(iter(types.values()), {}))
    rows: list[list[str | float]] = [
        [kind, *(values[name] for name in columns)] for kind, values in types.items()
    ]
    logger.table(f"{split}/types", ("type", *columns), lambda: rows)
    logger.picture(f"{split}/types_bars", partial(bars, types, split))
    confused = partial(confusion, folder, split, result["task"])
    logger.table(f"{split}/confusion", ("gold", "predicted", "count"), lambda: pairs(confused()))
    logger.picture(f"{split}/confusion_matrix", lambda: matrix(confused(), split))


def confusion(folder: Path, split: str, task: Task) -> Confusion:
    from ner_experiments.analysis import errors as confusion
    from ner_experiments.runs.predictions import read

    return confusion.confusion(read(folder, split), task)


def pairs(found: Confusion) -> Iterator[tuple[str, str, int]]:
    """Those that occur. "none" stands for no mention: missed if it is predicted, invented if it is gold."""
    for gold, counts in zip(found.names, found.counts, strict=True):
        for predicted, count in zip(found.names, counts, strict=True):
            if count:
                yield gold, predicted, count


def bars(types: Mapping[str, Mapping[str, float]], split: str) -> Figure:
    from ner_experiments.loggers import charts

    return charts.bars(types, f"{split}, by type")


def matrix(found: Confusion, split: str) -> Figure:
    from ner_experiments.loggers import charts

    return charts.matrix(found, f"{split}, which type was taken for which")


def predictions(folder: Path, split: str, task: Task, most: int) -> list[tuple[int, int, str, str]]:
    """The sentences with most errors first; sentences count from 1, mentions are in [brackets]TYPE.

    An error is a gold mention that is not found, or a predicted one that is none; or a wrong tag.
    """
    from ner_experiments.analysis.errors import num_errors
    from ner_experiments.runs.predictions import count, read

    sentences = read(folder, split)
    errors = num_errors(count(sentences, task)).tolist()
    rows = [
        (number, wrong, marked(it.words, it.gold, task), marked(it.words, it.predicted, task))
        for number, (it, wrong) in enumerate(zip(sentences, errors, strict=True), start=1)
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:most]


def marked(words: Sequence[str], tags: Sequence[str], task: str) -> str:
    from ner_experiments.analysis.disagreements import bracketed

    if task == "tags":
        return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))
    return bracketed(words, tags)


def log_attention(logger: Logger, tagger: Tagger, data: CorpusModule) -> None:
    """Of a model that has none, nothing."""
    from ner_experiments.models.attention import AttBiLSTM

    if not isinstance(tagger.model, AttBiLSTM) or data.corpus.task != "mentions":
        return
    from ner_experiments.analysis.attention import attention, places_of

    places = list(islice(places_of(data.corpus), min(ATTENTION_MAPS, logger.sentences)))
    maps = cache(lambda: attention(tagger.cpu().eval(), data.encoder, places))
    for number, place in enumerate(places):
        logger.picture(attention_map_name(place.split, number + 1), partial(heat_maps, maps, number))


def attention_map_name(split: str, number: int) -> str:
    """The same for all corpora: `number` counts what is drawn, and the picture says which sentence it is."""
    return f"attention/{split}-{number}"


def heat_maps(maps: Callable[[], list[Attended]], number: int) -> Figure:
    from ner_experiments.analysis import attention as picture

    return picture.heat_maps(maps()[number])
