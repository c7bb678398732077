"""The optional libraries that cut text without spaces: the real ones where they are installed, else stand-ins."""

import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_time import growth

from ner_experiments.config.compose import compose
from ner_experiments.config.corpora import open_source
from ner_experiments.data import corpus, segmenters
from ner_experiments.data.segmenters import PACKAGES
from ner_experiments.data.sentence import Tokens
from ner_experiments.data.tokenize import UNITS, joint, tokenize
from ner_experiments.predict.tagger import load

WORDS = "นาย|สมชาย|เดิน|ทาง|ไป|กรุงเทพ|เวลา|မြန်မာ|သို့|ລາວ|ວຽງຈັນ|សុខា|ភ្នំពេញ|東京|へ|行っ|た|서울|에서|다|[!-~]+"
"""All that the stand-ins know."""


def known(text: str) -> Iterator[tuple[int, int]]:
    """The longest known words from left to right, runs of ASCII, and single characters."""
    return (it.span() for it in re.finditer(WORDS + r"|\S", text))


class WordBreaker:
    """Stand-in for ICU's, which counts UTF-16 units."""

    def __init__(self, text: str, locale: str) -> None:
        self.text = text

    def segments(self) -> Iterator[tuple[int, int]]:
        begin = 0
        for word in (self.text[slice(*it)] for it in known(self.text)):
            end = begin + len(word.encode("utf-16-le")) // 2
            yield begin, end
            begin = end


class Tagger:
    """Stand-in for MeCab's, which says the texts of words alone."""

    def __init__(self, arguments: str) -> None:
        assert arguments == '-r "here/mecabrc" -d "here"'

    def __call__(self, text: str) -> list[Any]:
        return [SimpleNamespace(surface=text[begin:end]) for begin, end in known(text)]


class Kiwi:
    """Stand-in for Kiwi, whose morphemes may share a syllable, such as those of `갔`."""

    def __init__(self, num_workers: int) -> None:
        assert num_workers == 1

    def tokenize(self, text: str) -> Iterator[Any]:
        for begin, end in known(text):
            for _ in range(1 + (text[begin:end] == "갔")):
                yield SimpleNamespace(start=begin, len=end - begin)


STAND_INS = {
    "icu4py": {},
    "icu4py.breakers": {"WordBreaker": WordBreaker},
    "fugashi": {"Tagger": Tagger},
    "unidic_lite": {"DICDIR": "here"},
    "kiwipiepy": {"Kiwi": Kiwi},
}


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> Iterator[None]:
    missing = [name for name in STAND_INS if find_spec(name.partition(".")[0]) is None]
    with pytest.MonkeyPatch.context() as patch:
        for name in missing:
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None)
            vars(module).update(STAND_INS[name])
            patch.setitem(sys.modules, name, module)
        yield
    for made in (segmenters._mecab, segmenters._kiwi):
        made.cache_clear()


EXPECTED = {
    "icu": {
        "นายสมชายเดินทางไปกรุงเทพ😀เวลา05.00 พ.ศ. 2567 (ABCกรุงเทพ)": (
            "นาย สมชาย เดิน ทาง ไป กรุงเทพ 😀 เวลา 05.00 พ.ศ. 2567 ( ABC กรุงเทพ )"
        ),
        "សុខាភ្នំពេញ។ລາວວຽງຈັນ မြန်မာသို့": "សុខា ភ្នំពេញ ។ | ລາວ ວຽງຈັນ မြန်မာ သို့",
        "He didn't go. 東京へ": "He did n't go . | 東京へ",
    },
    "fugashi": {
        "東京へ行った。😀東京\u3000👩\u200d🔬 Ann's https://a.b/c": "東京 へ 行っ た 。 | 😀 東京 👩\u200d🔬 Ann 's https://a.b/c",
    },
    "kiwipiepy": {
        "😀서울에서 갔다. '서울'에서 3.5% @me don't": "😀 서울 에서 갔 다 . | ' 서울 ' 에서 3.5 % @me do n't",
    },
}


@pytest.mark.parametrize("unit", EXPECTED)
def test_a_library_cuts_the_words_of_its_languages_alone(unit: Tokens) -> None:
    for text, expected in EXPECTED[str(unit)].items():
        assert " | ".join(" ".join(it.words) for it in tokenize(text, unit)) == expected


def test_every_segmenter_is_tried() -> None:
    assert EXPECTED.keys() == PACKAGES.keys()


@given(
    text=st.text(
        st.sampled_from("นกำ.0 မ\u1039က。東ｶﾞ\U00020bb7갔다'a\n\u3000👩\u200d🔬\ufe0f😀"), max_size=40
    ),
    unit=st.sampled_from([*EXPECTED]),
)
def test_tokens_leave_out_only_white_space(text: str, unit: Tokens) -> None:
    places = [place for it in tokenize(text, unit) for place in it.offsets]
    assert places == sorted(places)
    assert "".join(text[begin:end] for begin, end in places) == "".join(text.split())
    assert all(text[begin:end].split() == [text[begin:end]] for begin, end in places)


@pytest.mark.parametrize(
    ("piece", "unit"), [("นก", "icu"), ("พ.ศ. ", "icu"), ("東", "fugashi"), ("갔다. ", "kiwipiepy")]
)
def test_time_is_linear_in_the_text(piece: str, unit: Tokens) -> None:
    """With quadratic time, Kiwi took 15 seconds for 140,000 characters, and twice as many took four times as long."""
    list(tokenize(piece, unit))  # loads its dictionary
    assert growth(lambda size: list(tokenize(piece * (size // len(piece)), unit)), 5_000) < 9


MISSING = {
    "icu": "data.tokens=icu needs icu4py: pip install icu4py",
    "fugashi": "data.tokens=fugashi needs fugashi and unidic-lite: pip install fugashi unidic-lite",
    "kiwipiepy": "data.tokens=kiwipiepy needs kiwipiepy: pip install kiwipiepy",
}


@pytest.mark.parametrize("unit", MISSING)
def test_a_missing_library_is_refused_before_anything_is_read(
    unit: str, tmp_path: Path, toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmenters, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=f"^{MISSING[unit]}$"):
        corpus.check(open_source("jsonl", [f"data.tokens={unit}"], {"files": {"train": "no"}}))
    with pytest.raises(ValueError, match=f"^{MISSING[unit]}$"):
        load(toy_run, tokens=unit)  # type: ignore[arg-type]


# Segmenters of the user's own

OWN = """
def halves(line, size=2):
    text = line.rstrip()
    return ((begin, min(begin + size, len(text))) for begin in range(0, len(text), size))

class Halves:
    def __init__(self, size):
        self.size = size
    def __call__(self, line):
        return halves(line, self.size)

def gap(line):
    return [(0, 1)]

def back(line):
    return [(0, 2), (1, 4)]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "own_segmenters.py").write_text(OWN)
    (tmp_path / "train.jsonl").write_text('{"text": "ab cdef", "label": [[5, 7, "A"]]}\n')
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("own_segmenters", None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("_target_: own_segmenters.halves", ("ab", "c", "de", "f")),
        ("_target_: own_segmenters.halves, size: 5", ("ab", "cd", "ef")),
        ("_target_: own_segmenters.Halves, size: 5", ("ab", "cd", "ef")),
    ],
)
def test_a_function_of_a_line_or_a_class_of_such_makes_the_tokens(
    settings: str, words: tuple[str, ...], own: Path
) -> None:
    override = f"data.tokens={{{settings}}}"
    compose(["data=jsonl", override])
    source = open_source(
        "jsonl", [override, "data.misaligned=expand"], {"files": {"train": str(own / "train.jsonl")}}
    )
    assert source.read()["train"][0].words == words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            "_target_: own_segmenters.gap",
            "train.jsonl:1: data.tokens: expected tokens that cover the line, got none after 1",
        ),
        (
            "_target_: own_segmenters.back",
            "cover the line in order, got (1, 4) after a token that ends at 2 in 'ab cdef'",
        ),
        (
            "_target_: own_segmenters.none",
            "data.tokens._target_=own_segmenters.none: no such function or class",
        ),
        ("_target_: nowhere", "data.tokens._target_=nowhere: no such function or class"),
        ("size: 2", "tokens must be one of words, characters, icu, fugashi, kiwipiepy, got {'size': 2}"),
    ],
)
def test_a_segmenter_that_cannot_be_is_refused(settings: str, message: str, own: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        open_source(
            "jsonl", [f"data.tokens={{{settings}}}"], {"files": {"train": str(own / "train.jsonl")}}
        ).read()


def test_tokens_of_scripts_without_spaces_are_joined_without_any() -> None:
    assert {unit for unit in UNITS if joint(unit)} == {"words", "kiwipiepy"}
