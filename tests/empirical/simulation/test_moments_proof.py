"""Theorem 3.1 and the steps of its proof (Wang & Ji 2022, Appendix C) on exact moments: searches for a violation.

A step survives if no instance violates it. How much that means is measured by planting errors: for each term, the
largest factor that, put in front of it, some instance would have exposed (1 is a tight step, 0.1 one that is loose by
ten). The lemmas carry the weight; on random instances the theorem itself is loose by two orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation, evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.run import TrajectoryQuantities, trajectory_quantities
from fedbounds.empirical.problems import Quadratic, random_quadratic
from fedbounds.empirical.simulation.moments import Moments, moments

THEOREM = load("arbitrary-participation/theorem-3.1")
LEMMA_C1 = load("arbitrary-participation/lemma-c.1")
LEMMA_C2 = load("arbitrary-participation/lemma-c.2")
WINDOW = load("arbitrary-participation/equation-c.16")


@dataclass(frozen=True)
class Instance:
    """Generalized FedAvg on quadratics with one Hessian, within the caps of Theorem 3.1."""

    problem: Quadratic
    algorithm: GeneralizedFedAvg
    q: np.ndarray

    def run(self) -> tuple[Moments, TrajectoryQuantities]:
        return moments(self.algorithm, self.problem, self.q), trajectory_quantities(
            self.algorithm, self.problem, self.q
        )

    def constants(self) -> dict[str, float]:
        """L, I, P, gamma, eta, sigma and rho: what all steps share."""
        algorithm, stated = self.algorithm, self.problem.constants()
        return {
            "L": float(stated["smoothness"].value),  # pyright: ignore
            "sigma": float(stated["gradient_noise"].value),  # pyright: ignore
            "I": algorithm.local_steps,
            "P": algorithm.interval,
            "gamma": algorithm.local_step_size,
            "eta": algorithm.server_multiplier,
            "rho": float(np.sqrt((self.q**2).sum(axis=1).max())),
        }


def pattern(kind: str, rounds: int, clients: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "one client":
        return np.eye(clients)[rng.integers(clients, size=rounds)]
    if kind == "everyone":
        return np.full((rounds, clients), 1 / clients)
    if kind == "halves":
        groups = np.arange(clients) < (clients + 1) // 2
        rows = np.stack([groups, ~groups if (~groups).any() else groups]) * 1.0
        rows = rows / rows.sum(axis=1, keepdims=True)
        return rows[np.arange(rounds) % 2]
    return rng.dirichlet(np.full(clients, 0.5), size=rounds)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    clients, dimension = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    I, P, windows = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    rounds = P * windows + draw(st.integers(0, P - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    smoothness = draw(st.sampled_from([0.1, 1.0, 20.0]))
    spectrum = smoothness * np.append(1.0, rng.uniform(0, 1, dimension - 1))
    centers = draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.normal(size=(clients, dimension))
    noise = draw(st.sampled_from([0.0, 0.1, 1.0])) * smoothness
    q = pattern(draw(st.sampled_from(["one client", "everyone", "halves", "any"])), rounds, clients, rng)
    gamma = draw(st.sampled_from([1.0, 0.3, 0.01])) / (12 * smoothness * I * P)
    eta = draw(st.sampled_from([1.0, 0.5, 0.02])) / (2 * smoothness * I * P * gamma)
    problem = Quadratic(spectrum, centers, noise, rng.normal(size=dimension))
    return Instance(problem, GeneralizedFedAvg(gamma, I, eta, P), q)


def per_round(
    instance: Instance, run: Moments, along: TrajectoryQuantities
) -> tuple[Evaluation, Evaluation, dict, dict]:
    """Both lemmas, printed, at every round: their right sides, and left sides at the worst local step."""
    starts = np.arange(len(instance.q)) // instance.algorithm.interval * instance.algorithm.interval
    shared = instance.constants() | {"sumsq": np.minimum((instance.q**2).sum(axis=1), 1.0)}
    nu = np.sqrt(along.cohort.max(axis=1))
    first = {n: shared[n] for n in ("L", "I", "P", "gamma", "sigma", "sumsq")} | {"nu": nu}
    second = {n: shared[n] for n in ("L", "I", "P", "gamma", "sigma", "rho", "sumsq")} | {
        "nu": np.sqrt(along.cohort.max()),
        "beta": np.sqrt(along.participation.max()),
        "gradsq": run.gradient_norm_squared[starts],
    }
    return evaluate(LEMMA_C1, first, form="printed"), evaluate(LEMMA_C2, second, form="printed"), first, second


@given(instances())
@settings(max_examples=200)
def test_lemma_c1_and_lemma_c2_hold_at_every_round_and_local_step(instance: Instance) -> None:
    run, along = instance.run()
    c1, c2, first, second = per_round(instance, run, along)
    assert c1.valid.all() and c2.valid.all()
    for bound in (c1.value, evaluate(LEMMA_C1, first, form="sharp").value):
        assert (along.spread <= bound[:, None] * (1 + 1e-9) + 1e-25).all()
    for bound in (c2.value, evaluate(LEMMA_C2, second, form="sharp").value):
        assert (along.drift <= bound[:, None] * (1 + 1e-9) + 1e-25).all()


@given(instances())
@settings(max_examples=200)
def test_one_window_of_the_proof_holds_before_telescoping(instance: Instance) -> None:
    run, along = instance.run()
    P = instance.algorithm.interval
    starts = np.arange(len(instance.q) // P) * P
    constants = instance.constants() | {
        "nu": np.sqrt(along.cohort.max()),
        "beta": np.sqrt(along.participation.max()),
        "delta": np.sqrt(along.window),  # each window's own
        "decrease": run.objective_gap[starts] - run.objective_gap[starts + P],
    }
    window = evaluate(WINDOW, constants)
    assert window.valid.all()
    assert (run.gradient_norm_squared[starts] <= window.value * (1 + 1e-9) + 1e-25).all()


@given(instances(), st.data())
@settings(max_examples=100)
def test_theorem_bounds_are_never_below_the_exact_value(instance: Instance, data: st.DataObject) -> None:
    run, _ = instance.run()
    special = {"explicit:any-P", "explicit:sumsq", "sharp:worst", "sharp:initial-gap"}
    special |= {"explicit:I=1"} if instance.algorithm.local_steps == 1 else set()
    special |= {"explicit:I=P=1"} if instance.algorithm.local_steps == instance.algorithm.interval == 1 else set()
    for form in ("explicit", "sharp", data.draw(st.sampled_from(sorted(special, reverse=True)))):
        comparison = confront(run, THEOREM, form)
        assert comparison.valid[-1] and comparison.guarantee, comparison.why_not
        assert not comparison.covered_crossings.size, form


@given(instances())
@settings(max_examples=30)
def test_without_amplification_every_interval_of_the_analysis_gives_a_bound(instance: Instance) -> None:
    run = moments(
        FedAvg(instance.algorithm.local_step_size, instance.algorithm.local_steps), instance.problem, instance.q
    )
    for interval in range(1, instance.algorithm.interval + 1):
        comparison = confront(run, THEOREM, interval=interval)
        assert comparison.guarantee and not comparison.covered_crossings.size


@pytest.mark.parametrize("seed", range(12))
def test_trajectory_constants_bound_runs_with_different_hessians(seed: int) -> None:
    """With different Hessians the divergences are infinite, yet the theorem holds with those along the run."""
    rng = np.random.default_rng(seed)
    N, I, P, rounds = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4)), 12
    problem = random_quadratic(
        N, 3, heterogeneity=2.0, shared=False, diagonal=seed % 2 == 0, noise=0.2 * (seed % 3), seed=seed
    )
    gamma = 1 / (12 * I * P)
    q = pattern(["one client", "halves", "any"][seed % 3], rounds, N, rng)
    comparison = confront(moments(GeneralizedFedAvg(gamma, I, 6.0, P), problem, q), THEOREM)
    assert comparison.valid[-1] and not comparison.covered_crossings.size
    assert not comparison.guarantee and "nu is known only along one run" in comparison.why_not


# --- what the searches would have caught -------------------------------------------------------------------------


def smallest_planted_errors(left: np.ndarray, evaluation: Evaluation) -> dict[str, float]:
    """For each term, the largest factor in front of it alone that makes the left side exceed the rest somewhere."""
    total = np.broadcast_to(evaluation.value, left.shape)
    factors = {}
    for name, term in evaluation.terms.items():
        here = np.broadcast_to(term, left.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors[name] = float(np.nanmax(np.where(here > 0, (left - (total - here)) / here, -np.inf)))
    return factors


def lone(noise: float = 0.0, curvature: float = 1.0, x0: float = 0.0, apart: float = 0.0) -> Quadratic:
    """Two clients on a line with centers at -apart and apart."""
    return Quadratic([curvature], [[-apart], [apart]], noise, [x0])


BOTH, FIRST = np.full((8, 2), 0.5), np.eye(2)[[0] * 8]
STEP = 1 / (12 * 8 * 4)  # the largest admissible for L = 1, I = 8, P = 4
FLAT = GeneralizedFedAvg(1000 * STEP, 8, 1.0, 4)  # for curvature 1/1000, where noise only adds up
ROUND = GeneralizedFedAvg(STEP, 8, 1.0, 4)
BOLD = GeneralizedFedAvg(1e-4, 1, 5e3)  # no drift, and the largest admissible step
LEMMA_INSTANCES = [  # one cause of drift alone is at work in each
    Instance(lone(noise=1.0, curvature=1e-3), FLAT, BOTH),
    Instance(lone(noise=1.0, curvature=1e-3), FLAT, FIRST),
    Instance(lone(apart=1.0), ROUND, BOTH),
    Instance(lone(apart=1.0), ROUND, FIRST),
    Instance(lone(x0=1.0), ROUND, BOTH),
]
LONG = np.tile(FIRST, (50, 1))
THEOREM_INSTANCES = {
    "initial gap": Instance(Quadratic([1.0, 1 / 60], np.zeros((2, 2)), 0.0, [0, 1]), BOLD, BOTH[[0] * 60]),
    "window divergence": Instance(lone(apart=1.0, x0=-1.0), BOLD, LONG),
    "update noise": Instance(lone(noise=1.0, x0=1.0), BOLD, LONG),
}


def worst(found: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
    return {name: max(found.get(name, -np.inf), value) for name, value in new.items()}


def test_the_smallest_planted_errors_that_the_lemmas_would_show() -> None:
    first: dict[str, float] = {}
    second: dict[str, float] = {}
    for instance in LEMMA_INSTANCES:
        run, along = instance.run()
        c1, c2, _, _ = per_round(instance, run, along)
        first = worst(first, smallest_planted_errors(along.spread.max(axis=1), c1))
        second = worst(second, smallest_planted_errors(along.drift.max(axis=1), c2))
    # (C.5): 1 instead of 18 in front of nu would be exposed, and 1 instead of 3 in front of the noise.
    assert first == pytest.approx({"cohort divergence": 1 / 18, "noise": 1 / 3}, rel=0.03)
    # (C.8): 1 instead of 24 in front of beta and of the gradient, 1 instead of 3 in front of the noise. Its term in nu
    # only pays for what Lemma C.1 lets the local models spread: on quadratics with one Hessian they pull evenly.
    assert second["participation divergence"] == pytest.approx(1 / 24, rel=0.1)
    assert second["gradient"] == pytest.approx(1 / 24, rel=0.1)
    assert second["noise"] == pytest.approx(1 / 3, rel=0.1)
    assert second["cohort divergence"] == 0


@pytest.mark.parametrize(
    ("term", "explicit", "sharp"),
    [("initial gap", 0.045, 0.17), ("window divergence", 0.16, 0.33), ("update noise", 0.16, 0.33)],
)
def test_the_smallest_planted_errors_that_the_theorem_would_show(term: str, explicit: float, sharp: float) -> None:
    run, _ = THEOREM_INSTANCES[term].run()
    for form, factor in (("explicit", explicit), ("sharp", sharp)):
        comparison = confront(run, THEOREM, form)
        assert comparison.guarantee
        found = smallest_planted_errors(comparison.measured[-1:], comparison.evaluation)[term]
        assert found == pytest.approx(factor, rel=0.1)


# --- enumeration ------------------------------------------------------------------------------------------------


def enumerated(problem: Quadratic, q: np.ndarray, gamma: float, I: int, eta: float, P: int) -> TrajectoryQuantities:
    """The same expectations as plain averages over every sequence of signs of the noise."""
    N, d, T = problem.clients, problem.dimension, len(q)
    A, c = np.stack([problem.hessian(n).numpy() for n in range(N)]), problem.centers.numpy()
    draws = T * N * I * d
    signs = 1.0 - 2.0 * (np.arange(2**draws)[:, None] >> np.arange(draws) & 1)
    noise = problem.noise * signs.reshape(-1, T, N, I, d)

    def gradients(x: np.ndarray) -> np.ndarray:  # (N, outcomes, d)
        return np.stack([(x - c[n]) @ A[n] for n in range(N)])

    def square(x: np.ndarray) -> np.ndarray:
        return (x**2).sum(axis=-1).mean(axis=-1)

    spread, drift, cohort = np.zeros((T, I + 1)), np.zeros((T, I + 1)), np.zeros((T, I))
    participation, window = np.zeros(T), np.zeros(T // P)
    x = start = np.tile(problem.x0.numpy(), (len(signs), 1))
    for t in range(T):
        at_start = gradients(start) - gradients(start).mean(axis=0)
        participation[t] = square(np.tensordot(q[t], at_start, 1))
        if t % P == 0 and t + P <= T:
            window[t // P] = square(np.tensordot(q[t : t + P].mean(axis=0), at_start, 1))
        y = np.repeat(x[None], N, axis=0)
        for i in range(I + 1):
            mean = np.tensordot(q[t], y, 1)
            spread[t, i], drift[t, i] = q[t] @ square(y - mean), square(mean - start)
            if i < I:
                here = gradients(mean)
                cohort[t, i] = q[t] @ square(here - np.tensordot(q[t], here, 1))
                y = np.stack([y[n] - gamma * ((y[n] - c[n]) @ A[n] + noise[:, t, n, i]) for n in range(N)])
        x = np.tensordot(q[t], y, 1)
        if (t + 1) % P == 0:
            x = start = start + eta * (x - start)
    return TrajectoryQuantities(spread, drift, cohort, participation, window, P)


@pytest.mark.parametrize(
    "hessians", [[[1.2, 0.5], [0.5, 0.7]], [[[1.2, 0.5], [0.5, 0.7]], [[0.3, -0.2], [-0.2, 2.0]]],
                 [[[0.5, 0], [0, 1]], [[2, 0], [0, 0.1]]]]
)  # fmt: skip
def test_what_the_proof_bounds_agrees_with_every_outcome_of_the_noise(hessians: list) -> None:
    problem = Quadratic(hessians, [[1.0, -2.0], [0.5, 3.0]], 0.8, [2.0, 1.0])
    for q, I, P in (
        ([[0.3, 0.7], [0.6, 0.4]], 2, 1),
        ([[0.3, 0.7], [0.6, 0.4]], 2, 2),
        ([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5], [0.1, 0.9]], 1, 2),
    ):
        ours = trajectory_quantities(GeneralizedFedAvg(0.3, I, 1.7, P), problem, np.array(q))
        exact = enumerated(problem, np.array(q), 0.3, I, 1.7, P)
        for name in ("spread", "drift", "cohort", "participation", "window"):
            assert getattr(ours, name) == pytest.approx(getattr(exact, name), rel=1e-11, abs=1e-13), name


def test_trajectory_constants_are_prefixes_of_the_run() -> None:
    run = TrajectoryQuantities(
        np.zeros((4, 2)), np.zeros((4, 2)), np.array([[1.0], [4.0], [2.0], [9.0]]),
        np.array([4.0, 1.0, 16.0, 1.0]), np.array([1.0, 7.0]), interval=2,
    )  # fmt: skip
    at = {name: constant.value for name, constant in run.constants(np.array([2, 3, 4])).items()}
    assert np.asarray(at["cohort_divergence"]).tolist() == [2, 2, 3]
    assert np.asarray(at["participation_divergence"]).tolist() == [2, 4, 4]
    assert np.asarray(at["window_divergence"]).tolist() == [1, 1, 7**0.5]  # the largest complete window, not the mean
    assert {constant.source for constant in run.constants().values()} == {"trajectory"}
    with pytest.raises(FedboundsError, match="rounds = 1 hold no complete window"):
        run.constants(1)


# --- golden numbers ---------------------------------------------------------------------------------------------


def test_left_sides_of_the_lemmas_are_the_golden_ones() -> None:
    problem = Quadratic([1.0, 0.25], [[2, 0], [-2, 4], [0, -4], [0, 0]], 0.5, [3, -2])
    q = np.tile([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], (4, 1))
    instance = Instance(problem, GeneralizedFedAvg(1 / 48, 2, 6, 2), q)
    run, along = instance.run()
    assert along.spread[0] == pytest.approx([0, 0.001953125, 0.0074465054], abs=0.51e-10)
    drift = [*along.drift[0, 1:], along.drift[1, 1]]
    assert drift == pytest.approx([0.0044487847, 0.0172424684, 0.0357429803], abs=0.51e-10)
    c1, c2, _, _ = per_round(instance, run, along)
    assert c1.value[0] == pytest.approx(0.1334635417, abs=0.51e-10)
    assert c2.value[0] == pytest.approx(1.6068793403, abs=0.51e-10)
    assert along.cohort.max() == pytest.approx(17 / 4) and along.participation.max() == pytest.approx(1 / 4)
    assert along.window == pytest.approx(0.0, abs=1e-30)
