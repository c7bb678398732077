"""What `ner-experiments xor` prints and writes: proofs, tables, JSON, and the picture.

`ner-experiments xor`: the XOR limit as certificate, measurement and experiment, or of a trained run.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

from ner_experiments.config import compose
from ner_experiments.utils.files import write_json
from ner_experiments.utils.terminal import make_console, new_table
from ner_experiments.utils.text import did_you_mean
from ner_experiments.xor import experiment
from ner_experiments.xor.certificate import Certificate, cases, certificates, render
from ner_experiments.xor.experiment import Found
from ner_experiments.xor.measurement import Measured, measure_run
from ner_experiments.xor.picture import draw
from ner_experiments.xor.results import FILE, PICTURE


def of_suite(arguments: argparse.Namespace) -> int:
    names = chosen(arguments.models)
    at_least_one(seeds=arguments.seeds, processes=arguments.processes)
    proved = certificates()
    made = experiment.trials(names, proved, num_seeds=arguments.seeds, num_processes=arguments.processes)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_json(arguments.output / FILE, made.content)
    found = made.found
    draw(arguments.output / PICTURE, cases(proved), found)
    broken, _ = experiment.disagreements(found)
    if arguments.json:
        print(json.dumps(made.content, indent=2, ensure_ascii=False))
    else:
        show_certificates(proved, everything=arguments.certificates)
        show_models(found)
        print(f"{arguments.output / PICTURE}, {FILE}; {made.content['seconds']:.0f} s")
    return 1 if broken else 0


def of_run(arguments: argparse.Namespace) -> int:
    at_least_one(sentences=arguments.sentences)
    measured = measure_run(arguments.run, num_sentences=arguments.sentences)
    path = arguments.output / "tokens.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    measured.write(path)
    if arguments.json:
        print(json.dumps({"run": str(arguments.run), **measured.record()}, indent=2, ensure_ascii=False))
    else:
        show_run(measured)
        print(path)
    return 0


def chosen(models: Sequence[str] | None) -> list[str]:
    known = compose.architectures()
    for name in models or ():
        if name not in known:
            raise ValueError(f"--models: no architecture {name!r}{did_you_mean(name, known)}")
    return sorted(set(models)) if models else known


def at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"--{name} must be at least 1, got {number}")


def show_certificates(proved: Sequence[Certificate], *, everything: bool) -> None:
    """The verdicts, and the proof of section 3.3, or all proofs."""
    for certificate in proved if everything else cases(proved)[:1]:
        print(f"{render(certificate)}\n")
    title = "Proved, by linear programs and certificates in whole numbers"
    table = new_table("of a sum of past and future", title=title)
    table.add_column("at most")
    table.add_column("certificate")
    for certificate in cases(proved):
        name = f"section {certificate.program.section}: {certificate.program.name}"
        verdict = ("4 of 4", "solution") if certificate.feasible else ("3 of 4", "contradiction")
        table.add_row(name, *verdict)
    make_console(markup=False, emoji=False, highlight=False).print(table)


def show_models(found: dict[str, Found]) -> None:
    num_seeds = len(next(iter(found.values())).right("softmax"))
    draws = f"{experiment.DRAWS} draws of random weights"
    title = f"Measured with {draws}; trained on four phrases with {num_seeds} seeds"
    table = new_table(*experiment.HEADINGS, title=title)
    for line in experiment.lines(found):
        table.add_row(*line)
    make_console(markup=False, emoji=False, highlight=False).print(table)
    broken, missed = experiment.disagreements(found)
    if broken:
        print(f"Training did what is proved impossible, so something is wrong: {', '.join(broken)}")
    if missed:
        print(f"Not limited, and yet no seed learned all four phrases: {', '.join(missed)}")
    if not broken and not missed:
        print("Proof, measurement and training agree: limited ones never pass 3 of 4, the others reach 4.")


def show_run(measured: Measured) -> None:
    left_out = f"tokens left out, for want of other contexts: {measured.left_out:,}"
    print(f"{measured.name} {measured.split}; {left_out}")
    headings = ("tokens", "same word", "median", "90 %", "largest", "decided", "XOR")
    table = new_table("", *headings, title="How much past and future decide together")
    for name, chosen in measured.groups().items():
        if chosen.any():
            row = measured.summary(chosen)
            middle = (f"{row[f'interaction_{key}']:.1e}" for key in ("median", "90", "largest"))
            shares = (f"{100 * row[key]:.2f} %" for key in ("decided", "xor"))
            table.add_row(name, f"{row['tokens']:,}", f"{100 * row['same_word']:.0f} %", *middle, *shares)
    make_console(markup=False, emoji=False, highlight=False).print(table)
    print("decided: tokens whose best tag a sum of past and future would not give; see xor/measurement.py.")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit status: 1 if training did what was proved impossible.

    ValueError or OSError for what the user caused.
    """
    return of_run(arguments) if arguments.run else of_suite(arguments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "The XOR limit of taggers whose past and future only add up (Li, Fu & Ma 2020, 3.3 and 3.4)."
    parser.description = text
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these of conf/model")
    parser.add_argument(
        "--seeds", type=int, default=20, metavar="N", help="trainings per model and decoder (20)"
    )
    parser.add_argument("--certificates", action="store_true", help="print every proof, not only the first")
    parser.add_argument(
        "--run", type=Path, metavar="FOLDER", help="instead: a finished run on its own corpus"
    )
    parser.add_argument("--sentences", type=int, default=200, metavar="N", help="with --run: how many (200)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--output", type=Path, default=Path("outputs/xor"), metavar="DIR", help="(outputs/xor)"
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="(the machine's cores)"
    )
