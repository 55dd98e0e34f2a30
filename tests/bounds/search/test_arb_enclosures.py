"""What the search for rounds calls proved is confirmed in fractions or in balls, and nothing that is wrong."""

import flint
import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION
from fedbounds.bounds.search import arb_enclosures as balls
from fedbounds.bounds.search.partial_evaluation import leave_free
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form, Result, Source, Term

T = NOTATION["T"].symbol
KNOWN = dict(L=1, F=5, I=2, P=2, nu=2, beta=0.5)


def made(expression, *conditions):
    """A result with one term, for bounds that no paper has."""
    form = Form("explicit", (Term("made", expression),), conditions)
    source = Source("none", "none")
    return Result("made/up", "remark", "made up", source, LEAST_GRADIENT, NOTATION, (form,), "explicit")


@pytest.fixture(params=["in fractions", "in balls"])
def arithmetic(request, monkeypatch):
    """One of the two, by itself."""
    if request.param == "in balls":
        monkeypatch.setattr(balls, "IN_FRACTIONS", 0)
    else:
        monkeypatch.setattr(balls, "available", lambda: False)


def test_what_is_rational_is_confirmed_in_fractions_or_in_balls(arithmetic):
    """The last rounds that are excluded, and the first that are not, are neighbors: the last bit decides."""
    theorem = load("arbitrary-participation/theorem-3.1")
    known = {k: v for k, v in KNOWN.items() if k != "S"} | dict(gamma=1e-3, eta=20, rho=0.7, sigma=1, delta=0.01)
    found = rounds(theorem, 0.5, known, form="explicit")
    assert found.proved
    value = float(evaluate(theorem, known | {"T": found.rounds}, form="explicit").value)
    assert rounds(theorem, value, known, form="explicit").rounds == found.rounds
    below = rounds(theorem, value * (1 - 1e-11), known, form="explicit")
    assert below.proved and below.rounds > found.rounds


def test_a_wrong_exclusion_is_not_confirmed(arithmetic):
    partial = leave_free(compiled_form(made(1 / T), made(1 / T).form()), {}, ["T"], symbolic=True)
    assert balls.confirm(partial, 0.01, [(1, 60), (61, 99)], 100)
    assert not balls.confirm(partial, 0.01, [(1, 60), (61, 100)], 101)  # 100 reaches
    assert not balls.confirm(partial, 0.01, [(1, 99)], 99)
    assert not balls.confirm(partial, 0.01, [(1, 60), (61, 99)], 100, operations=1)


def test_fractions_and_balls_agree_on_what_rational_trees_enclose(monkeypatch):
    """Random sums, products, powers, maxima and whole parts over intervals with any signs, or without an end."""
    rng = np.random.default_rng(0)
    x, y = sp.symbols("x y", real=True)
    makers = (sp.Add, sp.Mul, sp.Max, sp.Min, lambda a, b: a ** int(rng.integers(-3, 4)), lambda a, b: sp.floor(a + b))
    compared = 0
    for _ in range(300):
        parts = [x, y, sp.Rational(int(rng.integers(-9, 9)), 7), sp.Float(0.1)]
        while len(parts) < 10:
            made_of = makers[rng.integers(len(makers))](*(parts[k] for k in rng.integers(0, len(parts), 2)))
            parts += [] if made_of.has(sp.zoo, sp.nan, sp.oo) else [made_of]
        ends = np.sort(np.where(rng.random((2, 2)) < 0.1, np.inf, rng.normal(size=(2, 2)).round(int(rng.integers(3)))))
        if not parts[-1].free_symbols:
            continue
        ranges = {"x": tuple(ends[0].tolist()), "y": tuple(ends[1].tolist())}
        in_balls = balls.arb_enclosure(parts[-1], ranges)
        token = balls._FRACTIONS.set(True)
        exact = balls.arb_enclosure(parts[-1], ranges)
        balls._FRACTIONS.reset(token)
        for one, other in zip(exact, in_balls, strict=True):
            if isinstance(one, float) or isinstance(other, float):
                assert float(one) == float(other), (parts[-1], ranges)
            else:
                with flint.ctx.workprec(4 * balls.BITS):
                    assert other.overlaps(flint.arb(flint.fmpq(one.numerator, one.denominator))), (parts[-1], ranges)
                compared += 1
    assert compared > 200


def test_fractions_that_grow_long_are_left_to_balls(monkeypatch):
    gamma, sigma = NOTATION["gamma"].symbol, NOTATION["sigma"].symbol
    nested = ((sigma**64 + gamma / T) ** 64 + gamma / T) ** 64
    assert rounds(made(nested), 2.0, dict(sigma=0.9, gamma=0.1)).proved
    monkeypatch.setattr(balls, "available", lambda: False)
    assert not rounds(made(nested), 2.0, dict(sigma=0.9, gamma=0.1)).proved
