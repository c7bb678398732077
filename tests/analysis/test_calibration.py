"""Reliability of probabilities against scikit-learn; the probabilities of mentions against all sequences."""

import json
import math
import shutil
from itertools import chain, pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from safetensors.torch import save_file
from sklearn.calibration import calibration_curve
from tiny_runs import METRICS

from ner_experiments.analysis import bootstrap
from ner_experiments.analysis.archive import run_calibration
from ner_experiments.analysis.calibration import Calibration, calibration, of_run, predicted
from ner_experiments.build import build, load_with_corpus
from ner_experiments.config.compose import compose
from ner_experiments.data import toy
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import allowed_transitions, spans
from ner_experiments.experiment_data import read_data
from ner_experiments.runs.artifacts import PROBABILITIES, add_checksum
from ner_experiments.runs.run import Run, open_run
from ner_experiments.tagger import Tagger

SMALL = ["data=toy_en", "data.sentences={train: 60, dev: 5, test: 40}", "model.hidden_size=8", "chars=none"]

DECODERS = {"crf": ["decoder=crf"], "softmax": ["decoder=softmax", "decoder.constrained=true"]}


def drawn(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, correctness and sentence numbers of 500 mentions in 80 sentences."""
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(3, 1, size=500)
    return probabilities, rng.random(500) < probabilities**2, rng.integers(80, size=500)


def test_bins_are_scikit_learns() -> None:
    probabilities, right, sentence = drawn()
    found = calibration(probabilities, right, sentence, 80)
    shares, means = calibration_curve(right, probabilities, n_bins=10)
    assert [it.correct for it in found.bins] == pytest.approx(shares.tolist())
    assert [it.mean for it in found.bins] == pytest.approx(means.tolist())
    counts = [int(((probabilities >= it.start) & (probabilities < it.end)).sum()) for it in found.bins]
    assert [it.count for it in found.bins] == counts
    expected = sum(n * abs(share - mean) for n, share, mean in zip(counts, shares, means, strict=True)) / sum(
        counts
    )
    assert found.error == pytest.approx(expected)
    assert 0.1 < found.error < 0.3  # p and not p squared


def test_intervals_are_those_of_other_sentences() -> None:
    probabilities, right, sentence = drawn()
    found = calibration(probabilities, right, sentence, 80)
    errors, last = [], []
    for times in bootstrap.draw_multiplicities(80, bootstrap.DRAWS, 0).astype(int):
        weights, gap = times[sentence], 0.0
        for bin_ in range(10):
            chosen = (probabilities >= bin_ / 10) & (probabilities < (bin_ + 1) / 10)
            gap += abs(float((weights * (probabilities - right))[chosen].sum()))
        errors.append(gap / weights.sum())
        last.append(float((weights * right)[chosen].sum() / weights[chosen].sum()))
    assert (found.low, found.high) == pytest.approx(np.percentile(errors, [2.5, 97.5]).tolist())
    low, high = np.percentile(last, [2.5, 97.5]).tolist()
    assert (found.bins[-1].low, found.bins[-1].high) == pytest.approx((low, high))


def test_what_is_sure_is_in_the_last_bin_and_without_mentions_there_is_nothing() -> None:
    one = np.array([1.0, 0.5])
    found = calibration(one, np.array([True, True]), np.array([0, 1]), 2)
    assert [(it.start, it.end, it.count) for it in found.bins] == [(0.5, 0.6, 1), (0.9, 1.0, 1)]
    assert found.error == 0.25
    assert Calibration.from_record(json.loads(json.dumps(found.record()))) == found
    assert calibration(one[:0], one[:0] > 0, np.array([], dtype=int), 2) is None


def untrained(decoder: str) -> tuple[Tagger, Encoder, Corpus]:
    """A tagger that prefers legal tags and avoids O and S, so that it finds mentions of several tokens."""
    cfg = compose([*SMALL, *DECODERS[decoder]], "test")
    corpus, encoder = read_data(cfg)
    torch.manual_seed(1)
    tagger = build(cfg, encoder).eval()
    allowed = allowed_transitions(encoder.labels)
    with torch.no_grad():
        tagger.output.weight.mul_(8)
        tagger.output.bias -= 3 * torch.tensor([label[0] in "OS" for label in encoder.labels])
        if decoder == "crf":
            legal = (allowed.start, allowed.pairs, allowed.end)
            for scores, permitted in zip(chain_of(tagger), legal, strict=True):
                scores += 3 * torch.tensor(permitted)
    return tagger, encoder, corpus


def chain_of(tagger: Tagger) -> list[torch.Tensor]:
    """Scores of each tag at the start, after each tag, and at the end."""
    crf = tagger.decoder
    if not hasattr(crf, "transitions"):
        none = torch.zeros(tagger.output.out_features)
        return [none, torch.zeros(len(none), len(none)), none]
    return [crf.start, crf.transitions, crf.end]


@pytest.mark.parametrize("decoder", ["crf", "softmax"])
def test_probability_is_the_share_of_all_tag_sequences_that_have_the_mention(decoder: str) -> None:
    tagger, encoder, corpus = untrained(decoder)
    words = [it.words for it in corpus.splits["test"]]
    sentences = [Sentence(it[:number], ("O",) * number) for it in words for number in (1, 2, 3)]
    found = list(predicted(tagger, encoder, sentences))
    several = [it for it in found if it[1][1] - it[1][0] > 1]
    assert {end - start for _, (start, end, _), _ in several} == {2, 3}
    for number, (start, end, kind), probability in [*several[:6], *several[-3:], *found[:4]]:
        letters = ["S"] if end - start == 1 else ["B", *"I" * (end - start - 2), "E"]
        wanted = tuple(encoder.labels.index(f"{letter}-{kind}") for letter in letters)
        weights = all_sequences(tagger, encoder, sentences[number])
        share = sum(weight for tags, weight in weights.items() if tags[start:end] == wanted)
        assert probability == pytest.approx(share / sum(weights.values()), rel=1e-4)


def all_sequences(tagger: Tagger, encoder: Encoder, sentence: Sentence) -> dict[tuple[int, ...], float]:
    """Exponential of the score of each tag sequence."""
    batch = encoder.encode([sentence], torch.device("cpu")).batch(np.arange(1))
    with torch.no_grad():
        scores = tagger(batch)[0].double().tolist()
    start, pairs, end = (part.tolist() for part in chain_of(tagger))
    found = {}
    for tags in product(range(len(encoder.labels)), repeat=len(scores)):
        total = start[tags[0]] + end[tags[-1]] + sum(pairs[a][b] for a, b in pairwise(tags))
        found[tags] = math.exp(total + sum(of[tag] for of, tag in zip(scores, tags, strict=True)))
    return found


def test_a_runs_calibration_is_of_its_predicted_mentions_on_test(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tagger, encoder, corpus = untrained("crf")
    OmegaConf.save(compose([*SMALL, "decoder=crf"], "test"), tmp_path / "config.yaml", resolve=True)
    save_file(tagger.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "encoder.json").write_text(json.dumps(encoder.state()))
    metrics = tmp_path / "metrics.json"
    metrics.write_text(json.dumps(add_checksum({**METRICS, "data": {"checksum": corpus.checksum}})))
    test = toy.sentences("en", "test", 40)
    of_mentions = list(predicted(tagger, encoder, test))
    right = np.array([mention in spans(test[number].tags) for number, mention, _ in of_mentions])
    probabilities = np.array([probability for _, _, probability in of_mentions])
    sentence = np.array([number for number, _, _ in of_mentions])
    assert of_run(tmp_path) == calibration(probabilities, right, sentence, 40)
    metrics.write_text(json.dumps(add_checksum({**METRICS, "data": {"checksum": "other"}})))
    assert of_run(tmp_path) is None
    assert "the calibration is left out:" in caplog.text
    assert "toy_en has changed since the run: its checksum is" in caplog.text


def test_a_run_records_the_probabilities_of_its_predicted_mentions(toy_run: Path) -> None:
    tagger, encoder, corpus = load_with_corpus(toy_run)
    test = corpus.splits["test"]
    again: list[list[float]] = [[] for _ in test]
    for number, _, probability in predicted(tagger, encoder, test):
        again[number].append(probability)
    recorded = open_run(toy_run).probabilities()
    assert [len(it) for it in recorded] == [len(it) for it in again]
    assert [*chain(*recorded)] == pytest.approx([*chain(*again)], abs=1e-5)
    assert sum(map(len, recorded)) > 10


def test_recorded_probabilities_give_the_calibration_without_the_weights(
    toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = of_run(toy_run)
    monkeypatch.setattr("ner_experiments.analysis.archive.of_run", None)
    found = run_calibration(open_run(toy_run))
    assert [(it.start, it.count, it.correct) for it in found.bins] == [
        (it.start, it.count, it.correct) for it in expected.bins
    ]
    assert found.error == pytest.approx(expected.error, abs=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0.5 x\n", "test.probabilities:1: expected numbers from 0 to 1, got '0.5 x'"),
        (b"0.5\n\nnan\n", "test.probabilities:3: expected numbers from 0 to 1, got 'nan'"),
        (b"0.5 -0.3\n", "test.probabilities:1: expected numbers from 0 to 1"),
        (b"1.5\n", "test.probabilities:1: expected numbers from 0 to 1"),
        (b"0.5 \xff\n", "test.probabilities: not UTF-8 at byte 5"),
        (b"0.5\n", "test.probabilities: expected one for each mention that is predicted on test"),
    ],
)
def test_probabilities_of_other_mentions_are_refused(
    content: bytes, message: str, toy_run: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(toy_run, tmp_path / "run")
    run = open_run(copy)
    (copy / PROBABILITIES).write_bytes(content)
    with pytest.raises(ValueError, match=r"test\.probabilities is damaged: its SHA-256 is"):
        run_calibration(run)
    unchecked = Run(copy, {name: value for name, value in run.metrics.items() if name != "files"})
    with pytest.raises(ValueError, match=message):
        run_calibration(unchecked)
