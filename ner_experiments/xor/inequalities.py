"""What sections 3.3 and 3.4 of Li, Fu & Ma (2020) ask of a tagger's scores, as inequalities.

Baseline-BiLSTM-CNN scores a tag by s = →s(tag | past) + ←s(tag | future) + b(tag); the token itself is in
both contexts. A CRF adds q(tag, next tag) for each transition, start and end included. A context is its
words, so what two phrases share is one and the same term; a term's printed name is its identity.

Each phrase must score its wanted tags above every rival: wanted - rival > 0. Terms of both cancel, and so
does softmax's normaliser, which depends on the phrase alone. A solver may ask for >= 1 instead and lose
nothing: the inequalities are homogeneous, so any solution, divided by its smallest difference, satisfies it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, product

Tags = tuple[str, ...]

TAGS: Tags = ("O", "S", "B", "I", "E")

FOLLOWERS = {"start": "OSB", "O": "OSB", "S": "OSB", "B": "IE", "I": "IE", "E": "OSB"}
"""Which tags may come next, for mentions of one type; a sequence may end where a mention may start."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """`tags` are the wanted tags of the words from index `first` on; the other words are context only."""

    number: int
    words: tuple[str, ...]
    tags: Tags
    first: int = 0

    def __str__(self) -> str:
        """The words with their wanted tags: Key and/I Peele."""
        tags = dict(enumerate(self.tags, start=self.first))
        return " ".join(f"{word}/{tags[t]}" if t in tags else word for t, word in enumerate(self.words))

    def score(self, tags: Tags, *, transitions: bool) -> Counter[str]:
        """The terms that add up to the score of `tags`, and how often each occurs."""
        terms: Counter[str] = Counter()
        for t, tag in enumerate(tags, start=self.first):
            past, future = " ".join(self.words[: t + 1]), " ".join(self.words[t:])
            terms.update((f"→s({tag} | {past})", f"←s({tag} | {future})", f"b({tag})"))
        if transitions:
            terms.update(f"q({tag}, {following})" for tag, following in pairwise(("start", *tags, "end")))
        return terms


@dataclass(frozen=True, slots=True)
class Inequality:
    """Score of a phrase's wanted tags minus score of `rival` > 0; what is equal on both sides is gone."""

    phrase: Phrase
    rival: Tags
    terms: Mapping[str, int]

    @property
    def left(self) -> dict[str, int]:
        return {term: count for term, count in self.terms.items() if count > 0}

    @property
    def right(self) -> dict[str, int]:
        return {term: -count for term, count in self.terms.items() if count < 0}

    def difference(self, values: Mapping[str, int]) -> int:
        """Left side minus right side; a term without a value is 0."""
        return sum(count * values.get(term, 0) for term, count in self.terms.items())

    def __str__(self) -> str:
        return " > ".join(" + ".join(write_sum(side)) for side in (self.left, self.right))


@dataclass(frozen=True, slots=True)
class Program:
    """The inequalities that must all hold for every phrase to get its wanted tags.

    left_out: the phrase of a case that the program is without.
    """

    name: str
    section: str
    phrases: tuple[Phrase, ...]
    inequalities: tuple[Inequality, ...]
    left_out: Phrase | None = None

    def without(self, phrase: Phrase) -> Program:
        """The program of the other phrases."""
        return replace(
            self,
            name=f"{self.name}, without phrase {phrase.number}",
            phrases=tuple(other for other in self.phrases if other != phrase),
            inequalities=tuple(row for row in self.inequalities if row.phrase != phrase),
            left_out=phrase,
        )


def programs() -> list[Program]:
    """The cases of both sections, the wanted tags against all others unless the name says otherwise.

    The paper says that Viterbi unties B I E from O O O 'with or without transition probabilities'. Without
    them this holds where only well-formed sequences compete (O O O is one). Where all do, each token is
    decided alone, and 'and' is section 3.3 again.
    """
    token = _phrases("Key You", "and", "Peele I", ("I",), ("O",), first=1)
    every = list(product(TAGS, repeat=3))
    valid = [tags for tags in every if well_formed(tags)]
    return [
        _program("one token, softmax", "3.3", token, list(product(TAGS)), transitions=False),
        _program("O S O or O O O, softmax", "3.4", letters(), every, transitions=False),
        _program("O S O or O O O, CRF", "3.4", letters(), every, transitions=True),
        _program("B I E or O O O, softmax", "3.4", titles(), every, transitions=False),
        _program("B I E or O O O, softmax, well-formed only", "3.4", titles(), valid, transitions=False),
        _program("B I E or O O O, CRF", "3.4", titles(), every, transitions=True),
    ]


def letters() -> tuple[Phrase, ...]:
    """O S O or O O O."""
    return _phrases("a b", "m", "c d", ("O", "S", "O"), ("O", "O", "O"))


def titles() -> tuple[Phrase, ...]:
    """B I E or O O O."""
    return _phrases("Key You", "and", "Peele I", ("B", "I", "E"), ("O", "O", "O"))


def well_formed(tags: Tags) -> bool:
    """Whether `tags` are whole mentions and O: each S alone, each B followed by I* E."""
    return tags[-1] in "OSE" and all(tag in FOLLOWERS[last] for last, tag in pairwise(("start", *tags)))


def write_sum(terms: Mapping[str, int]) -> list[str]:
    """The terms as text, one string per kind, in the paper's order: →s, ←s, b, q."""
    kinds = groupby(sorted(terms.items(), key=lambda item: "→←bq".index(item[0][0])), lambda item: item[0][0])
    return [
        " + ".join(term if count == 1 else f"{count} {term}" for term, count in items) for _, items in kinds
    ]


def _phrases(
    pasts: str, word: str, futures: str, same: Tags, crossed: Tags, first: int = 0
) -> tuple[Phrase, ...]:
    """In the paper's order: the two pairs that belong together, tagged `same`, then the two crossed ones."""
    (p1, p2), (f1, f2) = pasts.split(), futures.split()
    pairs = [(p1, f1, same), (p2, f2, same), (p1, f2, crossed), (p2, f1, crossed)]
    return tuple(Phrase(n, (p, word, f), tags, first) for n, (p, f, tags) in enumerate(pairs, start=1))


def _program(
    name: str, section: str, phrases: tuple[Phrase, ...], rivals: Sequence[Tags], *, transitions: bool
) -> Program:
    rows = []
    for phrase in phrases:
        for rival in (tags for tags in rivals if tags != phrase.tags):
            terms = phrase.score(phrase.tags, transitions=transitions)
            terms.subtract(phrase.score(rival, transitions=transitions))
            rows.append(Inequality(phrase, rival, {term: count for term, count in terms.items() if count}))
    return Program(name, section, phrases, tuple(rows))
