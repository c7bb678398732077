"""`ner-experiments compare`: each option once, each message, and the same statistics as the table of a sweep."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import random_tags
from cases import refused
from in_process import Ner
from toy_rows import TEST, TOY, finish

from ner_experiments.config.compose import jobs
from ner_experiments.config.config_dirs import PACKAGE
from ner_experiments.data.tags import encode
from ner_experiments.tables import sweeps

A, B = "a=a/seed-*.conll", "b=b/run*.conll"
GOLD = ("--gold", "gold.conll")


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold and three files of a, which find more than those of b."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    gold = [[(0, 1, "LOC")], *(random_tags.mentions(rng, 9) for _ in range(30))]

    def write(name: str, mentions: list[list[tuple[int, int, str]]]) -> None:
        Path(name).parent.mkdir(exist_ok=True)
        blocks = (
            "".join(f"w{n}{i} x {tag}\n" for i, tag in enumerate(encode(it, 9, "iob2")))
            for n, it in enumerate(mentions)
        )
        Path(name).write_text("\n".join(blocks), encoding="utf-8")

    write("gold.conll", gold)
    write("train.conll", gold[:7])
    for seed, number in ((2, 20), (10, 22), (1, 25)):
        write(f"a/seed-{seed}.conll", [it if n < number else [] for n, it in enumerate(gold)])
        write(f"b/run{seed}.conll", [it if n < number - 9 else [] for n, it in enumerate(gold)])
    lines = zip(
        *(Path(name).read_text().split("\n") for name in ("gold.conll", "a/seed-1.conll")), strict=True
    )
    Path("both.txt").write_text("\n".join(f"{a} {b.rpartition(' ')[2]}".strip() for a, b in lines))


def f1(found: Any) -> list[float]:
    return [it["measured"]["mean"] for it in found["systems"]]


def test_files_are_the_seeds_of_systems(ner: Ner) -> None:
    found = ner.json("compare", *GOLD, A, B)
    one, other = found["systems"]
    assert one["files"] == {seed: f"a/seed-{seed}.conll" for seed in ("1", "2", "10")}
    assert other["files"] == {seed: f"b/run{seed}.conll" for seed in ("1", "2", "10")}
    assert one["measured"]["n"] == 3
    assert one["counts"]["10"]["gold"] == found["gold"]["mentions"]
    assert found["signature"].startswith("strict|conlleval|characters|types:3|gold:")
    assert found["verdict"].startswith("By F1 over 3 seeds, a is ahead of b")


def test_gold_beside_predictions_and_columns_by_number(ner: Ner) -> None:
    expected = f1(ner.json("compare", *GOLD, "a=a/seed-1.conll"))
    assert f1(ner.json("compare", "a=both.txt")) == expected
    assert f1(ner.json("compare", "--gold", "both.txt", "--gold-columns", "tag=2", "a=both.txt")) == expected
    assert f1(ner.json("compare", *GOLD, "a=both.txt", "--columns", "word=0,tag=2")) == [100.0]
    assert f1(ner.json("compare", "a=both.txt", "--gold-columns", "tag=3", "--columns", "tag=2")) == expected
    of_b = ner.json("compare", *GOLD, "a=both.txt", "b=both.txt", "--columns", "b:tag=2")
    assert f1(of_b) == [*expected, 100.0]
    assert any(it.startswith("both.txt: it has all mentions of gold and no other") for it in of_b["notes"])


def test_gold_that_the_tokens_of_a_run_cannot_express_counts(ner: Ner) -> None:
    folder = Path("row/seed-4/predictions")
    folder.mkdir(parents=True)
    (folder / "test.conll").write_text("ann B-PER B-PER\nis O O\n\u2400an B-PER O\n", encoding="utf-8")
    Path("plain.conll").write_text("ann B-PER\nis O\n")
    (alone,) = ner.json("compare", "run=row/seed-4")["systems"]
    (beside,) = ner.json("compare", "--gold", "plain.conll", "run=row/seed-4")["systems"]
    assert alone["counts"] == {"4": {"correct": 1, "predicted": 1, "gold": 2}}
    assert beside["counts"] == {"4": {"correct": 1, "predicted": 1, "gold": 1}}


def test_a_published_score_train_and_other_names_of_types(ner: Ner) -> None:
    published = ("--against", "84.5 ± 2", "--against-runs", "5")
    (system,) = ner.json("compare", *GOLD, A, *published)["systems"]
    assert (system["published"], system["published_sd"], system["published_runs"]) == (84.5, 2.0, 5)
    assert system["measured"]["difference"] == pytest.approx(system["measured"]["mean"] - 84.5)
    assert "7 of the 31 sentences also occur in train." in ner("compare", *GOLD, A, "--train", "train.conll")
    Path("other.conll").write_text(Path("gold.conll").read_text().replace("LOC", "GPE"))
    other = ner.json("compare", "--map", "GPE=LOC,ORG=PER", *GOLD, "a=other.conll", "b=gold.conll")
    assert f1(other) == [100.0, 100.0]
    assert "|types:2|map:GPE=LOC|map:ORG=PER|" in other["signature"]


def test_files_that_are_not_what_they_are_taken_for_are_noted(ner: Ner) -> None:
    Path("copy.conll").write_text(Path("a/seed-1.conll").read_text())
    Path("none.conll").write_text(re.sub(r"[BI]-\w+", "O", Path("gold.conll").read_text()))
    found = ner.json("compare", *GOLD, "a=a/seed-1.conll", "copy.conll", "none=none.conll")["notes"]
    assert (
        "copy.conll: its predictions are those of a/seed-1.conll: copies of a file are no further seeds"
        in found
    )
    assert "none.conll: it has no mention" in found


def test_errors_and_cases_read_files_as_compare_does(ner: Ner) -> None:
    Path("other.conll").write_text(Path("gold.conll").read_text().replace("LOC", "GPE"))
    how = (*GOLD, "--map", "GPE=LOC")
    assert ner("cases", *how, "a=other.conll").startswith("# 0 of 31 test sentences")
    assert "Scores on test: 100.00." in ner("errors", *how, "a=other.conll")
    for command in ("errors", "cases"):
        assert ner.error(command, *GOLD, "other.conll").startswith("other.conll: expected NAME=FILES")


def test_missing_sentences_and_the_signature(ner: Ner) -> None:
    Path("part.conll").write_text(Path("gold.conll").read_text().partition("\n\n")[2])
    found = ner.json("compare", *GOLD, "a=part.conll", "--missing", "empty")
    (counts,) = found["systems"][0]["counts"].values()
    assert counts["correct"] == counts["predicted"] == counts["gold"] - 1
    assert "part.conll: missing sentences, counted as without a prediction: 1" in found["notes"]
    signature = found["signature"].replace("|missing:empty|", "|")
    same = ("compare", *GOLD, "a=gold.conll", "--signature")
    assert f1(ner.json(*same, signature)) == [100.0]
    assert "; they differ in missing:empty, types:3, types:4" in ner.error(
        *same, found["signature"].replace("|types:3|", "|types:4|")
    )


def test_other_outputs(ner: Ner) -> None:
    assert ner("compare", *GOLD, A, B, "--csv").splitlines()[1].startswith("a,,,,79.8")
    assert r"\begin{tabular}" in ner("compare", *GOLD, A, B, "--latex")
    assert ner("compare", *GOLD, A, B, "--report", "pages") == "pages/index.html\n"
    pages = {it.name: it.read_text() for it in Path("pages").glob("*.html")}
    assert {*pages} == {"index.html", "system-1.html", "system-2.html", "disagreements.html"}
    assert "is ahead of b" in pages["index.html"]
    assert all("Made by <code>ner-experiments compare</code>. " in it for it in pages.values())
    assert '<li><a href="index.html">Comparison</a></li>' in pages["system-1.html"]
    assert not any("All tables" in it or "those of train" in it for it in pages.values())
    assert "b/run10.conll" in pages["system-2.html"]


def test_an_article_of_single_files_says_what_their_scores_rest_on(ner: Ner) -> None:
    Path("cut.jsonl").write_text(
        '{"text": "w00w01w02w03w04w05w06w07w08", "answer": [["w0", "LOC"], ["x", "LOC"]]}\n'
    )
    ner("compare", *GOLD, "a=gold.conll", "b=a/seed-1.conll", "c=gold.conll", "d=cut.jsonl", "--missing", "empty",
        "--paper", "out", "--dataset", "My Corpus")  # fmt: skip
    table, methods = (Path(f"out/{name}.tex").read_text() for name in ("table", "methods"))
    assert "F1 in percent on My Corpus, of single files." in table
    assert table.count(r"\textbf{100.00}") == 2
    for text in ("a and b: p $", "such as 'x' (LOC), counted as spurious: 1."):
        assert text.replace("$", "= " if "p = " in methods else "< ") in methods.replace("$<$", "<")


PROBABLE: list[dict[str, Any]] = [
    {"text": "Ann Lee met Ann", "entities": [[0.9, 0, 7, "PER"], [0.4, 12, 15, "PER"]]},
    {"text": "in Rome", "entities": [[0.8, 3, 7, "LOC"], [0.2, 0, 2, "LOC"]]},
]
"""Records of mentions, each with its probability."""


def probable(form: str) -> str:
    """The records in a form that tools write."""
    if form == "columns":
        return "Ann 0.9 B-PER\nLee 0.9 I-PER\nmet _ O\nAnn 0.4 B-PER\n\nin 0.2 B-LOC\nRome 0.8 B-LOC\n"
    records = []
    for it in PROBABLE:
        entities = []
        for probability, start, end, type_ in it["entities"]:
            surface, before = it["text"][start:end], it["text"][:start]
            if form == "answers":
                place: dict[str, Any] = {"text": surface}
            elif form == "tokens":
                start = len(before.split())
                place = {"start": start, "end": start + len(surface.split())}
            else:
                place = {"start": start, "end": end}
            entities.append({"label": type_, "score": probability, **place})
        text = {"tokens": it["text"].split()} if form == "tokens" else {"text": it["text"]}
        records.append({**text, "entities": entities})
    return "".join(f"{json.dumps(it)}\n" for it in records)


@pytest.mark.parametrize("form", ["characters", "tokens", "answers", "columns"])
def test_calibration_of_probabilities(ner: Ner, form: str) -> None:
    Path("small.conll").write_text("Ann B-PER\nLee I-PER\nmet O\nAnn O\n\nin O\nRome B-LOC\n")
    Path("file").write_text(probable(form))
    files = ["--gold", "small.conll", "a=file"]
    files += ["--columns", "word=0,probability=1,tag=2"] if form == "columns" else []
    (row,) = ner.json("errors", *files)["rows"]
    found = {round(it["mean"], 6): (it["count"], it["correct"]["value"]) for it in row["calibration"]["bins"]}
    assert found == {0.2: (1, 0.0), 0.4: (1, 0.0), 0.8: (1, 1.0), 0.9: (1, 1.0)}
    assert row["calibration"]["error"]["value"] == pytest.approx((0.2 + 0.4 + 0.2 + 0.1) / 4)
    ner("compare", *files, "--report", "pages")
    assert "Expected calibration error" in Path("pages/system-1.html").read_text()


def test_probabilities_of_a_run_and_scores_that_are_none(ner: Ner) -> None:
    folder = Path("row/seed-1/predictions")
    folder.mkdir(parents=True)
    (folder / "test.conll").write_text("ann B-PER B-PER\nlee B-PER O\n\nis O B-LOC\n", encoding="utf-8")
    (folder / "test.probabilities").write_text("0.75\n0.25\n")
    found = ner.json("errors", "run=row/seed-1")["rows"][0]["calibration"]
    assert [(it["mean"], it["correct"]["value"]) for it in found["bins"]] == [(0.25, 0.0), (0.75, 1.0)]
    (folder / "test.probabilities").write_text("0.75\n\n")
    assert "expected a probability for each mention of test.conll" in ner.error("compare", "run=row/seed-1")
    Path("logits.jsonl").write_text(
        '{"text": "ann", "entities": [{"text": "ann", "label": "PER", "score": 7.5}]}\n'
    )
    Path("ann.conll").write_text("ann B-PER\n")
    notes = ner.json("compare", "--gold", "ann.conll", "a=logits.jsonl")["notes"]
    assert "logits.jsonl: its scores are no probabilities, such as 7.5, and are not read" in notes


def test_files_are_rescored_as_compare_scores_them(ner: Ner) -> None:
    Path("other.conll").write_text(
        re.sub("-LOC", "-GPE", Path("gold.conll").read_text()).replace("B-PER", "O", 1)
    )
    files = (A, B, "--map", "GPE=LOC")
    own, other = (
        f1(ner.json("compare", A, B, *GOLD)),
        f1(ner.json("compare", *files, "--gold", "other.conll")),
    )
    found = ner.json("rescore", *files, "--own-gold", "gold.conll", "--gold", "other.conll")
    assert [it["own"]["mean"] for it in found["rows"]] == pytest.approx(own)
    assert [it["other"]["mean"] for it in found["rows"]] == pytest.approx(other)
    page = ner("rescore", "a=both.txt", "--gold", "other.conll", "--map", "GPE=LOC")
    assert "other.conll has " in page
    assert "All are compared." in page
    assert "--map GPE: no file has" in ner.error("rescore", "a=both.txt", "--map", "GPE=LOC", *GOLD)
    assert "or of `rescore` with --own-gold" in ner.error("rescore", A, *GOLD)
    assert ner.error("rescore", "xor", "--missing", "empty", *GOLD).startswith(
        "--missing belongs to files of"
    )


def test_files_with_the_header_of_gold_have_their_tags_in_its_column(ner: Ner) -> None:
    """As those of HIPE: `_` in columns that are not annotated, comments, and an empty field for O."""
    head = "TOKEN\tNE-COARSE-LIT\tNE-NESTED\tMISC\n# language = en\n"
    Path("hipe.tsv").write_text(f"{head}Ann\tB-pers\tO\tEndOfLine\nis\tO\tO\t_\n")
    Path("ours.tsv").write_text(f"{head}Ann\tB-pers\t_\t_\nis\t\t_\tNoSpaceAfter\n")
    found = ner.json("compare", "--gold", "hipe.tsv", "a=ours.tsv")
    assert f1(found) == [100.0]
    assert "ours.tsv: empty tags read as O: 1" in found["notes"]


def test_mentions_outside_the_tags_of_tokens_are_apart_in_json(ner: Ner) -> None:
    Path("nested.jsonl").write_text(
        '{"tokens": ["ann", "lee"], "entities": [[0, 2, "PER"], [1, 2, "LOC"]]}\n'
    )
    Path("flat.conll").write_text("ann B-PER\nlee I-PER\n")
    others = [{"text": "lee", "type": "LOC", "gold": True, "predicted": [False]}]
    (wrong,) = ner.json("errors", "--gold", "nested.jsonl", "a=flat.conll")["rows"][0]["sentences"]
    (case,) = ner.json("cases", "--gold", "nested.jsonl", "a=flat.conll")["cases"]
    for found in (wrong, case):
        assert (found["words"], found["gold"]) == (["ann", "lee"], ["B-PER", "I-PER"])
        assert found["others"] == others
    assert (wrong["predicted"], case["predicted"]) == ({"1": ["B-PER", "I-PER"]}, [["B-PER", "I-PER"]])


HEAVY = ("torch", "lightning", "hydra", "omegaconf", "numba", "torchmetrics", "wandb", "seqeval", "pandas")


def test_files_need_none_of_the_heavy_libraries(ner: Ner) -> None:
    files = [*GOLD, A, B]
    commands = [
        ["compare", *files, "--train", "train.conll"],
        *(["compare", *files, f"--{output}", "out"] for output in ("report", "paper", "publish")),
        *([command, *files] for command in ("errors", "cases")),
        ["rescore", *files, "--own-gold", "gold.conll"],
    ]
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({HEAVY}))\n"
        "from ner_experiments.main import cli\n"
        f"assert not any(map(cli, {commands}))\n"
        "sys.exit(cli(['errors', 'outputs/row/seed-1']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "ner-experiments errors: needs the module hydra, which is not installed; `pip install -e .` in a checkout "
        "brings all\n",
    )


def test_the_columns_of_csv_are_stated_by_name(ner: Ner) -> None:
    rows = "satz_nr;wort;etikett\n1;Mia;B-PER\n1;ran;O\n2;Leo;{}\n"
    Path("gold.csv").write_text(rows.format("B-PER"))
    Path("p.csv").write_text(rows.format("O"))
    Path("p.conll").write_text("Mia B-PER\nran O\n\nLeo O\n")
    error = ner.error("compare", "--gold", "gold.csv", "a=p.conll")
    way_out = "(--columns or --gold-columns sentence=NAME,word=NAME,tag=NAME states names): ['satz_nr', 'wort', 'eti"
    assert way_out in error
    columns = "--gold-columns=sentence=satz_nr,word=wort,tag=etikett"
    report = ner.json("compare", "--gold", "gold.csv", "a=p.conll", "b=p.csv", columns)
    assert f1(report) == pytest.approx([200 / 3, 200 / 3])
    stated = "a:sentence=satz_nr,word=wort,tag=etikett"
    Path("gold.conll").write_text("Mia B-PER\nran O\n\nLeo B-PER\n")
    ner("compare", "--gold", "gold.conll", "a=p.csv", "--columns", stated)


@pytest.mark.parametrize(
    ("arguments", "message"),
    refused(
        """
a/seed-1.conll -> a/seed-1.conll: expected NAME=FILES, such as mine=a/seed-1.conll
=a/seed-1.conll -> =a/seed-1.conll: expected NAME=FILES
a=a/*.txt -> a: there is no file a/*.txt
a=a/seed-1.conll a/seed-1.conll -> a: a/seed-1.conll stands twice
a=gold.conll a=both.txt -> a=both.txt: a name stands twice
a=a -> a: expected the folder of a finished run, but it has no predictions/test.conll
a=row -> row: expected the folder of a finished run, but it has no predictions/test.conll; its runs are seed-1
a=a -> has no predictions/test.conll; a system of the files in it is NAME=a/*
a=scores --gold gold.conll -> read as: space-separated, 3 columns, word 0, tag 2; tags are in column 1: state it with
a=a/seed-1.conll --gold nothing -> nothing: there is no such file
a=a/seed-1.conll --gold empty -> empty: test has no sentence
a=low.conll --gold gold.conll -> low.conll: its types are loc, org, per, those of gold LOC, ORG, PER; --map loc=LOC
a=a/seed-1.conll -> without gold tags beside those of predictions, state the gold file with --gold, or of `rescore`
a=some.jsonl -> some.jsonl: it is no file of columns, which can have gold beside predictions: state the gold
a=both.txt b=less.txt -> both.txt and less.txt have 31 and 30 sentences: state the gold file with --gold
a=c/both.txt b=wrong.txt -> c/both.txt:1 and wrong.txt:1 have another gold: state the gold file with --gold
a=ids.jsonl --gold gold.conll -> ids.jsonl:1: no name for tag 1: write tags by name, such as B-PER
a=keys.jsonl --gold gold.conll -> keys.jsonl: no record has mentions with offsets (entities, ents, spans,
a=gold.conll --gold untagged -> (columns are split at spaces and tabs; --columns or --gold-columns tag=NUMBER states
a=gold.conll --gold gold.conll --map loc=LOC -> --map loc: no file has this type; there are LOC, ORG, PER
a=gold.conll --gold gold.conll --train low.conll -> low.conll: its types are loc, org, per, those of gold LOC, ORG,
a=gold.conll --gold gold.conll --columns b:tag=1 -> --columns b: there is no such system; there are a
a=both.txt --against x -> --against: expected an F1 such as 91.21 or 91.21±0.22, got 'x'
a=both.txt --against 0.91 -> --against: expected an F1 in percent, got 0.91
a=both.txt --against 91±1 -> --against: a deviation requires the number of its runs, as --against-runs 5, got 1
a=both.txt --against 91 --against-runs 0 -> --against-runs: expected at least 1, got 0
a=both.txt --against-runs 5 -> --against-runs belongs to --against
a=both.txt --smallest-effect 0 -> --smallest-effect: expected a number above 0, got 0.0
"""
    ),
)
def test_wrong_arguments(ner: Ner, arguments: str, message: str) -> None:
    both = Path("both.txt").read_text()
    Path("low.conll").write_text(re.sub(r"-(\w+)", lambda it: it[0].lower(), Path("gold.conll").read_text()))
    Path("less.txt").write_text(both.partition("\n\n")[2])
    Path("wrong.txt").write_text(both.replace("B-LOC", "O", 1))
    Path("some.jsonl").write_text('{"tokens": ["a"], "entities": [[0, 1, "LOC"]]}\n')
    Path("ids.jsonl").write_text('{"tokens": ["a"], "ner_tags": [1]}\n')
    Path("keys.jsonl").write_text('{"text": "a", "predictions": [[0, 1, "LOC"]]}\n')
    Path("scores").write_text("a B-LOC 0.9\nb O 0.8\n")
    Path("c").mkdir()
    Path("c/both.txt").write_text(both)
    Path("untagged").write_text("a 1\nb 2\n")
    Path("empty").touch()
    Path("row/seed-1/predictions").mkdir(parents=True)
    Path("row/seed-1/predictions/test.conll").touch()
    assert message in ner.error("compare", *arguments.split(" "))


@pytest.mark.parametrize(
    ("option", "message"),
    [("--map GPE", "expected OLD=NEW, such as GPE=LOC, got 'GPE'"), ("--columns tga=1", "got 'tga'")],
)
def test_wrong_options(ner: Ner, capsys: pytest.CaptureFixture[str], option: str, message: str) -> None:
    with pytest.raises(SystemExit):
        ner("compare", "a=both.txt", *option.split(" "))
    assert message in capsys.readouterr().err


def test_statistics_are_those_of_the_table_of_a_sweep(ner: Ner) -> None:
    overrides, folders = ["model=residual", *TOY], {}
    for layers, wrong in ((2, (10, 12, 17)), (3, (1, 2, 4))):
        for seed, number in enumerate(wrong, start=1):
            folder = finish([*overrides, f"layers={layers}", "output_dir=outputs"], seed, number)
            folders[layers] = f"{layers} layers={folder.parent}/seed-*"
    swept = [*overrides, "layers=2,3", "seed=1,2,3"]
    sweeps.record(sweeps.of_jobs(jobs(swept), "", swept), Path("outputs"))
    Path("toy.conll").write_text(
        "\n".join("".join(f"{w} {t}\n" for w, t in zip(it.words, it.tags, strict=True)) for it in TEST),
        encoding="utf-8",
    )
    (expected,) = ner.json("table", "layers")["pairs"]
    (found,) = ner.json("compare", "--gold", "toy.conll", *folders.values())["pairs"]
    assert found.pop("seeds") == expected.pop("seeds")
    assert found == pytest.approx({**expected, "a": "2 layers", "b": "3 layers"}, rel=1e-12)
    sweeps.record(sweeps.of_jobs(jobs(swept), "looked", swept, looks=[2, 3]), Path("outputs"))
    assert "looked: planned with looks; `ner-experiments table looked` tests" in ner("compare", "looked")
