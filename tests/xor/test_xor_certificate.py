"""The certificates of the XOR limit against a scorer, a brute-force Viterbi and a perceptron written here."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ner_experiments.xor.certificate import (
    Contradiction,
    Solution,
    certificates,
    programs,
    well_formed,
)

CASES = {
    "one token, softmax": False,
    "O S O or O O O, softmax": False,
    "O S O or O O O, CRF": False,
    "B I E or O O O, softmax": False,
    "B I E or O O O, softmax, well-formed only": True,
    "B I E or O O O, CRF": True,
}
"""Whether all four phrases can get their tags. B I E with softmax is finer than in the paper, which compares
with O O O alone: among all sequences B O E and O I O must lose too, which is section 3.3 again."""

LIMITED = [name for name, feasible in CASES.items() if not feasible]


@pytest.fixture(scope="module")
def found():
    return {certificate.program.name: certificate for certificate in certificates()}


@pytest.fixture(scope="module")
def limit(found):
    return found["one token, softmax"]


def features(name, phrase, tags, joint=False):
    """Baseline's features of a tagging, by their printed names; `joint` adds what it cannot see."""
    words = phrase.words
    for t, tag in enumerate(tags, start=phrase.first):
        yield f"→s({tag} | {' '.join(words[: t + 1])})"
        yield f"←s({tag} | {' '.join(words[t:])})"
        yield f"b({tag})"
        if joint:
            yield f"joint({tag} | {t} of {' '.join(words)})"
    if "CRF" in name:
        path = ["start", *tags, "end"]
        yield from (f"q({path[i]}, {path[i + 1]})" for i in range(len(path) - 1))


def score(weights, name, phrase, tags, joint=False):
    return sum(weights.get(feature, 0) for feature in features(name, phrase, tags, joint))


def sequences(name, phrase):
    pattern = "(O|S|BI*E)*" if "well-formed" in name else ".*"
    every = product("OSBIE", repeat=len(phrase.tags))
    return [tags for tags in every if re.fullmatch(pattern, "".join(tags))]


def viterbi(weights, name, phrase, joint=False):
    """Every best tag sequence, by brute force."""
    totals = {tags: score(weights, name, phrase, tags, joint) for tags in sequences(name, phrase)}
    return [tags for tags, total in totals.items() if total == max(totals.values())]


def draw(rng, program):
    every = {
        feature
        for phrase in program.phrases
        for tags in sequences(program.name, phrase)
        for feature in features(program.name, phrase, tags, joint=True)
    }
    return {feature: int(rng.integers(-9, 10)) for feature in sorted(every)}


def test_each_case_is_feasible_or_not_as_it_should_be(found):
    assert {name: found[name].feasible for name in CASES} == CASES


def test_every_three_of_four_phrases_are_feasible_and_the_fourth_is_then_wrong(found):
    assert len(found) == len(CASES) + 4 * len(LIMITED)
    for name in LIMITED:
        for phrase in found[name].program.phrases:
            three = found[f"{name}, without phrase {phrase.number}"]
            assert three.feasible
            assert set(three.program.phrases) == set(found[name].program.phrases) - {phrase}
            assert viterbi(three.values, name, phrase) != [phrase.tags]


def test_brute_force_viterbi_finds_the_wanted_tags_of_every_solution_and_their_lead(found):
    for solution in (certificate for certificate in found.values() if certificate.feasible):
        name = solution.program.name
        assert all(type(value) is int for value in solution.values.values())
        for phrase in solution.program.phrases:
            assert viterbi(solution.values, name, phrase) == [phrase.tags]
            totals = [score(solution.values, name, phrase, tags) for tags in sequences(name, phrase)]
            lead, row = solution.nearest(phrase)
            assert lead == max(totals) - sorted(totals)[-2]
            assert lead == max(totals) - score(solution.values, name, phrase, row.rival)


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_each_inequality_is_the_difference_of_two_scores_and_none_is_missing(program):
    weights, name = draw(np.random.default_rng(0), program), program.name
    wanted = [(phrase, tags) for phrase in program.phrases for tags in sequences(name, phrase)]
    asked = [(row.phrase, row.rival) for row in program.inequalities]
    assert asked == [(phrase, tags) for phrase, tags in wanted if tags != phrase.tags]
    for row in program.inequalities:
        scores = [score(weights, name, row.phrase, tags) for tags in (row.phrase.tags, row.rival)]
        assert row.difference(weights) == scores[0] - scores[1]


@pytest.mark.parametrize("name", LIMITED)
def test_random_separable_scores_always_sum_to_0_and_never_get_4_of_4(found, name):
    rng, program = np.random.default_rng(1), found[name].program
    joint_sums = []
    for _ in range(20):
        weights = draw(rng, program)
        sums = {
            joint: sum(
                times * (score(weights, name, row.phrase, row.phrase.tags, joint))
                - times * (score(weights, name, row.phrase, row.rival, joint))
                for times, row in found[name].used()
            )
            for joint in (False, True)
        }
        assert sums[False] == 0
        joint_sums.append(sums[True])
        assert sum(viterbi(weights, name, phrase) == [phrase.tags] for phrase in program.phrases) < 4
    assert np.count_nonzero(joint_sums) > 10


def test_well_formed_is_the_regular_expression_of_mentions():
    for tags in (tags for length in range(1, 6) for tags in product("OSBIE", repeat=length)):
        assert well_formed(tags) == bool(re.fullmatch("(O|S|BI*E)*", "".join(tags)))


def test_a_contradiction_written_by_hand_needs_no_solver(monkeypatch):
    monkeypatch.delattr("scipy.optimize.linprog")
    program = programs()[0]
    multipliers = tuple(
        7 * ({row.phrase.tags, row.rival} == {("I",), ("O",)}) for row in program.inequalities
    )
    assert [times for times, _ in Contradiction(program, multipliers).used()] == [7, 7, 7, 7]


def test_each_wrong_multiplier_is_refused(limit):
    program, good = limit.program, limit.multipliers
    for index in range(16):
        with pytest.raises(ValueError, match="must occur equally often on both sides"):
            Contradiction(program, (*good[:index], good[index] + 1, *good[index + 1 :]))
    with pytest.raises(ValueError, match="one token, softmax: expected 16 multipliers, got 15"):
        Contradiction(program, good[1:])
    with pytest.raises(ValueError, match="must be >= 0 and not all 0, got 0 to 0"):
        Contradiction(program, (0,) * 16)
    with pytest.raises(ValueError, match="must be >= 0 and not all 0, got -1 to 0"):
        Contradiction(program, tuple(-multiplier for multiplier in good))


def test_each_changed_inequality_is_refused(limit):
    for _, row in limit.used():
        for term in row.terms:
            changed = replace(row, terms={**row.terms, term: row.terms[term] + 1})
            rows = tuple(changed if other is row else other for other in limit.program.inequalities)
            with pytest.raises(ValueError, match=rf"{re.escape(term)} must .*, got \d on the left and \d on"):
                Contradiction(replace(limit.program, inequalities=rows), limit.multipliers)


def test_a_solution_that_breaks_an_inequality_is_refused(found):
    good = found["B I E or O O O, CRF"]
    for term, value in good.values.items():
        with pytest.raises(ValueError, match="must win by more than 0, got -"):
            Solution(good.program, {**good.values, term: -100 * value})
    with pytest.raises(
        ValueError, match="O O O, CRF: phrase 1 against O O O: must win by more than 0, got 0"
    ):
        Solution(good.program, {})
