"""A short run of tests/campaigns/fuzz (`make fuzz` is the long one), and a check that it finds planted mistakes."""

from pathlib import Path
from random import Random

import pytest
from fuzz import campaign
from fuzz.corpora import Columns, draw, tags_of
from fuzz.oracle import Faulty, mentions
from fuzz.other_readers import all_readers
from fuzz.readers import Case, Reader

from ner_experiments.data.formats import annotated
from ner_experiments.data.formats.annotated import in_order

ANNOTATED = ("jsonl", "doccano", "prodigy", "csv", "conllu_ner", "brat")
SHORT = {
    **dict.fromkeys(
        ("conll", "conll, turned", "conll2000", "conll2003", "conllu", "msra", "ontonotes4"), 200
    ),
    **dict.fromkeys(("ontonotes5", "ontonotes5_columns", "ptb", "ud_ewt", "weibo", "wnut17"), 200),
    **dict.fromkeys(ANNOTATED, 200),
    **{"vectors": 400, "predict, words": 150, "predict, characters": 100},
}


def test_every_reader_of_the_campaign_is_tried(tmp_path: Path) -> None:
    assert set(SHORT) == {reader.name for reader in all_readers(tmp_path)}


@pytest.mark.parametrize("name", SHORT)
def test_a_reader_reads_right_or_refuses_with_place_and_reason(name: str) -> None:
    outcome = campaign.run_named(0, name, range(SHORT[name]))
    assert not outcome.wrong, next(iter(outcome.wrong.values()))
    assert outcome.tried == SHORT[name] == outcome.accepted + outcome.rules.total()
    assert outcome.accepted > 0
    assert outcome.rules.total() > 0


@pytest.mark.parametrize("name", ANNOTATED)
def test_a_lost_mention_is_found_in_every_format(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotated, "in_order", lambda mentions: in_order(mentions)[1:])
    assert len(campaign.run_named(0, name, range(40)).wrong) > 5


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    form = Columns({"word": 0, "tag": -1})
    first, second = (form.write(rng, draw(rng, "mentions")) for rng in (Random("1"), Random("1")))
    assert first == second


def test_the_oracle_reads_what_was_written_in_every_scheme() -> None:
    for number in range(300):
        for known in draw(Random(number), "mentions"):
            for scheme in ("iob1", "iob2", "bioes", "bmes"):
                assert mentions(tags_of(known, scheme)) == known.found


class Planted(Reader):
    """A reader with one mistake, `read`; its file is "whole", or broken in line 2."""

    name = "planted"
    inputs = 1

    def __init__(self, folder: Path, mistake: object, *, broken: bool) -> None:
        super().__init__(folder)
        self.mistake, self.broken = mistake, broken

    def case(self, rng: Random) -> Case:
        return Case(b"broken") if self.broken else self.whole(rng)

    def whole(self, rng: Random) -> Case:
        return Case(b"whole", [(0, 1, "PER")])

    def read(self) -> object:
        if callable(self.mistake):
            return self.mistake()
        if isinstance(self.mistake, Exception):
            raise self.mistake
        return self.mistake

    def expected(self, content: bytes) -> object:
        if self.broken:
            raise Faulty({2})
        return [(0, 1, "PER")]


def hang() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("mistake", "broken", "told"),
    [
        ([], False, "read []\nnot  [(0, 1, 'PER')]"),
        (KeyError("x"), False, "Traceback"),
        (ValueError("{path}:2: rule"), False, "refused a whole file"),
        (hang, False, "more than 0.1 seconds"),
        ([], True, "accepted, though lines [2] are at fault"),
        (ValueError("no column 3"), True, "a refusal without its place"),
        (ValueError("{path}:1: rule"), True, "names another line than [2]"),
        (ValueError("{path}: rule"), True, "names another line than [2]"),
        (ValueError("{path}:2: " + "x" * 1000), True, "a refusal of 10"),
        (ValueError("{path}:2: \u202e"), True, "a refusal of "),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), True, "Traceback"),
    ],
)
def test_each_kind_of_mistake_is_found(
    mistake: object, broken: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "SECONDS", 0.1)
    reader = Planted(tmp_path, mistake, broken=broken)
    if type(mistake) is ValueError:
        reader.mistake = ValueError(str(mistake).replace("{path}", str(reader.path)))
    outcome = campaign.run(reader, range(1), seed=0)
    assert told in outcome.wrong[0]
    assert outcome.accepted == 0


def test_what_is_right_is_not_called_wrong(tmp_path: Path) -> None:
    reader = Planted(tmp_path, [(0, 1, "PER")], broken=False)
    assert campaign.run(reader, range(1), seed=0).accepted == 1
    reader = Planted(
        tmp_path, ValueError(f"{tmp_path}/input:2: expected 3 columns, got 2: 'a b'"), broken=True
    )
    assert campaign.run(reader, range(1), seed=0).rules == {"expected N columns": 1}
