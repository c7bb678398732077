"""Trains and decodes with as little code of our own as PyTorch allows: packed stock LSTMs and pytorch-crf.

    python run_pytorch.py FOLDER OUTPUT

Batches are random in training, and sorted by length in decoding. The character LSTM reads every token of a batch, not
each distinct word once.
"""

import importlib.metadata
import random
import time
from collections.abc import Sequence

import outcome
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence
from torchcrf import CRF

Ids = tuple[Tensor, list[Tensor], Tensor]
"""Ids of a sentence: its words, the characters of each, and its tags."""


def main() -> None:
    task = outcome.task(outcome.parser().parse_args())
    settings = task.settings
    torch.set_default_device(settings.get("device", "cpu"))
    torch.manual_seed(1)
    random.seed(1)
    encode, tags, vectors, characters = reader(task)
    train, unseen = (encode(outcome.read(path)) for path in (task.train, task.decode))
    model = Tagger(settings, vectors, characters, len(tags))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    train_seconds, decode_seconds = [], []
    for _ in range(settings["epochs"]):
        started = time.perf_counter()
        train_epoch(model, optimizer, train, settings["batch"])
        trained = time.perf_counter()
        decode(model, unseen, settings["batch"], tags)  # waits for the device
        train_seconds.append(trained - started)
        decode_seconds.append(time.perf_counter() - trained)
    outcome.write(
        task,
        train=train_seconds,
        decode=decode_seconds,
        version=f"pytorch-crf {importlib.metadata.version('pytorch-crf')}",
        settings={"optimizer": "SGD", "gradient_clip": 5.0},
    )


def reader(task: outcome.Task):
    """A function from sentences to ids, the tags, the vectors by word id, and the number of characters."""
    lines = [line.split(" ") for line in task.vectors.read_text(encoding="utf-8").splitlines()]
    words = {word: number for number, (word, *_) in enumerate(lines, start=1)}
    vectors = torch.tensor([[float(number) for number in line] for _, *line in lines])
    alphabet = sorted({character for word in words for character in word})
    characters = {character: number for number, character in enumerate(alphabet, start=1)}
    corpus = outcome.read(task.train) + outcome.read(task.decode)
    tags = sorted({tag for _, gold in corpus for tag in gold})
    numbers = {tag: number for number, tag in enumerate(tags)}

    def encode(sentences: list[tuple[list[str], list[str]]]) -> list[Ids]:
        return [
            (
                torch.tensor([words[word] for word in sentence]),
                [torch.tensor([characters[character] for character in word]) for word in sentence],
                torch.tensor([numbers[tag] for tag in gold]),
            )
            for sentence, gold in sentences
        ]

    return encode, tags, nn.functional.pad(vectors, (0, 0, 1, 0)), len(characters) + 1


class Tagger(nn.Module):
    def __init__(self, settings: dict, vectors: Tensor, characters: int, tags: int) -> None:
        super().__init__()
        hidden, char_hidden = settings["hidden"], settings["char_hidden"]
        both = {"batch_first": True, "bidirectional": True}
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.characters = nn.Embedding(characters, settings["char_dim"], padding_idx=0)
        self.char_lstm = nn.LSTM(settings["char_dim"], char_hidden, **both)
        self.lstm = nn.LSTM(vectors.shape[1] + 2 * char_hidden, hidden, **both)
        self.dropout = nn.Dropout(settings["dropout"])
        self.output = nn.Linear(2 * hidden, tags)
        self.crf = CRF(tags, batch_first=True)

    def forward(self, batch: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """Scores [batch time tags], and the mask [batch time]."""
        lengths = torch.tensor([len(words) for words, *_ in batch])
        words = self.words(pad_sequence([words for words, *_ in batch], batch_first=True))
        spelt = [characters for _, sentence, _ in batch for characters in sentence]
        packed = pack(self.characters(pad_sequence(spelt, batch_first=True)), list(map(len, spelt)))
        last = self.char_lstm(packed)[1][0].transpose(0, 1).flatten(1)
        chars = pad_sequence(last.split(lengths.tolist()), batch_first=True)
        packed = pack(self.dropout(torch.cat([words, chars], dim=2)), lengths.tolist())
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mask = torch.arange(states.shape[1]) < lengths[:, None]
        return self.output(self.dropout(states)), mask


def pack(x: Tensor, lengths: list[int]) -> PackedSequence:
    on_cpu = torch.tensor(lengths, device="cpu")
    return pack_padded_sequence(x, on_cpu, batch_first=True, enforce_sorted=False)


def train_epoch(model: Tagger, optimizer: torch.optim.Optimizer, sentences: list[Ids], size: int) -> None:
    model.train()
    random.shuffle(sentences)
    for first in range(0, len(sentences), size):
        batch = sentences[first : first + size]
        scores, mask = model(batch)
        gold = pad_sequence([tags for *_, tags in batch], batch_first=True)
        loss = -model.crf(scores, gold, mask, reduction="mean")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    loss.item()  # waits for the device


@torch.no_grad()
def decode(model: Tagger, sentences: list[Ids], size: int, tags: list[str]) -> list[list[str]]:
    model.eval()
    order = sorted(sentences, key=lambda sentence: len(sentence[0]))
    decoded: list[list[str]] = []
    for first in range(0, len(order), size):
        scores, mask = model(order[first : first + size])
        decoded += [[tags[number] for number in sentence] for sentence in model.crf.decode(scores, mask)]
    return decoded


if __name__ == "__main__":
    main()
