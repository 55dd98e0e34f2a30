"""Limit checker: special cases are decided exactly, and false ones are refuted with numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from sympy import Integer, Rational, sqrt

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.limit_checker import CHECKER, Limit, _slack, verify
from fedbounds.bounds.audit.spreads import (
    MEAN_SQUARE,
    SQUARED_MEAN,
    VARIANCE,
    Group,
    mean_identity,
    norm2,
    records,
    weighted_sum,
)
from fedbounds.bounds.papers.arbitrary_participation.limits import LIMITS
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.results import HALF
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as FIFTH
from fedbounds.bounds.theory.client_reductions import MaxOverClients, SumOverClients
from fedbounds.bounds.theory.result import Term

PAPER = "arbitrary-participation"
BY_NAME = {limit.name: limit for limit in LIMITS}


def verdict(limit):
    claim = limit.claim(PAPER)
    assert CHECKER.applies_to(claim, ClaimSet(claim.paper, {}, ()))
    return verify(claim, ClaimSet(PAPER, {claim.id: claim}, (CHECKER,)))


def test_sums_over_clients_that_differ_are_refuted_with_numbers():
    w = FIFTH.w
    for left, right, outcome in (
        (SumOverClients(2 * w), 2 * SumOverClients(w), "survived"),
        (SumOverClients(w**2), SumOverClients(w) ** 2, "refuted"),
        (MaxOverClients(w), SumOverClients(w), "refuted"),
    ):
        found = verdict(Limit("sums", "two sums", (Term("left", left),), (Term("right", right),)))
        assert found.outcome == outcome, found


def test_no_two_limits_share_a_name():
    assert len(BY_NAME) == len(LIMITS)


@pytest.mark.parametrize("limit", LIMITS, ids=BY_NAME)
def test_every_special_case_of_the_first_paper_is_proved(limit):
    found = verdict(limit)
    assert found.outcome == "proved", found


def scaled(terms, name, factor):
    return tuple(Term(t.name, t.expression * factor) if t.name == name else t for t in terms)


EQUALITIES = [
    limit
    for limit in LIMITS
    if isinstance(limit, Limit) and limit.op == "==" and any(t.expression != 0 for t in limit.sides()[0])
]


@pytest.mark.parametrize("limit", EQUALITIES, ids=[limit.name for limit in EQUALITIES])
def test_a_constant_that_is_ten_percent_off_breaks_every_equality(limit):
    for term in limit.sides()[0]:
        if term.expression != 0:
            found = verdict(replace(limit, left=scaled(limit.left, term.name, Rational(11, 10))))
            assert found.outcome == "refuted", term.name
            assert "against" in found.evidence


def test_something_that_should_vanish_and_does_not_is_refuted():
    limit = BY_NAME["lemma-c.1-one-client"]
    assert verdict(replace(limit, at={n.nu: Integer(0)})).outcome == "refuted"
    sampling = BY_NAME["sampling-everyone"]
    assert verdict(replace(sampling, at={n.S: n.N / 2})).outcome == "refuted"


FALSE_ORDERS = {
    "the gap of sharp:worst forty percent less": ("sharp-below-its-worst-case", "initial gap", Rational(3, 5)),
    "the cohort divergence of sharp:worst ten percent less": (
        "sharp-below-its-worst-case",
        "cohort divergence",
        Rational(9, 10),
    ),
    "the participation divergence of sharp:worst one percent less": (
        "sharp-below-its-worst-case",
        "participation divergence",
        Rational(99, 100),
    ),
    "the printed theorem times 100": ("printed-theorem-order", "participation divergence", Rational(100, 144)),
    "the long-run variance halved": ("window-variance-below-long-run", "bound", Rational(1, 2)),
    "Cauchy-Schwarz with 130 for 128": ("corollary-3.2-best-scale", "bound", Rational(128, 130)),
}


@pytest.mark.parametrize("case", FALSE_ORDERS.values(), ids=FALSE_ORDERS)
def test_a_right_side_that_is_too_small_is_refuted_at_exact_numbers(case):
    name, term, factor = case
    limit = BY_NAME[name]
    found = verdict(replace(limit, right=scaled(limit.right, term, factor)))
    assert found.outcome == "refuted"
    assert found.evidence.startswith("false at")


def test_a_flipped_inequality_is_refuted():
    limit = BY_NAME["initial-gap-below-explicit"]
    assert verdict(replace(limit, left=limit.right, right=limit.left)).outcome == "refuted"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("sharp-below-explicit", (HALF,)),
        ("sharp-below-any-interval", ()),
        ("lemma-c.2-sharp", (Relation(n.rho, Integer(1)),)),
        ("printed-corollary-4.8-order", ()),
        ("corollary-3.2-second-branch-noise", ()),
        ("median-deviation-below-mean-deviation", ()),
    ],
)
def test_an_inequality_needs_its_premises(name, kept):
    assert verdict(replace(BY_NAME[name], facts=kept)).outcome != "proved"


def test_an_inequality_that_nobody_can_decide_survives_with_the_smallest_error_it_would_have_caught():
    """The prover knows no irrational coefficients, so that the arithmetic and geometric mean stay undecided."""
    left, right = 8 * sqrt(2) * n.sigma, 8 / n.s + 4 * n.s * n.sigma**2
    found = verdict(Limit("means", "the best scale", (Term("bound", left),), (Term("bound", right),), "<="))
    assert found.outcome == "survived"
    assert found.evidence.endswith("percent smaller is caught")


def test_a_factor_that_may_vanish_is_not_divided_out():
    assert _slack(n.nu, n.beta) == n.beta - n.nu
    assert _slack(3 * n.nu, 2 * n.beta * n.nu / n.gamma) == 2 * n.beta * n.nu / n.gamma - 3 * n.nu
    assert _slack(3 * n.nu, 4 * n.gamma * n.nu) == 1 - Rational(3, 4) / n.gamma


def test_a_wrong_limit_of_frozen_gradients_is_refuted():
    limit = BY_NAME["theorem-3.1-frozen-gradients"]
    drift = Term("drift", n.L * n.F)
    assert verdict(replace(limit, right=(*limit.right, drift))).outcome == "refuted"


# --- claims about data ------------------------------------------------------------------------------------------


def unaligned(record, length):
    """The largest squared pull over every window of this length, aligned or not."""
    windows = [record.weights[t : t + length] for t in range(len(record.weights) - length + 1)]
    means = [[sum(column) / Fraction(length) for column in zip(*window, strict=True)] for window in windows]
    return max(norm2(weighted_sum(mean, record.offsets)) for mean in means)


def test_window_divergence_is_not_monotone_where_the_lengths_do_not_divide_each_other():
    limit = BY_NAME["longer-aligned-windows"]
    found = verdict(replace(limit, recomputed=lambda r: (unaligned(r, 3), unaligned(r, 2))))
    assert found.outcome == "refuted"
    assert "weights" in found.evidence and "offsets" in found.evidence


def test_proposition_4_1_over_different_rounds_is_refuted():
    largest = BY_NAME["participation-below-gradient-divergence"].recomputed
    within = BY_NAME["cohort-below-gradient-divergence"].recomputed
    limit = BY_NAME["proposition-4.1-one-round"]
    found = verdict(replace(limit, recomputed=lambda r: (largest(r)[0] + within(r)[0], largest(r)[1])))
    assert found.outcome == "refuted"


def test_equation_15_without_its_factor_N_is_refuted():
    limit = BY_NAME["equation-15"]
    left_right = limit.recomputed
    found = verdict(replace(limit, recomputed=lambda r: (left_right(r)[0], left_right(r)[1] / len(r.offsets))))
    assert found.outcome == "refuted"


def test_a_reading_that_is_not_about_the_statement_leaves_it_unknown():
    limit = BY_NAME["participation-below-gradient-divergence"]
    found = verdict(replace(limit, groups=BY_NAME["window-below-participation"].groups))
    assert found.outcome == "unknown"
    assert "does not fit the reading" in found.evidence


def test_weights_that_are_no_mean_leave_it_unknown():
    limit = BY_NAME["participation-below-gradient-divergence"]
    doubled = [[Fraction(2)], [[Fraction(0)]]]
    found = verdict(replace(limit, groups=lambda r: [Group(*doubled)]))
    assert found.outcome == "unknown"
    assert "are no mean" in found.evidence


def test_a_slack_without_a_sign_only_survives():
    """VARIANCE <= SQUARED_MEAN has no sign, whatever the records say."""
    limit = BY_NAME["participation-below-gradient-divergence"]
    false = replace(
        limit, left=0 * VARIANCE + SQUARED_MEAN, right=2 * VARIANCE + 0 * MEAN_SQUARE, axiom="anything goes",
        recomputed=lambda r: (limit.recomputed(r)[0], 10**6 * (1 + limit.recomputed(r)[1])),
    )  # fmt: skip
    assert verdict(false).outcome == "survived"


def test_the_identity_behind_them_holds_for_numbers_too():
    assert mean_identity()
    for record in records(10):
        weights, offsets = record.weights[0], record.offsets
        pairs = [(i, j) for i in range(len(weights)) for j in range(i)]
        apart = sum(
            (weights[i] * weights[j] * norm2([a - b for a, b in zip(offsets[i], offsets[j], strict=True)]))
            for i, j in pairs
        )
        group = Group(weights, offsets)
        assert group.value(MEAN_SQUARE) - group.value(SQUARED_MEAN) == apart == group.value(VARIANCE)


def test_records_are_participation_records():
    for record in records(40):
        assert all(sum(row) == 1 and min(row) >= 0 for row in record.weights)
        assert all(sum(column) == 0 for column in zip(*record.offsets, strict=True))
    assert any(a != b for record in records(5) for a, b in pairwise(record.weights))


def test_the_claim_changes_with_its_facts():
    limit = BY_NAME["sharp-below-explicit"]
    assert limit.claim(PAPER).hash != replace(limit, facts=()).claim(PAPER).hash
