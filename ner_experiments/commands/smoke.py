"""`ner-experiments smoke [NAME ...]`: train every table row for two steps on tiny generated files.

Rows run with their own settings and readers, but on tiny stand-ins for corpora, word vectors, name lists and BERT: the
text of the toy corpora in each corpus' format, and random numbers. The scores are meaningless. The trainings of the
XOR table are run in full, with one seed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from ner_experiments.config.choices import as_value
from ner_experiments.config.row_settings import key
from ner_experiments.data import toy
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import convert, spans
from ner_experiments.launch.worker import import_train
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.experiments import Experiment, experiments
from ner_experiments.tables.spec import Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils.files import write_json

SHORT = ("trainer.max_epochs=1", "trainer.train_batches=2")
QUIET = ("runtime.progress=false", "runtime.accelerator=cpu")
SIZES: dict[toy.Split, int] = {"train": 40, "dev": 10, "test": 10}
CHINESE = ("msra", "weibo", "ontonotes4")
VECTORS = {
    "senna/senna.txt": 50,
    "glove/glove.6B.50d.txt": 50,
    "glove/glove.6B.100d.txt": 100,
    "glove/glove.6B.300d.txt": 300,
    "glove/glove.840B.300d.txt": 300,
    "twitter/word2vec_twitter_model.bin": 400,
}
"""Vector files under the data folder, and their dimensions."""


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 1 if any row failed. Raises ValueError or OSError for user errors."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        output = arguments.output or Path(folder)
        tables = [spec.load(name) for name in arguments.names or spec.names()]
        failed = sum(try_table(table, output.absolute()) for table in tables)
    verdict = f"{failed} rows failed" if failed else "all rows train, decode and are aggregated"
    print(
        f"{verdict}; {time.perf_counter() - started:.0f} s. On tiny generated files: the scores are meaningless."
    )
    return 1 if failed else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Every row of the published tables trains two steps on tiny files made for it, and is scored; those "
        "of the XOR table train in full."
    )
    parser.description = text
    parser.add_argument("names", nargs="*", metavar="TABLE", help="only these tables")
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep the files and runs in this folder")


def try_table(table: Table, output: Path) -> int:
    """Run the rows of a table; return how many failed or are missing from the table afterwards."""
    started = time.perf_counter()
    if table.command:
        extra_overrides = [f"output_dir={as_value(str(output / 'runs'))}"]
        run_trials(table, output / "runs")
        failed = 0
    else:
        extra_overrides = write_files(table, output)
        failed = sum(not try_row(table, experiment) for experiment in experiments(table, extra_overrides))
    page = collect(table, extra_overrides)
    view = TableView(page)
    for write in (view.markdown, view.latex, view.csv, view.json):
        write()
    to_measure = [result for result in page.results if result.row.run is not None or result.row.trial]
    absent = sum(result.measured is None for result in to_measure)
    seconds = time.perf_counter() - started
    print(
        f"{table.name:<18} {len(table.rows):>3} rows, {len(to_measure):>2} run {seconds:6.1f} s", flush=True
    )
    return max(failed, absent)  # failed rows are absent too, except in an analysis of them


def write_files(table: Table, output: Path) -> list[str]:
    """Write the files that a table's rows read; return the overrides that make the rows read them."""
    data_dir = output / "data"
    varied = {key(item) for row in table.rows for item in row.run or () if table.is_sweep}
    extra_overrides = [
        *(item for item in SHORT if key(item) not in varied),
        *QUIET,
        f"data_dir={as_value(str(data_dir))}",
        f"output_dir={as_value(str(output / 'runs'))}",
        f"cache_dir={as_value(str(output / 'cache'))}",
    ]
    if not (data_dir / "gazetteer").exists():
        write_vectors(data_dir)
        write_gazetteer(data_dir)
    rows = experiments(table, extra_overrides)
    for experiment in rows:
        data = OmegaConf.to_container(experiment.cfg.data, resolve=True)
        assert isinstance(data, dict)
        in_data_dir = Path(data.get("folder", data_dir)).absolute().is_relative_to(data_dir)
        if in_data_dir or not table.is_sweep:  # a sweep of the user's own may name a real corpus
            write_corpus({str(name): value for name, value in data.items()})
    if any(experiment.cfg.init_from for experiment in rows):
        if find_spec("transformers") is None:
            raise ValueError(f"{table.name}: needs transformers: pip install -e '.[bert]'")
        write_bert(output / "bert")
        extra_overrides += [f"init_from.{item}" for item in SHORT]
        extra_overrides.append(f"words.input.path={as_value(str(output / 'bert'))}")
    return extra_overrides


def try_row(table: Table, experiment: Experiment) -> bool:
    """Train and score a row; return whether it succeeded."""
    train = import_train()
    try:
        train(experiment.cfg)
    except Exception as error:  # any error: the other rows are still tried
        print(f"{table.name}, {experiment.row.label}: {type(error).__name__}: {error}", file=sys.stderr)
        return False
    return True


def run_trials(table: Table, output: Path) -> None:
    """Run `ner-experiments xor` with one seed, for the architectures of the table."""
    from ner_experiments.xor.experiment import run_experiment
    from ner_experiments.xor.results import FILE

    names = dict.fromkeys(row.trial[0] for row in table.rows if row.trial)
    (output / "xor").mkdir(parents=True, exist_ok=True)
    write_json(output / "xor" / FILE, run_experiment(list(names), [], num_seeds=1, num_processes=1).content)


def write_corpus(data: Mapping[str, Any]) -> None:
    """Write the files of a corpus to the paths in its config; a toy corpus has none."""
    language: toy.Language = "zh" if data["name"] in CHINESE else "en"
    for split, file in data.get("files", {}).items():
        sentences = toy.sentences(language, split, SIZES[split])
        reader = data["_target_"].rpartition(".")[2]
        path = gold_conll_path(data, split) if reader == "GoldConllFiles" else Path(data["folder"]) / file
        if reader not in FORMATS:
            raise ValueError(
                f"{data['name']}: smoke writes no files for {reader}; add a writer to FORMATS in {__file__}"
            )
        lines = FORMATS[reader](data, sentences)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def columns(data: Mapping[str, Any], sentences: list[Sentence]) -> Iterator[str]:
    for sentence in sentences:
        pos = [part_of_speech(word) for word in sentence.words]
        words = [word + "0" * data.get("first_character", False) for word in sentence.words]
        mentions = data.get("task", "mentions") == "mentions"
        known = {
            "word": words,
            "pos": pos,
            "chunk": ["O" if tag == "." else "I-NP" for tag in pos],
            "tag": convert(sentence.tags, data["scheme"]) if mentions else pos,
        }
        places = data["columns"]
        order = sorted(places, key=lambda name: (places[name] < 0, places[name]))  # -1 is the last
        yield from (" ".join(fields) for fields in zip(*(known[name] for name in order), strict=True))
        yield ""


def part_of_speech(word: str) -> str:
    return "." if not word[0].isalnum() else "NNP" if word[0].isupper() else "NN"


def gold_conll_path(data: Mapping[str, Any], split: str) -> Path:
    """A path that matches the pattern of the split."""
    folder = {"dev": "development"}.get(split, split)
    return Path(data["folder"]) / folder / "data/english/annotations/nw/toy/toy.gold_conll"


def gold_conll(data: Mapping[str, Any], sentences: list[Sentence]) -> Iterator[str]:
    """Lines with the names in brackets, in the eleventh of twelve columns."""
    yield "#begin document (toy); part 000"
    for sentence in sentences:
        names = ["*"] * len(sentence)
        for start, end, kind in spans(sentence.tags):
            names[start] = f"({kind}*"
            names[end - 1] = f"({kind})" if end - start == 1 else "*)"
        for number, (word, name) in enumerate(zip(sentence.words, names, strict=True)):
            tag = part_of_speech(word)
            yield f"toy 0 {number} {word} {tag} * - - - - {name} -"
        yield ""
    yield "#end document"


def conllu(data: Mapping[str, Any], sentences: list[Sentence]) -> Iterator[str]:
    """Lines with the same tags in both columns."""
    for sentence in sentences:
        for number, word in enumerate(sentence.words, start=1):
            tag = part_of_speech(word)
            yield "\t".join([str(number), word, "_", tag, tag, *5 * "_"])
        yield ""


FORMATS = {"ColumnFiles": columns, "GoldConllFiles": gold_conll, "ConlluFiles": conllu}


def write_vectors(data_dir: Path) -> None:
    """Write vectors for two words in three; the rest are unknown."""
    words = dict.fromkeys(word for sentence in english() for word in sentence.words)
    rng = np.random.default_rng(0)
    for name, dim in VECTORS.items():
        path = data_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for number, word in enumerate(words):
                if number % 3:
                    numbers = " ".join(f"{value:.3f}" for value in rng.normal(size=dim))
                    file.write(f"{word} {numbers}\n")


def write_gazetteer(data_dir: Path) -> None:
    """Write the names of train, one list per type."""
    folder = data_dir / "gazetteer"
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, list[str]] = {kind: [] for kind in toy.TYPES}
    for sentence in toy.sentences("en", "train", SIZES["train"]):
        for start, end, kind in spans(sentence.tags):
            names[kind].append(" ".join(sentence.words[start:end]))
    for kind, entries in names.items():
        (folder / f"{kind}.txt").write_text("".join(f"{name}\n" for name in entries), encoding="utf-8")


def write_bert(folder: Path) -> None:
    """Write a BERT of one layer, with a piece for each character of the toy corpora. Needs transformers."""
    from transformers import BertConfig, BertModel  # an optional dependency

    texts = [*english(), *toy.sentences("zh", "train", SIZES["train"])]
    letters = sorted({character for sentence in texts for word in sentence.words for character in word})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def english() -> list[Sentence]:
    return [sentence for split, count in SIZES.items() for sentence in toy.sentences("en", split, count)]
