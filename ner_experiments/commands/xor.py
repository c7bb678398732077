"""`ner-experiments xor [--run FOLDER] [--json]`: show the XOR limit of BiLSTMs by proof and training, or of a run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ner_experiments.config.config_dirs import names
from ner_experiments.runs.run import open_run
from ner_experiments.utils.arguments import at_least, refuse
from ner_experiments.utils.files import write_json
from ner_experiments.utils.machine import usable_cores
from ner_experiments.utils.terminal import draw, make_console
from ner_experiments.utils.text import as_json, did_you_mean
from ner_experiments.view.table import Grid
from ner_experiments.xor.certificate import Certificate, cases, certificates, render
from ner_experiments.xor.results import FILE, HEADINGS, PICTURE, ModelResult, disagreements, table_lines

if TYPE_CHECKING:
    from ner_experiments.xor.measurement import Measurement

SEEDS, SENTENCES = 20, 200
"""Trainings per model and decoder, and sentences of a run to measure, by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = "Show the XOR limit of taggers that only add up past and future (Li, Fu & Ma 2020, 3.3 and 3.4)."
    parser.description = text
    parser.add_argument("--models", nargs="+", metavar="NAME", help="architectures of conf/model (all)")
    parser.add_argument("--seeds", type=int, metavar="N", help=f"trainings per model and decoder ({SEEDS})")
    parser.add_argument("--certificates", action="store_true", help="print every proof, not just the first")
    parser.add_argument(
        "--run", type=Path, metavar="FOLDER", help="measure a finished run on its own corpus instead"
    )
    parser.add_argument(
        "--sentences", type=int, metavar="N", help=f"with --run: number of sentences ({SENTENCES})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--output", type=Path, default=Path("outputs/xor"), metavar="DIR", help="(outputs/xor)"
    )
    parser.add_argument("--processes", type=int, metavar="N", help="(the usable cores)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 1 if training did what is proved impossible.

    Raises ValueError or OSError for user errors.
    """
    if arguments.run is None:
        refuse(arguments, "sentences", reason="is for --run")
        return run_suite(arguments)
    refuse(arguments, "models", "seeds", "certificates", "processes", reason="is not for --run")
    return measure_one_run(arguments)


def run_suite(arguments: argparse.Namespace) -> int:
    """Prove, measure and train; write xor.json and the picture."""
    from ner_experiments.xor.experiment import run_experiment  # slow to import: torch, Lightning
    from ner_experiments.xor.picture import draw

    models = requested_architectures(arguments.models)
    seeds = SEEDS if arguments.seeds is None else arguments.seeds
    processes = usable_cores() if arguments.processes is None else arguments.processes
    at_least(1, seeds=seeds, processes=processes)
    if arguments.json:
        refuse(arguments, "certificates", reason="is not for --json, which has every proof")
    arguments.output.mkdir(parents=True, exist_ok=True)  # an error here would cost all trainings later
    proofs = certificates()
    results = run_experiment(models, proofs, num_seeds=seeds, num_processes=processes)
    write_json(arguments.output / FILE, results.content)
    draw(arguments.output / PICTURE, cases(proofs), results.models)
    impossible, _ = disagreements(results.models)
    if arguments.json:
        print(as_json(results.content))
    else:
        print_certificates(proofs, every_proof=arguments.certificates)
        print_models(results.models, num_draws=results.content["config"]["measured"]["draws"])
        print(f"{arguments.output / PICTURE}, {FILE}; {results.content['seconds']:.0f} s")
    return 1 if impossible else 0


def measure_one_run(arguments: argparse.Namespace) -> int:
    """Measure a trained run; write tokens.tsv."""
    from ner_experiments.xor.measurement import measure_run  # slow to import: torch, Lightning

    sentences = SENTENCES if arguments.sentences is None else arguments.sentences
    at_least(1, sentences=sentences)
    open_run(arguments.run)  # a folder that is none of a run leaves no output
    path = arguments.output / "tokens.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    measurement = measure_run(arguments.run, num_sentences=sentences)
    measurement.write(path)
    if arguments.json:
        content = {"run": str(arguments.run), **measurement.record()}
        print(as_json(content))
    else:
        print_measurement(measurement)
        print(path)
    return 0


def requested_architectures(models: Sequence[str] | None) -> list[str]:
    """Names of the requested architectures, sorted; all without a request. ValueError for an unknown name."""
    known = names("model")
    for name in models or ():
        if name not in known:
            raise ValueError(f"--models: no architecture {name!r}{did_you_mean(name, known)}")
    return sorted(set(models)) if models else known


def print_certificates(proofs: Sequence[Certificate], *, every_proof: bool) -> None:
    """Print the proof of section 3.3, or all proofs, and a table of the verdicts."""
    for certificate in proofs if every_proof else cases(proofs)[:1]:
        print(f"{render(certificate)}\n")
    title = "Proved by linear programs, with integer certificates"
    lines = [
        [
            f"section {it.program.section}: {it.program.name}",
            *(("4 of 4", "solution") if it.feasible else ("3 of 4", "contradiction")),
        ]
        for it in cases(proofs)
    ]
    print_table("sums of past and future", "at most", "certificate", lines=lines, title=title)


def print_models(models: Mapping[str, ModelResult], *, num_draws: int) -> None:
    """Print a table of the architectures, and whether training agrees with the proofs."""
    num_seeds = len(next(iter(models.values())).num_correct("softmax"))
    title = (
        f"Measured with {num_draws} draws of random weights; trained on four phrases with {num_seeds} seeds"
    )
    print_table(*HEADINGS, lines=table_lines(models), title=title)
    impossible, not_learned = disagreements(models)
    if impossible:
        print(f"Training did what is proved impossible, so something is wrong: {', '.join(impossible)}")
    if not_learned:
        listed = ", ".join(not_learned)
        print(f"Not limited, yet with at least one decoder no seed learned all four phrases: {listed}")
    if not impossible and not not_learned:
        print(
            "Proof, measurement and training agree: limited models never exceed 3 of 4, the others reach 4."
        )


def print_measurement(measurement: Measurement) -> None:
    left_out = f"tokens left out, as they have no other contexts: {measurement.left_out:,}"
    print(f"{measurement.name} {measurement.split}; {left_out}")
    headings = ("tokens", "same word", "median", "90 %", "largest", "decided", "XOR")
    lines = []
    for name, mask in measurement.groups().items():
        if mask.any():
            row = measurement.summary(mask)
            quantiles = (f"{row[f'interaction_{key}']:.1e}" for key in ("median", "90", "largest"))
            shares = (f"{100 * row[key]:.2f} %" for key in ("decided", "xor"))
            lines.append([name, f"{row['tokens']:,}", f"{100 * row['same_word']:.0f} %", *quantiles, *shares])
    print_table("", *headings, lines=lines, title="Interaction of past and future")
    print("decided: tokens whose best tag an additive model would not choose; see xor/measurement.py.")


def print_table(*headings: str, lines: Sequence[Sequence[str]], title: str) -> None:
    console = make_console(emoji=False, highlight=False)
    console.print(Text(title, style="italic"))
    draw(Grid(headings, lines).with_rules, console)
