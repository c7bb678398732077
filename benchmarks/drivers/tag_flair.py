"""Trains flair's `SequenceTagger` for one epoch, and tags the lines of a text with its `predict`.

python tag_flair.py FOLDER OUTPUT TEXT
"""

import json
import time
from itertools import islice

import flair
import outcome
import torch
from flair.data import Corpus, Sentence
from flair.datasets import ColumnCorpus
from flair.trainers import ModelTrainer
from run_flair import make_tagger

LINES = 10_000
"""Lines that are tokenized and tagged at a time: flair's objects of a sentence take kilobytes."""


def main() -> None:
    parser = outcome.parser()
    parser.add_argument("text")
    arguments = parser.parse_args()
    task = outcome.task(arguments)
    torch.set_num_threads(task.settings["threads"])
    flair.set_seed(1)
    files = {"train_file": task.train.name, "dev_file": task.decode.name}
    read = ColumnCorpus(task.folder, {0: "text", 1: "ner"}, sample_missing_splits=False, **files)
    corpus = Corpus(train=read.train, sample_missing_splits=False)
    tagger = make_tagger(task, corpus)
    trainer = ModelTrainer(tagger, corpus)
    settings = {
        "learning_rate": task.settings["lr"],
        "mini_batch_size": task.settings["batch"],
        "max_epochs": 1,
    }
    trainer.train(task.folder / "flair", **settings, save_final_model=False)
    started = time.perf_counter()
    path = task.folder / arguments.text
    with (
        path.open(encoding="utf-8") as lines,
        (task.folder / "flair.jsonl").open("w", encoding="utf-8") as file,
    ):
        while block := list(islice(lines, LINES)):
            sentences = [Sentence(line.rstrip("\n")) for line in block]
            tagger.predict(sentences, mini_batch_size=task.settings["batch"], label_name="predicted")
            for sentence in sentences:
                spans = sentence.get_spans("predicted")
                mentions = [
                    {"start": it.start_position, "end": it.end_position, "type": it.tag} for it in spans
                ]
                file.write(json.dumps({"text": sentence.text, "mentions": mentions}) + "\n")
    seconds = time.perf_counter() - started
    found = {"seconds": seconds, "version": flair.__version__, "peak_memory_bytes": outcome.peak_memory()}
    task.output.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
