"""Objectives with weights, f = sum_n p_n F_n: against a mean over more clients, and against recursions by hand."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.compare_sweep import confront_sweep
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.comparison.recorder import Recorder
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import cut_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.divergences import Bounds, Products, Within
from fedbounds.empirical.papers.fedau.algorithms import FedAU
from fedbounds.empirical.participation import (
    Bernoulli,
    Full,
    Recorded,
    SampleWeighted,
    WithoutReplacement,
    process_from_spec,
)
from fedbounds.empirical.problems import (
    ImageClassification,
    ModelOnData,
    Problem,
    Quadratic,
    ScaledObjectives,
    problem_from_spec,
)
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.sweep import resolve
from fedbounds.empirical.sweep.runs import plan

N, D, CLIENTS = 4, 3, 12  # clients, dimension, and clients with those that never participate
P = np.array([0.1, 0.2, 0.3, 0.4])
THEOREM = "arbitrary-participation/theorem-3.1"


def quadratics(shared: bool, diagonal: bool, noise: float = 0.1) -> tuple[Quadratic, Quadratic]:
    """A weighted quadratic, and its mean over more clients, of which the others have a mean of the functions."""
    rng = np.random.default_rng(7)
    roots = rng.standard_normal((N, D, D))
    hessians = roots @ roots.transpose(0, 2, 1) / 4 + 0.2 * np.eye(D)
    hessians = hessians * np.eye(D) if diagonal else hessians
    hessians = np.broadcast_to(hessians[:1], hessians.shape) if shared else hessians
    centers = rng.standard_normal((N, D))
    share = (CLIENTS * P - 1) / (CLIENTS - N)
    mean = np.tensordot(share, hessians, 1)
    center = np.linalg.solve(mean, np.einsum("n,nij,nj->i", share, hessians, centers))
    others = CLIENTS - N
    weighted = Quadratic(hessians, centers, noise, np.ones(D), client_weights=30 * P)
    plain = Quadratic(
        hessians[0] if shared else np.concatenate([hessians, np.tile(mean, (others, 1, 1))]),
        np.concatenate([centers, np.tile(center, (others, 1))]),
        noise,
        np.ones(D),
    )
    return weighted, plain


def records(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the clients, and the same with clients that never participate."""
    q = np.random.default_rng(3).dirichlet(np.ones(N), rounds)
    return q, np.concatenate([q, np.zeros((rounds, CLIENTS - N))], axis=1)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
def test_weights_are_those_of_a_mean_over_more_clients(shared, diagonal):
    weighted, plain = quadratics(shared, diagonal)
    x = torch.randn(5, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for name in ("objective_gradient", "objective_gap"):
        torch.testing.assert_close(getattr(weighted, name)(x), getattr(plain, name)(x), rtol=1e-11, atol=1e-11)
    known, wanted = weighted.constants(), plain.constants()
    for name in ("initial_gap", "gradient_noise", "gradient_divergence_sup"):
        ours, theirs = (getattr(each[name], "value", np.nan) for each in (known, wanted))
        assert ours == pytest.approx(theirs, rel=1e-10, nan_ok=True)
    algorithm, (q, wider) = GeneralizedFedAvg(0.01, 3, 2.0, 3), records(12)
    run, other = moments(algorithm, weighted, q), moments(algorithm, plain, wider)
    np.testing.assert_allclose(run.gradient_norm_squared, other.gradient_norm_squared, rtol=1e-11)
    ours, theirs = (confront(each, THEOREM, "explicit") for each in (run, other))
    np.testing.assert_allclose(ours.bound, theirs.bound, rtol=1e-10)
    for name in ("nu", "beta", "delta", "rho", "F"):
        assert float(np.ravel(ours.constants[name].value)[-1]) == pytest.approx(
            float(np.ravel(theirs.constants[name].value)[-1]), rel=1e-9
        )
    assert ours.guarantee is theirs.guarantee is shared


def test_every_form_about_participants_alone_covers_weights_and_no_other():
    weighted, _ = quadratics(True, True)
    run = moments(FedAvg(0.01, 3), weighted, np.tile(P, (8, 1)))
    covered = [form.name for form in load(THEOREM).forms if not _uncovered(run, THEOREM, form.name)]
    assert covered == [form.name for form in load(THEOREM).forms]
    for key in ("corollary-4.3", "proposition-4.2", "equation-15"):
        names = {a.name for form in load(f"arbitrary-participation/{key}").forms for a in form.assumptions}
        assert names & {"bounded-divergence", "regularized"}
    from fedbounds.empirical.papers.arbitrary_participation.run import RUNS

    assert not any(RUNS.covers_client_weights(f) for f in load("arbitrary-participation/corollary-4.3").forms)
    assert not any(RUNS.covers_client_weights(f) for f in load("arbitrary-participation/corollary-4.8").forms)


def _uncovered(run, key: str, form: str) -> bool:
    return any("client_weights" in reason for reason in confront(run, key, form, assume="all").why_not)


def test_results_about_means_do_not_cover_weights():
    weighted, _ = quadratics(True, True, 0.0)
    run = simulate(FedAU(0.01, 2, 1.0, cutoff=10), weighted, Bernoulli(N, 0.6), 30, seeds=[0, 1])
    given = {"G": 9, "delta": 9}
    found = confront(run, "fedau/theorem-2", problem=weighted, participation=Bernoulli(N, 0.6), given=given)
    assert not found.guarantee and "N p_n F_n (problem kind 'scaled')" in found.why_not[0]
    scaled = ScaledObjectives(weighted)
    run = simulate(FedAU(0.01, 2, 1.0, cutoff=10), scaled, Bernoulli(N, 0.6), 30, seeds=[0, 1])
    found = confront(run, "fedau/theorem-2", problem=scaled, participation=Bernoulli(N, 0.6), given=given)
    assert not any("not known to cover" in reason for reason in found.why_not)


def test_scaled_objectives_are_steps_of_their_own_length():
    weighted, _ = quadratics(False, False, 0.0)
    scaled, gamma, x = ScaledObjectives(weighted), 0.02, np.ones(D)
    run = simulate(FedAvg(gamma, 3), scaled, Full(N), 40, seeds=[0], record_models=True)
    for t in range(41):
        np.testing.assert_allclose(run.arrays["model"][0, t], x, rtol=1e-12)
        ends = []
        for n in range(N):
            y = x
            for _ in range(3):
                y = y - gamma * N * P[n] * weighted.hessian(n).numpy() @ (y - weighted.centers[n].numpy())
            ends.append(y)
        x = np.mean(ends, axis=0)


def test_one_local_step_on_scaled_objectives_is_one_with_weights_at_the_server():
    weighted, _ = quadratics(False, True)
    (q, _), drawn = records(20), {"seeds": [0], "engine": "sequential"}
    on_server = simulate(FedAvg(0.05, 1), weighted, Recorded(q * N * P), 20, **drawn)
    at_clients = simulate(FedAvg(0.05, 1), ScaledObjectives(weighted), Recorded(q), 20, **drawn)
    np.testing.assert_allclose(on_server.gradient_norm_squared, at_clients.gradient_norm_squared, rtol=1e-10)


def test_constants_of_scaled_objectives():
    weighted, _ = quadratics(True, True)
    own, scaled = weighted.constants(), ScaledObjectives(weighted).constants()
    assert scaled["smoothness"].value == pytest.approx(1.6 * own["smoothness"].value)
    assert scaled["strong_convexity"].value == pytest.approx(0.4 * own["strong_convexity"].value)
    assert scaled["initial_gap"] == own["initial_gap"]
    assert "bounded" in scaled["gradient_divergence_sup"].why
    x = torch.ones(1, N, D, dtype=torch.float64)
    mean = ScaledObjectives(weighted).gradient(x, torch.arange(N)[None])[0].mean(0)
    torch.testing.assert_close(mean, weighted.objective_gradient(x[0, 0]))
    with pytest.raises(FedboundsError, match="no client_weights: without them its objective is a mean already"):
        ScaledObjectives(Quadratic([1.0], [[0.0], [1.0]]))


@pytest.fixture(scope="module")
def uneven() -> tuple[ImageClassification, ImageClassification]:
    """Logistic regression on 5, 15 and 60 samples, with weights by samples and with equal ones."""
    digits = load_dataset("digits")
    labels = digits.train_labels
    rest = len(labels) - 80
    partition = cut_partition(labels, [5, 15, 60, rest], np.random.default_rng(0).permutation(len(labels)))
    kinds = {"batch": 4, "gradient_norm": True, "dtype": torch.float64}
    make = [ImageClassification(digits, partition, "linear", client_weights=w, **kinds) for w in ("samples", None)]
    return make[0], make[1]


def test_weights_by_samples_give_the_mean_over_all_samples(uneven):
    problem, equal = uneven
    x = torch.randn(1, problem.dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) / 8
    losses, hits = problem._losses_hits(x[0], problem._images, problem._labels)
    found = problem.metrics_and_products(x)
    assert float(problem.objective(x)) == pytest.approx(losses.mean(), rel=1e-12)
    assert float(found["train_loss"]) == pytest.approx(losses.mean(), rel=1e-12)
    assert float(found["train_accuracy"]) == pytest.approx(hits.mean(), rel=1e-12)
    each = problem.gradient(x.expand(4, -1)[None], torch.arange(4)[None])[0]
    torch.testing.assert_close(problem.objective_gradient(x)[0], torch.from_numpy(problem.client_weights) @ each)
    whole = float(found["gradient_norm_squared"]), float(problem.metrics(x)["gradient_norm_squared"])
    assert whole[0] == pytest.approx(whole[1], rel=1e-10)
    products = Products(found["gradient_products"][0].numpy(), problem.client_weights)
    away = ((each[1] - problem.objective_gradient(x)[0]) ** 2).sum()
    assert float(products.combined(np.eye(4)[1:2])[0]) == pytest.approx(float(away), rel=1e-9)
    assert abs(float(equal.objective(x)) / losses.mean() - 1) > 1e-4  # the weights matter


def test_bounds_of_logistic_regression_hold_with_weights(uneven):
    problem, _ = uneven
    known, p = problem.constants(), problem.client_weights
    for scale in (0.1, 1, 30, 1000):
        x = scale * torch.randn(problem.dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        each = problem.gradient(x.expand(1, 4, -1), torch.arange(4)[None])[0].numpy()
        mean = p @ each
        assert np.linalg.norm(mean) <= known["gradient_bound"].value
        assert np.linalg.norm(each - mean, axis=1).max() <= known["gradient_divergence_sup"].value
        weights = np.array([[0.7, 0, 0.3, 0]])
        assert np.sum((weights[0] @ each - mean) ** 2) <= Bounds(problem.softmax.gradients, p).combined(weights)[0]


def test_bounds_from_gradients_are_attained_by_signs(uneven):
    problem, _ = uneven
    b, p, c = problem.softmax.gradients, problem.client_weights, np.array([0.7, 0.0, 0.3, 0.0])
    signed = np.array(list(itertools.product((-1, 1), repeat=N))) * b  # gradients in one dimension
    assert Bounds(b, p).combined(c[None])[0] == pytest.approx(((signed @ (c - p)) ** 2).max(), rel=1e-12)
    apart = np.abs(signed - (signed @ p)[:, None]).max()
    assert problem.constants()["gradient_divergence_sup"].value == pytest.approx(apart, rel=1e-12)


def test_any_model_takes_weights_by_samples():
    data = [(torch.tensor([[1.0]]), torch.tensor([2.0])), (torch.ones(3, 1), torch.zeros(3))]
    problem = ModelOnData(lambda x, a, b: (a @ x - b) ** 2, data, torch.zeros(1), client_weights="samples")
    x = torch.tensor([0.5])
    assert float(problem.objective(x)) == pytest.approx((1.5**2 + 3 * 0.5**2) / 4)
    assert float(problem.objective_gradient(x)) == pytest.approx((-3 + 3 * 1) / 4)


@pytest.mark.parametrize("weights", [None, P])
def test_a_bound_on_divergences_from_d_is_attained(weights):
    rng, p = np.random.default_rng(5), np.full(N, 1 / N) if weights is None else weights
    for row in rng.dirichlet(np.ones(N) / 2, 20):
        least = linprog(-row, A_eq=p[None], b_eq=[0], bounds=[(-1, 1)] * N)  # offsets in one dimension, |v_n| <= 1
        assert Within(1.0, weights).combined(row[None])[0] == pytest.approx(least.fun**2, abs=1e-12)
        v = rng.uniform(-1, 1, N)
        v = v - p @ v
        v /= np.abs(v).max()
        assert (row @ v) ** 2 <= Within(1.0, weights).combined(row[None])[0] + 1e-12
        covariance = np.diag(row * 0.01)
        expected = (row @ v) ** 2 + v @ covariance @ v
        assert expected <= Within(1.0, weights).expected(row, covariance, True) + 1e-12


def test_a_recorded_loop_is_the_simulation():
    weighted, _ = quadratics(True, False, 0.0)
    q = np.tile(P, (20, 1))
    run = simulate(FedAvg(0.05, 2), weighted, Recorded(q), 20, seeds=[0], record_models=True)
    clients = torch.arange(N)[None]
    recorder = Recorder(FedAvg(0.05, 2), N, client_weights=P * 50)
    models = torch.from_numpy(run.arrays["model"][0])
    gradients = [weighted.gradient(x.expand(1, N, -1), clients)[0].numpy() for x in models]
    for x, own in zip(models[:-1], gradients, strict=False):
        recorder.round(P, x, gradients=own)
    trace = recorder.trace(models[-1], gradients=gradients[-1])
    np.testing.assert_allclose(trace.gradient_norm_squared, run.gradient_norm_squared, rtol=1e-9, atol=1e-14)
    log = {"round": np.arange(21), "gradients": np.array(gradients)}
    read = read_log(log, FedAvg(0.05, 2), "full", clients=N, client_weights=50 * P)
    np.testing.assert_allclose(read.gradient_norm_squared, run.gradient_norm_squared, rtol=1e-9, atol=1e-14)
    given = {"L": 2, "F": float(weighted.objective_gap(weighted.x0)), "sigma": 0, "nu": 5}
    for made in (trace, read):
        found = confront(made, THEOREM, "explicit", given=given)
        exact = confront(run, THEOREM, "explicit", problem=weighted, participation=Recorded(q), given=given)
        assert float(np.ravel(found.constants["delta"].value)[-1]) == pytest.approx(0, abs=1e-7)
        np.testing.assert_allclose(found.bound, exact.bound, rtol=1e-7)
    with pytest.raises(FedboundsError, match="unless client_weights= gives others"):
        read_log(log | {"gradient_norm_squared": read.gradient_norm_squared[0]}, FedAvg(0.05, 2), "full", clients=N)


def test_updates_are_averaged_by_samples():
    full = SampleWeighted(Full(N), 10 * P)
    np.testing.assert_allclose(full.matrix(3, np.random.default_rng(0)), np.tile(P, (3, 1)))
    np.testing.assert_allclose(full.mean(1), P)
    assert full.certain(9) and not full.covariance(0, 1).any()
    some, plain = SampleWeighted(WithoutReplacement(N, 2), P), WithoutReplacement(N, 2)
    q, there = (process.matrix(50, np.random.default_rng(4)) for process in (some, plain))
    np.testing.assert_allclose(q, there * P / (there * P).sum(1, keepdims=True))
    assert process_from_spec(some.spec()).spec() == some.spec()
    with pytest.raises(FedboundsError, match="no closed form: give a record"):
        some.mean(0)
    with pytest.raises(FedboundsError, match=r"expected \(4,\)"):
        SampleWeighted(Full(N), [1, 2])


def test_tables_of_a_specification():
    table = {"kind": "quadratic", "clients": 3, "dimension": 2, "client_weights": [1, 2, 5]}
    problem = problem_from_spec(table)
    assert isinstance(problem, Quadratic) and problem.client_weights.tolist() == [1 / 8, 1 / 4, 5 / 8]
    assert problem.constants()["gradient_divergence_sup"].value == pytest.approx(1)  # the table's heterogeneity
    scaled = problem_from_spec({"kind": "scaled", "problem": table})
    assert isinstance(scaled, ScaledObjectives) and isinstance(scaled, Problem)
    for wrong, message in (
        ([1, 2], r"shape \(2,\); expected \(3,\)"),
        ([1, 0, 1], r"client_weights\[1\] = 0 must be positive"),
        ("samples", "must be a list of 3 positive numbers"),
    ):
        with pytest.raises(FedboundsError, match=message):
            problem_from_spec(table | {"client_weights": wrong})


def test_a_sweep_weighs_updates_as_its_problem(tmp_path):
    spec = {
        "rounds": 6,
        "seeds": [1],
        "problem": {"kind": "images", "clients": 6, "network": "linear", "partition": "dirichlet",
                    "client_weights": "samples", "gradient_norm": True},
        "participation": {"kind": "sample-weighted", "process": {"kind": "full", "clients": 6}},
        "algorithm": {"kind": "fedavg", "local_step_size": 0.01, "local_steps": 2},
    }  # fmt: skip
    sweep = resolve({"name": "weighted", **spec})
    (comparison,) = confront_sweep(sweep, load(THEOREM), "explicit", results=tmp_path).values()
    problem = problem_from_spec(spec["problem"])
    assert isinstance(problem, ImageClassification)
    shares = problem.partition.sizes / problem.partition.sizes.sum()
    run = simulate(FedAvg(0.01, 2), problem, SampleWeighted(Full(6), shares), 6, seeds=[1])
    assert comparison.measured[-1] == pytest.approx(run.gradient_norm_squared[0, :6].min(), rel=1e-4)
    assert any("with the given weights" in note for note in comparison.notes)
    assert float(np.ravel(comparison.constants["delta"].value)[-1]) == pytest.approx(0, abs=1e-4)
    for table, message in (
        ({"problem": {"kind": "quadratic", "clients": 6, "dimension": 2}}, "the problem has no client_weights"),
        ({"participation": spec["participation"] | {"client_weights": [1, 2]}}, "expected"),
    ):
        with pytest.raises(FedboundsError, match=message):
            plan(resolve({"name": "weighted", **spec, **table}))
