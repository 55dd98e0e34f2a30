"""What is given must agree with what can be derived from the rest, for every derived constant of every paper."""

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.resolution import resolve
from fedbounds.bounds.theory.registry import PAPERS, load, paper

FORMS = [(result, form) for name in PAPERS for result in paper(name).results for form in result.forms]
RULES = {  # forms with the same rules are one case
    (result.paper, rule.name, rule.inputs, id(form.derived)): (result, form, rule)
    for result, form in FORMS
    for rule in form.derived
    if rule.free is not True
}
NAMES = [f"{result.key}[{form.name}] {rule.name} of {' '.join(rule.inputs)}" for result, form, rule in RULES.values()]
CHOICES = {  # another value is another choice, not a contradiction
    ("arbitrary-participation", "P"): "the interval that makes a bound small; any other is as legal",
    ("fedau", "K"): "in the explicit Corollary 4: weights of any cut-off, whose error W then follows from K",
    ("fed-norm-sgda", "a1"): "coefficients of any local optimizer; local SGDA with momentum is the default",
    ("fed-norm-sgda", "a2"): "coefficients of any local optimizer; local SGDA with momentum is the default",
    ("fed-norm-sgda", "alast"): "coefficients of any local optimizer; local SGDA with momentum is the default",
    ("fed-norm-sgda", "amax"): "coefficients of any local optimizer; local SGDA with momentum is the default",
    ("fed-norm-sgda", "taueff"): "the server may scale its step by any number",
}
VALUES = {  # an instance of every symbol that something follows from
    "p": [0.2, 0.3, 0.5], "omega": [1.0, 2.0, 1.5], "varphi": [0.2, 0.3, 0.5], "qbar": [0.2, 0.3, 0.5],
    "alphatilde": [3 / 1.55, 6 / 1.55, 4.5 / 1.55], "w": [0.3, 0.3, 0.4], "tau": [1.0, 4.0, 2.0], "a1": [1.0, 4.0, 2.0],
    "a2": [1.0, 3.0, 2.0], "alast": [1.0, 0.9, 1.0], "amax": [1.0, 1.2, 1.0], "K": 11, "T": 100, "N": 3, "n": 3, "S": 2,
    "P": 2, "R": 3.5, "Q": 4.0, "Wmax": 0.01, "kappa": 3.0, "Lf": 2.0, "mu": 0.5, "delta": 0.7, "eta": 0.2,
    "rho": 0.5, "taueff": 2.0, "gammax": 0.1, "gammay": 0.2, "betaL": 0.3, "upsilon": 0.4, "d": 0.6, "F": 2.0, "L": 1.5,
    "I": 5, "sigma": [1.0, 2.0, 0.5], "Deltainf": 2.0, "squares": [1.0, 2.0, 0.5],
    "W": 30.0, "tcomm": 1.0, "tcomp": 0.5,
}  # fmt: skip
PER_SILO = {"K": [3, 1, 2]}  # where the symbol has one number for each


def followed(result, form, rule):
    """The inputs of a rule, and what follows from them."""
    values = {name: VALUES | PER_SILO if result.notation[name].shape else VALUES for name in rule.inputs}
    inputs = {name: values[name][name] for name in rule.inputs}
    found = resolve(compiled_form(result, form), inputs, needed=frozenset({rule.name}))[rule.name]
    return inputs, np.asarray(found.value, dtype=float)


@pytest.mark.parametrize("case", RULES.values(), ids=NAMES)
def test_a_given_constant_must_agree_with_what_follows_from_the_others(case):
    result, form, rule = case
    inputs, right = followed(result, form, rule)
    whole = result.notation[rule.name].domain.integer
    beside = {"below": right - 1 if whole and np.all(right > 1) else right / 2, "above": right + 1}
    for name, value in beside.items():
        given = inputs | {rule.name: value}
        if (name, rule.free) in (("above", "upwards"), ("below", "downwards")):
            resolve(compiled_form(result, form), given, needed=frozenset())
        elif result.notation[rule.name].domain.contains(value).all():
            with pytest.raises(FedboundsError, match=r"= .* (conflicts with|is below|is above) .* computed"):
                resolve(compiled_form(result, form), given, needed=frozenset())
    assert any(result.notation[rule.name].domain.contains(value).all() for value in beside.values())
    resolve(compiled_form(result, form), inputs | {rule.name: right}, needed=frozenset())


def test_every_default_that_may_be_replaced_by_anything_is_a_choice_with_a_reason():
    free = {(result.paper, rule.name) for result, form in FORMS for rule in form.derived if rule.free is True}
    assert free == CHOICES.keys()


def test_what_is_two_derivations_away_is_compared_as_well():
    """R follows from p, K from R and T, and Q from p, K and T: no input of Q but p and T is given."""
    corollary = load("fedau/corollary-4")
    c = dict(F=1, I=1, L=1, G=1, sigma=0.1, delta=0.1, T=1000, p=[0.2, 0.5])
    with pytest.raises(FedboundsError, match=r"Q = 3 is below 89\.6, computed from p, K, T"):
        evaluate(corollary, c | dict(Q=3), form="explicit")
    assert evaluate(corollary, c | dict(Q=90), form="explicit").valid


def test_what_takes_too_long_to_derive_may_be_given():
    c = dict(F=1, I=1, L=1, G=1, sigma=0.1, delta=0.1, T=1e9, p=[1e-6, 0.5], K=1e6, gamma=1e-15, eta=1)
    theorem = load("fedau/theorem-2")
    with pytest.raises(FedboundsError, match="give W"):
        evaluate(theorem, c)
    assert evaluate(theorem, c | dict(W=0.2, Qmean=5)).valid


@pytest.mark.parametrize(
    ("key", "form", "steps"),
    [
        ("fedau/corollary-4", "explicit", "gamma eta"),
        ("arbitrary-participation/corollary-3.2", "explicit", "gamma eta"),
    ],
)
def test_a_step_size_that_the_result_does_not_prescribe_is_no_guarantee(key, form, steps):
    c = dict(F=1, I=1, L=1, sigma=0.1, T=1000)
    c |= dict(G=1, delta=0.1, p=[0.2, 0.5]) if "fedau" in key else dict(P=2, rho=0.5, nu=0.1, beta=0.1, delta=0.1)
    there = evaluate(load(key), c, form=form, assume=["all"])
    assert there.guarantee
    prescribed = {name: float(there.prescribed[name]) for name in steps.split()}
    assert evaluate(load(key), c | prescribed, form=form, assume=["all"]).guarantee
    for name in steps.split():
        other = evaluate(load(key), c | {name: 1.01 * prescribed[name]}, form=form, assume=["all"])
        assert not other.guarantee and "the result prescribes" in other.why_not[0]


VECTORS = {
    ("fedau", "varphi"), ("arbitrary-participation", "qbar"), ("fed-norm-sgda", "w"), ("fed-norm-sgda", "p"),
}  # fmt: skip


def test_weights_that_must_sum_to_one_are_refused_everywhere_if_they_do_not():
    assert {(n, q.name) for n in PAPERS for q in paper(n).results[0].notation.values() if q.total} == VECTORS
    for result, form in FORMS:
        for paper_name, name in VECTORS:
            if result.paper == paper_name:
                with pytest.raises(FedboundsError, match=rf"{name} sums to 0\.7, not to 1"):
                    resolve(compiled_form(result, form), {name: [0.5, 0.2]}, needed=frozenset())
