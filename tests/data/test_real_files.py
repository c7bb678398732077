"""The readers on the real files: their sentences, tokens and mentions, and what is illegal in them."""

import os
from pathlib import Path

import pytest
from read_files import WORD_TAG, read_columns

from ner_experiments.data.projection import project
from ner_experiments.data.tags import convert, illegal_positions, spans, strict_spans

DATA = os.environ.get("NER_DATA_DIR")
needs_data = pytest.mark.skipif(not DATA, reason="NER_DATA_DIR names no folder of real corpora")


CONLL2003 = {"word": 0, "pos": 1, "chunk": 2, "tag": 3}
CONLL2000 = {"word": 0, "pos": 1, "tag": 2}
WEIBO = "weibo/weiboNER_2nd_conll"


def read_real(name, columns, **options):
    return list(read_columns(Path(DATA or "") / name, columns=columns, **options))


@needs_data
def test_counts_of_msra_train():
    path = Path(DATA or "") / "msra/msra_train_bio"
    with pytest.raises(
        ValueError, match=r"msra_train_bio:\d+: empty tag .set empty_tag to the tag that it stands for.: '0"
    ):
        list(read_columns(path, columns=WORD_TAG))
    read = list(read_columns(path, columns=WORD_TAG, empty_tag="O"))
    assert (len(read), sum(map(len, read)), max(map(len, read))) == (45000, 2171573, 746)
    assert sum(len(spans(sentence.tags)) for sentence in read) == 75059
    assert sum(len(strict_spans(convert(sentence.tags, "bioes"))) for sentence in read) == 75059


@needs_data
def test_conll2003_is_iob1_but_for_two_tags():
    read = read_real("conll2003/eng.train", CONLL2003)
    assert sum(len(illegal_positions(sentence.tags, "iob1")) for sentence in read) == 2
    assert sum(tag.startswith("B-") for sentence in read for tag in sentence.tags) == 72


@needs_data
@pytest.mark.parametrize(
    ("split", "after_o", "after_other_type"), [("train", 9, 1), ("dev", 0, 0), ("test", 4, 0)]
)
def test_illegal_tags_of_weibo(split, after_o, after_other_type):
    read = read_real(f"{WEIBO}.{split}", WORD_TAG, first_character=True)
    before = [
        ("O", *sentence.tags)[position]
        for sentence in read
        for position in illegal_positions(sentence.tags, "iob2")
    ]
    assert sum(tag == "O" for tag in before) == after_o
    assert sum(tag != "O" for tag in before) == after_other_type
    assert all(len(word) == 1 for sentence in read for word in sentence.words)


@needs_data
def test_conllpp_has_the_text_of_conll2003():
    """Wang et al. (2019) corrected tags of 186 sentences, and no token."""
    if not (Path(DATA or "") / "conllpp").is_dir():
        pytest.skip("conllpp is not here")
    own = read_real("conll2003/eng.testb", CONLL2003)
    other = read_real("conllpp/conllpp_test.txt", {"word": 0, "tag": -1})
    found = project([it.words for it in own], other)
    assert sum(len(spans(tags)) for tags in found.tags) == 5702
    assert (found.left_out, found.unclear) == (0, frozenset())
    assert sum(convert(it.tags, "iob2") != tags for it, tags in zip(own, found.tags, strict=True)) == 186
