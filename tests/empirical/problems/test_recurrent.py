"""Long short-term memory for many parameter vectors at once, against torch's own module."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from fedbounds.empirical.comparison.measured_constants import second_derivatives
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.problems import Network, problem_from_spec

IMAGE = (1, 7, 5)
RNG = np.random.default_rng(0)


def _normal(*shape):
    return torch.from_numpy(RNG.standard_normal(shape))


class Module(nn.Module):
    """What one writes in torch; of its two biases the second is held at zero."""

    def __init__(self, x, network):
        super().__init__()
        named = {name: view.clone() for name, view in network.unflatten(x).items()}
        weight, features = named["lstm.weight"], network.image[2] * network.image[0]
        self.lstm = nn.LSTM(features, weight.shape[1] - features, batch_first=True, dtype=x.dtype)
        self.dense = nn.Linear(self.lstm.hidden_size, network.classes, dtype=x.dtype)
        self.trained = [self.lstm.weight_ih_l0, self.lstm.weight_hh_l0, self.lstm.bias_ih_l0, *self.dense.parameters()]
        values = [weight[:, :features], weight[:, features:], named["lstm.bias"], named["dense1.weight"],
                  named["dense1.bias"]]  # fmt: skip
        with torch.no_grad():
            self.lstm.bias_hh_l0.zero_()
            for parameter, value in zip(self.trained, values, strict=True):
                parameter.copy_(value)

    def forward(self, images):
        return self.dense(self.lstm(images.transpose(1, 2).flatten(2))[0][:, -1])

    def flat(self, gradients):
        inputs, recurrent, *rest = gradients
        return torch.cat([torch.cat([inputs, recurrent], dim=1).flatten(), *(one.flatten() for one in rest)])


@pytest.mark.parametrize("image", [IMAGE, (3, 4, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_outputs_losses_and_gradients_are_those_of_torchs_module(image, weighted):
    network = Network("lstm-small", image, 3)
    x, images = _normal(4, network.size), _normal(4, 6, *image)
    labels = torch.from_numpy(RNG.integers(0, 3, (4, 6)))
    weights = torch.from_numpy(RNG.random((4, 6))) if weighted else None
    found = network.backward(x, images, labels, weights, losses=True, pixels=True)
    torch.testing.assert_close(found.parameters, network.gradient(x, images, labels, weights), rtol=0, atol=0)
    for b in range(4):
        module, seen = Module(x[b], network), images[b].clone().requires_grad_()
        outputs = module(seen)
        torch.testing.assert_close(network.logits(x, images)[b], outputs.detach(), rtol=0, atol=1e-12)
        losses = F.cross_entropy(outputs, labels[b], reduction="none")
        torch.testing.assert_close(found.losses[b], losses.detach(), rtol=0, atol=1e-12)
        total = losses.mean() if weights is None else losses @ weights[b]
        *expected, in_images = torch.autograd.grad(total, [*module.trained, seen])
        torch.testing.assert_close(found.parameters[b], module.flat(expected), rtol=0, atol=1e-12)
        torch.testing.assert_close(found.pixels[b], in_images, rtol=0, atol=1e-12)


def test_the_last_state_depends_on_every_step_and_on_their_order():
    network = Network("lstm-small", IMAGE, 2)
    x, images = _normal(1, network.size) / 3, _normal(1, 1, *IMAGE)
    labels = torch.zeros(1, 1, dtype=torch.int64)
    seen = network.backward(x, images, labels, pixels=True).pixels
    assert (seen.abs().sum((0, 1, 2, 4)) > 0).all()
    assert not torch.allclose(network.logits(x, images), network.logits(x, images.flip(3)))


def test_a_network_begins_with_open_forget_gates_and_is_as_large_as_is_said():
    network = Network("lstm", (1, 48, 76), 2)
    assert network.size == 4 * 64 * (76 + 64 + 1) + 2 * 65
    assert network.smooth and not network.convolutional and network.statistics == 0
    named = network.unflatten(torch.from_numpy(network.initial(RNG)))
    assert named["lstm.bias"].view(4, 64)[1].eq(1).all() and named["lstm.bias"].sum() == 64
    assert 0.99 / 8 < named["lstm.weight"].abs().max() <= 1 / 8
    assert named["lstm.weight"].std().item() == pytest.approx(1 / 8 / 3**0.5, rel=0.02)
    assert named["dense1.weight"].abs().max() <= 1 / 8


def test_columns_of_a_sequence_are_a_vertical_split():
    """A silo's network on its features is the whole network's on them alone."""
    data = load_dataset({"kind": "sequences", "train": 8, "test": 4, "steps": 6, "features": 9, "groups": 3})
    whole, part = Network("lstm-small", (1, 6, 9), 2), Network("lstm-small", (1, 6, 3), 2)
    x = _normal(1, whole.size)
    named = whole.unflatten(x)
    named["lstm.weight"][..., [0, 1, 2, 6, 7, 8]] = 0
    own = named | {"lstm.weight": named["lstm.weight"][..., [3, 4, 5, *range(9, 25)]]}
    images = torch.from_numpy(data.train_images)[None].double()
    torch.testing.assert_close(part.logits(part.flatten(own), images[..., 3:6]), whole.logits(x, images))


def test_hessians_of_clients_are_the_slopes_of_their_gradients():
    spec = {"kind": "images", "network": "lstm-small", "clients": 3, "partition": "even",
            "dataset": {"kind": "sequences", "train": 12, "test": 4, "steps": 5, "features": 4}}  # fmt: skip
    problem = problem_from_spec(spec)
    problem.dtype, problem._images = torch.float64, problem._images.double()
    x, direction = _normal(problem.dimension) / 3, _normal(problem.dimension)
    product = second_derivatives(lambda z: problem.local_loss(z, 1), x)(direction)
    step = 1e-6
    at = torch.stack([x + step * direction, x - step * direction])[:, None]
    slopes = problem.gradient(at, torch.ones(2, 1, dtype=torch.int64))[:, 0]
    torch.testing.assert_close(product, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-5, atol=1e-8)
