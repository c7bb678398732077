"""Agreement of a corpus's tokens with those that `predict` makes of the same text.

A model that was trained on other tokens than it gets scores less on raw text than on its test set. The raw text is
rebuilt from the tokens: with the white space that the file has between them, if it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

from ner_experiments.data.scripts import WITHOUT_SPACES
from ner_experiments.data.sentence import Corpus, Sentence, Tokens
from ner_experiments.data.tokenize import installed, tokenize

LOW = 0.98
"""Token F1 below which users are told what to set."""
MAX_SENTENCES = 2_000
"""Number of sentences that are compared, at equal distances in the corpus: half a second."""
_FREQUENT = 0.01
"""Share of tokens from which `_` is taken for a space: in English corpora it is 0.0002 at most."""

_JOINED = re.compile(r"(?<=\w)_(?=\w)")
_SPACES = frozenset(("_", "▁", "␣"))
"""Tokens that stand for a space, besides white space itself."""

RawText = Mapping[str, Any]
"""token_f1: in [0, 1]. rebuilt: how the text was rebuilt. better: other values of `data.tokens` -> their higher F1."""


@lru_cache(maxsize=2)  # the jobs of a sweep share their corpus
def raw_text_of(corpus: Corpus, tokens: Tokens) -> RawText | None:
    """`raw_text` of all splits of a corpus."""
    return raw_text(chain.from_iterable(corpus.splits.values()), tokens)


def raw_text(sentences: Iterable[Sentence], tokens: Tokens) -> RawText | None:
    """The agreement of the sentences' tokens with `tokens` of their text; None if they were made from it."""
    every = [it for it in sentences if it.gaps is not None]
    if not every:
        return None
    step = max(1, len(every) / MAX_SENTENCES)
    sample = [every[int(number * step)] for number in range(min(len(every), MAX_SENTENCES))]
    rebuilt, texts = _rebuilt(sample, tokens)
    f1 = token_f1(texts, tokens)
    others = [it for it in installed() if it != tokens] if f1 < LOW else []
    better = {it: other for it in others if (other := token_f1(texts, it)) > f1}
    return {"token_f1": f1, "rebuilt": rebuilt, "better": better}


def line(found: RawText) -> str:
    """The agreement in one line, with what to set if it is low."""
    f1, better = found["token_f1"], found["better"]
    text = f"raw text ({found['rebuilt']}): {100 * f1:.1f} % of the corpus's tokens are found (token F1)"
    if f1 >= LOW:
        return text
    best = max(better, key=better.__getitem__, default=None)
    setting = f"data.tokens={best} finds {100 * better[best]:.1f} %; else " if best else ""
    return f"{text}; {setting}give `predict` tokens, not raw text (--input conll or jsonl)"


Text = tuple[str, Sequence[tuple[int, int]], int]
"""A text, the first character of each of its tokens and the one after the last, and the number of all its tokens."""


def token_f1(texts: Iterable[Text], tokens: Tokens) -> float:
    """F1 of the tokens of texts by their characters."""
    both = total = 0
    for text, spans, count in texts:
        made = {pair for sentence in tokenize(text, tokens) for pair in sentence.offsets}
        both += len(made.intersection(spans))
        total += len(made) + count
    return 2 * both / total if total else 0.0


def _rebuilt(sentences: Sequence[Sentence], tokens: Tokens) -> tuple[str, list[Text]]:
    """How the text of the sentences is rebuilt, and the text of each."""
    if any("" in (it.gaps or ())[1:-1] for it in sentences):
        return "with the spacing of its files", [
            _text(it.words, it.gaps or _gaps(it.words)) for it in sentences
        ]
    words = [word for it in sentences for word in it.words]
    frequent = _FREQUENT * len(words)
    joined = tokens == "characters" or any(word.isspace() for word in words)
    if sum(word in _SPACES for word in words) > frequent:
        joined = True
        spelled = [tuple(" " if word in _SPACES else word for word in it.words) for it in sentences]
        how = "tokens joined, _ as a space"
    elif sum(_JOINED.search(word) is not None for word in words) > frequent:
        spelled = [tuple(_JOINED.sub(" ", word) for word in it.words) for it in sentences]
        how = "words joined by spaces, _ as a space"
    else:
        spelled = [it.words for it in sentences]
        how = "tokens joined" if joined else "words joined by spaces"
    if not joined and any(map(WITHOUT_SPACES.search, words)):
        how = f"{how}, but none in scripts without spaces"
    return how, [_text(it, [""] * (len(it) + 1) if joined else _gaps(it)) for it in spelled]


def _gaps(words: Sequence[str]) -> list[str]:
    """A space between words, but where both sides are of a script without spaces."""
    without = (
        WITHOUT_SPACES.match(one[-1]) and WITHOUT_SPACES.match(other[0]) for one, other in pairwise(words)
    )
    return ["", *("" if it else " " for it in without), ""]


def _text(words: Sequence[str], gaps: Sequence[str | None]) -> Text:
    parts: list[str] = []
    spans = []
    length = 0
    for word, gap in zip(words, gaps, strict=False):
        if gap is not None:
            start = length + len(gap)
            length = start + len(word)
            parts += (gap, word)
            spans.append((start, length))
    return "".join([*parts, gaps[-1] or ""]), spans, len(words)
