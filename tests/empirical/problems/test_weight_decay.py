"""Weight decay of image problems: in values and gradients, not in running statistics or in the noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import ImageClassification
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.problems.test_problems_images import DIGITS, PARTITION, _problem


@pytest.mark.parametrize("network", ["mlp", "linear", "cnn-small", "cnn4-bn-small"])
def test_weight_decay_is_in_every_value_and_gradient_but_not_of_running_statistics(network):
    of, plain, rng = _problem(network, weight_decay=0.3), _problem(network), np.random.default_rng(1)
    clients = torch.tensor([[0, 2, 5]])
    x = torch.stack([of.initial_point(rng) for _ in range(3)])[None]
    slope = 0.3 * x
    slope[..., of.dimension - of.statistics :] = 0
    half = 0.15 * x[..., : of.dimension - of.statistics].square().sum(-1)
    drawn = torch.from_numpy(np.stack([of.draw(rng, int(n)) for n in clients[0]]))[None]
    torch.testing.assert_close(of.objective(x) - plain.objective(x), half, rtol=1e-9, atol=1e-9)
    for found, without in (
        (of.stochastic_gradient(x, clients, drawn), plain.stochastic_gradient(x, clients, drawn)),
        (of.gradient(x, clients), plain.gradient(x, clients)),
        (of.objective_gradient(x), plain.objective_gradient(x)),
    ):
        torch.testing.assert_close(found - without, slope, rtol=1e-9, atol=1e-9)
    found, without = of.metrics(x[0]), plain.metrics(x[0])
    torch.testing.assert_close(found["train_loss"], of.objective(x)[0], rtol=1e-9, atol=0)
    torch.testing.assert_close(found["test_loss"], without["test_loss"], rtol=0, atol=0)
    each = of.client_metrics(x[0])["train_loss"] - plain.client_metrics(x[0])["train_loss"]
    np.testing.assert_allclose(each, half[0][:, None].expand(each.shape), rtol=1e-9)


def test_weight_decay_leaves_the_variance_of_gradients_and_settles_where_the_gradient_vanishes():
    of, plain = _problem("linear", weight_decay=0.5), _problem("linear")
    x = of.initial_point(np.random.default_rng(0))
    torch.testing.assert_close(of.gradient_variance(x), plain.gradient_variance(x), rtol=1e-6, atol=1e-9)
    whole = _problem("linear", weight_decay=0.5, batch=DIGITS.train_labels.size)  # no noise: gradient descent
    run = simulate(FedAvg(0.05, 1), whole, Full(60), 1000, seeds=[0], record_models=True, record_every=1000)
    last = torch.from_numpy(run.arrays["model"][:, -1])
    assert of.objective_gradient(last).norm() < 1e-6 < plain.objective_gradient(last).norm()


def test_without_weight_decay_large_parameters_leave_the_loss_finite():
    """Their squares overflow, and zero times infinity is not a number."""
    of = ImageClassification(DIGITS, PARTITION, "linear", 16)
    x = torch.full((1, of.dimension), 1e22)
    x[:, ::2] = -1e22
    assert of.decay(x).item() == 0
    assert of.metrics(x)["train_loss"].isfinite().all() and of.objective(x).isfinite().all()
