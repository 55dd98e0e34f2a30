"""Networks on images: gradients against automatic differentiation of plain torch modules, batches, metrics."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.data.datasets import Dataset, checksum, load_dataset
from fedbounds.empirical.data.partition import Partition, majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import Bernoulli
from fedbounds.empirical.problems import ImageClassification, Network
from fedbounds.empirical.runtime.counter_rng import uniforms
from fedbounds.empirical.simulation.simulate import simulate

NETWORKS = [
    "cnn",
    "cnn-cifar",
    "cnn-small",
    "cnn-smooth",
    "cnn-small-smooth",
    "fedau-svhn",
    "fedau-cifar-10",
    "mlp",
    "linear",
]
VGG_11 = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")  # Simonyan & Zisserman, configuration A
DIGITS = load_dataset("digits")
PARTITION = majority_class_partition(DIGITS.train_labels, 60, np.random.default_rng(0))


def _problem(network, dtype=torch.float64, batch=16, **options):
    return ImageClassification(DIGITS, PARTITION, network, batch, dtype=dtype, **options)


class Mask(nn.Module):
    """Dropout whose masks are handed to it."""

    mask: torch.Tensor | float = 1.0

    def forward(self, hidden):
        return hidden * self.mask


def _module(network, image=(1, 8, 8), classes=10):
    """The same networks, written as one writes them in torch; ReLU before pooling, as in the paper's table."""
    channels, height, width = image
    left = (height // 4) * (width // 4)

    def convolution(inputs, outputs, kernel=5):
        return [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), nn.ReLU(), nn.MaxPool2d(2, 2)]

    def dense(*widths, drop=nn.Identity):
        return [layer for a, b in pairwise(widths) for layer in (nn.ReLU(), drop(), nn.Linear(a, b))][1:]

    def smooth(inputs, outputs, kernel=5):
        return [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), nn.GELU(), nn.AvgPool2d(2, 2)]

    small = [*convolution(channels, 32, 3), *convolution(32, 32, 3), nn.Flatten()]

    layers = {
        "cnn": lambda: [*convolution(channels, 32), *convolution(32, 32), nn.Flatten(), nn.Linear(32 * left, 128),
                        nn.ReLU(), nn.Linear(128, classes)],
        "cnn-cifar": lambda: [*convolution(channels, 32), *convolution(32, 64), nn.Flatten(),
                              nn.Linear(64 * left, 512), nn.ReLU(), nn.Linear(512, 128), nn.ReLU(),
                              nn.Linear(128, classes)],
        "cnn-small": lambda: [*convolution(channels, 8, 3), *convolution(8, 16, 3), nn.Flatten(),
                              *dense(16 * left, 32, classes)],
        "cnn-smooth": lambda: [*smooth(channels, 32), *smooth(32, 32), nn.Flatten(), nn.Linear(32 * left, 128),
                               nn.GELU(), nn.Linear(128, classes)],
        "cnn-small-smooth": lambda: [*smooth(channels, 8, 3), *smooth(8, 16, 3), nn.Flatten(),
                                     nn.Linear(16 * left, 32), nn.GELU(), nn.Linear(32, classes)],
        "fedau-svhn": lambda: [*small, *dense(32 * left, 128, classes)],
        "fedau-cifar-10": lambda: [*small, *dense(32 * left, 256, 64, classes)],
        "fedau-cifar-100": lambda: [*small, *dense(32 * left, 512, 256, classes, drop=Mask)],
        "mlp": lambda: [nn.Flatten(), nn.Linear(channels * height * width, 32), nn.ReLU(), nn.Linear(32, classes)],
        "linear": lambda: [nn.Flatten(), nn.Linear(channels * height * width, classes)],
    }[network]()  # fmt: skip
    return nn.Sequential(*layers)


def _plain_gradient(problem, x, images, labels):
    """The mean loss's gradient by a plain forward and backward pass of the torch module."""
    module = _module(problem.network.name).to(x.dtype)
    nn.utils.vector_to_parameters(x.clone(), module.parameters())
    loss = F.cross_entropy(module(images), labels)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(module.parameters()))])


def _raw(dtype=torch.float64):
    return torch.from_numpy(DIGITS.standardised()[0]).to(dtype), torch.from_numpy(DIGITS.train_labels)


def _points(problem, *shape, seed=0):
    rng = np.random.default_rng(seed)
    points = [problem.initial_point(rng) for _ in range(int(np.prod(shape)))]
    return torch.stack(points).view(*shape, problem.dimension)


def test_parameter_counts_are_those_of_the_papers_networks():
    # Wang & Ji 2022, Table D.2: 832 + 25,632 + 200,832 + 1,290 and 2,432 + 51,264 + 2,097,664 + 65,664 + 1,290
    assert Network("cnn", (1, 28, 28), 10).size == 228_586
    assert Network("cnn-cifar", (3, 32, 32), 10).size == 2_218_314
    # Wang & Ji 2024, Appendix C.3: convolutions 896 + 9,248, then dense layers from 8x8x32 = 2,048 inputs
    assert Network("fedau-svhn", (3, 32, 32), 10).size == 10_144 + 262_272 + 1_290
    assert Network("fedau-cifar-10", (3, 32, 32), 10).size == 10_144 + 524_544 + 16_448 + 650
    assert Network("fedau-cifar-100", (3, 32, 32), 100).size == 10_144 + 1_049_088 + 131_328 + 25_700
    assert Network("fedau-cinic-10", (3, 32, 32), 10).size == 10_144 + 1_049_088 + 131_328 + 2_570
    # eight convolutions of VGG-11 on three channels, then 512 inputs to 10 classes
    assert Network("vgg-11", (3, 32, 32), 10).size == 9_220_480 + 5_130

    # Li et al. 2024, the authors' code: with and without what belongs to batch normalization
    for name, image, classes, parameters, weights in (
        ("cnn4-bn", (1, 28, 28), 10, 390_880, 389_920),
        ("cnn4-bn", (3, 32, 32), 10, 399_136, 398_176),
        ("cnn8-bn", (3, 32, 32), 10, 1_183_456, 1_181_536),
        ("cnn8-bn", (3, 32, 32), 100, 1_275_616, 1_273_696),
    ):
        network = Network(name, image, classes)
        assert (network.parameters, network.size - network.normalizing) == (parameters, weights)
        assert network.size == parameters + network.statistics


def _vgg(image, classes=10):
    """VGG-11 without batch normalization, poolings left out where nothing would be left."""
    (channels, height, width), layers = image, []
    for filters in VGG_11:
        if filters == "M":
            if min(height, width) > 1:
                layers, height, width = [*layers, nn.MaxPool2d(2, 2)], height // 2, width // 2
        else:
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU()]
            channels = filters
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(classes))


@pytest.mark.parametrize("image", [(3, 32, 32), (1, 8, 8)])
def test_vgg_11_is_the_torch_module_with_fewer_poolings_on_small_images(image):
    network, module = Network("vgg-11", image, 10), _vgg(image)
    images = torch.from_numpy(np.random.default_rng(1).standard_normal((2, *image))).float()
    module(images)
    assert [tuple(p.shape) for p in module.parameters()] == list(network.shapes.values())
    x = torch.from_numpy(network.initial(np.random.default_rng(0))).float()
    nn.utils.vector_to_parameters(x, module.parameters())
    torch.testing.assert_close(network.logits(x[None], images[None])[0], module(images), rtol=1e-4, atol=1e-5)
    labels = torch.tensor([3, 7])
    loss = F.cross_entropy(module(images), labels)
    expected = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(module.parameters()))])
    got = network.gradient(x[None], images[None], labels[None])[0]
    assert float((got - expected).norm() / expected.norm()) < 1e-5


@pytest.mark.parametrize("name", NETWORKS)
def test_losses_and_gradients_in_the_images_are_those_of_the_torch_module(name):
    problem = _problem(name)
    x, rng = _points(problem, 3), np.random.default_rng(2)
    places = torch.from_numpy(rng.integers(0, 1442, (3, 5)))
    weights = torch.from_numpy(rng.random((3, 5)))
    images, labels = (data[places] for data in _raw())
    found = problem.network.backward(x, images, labels, weights, losses=True, pixels=True)
    torch.testing.assert_close(found.parameters, problem.network.gradient(x, images, labels, weights))
    for b in range(3):
        module = _module(name).double()
        nn.utils.vector_to_parameters(x[b].clone(), module.parameters())
        seen = images[b].clone().requires_grad_()
        losses = F.cross_entropy(module(seen), labels[b], reduction="none")
        torch.testing.assert_close(found.losses[b], losses.detach(), rtol=1e-10, atol=1e-12)
        (expected,) = torch.autograd.grad(losses @ weights[b], seen)
        torch.testing.assert_close(found.pixels[b], expected, rtol=1e-10, atol=1e-13)
    only = problem.network.backward(x, images, labels, losses=True, parameters=False)
    assert only.parameters is None and only.pixels is None
    assert torch.equal(only.losses, found.losses)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("image", [(1, 8, 8), (3, 12, 9), (1, 28, 28)])
def test_shapes_are_those_of_the_torch_module(name, image):
    expected = [tuple(p.shape) for p in _module(name, image, 7).parameters()]
    assert list(Network(name, image, 7).shapes.values()) == expected


@pytest.mark.parametrize("name", NETWORKS)
def test_flattening_undoes_unflattening_and_copies_nothing(name):
    network = Network(name, (1, 8, 8), 10)
    x = torch.arange(3 * network.size, dtype=torch.float64).view(3, -1)
    named = network.unflatten(x)
    assert torch.equal(network.flatten(named), x)
    last = list(named.values())[-1]
    last.fill_(-1)
    assert (x[:, -10:] == -1).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_those_of_the_torch_module(name):
    network, module = Network(name, (1, 8, 8), 10), _module(name).double()
    x = torch.from_numpy(network.initial(np.random.default_rng(0)))
    nn.utils.vector_to_parameters(x, module.parameters())
    images = _raw()[0][:7]
    torch.testing.assert_close(network.logits(x[None], images[None])[0], module(images), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_stochastic_gradient_agrees_with_a_plain_forward_and_backward_pass(name):
    problem, rng = _problem(name), np.random.default_rng(1)
    x, clients = _points(problem, 2, 3), torch.tensor([[0, 7, 59], [7, 7, 30]])
    drawn = torch.from_numpy(np.stack([problem.draw(rng, int(n)) for n in clients.flatten()])).view(2, 3, 16)
    got = problem.stochastic_gradient(x, clients, drawn)
    images, labels = _raw()
    for s in range(2):
        for k in range(3):
            own = drawn[s, k]
            expected = _plain_gradient(problem, x[s, k], images[own], labels[own])
            torch.testing.assert_close(got[s, k], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_a_cohort_in_one_call_agrees_with_one_call_per_client(name, dtype, tolerance):
    problem, rng = _problem(name, dtype), np.random.default_rng(1)
    assert problem.prefers_batched
    x, clients = _points(problem, 2, 3), torch.tensor([[0, 7, 59], [7, 7, 30]])
    drawn = torch.from_numpy(np.stack([problem.draw(rng, int(n)) for n in clients.flatten()])).view(2, 3, 16)
    together = [problem.stochastic_gradient(x, clients, drawn), problem.gradient(x, clients)]
    for s in range(2):
        for k in range(3):
            here = slice(s, s + 1), slice(k, k + 1)
            alone = [
                problem.stochastic_gradient(x[here], clients[here], drawn[here]),
                problem.gradient(x[here], clients[here]),
            ]
            for one, all_ in zip(alone, together, strict=True):
                assert float((one[0, 0] - all_[s, k]).norm() / all_[s, k].norm()) < tolerance


def _drawn(problem, clients, seed=1):
    rng = np.random.default_rng(seed)
    drawn = np.stack([problem.draw(rng, int(n)) for n in clients.flatten()])
    return torch.from_numpy(drawn).view(*clients.shape, *drawn.shape[1:])


def test_dropout_and_augmentation_agree_with_a_plain_pass_through_the_same_masks_and_images():
    problem = _problem("fedau-cifar-100", augmentation=["crop", "flip"])
    x, clients = _points(problem, 2, 2), torch.tensor([[0, 7], [7, 59]])
    drawn = _drawn(problem, clients)
    assert drawn.shape == (2, 2, 2, 16)
    got = problem.stochastic_gradient(x, clients, drawn)
    raw, (shift, scale) = torch.from_numpy(DIGITS.train_images), DIGITS.standardisation
    for s, k in np.ndindex(2, 2):
        own, words = drawn[s, k]
        module = _module("fedau-cifar-100").double()
        nn.utils.vector_to_parameters(x[s, k].clone(), module.parameters())
        masks = [torch.stack([uniforms(word, 100 + i, width) >= 0.2 for word in words]).double() / 0.8
                 for i, width in enumerate((128, 512, 256))]  # fmt: skip
        for layer, mask in zip([m for m in module if isinstance(m, Mask)], masks, strict=True):
            layer.mask = mask
        images = problem.augmentation.apply(raw[own], words)
        images = (images.double() - shift.item()) / scale.item()
        loss = F.cross_entropy(module(images), torch.from_numpy(DIGITS.train_labels)[own])
        expected = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(module.parameters()))])
        torch.testing.assert_close(got[s, k], expected, rtol=1e-10, atol=1e-13)


def test_dropout_keeps_four_fifths_of_the_units_and_their_mean():
    network = Network("fedau-cinic-10", (3, 32, 32), 10)
    masks = network.masks(torch.arange(300), torch.float64)
    assert [mask.shape for mask in masks] == [(300, 2048), (300, 512), (300, 256)]
    for mask in masks:
        assert sorted(mask.unique().tolist()) == [0, 1.25]
        for axis in (0, 1):
            deviation = (0.25 / mask.shape[axis]) ** 0.5  # of a mean of independent values 0 and 5/4
            assert abs(float(mask.mean(axis).std()) / deviation - 1) < 0.25
        assert abs(float(mask.mean()) - 1) < 5 * (0.25 / mask.numel()) ** 0.5
    assert Network("fedau-cifar-10", (3, 32, 32), 10).masks(torch.arange(3), torch.float32) == []


@pytest.mark.parametrize("options", [{"network": "fedau-cifar-100"}, {"network": "mlp", "augmentation": ("crop",)}])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_random_changes_are_the_same_in_one_call_for_a_cohort_and_in_one_per_client(options, dtype, tolerance):
    problem = _problem(dtype=dtype, **options)
    x, clients = _points(problem, 2, 3), torch.tensor([[0, 7, 59], [7, 7, 30]])
    drawn = _drawn(problem, clients)
    together = problem.stochastic_gradient(x, clients, drawn)
    for s, k in np.ndindex(2, 3):
        here = slice(s, s + 1), slice(k, k + 1)
        alone = problem.stochastic_gradient(x[here], clients[here], drawn[here])[0, 0]
        assert float((alone - together[s, k]).norm() / alone.norm()) < tolerance
    changed = drawn.clone()
    changed[0, 0, 1] += 1  # another word
    other = problem.stochastic_gradient(x, clients, changed)
    assert torch.equal(other[1], together[1]) and not torch.allclose(other[0, 0], together[0, 0])


@pytest.mark.parametrize(
    "options", [{"network": "fedau-cinic-10"}, {"network": "cnn", "augmentation": ("flip", "crop")}]
)
def test_engines_agree_under_dropout_and_augmentation(options):
    problem = ImageClassification(DIGITS, PARTITION, dtype=torch.float64, **options)
    participation = Bernoulli(60, 0.05, normalize=False)
    runs = {
        engine: simulate(FedAvg(0.1, 2), problem, participation, 2, seeds=(0, 1), engine=engine, record_every=2)
        for engine in ("sequential", "batched")
    }
    one, other = (runs[engine].arrays["train_loss"] for engine in runs)
    np.testing.assert_allclose(one, other, rtol=1e-10)
    assert (one[:, 1:] != one[:, :1]).any()


def test_random_changes_leave_losses_and_exact_gradients_alone():
    plain, changed = _problem("mlp"), _problem("mlp", augmentation=["crop", "flip"])
    x, clients = _points(plain, 1, 2), torch.tensor([[0, 7]])
    assert torch.equal(plain.gradient(x, clients), changed.gradient(x, clients))
    assert torch.equal(plain.objective(x[0]), changed.objective(x[0]))
    dropped = _problem("fedau-cifar-100")
    x = _points(dropped, 1)
    images, labels = _raw()
    own = PARTITION.samples[5]
    local = dropped.gradient(x[:, None], torch.tensor([[5]]))[0, 0]
    torch.testing.assert_close(local, _plain_gradient(dropped, x[0], images[own], labels[own]), rtol=1e-9, atol=1e-12)


def test_large_images_on_a_processor_are_walked_in_turn_with_the_same_result():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 1, 20, 20)).astype(np.uint8)
    labels = np.arange(40) % 4
    data = Dataset("noise", images, labels, images, labels, 4)
    problem = ImageClassification(data, Partition(labels, np.arange(4)), "cnn", 5, dtype=torch.float64)
    assert not problem.prefers_batched
    x, clients = _points(problem, 1, 4), torch.arange(4)[None]
    drawn = torch.from_numpy(np.stack([problem.draw(rng, n) for n in range(4)]))[None]
    grouped = problem.network.gradient(
        x[0], problem._images[drawn[0]], problem._labels[drawn[0]]
    )  # the batched walk that a GPU would take
    torch.testing.assert_close(problem.stochastic_gradient(x, clients, drawn)[0], grouped, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_gradients_agree_with_finite_differences_of_the_objective(name):
    problem = _problem(name)
    x, rng = _points(problem, 1), np.random.default_rng(5)
    gradient = problem.objective_gradient(x)[0]
    for _ in range(1 if name == "cnn" else 3):
        direction = torch.from_numpy(rng.standard_normal(problem.dimension))
        direction /= direction.norm()
        step = 1e-7  # small, to stay between the kinks of ReLU and pooling
        slope = (problem.objective(x + step * direction) - problem.objective(x - step * direction)) / (2 * step)
        assert float(slope) == pytest.approx(float(gradient @ direction), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ["cnn", "mlp", "linear"])
def test_local_gradients_are_over_all_samples_of_the_client_and_their_mean_is_the_objectives(name):
    problem = _problem(name)
    x, everyone = _points(problem, 1), torch.arange(60)[None]
    local = problem.gradient(x[:, None].expand(1, 60, -1), everyone)[0]
    images, labels = _raw()
    for n in (0, 31, 59):
        own = PARTITION.samples[n]
        expected = _plain_gradient(problem, x[0], images[own], labels[own])
        torch.testing.assert_close(local[n], expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(problem.objective_gradient(x)[0], local.mean(0), rtol=1e-9, atol=1e-12)


def test_metrics_are_losses_and_the_share_of_correct_answers():
    problem = _problem("mlp", gradient_norm=True)
    x = _points(problem, 2)
    metrics = problem.metrics(x)
    train, test = (torch.from_numpy(images).double() for images in DIGITS.standardised())
    for s in range(2):
        module = _module("mlp").double()
        nn.utils.vector_to_parameters(x[s].clone(), module.parameters())
        with torch.no_grad():
            labels = torch.from_numpy(DIGITS.train_labels)
            losses = F.cross_entropy(module(train), labels, reduction="none").numpy()
            hits = (module(train).argmax(1) == labels).numpy()
            clients = [losses[own].mean() for own in PARTITION.samples]
            answers = module(test)
        shares = [hits[own].mean() for own in PARTITION.samples]
        assert float(metrics["train_accuracy"][s]) == pytest.approx(float(np.mean(shares)), rel=1e-12)
        assert float(metrics["train_loss"][s]) == pytest.approx(float(np.mean(clients)), rel=1e-12)
        truth = torch.from_numpy(DIGITS.test_labels)
        assert float(metrics["test_loss"][s]) == pytest.approx(float(F.cross_entropy(answers, truth)), rel=1e-12)
        share = float((answers.argmax(1) == truth).double().mean())
        assert float(metrics["test_accuracy"][s]) == pytest.approx(share, rel=1e-12)
        norm = float(problem.objective_gradient(x[s]).square().sum())
        assert float(metrics["gradient_norm_squared"][s]) == pytest.approx(norm, rel=1e-12)
    assert "gradient_norm_squared" not in _problem("mlp").metrics(x)


def test_client_metrics_are_over_the_clients_own_samples_and_its_share_of_each_class():
    problem = _problem("mlp")
    x = _points(problem, 2)
    found = problem.client_metrics(x)
    metrics = problem.metrics(x)
    train, test = (torch.from_numpy(images).double() for images in DIGITS.standardised())
    for s in range(2):
        for name in ("train_loss", "train_accuracy"):
            assert float(metrics[name][s]) == pytest.approx(found[name][s].mean(), rel=1e-12)
        module = _module("mlp").double()
        nn.utils.vector_to_parameters(x[s].clone(), module.parameters())
        with torch.no_grad():
            hits = (module(test).argmax(1).numpy() == DIGITS.test_labels).astype(float)
            loss = F.cross_entropy(module(train[PARTITION.samples[7]]),
                                   torch.from_numpy(DIGITS.train_labels[PARTITION.samples[7]]))  # fmt: skip
        assert found["train_loss"][s, 7] == pytest.approx(float(loss), rel=1e-12)
        own = DIGITS.train_labels[PARTITION.samples[7]]
        expected = np.mean([hits[DIGITS.test_labels == label].mean() for label in own])
        assert found["test_accuracy"][s, 7] == pytest.approx(expected, rel=1e-12)


def test_the_loss_of_float32_models_is_summed_in_float64():
    single, double = _problem("linear", torch.float32), _problem("linear")
    x = single.initial_point(np.random.default_rng(0))
    found, expected = float(single.objective(x)), float(double.objective(x.double()))
    assert found == pytest.approx(expected, rel=5e-9)  # float32 sums are off by 1e-7: f(x0) would be no upper bound


def test_clients_count_the_same_whatever_they_hold():
    uneven = Partition(np.r_[np.zeros(1000), np.ones(442)].astype(int), np.array([0, 1]))
    problem = ImageClassification(DIGITS, uneven, "linear", dtype=torch.float64)
    x = _points(problem, 1)
    pair = problem.gradient(x[:, None].expand(1, 2, -1), torch.tensor([[0, 1]]))[0]
    torch.testing.assert_close(problem.objective_gradient(x)[0], pair.mean(0), rtol=1e-9, atol=1e-12)


def test_a_batch_holds_distinct_samples_of_the_client_each_equally_often():
    problem = _problem("mlp", batch=5)
    own = PARTITION.samples[3]
    batches = problem.draws(np.random.default_rng(0), 3, 8000)
    assert batches.shape == (8000, 5)
    assert all(len(set(batch)) == 5 for batch in batches[:500])
    times = np.array([(batches == sample).sum() for sample in own])
    assert times.sum() == batches.size
    share = 5 / len(own)
    assert (abs(times / 8000 - share) < 5 * (share * (1 - share) / 8000) ** 0.5).all()


def test_the_mean_stochastic_gradient_is_the_local_gradient():
    problem, rng = _problem("linear", batch=4), np.random.default_rng(0)
    x, client = _points(problem, 1, 1), torch.tensor([[2]])
    exact = problem.gradient(x, client)[0, 0]
    drawn = torch.from_numpy(problem.draws(rng, 2, 5000))[None]
    each = problem.stochastic_gradient(x.expand(1, 5000, -1), client.expand(1, 5000), drawn)[0]
    variance = (each - exact).square().sum(1).mean()
    assert float((each.mean(0) - exact).square().sum()) < 4 * float(variance) / 5000


def test_a_client_with_fewer_samples_than_the_batch_takes_all_of_them():
    problem, rng = _problem("mlp", batch=30), np.random.default_rng(0)
    small, large = int(PARTITION.sizes.argmin()), int(PARTITION.sizes.argmax())
    assert PARTITION.sizes[small] < 30
    assert len(set(problem.draw(rng, small)) - {-1}) == PARTITION.sizes[small]
    clients = torch.tensor([[small, large]])
    drawn = torch.from_numpy(np.stack([problem.draw(rng, small), problem.draw(rng, large)]))[None]
    x = _points(problem, 1, 2)
    got = problem.stochastic_gradient(x, clients, drawn)
    torch.testing.assert_close(got[0, 0], problem.gradient(x, clients)[0, 0], rtol=1e-10, atol=1e-13)


def test_many_draws_are_the_single_draws_in_a_row():
    problem, rng = _problem("mlp"), np.random.default_rng(5)
    together = problem.draws(np.random.default_rng(5), 2, 4)
    np.testing.assert_array_equal(together, np.stack([problem.draw(rng, 2) for _ in range(4)]))


def test_words_leave_the_samples_of_the_smallest_clients_and_the_order_of_draws_as_they_are():
    problem, rng = _problem("mlp", batch=30, augmentation=["flip"]), np.random.default_rng(5)
    small, width = int(PARTITION.sizes.argmin()), int(PARTITION.sizes.max())  # no client holds 30
    for client in (small, int(PARTITION.sizes.argmax())):
        together = problem.draws(np.random.default_rng(5), client, 4)
        rng = np.random.default_rng(5)
        np.testing.assert_array_equal(together, np.stack([problem.draw(rng, client) for _ in range(4)]))
        assert together.shape == (4, 2, width) and len(set(together[:, 1].ravel())) == 4 * width
        assert set(together[:, 0].ravel()) - {-1} <= set(PARTITION.samples[client])
    x = _points(problem, 1, 1)
    assert torch.isfinite(
        problem.stochastic_gradient(x, torch.tensor([[small]]), _drawn(problem, torch.tensor([[small]])))
    ).all()


def test_initial_weights_are_kaiming_normal_and_the_last_layer_is_torchs_default():
    network = Network("cnn", (1, 28, 28), 10)
    x = network.unflatten(torch.from_numpy(network.initial(np.random.default_rng(0))))
    for layer, fan_in in (("convolution1", 25), ("convolution2", 800), ("dense1", 1568)):
        weight = x[f"{layer}.weight"]
        error = 5 / (2 * weight.numel()) ** 0.5
        assert float(weight.std()) == pytest.approx((2 / fan_in) ** 0.5, rel=error)
        assert float(((weight / weight.std()) ** 4).mean()) == pytest.approx(3, rel=0.35)  # normal, not uniform
        assert not x[f"{layer}.bias"].any()
    bound = 128**-0.5
    for name in ("dense2.weight", "dense2.bias"):
        assert float(x[name].abs().max()) <= bound
    assert float(x["dense2.weight"].std()) == pytest.approx(bound / 3**0.5, rel=0.05)


def test_initial_point_is_a_function_of_the_generator():
    problem = _problem("cnn", torch.float32)
    first, again, other = (problem.initial_point(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.dtype == torch.float32
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_mlp_learns_the_digits():
    problem, rng = _problem("mlp", torch.float32), np.random.default_rng(0)
    x, everyone = problem.initial_point(rng), torch.arange(60)[None]
    before = problem.metrics(x[None])
    for _ in range(150):
        drawn = torch.from_numpy(np.stack([problem.draw(rng, n) for n in range(60)]))[None]
        x = x - 0.5 * problem.stochastic_gradient(x.expand(1, 60, -1), everyone, drawn)[0].mean(0)
    after = problem.metrics(x[None])
    assert float(before["test_accuracy"]) < 0.4
    assert float(after["test_accuracy"]) > 0.9
    assert float(after["train_loss"]) < 0.1 * float(before["train_loss"])


def test_networks_with_relu_have_no_finite_constants():
    constants = _problem("mlp").constants()
    unknown = ("smoothness", "strong_convexity", "initial_gap", "gradient_noise", "gradient_divergence_sup")
    for concept in (*unknown, "gradient_bound"):
        assert isinstance(constants[concept], NoConstant)


def test_smoothness_of_logistic_regression_is_approached_where_two_classes_share_all_probability():
    problem = _problem("linear")
    smoothness = problem.constants()["smoothness"]
    assert isinstance(smoothness, Constant)
    x = torch.zeros(problem.dimension, dtype=torch.float64)
    x[640:642] = 60.0  # the biases of the first two classes
    images = torch.cat([_raw()[0].flatten(1), torch.ones(1442, 1)], dim=1)
    steepest = 0.0
    for n, own in enumerate(PARTITION.samples):
        top = torch.linalg.svd(images[own], full_matrices=False)[2][0]
        direction = torch.zeros(10, 65, dtype=torch.float64)
        direction[0], direction[1] = top / 2**0.5, -top / 2**0.5
        flat = torch.cat([direction[:, :64].reshape(-1), direction[:, 64]])
        pair = torch.stack([x + 1e-4 * flat, x - 1e-4 * flat])[:, None]
        plus, minus = problem.gradient(pair, torch.tensor([[n], [n]]))[:, 0]
        steepest = max(steepest, float((plus - minus).norm()) / 2e-4)
    assert steepest == pytest.approx(smoothness.value, rel=1e-6)
    assert steepest <= smoothness.value * (1 + 1e-9)


def test_bounds_on_gradients_noise_and_divergence_of_logistic_regression_hold_far_away():
    problem, rng = _problem("linear", batch=4), np.random.default_rng(0)
    concepts = ("gradient_noise", "gradient_divergence_sup", "gradient_bound")
    noise, divergence, bound = (problem.constants()[c] for c in concepts)
    assert isinstance(noise, Constant)
    assert isinstance(divergence, Constant)
    assert isinstance(bound, Constant)
    everyone = torch.arange(60)[None]
    worst_noise = worst_divergence = steepest = 0.0
    for size in (0.0, 1.0, 100.0):
        x = torch.from_numpy(size * rng.standard_normal(problem.dimension))
        local = problem.gradient(x.expand(1, 60, -1), everyone)[0]
        worst_divergence = max(worst_divergence, float((local - local.mean(0)).norm(dim=1).max()))
        steepest = max(steepest, float(problem.objective_gradient(x).norm()))
        for n in range(10):
            drawn = torch.from_numpy(problem.draws(rng, n, 400))[None]
            each = problem.stochastic_gradient(x.expand(1, 400, -1), torch.full((1, 400), n), drawn)[0]
            worst_noise = max(worst_noise, float((each - local[n]).square().sum(1).mean()) ** 0.5)
    assert 0.1 * noise.value < worst_noise < noise.value
    assert 0.1 * divergence.value < worst_divergence < divergence.value
    assert 0.1 * bound.value < steepest < bound.value


def test_augmentation_takes_the_bound_on_the_noise_away():
    plain, changed = (_problem("linear", augmentation=names).constants() for names in ((), ("crop",)))
    assert isinstance(changed["gradient_noise"], NoConstant)
    assert plain["smoothness"] == changed["smoothness"]


def test_the_data_are_identified_by_their_checksum():
    assert _problem("mlp").data_checksum == checksum(DIGITS)


def test_bad_image_problems_are_refused_in_one_line():
    with pytest.raises(FedboundsError, match="unknown network 'cnm'; did you mean cnn"):
        _problem("cnm")
    with pytest.raises(FedboundsError, match="batch = 0 must be an integer"):
        _problem("mlp", batch=0)
    with pytest.raises(FedboundsError, match="deals 2 samples, data set digits has 1442"):
        ImageClassification(DIGITS, Partition(np.array([0, 1]), np.array([0, 1])))
    with pytest.raises(FedboundsError, match="unknown augmentation 'crob'; did you mean crop"):
        _problem("mlp", augmentation=["crob"])
    with pytest.raises(FedboundsError, match="'equalize' needs images of 3 channels"):
        _problem("mlp", augmentation=["equalize"])
    with pytest.raises(FedboundsError, match="pools images of 3x3 pixels to nothing"):
        Network("cnn", (1, 3, 3), 10)
    problem = _problem("mlp")
    with pytest.raises(FedboundsError, match="indices"):
        problem.stochastic_gradient(_points(problem, 1, 1), torch.tensor([[0]]), None)
