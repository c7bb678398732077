"""The four phrases as training: tables learned by hand, real architectures, and the command around it all."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from in_process import Ner
from torch import Tensor, nn

from ner_experiments.commands.xor import requested_architectures
from ner_experiments.config.config_dirs import CONF, VARIABLE, names
from ner_experiments.main import cli
from ner_experiments.modules.softmax import Softmax
from ner_experiments.xor import experiment
from ner_experiments.xor.experiment import train_until_correct
from ner_experiments.xor.results import ModelResult, TrialResult

TAGS = torch.tensor([[0], [0], [1], [1]])
"""Contexts of one token in the paper's four phrases: past 1 with future 1, 2 with 2, 1 with 2, 2 with 1."""
PAST, FUTURE = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 1, 1, 0])


def learn(scores: Callable[[], Tensor], *weights: nn.Parameter, num_steps: int) -> TrialResult:
    return train_until_correct(
        scores=scores,
        decoder=Softmax(num_tags=2),
        optimizer=torch.optim.Adam(weights, lr=0.1),
        tags=TAGS,
        mask=torch.ones(4, 1, dtype=torch.bool),
        num_steps=num_steps,
    )


def test_tables_of_past_and_future_learn_three_phrases_and_a_joint_table_four():
    past, future = nn.Parameter(torch.randn(2, 1, 2)), nn.Parameter(torch.randn(2, 1, 2))
    joint = nn.Parameter(torch.randn(4, 1, 2))
    assert learn(lambda: past[PAST] + future[FUTURE], past, future, num_steps=200).num_correct == 3
    assert learn(lambda: joint, joint, num_steps=200).num_correct == 4


def test_training_ends_when_all_phrases_are_right_and_the_step_is_the_first():
    # the first one is wrong
    joint = nn.Parameter(5 * torch.tensor([[[0.0, 1]], [[1, 0]], [[0, 1]], [[0, 1]]]))
    seen: list[int] = []

    def scores() -> Tensor:
        seen.append(int((joint.argmax(2) == TAGS).sum()))
        return joint

    assert learn(scores, joint, num_steps=0) == TrialResult(num_correct=3, step=0)
    outcome = learn(scores, joint, num_steps=200)
    assert outcome == TrialResult(num_correct=4, step=len(seen) - 2)
    assert seen == [3] * (len(seen) - 1) + [4]


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
@pytest.mark.parametrize("name", ["baseline", "bilstm", "residual_d"])
def test_a_limited_architecture_never_gets_all_four(name: str, decoder: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(experiment.NUM_STEPS, decoder, 60)
    assert 2 <= experiment.run_trial(name, decoder, 0).num_correct <= 3


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
@pytest.mark.parametrize("name", ["cross", "attention"])
def test_what_crosses_directions_gets_all_four_and_again_by_its_seed(name: str, decoder: str):
    outcome = experiment.run_trial(name, decoder, 1)
    assert outcome.num_correct == 4
    assert experiment.run_trial(name, decoder, 1) == outcome


def test_the_phrases_are_the_papers():
    for decoder, tags in (("softmax", ["B-name I-name E-name", "O O O"]), ("crf", ["O S-name O", "O O O"])):
        cfg, encoder, batch = experiment.trial_data("none", decoder)
        assert cfg.model._target_.endswith("NoEncoder")
        found = [" ".join(encoder.labels[tag] for tag in row) for row in batch.tags.tolist()]
        assert found == [tags[0], tags[0], tags[1], tags[1]]
        one, two, three, four = batch.places["words"].tolist()
        assert three == one[:2] + two[2:]
        assert four == two[:2] + one[2:]
        assert one[1] == two[1]
        assert one[0] != two[0]
        assert one[2] != two[2]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


SMALL = ["xor", "--seeds", "1", "--processes", "1", "--models", "cross", "baseline", "--output"]


@pytest.mark.slow
def test_the_json_of_the_command(small: Path, ner: Ner):
    printed = ner(*SMALL, str(small), "--json")
    record = json.loads(printed)
    assert json.loads((small / "xor.json").read_text()) == record
    assert (small / "xor.png").read_bytes().startswith(b"\x89PNG")
    assert list(record["models"]) == ["baseline", "cross"]
    baseline, cross = record["models"].values()
    assert (baseline["limited"], cross["limited"]) == (True, False)
    assert baseline["interaction"] == max(baseline["interactions"]) < 1e-12
    assert cross["interaction"] == max(cross["interactions"]) > 1e-6
    assert len(cross["interactions"]) == experiment.DRAWS
    for model in (baseline, cross):
        assert (model["seeds"], model["layers"]) == (1, 2)
        assert model["best_softmax"] == max(model["right_softmax"])
        assert model["best_crf"] == max(model["right_crf"])
    assert max(baseline["best_softmax"], baseline["best_crf"]) == 3
    assert cross["best_softmax"] == cross["best_crf"] == 4
    verdicts = {proof["name"]: proof["feasible"] for proof in record["certificates"]}
    assert verdicts["one token, softmax"] is verdicts["O S O or O O O, CRF"] is False
    assert verdicts["B I E or O O O, CRF"] is True


def finding(limited: bool, num_correct: int) -> ModelResult:
    outcomes = {name: {0: TrialResult(num_correct, 5), 1: TrialResult(2, 0)} for name in experiment.DECODERS}
    return ModelResult(2, [0.0, 1e-16 if limited else 0.125], outcomes)


def examined(monkeypatch: pytest.MonkeyPatch, **found: ModelResult) -> None:
    monkeypatch.setattr(experiment, "measure_and_train", lambda names, **_: found)


def test_the_tables_say_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner):
    examined(monkeypatch, baseline=finding(True, 3), cross=finding(False, 4))
    printed = ner("xor", "--output", str(tmp_path))
    assert re.search(r"section 3.4: O S O or O O O, CRF +3 of 4 +contradiction", printed)
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line.split()[1:2] == ["2"]}
    assert rows["baseline"][2:] == ["1.0e-16", "3", "of", "4", "3", "of", "4", "0,", "0", "yes"]
    assert rows["cross"][2:] == ["1.2e-01", "4", "of", "4", "4", "of", "4", "1,", "1", "no"]
    assert printed.count("No scores satisfy") == 1
    assert "agree" in printed


def test_every_proof_is_printed_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner):
    examined(monkeypatch, cross=finding(False, 4))
    printed = ner("xor", "--certificates", "--output", str(tmp_path))
    assert printed.count("which is 0 > 0: a contradiction.") == 4
    assert printed.count("These scores, all others 0, satisfy") == 2 + 4 * 4


def test_what_is_proved_impossible_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    examined(monkeypatch, baseline=finding(True, 4))
    assert cli(["xor", "--output", str(tmp_path)]) == 1
    assert "proved impossible, so something is wrong: baseline" in capsys.readouterr().out


def test_what_was_not_learned_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner):
    examined(monkeypatch, cross=finding(False, 3))
    said = "with at least one decoder no seed learned all four phrases: cross"
    assert said in ner("xor", "--output", str(tmp_path))
    one_decoder = finding(False, 4)
    one_decoder.trials["crf"] = finding(False, 3).trials["crf"]
    examined(monkeypatch, cross=one_decoder)
    assert said in ner("xor", "--output", str(tmp_path))


REFUSED = [
    (["--models", "corss"], "--models: no architecture 'corss'; did you mean 'cross'?"),
    (["--seeds", "0"], "--seeds must be at least 1, got 0"),
    (["--processes", "0"], "--processes must be at least 1, got 0"),
    (["--run", "nowhere"], "nowhere: expected the folder of a finished run, but there is no such folder"),
    (["--run", "nowhere", "--sentences", "0"], "--sentences must be at least 1, got 0"),
    (["--models", "none", "--sentences", "0"], "--sentences is for --run"),
    (["--certificates", "--json"], "--certificates is not for --json, which has every proof"),
    (["--run", "nowhere", "--models", "corss"], "--models is not for --run"),
    (["--run", "nowhere", "--seeds", "3"], "--seeds is not for --run"),
    (["--run", "nowhere", "--processes", "0"], "--processes is not for --run"),
    (["--run", "nowhere", "--certificates"], "--certificates is not for --run"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_a_wrong_argument_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli(["xor", *arguments, "--output", str(tmp_path / "outputs")]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not (tmp_path / "outputs").exists()


def test_an_output_that_is_a_file_is_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    monkeypatch.setattr(experiment, "measure_and_train", lambda *_, **__: pytest.fail("trained"))
    (tmp_path / "file").touch()
    assert ner.error("xor", "--output", str(tmp_path / "file")) == f"{tmp_path / 'file'}: File exists\n"


def test_the_processes_are_those_of_the_usable_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examined(monkeypatch, cross=finding(False, 4))
    monkeypatch.setattr("ner_experiments.commands.xor.usable_cores", lambda: 3)
    assert cli(["xor", "--output", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "xor.json").read_text())["processes"] == 3


def test_an_architecture_of_the_user_s_own_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "model" / "mine.yaml"
    own.parent.mkdir()
    own.write_bytes((CONF / "model" / "cross.yaml").read_bytes())
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert requested_architectures(["mine"]) == ["mine"]
    assert "mine" in requested_architectures(None)


@pytest.mark.campaign
def test_all_architectures_over_20_seeds(tmp_path: Path, ner: Ner):
    models = ner.json("xor", "--output", str(tmp_path))["models"]
    assert sorted(models) == names("model")
    for name, model in models.items():
        best = {model["best_softmax"], model["best_crf"]}
        assert model["seeds"] == 20
        assert best <= {2, 3} if model["limited"] else best == {4}, name
