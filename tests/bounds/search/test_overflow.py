"""Numbers that leave the range of doubles: computed where their exponents allow it, and no value elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from fedbounds.bounds.comparison.compare import compare
from fedbounds.bounds.display.json_values import json_value
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize import Minimum, optimize
from fedbounds.bounds.search.rounds import Between, Never, rounds
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Condition, Form, Term

THEOREM = load("fedau/theorem-2")
n = THEOREM.notation
KNOWN = dict(L=1e200, F=1e200, I=1, N=10, T=100, gamma=1e-250, eta=1, W=0, Q=1, Qmean=1, delta=1e200, sigma=0, G=0)
LOST = replace(  # gamma^40 L^40 at gamma = 1e-200: beyond long doubles, too
    THEOREM,
    forms=(Form("sharp", (Term("drift", n.gamma**40 * n.L**40), Term("gap", n.F / n.T))),),
    default="sharp",
)
FAR = dict(gamma=1e-200, L=1e200, F=1)


@pytest.mark.parametrize("form", ["explicit", "sharp", "sharp:mean-Q"])
def test_a_factor_of_zero_beside_one_that_overflows_is_zero(form):
    evaluation = evaluate(THEOREM, KNOWN, form=form, assume=["all"])
    assert float(evaluation.terms["weight error"]) == float(evaluation.terms["gradient noise"]) == 0
    assert 8e300 < float(evaluation.terms["local drift"]) <= 120 * 1e300
    assert float(evaluation.value) == np.inf  # F/(gamma T) is 1e448
    assert evaluation.valid and not evaluation.guarantee and any("infinite" in reason for reason in evaluation.why_not)


def test_a_term_whose_factors_underflow_is_not_lost():
    # at the scale s of the steps, L/s and everything else fixed in units of f, the bound is the same number
    near = dict(I=1, N=10, T=100, eta=1, W=0.1, Q=1, Qmean=1, sigma=1, delta=1, G=1)
    one = evaluate(THEOREM, near | {"gamma": 0.01, "L": 1, "F": 1})
    for scale in (1e-170, 1e170):
        far = evaluate(THEOREM, near | {"gamma": 0.01 * scale, "L": 1 / scale, "F": scale})
        for name, term in one.terms.items():
            assert float(far.terms[name]) == pytest.approx(float(term), rel=1e-12), name


def test_what_is_no_number_is_no_guarantee_and_says_so():
    evaluation = evaluate(LOST, FAR | {"T": 10})
    assert np.isnan(evaluation.value) and not evaluation.valid and not evaluation.guarantee
    assert evaluation.why_not[0] == "no value: the numbers overflow"
    text = str(evaluation)
    assert "no value     valid: no     guarantee: no" in text and "- no value: the numbers overflow" in text
    assert "nan" not in text.splitlines()[2]
    assert json_value(evaluation.to_dict())["valid"] is False and json_value(evaluation.to_dict())["value"] == "nan"


def test_settings_without_a_number_are_reported_one_by_one():
    evaluation = evaluate(LOST, {"gamma": [1, 1e-200], "L": [1, 1e200], "F": 1, "T": 10})
    assert evaluation.value[0] == pytest.approx(1.1) and np.isnan(evaluation.value[1])
    assert evaluation.valid.tolist() == [True, False] and not evaluation.guarantee
    assert evaluation.why_not[0] == "no value: the numbers overflow at 1 of 2 settings"


def test_neither_a_comparison_nor_a_search_takes_what_is_no_number():
    table = compare([LOST], ("gamma", [1e-200, 1e-3]), {"L": 1e200, "F": 1, "T": 10})
    assert not table.rows[0].valid[0] and table.best[0] == ""
    assert any("no value: the numbers overflow" in note for note in table.notes)
    answer = rounds(LOST, 0.1, FAR)
    assert isinstance(answer, Never | Between) and "no value: the numbers overflow" in answer.why
    capped = replace(
        LOST.form(), conditions=(Condition(n.gamma, ">=", 1e-200 * n.gamma / n.gamma, "a floor", n.gamma),)
    )
    found = optimize(replace(LOST, forms=(capped,)), {"L": 1e200, "F": 1, "T": 10}, ["gamma"])
    assert not isinstance(found, Minimum) or np.isfinite(found.value)


def test_the_command_prints_no_number_that_is_none():
    from fedbounds.cli.evaluate import evaluate as command

    words = ["fedau/theorem-2", *(f"{name}={value}" for name, value in KNOWN.items()), "--assume", "all"]
    shown = CliRunner().invoke(command, words).output
    assert "guarantee: no" in shown and "nan" not in shown.partition("constants")[0]
