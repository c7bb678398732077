"""Runs with a fine-tuned or frozen BERT on new text: the same tags as in their evaluation."""

from pathlib import Path

import pytest
import tiny_bert
from tiny_runs import columns_of_test, finished

from ner_experiments.data.toy import sentences
from ner_experiments.predict.tagger import load
from ner_experiments.runs.predictions import read


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT that knows the characters of the toy corpus."""
    characters = sorted({word for sentence in sentences("zh", "train", 200) for word in sentence.words})
    return tiny_bert.save(tmp_path_factory.mktemp("bert"), [*tiny_bert.SPECIAL, *characters])


@pytest.mark.parametrize(
    ("words", "rate", "epochs"),
    [
        pytest.param("bert", 0.005, 16, marks=pytest.mark.slow),
        ("bert_frozen", 0.02, 8),
        pytest.param("bert_frozen_live", 0.02, 8, marks=pytest.mark.slow),
    ],
)
def test_the_columns_of_the_test_file_get_the_tags_of_the_evaluation(
    words: str, rate: float, epochs: int, bert: Path, tmp_path: Path
) -> None:
    run = finished(
        tmp_path,
        *("data=toy_zh", f"words={words}", f"words.input.path={bert}", "chars=none"),
        *(
            "words.input.max_length=30",
            "words.input.overlap=8",
            f"cache_dir={tmp_path}/cache",
            f"optimizer.lr={rate}",
            f"trainer.max_epochs={epochs}",
            f"trainer.patience={epochs}",
        ),
    )
    tagger = load(run)
    path = columns_of_test(tmp_path / "test.conll", "zh")
    found = list(tagger.stream(tagger.reader.read(path, "conll")))
    expected = read(run)
    assert [it.sentence.words for it in found] == [it.words for it in expected]
    assert [it.tags for it in found] == [it.predicted for it in expected]
    assert any(it.mentions for it in found)
