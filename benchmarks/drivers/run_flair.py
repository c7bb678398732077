"""Trains and decodes with flair: its own trainer and `predict`, in the environment where it is installed.

python run_flair.py FOLDER OUTPUT
"""

import importlib.metadata
import time

import flair
import outcome
import torch
from flair.data import Corpus, Dictionary
from flair.datasets import ColumnCorpus
from flair.embeddings import CharacterEmbeddings, StackedEmbeddings, WordEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer
from flair.trainers.plugins.base import TrainerPlugin


class EpochTimes(TrainerPlugin):
    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    @TrainerPlugin.hook
    def before_training_epoch(self, **_: object) -> None:
        self.started = time.perf_counter()

    @TrainerPlugin.hook
    def after_training_epoch(self, **_: object) -> None:
        self.seconds.append(time.perf_counter() - self.started)


def main() -> None:
    task = outcome.task(outcome.parser().parse_args())
    flair.set_seed(1)
    settings = task.settings
    flair.device = torch.device(settings.get("device", "cpu"))
    read = read_columns(task)
    corpus = Corpus(train=read.train, sample_missing_splits=False)
    tagger = make_tagger(task, corpus)
    times = EpochTimes()
    training = {
        "learning_rate": settings["lr"],
        "optimizer": torch.optim.SGD,
        "mini_batch_size": settings["batch"],
        "max_epochs": settings["epochs"],
    }
    saving = {"save_final_model": False, "use_final_model_for_eval": True, "create_file_logs": False}
    ModelTrainer(tagger, corpus).train(
        task.folder / "flair", plugins=[times], attach_default_scheduler=False, **training, **saving
    )
    outcome.write(
        task,
        train=times.seconds,
        decode=decode(tagger, list(read.dev), settings),
        version=importlib.metadata.version("flair"),
        settings={"optimizer": "SGD", **{k: v for k, v in training.items() if k != "optimizer"}},
    )


def read_columns(task: outcome.Task) -> Corpus:
    files = {"train_file": task.train.name, "dev_file": task.decode.name}
    return ColumnCorpus(task.folder, {0: "text", 1: "ner"}, sample_missing_splits=False, **files)


def make_tagger(task: outcome.Task, corpus: Corpus) -> SequenceTagger:
    settings = task.settings
    lines = [line.split(" ") for line in task.vectors.read_text(encoding="utf-8").splitlines()]
    vocab = {word: number for number, (word, *_) in enumerate(lines)}
    words = WordEmbeddings(
        None, fine_tune=True, vocab=vocab, embedding_length=settings["word_dim"], name="words"
    )
    with torch.no_grad():
        words.embedding.weight[:-1] = torch.tensor([[float(number) for number in line] for _, *line in lines])
    characters = Dictionary()
    for character in sorted({character for word in vocab for character in word}):
        characters.add_item(character)
    chars = CharacterEmbeddings(characters, settings["char_dim"], settings["char_hidden"])
    return SequenceTagger(
        embeddings=StackedEmbeddings([words, chars]),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=settings["hidden"],
        reproject_embeddings=False,
        dropout=settings["dropout"],
        word_dropout=0.0,
        locked_dropout=0.0,
    )


def decode(tagger: SequenceTagger, sentences: list[flair.data.Sentence], settings: dict) -> list[float]:
    """Seconds of each decoding pass, one per epoch."""
    seconds = []
    for _ in range(settings["epochs"]):
        started = time.perf_counter()
        tagger.predict(sentences, mini_batch_size=settings["batch"], label_name="predicted")
        seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
