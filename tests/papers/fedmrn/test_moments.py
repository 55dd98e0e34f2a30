"""Exact moments of masked rounds on quadratics: golden numbers, and the theorems against them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.docket import Docket
from fedbounds.bounds.evaluation import evaluate
from fedbounds.bounds.registry import load
from fedbounds.bounds.result import Term
from fedbounds.empirical.instances.judging import judged_on_instances
from fedbounds.empirical.moments.operators import (
    masked_moments,
    signed_masks,
)
from fedbounds.empirical.papers.fedmrn.instances.runs import letters_of, problem_of
from fedbounds.empirical.problems import Quadratic

CONVEX, NONCONVEX = load("fedmrn/theorem-1"), load("fedmrn/theorem-2")
FOUR = Quadratic(
    hessians=np.ones((4, 2)), centers=[[0.1, 0], [-0.1, 0], [0, 0.1], [0, -0.1]], noise=math.sqrt(0.005), x0=[0.3, -0.2]
)
GOLDEN = dict(L=3, mu=1, sigma=0.1, G=1, Gamma=0.005, Delta1=0.13, N=4, K=2, S=2)


def falling(t):
    """Theorem 1's steps on the four clients with L = 3: gamma = 23."""
    return 2 / (23 + t)


def golden_run(masks, T):
    return masked_moments(FOUR, masks, falling, iterations=T - 1, local_steps=2, cohort=2, first=1)


@pytest.mark.parametrize(
    ("amplitude", "gaps"),
    [
        (lambda step: 8 / 23, {23: 0.28798932, 203: 1.38227522, 2003: 12.2707053}),
        (lambda step: 2 * step, {23: 0.0314919421, 203: 0.00599455925, 2003: 6.58314295e-4}),
    ],
)
def test_the_gap_has_its_golden_values(amplitude, gaps):
    run = golden_run(signed_masks(amplitude), 2003)
    for t, gap in gaps.items():
        assert run.objective_gap[t - 1] == pytest.approx(gap, rel=1e-7)
    assert run.label == "approximate" and run.largest_share < 0.5  # Gaussian noise has no bound


def test_the_squared_norm_has_its_golden_values():
    run = golden_run(signed_masks(lambda step: 8 / 23), 121)
    for t, square in {3: 0.2118041349, 13: 0.4342209866, 43: 0.8266094283, 121: 1.7724655434}.items():
        assert run.squared_norm[t - 1] == pytest.approx(square, abs=1e-10)


def test_the_gap_of_masks_of_fixed_amplitude_grows_linearly_whatever_progressive_masking_does():
    """On A = lambda I the squared distance tends to (gamma + T) d a^2/((4 lambda/mu + 1) S K)."""
    masks = signed_masks(lambda step: 8 / 23)
    for progressive in (False, True):
        run = masked_moments(
            FOUR, masks, falling, iterations=3000, local_steps=2, cohort=2, first=1, progressive=progressive
        )
        expected = (23 + 3001) * 2 * (8 / 23) ** 2 / (5 * 2 * 2)
        assert run.squared_distance[-1] == pytest.approx(expected, rel=2e-3)


def test_theorem_1_as_printed_fails_for_the_masks_that_it_prescribes_and_r1_holds():
    T = 203
    fixed = golden_run(signed_masks(lambda step: 8 / 23), T).objective_gap[-1]
    printed = evaluate(CONVEX, dict(**GOLDEN, q=math.sqrt(2), T=T), form="printed").value
    assert float(printed) == pytest.approx(1.2267035398230088) and fixed > float(printed)
    falls = golden_run(signed_masks(lambda step: 2 * step), T).objective_gap[-1]
    for form in ("repaired:R1", "sharp:masks"):
        assert falls < float(evaluate(CONVEX, dict(**GOLDEN, T=T, d=2), form=form).value)


# --- The theorems -----------------------------------------------------------------------------------------------------


def cases(count, seed):
    """Problems with their letters and numbers of local steps, participants and iterations."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        problem, S = problem_of(rng), int(rng.integers(1, 5))
        K, T = int(rng.integers(1, problem.clients + 1)), S * int(rng.integers(2, 30))
        yield problem, letters_of(problem) | dict(S=S, K=K, T=T), S, K, T


def prescribed(problem, steps, S, K, T, first, factor, *, progressive=False):
    """The run whose amplitude is `factor eta_{t_0} S G` with its own G; None where no G is enough."""
    G = 1.0
    for _ in range(60):
        masks = signed_masks(lambda step, G=G: factor * step * S * G)
        run = masked_moments(
            problem, masks, steps, iterations=T, local_steps=S, cohort=K, first=first, progressive=progressive
        )
        if abs(run.gradient_bound - G) <= 1e-9 * G:
            return run, G
        G = run.gradient_bound
        if not G < 1e9:
            return None
    return None


def test_the_forms_for_masks_hold_where_a_gradient_bound_exists_and_so_do_drift_and_synchronization():
    found = 0
    for problem, c, S, K, T in cases(15, 8):
        norms = [np.linalg.norm(problem.hessian(k).numpy()) for k in range(problem.clients)]
        for theorem, factor, first in ((CONVEX, 1, 1), (NONCONVEX, 2, 0)):
            L = max(c["L"], S * max(norms) * factor)  # declared larger, so that the masks leave room
            gamma = max(8 * L / c["mu"], S) - 1
            eta = 1 / (L * math.sqrt(T))

            def steps(t, first=first, mu=c["mu"], gamma=gamma, eta=eta):
                return 2 / (mu * (gamma + t)) if first else eta

            run = prescribed(problem, steps, S, K, T, first, factor)
            if run is None:
                continue
            run, G = run
            left = run.objective_gap[-1] if first else run.gradient_norm_squared[:-1].mean()
            for form in [f.name for f in theorem.forms if f.name.endswith((":masks", "R1", "R2"))]:
                bound = float(evaluate(theorem, c | dict(L=L, T=T + first, G=G), form=form).value)
                assert left <= bound, (form, left, bound)
            square = c["d"] * np.array([factor * steps(first + t - t % S) * S * G for t in range(T)]) ** 2
            assert (run.masked_drift <= square * (1 + 1e-12)).all()
            assert (run.synchronization_error <= square / K * (1 + 1e-12)).all()
            found += 1
    assert found >= 24


def test_progressive_masks_hold_their_form_and_cost_less_in_local_steps():
    for problem, c, S, K, T in cases(8, 9):
        L = max(c["L"], 2 * S * max(np.linalg.norm(problem.hessian(k).numpy()) for k in range(problem.clients)))
        eta = 1 / (L * math.sqrt(T))
        run, G = prescribed(problem, lambda t, eta=eta: eta, S, K, T, 0, 2, progressive=True)
        bound = evaluate(NONCONVEX, c | dict(L=L, G=G), form="sharp:progressive-masks").value
        assert run.gradient_norm_squared[:-1].mean() <= float(bound)
        square = c["d"] * (2 * eta * S * G) ** 2
        chance = np.arange(T) % S / S + 1 / S
        assert (run.masked_drift <= ((1 - chance) * ((S - 1) * eta * G) ** 2 + chance * square) * (1 + 1e-12)).all()


def test_the_court_of_instances_holds_both_theorems_against_exact_runs_and_refutes_a_fifth_of_them():
    docket = Docket.of("fedmrn", only=[])
    for name in ("theorem-1[sharp]", "theorem-2[sharp]"):
        claim = docket.claims[f"fedmrn/{name}"]
        subject = claim.subject
        assert isinstance(subject, ResultForm) and judged_on_instances(claim).covered == 40
        assert not judged_on_instances(claim).refuted
        form = replace(subject.form, terms=tuple(Term(t.name, t.expression / 5) for t in subject.form.terms))
        assert judged_on_instances(replace(claim, subject=ResultForm(subject.result, form))).refuted
