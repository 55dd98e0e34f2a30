"""The proofs of Li et al. (2024): what they show, what they need, and that errors planted in them are noticed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.audit import refutations, steps
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.docket import Docket
from fedbounds.bounds.audit.induction import ByRecursion
from fedbounds.bounds.audit.ledger import committed_verdict, read_ledger, untried
from fedbounds.bounds.audit.mutations import CAUGHT, Bench
from fedbounds.bounds.audit.rule import given
from fedbounds.bounds.audit.steps import Setting, StepOf
from fedbounds.bounds.registry import paper
from fedbounds.empirical.instances.judging import judged_on_instances, of_paper
from fedbounds.empirical.papers.fedmrn.instances.iterations import Iterations

COURTS = (steps.COURT, refutations.COURT)
LEFT_OUT = {  # an assumption or condition of a form without which its proof fails
    "theorem-2[repaired]": ("martingale-noise", "uniform-sampling", "bounded-below", "relative-error", "smooth"),
    "theorem-2[sharp:masks]": ("surely-bounded-gradients", "independent-masks", "signed-masks"),
    "theorem-1[repaired:R1]": ("strongly-convex", "signed-masks-per-round", "quadratic-upper-bound"),
    "theorem-1[sharp]": ("bounded-gradients", "independent-clients", "unbiased-noise"),
}


@cache
def docket():
    return Docket.of("fedmrn", only=COURTS)


@cache
def bench():
    return Bench.of("fedmrn", COURTS)


def test_every_form_is_proved_with_nothing_trusted_or_refuted_as_printed():
    for result in paper("fedmrn").results:
        for form in result.forms:
            assert committed_verdict(result, form) == ("refuted" if form.refuted_by else "proved"), form.name
            assert untried(result, form) == ""


def test_the_printed_forms_that_are_true_are_lemma_4_and_the_rate_of_theorem_2():
    printed = {r.key.partition("/")[2]: r.form("printed") for r in paper("fedmrn").results if r.form("printed")}
    assert {key for key, form in printed.items() if not form.refuted_by} == {"lemma-4", "remark-2-non-convex"}


def test_nothing_that_the_proofs_say_may_hide_an_error():
    assert not [k for k, entry in read_ledger("fedmrn").items() if "may hide" in str(entry) or "vacuous" in str(entry)]


@pytest.mark.parametrize(("form", "needs"), LEFT_OUT.items())
def test_a_theorem_without_one_of_its_assumptions_is_not_proved(form, needs):
    for name in needs:
        assert bench().judged(f"{form}: without {name}").outcome == CAUGHT, name


@pytest.mark.parametrize(
    "planted",
    [
        "theorem-1[repaired:R1]: masking less by 10 percent",
        "theorem-1[sharp:masks]: masking of the upload less by 10 percent",
        "theorem-1[sharp]: eta less by 10 percent",
        "theorem-2[sharp]: client sampling less by 10 percent",
        "theorem-2[explicit:any-amplitude]: masking in local steps less by 10 percent",
        "theorem-2[explicit:any-amplitude]: G*S*eta <= a dropped",
        "theorem-2[explicit:any-step]: eta <= 1/L dropped",
        "theorem-2/29': without S12m",
        "theorem-1/S24: without P3",
        "theorem-1/S23': without P4",
        "lemma-4/19': without S17",
        "proposition-1[repaired]: masking less by 10 percent",
    ],
)
def test_a_planted_error_is_noticed(planted):
    assert bench().judged(planted).outcome == CAUGHT


# --- The induction ----------------------------------------------------------------------------------------------------

x, v, now = sp.Symbol("x", positive=True), sp.Symbol("v", positive=True), sp.Symbol("[now]", nonnegative=True)
after = sp.Symbol("[after]", nonnegative=True)
RULE = ByRecursion(now, after, x, (sp.Integer(4), v / 4))


def found(factor, rest, bound, *facts):
    recursion = Relation(after, factor * now + rest)
    return RULE.check(Relation(now, bound), [recursion, *facts], [], Setting("", {})).holds


def test_a_recursion_carries_a_bound_on_only_if_it_does():
    start = Relation(sp.Integer(4), x)
    assert found(1 - 2 / x, v / x**2, v / x, start)
    assert not found(1 - 2 / x, v / x**2, v / x)  # from nowhere on
    assert not found(1 - 2 / x, 2 * v / x**2, v / x, start)
    assert not found(1 - sp.Rational(1, 2) / x, v / x**2, v / x, start)
    assert not found(1 - 2 / x, v / x**2, v / (2 * x), start)
    assert not found(-sp.S.One, sp.S.Zero, v / x, start)
    assert not found(1 - 2 / x, sp.Symbol("<w,w>", nonnegative=True) / x**2, v / x, start)


# --- What the proofs take from elsewhere ------------------------------------------------------------------------------


def trusted(proof):
    return [
        c
        for c in docket().claims.values()
        if isinstance(c.subject, StepOf) and c.subject.proof.id == f"fedmrn/{proof}" and given(c.subject.step.rule)
    ]


@pytest.mark.parametrize(
    "proof", ["lemma-2", "lemma-3", "lemma-5", "theorem-1-masks", "theorem-2-masks", "proposition-1"]
)
def test_a_step_with_nine_tenths_of_its_right_side_is_refuted_on_instances(proof):
    tried = 0
    for claim in trusted(proof):
        drawn, step = of_paper("fedmrn").drawn_for(claim.subject), claim.subject.step
        if drawn is None or step.conclusion.right == 0 or step.conclusion.left.could_extract_minus_sign():
            continue
        less = replace(step.conclusion, right=sp.Rational(9, 10) * step.conclusion.right)
        changed = replace(claim, subject=StepOf(claim.subject.proof, replace(step, conclusion=less)))
        assert not judged_on_instances(claim).refuted, claim.id
        assert judged_on_instances(changed).refuted, claim.id
        tried += 1
    assert tried >= 2


def one_client(relative, amplitude):
    """h = 2, c = 1, from s = 3, noise +-1, steps 1/4 and 1/8."""
    q = None if relative is None else np.array([float(relative)])
    return Iterations(
        np.array([[[2.0]]]), np.array([[[1.0]]]), np.array([[3.0]]), np.array([[1.0]]), np.array([[0.25, 0.125]]), 1,
        q, np.array([float(amplitude)]),
    )  # fmt: skip


def walked(masks):
    """The same round followed path by path in fractions: the mean of (w, x, v, y) in each product."""
    s, c, h = Fraction(3), Fraction(1), 2
    paths = [(Fraction(1), Fraction(0), {})]
    for step in (Fraction(1, 4), Fraction(1, 8)):
        paths = [
            (p * chance / 2, u - step * (h * (s + hat - c) + noise), {"w": s + u, "x": s + hat})
            for p, u, _ in paths
            for (hat, chance), noise in product(masks(u), (-1, 1))
        ]
    ends = [(p * chance, {**at, "v": s + u, "y": s + hat}) for p, u, at in paths for hat, chance in masks(u)]
    names = ("w", "x", "v", "y")
    return {f"<{a},{b}>": sum(p * at[a] * at[b] for p, at in ends) for a in names for b in names if a <= b}


@pytest.mark.parametrize(
    ("relative", "amplitude", "masks"),
    [
        (Fraction(1, 2), 1, lambda u: [(u / 2, Fraction(1, 2)), (3 * u / 2, Fraction(1, 2))]),
        (None, 16, lambda u: [(Fraction(a), (1 + u / a) / 2) for a in (16, -16)]),
    ],
)
def test_the_enumerated_round_is_that_of_a_walk_over_all_paths(relative, amplitude, masks):
    products = one_client(relative, amplitude).products
    for name, value in walked(masks).items():
        assert float(products[name][0, 0]) == pytest.approx(float(value), rel=1e-13)


def test_signed_masks_have_the_length_of_their_noise_and_the_mean_of_the_update():
    p = one_client(None, 16).products
    error = (p["<w,w>"] - 2 * p["<w,x>"] + p["<x,x>"])[0, 0]
    update = (p["<w,w>"] - 2 * p["<s,w>"] + p["<s,s>"])[0, 0]
    assert error == pytest.approx(16**2 - update, rel=1e-13)
    assert p["<s,x>"][0, 0] == pytest.approx(p["<s,w>"][0, 0], rel=1e-13)
