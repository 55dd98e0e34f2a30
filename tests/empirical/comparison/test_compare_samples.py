"""What a crossing implies: exact ones refute, sampled ones state their chance, other forms imply nothing."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form, Result, Term
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import Quadratic, random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.figures.charts.overlay import overlay

THEOREM = load("arbitrary-participation/theorem-3.1")
PROBLEM, ALL_CLIENTS, ALGORITHM = Quadratic([1.0], np.linspace(-1, 1, 4)[:, None], 1.0, [2.0]), Full(4), FedAvg(0.02, 2)
ROUNDS = 40


def bounded_by(number: float, **changed) -> Result:
    """A theorem that bounds the average by one number."""
    form = replace(THEOREM.form("explicit"), terms=(Term("all", sp.Float(number)),), conditions=(), **changed)
    measure = replace(THEOREM.measure, aggregate="average", over="rounds")
    return replace(THEOREM, measure=measure, forms=(form,), default="explicit")


def exact() -> np.ndarray:
    norms = moments(ALGORITHM, PROBLEM, ALL_CLIENTS, ROUNDS).gradient_norm_squared[:ROUNDS]
    return np.cumsum(norms) / np.arange(1, ROUNDS + 1)


def sampled(seeds, result: Result):
    run = simulate(ALGORITHM, PROBLEM, ALL_CLIENTS, ROUNDS, seeds=seeds)
    return confront(run, result, problem=PROBLEM, participation=ALL_CLIENTS, trust=[THEOREM.key])


def test_one_noisy_seed_never_refutes_a_theorem() -> None:
    true = bounded_by(1.02 * exact().max())
    crossed = [found for seed in range(12) if (found := sampled([seed], true)).covered_crossings.size]
    # the average is largest at T = 1, where nothing is random yet: only later rounds can lift it
    late = bounded_by(1.02 * exact()[-1])
    crossed += [found for seed in range(12) if (found := sampled([seed], late)).covered_crossings.size]
    assert crossed and all(found.seeds == 1 and found.chance == 1 for found in crossed)
    for found in crossed:
        assert "theorem is false" not in found.revoked and "by one seed, which is no evidence" in found.revoked
        assert not found.guarantee and found.why_not[0] == found.revoked
        assert "theorem is false" not in overlay(found).caption


def test_a_mean_over_seeds_refutes_only_beyond_chance_and_states_the_chance() -> None:
    T = ROUNDS
    unlucky = [
        found for k in range(12)
        if (found := last_only(sampled(range(5 * k, 5 * k + 5), bounded_by(exact()[-1])), T)).covered_crossings.size
    ]  # fmt: skip
    assert 2 <= len(unlucky) <= 10  # the bound is the expectation: half of the samples lie above it
    for found in unlucky:
        assert found.chance > 1e-3 and "theorem is false" not in found.revoked
        assert (
            "the mean of 5 seeds (chance alone does that in " in found.revoked
            and "use exact moments or more seeds" in found.revoked
        )
    false = last_only(sampled(range(200), bounded_by(0.5 * exact()[-1])), T)
    assert false.chance < 1e-6 and "this theorem is false, or an assumption" in false.revoked
    assert "or this is chance in the mean of 200 seeds" in false.revoked


def last_only(found, T: int):
    """The comparison at the largest T alone."""
    at = found.rounds == T
    cut = {
        name: getattr(found, name)[at] for name in ("rounds", "measured", "standard_error", "bound", "valid", "whole")
    }
    return replace(found, **cut)


def test_moments_and_runs_without_noise_refute() -> None:
    quiet = Quadratic([1.0], np.linspace(-1, 1, 4)[:, None], 0.0, [2.0])
    run = simulate(ALGORITHM, quiet, ALL_CLIENTS, ROUNDS)
    known = confront(run, bounded_by(1e-3), problem=quiet, participation=ALL_CLIENTS, trust=[THEOREM.key])
    computed = confront(moments(ALGORITHM, quiet, ALL_CLIENTS, ROUNDS), bounded_by(1e-3), trust=[THEOREM.key])
    for found in (known, computed):
        assert found.seeds == 0 and found.chance == 0 and found.covered_crossings.size == ROUNDS
        assert "this theorem is false" in found.revoked and "chance" not in found.revoked
    two = WithoutReplacement(4, 2)  # who takes part is drawn: one seed is a sample again
    run = simulate(ALGORITHM, quiet, two, ROUNDS)
    found = confront(run, bounded_by(1e-3), problem=quiet, participation=two, trust=[THEOREM.key])
    assert found.seeds == 1 and "theorem is false" not in found.revoked


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"order_only": True}, "which does not imply an error: the form hides constants in an O(.)"),
        (
            {"asymptotic": "P -> infinity"},
            "does not imply an error: the form holds only in the limit P -> infinity",
        ),
        ({"refuted_by": "some-erratum"}, "as erratum some-erratum says"),
    ],
)
def test_crossing_a_form_that_is_no_bound_implies_nothing(changed: dict, told: str) -> None:
    found = confront(moments(ALGORITHM, PROBLEM, ALL_CLIENTS, ROUNDS), bounded_by(1e-3, **changed))
    assert found.revoked.endswith(told) or told in found.revoked
    assert "theorem is false" not in found.revoked and not found.guarantee


def test_what_is_given_and_the_run_says_nothing_of_is_named_beside_the_theorem() -> None:
    form = THEOREM.form("explicit")
    bound = (Term("all", sp.Symbol("c", positive=True, nonnegative=True) * 1e-3),)
    guess = replace(THEOREM, forms=(_with(form, bound),), default="explicit")
    found = confront(moments(ALGORITHM, PROBLEM, ALL_CLIENTS, ROUNDS), guess, given={"c": 0.5}, trust=[THEOREM.key])
    assert found.given_check.unconfirmed == ("c",) and "or a constant is wrong: c" in found.revoked


def _with(form: Form, terms: tuple[Term, ...]) -> Form:
    return replace(form, terms=terms, conditions=())


def test_a_diverging_run_is_compared_without_warnings() -> None:
    steep = FedAvg(30.0, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seeds in ((0,), range(3)):
            run = simulate(steep, PROBLEM, ALL_CLIENTS, 200, seeds=seeds)
            assert "diverged" in run.statuses
            for form in ("explicit", "sharp"):
                found = confront(run, THEOREM, form, problem=PROBLEM, participation=ALL_CLIENTS)
                assert not found.guarantee and found.chance >= 0 and found.ratio.size and isinstance(found.revoked, str)
            average = confront(run, bounded_by(1.0), problem=PROBLEM, participation=ALL_CLIENTS)
            assert np.isinf(average.measured[-1])
        for form, shared in (("explicit", True), ("sharp", False)):
            bowls = random_quadratic(4, 3, noise=0.3, shared=shared)
            run = simulate(FedAvg(30.0, 1), bowls, np.full((300, 4), 0.25), seeds=range(3), rounds=300)
            if shared:
                confront(run, THEOREM, form, problem=bowls, participation=np.full((300, 4), 0.25))
            else:
                with pytest.raises(FedboundsError, match=r"the run diverges: (beta|nu)"):
                    confront(run, THEOREM, form, problem=bowls, participation=np.full((300, 4), 0.25))
        exact_run = moments(FedAvg(30.0, 1), PROBLEM, ALL_CLIENTS, 300)
        assert not confront(exact_run, THEOREM, "explicit").guarantee


@pytest.mark.parametrize("aggregate", ["average", "minimum"])
def test_rounds_that_were_not_recorded_refute_no_theorem(aggregate: str) -> None:
    """Of 40 rounds only x_0 is measured, whose gradient is the largest; over all rounds the bound holds."""
    silent = Quadratic([1.0], np.linspace(-1, 1, 4)[:, None], 0.0, [2.0])
    true = bounded_by(
        1.02 * float(moments(ALGORITHM, silent, ALL_CLIENTS, ROUNDS).gradient_norm_squared[:ROUNDS].mean())
    )
    true = replace(true, measure=replace(true.measure, aggregate=aggregate))

    def recorded(every: int):
        run = simulate(ALGORITHM, silent, ALL_CLIENTS, ROUNDS, seeds=range(2), record_every=every)
        return confront(run, true, problem=silent, participation=ALL_CLIENTS, trust=[THEOREM.key])

    sparse, complete = recorded(ROUNDS), recorded(1)
    assert sparse.covered_crossings.tolist() == [ROUNDS] and not sparse.whole.any()
    assert "theorem is false" not in sparse.revoked and "rounds were not recorded" in sparse.revoked
    assert not sparse.guarantee
    assert complete.whole.all() and ROUNDS not in complete.covered_crossings
    assert "theorem is false" in complete.revoked  # of the early T, where the number is too small indeed
    assert complete.revoked.startswith(f"crossed at {len(complete.covered_crossings)} of {ROUNDS} T")


def test_seeds_that_share_their_noise_are_one_sample() -> None:
    """The same draw of the noise ten times over has no spread, and would look certain."""
    run = simulate(ALGORITHM, PROBLEM, ALL_CLIENTS, ROUNDS, seeds=range(10), streams={"noise": 3})
    found = confront(
        run, bounded_by(0.5 * exact()[-1]), problem=PROBLEM, participation=ALL_CLIENTS, trust=[THEOREM.key]
    )
    assert found.covered_crossings.size and found.seeds == 1 and found.chance == 1
    assert "theorem is false" not in found.revoked and "by one seed, which is no evidence" in found.revoked


@pytest.mark.parametrize(("over", "interval"), [("rounds", 1), ("window starts", 2)])
def test_an_average_of_some_rounds_is_over_straight_lines_between_them(over: str, interval: int) -> None:
    """x_0 is far off: the records alone would count it for the three rounds after it too."""
    far = Quadratic([1.0], np.linspace(-1, 1, 4)[:, None], 1.0, [20.0])
    theorem = bounded_by(1e9)
    theorem = replace(theorem, measure=replace(theorem.measure, over=over))
    run = simulate(FedAvg(0.1, 2), far, ALL_CLIENTS, ROUNDS, seeds=range(3), record_every=1)
    kept = run.arrays["round"] % 4 == 0
    sparse = simulate(FedAvg(0.1, 2), far, ALL_CLIENTS, ROUNDS, seeds=range(3), record_every=4)
    norms = run.arrays["gradient_norm_squared"]
    assert np.array_equal(sparse.arrays["gradient_norm_squared"], norms[:, kept])

    whole, found = (
        confront(one, theorem, problem=far, participation=ALL_CLIENTS, interval=interval) for one in (run, sparse)
    )
    complete = np.stack([norms[:, :T:interval].mean(axis=1) for T in range(4, ROUNDS + 1, 4)], axis=1)
    at = np.arange(0, ROUNDS, interval)
    lines = np.stack([np.interp(at, run.arrays["round"][kept], own[kept]) for own in norms])
    counts = np.arange(4, ROUNDS + 1, 4) // interval
    expected = np.stack([lines[:, :n].mean(axis=1) for n in counts], axis=1)
    assert found.samples == pytest.approx(expected, rel=1e-12)
    assert found.measured == pytest.approx(expected.mean(axis=0), rel=1e-12)
    assert whole.measured[np.isin(whole.rounds, found.rounds)] == pytest.approx(complete.mean(axis=0), rel=1e-12)
    assert not whole.thinned.any() and not whole.spacing

    records_alone = np.cumsum(norms[:, kept][:, :-1].mean(axis=0)) / np.arange(1, ROUNDS // 4 + 1)
    truth = complete.mean(axis=0)
    assert (np.abs(found.measured - truth) < np.abs(records_alone - truth) / 2).all()

    fewer = simulate(FedAvg(0.1, 2), far, ALL_CLIENTS, ROUNDS, seeds=range(3), record_every=8)
    coarse = confront(fewer, theorem, problem=far, participation=ALL_CLIENTS, interval=interval)
    change = coarse.measured[-1] / found.measured[-1] - 1
    assert change > 0 and found.thinned[-1] == pytest.approx(change, rel=1e-9)
    assert f"at T = {ROUNDS} would be {100 * change:.2g} % larger" in found.notes[-1]


def test_an_average_between_records_of_a_diverging_run_is_infinite() -> None:
    run = simulate(FedAvg(30.0, 5), PROBLEM, ALL_CLIENTS, 200, seeds=range(2), record_every=7)
    average = confront(run, bounded_by(1.0), problem=PROBLEM, participation=ALL_CLIENTS)
    assert np.isinf(average.measured[-1]) and not np.isnan(average.measured).any()
