"""Printed and stored text of the XOR certificates: the paper's inequalities, enough to check by hand."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from ner_experiments.xor.certificate import Solution, certificates, render, to_json

# Section 3.3 as printed there, its equalities put in (a context for a phrase number), < turned around.
PAPER_3_3 = [
    "→s(I | Key and) + ←s(I | and Peele) + b(I) > →s(O | Key and) + ←s(O | and Peele) + b(O)",
    "→s(I | You and) + ←s(I | and I) + b(I) > →s(O | You and) + ←s(O | and I) + b(O)",
    "→s(O | Key and) + ←s(O | and I) + b(O) > →s(I | Key and) + ←s(I | and I) + b(I)",
    "→s(O | You and) + ←s(O | and Peele) + b(O) > →s(I | You and) + ←s(I | and Peele) + b(I)",
]

RENDERED_3_3 = f"""\
Li, Fu & Ma (2020), section 3.3: one token, softmax
  1. Key and/I Peele
  2. You and/I I
  3. Key and/O I
  4. You and/O Peele
No scores satisfy these 4 inequalities (of 16):
  1 x  phrase 1, I over O:
       {PAPER_3_3[0]}
  1 x  phrase 2, I over O:
       {PAPER_3_3[1]}
  1 x  phrase 3, O over I:
       {PAPER_3_3[2]}
  1 x  phrase 4, O over I:
       {PAPER_3_3[3]}
Left sides and right sides add up to the same:
       →s(I | Key and) + →s(I | You and) + →s(O | Key and) + →s(O | You and)
     + ←s(I | and Peele) + ←s(I | and I) + ←s(O | and I) + ←s(O | and Peele)
     + 2 b(I) + 2 b(O)
which is 0 > 0: a contradiction."""


@pytest.fixture(scope="module")
def found():
    return {certificate.program.name: certificate for certificate in certificates()}


@pytest.fixture(scope="module")
def limit(found):
    return found["one token, softmax"]


def test_the_contradiction_of_3_3_is_the_papers_and_prints_as_it_does(limit):
    assert [(times, str(row)) for times, row in limit.used()] == [(1, row) for row in PAPER_3_3]
    assert render(limit) == RENDERED_3_3


def test_the_crf_adds_the_same_transition_terms_to_each_inequality_of_3_4(found):
    softmax, crf = (found[f"O S O or O O O, {kind}"].used() for kind in ("softmax", "CRF"))
    added = {"q(O, S)": 1, "q(S, O)": 1, "q(O, O)": -2}
    for (_, without), (_, row) in zip(softmax, crf, strict=True):
        sign = 1 if row.phrase.tags == ("O", "S", "O") else -1
        assert row.terms == without.terms | {term: sign * count for term, count in added.items()}


def test_a_printed_solution_can_be_read_back(found):
    solution = found["B I E or O O O, CRF"]
    text = render(solution)
    values = {term: int(value) for term, value in re.findall(r"^       (.+) = (-?\d+)$", text, re.MULTILINE)}
    assert Solution(solution.program, values) == solution
    wins = re.findall(r"phrase (\d): (.+) wins by (\d+) over the next best, (.+)$", text, re.MULTILINE)
    for phrase, (number, wanted, lead, rival) in zip(solution.program.phrases, wins, strict=True):
        assert (int(number), tuple(wanted.split())) == (phrase.number, phrase.tags)
        assert (int(lead), tuple(rival.split())) == (
            solution.nearest(phrase)[0],
            solution.nearest(phrase)[1].rival,
        )


def test_the_json_of_a_contradiction_adds_up_by_its_text_alone(found):
    for certificate in (certificate for certificate in found.values() if not certificate.feasible):
        total = Counter()
        for row in json.loads(json.dumps(to_json(certificate)))["contradiction"]:
            for sign, side in zip((1, -1), row["inequality"].split(" > "), strict=True):
                for count, term in re.findall(r"(?:^| \+ )(\d+ )?((?:→s|←s|b|q)\([^)]*\))", side):
                    total[term] += sign * row["multiplier"] * int(count or 1)
        assert len(total) >= 10
        assert set(total.values()) == {0}


def test_the_json_says_what_was_proved(found, limit):
    record = to_json(limit)
    assert (record["name"], record["section"], record["feasible"]) == ("one token, softmax", "3.3", False)
    assert record["phrases"] == ["Key and/I Peele", "You and/I I", "Key and/O I", "You and/O Peele"]
    assert record["num_inequalities"] == 16
    solved = found["B I E or O O O, CRF"]
    record = json.loads(json.dumps(to_json(solved)))
    assert Solution(solved.program, record["values"]) == solved
    assert [row["lead"] for row in record["nearest"]] == [
        solved.nearest(p)[0] for p in solved.program.phrases
    ]
