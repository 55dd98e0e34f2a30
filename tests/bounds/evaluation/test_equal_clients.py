"""One number for a constant of every client: what all clients have alike, where their number is given."""

import numpy as np
import pytest
from click.testing import CliRunner

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.cli.evaluate import evaluate as eval_command

KNOWN = dict(L=1, F=1, I=1, T=1000, sigma=1, delta=1, G=1)
KEY = "fedau/corollary-4"


def test_one_rate_is_every_clients_where_their_number_is_given():
    alike = evaluate(KEY, KNOWN | dict(p=0.1, N=50))
    assert alike.value == evaluate(KEY, KNOWN | dict(p=[0.1] * 50)).value
    assert evaluate(KEY, KNOWN | dict(participation_rates=0.1, clients=50)).value == alike.value
    exact = evaluate(KEY, KNOWN | dict(p=Constant(0.1, "exact", "known"), N=50)).constants["p"]
    assert exact.source == "exact" and np.array_equal(exact.value, np.full(50, 0.1))
    said = CliRunner().invoke(eval_command, [KEY, "p=0.1", "N=50", *(f"{n}={v}" for n, v in KNOWN.items())]).output
    assert f"{float(alike.value):.6g}" in said and "(50 values)" in said


def test_a_comma_is_one_client():
    one = [KEY, "p=0.1,", *(f"{n}={v}" for n, v in KNOWN.items())]
    assert f"<= {float(evaluate(KEY, KNOWN | dict(p=[0.1])).value):.6g}" in CliRunner().invoke(eval_command, one).output
    assert isinstance(CliRunner().invoke(eval_command, [*one, "N=50"]).exception, FedboundsError)


@pytest.mark.parametrize(
    ("constants", "says"),
    [
        (
            dict(p=0.1),
            r"p = 0\.1 is one number; .*give their number too; for a single client: 'p=0\.1,' with a comma at its end",
        ),
        (dict(p=0.1, N=[3, 4]), "p = 0.1 is one number"),
        (dict(p=1.5, N=50), r"p\[0\] = 1.5 is outside"),
        (dict(p=0.1, N=1e15), "needs about"),
        (dict(p=0.1, N=2.5), "N = 2.5 is outside"),
    ],
)
def test_what_is_not_every_clients_is_refused_with_what_would_be_right(constants, says):
    with pytest.raises(FedboundsError, match=says):
        evaluate(KEY, KNOWN | constants)


def test_weights_that_then_do_not_sum_to_one_are_refused():
    known = dict(tau=2, w=0.5, n=4)
    with pytest.raises(FedboundsError, match="w sums to 2, not to 1"):
        evaluate("fed-norm-sgda/theorem-1", known)


def test_where_the_weight_error_is_out_of_reach_the_form_that_needs_none_is_named():
    known = {n: v for n, v in KNOWN.items() if n != "T"} | dict(p=[1e-6, 0.1], T=10**12)
    with pytest.raises(
        FedboundsError, match=r"give W .*, or take a form that needs none, as fedau/corollary-4:repaired"
    ):
        evaluate(KEY, known)
    assert evaluate(KEY, known, form="repaired").valid
