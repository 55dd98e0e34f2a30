"""Measured constants against known ones: equal at a point, never above where they claim to be lower estimates."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.measured_constants import (
    client_curvatures,
    largest_curvature,
    largest_noise,
    largest_secant,
    local_models,
    second_derivatives,
)
from fedbounds.empirical.comparison.run_setting import setting_of_trace
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import Partition, dirichlet_partition, majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.papers.arbitrary_participation.run import trajectory_quantities
from fedbounds.empirical.papers.arbitrary_participation.trajectory_constants import measure_along_run
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.papers.fed_norm_sgda.trajectory_constants import least_line, local_states
from fedbounds.empirical.papers.fed_norm_sgda.trajectory_constants import measure_along_run as visited_by_fed_norm_sgda
from fedbounds.empirical.papers.fedau.algorithms import FedAU
from fedbounds.empirical.papers.fedau.trajectory_constants import measure_along_run as visited_by_fedau
from fedbounds.empirical.participation import Bernoulli, Full, Recorded, WithoutReplacement
from fedbounds.empirical.problems import (
    FairImages,
    ImageClassification,
    ModelOnData,
    Quadratic,
    random_quadratic,
    random_quadratic_minimax,
)
from fedbounds.empirical.problems.image_problem import Samples
from fedbounds.empirical.problems.problem import client_gradients
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace

DIGITS = load_dataset("digits")
CLIENTS = 10
PARTITION = majority_class_partition(DIGITS.train_labels, CLIENTS, np.random.default_rng(0))
THEOREM = "arbitrary-participation/theorem-3.1"
RECORDS = {"record_models": True, "record_participation": True}


def images(network: str = "linear", batch: int = 16, dtype: torch.dtype = torch.float64) -> ImageClassification:
    return ImageClassification(DIGITS, PARTITION, network, batch, gradient_norm=True, dtype=dtype)


def number(constant: object) -> float:
    assert isinstance(constant, Constant)
    return float(np.ravel(constant.value)[-1])


# --- at a point -----------------------------------------------------------------------------------------------------


def tiny(batch: int) -> ImageClassification:
    """Three clients of 6, 4 and 2 images of 2x2 pixels."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (12, 1, 2, 2), dtype=np.uint8)
    data = Dataset("tiny", pixels, rng.integers(0, 3, 12), pixels, rng.integers(0, 3, 12), 3)
    owners = np.array([0] * 6 + [1] * 4 + [2] * 2)
    return ImageClassification(data, Partition(owners, np.zeros(3, dtype=int)), "mlp", batch, dtype=torch.float64)


@pytest.mark.parametrize("batch", [1, 2, 3, 5])
def test_the_variance_of_a_minibatch_gradient_is_that_over_all_minibatches(batch: int) -> None:
    problem = tiny(batch)
    x = problem.initial_point(np.random.default_rng(1))
    blocks = (slice(None), slice(0, 20), slice(20, None))
    found = problem.gradient_variance(x, blocks)
    uncorrected = []
    for client, own in enumerate(problem.partition.samples):
        every = list(combinations(own.tolist(), min(batch, len(own))))
        padded = torch.tensor([[*some, *[-1] * (batch - len(some))] for some in every])[None]
        clients = torch.full((1, len(every)), client)
        each = problem.stochastic_gradient(x.expand(1, len(every), -1), clients, padded)[0]
        exact = client_gradients(problem, x)[client]
        torch.testing.assert_close(each.mean(0), exact, rtol=1e-9, atol=1e-12)
        for block, value in zip(blocks, found[:, client].tolist(), strict=True):
            variance = float((each - exact)[:, block].square().sum(1).mean())
            assert value == pytest.approx(variance, rel=1e-9, abs=1e-14)
        alone = Samples(problem._images[own][:, None], problem._labels[own][:, None])
        singles = problem.sample_gradient(x.expand(len(own), -1), alone)
        uncorrected.append(float((singles - exact).square().sum(1).mean()) / min(batch, len(own)))
    if batch > 1:  # a variance without the finite population correction is found out
        assert (np.array(uncorrected) > 1.2 * found[0].numpy()).all()


def test_dropout_has_no_variance_of_sampling_alone() -> None:
    problem = ImageClassification(DIGITS, PARTITION, "linear", augmentation=["crop"])
    with pytest.raises(FedboundsError, match="random too"):
        problem.gradient_variance(problem.initial_point(np.random.default_rng(0)))


def test_lanczos_finds_the_eigenvalue_of_largest_size_from_below() -> None:
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        matrix = rng.normal(size=(40, 40))
        matrix = torch.from_numpy((matrix + matrix.T) / 2 + sign * 3 * np.eye(40))
        exact = np.linalg.eigvalsh(matrix.numpy())
        start, size, before = torch.from_numpy(rng.normal(size=40)), float(np.abs(exact).max()), 0.0
        for steps in (1, 3, 6, 12, 40):
            found = largest_curvature(lambda v, A=matrix: A @ v, start, steps)
            assert before - 1e-12 <= found.value <= size * (1 + 1e-12)
            nearest = min(float(np.abs(exact - theta).min()) for theta in (found.value, -found.value))
            assert nearest <= found.residual + 1e-12
            before = found.value
        assert before == pytest.approx(size, rel=1e-10)
        block = slice(10, 25)
        inside = largest_curvature(lambda v, A=matrix: A @ v, start, 15, block)
        assert inside.value == pytest.approx(np.abs(np.linalg.eigvalsh(matrix[block, block].numpy())).max(), rel=1e-10)


def test_second_derivatives_of_clients_are_their_hessians() -> None:
    problem = random_quadratic(3, 5, shared=False, seed=1)
    start = torch.from_numpy(np.random.default_rng(0).normal(size=5))
    for n in range(3):
        product = second_derivatives(lambda x, n=n: problem.local_loss(x, n), problem.x0)
        torch.testing.assert_close(product(start), problem.hessian(n) @ start)
        exact = float(torch.linalg.eigvalsh(problem.hessian(n)).abs().max())
        assert largest_curvature(product, start).value == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("network", ["linear", "cnn-small-smooth"])
def test_the_curvature_of_a_network_is_the_slope_of_its_gradients(network: str) -> None:
    problem, rng = images(network), np.random.default_rng(0)
    x, v = problem.initial_point(rng), torch.from_numpy(rng.normal(size=problem.dimension))
    v /= v.norm()
    step = 1e-5
    up, down = (client_gradients(problem, x + s * v)[2] for s in (step, -step))
    product = second_derivatives(lambda z: problem.local_loss(z, 2), x)
    torch.testing.assert_close(product(v), (up - down) / (2 * step), rtol=1e-5, atol=1e-7)
    curvature = largest_curvature(product, v, 12)
    assert largest_secant(x + step * v, x - step * v, up, down) <= curvature.value * (1 + 1e-6)
    if network == "linear":
        assert curvature.value <= problem.softmax.smoothness[2]


def test_a_network_with_kinks_has_secants_and_no_curvature() -> None:
    problem = images("mlp")
    x = problem.initial_point(np.random.default_rng(0))
    with pytest.raises(FedboundsError, match=r"'mlp' has kinks .* cnn-smooth"):
        problem.local_loss(x, 0)
    gradients = [client_gradients(problem, z) for z in (x, x + 0.01)]
    assert largest_secant(x, x + 0.01, *gradients) > 0


def test_points_that_differ_by_rounding_have_no_secant() -> None:
    u = torch.tensor([[1.0, 1.0], [2.0, 0.0]], dtype=torch.float64)
    v = u + torch.tensor([[2e-16, 0.0], [1e-3, 0.0]], dtype=torch.float64)
    assert largest_secant(u, v, 3 * u, 3 * v + 1e-15) == pytest.approx(3, rel=1e-9)
    assert largest_secant(u[:1], v[:1], u[:1], 5 * v[:1]) == 0


def test_the_fitted_line_lies_above_all_points_and_touches_two() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2e-5, 30)
    y = 4e3 + 3e8 * x - rng.exponential(500.0, 30)
    a, b = least_line(x, y)
    gaps = a + b * x - y
    assert gaps.min() >= -1e-12 * y.max() and np.sort(gaps)[1] < 1e-6 * y.max()
    assert a >= 0 and least_line(x, y, 1e9)[1] == pytest.approx(1e9)
    flat, slope = least_line(np.zeros(3), np.array([1.0, 3.0, 2.0]), 1.0)
    assert (flat, slope) == (3.0, 1.0)


# --- along a run ----------------------------------------------------------------------------------------------------


def test_local_models_drawn_again_are_those_that_were_run() -> None:
    problem, process = images("mlp"), WithoutReplacement(CLIENTS, 3)
    algorithm = GeneralizedFedAvg(0.05, 3, 1.0, 1)
    run = simulate(algorithm, problem, process, 6, seeds=(4, 7), **RECORDS)
    for row, seed in enumerate((4, 7)):
        for t in (0, 5):
            q = run.participation(seed)[t]
            present = np.flatnonzero(q)
            x, after = (torch.from_numpy(run.model[row, at]) for at in (t, t + 1))
            path = local_models(problem, LocalSGD(0.05, 4), x, present, Streams(seed), t)  # one step more: its end
            torch.testing.assert_close(torch.from_numpy(q[present]) @ path[3], after, rtol=1e-9, atol=1e-12)


def test_along_quadratics_divergences_are_those_that_exact_moments_find() -> None:
    problem = random_quadratic(6, 3, shared=False, seed=2)
    q = np.random.default_rng(0).dirichlet(np.ones(6), size=4)
    algorithm = GeneralizedFedAvg(0.02, 3, 1.5, 2)
    exact = trajectory_quantities(algorithm, problem, q).constants()
    for every, source in ((1, "trajectory"), (2, "estimated")):
        run = simulate(algorithm, problem, q, 4, engine="batched", record_every=every, **RECORDS)
        found = measure_along_run(setting_of_trace(run, problem, Recorded(q)), 2)
        for name in ("participation_divergence", "window_divergence"):  # every window's start was recorded
            assert number(found[name]) == pytest.approx(number(exact[name]), rel=1e-9)
        cohort, whole = found["cohort_divergence"], number(exact["cohort_divergence"])
        assert cohort.source == source
        assert number(cohort) <= whole * (1 + 1e-9)
        if every == 1:
            assert number(cohort) == pytest.approx(whole, rel=1e-9)
        L = number(problem.constants()["smoothness"])
        assert 0.2 * L < number(found["smoothness"]) <= L * (1 + 1e-9)
        assert number(found["gradient_noise"]) == 0


@pytest.mark.parametrize("every", [1, 4])
def test_products_that_are_recorded_beside_models_are_what_the_models_say(every: int) -> None:
    problem, process = images("mlp"), Bernoulli(CLIENTS, 0.6, normalize=False)
    rules = {GeneralizedFedAvg(0.05, 2, 2.0, 2): WithoutReplacement(CLIENTS, 4), FedAU(0.05, 2, cutoff=3): process}
    for algorithm, who in rules.items():
        run = simulate(algorithm, problem, who, 16, seeds=(0, 1), record_every=every, **RECORDS)
        assert run.dims["gradient_products"] == ("seed", "round", "client", "other_client")
        assert "gradient_products" not in run.metrics
        norms = problem.metrics(torch.from_numpy(run.model[1]))["gradient_norm_squared"]
        np.testing.assert_allclose(run.gradient_norm_squared[1], norms, rtol=1e-9)
        bare = {name: dims for name, dims in run.dims.items() if name != "gradient_products"}
        without = Trace({name: run.arrays[name] for name in bare}, bare, run.spec, run.engine, run.statuses)
        both = [
            measure_along_run(setting_of_trace(one, problem, who), 2)
            if who is not process
            else visited_by_fedau(setting_of_trace(one, problem, who))
            for one in (run, without)
        ]
        for name, constant in both[0].items():
            assert number(constant) == pytest.approx(number(both[1][name]), rel=1e-9, abs=1e-12), name


def test_products_are_recorded_where_gradients_are_asked_for_and_they_do_not_outweigh_the_models() -> None:
    start = torch.zeros(1, 650, dtype=torch.float64)
    many = majority_class_partition(DIGITS.train_labels, 26, np.random.default_rng(0))
    for partition, wanted, there in ((PARTITION, True, True), (PARTITION, False, False), (many, True, False)):
        problem = ImageClassification(DIGITS, partition, "linear", gradient_norm=wanted, dtype=torch.float64)
        assert ("gradient_products" in problem.metrics_and_products(start)) is there


def test_a_window_that_was_not_recorded_makes_an_estimate_from_below() -> None:
    problem = random_quadratic(6, 3, shared=False, seed=2)
    q = np.random.default_rng(1).dirichlet(np.ones(6), size=8)
    algorithm = GeneralizedFedAvg(0.05, 2, 1.5, 2)
    exact = trajectory_quantities(algorithm, problem, q).constants()
    run = simulate(algorithm, problem, q, 8, engine="batched", record_every=4, **RECORDS)
    found = measure_along_run(setting_of_trace(run, problem, Recorded(q)), 2)
    for name in ("participation_divergence", "window_divergence", "cohort_divergence"):
        assert found[name].source == "estimated" and "lower estimate" in found[name].note
        assert 0 < number(found[name]) <= number(exact[name]) * (1 + 1e-9)


def test_one_hessian_has_the_same_divergence_everywhere_and_fedau_measures_it() -> None:
    problem = Quadratic([[2.0, 0.5], [0.5, 1.0]], np.random.default_rng(0).normal(size=(4, 2)), 0.1, [1.0, 2.0])
    process = Bernoulli(4, [0.3, 0.5, 0.7, 0.9], normalize=False)
    run = simulate(FedAU(0.05, 3, 1.0, 5), problem, process, 12, seeds=range(2), engine="batched", **RECORDS)
    found = visited_by_fedau(setting_of_trace(run, problem, process))
    exact = problem.constants()
    divergence = found["gradient_divergence_sup"]
    assert divergence.source == "trajectory"
    assert number(divergence) == pytest.approx(number(exact["gradient_divergence_sup"]), rel=1e-9)
    assert number(found["gradient_noise"]) == pytest.approx(number(exact["gradient_noise"]), rel=1e-12)
    L = number(exact["smoothness"])
    assert 0.5 * L < number(found["smoothness"]) <= L * (1 + 1e-9)


def test_along_logistic_regression_everything_measured_stays_below_what_holds_everywhere() -> None:
    problem, process = images("linear"), WithoutReplacement(CLIENTS, 3)
    run = simulate(GeneralizedFedAvg(0.01, 3, 2.0, 5), problem, process, 20, seeds=range(2), **RECORDS)
    setting = setting_of_trace(run, problem, process)
    found, bounds = measure_along_run(setting, 5), problem.constants()
    assert 0.02 < number(found["smoothness"]) / number(bounds["smoothness"]) < 1
    assert 0.05 < number(found["gradient_noise"]) / number(bounds["gradient_noise"]) < 1
    exact = confront(run, THEOREM, "sharp", problem=problem, participation=process).constants
    for symbol, name in (("nu", "cohort_divergence"), ("beta", "participation_divergence")):
        assert 0.05 < number(found[name]) / number(exact[symbol]) < 1
    assert number(found["window_divergence"]) < number(exact["delta"])


def network_run(**options):
    problem, process = images("cnn-small-smooth", dtype=torch.float32), WithoutReplacement(CLIENTS, 3)
    run = simulate(GeneralizedFedAvg(0.002, 2, 2.0, 1), problem, process, 6, **options)
    return problem, process, run


def test_a_network_is_held_against_a_theorem_with_measured_constants_and_never_guaranteed() -> None:
    problem, process, run = network_run(**RECORDS)
    everything = ["smooth", "unbiased-noise", "participation-divergence", "cohort-divergence", "window-divergence"]
    found = confront(run, THEOREM, "sharp", problem=problem, participation=process, assume=everything)
    sources = {name: c.source for name, c in found.constants.items()}
    assert sources["F"] == "exact" and sources["beta"] == sources["delta"] == "trajectory"
    assert sources["L"] == sources["sigma"] == sources["nu"] == "estimated"
    assert bool(found.valid[-1]) and not found.crossings.size
    assert not found.guarantee and "L is only estimated" in found.why_not
    assert any("no guarantee, for this or any other run" in note for note in found.notes)


def test_what_is_given_wins_over_what_was_measured_and_may_only_be_larger() -> None:
    problem, process, run = network_run(**RECORDS)
    found = confront(run, THEOREM, "sharp", problem=problem, participation=process, given={"L": 30.0})
    assert found.constants["L"] == Constant(30.0, "given", found.constants["L"].note)
    with pytest.raises(FedboundsError, match=r"L = 0\.01 is given, and it is .* \(estimated from below\)"):
        confront(run, THEOREM, "sharp", problem=problem, participation=process, given={"L": 0.01})


def test_a_run_without_models_says_what_to_record() -> None:
    problem, process, run = network_run()
    with pytest.raises(FedboundsError, match="simulate with record_models=True and record_participation=True"):
        confront(run, THEOREM, "sharp", problem=problem, participation=process)
    problem, process, run = network_run(record_models=True)
    with pytest.raises(FedboundsError, match="record_participation=True"):
        confront(run, THEOREM, "sharp", problem=problem, participation=process)


def test_a_run_that_diverges_has_no_largest_value_of_anything() -> None:
    problem, process = images("cnn-small-smooth", dtype=torch.float32), WithoutReplacement(CLIENTS, 3)
    run = simulate(GeneralizedFedAvg(1e12, 2, 2.0, 1), problem, process, 4, **RECORDS)
    with pytest.raises(FedboundsError, match="diverges"):
        confront(run, THEOREM, "sharp", problem=problem, participation=process)


def test_the_noise_of_small_clients_is_zero_and_of_others_is_measured() -> None:
    everything = ImageClassification(DIGITS, PARTITION, "mlp", 200, gradient_norm=True, dtype=torch.float64)
    run = simulate(GeneralizedFedAvg(0.01, 2, 1.0, 1), everything, WithoutReplacement(CLIENTS, 3), 2, **RECORDS)
    assert number(largest_noise(run, everything)) == 0
    assert number(largest_noise(run, images("mlp", 4))) > 0.1


# --- minimax --------------------------------------------------------------------------------------------------------


def test_local_states_drawn_again_are_those_that_were_run() -> None:
    partition = dirichlet_partition(DIGITS.train_labels, 3, np.random.default_rng(0), 5.0)
    problem = FairImages(DIGITS, partition, "linear", 8, regularization=1.0, dtype=torch.float64)
    rule = FedNormSGDA(0.02, 0.03, 0.1, 0.2, local_steps=(1, 3, 2))
    run = simulate(rule, problem, Full(3), 2, seeds=(5,), **RECORDS)
    for t in (0, 1):
        x, after = torch.from_numpy(run.model[0, t]), torch.from_numpy(run.model[0, t + 1])
        seen = local_states(problem, rule, x, np.arange(3), Streams(5), t)
        assert [who.tolist() for who, _ in seen] == [[1, 2, 0], [1, 2], [1]]
        step = torch.zeros_like(x)
        steps, p = np.array([1, 3, 2]), problem.weights.numpy()
        scales = rule.scales(steps, p)
        for who, states in seen:  # what the server makes of gradients at these states is the next model
            own = Streams(5)
            for n, z in zip(who.tolist(), states, strict=True):
                k = sum(n in before.tolist() for before, _ in seen[: [w is who for w, _ in seen].index(True)])
                drawn = problem.draws(own.generator("noise", t, n), n, int(steps[n]))
                xi = torch.from_numpy(drawn[k])[None, None]
                step += scales[n] * problem.stochastic_gradient(z[None, None], torch.tensor([[n]]), xi)[0, 0]
        d = problem.descent_dimension
        torch.testing.assert_close(x[:d] - 0.1 * step[:d], after[:d], rtol=1e-9, atol=1e-12)


def test_along_a_game_whose_constants_are_known_the_fit_stays_below_them() -> None:
    problem = random_quadratic_minimax(4, 3, 2, noise=0.1, growth=0.3, heterogeneity=1.0, seed=3)
    process = WithoutReplacement(4, 2)
    algorithm = FedNormSGDA(0.02, 0.02, 0.02, 0.05, local_steps=2)
    run = simulate(algorithm, problem, process, 30, seeds=range(2), record_models=True)
    setting = setting_of_trace(run, problem, process)
    found, exact = visited_by_fed_norm_sgda(setting, problem.weights.numpy()), problem.constants()
    L = number(exact["smoothness"])
    assert 0.2 * L < number(found["smoothness"]) <= L * (1 + 1e-9)
    sparse = simulate(algorithm, problem, process, 30, record_every=10, **RECORDS)  # no two rounds in a row
    local = visited_by_fed_norm_sgda(setting_of_trace(sparse, problem, process), problem.weights.numpy())["smoothness"]
    assert 0.2 * L < number(local) <= L * (1 + 1e-9) and "local states of 3 rounds" in local.note
    sigma, beta = (number(exact[name]) for name in ("weighted_heterogeneity", "heterogeneity_growth"))
    fitted, growth = (number(found[name]) for name in ("weighted_heterogeneity", "heterogeneity_growth"))
    states = torch.from_numpy(run.model).flatten(0, 1)
    ours = theirs = 0.0
    for z in states:  # of the lines above all points that of the problem is one, and the fit the lowest in the mean
        gradients = client_gradients(problem, z)
        for block in (slice(0, 3), slice(3, 5)):
            mixed = float((problem.weights @ gradients[:, block]).square().sum())
            left = float(problem.weights @ gradients[:, block].square().sum(1))
            assert left <= (sigma**2 + beta**2 * mixed) * (1 + 1e-9)
            ours, theirs = ours + fitted**2 + growth**2 * mixed, theirs + sigma**2 + beta**2 * mixed
    assert growth >= 1 and ours <= theirs * (1 + 1e-6)


def test_fair_images_are_held_against_a_theorem_with_both_blocks_measured() -> None:
    problem = FairImages(DIGITS, PARTITION, "cnn-small-smooth", 32, gradient_norm=True)
    process = WithoutReplacement(CLIENTS, 5)
    run = simulate(FedNormSGDA(0.01, 0.01, 0.01, 0.02, local_steps=2), problem, process, 4, record_models=True)
    assume = ["smooth", "unbiased-block-noise", "bounded-heterogeneity"]
    found = confront(run, "fed-norm-sgda/theorem-1", "sharp", problem=problem, participation=process, assume=assume)
    sources = {name: c.source for name, c in found.constants.items()}
    assert sources["Delta"] == sources["delta0"] == sources["mu"] == "exact"
    assert sources["Lf"] == sources["sigmaL"] == sources["betaL"] == "estimated"
    assert sources["sigmaG"] == sources["betaG"] == "trajectory"
    assert number(found.constants["Delta"]) == pytest.approx(float(run.envelope[0, 0]) + 0.1 / 20)
    assert not found.guarantee and found.evaluation.assumptions["bounded-heterogeneity"] == "assumed"
    assert any("y is constrained" in note for note in found.notes)


# --- a model of one's own -------------------------------------------------------------------------------------------


def own_module(network: str = "linear") -> tuple[ImageClassification, ModelOnData]:
    """The same problem, as ours and as anybody's torch module."""
    ours = images(network, 16)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).double()
    start = ours.initial_point(np.random.default_rng(0))
    torch.nn.utils.vector_to_parameters(start, module.parameters())
    data = [(ours._images[own], ours._labels[own]) for own in PARTITION.samples]
    each = torch.nn.CrossEntropyLoss(reduction="none")
    return ours, ModelOnData.from_module(module, each, data, 16, lowest=0.0)


def test_a_torch_module_on_ones_own_data_is_the_problem_that_we_have() -> None:
    ours, own = own_module()
    x = ours.initial_point(np.random.default_rng(0))
    torch.testing.assert_close(own.initial_point(np.random.default_rng(5)), x)
    torch.testing.assert_close(client_gradients(own, x), client_gradients(ours, x), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(own.objective(x), ours.objective(x), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(own.objective_gradient(x), ours.objective_gradient(x), rtol=1e-9, atol=1e-12)
    blocks = (slice(None), slice(0, 640))
    torch.testing.assert_close(own.gradient_variance(x, blocks), ours.gradient_variance(x, blocks), rtol=1e-9, atol=0)
    assert client_curvatures(own, x, 8) == pytest.approx(client_curvatures(ours, x, 8), rel=1e-6)
    drawn = np.stack([own.draw(np.random.default_rng(seed), 3) for seed in range(3000)])
    assert all(len(set(batch)) == 16 for batch in drawn[:200]) and drawn.max() < own.sizes[3]
    some = torch.from_numpy(drawn[None, :400])
    each = own.stochastic_gradient(x.expand(1, 400, -1), torch.full((1, 400), 3), some)[0]
    exact = float(own.gradient_variance(x)[0, 3])
    assert float((each - client_gradients(own, x)[3]).square().sum(1).mean()) == pytest.approx(exact, rel=0.1)


def test_a_module_of_ones_own_is_simulated_and_held_against_a_theorem() -> None:
    _, own = own_module()
    process = WithoutReplacement(CLIENTS, 3)
    run = simulate(GeneralizedFedAvg(0.002, 2, 2.0, 1), own, process, 4, **RECORDS)
    found = confront(run, THEOREM, "sharp", problem=own, participation=process)
    assert found.constants["F"].source == "exact" and found.constants["L"].source == "estimated"
    assert bool(found.valid[-1]) and not found.crossings.size and not found.guarantee


def test_clients_without_data_and_unequal_lengths_are_refused() -> None:
    for data, what in (
        ([], "data is empty"),
        ([(torch.ones(2, 1), torch.ones(2)), (torch.ones(0, 1), torch.ones(0))], "client 1 has 0 inputs"),
        ([(torch.ones(2, 1), torch.ones(3))], "client 0 has 2 inputs and 3 targets"),
    ):
        with pytest.raises(FedboundsError, match=what):
            ModelOnData(lambda x, a, b: (a @ x - b) ** 2, data, torch.zeros(1))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_criterion_that_reduces_over_the_samples_is_refused(reduction: str) -> None:
    data = [(torch.ones(1, 2), torch.tensor([0])), (torch.ones(4, 2), torch.tensor([0, 1, 2, 0]))]
    each = torch.nn.CrossEntropyLoss(reduction=reduction)
    with pytest.raises(FedboundsError, match=r'has shape \(\); expected \(2,\), .* reduction="none"'):
        ModelOnData.from_module(torch.nn.Linear(2, 3), each, data)
    with pytest.raises(FedboundsError, match=r"has shape \(2, 1\); expected \(2,\)"):
        ModelOnData(lambda x, a, b: (a @ x[:, None] - 1) ** 2, [(torch.ones(3, 1), torch.ones(3))], torch.zeros(1))
