"""Local steps of networks on images: layer by layer as along gradients, on batches in one order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import majority_class_partition
from fedbounds.empirical.problems import ImageClassification, images

DIGITS = load_dataset("digits")
PARTITION = majority_class_partition(DIGITS.train_labels, 60, np.random.default_rng(0))


def _problem(network: str, **options: Any) -> ImageClassification:
    return ImageClassification(DIGITS, PARTITION, network, dtype=torch.float64, **options)


def test_a_batch_is_the_smallest_numbers_in_one_order_whatever_the_client_holds() -> None:
    rng = np.random.default_rng(0)
    problem = _problem("linear", batch=5)
    for held in (6, 128, 129, 1024, 1025, 3000):
        keys = rng.random((4, 3, held))
        found, expected = problem._first(keys), keys.argsort(axis=-1)[..., :5]
        if held > 1024:  # there is no paper package for the places: the order is whatever it is
            found, expected = np.sort(found), np.sort(expected)
        assert found.dtype == np.int64 and np.array_equal(found, expected)


@pytest.mark.parametrize("at_once", [1, 2**18])
@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("mlp", {}),
        ("linear", {"batch": 30}),
        ("mlp", {"augmentation": ["flip"]}),
        ("mlp", {"batch": 30, "weight_decay": 0.3}),
    ],
    ids=str,
)
def test_steps_layer_by_layer_end_where_steps_along_gradients_do(
    network: str, options: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_AT_ONCE", at_once)
    problem, rng = _problem(network, **options), np.random.default_rng(1)
    assert problem._padded == ("batch" in options)
    clients, sizes = torch.tensor([[0, 7], [3, 7]]), torch.from_numpy(rng.uniform(0.05, 0.5, (2, 2, 1)))
    drawn = torch.from_numpy(problem.draws_of_all([rng] * 4, clients.flatten().tolist(), 3)).unflatten(1, (2, 2))
    x = torch.from_numpy(rng.normal(size=(2, 2, problem.dimension)) / 8)
    before, y = x.clone(), x
    for own in drawn:
        y = y - sizes * problem.stochastic_gradient(y, clients, own)
    found = problem.fuse_steps(x, clients, drawn, sizes)
    assert problem.fuses_steps and torch.equal(x, before) and (y - x).abs().max() > 0.01
    torch.testing.assert_close(found, y, rtol=0, atol=1e-13)
    for seed in range(2):  # alone, too, and without a trace in what was given
        for pair in range(2):
            own = slice(seed, seed + 1), slice(pair, pair + 1)
            alone = problem.fuse_steps(x[own], clients[own], drawn[:, own[0], own[1]], sizes[own])
            torch.testing.assert_close(alone, found[own], rtol=0, atol=1e-13)
    assert torch.equal(x, before)


def test_networks_with_convolutions_step_along_their_gradients() -> None:
    problem = _problem("cnn-small")
    x, clients = problem.initial_point(np.random.default_rng(0)).view(1, 1, -1), torch.tensor([[2]])
    own = torch.from_numpy(problem.draws(np.random.default_rng(1), 2, 1)).view(1, 1, 1, -1)
    expected = x - 0.1 * problem.stochastic_gradient(x, clients, own[0])
    found = problem.fuse_steps(x, clients, own, torch.full((1, 1, 1), 0.1, dtype=x.dtype))
    assert not problem.fuses_steps
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-15)
