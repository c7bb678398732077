"""Agreement of a corpus's tokens with those of `predict`, counted by hand on texts that are written out."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from annotated_files import lines_of
from in_process import Ner
from tiny_runs import finished

from ner_experiments.data import raw_text
from ner_experiments.data.format_files import AnnotatedFiles
from ner_experiments.data.formats import conllu
from ner_experiments.data.formats.conllu import gaps
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence, Tokens
from ner_experiments.export.card import card
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import open_run


def found(*sentences: str, tokens: Tokens = "words", joint: str = " ") -> Any:
    words = [tuple(it.split(joint)) for it in sentences]
    return raw_text.raw_text([Sentence(it, ("O",) * len(it)) for it in words], tokens)


def f1(both: int, made: int, own: int) -> float:
    return 2 * both / (made + own)


def test_words_joined_by_spaces() -> None:
    """`can't` is two words for `predict`, and `U.S.A` one."""
    it = found("We can't see U.S.A .")
    assert (it["token_f1"], it["rebuilt"]) == (f1(4, 6, 5), "words joined by spaces")
    assert raw_text.line(it) == (
        "raw text (words joined by spaces): 72.7 % of the corpus's tokens are found (token F1); give `predict` tokens, "
        "not raw text (--input conll or jsonl)"
    )
    it = found("We see .")
    assert raw_text.line(it) == (
        "raw text (words joined by spaces): 100.0 % of the corpus's tokens are found (token F1)"
    )


@pytest.mark.parametrize(
    ("sentence", "tokens", "expected", "rebuilt"),
    [
        # a space is a token of the corpus, and never one of `predict`
        ("한|국| |서|울", "characters", f1(4, 4, 5), "tokens joined"),
        ("한|국|_|서|울", "characters", f1(4, 4, 5), "tokens joined, _ as a space"),
        # a word of two syllables is two words of raw text
        ("Tôi|ở|Hà_Nội", "words", f1(2, 4, 3), "words joined by spaces, _ as a space"),
        # Thai and Chinese words are not apart in raw text, whose words are then the whole clause
        ("ฉัน|ไป|กรุงเทพ", "words", 0.0, "words joined by spaces, but none in scripts without spaces"),
        (
            "我|在|上海|IBM",
            "words",
            f1(1, 2, 4),
            "words joined by spaces, but none in scripts without spaces",
        ),
    ],
)
def test_other_scripts(sentence: str, tokens: Tokens, expected: float, rebuilt: str) -> None:
    it = found(sentence, tokens=tokens, joint="|")
    assert (it["token_f1"], it["rebuilt"]) == (pytest.approx(expected), rebuilt)


def test_another_unit_is_named_if_it_finds_more() -> None:
    it = found("我|在|上|海", joint="|")
    assert it["better"]["characters"] == 1.0  # segmenters that are installed may find more, too
    assert raw_text.line(it).endswith(
        "data.tokens=characters finds 100.0 %; else give `predict` tokens, not raw text "
        "(--input conll or jsonl)"
    )


CONLLU = """# text = Vámonos al mar, don't.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\t_\tVERB\tV\t_\t_\t_\t_\t_
2\tnos\t_\tPRON\tP\t_\t_\t_\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\t_\tADP\tA\t_\t_\t_\t_\t_
4\tel\t_\tDET\tD\t_\t_\t_\t_\t_
5\tmar\t_\tNOUN\tN\t_\t_\t_\t_\tSpaceAfter=No
6\t,\t_\tPUNCT\t,\t_\t_\t_\t_\t_
7-8\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
7\tdo\t_\tVERB\tV\t_\t_\t_\t_\t_
8\tn't\t_\tPART\tR\t_\t_\t_\t_\t_
9\t.\t_\tPUNCT\t.\t_\t_\t_\t_\t_

"""


def test_conllu_has_its_own_spacing(tmp_path: Path) -> None:
    """Vámonos and al stand for words that the text does not have; do and n't are parts of it."""
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    (sentence,) = conllu.read_pos(path, conllu.PosOptions(), Remarks())
    assert sentence.gaps == (None, None, None, None, "Vámonos al ", "", " ", "", "", " ")
    it = raw_text.raw_text([sentence], "words")
    assert it == {"token_f1": f1(5, 7, 9), "rebuilt": "with the spacing of its files", "better": {}}
    named = CONLLU.replace("SpaceAfter=No", "NER=O|SpaceAfter=No").replace(
        "mar\t_\tNOUN\tN\t_\t_\t_\t_\tNER=O", "mar\t_\tNOUN\tN\t_\t_\t_\t_\tNER=B-LOC"
    )
    path.write_text(named, encoding="utf-8")
    files = {"train": str(path)}
    (same,) = AnnotatedFiles(name="mine", folder="", files=files, format="conllu_ner").read()["train"]
    assert same.gaps == sentence.gaps


def test_a_range_that_does_not_end_has_no_spacing() -> None:
    assert gaps([("1-3", "abc", "_"), ("1", "a", "_"), ("2", "b", "_")]) == ()


def test_tokens_in_a_text_of_the_file_and_tokens_made_from_it(tmp_path: Path) -> None:
    text = "Ada met Bob-Jones."
    pairs = [(0, 3), (4, 7), (8, 11), (11, 12), (12, 17), (17, 18)]
    tokens = [{"start": a, "end": b} for a, b in pairs]
    path = lines_of(
        tmp_path / "a.jsonl", {"text": text, "tokens": tokens, "spans": []}, {"text": text, "spans": []}
    )
    source = AnnotatedFiles(name="mine", folder="", files={"train": str(path)}, format="jsonl")
    own, made = source.read()["train"]
    assert raw_text.raw_text([own, made], "words")["token_f1"] == f1(3, 4, 6)
    assert raw_text.raw_text([made], "words") is None


def test_of_a_large_corpus_a_sample_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_text, "MAX_SENTENCES", 4)
    sentences = ["can't" if number % 5 == 0 else "good" for number in range(10)]
    assert found(*sentences)["token_f1"] == f1(2, 6, 4)  # those with the numbers 0, 2, 5 and 7


def test_where_the_agreement_is_said(
    tmp_path: Path,
    ner: Ner,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In training, metrics.json, the model card, `data new`, and in `predict` on raw text if it is low."""
    blocks = 60 * ["Bob B-PER\ncan't O\nsee O\n"]
    for split in ("train", "test"):
        (tmp_path / f"{split}.conll").write_text("\n".join(blocks))
    files = [f"data.files.{split}={tmp_path}/{split}.conll" for split in ("train", "test")]
    with caplog.at_level(logging.INFO):
        run = finished(tmp_path, "data=conll", "data.name=mine", "data.held_out=0.2", *files)
    line = (
        "raw text (words joined by spaces): 57.1 % of the corpus's tokens are found (token F1); give `predict` tokens, "
        "not raw text (--input conll or jsonl)"
    )
    assert line in caplog.messages
    about = artifacts.read_metrics(run / "metrics.json")["data"]
    assert json.loads(json.dumps(about["raw_text"])) == {
        "token_f1": f1(2, 4, 3),
        "rebuilt": "words joined by spaces",
        "better": {},
    }
    assert f"- {line}" in card(open_run(run)).splitlines()
    monkeypatch.chdir(tmp_path)
    assert line in ner("data", "new", "mine", "train.conll", "test.conll").splitlines()
    (tmp_path / "a.txt").write_text("Bob can't see")
    caplog.clear()
    ner("predict", str(run), "a.txt")
    assert line in caplog.messages
    for other in (["--tokens", "words"], ["--input", "conll"]):
        caplog.clear()
        ner("predict", str(run), "train.conll", *other)
        assert line not in caplog.messages
