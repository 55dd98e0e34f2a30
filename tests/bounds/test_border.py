"""What Python callers get wrong is told in one line, and what is plainly meant is understood."""

import numpy as np
import pytest

from fedbounds.bounds.comparison import compare
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation import evaluate
from fedbounds.bounds.optimize import optimize
from fedbounds.bounds.registry import load
from fedbounds.bounds.rounds import rounds
from tests.command_line import run as typed

KEY = "arbitrary-participation/theorem-3.1"
KNOWN = {"L": 1, "F": 5, "I": 2, "P": 2, "T": 800, "rho": 0.5**0.5, "sigma": 1, "nu": 2, "beta": 0.5, "delta": 0}
STEPS = {"gamma": 1e-3, "eta": 2}
FREE = {name: value for name, value in KNOWN.items() if name != "T"} | STEPS


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: evaluate(KEY, KNOWN | STEPS | {"L": [1, 2, 3], "F": [1, 2]}), r"in shape: L has \(3,\), F has \(2,\)"),
        (lambda: evaluate(KEY, None), "constants = None must be a table of letters and values"),
        (lambda: evaluate(KEY, [("L", 1)]), "must be a table of letters and values"),
        (lambda: evaluate(KEY, {1: 2}), "must be a table of letters and values"),
        (lambda: evaluate(KEY, KNOWN | STEPS, 5), "unknown form of .* '5'"),
        (lambda: evaluate(KEY, KNOWN | STEPS, assume="smoth"), "unknown assumption 'smoth'; did you mean smooth"),
        (lambda: evaluate(KEY, KNOWN | STEPS, assume=None), "assume = None must be names"),
        (lambda: evaluate(KEY, KNOWN | STEPS, trust="fedau"), "unknown claim to trust 'fedau'"),
        (lambda: evaluate(None, KNOWN), "result = None must be a result or its key"),
        (lambda: load(None), "key = None must be the key of a result"),
        (lambda: load(3), "key = 3 must be the key of a result"),
        (lambda: optimize(KEY, KNOWN, within={"eta": "1:2"}), "within: eta = '1:2' must be a pair of numbers"),
        (lambda: optimize(KEY, KNOWN, within={"eta": 3}), "within: eta = 3 must be a pair of numbers"),
        (lambda: optimize(KEY, KNOWN, within={"eta": (1, 2, 3)}), "within: eta = .* must be a pair"),
        (lambda: optimize(KEY, KNOWN, within="eta=1:2"), "within = 'eta=1:2' must be a table of ranges"),
        (lambda: optimize(KEY, None), "constants = None"),
        (lambda: optimize(KEY, KNOWN, over=None), "over = None must be names"),
        (lambda: rounds(KEY, 0.1, None), "constants = None"),
        (lambda: rounds(KEY, 0.1, FREE, optimize_over="gama"), "unknown constant .*gama"),
        (lambda: rounds(KEY, 0.1, FREE, optimize_over="eta", within={"eta": "1:2"}), "must be a pair of numbers"),
        (lambda: compare([KEY], ("rounds", [10, 20]), None), "constants = None"),
        (lambda: compare([KEY], ("rounds", [10]), FREE, within={"eta": "1:2"}), "must be a pair of numbers"),
    ],
)
def test_what_is_given_wrongly_from_python_is_one_line(call, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        call()
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


def test_a_bare_name_is_a_list_of_one():
    assert (
        evaluate(KEY, KNOWN | STEPS, assume="all").assumptions
        == evaluate(KEY, KNOWN | STEPS, assume=["all"]).assumptions
    )
    assert evaluate(KEY, KNOWN | STEPS, assume="smooth").assumptions["smooth"] == "assumed"
    assert (
        evaluate(KEY, KNOWN | STEPS, trust=KEY).conditional_on
        == evaluate(KEY, KNOWN | STEPS, trust=[KEY]).conditional_on
    )
    known = KNOWN | {"eta": 2}
    assert optimize(KEY, known, over="gamma").at == optimize(KEY, known, over=["gamma"]).at
    table = compare([KEY], ("rounds", [800]), {n: v for n, v in known.items() if n != "T"}, optimize="gamma")
    assert table.rows[0].values[0] == pytest.approx(optimize(KEY, known, over="gamma").value)


def test_the_form_may_be_the_third_argument():
    assert evaluate(KEY, KNOWN | STEPS, "explicit").form.name == "explicit"
    assert evaluate(KEY, KNOWN | STEPS, "explicit").value == evaluate(KEY, KNOWN | STEPS, form="explicit").value


def test_an_evaluation_prints_as_the_command_does():
    found = evaluate(KEY, KNOWN | STEPS, "explicit")
    words = [f"{name}={value!r}" for name, value in (KNOWN | STEPS).items()]
    assert typed("eval", KEY, "--form", "explicit", *words) == (0, f"{found}\n", "")
    many = evaluate(KEY, KNOWN | STEPS | {"T": np.array([8.0, 80.0, 800.0])}, "explicit")
    lines = str(many).splitlines()
    assert "3 settings: from " in lines[2] and len(lines) < 20 and "verdict: proved" in lines[2]
