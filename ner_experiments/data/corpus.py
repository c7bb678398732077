"""Corpora: where they come from (`Source`) and how they reach the models (`load`).

Sentences that stand in two splits: what a model was trained or chosen on, and is scored on again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import ClassVar, Literal, Protocol

from ner_experiments.data import toy
from ner_experiments.data.columns import PathOrFile, read_untagged
from ner_experiments.data.sentence import Corpus, Sentence, Task, Tokens
from ner_experiments.data.tags import Scheme, convert, illegal, spans

Splits = dict[str, list[Sentence]]
"""In the order train, dev, test; a split that the corpus does not have is absent."""

SchemeOrAuto = Scheme | Literal["auto"]


class Source(Protocol):
    """A corpus as its owners give it away, or as a grammar makes it."""

    @property
    def name(self) -> str: ...

    @property
    def task(self) -> Task: ...

    @property
    def scheme(self) -> SchemeOrAuto:
        """Of the tags that `read` returns; "auto": to be told from them. No matter where `task` is "tags"."""
        ...

    @property
    def held_out(self) -> float:
        """The share of train that `load` makes dev where the corpus has none."""
        ...

    @property
    def max_sentences(self) -> int | None:
        """How many sentences of each split `load` keeps, the first ones; None: all."""
        ...

    @property
    def tokens(self) -> Tokens:
        """What its tokens are; nothing that is trained or scored depends on it."""
        ...

    def read(self) -> Splits:
        """All sentences, their tags as they stand. ValueError: a file missing or malformed, a split empty."""
        ...

    def untagged(self, path: PathOrFile) -> Iterator[Sentence]:
        """What is in a file of its format, read as by `read` but for the tags, which are O."""
        ...

    def checksum(self) -> str:
        """One SHA-256 over all that `read` reads."""
        ...

    def unofficial(self) -> list[str] | None:
        """The splits whose files are not the published ones; None where no checksum of those is known."""
        ...

    def docstarts(self) -> dict[str, int]:
        """`-DOCSTART-` lines per split, if there are any: no sentences, but some papers count them."""
        ...


@dataclass(frozen=True, kw_only=True)
class ToyCorpus:
    """The toy language `language`, as many sentences of each split as `sentences` says."""

    name: str
    language: toy.Language
    sentences: Mapping[toy.Split, int]
    max_sentences: int | None = None
    task: ClassVar[Task] = "mentions"
    scheme: ClassVar[SchemeOrAuto] = "bioes"
    held_out: ClassVar[float] = 0.0

    @property
    def tokens(self) -> Tokens:
        return "characters" if self.language == "zh" else "words"

    def read(self) -> Splits:
        for split, count in self.sentences.items():
            if count < 1:
                raise ValueError(f"{self.name}: sentences.{split} must be at least 1, got {count}")
        return {split: toy.sentences(self.language, split, count) for split, count in self.sentences.items()}

    def untagged(self, path: PathOrFile) -> Iterator[Sentence]:
        return read_untagged(path, columns={"word": 0})

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for split, sentences in self.read().items():
            for sentence in sentences:
                digest.update(f"{split} {' '.join(sentence.words)} {' '.join(sentence.tags)}\n".encode())
        return digest.hexdigest()

    def unofficial(self) -> None:
        return None

    def docstarts(self) -> dict[str, int]:
        return {}


def load(source: Source) -> Corpus:
    """Read, hold out dev if there is none, convert, then limit; `Corpus.notes` says what was done.

    Mentions are read as conlleval does (`tags.spans`), and counted before and after all but the limit.
    ValueError: a file missing or malformed, a split empty, a setting out of range, a mention lost or added.
    """
    _check_settings(source)
    splits, notes = source.read(), []
    if unknown := [split for split in splits if split not in toy.SPLITS]:
        raise ValueError(f"{source.name}: a split must be one of {', '.join(toy.SPLITS)}, got {unknown[0]!r}")
    if "train" not in splits:
        raise ValueError(f"{source.name}: there is no train split, only {', '.join(splits)}")
    if unofficial := source.unofficial():
        notes.append(f"{', '.join(unofficial)}: the checksum is not that of the published file")
    scheme = scheme_of(source, splits) if source.task == "mentions" else None
    if scheme and source.scheme == "auto":
        notes.append(f"tags read as {scheme}, told from their letters")
    corpus = splits
    if "dev" not in splits:
        corpus, note = _hold_out(source, splits)
        notes.append(note)
    if scheme:
        broken = {split: count_illegal(sentences, scheme) for split, sentences in splits.items()}
        if any(broken.values()):
            counts = ", ".join(f"{number:,} in {split}" for split, number in broken.items() if number)
            notes.append(f"tags that break {scheme}: {counts}; the mentions are read as conlleval reads them")
        corpus = {split: [_to_bioes(sentence) for sentence in read] for split, read in corpus.items()}
        _compare(source.name, splits, corpus)
    if source.max_sentences is not None:
        corpus = {split: sentences[: source.max_sentences] for split, sentences in corpus.items()}
        notes.append(f"limited to the first {source.max_sentences:,} sentences of each split")
    return Corpus(source.name, source.task, corpus, source.checksum(), tuple(notes))


def scheme_of(source: Source, splits: Splits) -> Scheme:
    """The scheme of what `source` read: the one it states, or the one that the tags tell.

    M occurs: bmes. E or S: bioes. Else iob2 or iob1, whichever fewer tags break.
    """
    scheme = scheme_by_letters(source, splits)
    if source.scheme == "auto" and scheme == "iob2":
        sentences = list(chain.from_iterable(splits.values()))
        return "iob1" if count_illegal(sentences, "iob1") < count_illegal(sentences, "iob2") else "iob2"
    return scheme


def count_illegal(sentences: Iterable[Sentence], scheme: Scheme) -> int:
    """Tags that break the scheme."""
    return sum(len(illegal(sentence.tags, scheme)) for sentence in sentences)


def scheme_by_letters(source: Source, splits: Splits) -> Scheme:
    """As `scheme_of`, but by letters alone: iob2 stands for iob1 too; what is no tag makes no difference."""
    if source.scheme != "auto":
        return source.scheme
    tags = {tag for sentences in splits.values() for sentence in sentences for tag in sentence.tags}
    letters = {tag[0] for tag in tags if tag[1:2] == "-"}
    return "bmes" if "M" in letters else "bioes" if letters & {"E", "S"} else "iob2"


def count_mentions(sentences: Iterable[Sentence]) -> Counter[str]:
    """Mentions of each type, as conlleval reads them."""
    return Counter(type_ for sentence in sentences for _, _, type_ in spans(sentence.tags))


def _check_settings(source: Source) -> None:
    share, limit = source.held_out, source.max_sentences
    if not 0 <= share < 1:
        raise ValueError(f"{source.name}: held_out must be at least 0 and less than 1, got {share}")
    if limit is not None and not (isinstance(limit, int) and limit >= 1):
        raise ValueError(f"{source.name}: max_sentences must be null or a whole number from 1, got {limit!r}")


def _hold_out(source: Source, splits: Splits) -> tuple[Splits, str]:
    """The end of train becomes dev: in one piece, so that its sentences have few neighbours left in train."""
    train = splits["train"]
    if not source.held_out:
        rule = "name its file, or hold out the end of train, a tenth by held_out: 0.1"
        raise ValueError(f"{source.name}: there is no development set; {rule}")
    count = round(len(train) * source.held_out)
    if not 0 < count < len(train):
        raise ValueError(
            f"{source.name}: there is no development set, and held_out={source.held_out} of train's "
            f"{len(train):,} sentences makes none"
        )
    others = {split: sentences for split, sentences in splits.items() if split != "train"}
    note = (
        f"dev: the last {count:,} of train's {len(train):,} sentences, as the corpus has no development set"
    )
    return {"train": train[:-count], "dev": train[-count:], **others}, note


def _to_bioes(sentence: Sentence) -> Sentence:
    return replace(sentence, tags=convert(sentence.tags, "bioes"))


def _compare(name: str, splits: Splits, corpus: Splits) -> None:
    """ValueError if a split of the files and what became of it do not have as many mentions of each type."""
    after = {split: _count_beginnings(sentences) for split, sentences in corpus.items()}
    for split, sentences in splits.items():
        before = count_mentions(sentences)
        now = after[split] + (after["dev"] if split == "train" and "dev" not in splits else Counter())
        if before != now:
            raise ValueError(
                f"{name}: {split} has {before.total():,} mentions in its files and {now.total():,} as BIOES "
                f"(lost: {dict(before - now)}, added: {dict(now - before)})"
            )


def _count_beginnings(sentences: Iterable[Sentence]) -> Counter[str]:
    """Mentions of each type in legal BIOES tags, counted without the code that converts them."""
    return Counter(tag[2:] for sentence in sentences for tag in sentence.tags if tag[0] in "BS")


def shared(splits: Mapping[str, Sequence[Sentence]]) -> dict[tuple[str, str], int]:
    """(train, test) -> how many sentences of test have the words of one of train, in its order; all pairs."""
    words = {split: [sentence.words for sentence in sentences] for split, sentences in splits.items()}
    return {
        (one, other): sum(map(set(words[one]).__contains__, words[other]))
        for one, other in combinations(words, 2)
    }


def audit(splits: Mapping[str, Sequence[Sentence]]) -> dict[str, int]:
    """The same by names such as "test_in_train", for a run's result."""
    return {f"{other}_in_{one}": count for (one, other), count in shared(splits).items()}
