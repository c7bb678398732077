"""Sources and load(): what is in the files reaches the models, and nothing of it is lost unsaid."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import instantiate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from ner_experiments.data import corpus as corpus_module
from ner_experiments.data.corpus import Source, ToyCorpus, load
from ner_experiments.data.files import ColumnFiles, ConlluFiles, GoldConllFiles
from ner_experiments.data.sentence import Corpus

DATA = os.environ.get("NER_DATA_DIR")
CONF = Path(__file__).parents[1] / "conf" / "data"

TRAIN = "EU I-ORG\nrejects O\nGerman I-MISC\n\nAda I-PER\nLovelace I-PER\nEve B-PER\n"
DEV = "Paris I-LOC\n"
TEST = "Rain O\nin O\nRome I-LOC\n"


def columns(folder: Path, texts: Mapping[str, str], **settings: Any) -> ColumnFiles:
    """A source over files with these texts: split -> text."""
    for split, text in texts.items():
        (folder / f"{split}.txt").write_text(text, encoding="utf-8")
    settings = {"columns": {"word": 0, "tag": 1}, "scheme": "iob1"} | settings
    return ColumnFiles(name="mine", folder=str(folder), files={s: f"{s}.txt" for s in texts}, **settings)


def tags(corpus: Corpus) -> dict[str, list[str]]:
    return {split: [" ".join(s.tags) for s in sentences] for split, sentences in corpus.splits.items()}


def numbered(count: int) -> str:
    return "".join(f"word{number} O\n\n" for number in range(count))


def test_mentions_reach_the_models_as_bioes(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST}))
    assert tags(corpus) == {
        "train": ["S-ORG O S-MISC", "B-PER E-PER S-PER"],
        "dev": ["S-LOC"],
        "test": ["O O S-LOC"],
    }
    assert list(corpus.splits) == ["train", "dev", "test"]
    assert corpus.splits["train"][1].words == ("Ada", "Lovelace", "Eve")
    assert (corpus.name, corpus.task, corpus.notes) == ("mine", "mentions", ())


@pytest.mark.parametrize(
    ("scheme", "text"),
    [
        ("iob1", "a I-X\nb I-X\nc B-X\nd I-Y\ne O\nf I-X\n"),
        ("iob2", "a B-X\nb I-X\nc B-X\nd B-Y\ne O\nf B-X\n"),
        ("bioes", "a B-X\nb E-X\nc S-X\nd S-Y\ne O\nf S-X\n"),
        ("bmes", "a B-X\nb E-X\nc S-X\nd S-Y\ne O\nf B-X\ng M-X\nh E-X\n"),
    ],
)
@pytest.mark.parametrize("stated", [True, False])
def test_every_scheme_is_read_stated_or_told(scheme: str, text: str, stated: bool, tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": text, "dev": text}, scheme=scheme if stated else "auto"))
    expected = "B-X E-X S-X S-Y O " + ("B-X I-X E-X" if scheme == "bmes" else "S-X")
    assert tags(corpus) == {"train": [expected], "dev": [expected]}
    assert corpus.notes == (() if stated else (f"tags read as {scheme}, told from their letters",))


def test_all_splits_tell_the_scheme(tmp_path: Path) -> None:
    corpus = load(
        columns(tmp_path, {"train": "a B-X\n", "dev": "a O\nb I-X\n", "test": "a I-X\n"}, scheme="auto")
    )
    assert corpus.notes[0] == "tags read as iob1, told from their letters"
    assert corpus.notes[1].startswith("tags that break iob1: 1 in train;")


def test_illegal_gold_tags_are_mentions_as_for_conlleval(tmp_path: Path) -> None:
    text = "a O\nb I-X\nc I-Y\nd I-Y\n\ne I-X\n"
    corpus = load(columns(tmp_path, {"train": text, "dev": DEV.replace("I-", "B-")}, scheme="iob2"))
    assert tags(corpus)["train"] == ["O S-X B-Y E-Y", "S-X"]


@pytest.mark.parametrize(
    ("scheme", "tag", "read_as"),
    [
        ("iob1", "S-PER", "iob1"),
        ("bioes", "M-PER", "bioes"),
        ("auto", "PER", "iob2"),
        ("auto", "MISC", "iob2"),
        ("auto", "B-", "iob2"),
    ],
)
def test_what_is_no_tag_is_named_with_its_line(scheme: str, tag: str, read_as: str, tmp_path: Path) -> None:
    texts = {"train": "a O\n", "dev": f"a O\n\n\nb O\nc {tag}\nd {tag}\n"}
    place = re.escape(str(tmp_path / "dev.txt"))
    with pytest.raises(
        ValueError, match=f"^{place}:5: not a tag of {read_as}: tag '{tag}' is neither O nor "
    ):
        load(columns(tmp_path, texts, scheme=scheme))


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 2 columns") as caught:
        load(columns(tmp_path, {"train": "a O\nb O O\n"}))
    assert str(caught.value) == f"{tmp_path / 'train.txt'}:2: expected 2 columns, got 3: 'b O O'"


def test_without_dev_the_end_of_train_is_held_out(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": numbered(1995), "test": TEST}, held_out=0.1))
    words = {split: [s.words[0] for s in sentences] for split, sentences in corpus.splits.items()}
    assert list(words) == ["train", "dev", "test"]
    assert words["train"] == [f"word{number}" for number in range(1795)]
    assert words["dev"] == [f"word{number}" for number in range(1795, 1995)]  # 199.5, rounded to even
    assert corpus.notes == (
        "dev: the last 200 of train's 1,995 sentences, as the corpus has no development set",
    )


def test_dev_is_not_held_out_where_there_is_one(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": numbered(10), "dev": DEV}, held_out=0.5))
    assert [len(corpus.splits[split]) for split in ("train", "dev")] == [10, 1]
    assert corpus.notes == ()


def test_the_limit_comes_after_holding_out(tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": numbered(2000), "test": TEST}, held_out=0.5, max_sentences=999)
    corpus = load(source)
    assert {split: len(sentences) for split, sentences in corpus.splits.items()} == {
        "train": 999,
        "dev": 999,
        "test": 1,
    }
    assert corpus.splits["dev"][0].words == ("word1000",)
    assert corpus.notes[1] == "limited to the first 999 sentences of each split"
    assert all(len(source.read()[split]) == count for split, count in (("train", 2000), ("test", 1)))


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (
            {"train": numbered(4)},
            {},
            "mine: there is no development set, and held_out=0.0 of train's 4 sentences makes none",
        ),
        (
            {"train": numbered(1)},
            {"held_out": 0.9},
            "mine: there is no development set, and held_out=0.9 of train's 1 sentences makes none",
        ),
        ({"train": TRAIN}, {"held_out": 1.0}, "mine: held_out must be at least 0 and less than 1, got 1.0"),
        ({"train": TRAIN}, {"held_out": -0.1}, "mine: held_out must be at least 0 and less than 1, got -0.1"),
        (
            {"train": TRAIN, "dev": DEV},
            {"max_sentences": 0},
            "mine: max_sentences must be null or a whole number from 1, got 0",
        ),
        (
            {"train": TRAIN, "dev": DEV},
            {"max_sentences": "few"},
            "mine: max_sentences must be null or a whole number from 1, got 'few'",
        ),
        ({"dev": DEV, "test": TEST}, {}, "mine: there is no train split, only dev, test"),
        ({"train": TRAIN, "dev": "\n\n"}, {}, "mine: dev has no sentence: dev.txt"),
        ({}, {}, "mine: no file is named; set data.files.train, .dev and .test"),
        (
            {"train": TRAIN},
            {"scheme": "bio"},
            "mine: scheme must be one of auto, iob1, iob2, bioes, bmes, got 'bio'",
        ),
        ({"train": TRAIN}, {"tokens": "chars"}, "mine: tokens must be one of words, characters, got 'chars'"),
        ({"train": TRAIN}, {"task": "ner"}, "mine: task must be one of mentions, tags, got 'ner'"),
    ],
)
def test_settings_out_of_range(
    texts: Mapping[str, str], settings: Mapping[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        load(columns(tmp_path, texts, **settings))


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    source = columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST})
    (tmp_path / "train.txt").unlink()
    (tmp_path / "test.txt").unlink()
    start = f"mine: not found in {tmp_path}: train.txt, test.txt"
    place = f"Put it there, or set NER_DATA_DIR to the folder that holds {tmp_path.name}/"
    get = "To download it there: ner-experiments data get mine"
    about = {"source": "My names, https://example.org", "licence": "CC0"}
    for told, message in (
        ({}, start),
        (about, f"{start}. This is My names, https://example.org. Licence: CC0. {place}"),
        (
            about | {"url": "https://x"},
            f"{start}. This is My names, https://example.org. Licence: CC0. {get}",
        ),
    ):
        with pytest.raises(ValueError, match="not found") as caught:
            ColumnFiles(
                name="mine", folder=str(tmp_path), files=source.files, columns=source.columns, **told
            ).read()
        assert str(caught.value) == message


def test_files_may_lie_elsewhere_and_be_absent(tmp_path: Path) -> None:
    (tmp_path / "far.txt").write_text(TRAIN)
    files = {"train": str(tmp_path / "far.txt"), "dev": None, "test": None}
    source = ColumnFiles(
        name="mine", folder="elsewhere", files=files, columns={"word": 0, "tag": -1}, held_out=0.5
    )
    assert tags(load(source)) == {"train": ["S-ORG O S-MISC"], "dev": ["B-PER E-PER S-PER"]}


def test_a_lost_mention_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = columns(tmp_path, {"train": TRAIN}, held_out=0.5)

    def forgetful(tags: tuple[str, ...], to: str) -> tuple[str, ...]:
        return tuple("S-LOC" if tag == "B-PER" else "O" for tag in tags)

    monkeypatch.setattr(corpus_module, "convert", forgetful)
    with pytest.raises(ValueError, match="mentions") as caught:
        load(source)
    assert str(caught.value) == (
        "mine: train has 4 mentions in its files and 1 as BIOES "
        "(lost: {'ORG': 1, 'MISC': 1, 'PER': 2}, added: {'LOC': 1})"
    )


def test_tags_that_are_no_mentions_stay_as_they_are(tmp_path: Path) -> None:
    corpus = load(columns(tmp_path, {"train": "a DT\nS-x NN\n", "dev": "b I-NP\n"}, task="tags"))
    assert corpus.task == "tags"
    assert tags(corpus) == {"train": ["DT NN"], "dev": ["I-NP"]}
    assert corpus.notes == ()


def test_conllu_gives_the_tags_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(
        "1\tIt\tit\tPRON\tPRP" + "\t_" * 5 + "\n2\truns\trun\tVERB\tVBZ" + "\t_" * 5 + "\n"
    )
    for tag, expected in (("xpos", "PRP VBZ"), ("upos", "PRON VERB")):
        files = {"train": "a.conllu", "dev": "a.conllu"}
        corpus = load(ConlluFiles(name="ud", folder=str(tmp_path), files=files, tag=tag))
        assert corpus.task == "tags"
        assert tags(corpus) == {"train": [expected], "dev": [expected]}


def test_gold_conll_is_a_tree_in_a_fixed_order(tmp_path: Path) -> None:
    documents = {
        "train/data/english/annotations/nw/wsj/00/b.v4_gold_conll": ("Rome", "(GPE)"),
        "train/data/english/annotations/bc/cnn/00/a.gold_conll": ("Ada", "(PERSON)"),
        "train/data/english/annotations/pt/nt/40/c.gold_conll": ("verily", "*"),
        "train/data/chinese/annotations/nw/x/00/d.gold_conll": ("罗马", "(GPE)"),
        "development/data/english/annotations/wb/x/00/e.gold_conll": ("rain", "*"),
        "test/data/english/annotations/tc/x/00/f.gold_conll": ("Eve", "(PERSON)"),
        "conll-2012-test/data/english/annotations/tc/x/00/f.gold_conll": ("Eve", "(PERSON)"),
        "train/data/english/annotations/nw/wsj/00/b.v4_gold_skel": ("[WORD]", "(GPE)"),
    }
    for name, (word, names) in documents.items():
        path = tmp_path / "ontonotes5" / "any" / "depth" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x 0 0 {word} NN (TOP*) - - - - {names} -\n\n", encoding="utf-8")
    source = described("ontonotes5", tmp_path)
    assert isinstance(source, GoldConllFiles)
    read = {split: [" ".join(s.words) for s in sentences] for split, sentences in source.read().items()}
    assert read == {"train": ["Ada", "Rome"], "dev": ["rain"], "test": ["Eve"]}
    assert tags(load(source)) == {"train": ["S-PERSON", "S-GPE"], "dev": ["O"], "test": ["S-PERSON"]}


def test_docstart_lines_are_counted_apart(tmp_path: Path) -> None:
    docstart = "-DOCSTART- O\n\n"
    source = columns(tmp_path, {"train": "\ufeff" + docstart + TRAIN + "\n" + docstart + DEV, "dev": DEV})
    assert source.docstarts() == {"train": 2}
    assert {split: len(sentences) for split, sentences in source.read().items()} == {"train": 3, "dev": 1}


def test_the_checksum_is_of_split_name_and_content(tmp_path: Path) -> None:
    texts = {"train": TRAIN, "dev": DEV}
    here, there, other = (tmp_path / name for name in ("here", "there", "other"))
    for folder in (here, there, other):
        folder.mkdir()
    lines = (
        f"{split} {split}.txt {hashlib.sha256(text.encode()).hexdigest()}\n" for split, text in texts.items()
    )
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert load(columns(here, texts)).checksum == expected
    assert columns(there, texts, max_sentences=1).checksum() == expected
    assert columns(other, {"train": TRAIN, "dev": TEST}).checksum() != expected
    swapped = ColumnFiles(
        name="mine",
        folder=str(here),
        files={"train": "dev.txt", "dev": "train.txt"},
        columns={"word": 0, "tag": 1},
    )
    assert swapped.checksum() != expected


def test_other_files_than_the_published_ones_are_noted(tmp_path: Path) -> None:
    published = {
        split: hashlib.sha256(text.encode()).hexdigest() for split, text in (("train", TRAIN), ("dev", DEV))
    }
    source = columns(tmp_path, {"train": TRAIN, "dev": DEV, "test": TEST}, sha256=published)
    assert source.unofficial() == ["test"]
    assert load(source).notes == ("test: the checksum is not that of the published file",)
    assert columns(tmp_path, {"train": TRAIN, "dev": DEV}, sha256=published).unofficial() == []
    assert columns(tmp_path, {"train": TRAIN}).unofficial() is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_toys_are_the_same_every_time(language: str) -> None:
    def toy(**sizes: int) -> ToyCorpus:
        return ToyCorpus(name="toy", language=language, sentences=sizes)

    corpus = load(toy(train=30, dev=10, test=10))
    assert {split: len(sentences) for split, sentences in corpus.splits.items()} == {
        "train": 30,
        "dev": 10,
        "test": 10,
    }
    assert corpus.notes == ()
    assert toy(train=30, dev=10, test=10).checksum() == corpus.checksum
    assert toy(train=31, dev=10, test=10).checksum() != corpus.checksum
    assert toy(train=30, dev=10, test=10).unofficial() is None
    with pytest.raises(ValueError, match=r"^toy: sentences\.dev must be at least 1, got 0$"):
        toy(train=1, dev=0).read()


# The oracle of what follows: mentions written as tags without data/tags.py.
Mention = tuple[int, int, str]
WRITERS: dict[
    str, Callable[[int, int, bool], str]
] = {  # position in the mention, its length, touches its like
    "iob1": lambda i, n, touches: "B" if i == 0 and touches else "I",
    "iob2": lambda i, n, touches: "I" if i else "B",
    "bioes": lambda i, n, touches: "S" if n == 1 else "B" if i == 0 else "E" if i == n - 1 else "I",
    "bmes": lambda i, n, touches: "S" if n == 1 else "B" if i == 0 else "E" if i == n - 1 else "M",
}


@st.composite
def mentions(draw: st.DrawFn) -> tuple[int, list[Mention]]:
    """A sentence's length and its mentions."""
    length, found = 0, []
    for gap, size, type_ in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["PER", "a-b"])), max_size=5)
    ):
        found.append((length + gap, length + gap + size, type_))
        length += gap + size
    return length + draw(st.integers(0 if length else 1, 2)), found


def write(length: int, found: list[Mention], scheme: str) -> list[str]:
    tags = ["O"] * length
    ends = set()
    for start, end, type_ in found:
        for i in range(end - start):
            tags[start + i] = f"{WRITERS[scheme](i, end - start, (start, type_) in ends)}-{type_}"
        ends.add((end, type_))
    return tags


@pytest.mark.parametrize("scheme", WRITERS)
@given(sentences=st.lists(mentions(), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_written_is_loaded(
    scheme: str, sentences: list[tuple[int, list[Mention]]], tmp_path: Path
) -> None:
    lines = (
        "".join(f"w{i}\t{tag}\n" for i, tag in enumerate(write(length, found, scheme))) + "\n"
        for length, found in sentences
    )
    corpus = load(columns(tmp_path, {"train": "".join(lines), "dev": "a\tO\n"}, scheme=scheme))
    expected = [write(length, found, "bioes") for length, found in sentences]
    assert [list(sentence.tags) for sentence in corpus.splits["train"]] == expected


def described(name: str, folder: str | Path) -> Source:
    """What conf/data/NAME.yaml describes, with its files under `folder`."""
    cfg = OmegaConf.create({"data_dir": str(folder), "data": OmegaConf.load(CONF / f"{name}.yaml")})
    return instantiate(cfg.data)


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_yaml_describes_a_source_of_its_name(path: Path) -> None:
    source = described(path.stem, "anywhere")
    assert source.name == path.stem
    assert source.max_sentences is None
    assert path.read_text(encoding="utf-8").startswith("# ")
    if not isinstance(source, ToyCorpus):
        with pytest.raises(ValueError, match=f"^{path.stem}: no"):
            source.read()


@pytest.mark.skipif(DATA is None, reason="needs the corpora: NER_DATA_DIR")
@pytest.mark.parametrize(
    ("name", "sentences", "mentions"),
    [
        ("conll2003", [14_041, 3_250, 3_453], [23_499, 5_942, 5_648]),
        ("conll2000", [8_042, 894, 2_012], [106_978, 23_852]),
        ("wnut17", [3_394, 1_009, 1_287], [1_975, 836, 1_079]),
        ("weibo", [1_350, 270, 270], [1_895, 389, 418]),
        ("ud_ewt", [12_544, 2_001, 2_077], []),
    ],
)
def test_real_corpora_load(name: str, sentences: list[int], mentions: list[int]) -> None:
    assert DATA is not None
    corpus = load(described(name, DATA))
    assert [len(read) for read in corpus.splits.values()] == sentences
    counts = [
        sum(tag[0] in "BS" for sentence in read for tag in sentence.tags) for read in corpus.splits.values()
    ]
    if name == "conll2000":
        assert corpus.notes == (
            "dev: the last 894 of train's 8,936 sentences, as the corpus has no development set",
        )
        counts = [counts[0] + counts[1], counts[2]]
    if corpus.task == "mentions":
        assert counts == mentions
