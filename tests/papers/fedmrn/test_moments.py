"""Exact moments of masked rounds on quadratics: golden numbers, and the theorems against them."""

from dataclasses import replace

import pytest

from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.theory.result import Term
from fedbounds.empirical.falsification.instances.instance_checker import judge_on_instances
from fedbounds.empirical.simulation.moments.operators import masked_moments, signed_masks
from fedbounds.figures.papers.fedmrn.bounds import four_clients

FOUR = four_clients()


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


def test_the_gap_of_masks_of_fixed_amplitude_grows_linearly_whatever_progressive_masking_does():
    """On A = lambda I the squared distance tends to (gamma + T) d a^2/((4 lambda/mu + 1) S K)."""
    masks = signed_masks(lambda step: 8 / 23)
    for progressive in (False, True):
        run = masked_moments(
            FOUR, masks, falling, iterations=3000, local_steps=2, cohort=2, first=1, progressive=progressive
        )
        expected = (23 + 3001) * 2 * (8 / 23) ** 2 / (5 * 2 * 2)
        assert run.squared_distance[-1] == pytest.approx(expected, rel=2e-3)


def test_the_checker_of_instances_holds_both_theorems_against_exact_runs_and_refutes_two_fifths_of_them():
    claim_set = ClaimSet.of("fedmrn", only=[])
    for name in ("theorem-1[sharp]", "theorem-2[sharp]"):
        claim = claim_set.claims[f"fedmrn/{name}"]
        subject, found = claim.subject, judge_on_instances(claim)
        assert isinstance(subject, ResultForm) and found.covered > 40 and not found.refuted
        form = replace(subject.form, terms=tuple(Term(t.name, t.expression * 2 / 5) for t in subject.form.terms))
        assert judge_on_instances(replace(claim, subject=ResultForm(subject.result, form))).refuted
