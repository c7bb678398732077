"""Scores that others printed for files in their repositories, in clones of these below `NER_PUBLISHED_DIR`."""

import os
from pathlib import Path

import pytest

from ner_experiments import compare

CLONES = Path(os.environ.get("NER_PUBLISHED_DIR", "published"))
SHARP, FU = "conll_sharp", "InterpretEval/interpretEval/data/ner"
PUBLISHED = {
    "CoNLL#, Rueda et al. (2024)": (
        f"{SHARP}/test_sets/conll_sharp/conll_sharp.txt",
        {
            f"{SHARP}/outputs/xlm_flert_sharp/xlm_flert_sharp.txt": 95.97,
            f"{SHARP}/outputs/luke_sharp/luke_sharp.txt": 97.10,
        },
    ),
    "CoNLL-2003, Fu et al. (2020)": (
        None,
        {
            f"{FU}/conll03/results/connl03_CelmoWglove_lstmCrf_9222.txt": 92.22,
            f"{FU}/conll03/results/connl03_CflairWglove_lstmCrf_9303.txt": 93.03,
        },
    ),
    "WNUT-16, Fu et al. (2020)": (
        None,
        {
            f"{FU}/wnut16/results/wnut16_CelmoWglove_lstmCrf_29275447_4533.txt": 45.33,
            f"{FU}/wnut16/results/wnut16_CflairWglove_lstmCrf_27707443_4596.txt": 45.96,
        },
    ),
}
"""Gold, unless it is beside the predictions, and the F1 that is printed for each file."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_printed_scores_come_out_to_the_digit(name: str) -> None:
    gold, printed = PUBLISHED[name]
    if not all((CLONES / path).is_file() for path in printed):
        pytest.skip(f"there is no clone in {CLONES}")
    found = compare(gold and CLONES / gold, {path: CLONES / path for path in printed}).to_records()
    assert {it["system"]: round(it["mean"], 2) for it in found} == printed
