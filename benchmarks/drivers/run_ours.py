"""Trains and decodes with this suite, as `python run.py` does: same config, tagger, callbacks and trainer.

    python run_ours.py FOLDER OUTPUT [--batches sentences|random|tokens] [--graphs]

Decoding seconds are those of the whole scoring of dev after each epoch: the tags of each sentence, and their F1. Dev is
decoded in batches of the same size as the other programs', sorted by length; with --batches tokens, in the suite's own.
With --graphs, a training step is a CUDA graph.
"""

import numpy as np
import outcome
import torch
from hydra.utils import instantiate
from lightning.pytorch import seed_everything

from ner_experiments.config import compose
from ner_experiments.data.datamodule import Batches, CorpusModule
from ner_experiments.experiment_data import read_data
from ner_experiments.runs.provenance import commit
from ner_experiments.train import build_for_training, fit
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.training.preemption import Sigterm


class SentenceBatches(CorpusModule):
    """Data module that decodes in batches of as many sentences as in training, from short to long."""

    def val_dataloader(self) -> Batches:
        dev = self.encoded("dev")
        order = np.argsort(dev.lengths, kind="stable")
        plan = np.split(order, range(self.batching.sentences, len(order), self.batching.sentences))
        return Batches(dev, plan, tokens=int(dev.lengths.sum()))


def main() -> None:
    parser = outcome.parser()
    parser.add_argument("--batches", choices=("sentences", "random", "tokens"), default="sentences")
    parser.add_argument("--graphs", action="store_true")
    arguments = parser.parse_args()
    task = outcome.task(arguments)
    settings = [*overrides(task, arguments.batches), f"runtime.cuda_graphs={str(arguments.graphs).lower()}"]
    cfg = compose.compose(settings + places(task))
    torch.set_num_threads(cfg.runtime.threads)
    seed_everything(cfg.seed, verbose=False)
    corpus, encoder = read_data(cfg)
    module = CorpusModule if arguments.batches == "tokens" else SentenceBatches
    data = module(corpus, encoder, instantiate(cfg.batches), seed=cfg.seed)
    folder = task.folder / "ours"
    folder.mkdir(exist_ok=True)
    epochs = EpochLog(folder)
    fit(cfg, folder, build_for_training(cfg, encoder), data, [epochs], Sigterm(), None)
    outcome.write(
        task,
        train=[row["train_seconds"] for row in epochs.rows],
        decode=[row["seconds"] - row["train_seconds"] for row in epochs.rows],
        version=commit() or "",
        settings=settings,
    )


def overrides(task: outcome.Task, batches: str) -> list[str]:
    """Overrides of the suite's defaults in this benchmark."""
    settings = task.settings
    size = [] if batches == "tokens" else [f"batches.sentences={settings['batch']}"]
    return [
        "words=vectors",
        "chars=lstm",
        f"chars.module.dim={settings['char_dim']}",
        f"chars.module.hidden_size={settings['char_hidden']}",
        "model=bilstm",
        f"model.hidden_size={settings['hidden']}",
        f"model.dropout={settings['dropout']}",
        f"batches={batches}",
        *size,
        "optimizer=sgd",
        f"optimizer.lr={settings['lr']}",
        f"trainer.max_epochs={settings['epochs']}",
        f"trainer.patience={settings['epochs']}",
        f"runtime.threads={settings['threads']}",
        f"runtime.accelerator={settings.get('device', 'cpu')}",
    ]


def places(task: outcome.Task) -> list[str]:
    folder = task.folder.absolute()
    return [
        "data=conll",
        "data.name=conll",
        f"data.folder='{folder}'",
        "data.files={train: train.conll, dev: decode.conll}",
        "data.scheme=bioes",
        f"words.input.path='{task.vectors.absolute()}'",
        f"cache_dir='{folder}'",
    ]


if __name__ == "__main__":
    main()
