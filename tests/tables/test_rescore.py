"""`ner-experiments rescore` on runs of the toy corpus, against seqeval and mentions counted by hand."""

import json
import re
import shlex
import shutil
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from checksummed import edit
from in_process import Ner
from scipy import stats
from seqeval.metrics import f1_score
from toy_rows import TABLE, TEST, TOY, finish

from ner_experiments.config.compose import jobs
from ner_experiments.data.tags import convert
from ner_experiments.runs.archived_run import TAGS
from ner_experiments.tables import claims, sweeps
from ner_experiments.tables.rescored import kendall

STACKED, RESIDUAL, DEEP = ("stacked, 2 layers", "residual, 2 layers", "residual, 4 layers")
SETTINGS = {
    STACKED: ["model=stacked", "layers=2"],
    RESIDUAL: ["model=residual", "layers=2"],
    DEEP: ["model=residual", "layers=4"],
}
WRONG = {STACKED: (15, 17, 19), RESIDUAL: (8, 9, 10), DEEP: (1, 2, 3)}
"""For each seed of a row, the number of test sentences, from the first, in which a run finds no mention."""
Line = tuple[str, str]
"""A word and its tag."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three rows with three runs."""
    folder = tmp_path_factory.mktemp("made") / "outputs"
    for label, numbers in WRONG.items():
        for seed, number in enumerate(numbers, 1):
            row = ["paper=yang2020", *TOY, *SETTINGS[label], f"output_dir={folder}"]
            name_corpus(finish(row, seed, number) / "metrics.json")
    return folder


@pytest.fixture
def outputs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the runs, below the working directory."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "outputs"))


def name_corpus(path: Path) -> None:
    """Record the corpus's own checksum, as runs do: an archived run's text is looked for by it."""

    def own_checksum(content: dict[str, Any]) -> None:
        content["data"]["checksum"] = content["checksum"].partition(":")[0]

    edit(path, own_checksum)


def corrected(scheme: Any = "iob2") -> list[list[Line]]:
    """The gold sentences with the mentions of the first ten taken away, and those of the last three of another type."""
    sentences = []
    for number, it in enumerate(TEST):
        tags = list(it.tags)
        if number < 10:
            tags = ["O"] * len(tags)
        elif number >= len(TEST) - 3:
            tags = [tag if tag == "O" else f"{tag[0]}-OTHER" for tag in tags]
        sentences.append([*zip(it.words, convert(tags, scheme), strict=True)])
    return sentences


def write(path: Path, sentences: list[list[Line]]) -> Path:
    path.write_text("\n".join("".join(f"{w} x {t}\n" for w, t in it) for it in sentences), encoding="utf-8")
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "other.txt", corrected())


def rescored(gold: Path, ner: Ner, *options: str) -> Any:
    return ner.json("rescore", TABLE, *TOY, "--gold", str(gold), *options)


def page(gold: Path, ner: Ner) -> str:
    return ner("rescore", TABLE, *TOY, "--gold", str(gold))


def refusal(gold: Path, ner: Ner, *items: str) -> str:
    return ner.error("rescore", *(items or (TABLE, *TOY)), "--gold", str(gold))


def predicted(num_wrong: int) -> list[list[str]]:
    return [["O"] * len(it) if n < num_wrong else [*convert(it.tags, "iob2")] for n, it in enumerate(TEST)]


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "bioes"])
def test_f1_by_another_gold_is_seqeval_s(outputs: Path, tmp_path: Path, ner: Ner, scheme: str) -> None:
    found = rescored(write(tmp_path / "other.txt", corrected(scheme)), ner)
    assert [row["label"] for row in found["rows"]] == [STACKED, RESIDUAL, DEEP]
    new, old = (
        [[tag for _, tag in it] for it in corrected()],
        [list(convert(it.tags, "iob2")) for it in TEST],
    )
    for row in found["rows"]:
        own, other = (
            [100 * f1_score(gold, predicted(n)) for n in WRONG[row["label"]]] for gold in (old, new)
        )
        assert [*row["own_scores"].values()] == pytest.approx(own)
        assert [*row["other_scores"].values()] == pytest.approx(other)
        assert row["other"]["mean"] == pytest.approx(fmean(other))
        half = stats.t.ppf(0.975, 2) * stdev(other) / 3**0.5
        assert (row["other"]["low"], row["other"]["high"]) == pytest.approx(
            (fmean(other) - half, fmean(other) + half)
        )
        assert row["change"]["mean"] == pytest.approx(fmean(other) - fmean(own))
    assert found["gold"]["mentions"] == sum(tag[0] == "B" for tags in new for tag in tags)


def test_the_ranks_and_kendall_s_tau_follow_from_the_means(outputs: Path, gold: Path, ner: Ner) -> None:
    """The other gold has no mention in the first ten sentences, so that two rows change places."""
    found = rescored(gold, ner)
    means = [[row[gold]["mean"] for row in found["rows"]] for gold in ("own", "other")]
    (ranking,) = found["rankings"]
    for name, own in zip(("own", "other"), means, strict=True):
        assert ranking[name] == [1 + sum(it > mean for it in own) for mean in own]
    pairs = [(means[0][a] - means[0][b]) * (means[1][a] - means[1][b]) for a, b in combinations(range(3), 2)]
    assert ranking["tau"] == pytest.approx(sum(1 if it > 0 else -1 for it in pairs) / 3)
    assert ranking["own"] != ranking["other"]
    assert ranking["low"] <= ranking["tau"] <= ranking["high"]


def test_kendall_s_tau_is_scipy_s() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=(2, 300, 5)).astype(float)
    expected = [stats.kendalltau(*draw).statistic for draw in zip(a, b, strict=True)]
    assert np.isnan(expected).any()
    np.testing.assert_allclose(kendall(a, b), expected)


def test_the_same_gold_changes_nothing(outputs: Path, tmp_path: Path, ner: Ner) -> None:
    same = [[*zip(it.words, it.tags, strict=True)] for it in TEST]
    found = rescored(write(tmp_path / "same.txt", same), ner)
    for row in found["rows"]:
        assert row["other_scores"] == pytest.approx(row["own_scores"])
    (ranking,) = found["rankings"]
    assert (ranking["tau"], ranking["low"], ranking["high"]) == (1, 1, 1)
    assert (found["runs_not_rescored"], found["rows_not_rescored"]) == ({}, {})


def test_other_tokens_and_sentences_change_nothing_where_mentions_keep_their_characters(
    outputs: Path, tmp_path: Path, gold: Path, ner: Ner
) -> None:
    """Each mention becomes one token, as does each pair of other characters, and two sentences become one."""
    sentences: list[list[Line]] = []
    for number, it in enumerate(corrected("bioes")):
        tokens: list[Line] = []
        for word, tag in it:
            if tokens and (tag[0] in "IE" or (tag == tokens[-1][1] == "O" and len(tokens[-1][0]) < 2)):
                tokens[-1] = (tokens[-1][0] + word, tokens[-1][1])
            else:
                tokens.append((word, tag if tag == "O" else f"B-{tag[2:]}"))
        sentences = [*sentences[:-1], [*sentences[-1], *tokens]] if number % 2 else [*sentences, tokens]
    cut = rescored(write(tmp_path / "cut.txt", sentences), ner)
    whole = rescored(gold, ner)
    assert cut["rows"] == whole["rows"]
    assert [*cut["gold"]["left_out"].values()] == [0]


def test_what_cannot_be_compared_is_counted(outputs: Path, tmp_path: Path, ner: Ner) -> None:
    """The mention of the last sentence grows to the sentence before, in which it has no place."""
    first, last = ([[*zip(it.words, it.tags, strict=True)] for it in part] for part in (TEST[:-2], TEST[-2:]))
    joined = [line for it in last for line in it]
    tags = ["B-PER", *["I-PER"] * (len(joined) - 1)]
    other = [*first, [(word, tag) for (word, _), tag in zip(joined, tags, strict=True)]]
    gold = write(tmp_path / "joined.txt", other)
    found = rescored(gold, ner)
    assert [*found["gold"]["left_out"].values()] == [1]
    number = sum(tag[0] in "BS" for it in last for _, tag in it)
    assert number
    kept = [list(convert(it.tags, "iob2")) for it in TEST[:-2]]
    for row in found["rows"]:
        assert {*row["left_out"].values()} == {number}
        expected = [100 * f1_score(kept, predicted(n)[:-2]) for n in WRONG[row["label"]]]
        assert [*row["other_scores"].values()] == pytest.approx(expected)
    moved = outputs.rename(outputs.with_name("elsewhere"))
    others = ["--gold-columns", "tag=2", "--output", str(moved)]
    page = ner("rescore", TABLE, *TOY, "--gold", str(gold), *others)
    (command,) = re.findall("Made by `ner-experiments (.*)`", page)
    assert ner(*shlex.split(command)) == page
    assert "1 of them are left out, as they start or end inside a token" in page
    assert f"{number} predicted mentions of each run that touch the same tokens" in page


def archive(outputs: Path, ner: Ner) -> list[Path]:
    """Archive all runs in results/, and take the run folders away."""
    ner("table", TABLE, *TOY, "--archive")
    outputs.rename(outputs.with_name("elsewhere"))
    return sorted(Path("results").rglob("*-seed-*.json"))


def test_archived_runs_are_rescored_by_their_tags(outputs: Path, gold: Path, ner: Ner) -> None:
    before = rescored(gold, ner)
    archive(outputs, ner)
    assert rescored(gold, ner) == before


def test_runs_archived_without_tags_are_named(outputs: Path, gold: Path, ner: Ner) -> None:
    paths = archive(outputs, ner)
    labels = {path: json.loads(path.read_text(encoding="utf-8"))["label"] for path in paths}
    without = [path for path in paths if labels[path] == DEEP][:2]
    for path in without:
        remove_tags(path)
    found = rescored(gold, ner)
    assert [*found["runs_not_rescored"]] == [str(path) for path in without]
    assert {row["label"]: row["other"]["n"] for row in found["rows"]} == {STACKED: 3, RESIDUAL: 3, DEEP: 1}
    names = ", ".join(path.name for path in without)
    expected = (
        f"- {DEEP}: archived without predicted tags, to be trained again: {names} in {paths[0].parent}\n"
    )
    assert expected in page(gold, ner)
    for path in set(paths) - set(without):
        remove_tags(path)
    error = refusal(gold, ner)
    assert error.startswith(f"{TABLE}: no finished run of it can be rescored\n{STACKED}: archived without")
    assert all(path.name in error for path in paths)


def remove_tags(path: Path) -> None:
    """Take the predicted tags of an archived run away."""
    edit(path, lambda content: content.pop(TAGS))


def test_archived_runs_on_another_version_of_the_corpus_are_refused(
    outputs: Path, gold: Path, ner: Ner
) -> None:
    for path in archive(outputs, ner):
        edit(path, lambda content: content["metrics"]["data"].update(checksum="abc"))
    expected = f"{STACKED}; {RESIDUAL}; {DEEP}: toy_zh has changed since the runs: its checksum is "
    assert expected in refusal(gold, ner)


def test_runs_that_tag_single_tokens_are_refused(outputs: Path, gold: Path, ner: Ner) -> None:
    for path in outputs.rglob("metrics.json"):
        edit(path, lambda it: it.update(task="tags", dev={"accuracy": 0.5}, test={"accuracy": 0.5}))
    assert "toy_zh has one tag per token, and only mentions are rescored\n" in refusal(gold, ner)


def write_ledger() -> None:
    """Claims that the other gold turns and leaves, one on another corpus, and a test whose seeds were not run."""
    plan = {"table": TABLE, "seeds": [1, 2, 3], "looks": [3], "hours": 1, "smallest_effect": 0.3}
    about = {
        "paper": "yang2020",
        "place": "table 12",
        "claim": "c",
        "corpus": "toy_zh",
        "direction": "higher",
        "rung": 2,
    }
    toy = plan | {"overrides": TOY}
    content = {
        "sources": {"toy": toy, "paper": plan, "new": toy | {"seeds": [4, 5, 6]}},
        "claims": [
            {**about, "id": "deep", "a": {"toy": DEEP}, "b": {"toy": RESIDUAL}},
            {**about, "id": "residual", "a": {"toy": RESIDUAL}, "b": {"toy": STACKED}},
            {**about, "id": "msra", "a": {"paper": DEEP}, "b": {"paper": STACKED}, "corpus": "msra"},
            {**about, "id": "new", "a": {"new": DEEP}, "b": {"new": RESIDUAL}, "repeats": "deep"},
        ],
    }
    (Path("results") / claims.FILE).write_text(json.dumps(content), encoding="utf-8")


def test_the_claims_whose_verdict_changes_are_named(outputs: Path, gold: Path, ner: Ner) -> None:
    archive(outputs, ner)
    write_ledger()
    found = rescored(gold, ner)
    verdicts = {it["id"]: (it["own"]["verdict"], it["other"]["verdict"]) for it in found["claims"]}
    own, other = (
        {row["label"]: [*row[f"{gold}_scores"].values()] for row in found["rows"]}
        for gold in ("own", "other")
    )
    assert verdicts == {
        name: (verdict(own[a], own[b], own), verdict(other[a], other[b], other))
        for name, (a, b) in {"deep": (DEEP, RESIDUAL), "residual": (RESIDUAL, STACKED)}.items()
    }
    changed = {it["id"] for it in found["claims"] if it["changed"]}
    assert changed == {name for name, (before, after) in verdicts.items() if before != after} == {"deep"}
    assert "Of 2 tests of claims about these rows, 1 changes its verdict: deep.\n" in page(gold, ner)


def verdict(a: list[float], b: list[float], scores: dict[str, list[float]]) -> str:
    """holds or opposite by SciPy's Welch test, corrected by Holm for the two claims of the ledger; else undecided."""
    pairs = [(DEEP, RESIDUAL), (RESIDUAL, STACKED)]
    p_values = sorted(float(stats.ttest_ind(scores[x], scores[y], equal_var=False).pvalue) for x, y in pairs)
    p = float(stats.ttest_ind(a, b, equal_var=False).pvalue)
    adjusted = 2 * p if p == p_values[0] else max(2 * p_values[0], p)
    if adjusted > 0.05:
        return "undecided"
    return "holds" if fmean(a) > fmean(b) else "opposite"


def test_a_claim_with_a_run_without_tags_is_not_decided(outputs: Path, gold: Path, ner: Ner) -> None:
    paths = archive(outputs, ner)
    write_ledger()
    complete = {it["id"]: it["own"] for it in rescored(gold, ner)["claims"]}
    remove_tags(
        next(path for path in paths if json.loads(path.read_text(encoding="utf-8"))["label"] == STACKED)
    )
    found = rescored(gold, ner)
    assert [it["id"] for it in found["claims"]] == ["deep"]
    assert found["claims"][0]["own"] == complete["deep"]  # the other claim still counts in the correction
    assert found["claims_not_rescored"] == ["residual"]


@pytest.mark.parametrize("number", [1, 2])
def test_two_rows_have_no_rank_correlation(
    tmp_path: Path, gold: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner, number: int
) -> None:
    monkeypatch.chdir(tmp_path)
    for label in [*SETTINGS][:number]:
        finish(["paper=yang2020", *TOY, *SETTINGS[label]], 1, 3)
    (ranking,) = rescored(gold, ner)["rankings"]
    assert ranking["tau"] is None
    assert "Kendall" not in page(gold, ner)


def test_another_text_other_types_and_a_missing_file_are_refused(
    outputs: Path, tmp_path: Path, ner: Ner
) -> None:
    text = write(tmp_path / "text.txt", [[(f"word{number}", "B-PER")] for number in range(99)])
    length = sum(map(len, (word for it in TEST for word in it.words)))
    assert refusal(text, ner) == (
        f"{TABLE}: no finished run of it can be rescored\n{STACKED}; {RESIDUAL}; {DEEP}: {text} has another text than "
        f"the test set of toy_zh: only 0 of {length:,} characters are the same\n"
    )
    types = write(tmp_path / "types.txt", [[(w, "S-X") for w in it.words] for it in TEST])
    assert refusal(types, ner) == f"{types}: expected types such as LOC, got X\n"
    none = write(tmp_path / "none.txt", [[(w, "O") for w in it.words] for it in TEST])
    assert refusal(none, ner) == f"{none}: expected types such as LOC, got none\n"
    assert refusal(text, ner, "li2020_table3") == (
        "li2020_table3 is made from the runs of li2020_table1; rescore those\n"
    )
    assert "its rows are no training runs" in refusal(text, ner, "xor")


def test_columns_of_the_gold_file_are_chosen(outputs: Path, tmp_path: Path, gold: Path, ner: Ner) -> None:
    expected = rescored(gold, ner)["rows"]
    lines = [" ".join(reversed(line.split(" "))) for line in gold.read_text(encoding="utf-8").split("\n")]
    turned = tmp_path / "turned.txt"
    turned.write_text("\n".join(lines), encoding="utf-8")
    assert rescored(turned, ner, "--gold-columns", "word=2,tag=0")["rows"] == expected


def test_a_sweep_is_rescored(tmp_path: Path, gold: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = [*TOY, "model=residual", "layers=2,3"]
    for layers in (2, 3):
        finish([*TOY, "model=residual", f"layers={layers}"], 1, 2 * layers)
    sweeps.record(sweeps.of_jobs(jobs(sweep), "", sweep), Path("outputs"))
    found = ner.json("rescore", *sweep, "--gold", str(gold))
    assert [row["label"] for row in found["rows"]] == ["layers=2", "layers=3"]
