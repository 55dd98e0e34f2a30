"""Batch normalization: against torch's own, its running statistics in federated runs, and who must not meet them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import even_partition, majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import Bernoulli, WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, Network
from fedbounds.empirical.problems.fair_images import FairImages
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.simulate import simulate

DIGITS = load_dataset("digits")
PARTITION = majority_class_partition(DIGITS.train_labels, 60, np.random.default_rng(0))
IMAGES, LABELS = torch.from_numpy(DIGITS.standardised()[0]).double(), torch.from_numpy(DIGITS.train_labels)


def _problem(batch=16):
    return ImageClassification(DIGITS, PARTITION, "cnn4-bn-small", batch, dtype=torch.float64)


class Normalized(nn.Module):
    """The networks of Li et al. 2024 as one writes them in torch."""

    def __init__(self, network):
        super().__init__()
        (channels, height, width), layers, each = network.image, [], network.name.startswith("cnn8")
        filters = {"cnn4-bn-small": (8, 16, 32, 64), "cnn4-bn": (32, 64, 128, 256)}.get(network.name)
        for i, width_ in enumerate(filters or (32, 32, 64, 64, 128, 128, 256, 256)):
            layers += [nn.Conv2d(channels, width_, 3, padding=1, bias=False), nn.BatchNorm2d(width_), nn.ReLU()]
            channels = width_
            if (not each or i % 2) and min(height, width) > 1:
                layers, height, width = [*layers, nn.MaxPool2d(2)], height // 2, width // 2
        linear = nn.Linear(channels * height * width, network.classes, bias=False)
        self.layers = nn.Sequential(*layers, nn.Flatten(), linear).double()
        weights = [layer.weight for layer in self.layers if isinstance(layer, nn.Conv2d | nn.Linear)]
        norms = [layer for layer in self.layers if isinstance(layer, nn.BatchNorm2d)]
        self.trained = [*weights, *(part for norm in norms for part in (norm.weight, norm.bias))]
        self.running = [part for norm in norms for part in (norm.running_mean, norm.running_var)]

    @property
    def flat(self):
        return torch.cat([part.detach().reshape(-1) for part in (*self.trained, *self.running)])

    @torch.no_grad()
    def load(self, x):
        parts = (*self.trained, *self.running)
        for part, values in zip(parts, x.split([part.numel() for part in parts]), strict=True):
            part.copy_(values.view_as(part))

    def step(self, images, labels, step_size):
        slopes = torch.autograd.grad(F.cross_entropy(self.train().layers(images), labels), self.trained)
        with torch.no_grad():
            for part, slope in zip(self.trained, slopes, strict=True):
                part -= step_size * slope


NORMALIZED = ["cnn4-bn-small", "cnn4-bn", "cnn8-bn"]


def _off_center(network, rows):
    """Points whose factors, shifts and statistics are not those of the start."""
    rng = np.random.default_rng(0)
    x = np.stack([network.initial(rng) for _ in range(rows)])
    x[:, -network.normalizing :] += 0.3 * rng.random((rows, network.normalizing))
    return torch.from_numpy(x)


@pytest.mark.parametrize("name", NORMALIZED)
@pytest.mark.parametrize("padded", [False, True])
def test_batch_normalization_is_that_of_torch_and_moves_its_statistics_as_torch_does(name, padded):
    network = Network(name, (1, 8, 8), 10)
    x = _off_center(network, 3)
    places = torch.tensor([[0, 7, 20, 33, 41], [5, 7, 600, 610, 620], [3, 4, 8, 1000, 1001]])
    weights = None
    if padded:  # the last of them is no sample
        weights = torch.tensor([1.0, 1, 1, 1, 0]).double().expand(3, 5) / 4
    moved = network.gradient(x, IMAGES[places], LABELS[places], weights, training=True)
    still = network.gradient(x, IMAGES[places], LABELS[places], weights)
    assert not still[:, network.parameters :].any() and moved[:, network.parameters :].any()
    module = Normalized(network)
    for b in range(3):
        own = places[b, :4] if padded else places[b]
        module.load(x[b])
        outputs = module.eval().layers(IMAGES[own])
        torch.testing.assert_close(network.logits(x[b : b + 1], IMAGES[own][None])[0], outputs.detach())
        loss = F.cross_entropy(outputs, LABELS[own])
        slopes = torch.cat([slope.reshape(-1) for slope in torch.autograd.grad(loss, module.trained)])
        torch.testing.assert_close(still[b, : network.parameters], slopes, rtol=1e-9, atol=1e-12)
        module.step(IMAGES[own], LABELS[own], step_size=1.0)
        torch.testing.assert_close(x[b] - moved[b], module.flat, rtol=1e-9, atol=1e-12)


def test_fedavg_averages_running_statistics_as_a_loop_over_torch_modules_does():
    problem, q = _problem(), np.zeros((3, 60))
    for t, clients in enumerate([(0, 7, 59), (7, 30, 31), (1, 2, 59)]):
        q[t, list(clients)] = 0.5, 0.3, 0.2
    run = simulate(FedAvg(0.02, 2), problem, q, 3, seeds=(3,), record_models=True, engine="batched")
    streams, module = Streams(3), Normalized(problem.network)
    model = problem.initial_point(streams.generator("initialization"))
    for t in range(3):
        mean = torch.zeros_like(model)
        for n in np.flatnonzero(q[t]).tolist():
            rng = streams.generator("noise", t, n)
            module.load(model)
            for _ in range(2):
                own = problem.draw(rng, n)
                module.step(IMAGES[own], LABELS[own], step_size=0.02)
            mean += q[t, n] * module.flat
        model = mean
        np.testing.assert_allclose(run.model[0, t + 1], model, rtol=1e-7, atol=1e-10)
    module.load(model)
    with torch.no_grad():
        answers = module.eval().layers(torch.from_numpy(DIGITS.standardised()[1]).double()).argmax(1)
    share = (answers.numpy() == DIGITS.test_labels).mean()
    assert run.test_accuracy[0, -1] == pytest.approx(share) and (model[problem.network.parameters :] != 0).all()


def test_a_network_that_normalizes_learns_where_losses_take_its_running_statistics():
    partition = even_partition(DIGITS.train_labels, 20, np.random.default_rng(0))
    problem = ImageClassification(DIGITS, partition, "cnn4-bn-small")
    run = simulate(FedAvg(0.05, 5), problem, WithoutReplacement(20, 5), 20, record_every=20)
    assert run.test_accuracy[0, -1] > 0.9


def test_running_statistics_are_refused_where_nobody_averages_them():
    problem = _problem()
    two_sided = {"local_step_size": 0.1, "local_steps": 2}
    for kind in ("fedau", "generalized-fedavg", "wait-full"):
        more = {"interval": 2} if kind == "wait-full" else {}
        algorithm = algorithm_from_spec({"kind": kind} | two_sided | more)
        with pytest.raises(FedboundsError, match=f"{kind} does not; use an algorithm such as fedavg"):
            simulate(algorithm, problem, WithoutReplacement(60, 10), 2)
    with pytest.raises(FedboundsError, match="the weights of every round must sum to one"):
        simulate(FedAvg(0.1, 2), problem, Bernoulli(60, 0.5, normalize=False), 2)
    with pytest.raises(FedboundsError, match="two samples at least"):
        _problem(batch=1)
    with pytest.raises(FedboundsError, match="no mean of its samples"):
        problem.gradient_variance(problem.initial_point(np.random.default_rng(0)))
    with pytest.raises(FedboundsError, match="which minimax problems do not keep"):
        FairImages(DIGITS, PARTITION, "cnn4-bn", 16)
