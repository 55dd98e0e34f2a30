"""Theorem 1 of Das et al. (2022): every form against a plain twin, hand numbers, and what a given time buys."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.tdcd.drift import drift_growth
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.theory.registry import load

THEOREM = load("tdcd/theorem-1")
HAND = dict(eta=0.01, Q=5, R=100, Delta=1.0, Deltainf=1.5, L=2.0, Lmax=1.0, S=0.5, SK=0.2)


def value(form, **constants):
    return float(evaluate(THEOREM, constants, form=form).value)


def twin(form, L, Lmax, Delta, Deltainf, S, SK, Q, R, eta):
    """The bound and the conditions' sides, typed from the paper's displays with plain floats."""
    if form in ("printed", "repaired", "repaired:B0inf", "repaired:all-iterations", "sharp:B19", "sharp:Bind"):
        front = 64 / 19 if form == "sharp:B19" else 4
        noise = front * eta * L * Q * (SK if form == "sharp:Bind" else S)
        noise += front * (4 * eta**2 * Q**2 * Lmax**2 + 8 * eta**3 * Q**3 * L * Lmax**2) * S
        gap = Deltainf if form == "repaired:B0inf" else Delta
        return front * gap / (eta * Q * R) + noise, [(eta, 1 / (8 * Q * max(L, Lmax)))]
    if form == "sharp:B3":
        growth = sum(((1 + eta * Lmax) ** s - 1) ** 2 for s in range(int(Q)))
        n = eta**2 * L * Q**2 + eta / 2 * (1 + 2 * eta * L * Q) * growth
    else:
        factor = 2 if form == "sharp:B1" else ((1 + 2 / Q) ** Q - 3) / 4
        n = eta**2 * L * Q**2 + eta**3 * factor * Q**2 * (1 + Q) * (1 + 2 * eta * L * Q) * Lmax**2
    c = 1 - 2 * n / (eta * Q)
    cap = [] if form == "sharp:B3" else [(eta, 1 / (2 * Q * Lmax))]
    return (Delta / R + n * S) / (eta * Q / 2 * c), [*cap, (1 - c, 1.0)]


@pytest.mark.parametrize("form", [f.name for f in THEOREM.forms])
def test_each_form_equals_its_twin_term_for_term_and_cap_for_cap(form):
    rng = np.random.default_rng(1)
    for _ in range(20):
        L, Lmax, Delta, S = np.exp(rng.normal(size=4))
        Q, R = int(rng.integers(1, 9)), int(rng.integers(1, 50))
        eta = rng.uniform(0.1, 1) / (8 * Q * max(L, Lmax))
        constants = dict(L=L, Lmax=Lmax, Delta=Delta, Deltainf=1.7 * Delta, S=S, SK=S / 3, Q=Q, R=R, eta=eta)
        evaluation = evaluate(THEOREM, constants, form=form)
        bound, sides = twin(form, **constants)
        assert float(evaluation.value) == pytest.approx(bound, rel=1e-12)
        assert [(float(c.left), float(c.right)) for c in evaluation.conditions] == [
            pytest.approx(pair, rel=1e-11) for pair in sides
        ]
        assert evaluation.valid
        without_noise = evaluate(THEOREM, {**constants, "S": 0, "SK": 0}, form=form)
        assert float(evaluation.terms["initial gap"]) == pytest.approx(float(without_noise.value), rel=1e-14)


def test_the_hand_example_is_one_point_zero_two_four():
    evaluation = evaluate(THEOREM, HAND, form="repaired")
    assert float(evaluation.value) == pytest.approx(1.024, rel=1e-14)
    assert float(evaluation.terms["initial gap"]) == pytest.approx(0.8, rel=1e-14)
    assert float(evaluation.conditions[0].admissible) == pytest.approx(0.0125, rel=1e-14)


@pytest.mark.parametrize(("R", "bound"), [(400, 0.6723541803348254), (10000, 0.11913020685341348)])
@pytest.mark.parametrize("Q", [1, 7])
def test_remark_5_s_step_size_gives_the_golden_bound_whatever_the_local_steps(R, bound, Q):
    Delta, L, Lmax, S = 2.0, 1.5, 1.2, 0.7
    eta = math.sqrt(Delta / (L * S)) / (Q * math.sqrt(R))
    got = value("repaired", L=L, Lmax=Lmax, Delta=Delta, S=S, Q=Q, R=R, eta=eta)
    assert got == pytest.approx(bound, rel=1e-13)


@pytest.mark.parametrize("x", [1e-300, 1e-12, 1e-6, 1e-3, 0.0099, 0.0101, 0.13, 0.7, 3.0, 40.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 100])
def test_the_drift_sum_keeps_its_digits_at_every_step_size(x, steps):
    with mpmath.workdps(60):
        exact = mpmath.fsum(((1 + mpmath.mpf(x)) ** s - 1) ** 2 for s in range(steps))
        # below the smallest normal number there are no digits to keep
        assert float(abs(mpmath.mpf(float(drift_growth(x, steps))) - exact)) <= 1e-13 * float(exact) + 1e-307


def test_the_drift_sum_broadcasts_and_overflows_to_infinity():
    x, steps = np.array([[1e-9], [0.5], [1e200]]), np.array([1, 4, 1000])
    table = drift_growth(x, steps)
    assert table.shape == (3, 3) and np.all(table[:, 0] == 0)
    assert table[1, 1] == pytest.approx(0.25 + 1.25**2 + 2.375**2, rel=1e-15)
    assert table[2, 2] == np.inf


def test_no_local_drift_with_one_local_step_in_the_two_forms_that_count_it_exactly():
    one_step = {**HAND, "Q": 1}
    for form in ("sharp:B2", "sharp:B3"):
        assert float(evaluate(THEOREM, one_step, form=form).terms["local drift"]) == 0
    assert float(evaluate(THEOREM, one_step, form="sharp:B1").terms["local drift"]) > 0


def test_a_step_size_that_leaves_no_descent_is_reported():
    evaluation = evaluate(THEOREM, {**HAND, "eta": 0.1})
    assert not evaluation.valid
    (condition,) = evaluation.conditions
    assert float(condition.left) > float(condition.right) == 1
    first_bad = evaluate(THEOREM, HAND | dict(Q=1, eta=0.25))  # 2 eta L = 1 exactly: nothing left
    assert not first_bad.valid and evaluate(THEOREM, HAND | dict(Q=1, eta=0.2499)).valid


def test_the_forms_without_rounding_go_on_beyond_the_cap_of_the_theorem():
    for beyond, cheap in ((0.99, True), (1.3, False), (1.7, False)):
        at = HAND | dict(eta=beyond / (8 * 5 * 2))
        assert [evaluate(THEOREM, at, form=form).valid for form in ("sharp:B1", "sharp:B2", "sharp:B3")] == [True] * 3
        assert evaluate(THEOREM, at, form="repaired").valid == cheap


def test_without_what_f_fell_by_the_gap_stands_in_for_it():
    known = {name: number for name, number in HAND.items() if name != "Delta"}
    assert value("repaired", **known) == value("repaired:B0inf", **HAND) > value("repaired", **HAND)


def test_the_noise_of_every_silo_and_its_clients_make_both_sums():
    c = {k: v for k, v in HAND.items() if k not in ("S", "SK")} | dict(sigma=[0.5, 0.3, 0.2], K=[2, 5, 1])
    got = evaluate(THEOREM, c, form="sharp:Bind").constants
    assert float(got["S"].value) == pytest.approx(0.38, rel=1e-14)
    assert float(got["SK"].value) == pytest.approx(0.125 + 0.018 + 0.04, rel=1e-14)
    with pytest.raises(FedboundsError, match="S"):
        evaluate(THEOREM, c | dict(S=1), form="repaired")


def test_the_order_of_the_family_holds_for_a_gap_that_is_not_negative_and_fails_for_one_that_is():
    """B19 and B0 at the largest step size, by the twin, which takes any gap: 64/19 of a negative number is less."""
    c = dict(L=1.0, Lmax=1.0, Deltainf=1.0, S=0.01, SK=0.01, Q=2, R=10, eta=1 / 16)
    for Delta, ordered in ((0.5, True), (0.0, True), (-0.5, False)):
        found = {form: twin(form, Delta=Delta, **c)[0] for form in ("sharp:B19", "repaired", "sharp:B1")}
        assert (found["sharp:B19"] <= found["repaired"]) == (found["sharp:B1"] <= found["repaired"]) == ordered
    with pytest.raises(FedboundsError, match="outside its domain"):
        evaluate(THEOREM, c | dict(Delta=-0.5))


def test_the_whole_family_is_ordered_under_the_cap():
    rng, family = np.random.default_rng(3), ("sharp:B3", "sharp:B2", "sharp:B1", "repaired", "repaired:B0inf")
    for _ in range(300):
        L, Lmax, Delta, S = np.exp(rng.normal(size=4))
        Q, R = int(rng.integers(1, 40)), int(rng.integers(1, 500))
        c = dict(L=L, Lmax=Lmax, Delta=Delta, Deltainf=Delta * rng.uniform(1, 2), S=S, SK=S * rng.uniform(), Q=Q, R=R)
        c["eta"] = rng.uniform(0.01, 1) / (8 * Q * max(L, Lmax))
        found = [value(form, **c) for form in family]
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(found))
        assert max(value("sharp:Bind", **c), value("sharp:B19", **c)) <= found[3]


def test_remark_5_has_its_golden_bounds_from_the_rounds_that_it_needs_on():
    remark = load("tdcd/remark-5")
    c = dict(Deltainf=2.0, L=1.5, Lmax=1.2, S=0.7, Q=3)
    for R, bound in ((400, 0.6723541803348254), (10000, 0.11913020685341348)):
        best = evaluate(remark, c | dict(R=R), form="explicit:best-c")
        given = evaluate(remark, c | dict(R=R, c=1.3801311186847085), form="explicit")
        assert float(best.value) == pytest.approx(bound, rel=1e-13)
        assert float(given.value) == pytest.approx(bound, rel=1e-13)
        assert float(given.prescribed["eta"]) == pytest.approx(1.3801311186847085 / (3 * math.sqrt(R)), rel=1e-13)
    few = evaluate(remark, c | dict(R=274, c=1.3801311186847085), form="explicit", strict=False)
    assert not few.valid and float(few.conditions[0].admissible) == pytest.approx(274.2857142857143, rel=1e-12)
    assert evaluate(remark, c | dict(R=275), form="explicit:best-c").valid


# --- In a given time ------------------------------------------------------------------------------------------------

SLOW = dict(L=1, Lmax=0.1, Deltainf=1, S=1, tcomm=1, tcomp=1e-4, W=1e3)
NETWORK = dict(L=1, Lmax=1, Deltainf=1, S=1, tcomm=100, tcomp=1, W=10**6)


@pytest.mark.parametrize(("Q", "bound"), [(1, 12.04), (10, 1.244), (100, 0.2016)])
def test_at_a_small_step_size_more_local_steps_buy_more_in_a_given_time(Q, bound):
    got = evaluate(load("tdcd/wall-clock"), NETWORK | dict(Q=Q, eta=1e-4), form="repaired")
    assert float(got.value) == pytest.approx(bound, rel=4e-4)
    same = NETWORK | dict(Q=Q, eta=1e-4, R=10**6 // (300 + Q))
    assert float(got.value) == pytest.approx(float(evaluate(THEOREM, same, form="repaired").value), rel=1e-13)


@pytest.mark.parametrize(("Q", "bound"), [(1, 0.14345), (10, 0.14565), (100, 0.16616)])
def test_at_the_best_step_size_for_each_of_them_one_local_step_is_best_in_time(Q, bound):
    best = optimize("tdcd/wall-clock", NETWORK | dict(Q=Q), ["eta"], form="repaired")
    assert best.value == pytest.approx(bound, rel=2e-4)  # whole rounds
    assert best.at["eta"] * Q < 1 / 8


@pytest.mark.parametrize("form", ["repaired", "sharp:B3"])
def test_the_command_answers_with_many_steps_at_a_given_step_size_and_with_one_at_the_best(form):
    given = optimize("tdcd/wall-clock", NETWORK | dict(eta=1e-4), ["Q"], form=form)
    assert given.at["Q"] == 164  # near sqrt(3 Delta tcomm/(eta^2 L S W)) = 173
    best = optimize("tdcd/wall-clock", NETWORK, ["Q", "eta"], form=form)
    assert best.at["Q"] == 1 and best.value < given.value


@pytest.mark.parametrize(
    ("result", "constants"),
    [
        ("theorem-1", dict(L=2, Lmax=1, Deltainf=1, S=0.5, R=1000)),
        ("wall-clock", SLOW),
        ("wall-clock", SLOW | dict(L=5)),
    ],
)
def test_where_the_bound_hardly_sees_more_than_the_product_one_local_step_is_found_to_be_best(result, constants):
    best = optimize(f"tdcd/{result}", constants, ["Q", "eta"])
    assert best.at["Q"] == 1
    assert best.value == pytest.approx(optimize(f"tdcd/{result}", constants | dict(Q=1), ["eta"]).value, rel=1e-9)


def test_a_time_in_which_no_round_fits_bounds_nothing():
    got = evaluate(load("tdcd/wall-clock"), NETWORK | dict(W=300, Q=1, eta=1e-4), strict=False)
    assert not got.valid and float(got.value) == math.inf
