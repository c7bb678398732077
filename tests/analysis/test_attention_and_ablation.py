"""Trained runs of Att and Baseline: parts and attention against plain loops, and the tables made of them."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from att_runs import Run, recall, small, states, trained_runs
from in_process import Ner
from PIL import Image

from ner_experiments import build
from ner_experiments.analysis import ablation, attention
from ner_experiments.analysis.breakdown import f1_by
from ner_experiments.build import load_with_corpus
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.runs.predictions import read
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.table_view import TableView


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return small(tmp_path_factory.mktemp("analysis"))


@pytest.fixture(scope="module")
def runs(place: list[str]) -> dict[tuple[str, int], Path]:
    return trained_runs(place)


@pytest.fixture(scope="module")
def att(runs: dict[tuple[str, int], Path]) -> Run:
    return load_with_corpus(runs["attention", 2])


def test_recall_of_a_part_is_that_of_the_output_layer_on_it_alone(att: Run) -> None:
    tagger, encoder, corpus = att
    found = ablation.recalls(tagger, encoder, corpus.splits["dev"])
    assert list(found) == ["", "H", "C", "C1", "C2", "C3", "C4", "C5"]
    ends = {"": (0, 232), "H": (0, 32), "C": (32, 232), "C1": (32, 72), "C5": (192, 232)}
    for part, (first, end) in ends.items():
        assert found[part] == pytest.approx(recall(att, first, end)), part
    assert len({tuple(of_part.values()) for of_part in found.values()}) > 3  # the parts do differ
    assert any(0 < value < 100 for value in found[""].values())


def test_a_model_without_parts_is_measured_whole(runs: dict[tuple[str, int], Path]) -> None:
    run = load_with_corpus(runs["baseline", 2])
    tagger, encoder, corpus = run
    found = ablation.recalls(tagger, encoder, corpus.splits["dev"])
    assert found == {"": pytest.approx(recall(run, 0, 32))}


def test_chunk_tags_of_what_is_no_mention_are_refused(att: Run) -> None:
    tagger, encoder, corpus = att
    pos = Encoder(encoder.inputs)
    pos.labels, pos.task = encoder.labels, "tags"
    with pytest.raises(ValueError, match="chunk tags require a corpus of mentions, and the run's has none"):
        ablation.recalls(tagger, pos, corpus.splits["dev"])


def test_attention_weights_are_the_softmax_of_query_times_key(att: Run) -> None:
    tagger, encoder, corpus = att
    places = attention.require_mentions(corpus)
    lengths = [len(place.sentence) for place in places[:6]]
    assert len(set(lengths)) > 1  # some are padded
    for attended in attention.attention(tagger, encoder, places[:6]):
        h = states(att, attended.source.sentence)[:, :32]
        for head in range(5):
            rows = slice(40 * head, 40 * (head + 1))
            query, key = (
                h @ layer.weight[rows].T.detach()
                for layer in (tagger.model.attention.query, tagger.model.attention.key)
            )
            for t in range(len(h)):
                powers = [math.exp(float(query[t] @ key[s]) / math.sqrt(40)) for s in range(len(h))]
                expected = [power / sum(powers) for power in powers]
                assert attended.weights[head, t].tolist() == pytest.approx(expected, abs=1e-5)


def test_predicted_tags_beside_the_weights_are_the_runs(att: Run, runs: dict[tuple[str, int], Path]) -> None:
    """Wherever the model's tags are legal, they equal those of predictions/test.conll."""
    from ner_experiments.runs.predictions import iob2

    tagger, encoder, corpus = att
    kept = read(runs["attention", 2])
    for attended in attention.attention(tagger, encoder, attention.require_mentions(corpus)):
        if attended.source.split == "test":
            assert iob2(attended.predicted) == kept[attended.source.number - 1].predicted


def test_sentences_are_those_of_test_then_dev_with_a_mention_and_the_text() -> None:
    def sentence(text: str, tag: str) -> Sentence:
        return Sentence(tuple(text.split()), (tag,) * len(text.split()))

    dev = [sentence("no", "O"), sentence("big town", "S-LOC")]
    splits = {"train": dev, "dev": dev, "test": [sentence("in town", "S-LOC"), sentence("town", "O")]}
    corpus = Corpus("mine", "mentions", splits, "")
    found = attention.require_mentions(corpus, "town")
    assert [(place.split, place.number) for place in found] == [("test", 1), ("dev", 2)]
    assert [place.split for place in attention.require_mentions(corpus, "big t")] == ["dev"]
    with pytest.raises(
        ValueError, match="mine: no sentence of test or dev has a mention and the text 'city'"
    ):
        attention.require_mentions(corpus, "city")
    with pytest.raises(ValueError, match="mine: heat maps need a corpus of mentions; this one tags tokens"):
        attention.require_mentions(Corpus("mine", "tags", splits, ""))


def test_the_command_draws_and_writes_the_heads_of_each_sentence(
    att: Run, runs: dict[tuple[str, int], Path], tmp_path: Path, ner: Ner
) -> None:
    run = runs["attention", 2]
    *pictures, written = ner(
        "attention", str(run), "--sentences", "2", "--output", str(tmp_path / "maps")
    ).splitlines()
    content = json.loads(Path(written).read_text())
    places = attention.require_mentions(att[2])[:2]
    names = [f"{place.split}-{place.number}.png" for place in places]
    assert [Path(path).name for path in pictures] == names
    expected = attention.attention(att[0], att[1], places)
    for record, attended in zip(content["sentences"], expected, strict=True):
        assert record["words"] == list(attended.source.sentence.words)
        assert record["gold"] == list(attended.source.sentence.tags)
        assert torch.tensor(record["weights"]).numpy() == pytest.approx(attended.weights, abs=1e-5)
    assert np.asarray(Image.open(pictures[0])).std() > 13  # not a blank sheet


def test_a_text_is_found_in_words_and_in_characters() -> None:
    texts = ("the White house", "去 年 在 京", "去 年 他 走")
    sentences = [
        Sentence(tuple(text.split()), ("O", "O", "O", "S-LOC")[-len(text.split()) :]) for text in texts
    ]
    corpus = Corpus("mine", "mentions", {"test": sentences}, checksum="")
    for text, numbers in (
        ("White house", [1]),
        ("去年", [2, 3]),
        ("年在", [2]),
        ("去 年", [2, 3]),
        ("", [1, 2, 3]),
    ):
        found = attention.sentences_with_mentions(corpus, text)
        assert [source.number for source in found] == numbers, text


def test_the_command_refuses_what_has_no_attention(
    runs: dict[tuple[str, int], Path], tmp_path: Path, ner: Ner
) -> None:
    def refused(*arguments: str) -> str:
        return ner.error("attention", *arguments)

    run = str(runs["attention", 1])
    assert "expected a run of model=attention (AttBiLSTM), got BaselineBiLSTM" in refused(
        str(runs["baseline", 2])
    )
    assert "--sentences must be at least 1, got 0" in refused(run, "--sentences", "0")
    assert "toy_en: no sentence of test or dev has a mention and the text 'qqq'" in refused(
        run, "--containing", "qqq"
    )
    assert f"{tmp_path}: expected the folder of a finished run, but it has no metrics.json" in refused(
        str(tmp_path)
    )


def measured(name: str, place: list[str]) -> tuple[dict[str, Any], str]:
    page = collect(spec.load(name), place)
    return {result.row.label: result.measured for result in page.results}, TableView(page).markdown()


def test_table_4_is_made_of_the_predictions_of_seeds_that_both_rows_have(
    runs: dict[tuple[str, int], Path], place: list[str]
) -> None:
    found, printed = measured("li2020_table4", place)
    att, baseline = (f1_by(read(runs[model, 2]), "length") for model in ("attention", "baseline"))
    assert att != baseline
    for length, value in att.items():
        ours = found[f"Att, OntoNotes, {length}"]
        assert (ours.n, ours.sd) == (1, None)
        assert ours.mean == pytest.approx(value - baseline[length])
    assert found["Cross, OntoNotes, 1"] is None
    assert found["Att, WNUT, 1"] is None
    figure = f"{att['1'] - baseline['1']:.2f} (1)"
    assert f"| Att, OntoNotes, 1 | 0.10 | {figure} |" in printed
    assert "Computed from the runs of li2020_table1." in printed
    assert "Differences are computed seed by seed, for the seeds that both rows have." in printed


def test_table_5_is_made_of_the_trained_weights(
    runs: dict[tuple[str, int], Path], place: list[str], att: Run
) -> None:
    found, printed = measured("li2020_table5", place)
    seeds = []
    for seed in (1, 2):
        tagger, encoder = build.load(runs["attention", seed])
        seeds.append(ablation.recalls(tagger, encoder, att[2].splits["dev"]))
    for tag in "OSBIE":
        ours = found[f"{tag}, Att, all of H and C"]
        assert ours.n == 2
        assert ours.mean == pytest.approx((seeds[0][""][tag] + seeds[1][""][tag]) / 2)
        ours = found[f"{tag}, Att, only C4"]
        first, second = (of_seed["C4"][tag] - of_seed[""][tag] for of_seed in seeds)
        assert ours.mean == pytest.approx((first + second) / 2)
        assert ours.sd == pytest.approx(abs(first - second) / math.sqrt(2))
        assert found[f"{tag}, Baseline"].n == 1
    ours = found["O, Att, only H"]
    assert f"| O, Att, only H | -1.68 | {ours.mean:.2f} ± {ours.sd:.2f} (2) |" in printed


def test_what_other_data_do_not_have_is_said_and_not_measured(
    runs: dict[tuple[str, int], Path], place: list[str]
) -> None:
    found, printed = measured("li2020_table3", place)
    assert not any(found.values())
    assert "the corpus of 'OntoNotes, Att' has no type 'EVENT'" in printed


def test_a_picture_is_shown_as_text_alone(place: list[str]) -> None:
    found, printed = measured("li2020_figure2", place)
    assert not any(found.values())
    assert '`ner-experiments attention RUN --containing "the White house"` draws the heat maps' in printed
