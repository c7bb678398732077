"""Log a finished run: its summary, errors by type, predictions and attention maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from ner_experiments.analysis import attention, errors
from ner_experiments.analysis.attention import AttentionMap, sentences_with_mentions
from ner_experiments.analysis.errors import Confusion, num_errors
from ner_experiments.analysis.sentences import segments
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.sentence import Task
from ner_experiments.data.tags import spans
from ner_experiments.loggers.base import Logger
from ner_experiments.loggers.epoch import percent, scalars_of_log, scores
from ner_experiments.models.attention import AttBiLSTM
from ner_experiments.runs.artifacts import LOG, scores_of, scoring_of_test
from ner_experiments.runs.predictions import count, read
from ner_experiments.runs.run import rows_of
from ner_experiments.tagger import Tagger
from ner_experiments.view import charts
from ner_experiments.view.charts import Value
from ner_experiments.view.mentions import in_brackets
from ner_experiments.view.vega import Chart

SPLITS = ("dev", "test")
ATTENTION_MAPS = 5
"""Number of sentences whose attention is drawn."""


def log_final(
    logger: Logger, folder: Path, result: Mapping[str, Any], tagger: Tagger, data: CorpusModule
) -> None:
    """Log the `result` that `train` returns. The tagger may be moved to the CPU and set to evaluation mode."""
    logger.summary(summary(result))
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


def log_from_files(
    logger: Logger, folder: Path, result: Mapping[str, Any], tagger: Tagger, data: CorpusModule
) -> None:
    """Log a run that was finished before: the epochs of log.csv, then as `log_final`."""
    for epoch, row in enumerate(scalars_of_log(rows_of(folder / LOG)), start=1):
        logger.scalars(row, epoch)
    log_final(logger, folder, result, tagger, data)


def summary(result: Mapping[str, Any]) -> dict[str, str | float]:
    """Scores of the epoch that dev chose (best/dev_f1, best/test_types_PER, ...), costs, and the protocol."""
    values: dict[str, str | float] = {"best/epoch": result["best_epoch"]}
    for split in SPLITS:
        if split in result:
            of_split = scores(split, result[split])
            values |= {f"best/{name.replace('/', '_', 1)}": score for name, score in of_split.items()}
    for name in ("parameters", "model_weights", "epochs", "seconds", "tokens_per_second"):
        values[name] = result[name]
    values |= {f"memory/{place}_mib": size / 2**20 for place, size in result["peak_memory_bytes"].items()}
    about = {
        "task": result["task"],
        "data": result["data"]["name"],
        "checksum": result["data"]["checksum"],
        "selection": "; ".join(filter(None, ["dev chose the epoch", scoring_of_test(result)])),
        "commit": result["commit"] or "",
        "device": result["device"],
        **result["data"]["leakage"],
    }
    return values | {f"protocol/{name}": value for name, value in about.items()}


def log_errors(logger: Logger, folder: Path, split: str, result: Mapping[str, Any]) -> None:
    """Log scores by type as a bar chart and a table, and the confusion of types as a table and a heat map."""
    types: Mapping[str, Mapping[str, float]] = result[split]["types"]
    columns = list(next(iter(types.values()), {}))
    rows: list[list[str | float]] = [
        [kind, *(percent(name, values[name]) for name in columns)] for kind, values in types.items()
    ]
    logger.table(f"{split}/types", ("type", *columns), lambda: rows)
    logger.picture(f"{split}/types_bars", lambda: type_bars(types, f"{split}, by type").png())

    def confusion() -> Confusion:
        return errors.confusion(read(folder, split), result["task"])

    logger.table(f"{split}/confusion", ("gold", "predicted", "count"), lambda: nonzero_cells(confusion()))
    logger.picture(
        f"{split}/confusion_matrix", lambda: matrix(confusion(), f"{split}, confusion of types").png()
    )


def type_bars(types: Mapping[str, Mapping[str, float]], title: str) -> Chart:
    """Bars of the scores of each type, in percent; `types` as in metrics.json."""
    values = [
        Value(f"{kind} ({of_type['gold']:,})", percent(name, of_type[name]), series=name.replace("f1", "F1"))
        for kind, of_type in types.items()
        for name in scores_of(of_type)
    ]
    panels = (charts.bars(values, "%", apart=True),) if values else ()
    return Chart(title, "In brackets: gold mentions.", panels)


def matrix(confusion: Confusion, title: str) -> Chart:
    """Confusion of types: rows are gold, columns predicted, the last of each "none"; shaded by share of the row."""
    shares = [[count / max(1, sum(row)) for count in row] for row in confusion.counts]
    texts = [[f"{count:,}" if count else "" for count in row] for row in confusion.counts]
    x, y = "predicted (none: missing)", "gold (none: spurious)"
    panel = charts.matrix(confusion.names, confusion.names, shares, texts=texts, x=x, y=y)
    return Chart(title, "", (panel,))


def nonzero_cells(confusion: Confusion) -> Iterator[tuple[str, str, int]]:
    """Gold type, predicted type, and count. Predicted "none" means missing, gold "none" spurious."""
    for gold, counts in zip(confusion.names, confusion.counts, strict=True):
        for predicted, number in zip(confusion.names, counts, strict=True):
            if number:
                yield gold, predicted, number


def predictions(folder: Path, split: str, task: Task, limit: int) -> list[tuple[int, int, str, str]]:
    """The sentences with most errors: 1-based number, errors, and gold and predicted mentions in [brackets]TYPE.

    An error is a missing or spurious mention or, for the task "tags", a wrong tag.
    """
    sentences = read(folder, split)
    num_wrong = num_errors(count(sentences, task)).tolist()
    rows = [
        (
            number,
            wrong,
            marked(sentence.words, sentence.gold, task),
            marked(sentence.words, sentence.predicted, task),
        )
        for number, (sentence, wrong) in enumerate(zip(sentences, num_wrong, strict=True), start=1)
    ]
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]


def marked(words: Sequence[str], tags: Sequence[str], task: str) -> str:
    if task == "tags":
        return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True))
    return in_brackets(segments(words, dict.fromkeys(spans(tags), "")))


def log_attention(logger: Logger, tagger: Tagger, data: CorpusModule) -> None:
    """Log the attention maps of some sentences; no-op for models without attention."""
    if not isinstance(tagger.model, AttBiLSTM) or data.corpus.task != "mentions":
        return
    sources = list(islice(sentences_with_mentions(data.corpus), min(ATTENTION_MAPS, logger.sentences)))
    maps = cache(lambda: attention.attention(tagger.cpu().eval(), data.encoder, sources))
    for number, source in enumerate(sources):
        name = attention_map_name(source.split, number + 1)
        logger.picture(name, partial(heat_maps, maps, number))


def attention_map_name(split: str, number: int) -> str:
    """Name of the n-th map, the same for all corpora; the picture itself says which sentence it shows."""
    return f"attention/{split}-{number}"


def heat_maps(maps: Callable[[], list[AttentionMap]], number: int) -> bytes:
    return attention.heat_maps(maps()[number]).png()
