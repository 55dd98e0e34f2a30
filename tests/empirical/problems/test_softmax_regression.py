"""Logistic regression on real images: every constant lies above what is measured, and the bound is a guarantee."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import RunComparison, confront
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.divergences import Bounds
from fedbounds.empirical.papers.arbitrary_participation.run import divergences_of
from fedbounds.empirical.papers.fedau.algorithms import AverageAll, KnownParticipation
from fedbounds.empirical.participation import Bernoulli, Cyclic, Full, GroupMarkov, Process, WithoutReplacement
from fedbounds.empirical.problems import ImageClassification
from fedbounds.empirical.problems.softmax import SoftmaxRegression, without_replacement
from fedbounds.empirical.simulation.simulate import simulate

DIGITS = load_dataset("digits")
CLIENTS, ROUNDS, LOCAL_STEPS = 10, 60, 3
THEOREM = "arbitrary-participation/theorem-3.1"
PARTITION = majority_class_partition(DIGITS.train_labels, CLIENTS, np.random.default_rng(0))
PROBLEM = ImageClassification(DIGITS, PARTITION, "linear", 16, gradient_norm=True, dtype=torch.float64)


def compared(process: Process | np.ndarray, interval: int = 1, **options) -> RunComparison:
    """A run at step sizes that the theorem allows, against its sharp form."""
    L = float(PROBLEM.softmax.smoothness.max())
    gamma = 1 / (24 * L * LOCAL_STEPS * interval)
    algorithm = GeneralizedFedAvg(gamma, LOCAL_STEPS, 4.0, interval)
    run = simulate(algorithm, PROBLEM, process, ROUNDS, seeds=range(2))
    return confront(run, THEOREM, "sharp", problem=PROBLEM, participation=process, **options)


@pytest.mark.parametrize(
    ("process", "interval"),
    [
        (Full(CLIENTS), 1),
        (Cyclic(CLIENTS), CLIENTS),
        (WithoutReplacement(CLIENTS, 3), 5),
        (GroupMarkov(CLIENTS, 5, 0.2), 5),
        (np.tile(np.eye(CLIENTS), (ROUNDS // CLIENTS, 1)), CLIENTS),
    ],
)
def test_on_real_images_the_bound_is_a_guarantee_and_the_run_stays_below(process, interval: int) -> None:
    comparison = compared(process, interval)
    assert comparison.guarantee, comparison.why_not
    assert {c.source for c in comparison.constants.values()} <= {"exact", "given", "derived"}
    assert (comparison.measured < comparison.bound).all()
    assert "upper bound: train_loss at x0" in comparison.constants["F"].note


def test_with_all_clients_the_guarantee_says_more_than_that_gradients_are_bounded() -> None:
    run = compared(Full(CLIENTS))
    largest = PROBLEM.constants()["gradient_bound"]
    assert run.bound[-1] < 0.5 * float(largest.value) ** 2  # pyright: ignore[reportAttributeAccessIssue]
    assert run.constants["beta"].value == run.constants["delta"].value == 0


def test_known_rates_have_a_guarantee_on_real_images_too() -> None:
    rates = np.linspace(0.5, 1, CLIENTS)
    process, L = Bernoulli(CLIENTS, rates, normalize=False), float(PROBLEM.softmax.smoothness.max())
    algorithm = KnownParticipation(1 / (60 * L * LOCAL_STEPS), LOCAL_STEPS, 1.0, rates)
    run = simulate(algorithm, PROBLEM, process, ROUNDS, seeds=range(2))
    comparison = confront(run, "fedau/theorem-2", "sharp", problem=PROBLEM, participation=process)
    assert comparison.guarantee, comparison.why_not
    assert (comparison.measured < comparison.bound).all()


def test_the_objective_that_constant_weights_minimize_has_a_guarantee_on_real_images() -> None:
    rates = np.linspace(0.5, 1, CLIENTS)
    process, L = Bernoulli(CLIENTS, rates, normalize=False), float(PROBLEM.softmax.smoothness.max())
    algorithm = AverageAll(1 / (60 * L * LOCAL_STEPS), LOCAL_STEPS, 1.0)
    run = simulate(algorithm, PROBLEM, process, 30, seeds=range(2), record_models=True)
    comparison = confront(run, "fedau/theorem-b.4.1", problem=PROBLEM, participation=process)
    assert comparison.guarantee, comparison.why_not
    assert (comparison.measured < comparison.bound).all()
    phi = rates / rates.sum()  # grad h by hand, at the start of the first seed
    x = torch.from_numpy(run.model[0, 0])
    local = PROBLEM.gradient(x.expand(1, CLIENTS, -1), torch.arange(CLIENTS)[None])[0]
    pairs = confront(simulate(algorithm, PROBLEM, process, 1, record_models=True), "fedau/theorem-b.4.1",
                     problem=PROBLEM, participation=process)  # fmt: skip
    assert pairs.measured[0] == pytest.approx(float((torch.from_numpy(phi) @ local).square().sum()), rel=1e-9)
    losses = [float(PROBLEM.local_loss(x, n)) for n in range(CLIENTS)]
    H = pairs.constants["H"]
    assert H.source == "exact" and float(np.ravel(H.value)[0]) == pytest.approx(float(phi @ losses), rel=1e-9)


def test_what_is_given_below_a_proved_bound_is_refused_and_a_network_without_bounds_bounds_nothing() -> None:
    for symbol in ("L", "F", "nu", "sigma"):
        with pytest.raises(FedboundsError, match="give that or a larger one"):
            compared(Full(CLIENTS), given={symbol: 1e-3})
    network = ImageClassification(DIGITS, PARTITION, "mlp")
    with pytest.raises(FedboundsError, match="no logistic regression"):
        _ = network.softmax


def test_no_eigenvalue_of_a_clients_hessian_exceeds_its_smoothness() -> None:
    """The dense Hessian at random and at peaked points, five classes and four pixels."""
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.normal(1.0, 1.0, (12, 4)))
    labels = torch.from_numpy(rng.integers(0, 5, 12))
    bound = float(SoftmaxRegression([images]).smoothness[0])

    def loss(x: torch.Tensor) -> torch.Tensor:
        weights, biases = x[:20].view(5, 4), x[20:]
        return torch.nn.functional.cross_entropy(images @ weights.T + biases, labels)

    peaked = torch.zeros(25, dtype=torch.float64)
    peaked[20:22] = 40.0
    points = [peaked, *(torch.from_numpy(scale * rng.normal(size=25)) for scale in (0.0, 0.1, 1.0, 10.0))]
    eigenvalues = [
        torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, x)) for x in points  # pyright: ignore
    ]  # fmt: skip
    largest = [float(found[-1]) for found in eigenvalues]
    assert min(float(found[0]) for found in eigenvalues) > -1e-12
    assert max(largest) <= bound * (1 + 1e-12)
    assert largest[0] == pytest.approx(bound, rel=1e-9)  # two classes share all probability: attained
    assert max(largest) > bound / 1.5  # so that two thirds of it would be found out


def test_no_gradient_is_longer_than_its_bound_and_where_all_answers_are_wrong_it_is_near() -> None:
    rng, everyone = np.random.default_rng(1), torch.arange(CLIENTS)[None]
    b, known = PROBLEM.softmax.gradients, PROBLEM.softmax
    worst, together, apart = np.zeros(CLIENTS), 0.0, 0.0
    for size in (0.0, 0.1, 1.0, 100.0):
        for _ in range(5):
            x = torch.from_numpy(size * rng.standard_normal(PROBLEM.dimension))
            local = PROBLEM.gradient(x.expand(1, CLIENTS, -1), everyone)[0]
            worst = np.maximum(worst, local.norm(dim=1).numpy())
            together = max(together, float(local.mean(0).norm()))
            apart = max(apart, float((local - local.mean(0)).norm(dim=1).max()))
    confident = torch.zeros(PROBLEM.dimension, dtype=torch.float64)
    confident[640:] = torch.arange(10) * 50.0  # one class for every image
    worst = np.maximum(worst, PROBLEM.gradient(confident.expand(1, CLIENTS, -1), everyone)[0].norm(dim=1).numpy())
    assert (worst <= b).all() and (worst > 0.4 * b).all()
    assert 0.3 * known.gradient < together <= known.gradient
    assert 0.2 * known.divergence < apart <= known.divergence


def test_no_gradient_of_a_single_sample_is_longer_than_its_sure_bound_and_confident_mistakes_are_near() -> None:
    single = ImageClassification(DIGITS, PARTITION, "linear", 1, dtype=torch.float64)
    bound = single.softmax.sample_gradient
    rng, longest = np.random.default_rng(3), 0.0
    for size in (0.0, 1.0, 100.0):
        x = torch.from_numpy(size * rng.standard_normal(single.dimension))
        for n in range(CLIENTS):
            drawn = torch.from_numpy(single.draws(rng, n, 150))[:, None]
            names = torch.full((150, 1), n)
            gradients = single.stochastic_gradient(x.expand(150, 1, -1), names, drawn)
            longest = max(longest, float(torch.linalg.vector_norm(gradients, dim=-1).max()))
    assert 0.9 * bound < longest <= bound


def test_the_finite_population_correction_is_that_of_all_batches() -> None:
    values = np.random.default_rng(0).normal(size=(6, 3))
    spread = ((values - values.mean(0)) ** 2).sum(1).mean()
    for batch in range(1, 7):
        means = np.array([values[list(some)].mean(0) for some in combinations(range(6), batch)])
        variance = ((means - values.mean(0)) ** 2).sum(1).mean()
        assert variance == pytest.approx(spread * without_replacement([6], batch)[0], abs=1e-15)


def test_bounds_of_divergences_hold_for_gradients_chosen_against_them_whether_or_not_the_weights_knew() -> None:
    """Gradients at their longest, drawn freely (independent) or for the weights that are met (dependent)."""
    rng, N = np.random.default_rng(0), 4
    worst = {True: 0.0, False: 0.0}
    for _ in range(400):
        b = rng.uniform(0.5, 2, N)
        records = rng.dirichlet(np.full(N, 0.3), size=3)  # three equally likely rounds
        mean, covariance = records.mean(0), np.cov(records.T, bias=True)
        known = Bounds(b)
        gradients = rng.choice([-1.0, 1.0], size=(3, N)) * b
        pulled = np.sign(records - 1 / N) * b  # the worst in each round
        for independent, chosen in ((True, gradients[:1]), (False, pulled)):
            left = (((records - 1 / N) * chosen).sum(1) ** 2).mean()
            worst[independent] = max(worst[independent], left / known.expected(mean, covariance, independent))
        for row, own in zip(records, gradients, strict=True):
            assert ((row - 1 / N) @ own) ** 2 <= known.combined(row[None])[0] * (1 + 1e-12)
            assert row @ (own - row @ own) ** 2 <= known.spread(row) * (1 + 1e-12)
    assert 0.7 < worst[True] <= 1 + 1e-12 and 0.9 < worst[False] <= 1 + 1e-12
    one_of_four = Bounds(np.ones(N))  # where the weights know the gradients, the bound for those that do not is false
    mean, covariance = np.full(N, 1 / N), (np.eye(N) - 1 / N) / N
    excess = np.eye(N) - 1 / N
    pulled = ((excess * np.sign(excess)).sum(1) ** 2).mean()
    assert one_of_four.expected(mean, covariance, True) < pulled <= one_of_four.expected(mean, covariance, False)


def test_weight_decay_adds_to_the_curvature_alone():
    rho, rng = 0.2, np.random.default_rng(3)
    decaying = ImageClassification(DIGITS, PARTITION, "linear", 16, weight_decay=rho, dtype=torch.float64)
    found, plain = decaying.constants(), PROBLEM.constants()
    for name, more in (("smoothness", rho), ("gradient_noise", 0), ("gradient_divergence_sup", 0)):
        assert found[name].value == pytest.approx(plain[name].value + more, rel=1e-12)
    assert found["strong_convexity"].value == rho and "without bound" in str(found["gradient_bound"])
    assert not {"client_gradient_bound", "stochastic_gradient_bound"} & {*found}
    x, y = (torch.from_numpy(rng.normal(size=(1, 1, decaying.dimension))) for _ in range(2))
    y[..., 1:] = x[..., 1:]  # one parameter
    clients, step = torch.zeros(1, 1, dtype=torch.int64), y - x
    change = decaying.gradient(y, clients) - decaying.gradient(x, clients)
    assert rho * step.square().sum() <= (change * step).sum() <= found["smoothness"].value * step.square().sum()
    assert divergences_of(decaying) is None and divergences_of(PROBLEM) is not None
