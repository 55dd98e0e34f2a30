"""Runs against results: measures, constants with their kinds, assumptions, crossings, families of runs, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate, evaluate_form
from fedbounds.bounds.theory.assumptions import FULL_PARTICIPATION
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.empirical.comparison import paper_runs as papers
from fedbounds.empirical.comparison.compare_run import RunComparison, confront, confront_family, prescribed_algorithm
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg, WaitMinibatch
from fedbounds.empirical.papers.arbitrary_participation.divergences import Offsets
from fedbounds.empirical.papers.arbitrary_participation.participation_constants import (
    process_constants,
    record_constants,
)
from fedbounds.empirical.papers.arbitrary_participation.run import ArbitraryParticipation
from fedbounds.empirical.participation import (
    Bernoulli,
    Cyclic,
    Full,
    GroupMarkov,
    PeriodicGroups,
    Permutation,
    Process,
    Recorded,
    WithoutReplacement,
    WithReplacement,
)
from fedbounds.empirical.problems import CosineQuadratic, Quadratic, random_quadratic, toy_example
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.figures.charts.overlay import overlay
from tests.bounds.participation import reference_constants as of_matrices

THEOREM = load("arbitrary-participation/theorem-3.1")
COROLLARY_3_2 = load("arbitrary-participation/corollary-3.2")
COROLLARY_3_3 = load("arbitrary-participation/corollary-3.3")
COROLLARY_4_3 = load("arbitrary-participation/corollary-4.3")
COROLLARY_4_8 = load("arbitrary-participation/corollary-4.8")

CYCLES = np.tile(np.eye(3), (10, 1))
HALVES = np.tile([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], (4, 1))
LONG_HALVES = np.tile(HALVES, (100, 1))


def four_clients(noise: float = 0.5) -> Quadratic:
    return Quadratic([1.0, 0.25], [[2, 0], [-2, 4], [0, -4], [0, 0]], noise, [3, -2])


def toy_run(rounds: int = 30):
    return moments(GeneralizedFedAvg(1 / 36, 1, 6, 3), toy_example(), CYCLES, rounds)


# --- golden numbers ---------------------------------------------------------------------------------------------


def test_toy_example_meets_its_golden_bound() -> None:
    comparison = confront(toy_run(), THEOREM, "explicit")
    assert comparison.bound[-1] == pytest.approx(3.752479138593, abs=0.51e-12)
    assert comparison.measured[-1] == pytest.approx(0.0002409267, abs=0.51e-10)
    values = {name: float(c.value) for name, c in comparison.constants.items()}
    assert values["beta"] ** 2 == pytest.approx(4 / 3) and values["rho"] == 1
    assert values["nu"] ** 2 + values["delta"] ** 2 == pytest.approx(0, abs=1e-28)
    assert comparison.guarantee and comparison.rounds.tolist() == list(range(3, 31))


@pytest.mark.parametrize(("noise", "bound"), [(0.0, 21.1796875), (0.5, 21.321614583333)])
def test_alternating_halves_meet_their_golden_bounds(noise: float, bound: float) -> None:
    comparison = confront(moments(GeneralizedFedAvg(1 / 48, 2, 6, 2), four_clients(noise), HALVES), THEOREM, "explicit")
    assert comparison.bound[-1] == pytest.approx(bound, abs=0.51e-12)
    assert sum(term[-1] for term in comparison.terms.values()) == pytest.approx(comparison.bound[-1])


def test_corollaries_meet_their_golden_bounds_with_their_own_step_sizes() -> None:
    for corollary, eta, own, theorem, least in (
        (COROLLARY_3_2, 151.78932768808218, 0.5369059649, 0.3369059649, 0.0108095893),
        (COROLLARY_3_3, 107.3312629199899, 0.3967804758, 0.3967804758, 0.0071290216),
    ):
        family = confront_family(
            corollary, four_clients(), LONG_HALVES, [400, 800], local_steps=2, interval=2, form="explicit"
        )
        assert family.bound[-1] == pytest.approx(own, abs=0.51e-10)
        assert family.measured[-1] == pytest.approx(least, abs=0.51e-10)
        assert family.rounds.tolist() == [400, 800] and family.guarantee and not family.crossings.size
        algorithm = prescribed_algorithm(
            corollary, family.form, four_clients(), Recorded(LONG_HALVES), 800, local_steps=2, interval=2
        )
        assert algorithm.local_step_size == pytest.approx(0.000736569563735987, rel=1e-14)
        assert algorithm.server_multiplier == pytest.approx(eta, rel=1e-14)
        run = moments(algorithm, four_clients(), LONG_HALVES, 800)
        assert confront(run, THEOREM, "explicit").bound[-1] == pytest.approx(theorem, abs=0.51e-10)


# --- the curve --------------------------------------------------------------------------------------------------


def test_every_point_of_a_curve_is_the_theorem_about_that_many_rounds() -> None:
    """The constants of T rounds are those of the first T rounds: cutting the run changes nothing before the cut."""
    rng = np.random.default_rng(3)
    problem = random_quadratic(4, 3, noise=0.3)
    q = rng.dirichlet(np.ones(4), size=17)
    algorithm = GeneralizedFedAvg(1 / 72, 2, 2.5, 3)
    whole = confront(moments(algorithm, problem, q), THEOREM)
    for T in (3, 8, 12, 17):
        cut = confront(moments(algorithm, problem, q[:T]), THEOREM)
        at = int(np.flatnonzero(whole.rounds == T)[0])
        assert cut.bound[-1] == pytest.approx(whole.bound[at], rel=1e-14)
        assert cut.measured[-1] == whole.measured[at]
        assert bool(cut.valid[-1]) == bool(whole.valid[at])
    assert (np.diff(whole.measured) <= 0).all()


def test_the_measure_is_the_running_minimum_over_the_rounds_before_the_horizon() -> None:
    run = toy_run(6)
    comparison = confront(run, THEOREM)
    norms = run.gradient_norm_squared
    assert comparison.measured.tolist() == [norms[:T].min() for T in range(3, 7)]
    assert comparison.measured[-1] > norms[6]  # the model after the last round is not among the x_t of the theorem


def test_crossings_are_found_where_the_conditions_fail_and_are_not_covered() -> None:
    """A step size beyond 2/L diverges: the bound is crossed, and its conditions say that it did not apply."""
    run = moments(FedAvg(2.1, 1), Quadratic([1.0], [[0.0]], 0.0, [1.0]), np.ones((8, 1)))
    comparison = confront(run, THEOREM, "explicit")
    assert comparison.crossings.tolist() == [2, 3, 4, 5, 6, 7, 8]  # 1 was measured, 8 F/(gamma T) = 1.9/T promised
    assert not comparison.covered_crossings.size and not comparison.guarantee
    assert "a condition fails" in comparison.why_not[0]
    assert comparison.ratio[-1] == pytest.approx(8 / (4 / 2.1))


@pytest.mark.parametrize(
    ("aggregate", "over", "expected"),
    [
        ("minimum", "window starts", lambda norms, T: norms[: T - T % 3 : 3].min()),
        ("average", "window starts", lambda norms, T: norms[: T - T % 3 : 3].mean()),
        ("average", "rounds", lambda norms, T: norms[:T].mean()),
        ("last", "rounds", lambda norms, T: norms[T]),
    ],
)
def test_the_measure_is_the_one_that_the_result_bounds(aggregate: str, over: str, expected: Callable) -> None:
    result = replace(THEOREM, measure=replace(THEOREM.measure, aggregate=aggregate, over=over))
    run = toy_run(11)
    comparison = confront(run, result)
    assert comparison.measured == pytest.approx([expected(run.gradient_norm_squared, T) for T in range(3, 12)])
    with pytest.raises(FedboundsError, match="the run is measured over rounds or window starts"):
        confront(run, replace(THEOREM, measure=replace(THEOREM.measure, over="sync points")))


@pytest.fixture
def evaluated_horizons(monkeypatch: pytest.MonkeyPatch) -> Counter[float]:
    """How often a form is evaluated at each number of rounds T."""
    counts: Counter[float] = Counter()

    def counting(form: Any, constants: Mapping[str, Any], **options: Any) -> Evaluation:
        found = evaluate_form(form, constants, **options)
        counts.update(np.ravel(found.constants["T"].value).tolist())
        return found

    monkeypatch.setattr("fedbounds.bounds.evaluation.evaluate.evaluate_form", counting)
    return counts


@pytest.mark.parametrize("given", [None, {"F": 100.0}])
def test_the_bound_is_evaluated_once_at_every_horizon(given: dict | None, evaluated_horizons: Counter[float]) -> None:
    comparison = confront(toy_run(), THEOREM, "explicit", given=given)
    assert evaluated_horizons == {T: 1 for T in comparison.rounds.tolist()}
    assert comparison.bound[-1] == comparison.evaluation.value and comparison.valid[-1] == comparison.evaluation.valid


def test_a_result_that_sets_step_sizes_is_evaluated_for_them_and_for_the_bound(
    evaluated_horizons: Counter[float],
) -> None:
    run = moments(GeneralizedFedAvg(*prescribed_steps(30), 3), toy_example(), CYCLES, 30)
    evaluated_horizons.clear()
    confront(run, COROLLARY_3_2)
    assert evaluated_horizons == {30: 1}
    evaluated_horizons.clear()
    confront_family(COROLLARY_3_2, toy_example(), CYCLES, [15, 30], local_steps=1, interval=3)
    assert evaluated_horizons == {15: 2, 30: 2}  # the step sizes before the run, the bound after it


def prescribed_steps(rounds: int) -> tuple[float, int, float]:
    algorithm = prescribed_algorithm(
        COROLLARY_3_2, COROLLARY_3_2.form(), toy_example(), Recorded(CYCLES), rounds, local_steps=1, interval=3
    )
    return algorithm.local_step_size, 1, algorithm.server_multiplier


# --- constants and their kinds ----------------------------------------------------------------------------------


def test_constants_say_where_they_come_from() -> None:
    sources = {name: c.source for name, c in confront(toy_run(), THEOREM).constants.items()}
    exact = {"L", "F", "sigma", "rho", "nu", "beta", "delta"}
    assert sources == dict.fromkeys(exact, "exact") | dict.fromkeys(["I", "P", "T", "gamma", "eta"], "given")


def test_record_constants_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(0)
    q, v = rng.dirichlet(np.ones(4), size=10), rng.normal(size=(4, 3))
    ours = record_constants(q, Offsets(v), 3, np.array([5, 10]))
    for at, T in enumerate((5, 10)):
        expected = {
            "participation_norm": of_matrices.participation_norm(q[:T]),
            "participation_divergence": of_matrices.participation_divergence(q[:T], v),
            "cohort_divergence": of_matrices.cohort_divergence(q[:T], v),
            "window_divergence": of_matrices.window_divergence(q[:T], v, 3),
            "sum_of_squared_weights": (q[:T] ** 2).sum(axis=1).min(),
        }
        assert {n: c.value[at] for n, c in ours.items()} == pytest.approx(expected, rel=1e-12)  # pyright: ignore


@pytest.mark.parametrize("random_phase", [True, False])
def test_process_constants_are_largest_expected_values(random_phase: bool) -> None:
    """Against the average over every phase of the left-hand sides of (5), (6) and (7), round by round."""
    v = np.random.default_rng(1).normal(size=(3, 2))
    v -= v.mean(axis=0)
    process, rounds, P = Cyclic(3, random_phase=random_phase), 6, 2
    phases = range(3) if random_phase else range(1)
    records = np.array([np.eye(3)[(np.arange(rounds) + phase) % 3] for phase in phases])
    five = ((records @ v) ** 2).sum(-1).mean(axis=0)
    seven = ((records.reshape(-1, 3, P, 3).mean(axis=2) @ v) ** 2).sum(-1).mean(axis=0)
    ours = process_constants(process, Offsets(v), P, np.array([rounds]))
    got = {n: float(np.ravel(c.value)[0]) for n, c in ours.items()}  # pyright: ignore
    assert got["participation_divergence"] ** 2 == pytest.approx(five.max())
    assert got["window_divergence"] ** 2 == pytest.approx(seven.max())
    assert got["cohort_divergence"] == pytest.approx(0, abs=1e-7)  # one client a round
    assert got["participation_norm"] == got["sum_of_squared_weights"] == pytest.approx(1)


def test_expected_cohort_divergence_is_the_average_over_every_pair_of_participants() -> None:
    v = np.random.default_rng(2).normal(size=(4, 2))
    v -= v.mean(axis=0)
    pairs = [np.isin(np.arange(4), p) / 2 for p in product(range(4), repeat=2) if p[0] < p[1]]
    six = np.mean([q @ ((v - q @ v) ** 2).sum(axis=1) for q in pairs])
    got = process_constants(WithoutReplacement(4, 2), Offsets(v), 1, np.array([5]))["cohort_divergence"]
    assert float(np.ravel(got.value)[0]) ** 2 == pytest.approx(six)  # pyright: ignore


PROCESSES = [
    Full(6),
    WithoutReplacement(6, 2),
    Permutation(6, 2),
    PeriodicGroups(6, 1, 3, groups=2),
    GroupMarkov(6, 3, 0.2),
    Cyclic(6, random_phase=True),
    Bernoulli(6, (1.0, 0.5, 0.5, 0.5, 0.5, 0.5)),
]


@pytest.mark.parametrize("process", PROCESSES, ids=lambda p: p.kind)
def test_the_theorem_averaged_over_participation_bounds_the_exact_average(process: Process) -> None:
    problem = random_quadratic(6, 3, heterogeneity=3.0, noise=0.3)
    run = moments(GeneralizedFedAvg(1 / 72, 2, 6.0, 3), problem, process, 60)
    comparison = confront(run, THEOREM)
    assert comparison.label == "exact" and comparison.guarantee and not comparison.covered_crossings.size
    assert 0.01 < comparison.ratio[-1] < 1
    random = not process.certain(60)
    assert comparison.result.key == THEOREM.key + "-expected" * random
    assert comparison.measure.given == ("" if random else "participation")
    assert any("participation is random" in note for note in comparison.notes) == random
    norm = "expected-participation-norm" if random else "participation-norm"
    assert comparison.evaluation.assumptions[norm] == comparison.evaluation.assumptions["weights"] == "checked"


def test_a_bound_with_expected_constants_is_for_the_expectation_over_participation_only() -> None:
    """A record of this process, client 0 alone in all rounds, stays above that bound for ever."""
    process, problem = WithReplacement(4, 2), Quadratic([1.0], np.eye(4)[:, :1], 0.0, [1.0])
    algorithm = GeneralizedFedAvg(1 / 144, 1, 6.0, 12)
    run, alone = moments(algorithm, problem, process, 1200), np.tile(np.eye(4)[0], (1200, 1))
    record, expected = confront(moments(algorithm, problem, alone), THEOREM), confront(run, THEOREM)
    assert float(record.constants["rho"].value) == 1 > float(expected.constants["rho"].value)
    assert record.measured[-1] == pytest.approx(9 / 16) and record.measured[-1] > expected.bound[-1]
    assert record.guarantee and record.result is THEOREM and not record.covered_crossings.size
    assert expected.guarantee and expected.result.key == f"{THEOREM.key}-expected"
    assert expected.evaluation.verdict == "proved" and "weights" in expected.evaluation.assumptions
    unproved = confront(run, THEOREM, "sharp:worst")
    assert not unproved.guarantee and unproved.why_not[0] == (
        f"not proved for random participation: {THEOREM.key} [sharp:worst] holds given the participation; "
        "give form explicit or explicit:any-P or sharp or sharp:tuned"
    )


def test_expected_constants_are_never_larger_than_those_of_the_worst_record() -> None:
    problem, process = random_quadratic(4, 3, heterogeneity=3.0, noise=0.3), WithoutReplacement(4, 2)
    algorithm = GeneralizedFedAvg(1 / 72, 2, 6.0, 3)
    average = confront(moments(algorithm, problem, process, 12), THEOREM)
    records = [process.matrix(12, np.random.default_rng(seed)) for seed in range(20)]
    bounds = [confront(moments(algorithm, problem, q), THEOREM).bound[-1] for q in records]
    assert average.bound[-1] < np.mean(bounds)


def test_a_constant_that_is_given_wins_and_is_marked() -> None:
    comparison = confront(toy_run(), THEOREM, given={"initial_gap": 100.0, "beta": 2.0})
    assert comparison.constants["F"].source == comparison.constants["beta"].source == "given"
    assert comparison.constants["F"].value == 100


# --- assumptions ------------------------------------------------------------------------------------------------


def test_noise_common_to_all_clients_violates_an_unstated_assumption_and_crosses_the_bound() -> None:
    """Erratum: everything that the paper states holds, and the least squared gradient norm is 1/3 for ever."""
    problem, algorithm = Quadratic([1.0], np.zeros((1000, 1)), 1.0, [1.0]), GeneralizedFedAvg(1e-3, 1, 500)
    common = confront(moments(algorithm, problem, Full(1000), 60, noise="common"), THEOREM, "explicit")
    assert common.measured[-1] == pytest.approx(1 / 3, abs=1e-12)
    assert common.valid[-1] and 60 in common.covered_crossings
    assert common.evaluation.assumptions["independent-clients"] == "violated"
    crossed, *others = common.why_not
    assert not common.guarantee and others == ["assumptions violated: independent-clients"]
    assert "inside its conditions" in crossed and crossed.endswith("where it does not hold: independent-clients")
    long = {n: c for n, c in common.constants.items() if n != "T"}
    assert round(float(evaluate(THEOREM, {**long, "T": 1e6}, form="explicit").value), 5) == 0.00203
    own = confront(moments(algorithm, problem, Full(1000), 60), THEOREM, "explicit")
    assert own.guarantee and not own.crossings.size


def test_regularized_participation_is_checked_on_every_aligned_window() -> None:
    def run(q: np.ndarray | Process, interval: int) -> RunComparison:
        return confront_family(COROLLARY_4_3, toy_example(), q, [30], local_steps=1, interval=interval, form="repaired")

    for q in (CYCLES, Cyclic(3), Permutation(3, 1)):
        regular = run(q, 3)
        assert regular.evaluation.assumptions["regularized"] == "checked" and regular.guarantee
        ragged = run(q, 2)
        assert ragged.evaluation.assumptions["regularized"] == "violated" and not ragged.guarantee
    swapped = CYCLES.copy()
    swapped[[28, 29]] = swapped[[29, 29]]  # the last window misses a client
    assert run(swapped, 3).evaluation.assumptions["regularized"] == "violated"


def test_mixing_corollary_is_about_a_process_and_checks_that_it_is_unbiased_and_independent() -> None:
    problem, process = random_quadratic(4, 2, heterogeneity=0.1, noise=0.5, initial_gap=1e-4), WithoutReplacement(4, 2)
    family = confront_family(COROLLARY_4_8, problem, process, [400], local_steps=1, interval=2)
    assert family.form.name == "repaired:integer-P" and family.evaluation.constants["upsilon"].source == "exact"
    assert float(family.evaluation.constants["upsilon"].value) ** 2 == pytest.approx(2 / (2 * 16))
    statuses = family.evaluation.assumptions
    assert statuses["unbiased-sampling"] == statuses["independent-rounds"] == "checked"
    assert family.guarantee and not family.covered_crossings.size
    printed = COROLLARY_4_8.form("printed")
    assert prescribed_algorithm(COROLLARY_4_8, printed, problem, process, 100, local_steps=1).interval == 20
    other = confront_family(COROLLARY_4_8, problem, GroupMarkov(4, 2, 0.3), [400], local_steps=1, interval=2)
    assert other.evaluation.assumptions["independent-rounds"] == "violated" and not other.guarantee
    with pytest.raises(FedboundsError, match="run a process instead"):
        confront_family(COROLLARY_4_8, problem, process.matrix(400, np.random.default_rng(0)), [400], local_steps=1,
                        interval=2, given={"upsilon": 0.25})  # fmt: skip


# --- simulations ------------------------------------------------------------------------------------------------


def test_a_simulation_is_compared_through_its_mean_with_a_standard_error() -> None:
    problem, process, algorithm = four_clients(), WithoutReplacement(4, 2), GeneralizedFedAvg(1 / 48, 2, 6, 2)
    trace = simulate(algorithm, problem, process, 20, seeds=range(200))
    sampled = confront(trace, THEOREM, problem=problem, participation=process)
    exact = confront(moments(algorithm, problem, process, 20), THEOREM)
    assert sampled.label == "mean of 200 seeds" and sampled.standard_error is not None
    assert sampled.bound == pytest.approx(exact.bound, rel=1e-14)
    assert (np.abs(sampled.measured - exact.measured) <= 4 * sampled.standard_error + 1e-12).all()
    assert sampled.standard_error[-1] > 0


def test_the_standard_error_is_that_of_the_round_where_the_minimum_is_attained() -> None:
    problem, algorithm = Quadratic([1.0], [[0.0]], 1.0, [1.0]), FedAvg(0.5, 1)
    trace = simulate(algorithm, problem, Full(1), 30, seeds=range(20))
    comparison = confront(trace, THEOREM, problem=problem, participation=Full(1))
    norms, least = trace.gradient_norm_squared, []
    for T in comparison.rounds:
        at = norms[:, :T].mean(axis=0).argmin()
        least.append((at, norms[:, at].mean(), norms[:, at].std(ddof=1) / 20**0.5))
    assert comparison.measured == pytest.approx([mean for _, mean, _ in least])
    assert comparison.standard_error == pytest.approx([error for _, _, error in least])
    assert any(at < T - 1 for (at, _, _), T in zip(least, comparison.rounds, strict=True))


def test_a_simulation_with_its_participation_held_fixed_is_compared_with_its_record() -> None:
    problem, process, algorithm = four_clients(0.0), WithoutReplacement(4, 2), GeneralizedFedAvg(1 / 48, 2, 6, 2)
    trace = simulate(algorithm, problem, process, 20, seeds=[3], streams={"participation": 7})
    q = process.matrix(20, Streams(0, {"participation": 7}).generator("participation"))
    sampled = confront(trace, THEOREM, problem=problem, participation=process)
    exact = confront(moments(algorithm, problem, q), THEOREM)
    assert sampled.bound == pytest.approx(exact.bound, rel=1e-14)
    assert sampled.measured == pytest.approx(exact.measured, rel=1e-10)
    assert sampled.standard_error is None and sampled.measure.given == "participation"


def test_a_simulation_recorded_now_and_then_says_that_its_minimum_may_be_too_large() -> None:
    problem, process, algorithm = four_clients(0.0), Full(4), GeneralizedFedAvg(1 / 48, 2, 6, 2)
    sampled = confront(
        simulate(algorithm, problem, process, 20, record_every=5), THEOREM, problem=problem, participation=process
    )
    exact = confront(moments(algorithm, problem, process, 20), THEOREM)
    assert sampled.rounds.tolist() == [5, 10, 15, 20]
    assert (sampled.measured >= exact.measured[np.isin(exact.rounds, sampled.rounds)] - 1e-12).all()
    assert "every 5 rounds" in sampled.notes[0]


def test_a_diverged_seed_counts_as_infinite() -> None:
    problem = Quadratic([1.0], [[0.0]], 0.0, [1.0])
    trace = simulate(FedAvg(1e80, 1), problem, Full(1), 8, seeds=[0, 1])
    comparison = confront(trace, THEOREM, problem=problem, participation=Full(1))
    assert trace.statuses == ("diverged", "diverged") and "2 of 2 seeds diverged" in comparison.notes[0]
    assert comparison.measured[-1] == 1 and not comparison.guarantee  # attained before it diverged


def test_a_nonconvex_simulation_has_exact_constants() -> None:
    slopes = np.array([[1.0, 0.0], [-1.0, 0.0]])
    problem = CosineQuadratic(slopes, curvature=0.25, ripple=0.75, noise=0.1, x0=[3.0, 1.0])
    q = np.tile(np.eye(2), (20, 1))
    trace = simulate(GeneralizedFedAvg(1 / 24, 1, 6, 2), problem, q, 40, seeds=range(20))
    comparison = confront(trace, THEOREM, problem=problem, participation=q)
    assert comparison.guarantee and not comparison.covered_crossings.size
    assert float(comparison.constants["beta"].value) == 1


def test_a_family_can_be_simulated() -> None:
    def run(algorithm, T: int):
        return simulate(algorithm, toy_example(), CYCLES, T, seeds=[0])

    horizons = [15, 30]
    sampled = confront_family(COROLLARY_3_2, toy_example(), CYCLES, horizons, local_steps=1, interval=3, run=run)
    exact = confront_family(COROLLARY_3_2, toy_example(), CYCLES, horizons, local_steps=1, interval=3)
    assert sampled.measured == pytest.approx(exact.measured, rel=1e-10)
    assert sampled.bound == pytest.approx(exact.bound, rel=1e-14)
    assert "one run per T" in sampled.notes[-1]


# --- what is refused --------------------------------------------------------------------------------------------


DIFFERENT = random_quadratic(3, 2, shared=False)


def phases_trace():
    return simulate(None, toy_example(), CYCLES, phases=[(FedAvg(0.1, 1), 2), (FedAvg(0.01, 1), 2)])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: confront(toy_run(), COROLLARY_3_2), "sets gamma = .* make the run with gamma = "),
        (
            lambda: confront(moments(FedAvg(0.1, 1), toy_example(), CYCLES), COROLLARY_3_2),
            "sets gamma = .* make the run with gamma = ",
        ),
        (lambda: confront(toy_run(2), THEOREM), "less than one window of interval = 3"),
        (lambda: confront(toy_run(), load("arbitrary-participation/lemma-c.1")), "the result bounds: "),
        (lambda: confront(toy_run(), THEOREM, interval=2), "amplifies every 3 rounds"),
        (lambda: confront(toy_run(), THEOREM, "explict"), "unknown form .* did you mean explicit"),
        (lambda: confront(toy_run(), THEOREM, given={"gama": 1}), "did you mean gamma"),
        (lambda: confront(toy_run(), THEOREM, given={"gama": np.ones(28)}), "did you mean gamma"),
        (
            lambda: confront(moments(WaitMinibatch(0.1, 1, 3), toy_example(), CYCLES), THEOREM),
            "about generalized FedAvg, not wait-minibatch",
        ),
        (
            lambda: confront(moments(FedAvg(0.1, 1), toy_example(), CYCLES * 0.9), THEOREM),
            r"weights q\[0\] sum to 0.9; the theorem needs 1",
        ),
        (
            lambda: confront(moments(FedAvg(0.1, 1), toy_example(), Bernoulli(3, 0.5), 9), THEOREM),
            "the theorem needs weights that sum to one",
        ),
        (
            lambda: confront(moments(FedAvg(0.1, 1), DIFFERENT, WithoutReplacement(3, 1), 9), THEOREM),
            "the Hessians differ.*run a record of it",
        ),
        (
            lambda: confront_family(COROLLARY_4_3, DIFFERENT, CYCLES, [30], local_steps=1, interval=3),
            "has no finite value: the Hessians differ",
        ),
        (lambda: confront_family(THEOREM, toy_example(), CYCLES, [30], local_steps=1), "sets no step sizes"),
        (lambda: confront_family(COROLLARY_3_2, toy_example(), CYCLES, [], local_steps=1), "horizons is empty"),
        (lambda: confront_family(COROLLARY_3_2, toy_example(), CYCLES, [31], local_steps=1), r"in \[1, 30\]"),
        (
            lambda: confront_family(COROLLARY_4_8, four_clients(), WithoutReplacement(4, 2), [99], local_steps=1,
                                    form="printed"),
            "sets P = 19.8997, which is not a whole number",
        ),
        (lambda: confront(phases_trace(), THEOREM, problem=toy_example(), participation=CYCLES), "has phases"),
        (
            lambda: confront(simulate(FedAvg(0.1, 1), toy_example(), CYCLES, 3), THEOREM),
            "give problem= and participation=",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_in_one_line(call: Callable, words: str) -> None:
    with pytest.raises(FedboundsError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


# --- what a guarantee covers ------------------------------------------------------------------------------------


def divided(factor: int) -> Result:
    """Theorem 3.1 as a outside package might have it, with every constant too small."""
    form = THEOREM.form("explicit")
    terms = tuple(replace(term, expression=term.expression / factor) for term in form.terms)
    return replace(THEOREM, forms=(replace(form, terms=terms),), default="explicit")


def test_a_crossing_inside_the_conditions_revokes_the_guarantee_and_leads() -> None:
    run, wrong = moments(FedAvg(0.01, 1), Quadratic([1.0], [[0.0]], 0.0, [1.0]), np.ones((100, 1))), divided(1000)
    unproved = confront(run, wrong)
    assert not unproved.guarantee and "has not proved it" in " ".join(unproved.why_not)
    trusted = confront(run, wrong, trust=[wrong.key])
    assert trusted.covered_crossings.tolist() == list(range(2, 101)) and not trusted.guarantee
    assert trusted.why_not[0] == trusted.revoked
    assert trusted.revoked.startswith(
        "crossed at 99 of 100 T inside its conditions, first at T = 2: this theorem is false"
    )
    assert "smooth (checked)" in trusted.revoked
    assert overlay(trusted).caption.startswith("Crossed at 99 of 100 T inside its conditions")
    right = confront(run, divided(1), trust=[wrong.key])
    assert right.guarantee and not right.revoked and right.evaluation.conditional_on == f"{wrong.key}[explicit]"
    family = confront_family(
        replace(COROLLARY_3_2, forms=(_divided(COROLLARY_3_2.form("explicit"), 1000),), default="explicit"),
        four_clients(), LONG_HALVES, [400, 800], local_steps=2, interval=2, trust=[COROLLARY_3_2.key],
    )  # fmt: skip
    assert family.covered_crossings.tolist() == [400, 800] and not family.guarantee
    assert family.why_not[0].startswith("crossed at 2 of 2 T")


def _divided(form: Form, factor: int) -> Form:
    return replace(form, terms=tuple(replace(term, expression=term.expression / factor) for term in form.terms))


@pytest.mark.parametrize(
    ("process", "covered"),
    [(Full(10), True), (Recorded(np.full((30, 10), 0.1)), True), (WithoutReplacement(10, 2), False)],
)
def test_a_result_that_says_nothing_of_participation_covers_full_participation_only(
    process: Process, covered: bool
) -> None:
    form = THEOREM.form("explicit")
    silent = replace(form, assumptions=tuple(a for a in form.assumptions if not a.participation))
    full = replace(THEOREM, forms=(silent,), default="explicit")
    problem = Quadratic([1.0], np.linspace(-1, 1, 10)[:, None], 0.1, [2.0])
    found = confront(moments(FedAvg(0.01, 2), problem, process, 30), full, trust=[full.key])
    assert found.guarantee == covered, found.why_not
    assert covered or found.why_not[0].startswith(
        "not known to cover this run: the result says nothing of who takes part"
    )
    listed = replace(form, assumptions=(*silent.assumptions, FULL_PARTICIPATION))
    said = confront(moments(FedAvg(0.01, 2), problem, process, 30), replace(full, forms=(listed,)), trust=[full.key])
    assert said.guarantee == covered and said.evaluation.assumptions["full-participation"] == (
        "checked" if covered else "violated"
    )


def test_a_result_whose_paper_brings_no_run_is_not_known_to_cover_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, orphan = divided(1), replace(divided(1), key="nobody/theorem-1")
    with pytest.raises(FedboundsError, match=r"needs .*gamma \("):  # whose step size gamma is, nobody has said
        confront(toy_run(), orphan, trust=[orphan.key])
    read = {name: constant.value for name, constant in confront(toy_run(), ours).constants.items()}
    found = confront(toy_run(), orphan, given=read, trust=[orphan.key])
    assert not found.guarantee and "nobody is not installed as a package (no entry point of" in found.why_not[0]
    with pytest.raises(FedboundsError, match="does not say which algorithm its results are about"):
        confront_family(replace(COROLLARY_3_2, key="nobody/corollary-1"), toy_example(), CYCLES, [30], local_steps=1)
    room = SimpleNamespace(__name__="nobody.run", RUNS=ArbitraryParticipation())
    monkeypatch.setattr(papers, "paper_names", lambda: ["nobody"])
    monkeypatch.setattr(
        papers, "paper_submodule", lambda *where: room if where == ("nobody", "empirical", "run") else None
    )
    assert confront(toy_run(), orphan, trust=[orphan.key]).guarantee
    room.RUNS = ArbitraryParticipation
    with pytest.raises(FedboundsError, match=r"nobody\.run must say RUNS, a fedbounds"):
        confront(toy_run(), orphan)


def test_in_a_console_a_comparison_is_one_line_and_printed_it_is_a_summary():
    run = moments(
        GeneralizedFedAvg(1 / 36, 1, server_multiplier=6, interval=3), toy_example(), np.tile(np.eye(3), (10, 1))
    )
    found = confront(run, "arbitrary-participation/theorem-3.1", "explicit")
    assert "\n" not in repr(found) and "array" not in repr(found) and "at T = 30: measured" in repr(found)
    lines = str(found).splitlines()
    assert lines[0].startswith("arbitrary-participation/theorem-3.1 [explicit], Wang & Ji 2022, Theorem 3.1")
    assert f"run:         {found.label}, T = {int(found.rounds[0])} to 30" in lines
    worst = int(np.argmax(found.ratio))
    ratio = f"worst ratio: {found.ratio[worst]:.3g} at T = {int(found.rounds[worst])}; T = 30: measured "
    assert sum(line.startswith(ratio) for line in lines) == 1
    assert f"guarantee: {found.evaluation.guarantee_text}" in str(found)
    given = next(line for line in lines if line.startswith("given:"))
    assert "I = 1" in given and "eta = 6" in given
