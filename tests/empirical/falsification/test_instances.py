"""The checker of instances: its measurements against independent ones, and what it catches."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from sympy import Integer, Rational

from fedbounds.bounds.audit.claim import Claim, Relation, ResultForm
from fedbounds.bounds.audit.claim_set import paper_claims
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Term
from fedbounds.empirical.falsification.instances.instance_checker import has_instances, judge_on_instances, verdict
from fedbounds.empirical.falsification.instances.sides import Sides, examine
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.instances.claims import draw, form_sides, instance_test, pool
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances, slope, slope_change
from fedbounds.empirical.papers.arbitrary_participation.instances.random_rounds import draw_rounds
from fedbounds.empirical.papers.arbitrary_participation.instances.relations import round_products, window_products
from fedbounds.empirical.papers.arbitrary_participation.instances.windows import (
    FairCoins,
    HeldCoins,
    draw_processes,
    failure_of_all,
    failure_of_average,
)
from fedbounds.empirical.papers.arbitrary_participation.run import trajectory_quantities
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.moments import moments

PAPER = "arbitrary-participation"
REFUTED = {
    "proposition-4.1[printed]",
    "proposition-4.4[printed]",
    "proposition-4.6[printed:probability]",
    "proposition-4.7[printed:probability]",
}


def instances(seed: int, shape: tuple[int, ...] = (4, 3, 3, 2, 7), **kind: bool) -> FedAvgInstances:
    return draw(np.random.default_rng(seed), 12, shape, rippled=kind.get("rippled", False), wide=False)


def quadratic(z: FedAvgInstances, b: int) -> tuple[Quadratic, GeneralizedFedAvg]:
    """The b-th instance as a problem of the library; its noise must be the same in every coordinate."""
    problem = Quadratic(z.curvature[b], -z.slopes[b] / z.curvature[b], float(z.noise[b, 0]), z.start[b])
    return problem, GeneralizedFedAvg(float(z.gamma[b]), z.local_steps, float(z.eta[b]), z.interval)


# --- measurements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("common", [False, True])
def test_the_course_on_quadratics_agrees_with_the_exact_moments_of_the_library(common: bool) -> None:
    z = instances(1)
    z = replace(
        z,
        curvature=np.maximum(z.curvature, 1e-3),
        noise=np.repeat(z.noise[:, :1], 3, axis=1),
        correlation=np.ones((12, 4, 4)) if common else np.repeat(np.eye(4)[None], 12, axis=0),
    )
    for b in range(12):
        problem, algorithm = quadratic(z, b)
        run = moments(algorithm, problem, z.weights[b], noise="common" if common else "independent")
        assert z.course.gradient[b] == pytest.approx(run.gradient_norm_squared, rel=1e-9)
        assert z.course.gap[b] == pytest.approx(run.objective_gap, rel=1e-9)
        if not common:
            along = trajectory_quantities(algorithm, problem, z.weights[b])
            assert z.course.spread[b] == pytest.approx(along.spread, rel=1e-9, abs=1e-25)
            assert z.course.drift[b] == pytest.approx(along.drift, rel=1e-9, abs=1e-25)
            assert z.window[b] == pytest.approx(along.window, rel=1e-9, abs=1e-25)


def test_the_course_on_ripples_agrees_with_one_client_and_one_step_at_a_time() -> None:
    z = instances(2, rippled=True)
    for b in range(len(z)):
        x, gamma = z.start[b].copy(), z.gamma[b]

        def gradient(y: np.ndarray, b: int = b) -> np.ndarray:
            return z.curvature[b] * y + z.ripple[b] * np.sin(y)

        start = x
        for t in range(z.rounds):
            if t % z.interval == 0:
                start = x
            assert z.course.gradient[b, t] == pytest.approx(gradient(x) @ gradient(x), rel=1e-10)
            ends = []
            for client in range(z.clients):
                y = x.copy()
                for _ in range(z.local_steps):
                    y = y - gamma * (gradient(y) + z.slopes[b, client])
                ends.append(y)
            mean = z.weights[b, t] @ np.array(ends)
            apart = z.weights[b, t] @ ((np.array(ends) - mean) ** 2).sum(axis=1)
            assert z.course.spread[b, t, -1] == pytest.approx(apart, rel=1e-6, abs=1e-24)
            assert z.course.drift[b, t, -1] == pytest.approx((mean - start) @ (mean - start), rel=1e-8)
            x = mean
            if (t + 1) % z.interval == 0:
                x = start + z.eta[b] * (x - start)


@pytest.mark.parametrize("rippled", [False, True])
def test_the_products_of_one_local_step_give_spread_and_drift_of_the_next(rippled: bool) -> None:
    """|y - ybar| and |ybar - x_0| after a step, from the products before it: what the steps of the proof read."""
    z = instances(3, rippled=rippled)
    g, gamma = round_products(z), z.gamma[:, None, None]
    zero = np.zeros((1, 1, 1))

    def at(a: str, b: str) -> np.ndarray:
        return g.get((a, b) if a <= b else (b, a), zero)

    # after a step e - gamma (ky + o - mky - mo + xi - mxi) and D - gamma (mky + km + mo + f0 + mxi)
    apart = {"e": 1.0, "ky": -gamma, "o": -gamma, "mky": gamma, "mo": gamma, "xi": -gamma, "mxi": gamma}
    away = {"D": 1.0, "mky": -gamma, "km": -gamma, "mo": -gamma, "f0": -gamma, "mxi": -gamma}
    for parts, exact in ((apart, z.course.spread), (away, z.course.drift)):
        square = sum(c * k * at(a, b) for (a, c), (b, k) in product(parts.items(), repeat=2))
        square = np.broadcast_to(square, exact.shape)
        assert square[:, :, :-1] == pytest.approx(exact[:, :, 1:], rel=1e-7, abs=1e-12 * exact.max())


@pytest.mark.parametrize("rippled", [False, True])
def test_the_products_of_a_window_give_the_whole_displacement(rippled: bool) -> None:
    """x_end - x_start = -gamma I P (s + z) before amplification."""
    z = instances(4, rippled=rippled)
    g, parts = window_products(z), ("s1", "s2", "s3", "f0", "z")
    zero = np.zeros((1, 1))
    square = sum(g.get((a, b) if a <= b else (b, a), zero) for a, b in product(parts, repeat=2))
    ends = np.arange(1, z.rounds // z.interval + 1) * z.interval - 1
    exact = z.course.drift[:, ends, -1]
    scale = (z.gamma * z.local_steps * z.interval)[:, None] ** 2
    assert square * scale == pytest.approx(exact, rel=1e-7)


def test_gradients_of_almost_equal_points_differ_exactly() -> None:
    """By their difference quotient, where subtracting two gradients would leave nothing but rounding."""
    z = instances(5, rippled=True)
    x, tiny = z.start, np.full_like(z.start, 1e-14)
    curvature = z.curvature + z.ripple * np.cos(x)
    assert slope_change(z, x, tiny) == pytest.approx(curvature * tiny, rel=1e-12)
    assert slope_change(z, x, np.ones_like(x)) == pytest.approx(slope(z, x + 1) - slope(z, x), rel=1e-12)


@pytest.mark.parametrize("rippled", [False, True])
def test_the_decrease_over_a_window_is_the_difference_of_the_gaps_at_its_ends(rippled: bool) -> None:
    z = instances(6, rippled=rippled)
    ends = np.arange(z.rounds // z.interval + 1) * z.interval
    gaps = z.course.gap[:, ends]
    assert z.course.decrease == pytest.approx(-np.diff(gaps, axis=1), rel=1e-9, abs=1e-12 * gaps.max())


def test_window_variance_of_shift_processes_agrees_with_summing_over_all_paths() -> None:
    N, P = 3, 4
    z = draw_processes(np.random.default_rng(5), 6, N)
    z = replace(z, interval=np.full(6, P))
    shifts = np.stack([np.arange(N) - s for s in range(N)]) % N
    for b in range(6):
        means, law = [], []
        for path in product(range(N), repeat=P):
            moves = np.diff(path) % N
            law.append(np.prod(z.increments[b, moves]) / N)
            means.append(np.mean([z.base[b, shifts[s]] for s in path], axis=0))
        means, law = np.array(means), np.array(law)
        assert law @ means == pytest.approx(np.full(N, 1 / N))
        variance = law @ (means - 1 / N) ** 2
        assert z.constants()["windowvar"][b, 0] == pytest.approx(variance[0], abs=1e-14)
        assert z.expected_window()[b, 0] == pytest.approx(law @ ((means @ z.slopes[b]) ** 2).sum(axis=1), abs=1e-13)


def test_the_two_state_chain_exceeds_its_long_run_variance_by_the_known_ratios() -> None:
    """N = 2, correlation -0.8: 2.180, 1.220, 1.044 at P = 5, 20, 100, from the exact sum of covariances."""
    z = draw_processes(np.random.default_rng(6), 3, 2)
    z = replace(
        z,
        base=np.repeat([[1.0, 0.0]], 3, 0),
        increments=np.repeat([[0.1, 0.9]], 3, 0),
        interval=np.array([5, 20, 100]),
    )
    v = z.constants()
    assert (v["windowvar"] * v["P"] / v["upsilonhat"] ** 2)[:, 0] == pytest.approx([2.180, 1.220, 1.044], abs=6e-4)


def test_probabilities_of_failure_agree_with_all_sequences_of_tosses() -> None:
    z = FairCoins(np.array([3, 4]), np.array([3, 2]), np.array([0.1, 0.1]), np.array([0.5, 0.3]))
    bound = np.array([0.5, 0.1])
    for b in range(2):
        P, K = int(z.interval[b]), int(z.windows[b])
        tosses = np.array(list(product((0, 1), repeat=P * K))).reshape(-1, K, P)
        window = (2 * z.swing[b] * (2 * tosses.mean(axis=2) - 1)) ** 2
        assert failure_of_all(z, bound)[b] == pytest.approx((window > bound[b] + 1e-9).any(axis=1).mean())
        assert failure_of_average(z, bound)[b] == pytest.approx((window.mean(axis=1) > bound[b] + 1e-9).mean())


def test_coins_held_for_growing_blocks_settle_from_the_first_round_only() -> None:
    """Blocks of length j: variance 0.075, 0.0225, 0.0074, 0.0024 at P = 10 .. 10^4 from round 0; 1/4 within a block."""
    z = HeldCoins(np.array([1.0]))
    assert [z.variance(10**k)[0] for k in (1, 2, 3, 4)] == pytest.approx([0.075, 0.0225, 0.0074, 0.0024], rel=0.02)
    assert z.latest_variance(10**4) == 0.25


def test_expectation_over_noise_and_participation_agrees_with_the_library() -> None:
    z = draw_rounds(np.random.default_rng(7), 8, (4, 2, 2, 3, 13))
    z = replace(z, base=np.repeat([[0.5, 0.5, 0, 0]], 8, 0), noise=np.repeat(z.noise[:, :1], 2, axis=1))
    z = replace(z, gamma=0.02 / z.curvature.max(axis=1), eta=np.full(8, 3.0))
    least = z.least_gradient()
    for b in range(8):
        a = np.maximum(z.curvature[b], 1e-9)
        problem = Quadratic(a, -z.slopes[b] / a, float(z.noise[b, 0]), z.start[b])
        algorithm = GeneralizedFedAvg(float(z.gamma[b]), 2, 3.0, 3)
        run = moments(algorithm, problem, WithoutReplacement(4, 2), rounds=13)
        assert least[b, 0] == pytest.approx(run.gradient_norm_squared[:13].min(), rel=1e-8)


# --- verdicts ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    return {c.id.partition("/")[2]: c for c in paper_claims(PAPER) if has_instances(c)}


def test_the_checker_hears_every_step_and_the_numbered_results(claims: dict[str, Claim]) -> None:
    appendix = ("lemma-c.1", "lemma-c.2", "equation-c.16", "theorem-3.1", "equation-11", "proposition-4.1")
    proofs = [proof for proof in PROOFS if proof.id.partition("/")[2] in appendix]
    steps = {f"{proof.id}/{step.id}".partition("/")[2] for proof in proofs for step in proof.steps}
    assert len(proofs) == len(appendix) and steps <= set(claims)
    keys = {c.subject.result.key.partition("/")[2] for c in claims.values() if isinstance(c.subject, ResultForm)}
    lemmas = {"equation-11", "equation-15", "lemma-c.1", "lemma-c.2", "equation-c.16", "theorem-3.1"}
    propositions = {f"proposition-4.{k}" for k in (1, 2, 4, 6, 7)}
    expected = {f"{name}-expected" for name in ("theorem-3.1", "corollary-3.2", "corollary-3.3", "corollary-4.3")}
    assert keys == lemmas | propositions | expected | {f"corollary-{k}" for k in ("3.2", "3.3", "4.3", "4.8")}


@pytest.mark.parametrize(
    "every", [pytest.param(True, marks=pytest.mark.long), False]
)  # of the claims; the audit tries them all and compares
def test_only_the_false_printed_claims_are_refuted_and_everything_else_has_covered_instances(
    every: bool, claims: dict[str, Claim]
) -> None:
    refuted = set()
    forms = [name for name, claim in claims.items() if isinstance(claim.subject, ResultForm)]
    steps = [name for name, claim in claims.items() if isinstance(claim.subject, StepOf)]
    assert {*forms, *steps} == claims.keys() and len(steps) > 100
    for name in {*claims} if every else {*REFUTED, *forms[::4], *steps[::15]}:
        claim = claims[name]
        found = verdict(claim, judge_on_instances(claim))
        assert found.outcome in ("survived", "refuted"), f"{name}: {found.evidence}"
        if found.outcome == "refuted":
            refuted.add(name)
            assert "measured" in found.evidence and "{" in found.evidence  # with the instance, to be replayed
    assert refuted == REFUTED


def test_an_assumption_that_cannot_be_checked_leaves_the_claim_unknown(claims: dict[str, Claim]) -> None:
    strange = replace(claims["lemma-c.1[printed]"], assumptions=(Assumption("strange", "?", "?"),))
    found = verdict(strange, judge_on_instances(strange))
    assert found.outcome == "unknown" and found.evidence == "not checkable here: strange"


def test_an_instance_that_breaks_an_assumption_refutes_nothing(claims: dict[str, Claim]) -> None:
    """(C.15) with noise shared by the clients is false, and not covered."""
    claim = claims["equation-c.16/Th5b"]
    how = instance_test(claim)
    assert how is not None
    z = next(z for z in pool(30) if z.clients > 1 and z.noise.any())
    shared = replace(z, correlation=np.ones_like(z.correlation))
    sides = how.sides(claim, shared)
    assert not sides.covered.any() and examine([sides]).covered == 0
    assert (sides.left > sides.total() * 1.01).any()


def test_a_step_size_above_the_cap_is_not_covered(claims: dict[str, Claim]) -> None:
    claim = claims["lemma-c.2/L2.7"]
    how = instance_test(claim)
    assert how is not None
    z = next(z for z in pool(30) if z.interval > 1)
    assert how.sides(claim, z.with_step_shares(np.full(len(z), 1.0), np.full(len(z), 1.0))).covered.any()
    assert not how.sides(claim, replace(z, gamma=1.1 / (12 * z.smoothness * z.local_steps * z.interval))).covered.any()


def test_evidence_carries_the_worst_ratio_and_the_smallest_planted_errors(claims: dict[str, Claim]) -> None:
    claim = claims["lemma-c.1[printed]"]
    finding = judge_on_instances(claim)
    assert finding.worst == pytest.approx(1 / 3, rel=0.01)  # one of the 3 I steps' worth of noise
    assert finding.exposed["noise"] == pytest.approx(1 / 3, rel=0.01)
    assert 1 / 18 <= finding.exposed["cohort divergence"] <= 1.1 / 18  # more where clients are curved downwards
    evidence = verdict(claim, finding).evidence
    assert "worst measured/bound 0.333" in evidence and "noise x0.33" in evidence


def test_a_factor_is_exposed_exactly_where_scaling_the_term_refutes() -> None:
    left, ones = np.array([[3.0], [2.0]]), np.ones((2, 1))
    sides = Sides(left, {"a": 2 * ones, "b": 2 * ones}, np.ones((2, 1), dtype=bool))
    assert examine([sides]).exposed == {"a": 0.5, "b": 0.5}
    assert not examine([sides.scaled("a", 0.51)]).refuted and examine([sides.scaled("a", 0.49)]).refuted


# --- planted errors ----------------------------------------------------------------------------------------------


def with_conclusion(claim: Claim, change: dict[Any, Any]) -> Claim:
    """The step's claim with something in its right-hand side replaced."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    old = subject.step.conclusion
    right = old.right.subs(change, simultaneous=True)
    assert right != old.right
    step = replace(subject.step, conclusion=Relation(old.left, right, old.op))
    return replace(claim, subject=replace(subject, step=step))


PLANTED = {
    "half of sigma^2 (1 - S_t)": ("lemma-c.1/L1.1", {1 - n.sumsq: (1 - n.sumsq) / 2}),
    "sigma^2 (1 - S_t^2) would do, (1 - S_t)^2 does not": ("lemma-c.1/L1.1", {1 - n.sumsq: (1 - n.sumsq) ** 2}),
    "half the noise in (C.6)": ("lemma-c.1/L1.4", {1 - n.sumsq: (1 - n.sumsq) / 2}),
    "nu^2 and not 6 I nu^2 in (C.6)": ("lemma-c.1/L1.4", {n.nu**2: n.nu**2 / (6 * n.I)}),
    "the geometric sum at most I": ("lemma-c.1/L1.7", {Integer(3): Integer(1)}),
    "rho^4 for rho^2": ("lemma-c.2/L2.1", {n.rho**2: n.rho**4}),
    "a lost square of sigma": ("lemma-c.2/L2.1", {n.sigma**2: n.sigma}),
    "S_t of the round forgotten in the noise of (C.9)": ("lemma-c.2/L2.7", {n.rho**2: n.rho**2 - n.sumsq / 4}),
    "a tenth of beta^2 in (C.9)": ("lemma-c.2/L2.7", {n.beta**2: n.beta**2 / 10}),
    "half of delta^2 in Th3f": ("equation-c.16/Th3f", {n.delta**2: n.delta**2 / 2}),
    "P lost in (C.15)": ("equation-c.16/Th5b", {n.P: 2 * n.P}),
    "the curvature halved in the descent lemma": ("equation-c.16/Th1", {n.L: n.L / 2}),
    "delta^2 for 6 delta^2 in (C.16)": ("equation-c.16/C.16", {n.delta**2: n.delta**2 / 6}),
    "a quarter of the decrease": ("equation-c.16/C.16", {n.decrease: n.decrease / 4}),
    "F/2 for 4 F": ("theorem-3.1/Th9", {n.F: n.F / 8}),
    "a gradient that keeps nothing": ("equation-c.16/Th6", {Integer(-72): Integer(-75)}),
}


@pytest.mark.parametrize("error", PLANTED)
def test_an_error_planted_in_a_step_is_refuted_by_an_instance(error: str, claims: dict[str, Claim]) -> None:
    name, change = PLANTED[error]
    wrong = with_conclusion(claims[name], change)
    assert verdict(wrong, judge_on_instances(wrong)).outcome == "refuted"


def test_errors_that_instances_cannot_see_are_said_to_be_invisible(claims: dict[str, Claim]) -> None:
    """With equal Hessians or ripples the spread grows more slowly than Young's inequality alone allows."""
    finding = judge_on_instances(claims["lemma-c.1/L1.4"])
    invisible = [name for name, factor in finding.exposed.items() if factor == 0]
    assert "12*<e,e>*I*L**2*gamma**2" in invisible
    assert "12*<e,e>*I*L**2*gamma**2 none" in finding.sensitivity()


@pytest.mark.parametrize(
    ("key", "form", "term", "factor"),
    [
        ("theorem-3.1", "explicit", "initial gap", 0.05),
        ("theorem-3.1", "explicit", "update noise", 0.1),
        ("theorem-3.1", "explicit", "window divergence", 0.1),
        ("theorem-3.1", "sharp", "initial gap", 0.4),
        ("corollary-3.2", "explicit", "window divergence", 0.1),
        ("lemma-c.1", "sharp", "noise", 0.7),
        ("lemma-c.2", "printed", "gradient", 0.04),
        ("equation-c.16", "explicit", "update noise", 0.45),
        ("proposition-4.7", "printed", "window divergence", 0.99),
        ("proposition-4.6", "repaired", "window divergence", 0.99),
        ("corollary-4.8", "repaired", "noise", 0.1),
    ],
)
def test_a_lowered_constant_in_a_result_is_refuted(key: str, form: str, term: str, factor: float) -> None:
    result = load(f"{PAPER}/{key}")
    right = result.form(form)
    terms = tuple(Term(t.name, t.expression * (Rational(factor) if t.name == term else 1)) for t in right.terms)
    wrong = ResultForm(result, replace(right, terms=terms)).claim()
    assert verdict(wrong, judge_on_instances(wrong)).outcome == "refuted"


def test_a_dropped_cap_in_a_result_is_refuted() -> None:
    """Theorem 3.1 without its cap on gamma eta: a huge step diverges, and its bound on the initial gap is tiny."""
    result = load(f"{PAPER}/theorem-3.1")
    form = result.form("sharp")
    assert len(form.conditions) == 3
    z = instances(8, (2, 1, 2, 1, 6))
    z = replace(z, eta=100 * z.eta, noise=0 * z.noise, slopes=0 * z.slopes)
    outcomes = []
    for conditions in (form.conditions, tuple(c for c in form.conditions if not c.left.has(n.eta))):
        finding = examine([form_sides(ResultForm(result, replace(form, conditions=conditions)).claim(), z)])
        outcomes.append((finding.covered > 0, finding.refuted))
    assert outcomes == [(False, False), (True, True)]
