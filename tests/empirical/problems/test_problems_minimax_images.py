"""Networks against an adversary: gradients against plain torch, envelopes against brute force, attacks, engines."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import RandomWork, heavy_ball
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import Partition, class_counts, dirichlet_partition
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA, LocalSGDA
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import FairImages, RobustImages, problem_from_spec
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

DIGITS = load_dataset("digits")
CLIENTS, CLASSES, PIXELS = 6, 10, 64
PARTITION = dirichlet_partition(DIGITS.train_labels, CLIENTS, np.random.default_rng(0), 0.1)
SEEN, TESTED = (torch.from_numpy(part).double() for part in DIGITS.standardised())  # rounded to float32
LABELS = torch.from_numpy(DIGITS.train_labels)
MEAN, DEVIATION = (torch.from_numpy(part).double() for part in DIGITS.standardisation)
KINDS = {"robust": RobustImages, "fair": FairImages}
LAMBDA = 0.3


@cache
def problem(kind, network="mlp", dtype=torch.float64, batch=16):
    more = {"regularization": LAMBDA} if kind == "fair" else {"attack_steps": 4}
    return KINDS[kind](DIGITS, PARTITION, network, batch, dtype=dtype, **more)


def module(network):
    layers = {
        "mlp": [nn.Flatten(), nn.Linear(PIXELS, 32), nn.ReLU(), nn.Linear(32, CLASSES)],
        "cnn-small": [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
                      nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES)],
    }[network]  # fmt: skip
    return nn.Sequential(*layers).double()


def losses(network, x, images):
    """The losses of images, and their places, under the parameters x, with torch's own modules."""
    made, parameters, start = module(network), {}, 0
    for name, value in made.named_parameters():
        parameters[name] = x[start : start + value.numel()].view(value.shape)
        start += value.numel()
    samples, places = images
    outputs = torch.func.functional_call(made, parameters, (samples,))
    return F.cross_entropy(outputs, LABELS[places], reduction="none")


def value(kind, network, x, y, places):
    """The mean over some training samples of what a sample contributes, as eqs. (8) and (9) write it."""
    if kind == "robust":  # 16 is the brightest pixel of the digits
        return losses(network, x, (SEEN[places] + 16 * y.view(1, 8, 8) / DEVIATION, places)).mean()
    sizes = torch.bincount(LABELS).double()
    own = LABELS[places]
    return (len(LABELS) / sizes[own] * y[own] * losses(network, x, (SEEN[places], places))).mean() - LAMBDA / 2 * (
        y @ y
    )


def slopes(kind, network, z, places):
    x, y = (part.clone().requires_grad_() for part in z.split([len(z) - size(kind), size(kind)]))
    return torch.cat(torch.autograd.grad(value(kind, network, x, y, places), (x, y)))


def size(kind):
    return PIXELS if kind == "robust" else CLASSES


def points(of, *shape, seed=0):
    """Starting points of the network, with feasible adversaries drawn at random."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(int(np.prod(shape))):
        x, _ = of.split(of.initial_point(rng))
        made.append(of.join(x, of.project(torch.from_numpy(0.2 * rng.standard_normal(of.ascent_dimension)).to(x))))
    return torch.stack(made).view(*shape, -1)


BY_KIND = pytest.mark.parametrize("kind", KINDS)
BY_NETWORK = pytest.mark.parametrize("network", ["mlp", "cnn-small"])


# --- the functions and their gradients --------------------------------------------------------------------------------


@BY_NETWORK
@BY_KIND
def test_clients_have_the_gradients_of_the_means_over_their_own_samples(kind, network):
    of = problem(kind, network)
    z, clients = points(of, 2, 3), torch.tensor([[0, 2, 5], [2, 2, 1]])
    found = of.gradient(z, clients)
    for s, k in np.ndindex(2, 3):
        places = torch.from_numpy(PARTITION.samples[int(clients[s, k])])
        expected = slopes(kind, network, z[s, k], places)
        torch.testing.assert_close(found[s, k], expected, rtol=1e-9, atol=1e-12)


@BY_NETWORK
@BY_KIND
def test_the_objective_is_the_papers_and_the_clients_add_up_to_it(kind, network):
    of = problem(kind, network)
    z, everything = points(of, 2), torch.arange(len(LABELS))
    for row, objective, gradient in zip(z, of.objective(z), of.objective_gradient(z), strict=True):
        x, y = of.split(row)
        assert float(objective) == pytest.approx(float(value(kind, network, x, y, everything)), rel=1e-11)
        torch.testing.assert_close(gradient, slopes(kind, network, row, everything), rtol=1e-9, atol=1e-12)
    local = of.gradient(z[:1, None].expand(1, CLIENTS, -1), torch.arange(CLIENTS)[None])[0]
    torch.testing.assert_close(of.weights @ local, of.objective_gradient(z)[0], rtol=1e-9, atol=1e-12)
    assert of.weights.tolist() == (PARTITION.sizes / len(LABELS)).tolist()


@BY_NETWORK
@BY_KIND
def test_stochastic_gradients_are_means_over_the_drawn_samples_also_where_the_blocks_are_taken_apart(kind, network):
    of, rng = problem(kind, network), np.random.default_rng(1)
    z, there, clients = points(of, 1, 3), points(of, 1, 3, seed=7), torch.tensor([[0, 2, 5]])
    drawn = torch.from_numpy(np.stack([of.draw(rng, int(n)) for n in clients[0]]))[None]
    snapshot = of.split(there)[0]
    plain = of.stochastic_gradient(z, clients, drawn)
    mixed = of.snapshot_gradient(z, snapshot, clients, drawn)
    for k in range(3):
        places = drawn[0, k]
        expected = slopes(kind, network, z[0, k], places)
        torch.testing.assert_close(plain[0, k], expected, rtol=1e-9, atol=1e-12)
        elsewhere = slopes(kind, network, of.join(snapshot[0, k], of.split(z[0, k])[1]), places)
        both = of.join(of.split(expected)[0], of.split(elsewhere)[1])
        torch.testing.assert_close(mixed[0, k], both, rtol=1e-9, atol=1e-12)


@BY_KIND
def test_clients_in_one_call_or_one_by_one_have_the_same_gradients(kind, monkeypatch):
    of, rng = problem(kind, "cnn-small"), np.random.default_rng(1)
    z, clients = points(of, 1, 3), torch.tensor([[0, 2, 5]])
    drawn = torch.from_numpy(np.stack([of.draw(rng, int(n)) for n in clients[0]]))[None]

    def ask():
        mixed = of.snapshot_gradient(z, of.split(z)[0].flip(1), clients, drawn)
        return torch.stack([of.stochastic_gradient(z, clients, drawn), of.gradient(z, clients), mixed])

    together = ask()
    monkeypatch.setattr(of, "prefers_batched", False)
    torch.testing.assert_close(ask(), together, rtol=1e-10, atol=1e-13)


def test_a_client_with_fewer_samples_than_a_batch_has_its_exact_gradient():
    for kind in KINDS:
        of = problem(kind, batch=2000)
        z, clients = points(of, 1, 2), torch.tensor([[1, 3]])
        drawn = torch.from_numpy(np.stack([of.draw(np.random.default_rng(0), n) for n in (1, 3)]))[None]
        torch.testing.assert_close(of.stochastic_gradient(z, clients, drawn), of.gradient(z, clients))


def test_a_perturbation_is_added_to_raw_pixels_in_units_of_the_brightest():
    """Three sixteenths on one pixel are three more of the bytes 0..16 that the digits come in."""
    of = problem("robust")
    y = torch.zeros(PIXELS, dtype=torch.float64)
    y[[9, 40]] = 3 / 16
    brighter = DIGITS.train_images.copy()
    brighter.reshape(-1, PIXELS)[:, [9, 40]] += 3
    moved = (torch.from_numpy(brighter).double() - MEAN) / DEVIATION
    torch.testing.assert_close(of._images + of.shift(y), moved)
    bright = Dataset(
        "noise", DIGITS.train_images * 15 + 15, DIGITS.train_labels, DIGITS.test_images, DIGITS.test_labels, 10
    )
    wide = RobustImages(bright, PARTITION, "mlp", dtype=torch.float64)
    scale = 255 / np.std(bright.train_images.astype(float))
    assert float(wide.shift(torch.eye(PIXELS, dtype=torch.float64))[0, 0, 0, 0]) == pytest.approx(scale, rel=1e-6)


# --- fair classification ----------------------------------------------------------------------------------------------


def test_the_best_response_is_the_maximizer_over_the_simplex_and_the_envelope_its_value():
    of = problem("fair")
    for z in points(of, 3):
        x, _ = of.split(z)
        weigh = of.class_losses(x).numpy()
        for label in (0, 7):
            places = torch.from_numpy(np.flatnonzero(DIGITS.train_labels == label))
            mean = losses("mlp", x, (SEEN[places], places)).mean()
            assert weigh[label] == pytest.approx(float(mean), rel=1e-11)
        found = optimize.minimize(
            lambda w, weigh=weigh: -(w @ weigh - LAMBDA / 2 * w @ w), np.full(CLASSES, 0.1), method="SLSQP",
            bounds=[(0, 1)] * CLASSES, constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        np.testing.assert_allclose(of.best_response(x), found.x, atol=1e-6)
        assert float(of.envelope(x)) == pytest.approx(-found.fun, rel=1e-10)
        assert float(of.envelope(x)) == pytest.approx(float(of.objective(of.join(x, of.best_response(x)))), rel=1e-12)
        assert float(of.dual_gap(z)) == pytest.approx(float(of.envelope(x) - of.objective(z)), rel=1e-9)
        assert float(of.dual_gap(of.join(x, of.best_response(x)))) == pytest.approx(0, abs=1e-14)


def test_the_gradient_of_the_envelope_agrees_with_its_differences():
    of, rng = problem("fair"), np.random.default_rng(3)
    x = of.split(points(of, 1))[0]
    gradient = of.envelope_gradient(x)[0]
    for _ in range(3):
        direction = torch.from_numpy(rng.standard_normal(of.descent_dimension))
        direction /= direction.norm()
        slope = (of.envelope(x + 1e-6 * direction) - of.envelope(x - 1e-6 * direction)) / 2e-6
        assert float(slope) == pytest.approx(float(gradient @ direction), rel=1e-5, abs=1e-7)


@given(st.lists(st.floats(0, 1), min_size=CLASSES, max_size=CLASSES).filter(any), st.integers(0, 5))
@settings(max_examples=20)
def test_no_weighting_of_the_classes_is_above_the_envelope(weights, seed):
    of = problem("fair")
    x, _ = of.split(points(of, 1, seed=seed)[0])
    y = torch.tensor(weights, dtype=torch.float64)
    assert float(of.dual_gap(of.join(x, y / y.sum()))) >= -1e-12


def test_the_metrics_of_fairness_are_those_of_the_test_samples_class_by_class():
    of = FairImages(DIGITS, PARTITION, "mlp", regularization=LAMBDA, gradient_norm=True, dtype=torch.float64)
    z = points(of, 2)
    found = of.metrics(z)
    x, _ = of.split(z)
    for s in range(2):
        logits = of.network.logits(x[s : s + 1], of._test_images[None])[0]
        hits = (logits.argmax(1).numpy() == DIGITS.test_labels).astype(float)
        each = [hits[DIGITS.test_labels == label].mean() for label in range(CLASSES)]
        assert float(found["worst_class_test_accuracy"][s]) == min(each)
        assert float(found["test_accuracy"][s]) == pytest.approx(hits.mean(), rel=1e-14)
    torch.testing.assert_close(found["envelope"], of.envelope(x))
    torch.testing.assert_close(found["dual_gap"], of.dual_gap(z))
    torch.testing.assert_close(found["envelope_gradient_norm_squared"], of.envelope_gradient(x).square().sum(1))
    assert "envelope_gradient_norm_squared" not in problem("fair").metrics(z)


def test_a_class_that_no_test_sample_has_does_not_count():
    some = DIGITS.test_labels != 3
    few = Dataset(
        "few", DIGITS.train_images, DIGITS.train_labels, DIGITS.test_images[some], DIGITS.test_labels[some], 10
    )
    of = FairImages(few, PARTITION, "mlp", dtype=torch.float64)
    x = of.initial_point(np.random.default_rng(0))[None]
    x[:, : of.descent_dimension] = 0  # all outputs are equal: class 0 is found, and no other
    assert float(of.metrics(x)["worst_class_test_accuracy"]) == 0
    assert float(of.metrics(x)["test_accuracy"]) == pytest.approx((few.test_labels == 0).mean())


# --- weight decay, and clients who count otherwise ------------------------------------------------------------------


def decaying(kind, decay=0.3):
    return KINDS[kind](DIGITS, PARTITION, "mlp", 16, weight_decay=decay, dtype=torch.float64)


@BY_KIND
def test_decay_is_half_its_strength_times_the_squared_length_everywhere(kind):
    of, plain, rng = decaying(kind), decaying(kind, 0.0), np.random.default_rng(1)
    z, clients = points(of, 1, 3), torch.tensor([[0, 2, 5]])
    x, y = of.split(z)
    slope = of.join(0.3 * x, 0 * y)
    drawn = torch.from_numpy(np.stack([of.draw(rng, int(n)) for n in clients[0]]))[None]
    more = of.objective(z) - plain.objective(z)
    torch.testing.assert_close(more, 0.15 * x.square().sum(-1))
    for found, without in (
        (of.stochastic_gradient(z, clients, drawn), plain.stochastic_gradient(z, clients, drawn)),
        (of.gradient(z, clients), plain.gradient(z, clients)),
        (of.objective_gradient(z), plain.objective_gradient(z)),
    ):
        torch.testing.assert_close(found - without, slope, rtol=1e-9, atol=1e-9)
    there = points(of, 1, 3, seed=7)
    mixed = [one.snapshot_gradient(z, one.split(there)[0], clients, drawn) for one in (of, plain)]
    torch.testing.assert_close(mixed[0] - mixed[1], slope, rtol=1e-9, atol=1e-9)
    found, without = of.metrics(z[0]), plain.metrics(z[0])
    envelope = "envelope" if kind == "fair" else "envelope_lower_estimate"
    torch.testing.assert_close(found[envelope] - without[envelope], more[0])
    assert kind == "robust" or torch.allclose(found["dual_gap"], without["dual_gap"], rtol=1e-9, atol=1e-12)


@BY_KIND
def test_a_surrogate_is_the_weighted_sum_of_the_same_clients(kind):
    of, w = decaying(kind), np.array([0.4, 0.1, 0.05, 0.15, 0.1, 0.2])
    other, z = of.surrogate(w), points(of, 1)
    everyone = torch.arange(CLIENTS)[None]
    local = of.gradient(z[:, None].expand(1, CLIENTS, -1), everyone)[0]
    torch.testing.assert_close(other.objective_gradient(z)[0], torch.from_numpy(w) @ local, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(other.gradient(z[:, None], everyone[:, :1]), of.gradient(z[:, None], everyone[:, :1]))
    itself = of.surrogate(of.weights.numpy())
    torch.testing.assert_close(itself.objective(z), of.objective(z))
    assert float(other.objective(z)) != pytest.approx(float(of.objective(z)), rel=1e-3)


def test_the_envelope_of_a_surrogate_is_its_largest_value_and_has_its_slope():
    other = decaying("fair").surrogate([0.4, 0.1, 0.05, 0.15, 0.1, 0.2])
    x, _ = other.split(points(other, 1)[0])
    best = other.best_response(x)
    assert float(other.envelope(x)) == pytest.approx(float(other.objective(other.join(x, best))), rel=1e-12)
    for y in torch.eye(CLASSES, dtype=torch.float64):
        assert float(other.objective(other.join(x, 0.9 * best + 0.1 * y))) <= float(other.envelope(x)) + 1e-12
    direction = torch.from_numpy(np.random.default_rng(3).standard_normal(len(x)))
    rise = (other.envelope(x + 1e-6 * direction) - other.envelope(x - 1e-6 * direction)) / 2e-6
    assert float(rise) == pytest.approx(float(other.envelope_gradient(x[None])[0] @ direction), rel=1e-5)


# --- robust training --------------------------------------------------------------------------------------------------


def test_an_attack_stays_in_the_ball_and_estimates_the_envelope_from_below():
    of = problem("robust")
    for z in points(of, 3):
        x, y = of.split(z)
        found = of.attack(x, y)
        assert float(found.perturbation.norm()) <= 1 + 1e-12
        assert float(found.start) == pytest.approx(float(of.objective(z)), rel=1e-12)
        assert float(found.loss) == pytest.approx(float(of.objective(of.join(x, found.perturbation))), rel=1e-12)
        assert found.loss > found.start
        best = optimize.minimize(  # a maximum near the attack's; the estimate is never above what is attained
            lambda v, x=x: -float(of.objective(of.join(x, of.project(torch.from_numpy(v))))),
            found.perturbation.numpy(),
            method="L-BFGS-B",
            jac=lambda v, x=x: (
                -of.split(of.objective_gradient(of.join(x, of.project(torch.from_numpy(v)))[None]))[1][0].numpy()
            ),
            options={"maxiter": 3},
        )
        assert -best.fun >= float(found.loss) - 1e-12


def test_an_attack_of_more_steps_finds_more_than_random_perturbations_do():
    of = RobustImages(DIGITS, PARTITION, "mlp", attack_steps=20, dtype=torch.float64)
    x, y = of.split(points(of, 1)[0])
    random = torch.from_numpy(np.random.default_rng(0).standard_normal((50, PIXELS)))
    z = of.join(x.expand(50, -1), random / random.norm(dim=1, keepdim=True))
    assert float(of.attack(x, y).loss) > float(of.objective(z).max())


def test_an_attack_keeps_the_best_perturbation_that_it_has_met(monkeypatch):
    of, met = problem("robust"), []
    values = iter([1.0, 3.0, 2.0, 0.5, 2.9])

    def made_up(x, y, slope):
        met.append(y)
        return torch.tensor(next(values)), torch.eye(PIXELS, dtype=torch.float64)[len(met)]

    monkeypatch.setattr(of, "_ascent", made_up)
    x, y = of.split(points(of, 1)[0])
    found = of.attack(x, y)
    assert (float(found.start), float(found.loss), len(met)) == (1.0, 3.0, 5)
    assert torch.equal(found.perturbation, met[1]) and torch.equal(met[0], y)
    step = of.project(y + 2.5 / 4 * torch.eye(PIXELS, dtype=torch.float64)[1])
    torch.testing.assert_close(met[1], step)


def test_without_steps_the_attack_is_the_runs_own_perturbation_and_a_dead_network_has_no_direction():
    of = RobustImages(DIGITS, PARTITION, "mlp", attack_steps=0, dtype=torch.float64)
    x, y = of.split(points(of, 1)[0])
    found = of.attack(x, y)
    assert torch.equal(found.perturbation, y) and found.loss == found.start
    dead = problem("robust").attack(torch.zeros_like(x), y)
    assert torch.equal(dead.perturbation, y)
    assert float(dead.loss) == pytest.approx(np.log(CLASSES))


def test_the_metrics_of_robustness_are_with_and_without_the_attack():
    of = problem("robust")
    z = points(of, 2)
    found = of.metrics(z)
    assert list(found) == [
        "train_loss", "test_accuracy", "robust_test_accuracy", "envelope_lower_estimate", "ascent_norm_squared",
    ]  # fmt: skip
    torch.testing.assert_close(found["train_loss"], of.objective(z))
    for s in range(2):
        x, y = of.split(z[s])
        attack = of.attack(x, y)
        for name, shift in (("test_accuracy", 0 * y), ("robust_test_accuracy", attack.perturbation)):
            logits = of.network.logits(x[None], (TESTED + 16 * shift.view(1, 8, 8) / DEVIATION)[None])[0]
            hits = (logits.argmax(1).numpy() == DIGITS.test_labels).mean()
            assert float(found[name][s]) == pytest.approx(hits, rel=1e-14)
        assert float(found["envelope_lower_estimate"][s]) == float(attack.loss)
        assert float(found["ascent_norm_squared"][s]) == pytest.approx(float(y @ y))


# --- runs -------------------------------------------------------------------------------------------------------------


@BY_NETWORK
@BY_KIND
@pytest.mark.parametrize("engine", ["masked batch", "sequential"])
def test_engines_are_the_pseudo_code_with_epochs_snapshots_and_projections(kind, network, engine):
    of, process = problem(kind, network, batch=100), WithoutReplacement(CLIENTS, 3)
    for algorithm in (
        FedNormSGDA(0.05, 2.0, 0.05, 2.0, local_epochs=RandomWork(1, 2), optimizer=heavy_ball(0.5), snapshot_period=2),
        LocalSGDA(0.05, 2.0, local_epochs=2),
    ):
        trace = simulate(algorithm, of, process, 2, seeds=(0, 5), engine=engine, record_models=True, record_every=2)
        streams = Streams(5)
        q = process.matrix(2, streams.generator("participation"))
        twin = run_reference(algorithm, of, q, streams)
        assert np.abs(trace.model[1] - twin[[0, 2]].numpy()).max() < 1e-10
        y = torch.from_numpy(trace.model[:, 1, of.descent_dimension :])
        torch.testing.assert_close(of.project(y), y, rtol=0, atol=1e-12)


@BY_KIND
def test_an_epoch_is_as_many_steps_as_give_one_gradient_for_each_sample(kind):
    of = problem(kind, batch=16)
    steps = [-(-len(own) // 16) for own in PARTITION.samples]
    assert of.steps_per_epoch.tolist() == steps
    in_epochs = FedNormSGDA(0.05, 0.1, 0.05, 0.1, local_epochs=2)
    in_steps = FedNormSGDA(0.05, 0.1, 0.05, 0.1, local_steps=tuple(2 * k for k in steps))
    one, other = (simulate(a, of, Full(CLIENTS), 2, record_models=True).model for a in (in_epochs, in_steps))
    assert np.array_equal(one, other)


def test_single_precision_follows_double_precision_for_a_round():
    for kind in KINDS:
        run = [
            simulate(LocalSGDA(0.05, 0.1, 3), problem(kind, "mlp", dtype), Full(CLIENTS), 1, record_models=True).model[
                0
            ]
            for dtype in (torch.float32, torch.float64)
        ]
        assert np.linalg.norm(run[0][1] - run[1][1]) < 1e-5 * np.linalg.norm(run[1][1])


@pytest.mark.parametrize(
    ("kind", "algorithm", "metric"),
    [
        (
            "robust",
            FedNormSGDA(0.05, 0.1, 0.05, 0.1, local_epochs=RandomWork(2, 5), snapshot_period=5),
            "robust_test_accuracy",
        ),
        ("fair", FedNormSGDA(0.05, 0.02, 0.05, 0.02, local_epochs=RandomWork(2, 5)), "worst_class_test_accuracy"),
    ],
)
def test_training_raises_what_it_is_for(kind, algorithm, metric):
    of = problem(kind, "mlp", torch.float32, 32)
    trace = simulate(algorithm, of, Full(CLIENTS), 30, record_every=30)
    before, after = trace.arrays[metric][0]
    assert before < 0.2 and after > 0.4
    assert trace.engine == "masked batch"


# --- what is known, specifications, mistakes --------------------------------------------------------------------------


@BY_KIND
def test_networks_against_an_adversary_have_hardly_a_constant_and_say_why(kind):
    found = problem(kind).constants()
    known = {name for name, constant in found.items() if isinstance(constant, Constant)}
    assert known == {"clients", "best_response_bound"} | ({"strong_concavity"} if kind == "fair" else set())
    assert all(constant.why for constant in found.values() if isinstance(constant, NoConstant))
    plain = KINDS[kind](DIGITS, PARTITION, "linear").constants()["smoothness"]
    assert isinstance(plain, NoConstant) and "logistic regression" in plain.why


def test_a_specification_has_the_papers_numbers_by_default():
    for kind in ("robust-images", "fair-images"):
        of = problem_from_spec({"kind": kind, "network": "mlp"})
        assert (of.clients, of.batch) == (15, 32)
        expected = dirichlet_partition(DIGITS.train_labels, 15, np.random.default_rng(0), 0.1)
        assert (of.partition.assignment == expected.assignment).all()
        assert of.data_checksum == problem("fair").data_checksum
    assert problem_from_spec({"kind": "robust-images", "radius": 0.5}).radius == 0.5


def test_small_alpha_leaves_clients_few_classes():
    shares = []
    for alpha in (0.1, 100.0):
        split = dirichlet_partition(DIGITS.train_labels, 15, np.random.default_rng(1), alpha)
        counts = class_counts(split.assignment, DIGITS.train_labels, 15)
        shares.append(np.median(counts.max(1) / counts.sum(1)))
    assert shares[0] > 0.5 > 0.2 > shares[1]


@pytest.mark.parametrize(("spec", "message"), [
    ({"kind": "robust-images", "radius": 0}, r"radius = 0 must be a number in \(0, inf\)"),
    ({"kind": "robust-images", "attack_steps": -1}, "attack_steps = -1 must be an integer >= 0"),
    ({"kind": "fair-images", "weight_decay": -1}, r"weight_decay = -1 must be a number in \[0, inf\)"),
    ({"kind": "robust-images", "attak_steps": 1}, "unknown key .*'attak_steps'; did you mean attack_steps"),
    ({"kind": "fair-images", "regularization": 0}, r"regularization = 0 must be a number in \(0, inf\)"),
    ({"kind": "fair-images", "gradient_norm": 1}, "gradient_norm = 1 must be true or false"),
    ({"kind": "fair-images", "batch": 0}, "batch = 0 must be an integer >= 1"),
    ({"kind": "fair-images", "clients": 5000}, "clients = 5000 must be between 1 and the number of samples, 1442"),
])  # fmt: skip
def test_mistakes_are_reported_in_one_line(spec, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        problem_from_spec(spec)
    assert "\n" not in str(refused.value)


def test_a_class_without_training_samples_is_refused():
    some = DIGITS.train_labels != 3
    few = Dataset(
        "few", DIGITS.train_images[some], DIGITS.train_labels[some], DIGITS.test_images, DIGITS.test_labels, 10
    )
    split = Partition(np.arange(some.sum()) % 2, np.array([0, 1]))
    with pytest.raises(FedboundsError, match="class 3 of few has no training sample, so no mean loss"):
        FairImages(few, split)
