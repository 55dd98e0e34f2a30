"""Networks in silos against the centralized model, one sample at a time; batches by enumeration; TDCD on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score, top_k_accuracy_score
from torch.autograd.functional import hessian

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.tiers import TierSteps
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import cut_partition
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import VerticalNetworks, problem_from_spec
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import Tiers
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

SAMPLES = 12


def made(image: tuple[int, int, int] = (1, 1, 5), classes: int = 3, samples: int = SAMPLES) -> Dataset:
    """A few samples of noise."""
    rng = np.random.default_rng([samples, classes, *image])
    train, test = (rng.standard_normal((n, *image)).astype(np.float32) for n in (samples, 7))
    labels, tested = np.arange(samples) % classes, rng.integers(0, classes, 7)
    return Dataset("noise", train, labels, test, tested, classes)


def problem(
    data: Dataset, shards: Sequence[Sequence[int]] = ((6, 6), (4, 4, 4)), same_rows: bool = False, **changed
) -> VerticalNetworks:
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(data.train_labels)) for _ in shards]
    rows = [
        cut_partition(data.train_labels, sizes, orders[0] if same_rows else order)
        for sizes, order in zip(shards, orders, strict=True)
    ]
    return VerticalNetworks(data, rows, **{"dtype": torch.float64, "gradient_norm": True} | changed)


def point(of: VerticalNetworks, seed: int = 0) -> torch.Tensor:
    return of.initial_point(np.random.default_rng(seed)) + 0.1 * torch.randn(
        of.dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


def embedded(name: str, x: torch.Tensor, image: torch.Tensor, size: int) -> torch.Tensor:
    """One sample's embedding by torch's own layers."""
    if name == "lstm-small":
        memory, head = torch.nn.LSTM(image.shape[2], 16).double(), torch.nn.Linear(16, size).double()
        weight, bias, *last = x.split([64 * (image.shape[2] + 16), 64, 16 * size, size])
        into, back = weight.view(64, -1).split([image.shape[2], 16], 1)
        named = {"weight_ih_l0": into, "weight_hh_l0": back, "bias_ih_l0": bias, "bias_hh_l0": 0 * bias}
        states, _ = torch.func.functional_call(memory, named, image[0])
        return torch.func.functional_call(head, {"weight": last[0].view(size, 16), "bias": last[1]}, states[-1])
    layers: list[torch.nn.Module] = []
    channels, high, wide = image.shape
    for filters in {"cnn-small-smooth": (8, 16)}.get(name, ()):
        layers += [torch.nn.Conv2d(channels, filters, 3, padding=1), torch.nn.AvgPool2d(2)]
        layers.insert(-1, torch.nn.GELU())
        channels, high, wide = filters, high // 2, wide // 2
    layers.append(torch.nn.Flatten())
    width = channels * high * wide
    for units in {"mlp": (32,), "cnn-small-smooth": (32,)}.get(name, ()):
        layers += [torch.nn.Linear(width, units), torch.nn.GELU() if "smooth" in name else torch.nn.ReLU()]
        width = units
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, size)).double()
    sizes = [p.numel() for p in model.parameters()]
    assert sum(sizes) == len(x)
    named = zip(model.named_parameters(), x.split(sizes), strict=True)
    return torch.func.functional_call(model, {name: part.view(p.shape) for (name, p), part in named}, image[None])[0]


LOSSES = {
    "cross-entropy": lambda z, y: F.cross_entropy(z[None], y[None]),
    "logistic": lambda z, y: F.softplus(z[0]) - y * z[0],
    "least-squares": lambda z, y: (z[0] - y) ** 2 / 2,
}


def centralized(of: VerticalNetworks, loss: str, views: Sequence[torch.Tensor], some: Sequence[int]) -> torch.Tensor:
    """The mean loss of some samples, where silo j's network has the parameters `views[j]` of its block."""
    data, total = torch.from_numpy(of.dataset.standardised()[0]).double(), torch.zeros((), dtype=torch.float64)
    widths = np.cumsum([0, *(network.image[2] for network in of.networks)])
    for p in some:
        parts = [
            embedded(network.name, view, data[p, ..., widths[j] : widths[j + 1]], of.loss.size)
            for j, (network, view) in enumerate(zip(of.networks, views, strict=True))
        ]
        total = total + LOSSES[loss](torch.stack(parts).sum(0), torch.tensor(int(of.dataset.train_labels[p])))
    return total / len(some) + of.weight_decay / 2 * sum((view**2).sum() for view in views)


CASES = [
    ("linear", "cross-entropy", (1, 1, 5), 3),
    ("linear", "least-squares", (1, 1, 5), 3),
    ("mlp", "logistic", (1, 1, 5), 2),
    ("cnn-small-smooth", "cross-entropy", (2, 4, 8), 3),
    ("lstm-small", "logistic", (1, 3, 4), 2),
]


@pytest.mark.parametrize("batched", [True, False], ids=["batched", "sequential"])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize(("network", "loss", "image", "classes"), CASES)
def test_gradients_are_those_of_the_centralized_model(network, loss, image, classes, decay, batched) -> None:
    own = problem(made(image, classes), network=network, loss=loss, batch=3, weight_decay=decay)
    own.prefers_batched = batched
    x, everything = point(own).requires_grad_(), range(SAMPLES)
    whole = centralized(own, loss, [x[block] for block in own.blocks], everything)
    (slope,) = torch.autograd.grad(whole, x)
    torch.testing.assert_close(own.objective(x.detach()), whole.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(own.objective_gradient(x.detach()), slope, rtol=1e-11, atol=1e-12)
    metrics = own.metrics(x.detach()[None])
    torch.testing.assert_close(metrics["gradient_norm_squared"][0], slope.square().sum())
    torch.testing.assert_close(metrics["train_loss"][0], whole.detach(), rtol=1e-12, atol=1e-12)

    batches = torch.stack([torch.from_numpy(own.draw_round(np.random.default_rng(s))) for s in (1, 2)])  # type: ignore[arg-type]
    starts = torch.stack([x.detach(), point(own, 5)])
    told, client = own.exchange(starts, batches), 0
    assert any(int(own.batch_counts(j, told).min()) == 0 for j in range(2))  # who has no sample has no gradient
    for j, block in enumerate(own.blocks):
        copies = starts[:, None, block] + 0.1 * torch.randn(2, own.silo_clients[j], block.stop - block.start).double()
        found, stale = own.partial_gradients(j, copies, told), own.stale_gradients(j, copies, told)
        for slopes, of in ((found, False), (stale, True)):
            moved = copies.clone()
            own.descend(j, moved, told, 0.3, of)
            torch.testing.assert_close(moved, copies - 0.3 * slopes, rtol=1e-13, atol=1e-13)
        for seed in range(2):
            views = [starts[seed, other] for other in own.blocks]
            for k in range(own.silo_clients[j]):
                rows = own.partitions[j].samples[k]
                some = [p for p in batches[seed].tolist() if p in rows]
                assert int(own.batch_counts(j, told)[seed, k]) == len(some)
                copy = copies[seed, k].clone().requires_grad_()
                if some:
                    moved = centralized(own, loss, [*views[:j], copy, *views[j + 1 :]], some)
                    torch.testing.assert_close(found[seed, k], torch.autograd.grad(moved, copy)[0])
                    if network == "linear":  # whose Jacobian stays: the stale gradient is the one at the start
                        back = starts[seed, block].clone().requires_grad_()
                        begun = centralized(own, loss, [*views[:j], back, *views[j + 1 :]], some)
                        here = torch.autograd.grad(begun, back)[0] + decay * (copy - back).detach()
                        torch.testing.assert_close(stale[seed, k], here)
                else:
                    assert not found[seed, k].any()
                    assert not stale[seed, k].any()
                shard = centralized(own, loss, [x[other] for other in own.blocks], rows.tolist())
                exact = own.gradient(x.detach()[None, None], torch.tensor([[client + k]]))[0, 0]
                torch.testing.assert_close(exact[block], torch.autograd.grad(shard, x)[0][block])
                assert int((exact != 0).sum()) <= block.stop - block.start
        client += own.silo_clients[j]


def test_stale_gradients_keep_the_derivatives_and_not_the_jacobian() -> None:
    own = problem(made(), network="mlp", batch=7)
    x, ids = point(own)[None], torch.from_numpy(np.random.default_rng(1).choice(SAMPLES, 7, replace=False))[None]
    told = own.exchange(x, ids)
    copies = x[:, None, own.blocks[0]] + 0.3 * torch.randn(1, 2, own.blocks[0].stop).double()
    nets = enumerate(zip(own.networks, own.blocks, strict=True))
    sums = torch.stack([net.logits(x[:, block], own._train[j][ids])[0] for j, (net, block) in nets])
    frozen = own.loss.slopes(sums.sum(0), own._labels[ids[0]])
    for k in range(2):
        copy, rows = copies[0, k].clone().requires_grad_(), own.partitions[0].samples[k]
        places = [i for i, p in enumerate(ids[0].tolist()) if p in rows]
        outputs = own.networks[0].logits(copy[None], own._train[0][ids[0, places]][None])[0]
        expected = torch.autograd.grad((outputs * frozen[places]).sum() / len(places), copy)[0]
        torch.testing.assert_close(own.stale_gradients(0, copies, told)[0, k], expected)


# --- randomness, by enumeration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "loss"), [(4, "cross-entropy"), (2, "least-squares"), (6, "cross-entropy")])
def test_the_mean_and_the_variance_over_all_batches_are_those_that_are_said(batch: int, loss: str) -> None:
    own = problem(made(samples=6), ((3, 3), (2, 2, 2)), batch=batch, loss=loss)
    x, everybody = point(own), torch.arange(own.clients)
    batches = torch.tensor(list(combinations(range(6), batch)))
    assert len(batches) == comb(6, batch)
    told = own.exchange(x.expand(len(batches), -1), batches)
    said, noise = own.gradient(x.expand(1, own.clients, -1), everybody[None])[0], own.partial_noise(x)
    client, mean, total = 0, torch.zeros_like(x), 0.0
    for j, block in enumerate(own.blocks):
        whole = own.objective_gradient(x)[block]
        found = own.partial_gradients(j, x[block].expand(len(batches), own.silo_clients[j], -1), told)
        for k in range(own.silo_clients[j]):
            some = found[own.batch_counts(j, told)[:, k] > 0, k]
            torch.testing.assert_close(some.mean(0), said[client, block])  # the gradient of the shard
            torch.testing.assert_close((some - some.mean(0)).square().sum(1).mean(), noise.sampling[client])
            torch.testing.assert_close((some.mean(0) - whole).square().sum(), noise.divergence[client])
            total += float((some - whole).square().sum(1).mean()) / own.silo_clients[j]
            mean[block] += said[client, block] / own.silo_clients[j]
            client += 1
    torch.testing.assert_close(mean, own.objective_gradient(x))  # of equal shards
    assert float(own.silo_variances(x).sum()) == pytest.approx(total, rel=1e-12)
    listed = own.outcomes()
    assert listed is None if batch == 6 else listed.tolist() == batches.tolist()


def test_with_batches_for_weights_the_first_step_is_unbiased_whatever_the_shards_are() -> None:
    own = problem(made(samples=6), ((1, 5), (3, 2, 1)), batch=3, loss="least-squares")
    x, batches = point(own), torch.tensor(list(combinations(range(6), 3)))
    told = own.exchange(x.expand(len(batches), -1), batches)
    whole = own.objective_gradient(x)
    for empty in ("zero", "drop"):
        for average in ("batches", "clients", "shards"):
            engine = Tiers(own, TierSteps(0.1, 1, average, empty))  # type: ignore[arg-type]
            moved = torch.zeros_like(x)
            for j, block in enumerate(own.blocks):
                copies = engine.copies(j, x[block].expand(len(batches), -1), told)
                weights = engine.weights(j, told)
                plain = torch.full((own.silo_clients[j],), 1 / own.silo_clients[j]) if weights is None else weights
                moved[block] = (plain[..., None] * copies).sum(1).mean(0) - x[block]
            assert bool(torch.allclose(moved, -0.1 * whole, rtol=1e-9)) == (average == "batches"), (average, empty)


def test_nobody_is_reported_of_an_empty_part_but_by_refusal() -> None:
    own = problem(made(samples=6), ((1, 5), (3, 3)), batch=2)
    with pytest.raises(FedboundsError, match="a client of silo 0 holds no sample of the batch"):
        simulate(TDCD(0.1, 1), own, Full(own.clients), 20)
    x = point(own)
    lonely = next(p for p in range(6) if own.partitions[0].assignment[p] == 1)
    other = next(p for p in range(6) if own.partitions[0].assignment[p] == 1 and p != lonely)
    told = own.exchange(x[None], torch.tensor([[lonely, other]]))
    block = own.blocks[0]
    for empty, expected in (("zero", [0.5, 0.5]), ("drop", [0.0, 1.0])):
        engine = Tiers(own, TierSteps(0.1, 3, empty=empty))  # type: ignore[arg-type]
        weights, copies = engine.weights(0, told), engine.copies(0, x[None, block], told)
        assert torch.equal(copies[0, 0], x[block])
        assert [0.5, 0.5] if weights is None else weights[0].tolist() == expected
    assert all(
        run.statuses == ("done",)
        for run in [
            simulate(TDCD(0.1, 2, empty=empty), own, Full(own.clients), 20)
            for empty in ("zero", "drop")  # type: ignore[arg-type]
        ]
    )


# --- TDCD -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithm",
    [
        TDCD(0.01, 3, "batches", "drop"),
        TDCD(0.01, 3, "shards", "zero"),
        LabelPrivateTDCD(0.01, 3, "once a round", empty="drop"),
    ],
    ids=lambda one: f"{one.kind} {one.average} {one.empty}",
)
@pytest.mark.parametrize("network", ["linear", "cnn-small"])
def test_the_engine_is_the_slow_twin_on_networks(network: str, algorithm: TDCD) -> None:
    own = problem(made((1, 4, 8)), ((5, 7), (2, 4, 6)), network=network, batch=5, weight_decay=0.1)
    run = simulate(algorithm, own, Full(own.clients), 6, seeds=(1, 7), record_models=True)
    for seed, models in zip((1, 7), run.model, strict=True):
        slow = run_reference(algorithm, own, np.full((6, 5), 0.2), Streams(seed))
        np.testing.assert_allclose(models, slow.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("batch", "average"), [(None, "clients"), (7, "batches")])
def test_one_local_step_is_centralized_minibatch_sgd(batch: int | None, average: str) -> None:
    own = problem(made(), batch=batch, weight_decay=0.2)
    algorithm = TDCD(0.1, 1, average, "drop")  # type: ignore[arg-type]
    models = simulate(algorithm, own, Full(own.clients), 5, record_models=True).model[0]
    x = torch.from_numpy(models[0])
    for t, found in enumerate(models[1:]):
        drawn = own.draw_round(Streams(0).generator("noise", t))
        some = list(range(SAMPLES)) if drawn is None else drawn.tolist()
        x = x.detach().requires_grad_()
        loss = centralized(own, "cross-entropy", [x[block] for block in own.blocks], some)
        x = x.detach() - 0.1 * torch.autograd.grad(loss, x)[0]
        np.testing.assert_allclose(found, x.numpy(), rtol=0, atol=1e-12)


def test_samples_are_known_by_their_ids_and_not_by_their_rows() -> None:
    rng = np.random.default_rng(2)
    data, order = made(), rng.permutation(SAMPLES)
    assignments = [rng.permutation(np.arange(SAMPLES) % K) for K in (2, 3)]
    moved = replace(data, train_images=data.train_images[order], train_labels=data.train_labels[order])
    found = []
    for own, rows in ((data, np.arange(SAMPLES)), (moved, order)):
        cuts = [
            cut_partition(own.train_labels, np.bincount(a), np.argsort(a[rows], kind="stable")) for a in assignments
        ]
        it, place = VerticalNetworks(own, cuts, batch=5, dtype=torch.float64), np.argsort(rows)
        x, ids = point(it), torch.from_numpy(place[[3, 1, 4, 10, 5]])[None]
        told = it.exchange(x[None], ids)
        for j, block in enumerate(it.blocks):
            found.append(it.partial_gradients(j, x[block].expand(1, it.silo_clients[j], -1), told))
    for one, other in zip(found[:2], found[2:], strict=True):
        torch.testing.assert_close(one, other)


def test_silos_may_deal_their_samples_differently() -> None:
    spec = {"kind": "vertical", "dataset": "wine", "silo_clients": [3, 3], "batch": 24}
    same, own = (problem_from_spec({**spec, "same_rows": flag}) for flag in (True, False))
    assert isinstance(same, VerticalNetworks)
    assert isinstance(own, VerticalNetworks)
    for one, agree in ((same, True), (own, False)):
        first, second = (partition.assignment for partition in one.partitions)
        assert bool((first == second).all()) == agree
        assert all(partition.sizes.tolist() == [48, 48, 48] for partition in one.partitions)
    runs = [simulate(TDCD(0.05, 3), one, Full(6), 5).train_loss[0] for one in (same, own)]
    assert runs[0][0] == runs[1][0]
    assert abs(runs[0][-1] - runs[1][-1]) > 1e-6


def constant(labels: Sequence[int]) -> Dataset:
    """Labels to be fitted by one number, the bias."""
    images = np.zeros((len(labels), 1, 1, 1), dtype=np.float32)
    return Dataset("zeros", images, np.array(labels), images, np.array(labels), 5)


@pytest.mark.parametrize(("average", "limit"), [("clients", 2.0), ("shards", 3.0), ("batches", 3.0)])
def test_unequal_shards_of_equal_weight_converge_to_the_wrong_point(average: str, limit: float) -> None:
    """Shards of 1 and 3 samples, labels 0; 4, 4, 4: the mean of the shards' minimizers is 2, that of all is 3."""
    data = constant([0, 4, 4, 4])
    own = VerticalNetworks(data, [cut_partition(data.train_labels, [1, 3], np.arange(4))], loss="least-squares",
                           dtype=torch.float64)  # fmt: skip
    run = simulate(TDCD(0.1, 5, average), own, Full(2), 200, record_models=True)  # type: ignore[arg-type]
    assert run.model[0, -1, 1] == pytest.approx(limit, abs=1e-9)
    assert own.lower_bound is not None
    assert own.lower_bound.value == pytest.approx(1.5)  # (9 + 1 + 1 + 1) / 8, at 3


def test_derivatives_in_every_step_are_tdcd_and_once_a_round_they_are_not() -> None:
    own = problem(made(), network="mlp", batch=8)
    every, once, plain = (
        simulate(algorithm, own, Full(own.clients), 5, record_models=True).model
        for algorithm in (
            LabelPrivateTDCD(0.1, 5, empty="drop"),
            LabelPrivateTDCD(0.1, 5, "once a round", empty="drop"),
            TDCD(0.1, 5, empty="drop"),
        )
    )
    np.testing.assert_array_equal(every, plain)
    assert np.abs(once - plain).max() > 1e-3
    one = [
        simulate(algorithm, own, Full(own.clients), 5, record_models=True).model
        for algorithm in (LabelPrivateTDCD(0.1, 1, "once a round", empty="drop"), TDCD(0.1, 1, empty="drop"))
    ]
    np.testing.assert_allclose(*one, rtol=0, atol=1e-13)


# --- constants and metrics --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.0, 0.7])
@pytest.mark.parametrize("loss", ["least-squares", "logistic", "cross-entropy"])
def test_the_constants_of_linear_embeddings_hold(loss: str, decay: float) -> None:
    own = problem(made(classes=2, samples=8), ((4, 4), (4, 4)), loss=loss, batch=5, weight_decay=decay)
    found = {name: one.value for name, one in own.constants().items() if hasattr(one, "value")}
    batches = torch.tensor(list(combinations(range(8), 5)))
    steepest = largest = 0.0
    for seed in range(5):
        x = (1 + seed) * point(own, seed)
        views = [x[block] for block in own.blocks]
        whole = hessian(lambda y: centralized(own, loss, [y[b] for b in own.blocks], range(8)), x)
        largest = max(largest, float(torch.linalg.matrix_norm(whole, 2)))
        assert torch.allclose(own.local_loss(x, 3), centralized(own, loss, views, own.partitions[1].samples[1]))
    for rows in {tuple(sorted(set(own.partitions[0].samples[0]) & set(b))) for b in batches.tolist()}:
        if rows:
            part = hessian(lambda y, some=rows: centralized(own, loss, [y, 0 * views[1]], some), 0 * views[0])
            steepest = max(steepest, float(torch.linalg.matrix_norm(part, 2)))
    assert largest <= found["smoothness"] * (1 + 1e-9)
    assert steepest <= found["block_smoothness"] * (1 + 1e-9)
    assert steepest >= decay
    if loss == "least-squares":
        assert largest == pytest.approx(found["smoothness"], rel=1e-9)
        assert "block_gradient_noise" not in found
        best = simulate(TDCD(0.3, 1), problem_of(own, None), Full(4), 500, record_every=500).train_loss[0, -1]
        assert own.lower_bound is not None
        assert best == pytest.approx(own.lower_bound.value, abs=1e-9)
    else:
        assert (
            max(float(own.silo_variances(point(own, seed)).sum()) for seed in range(5)) <= found["block_gradient_noise"]
        )


def problem_of(own: VerticalNetworks, batch: int | None) -> VerticalNetworks:
    return VerticalNetworks(own.dataset, own.partitions, batch=batch, loss="least-squares", dtype=torch.float64)


def test_a_full_batch_of_equal_shards_has_sharp_constants() -> None:
    own = problem(made(), loss="least-squares")
    shards = [own._features_with_one[j][rows] for j in range(2) for rows in own.partitions[j].samples]
    norms = [float(torch.linalg.matrix_norm(rows.T @ rows, 2)) / len(rows) for rows in shards]
    known = own.constants()["block_smoothness"]
    assert getattr(known, "value", None) == pytest.approx(max(norms), rel=1e-12)
    assert float(own.partial_noise(point(own)).sampling.abs().max()) < 1e-25


def test_metrics_are_those_of_scikit_learn() -> None:
    breast = problem_from_spec({"kind": "vertical"})
    assert isinstance(breast, VerticalNetworks)
    x = breast.initial_point(np.random.default_rng(3))
    outputs, truth = breast._sums(x, breast._test), breast.dataset.test_labels
    found = {name: float(value[0]) for name, value in breast.metrics(x[None]).items()}
    assert found["test_f1"] == pytest.approx(f1_score(truth, outputs.argmax(1).numpy()))
    digits = problem_from_spec({"kind": "vertical", "dataset": "digits", "silo_clients": 7, "top_k": 3})
    assert isinstance(digits, VerticalNetworks)
    x = digits.initial_point(np.random.default_rng(3))
    outputs, truth = digits._sums(x, digits._test), digits.dataset.test_labels
    best = top_k_accuracy_score(truth, outputs.numpy(), k=3)
    assert float(digits.metrics(x[None])["test_top_3_accuracy"][0]) == pytest.approx(best)
    assert [network.image for network in digits.networks] == [(1, 8, 4), (1, 8, 4)]


def test_columns_of_tables_are_standardized_one_by_one() -> None:
    train, test = load_dataset("breast-cancer").standardised()
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(train.std(0), 1, atol=1e-5)
    assert train.shape == (456, 1, 1, 30)
    assert test.shape == (113, 1, 1, 30)


# --- specifications ---------------------------------------------------------------------------------------------------


def test_samples_that_cannot_be_dealt_evenly_are_refused_spread_or_dropped() -> None:
    spec = {"kind": "vertical", "dataset": "wine", "silo_clients": [5, 7]}
    told = r"144 training samples cannot be dealt evenly to silo_clients\[0\] = 5.*4 clients hold 29, the others 28"
    with pytest.raises(FedboundsError, match=told):
        problem_from_spec(spec)
    spread = problem_from_spec({**spec, "remainder": "spread"})
    assert isinstance(spread, VerticalNetworks)
    assert spread.partitions[1].sizes.tolist() == [21, 21, 21, 21, 20, 20, 20]
    assert spread.shares(0).tolist() == pytest.approx([29 / 144] * 4 + [28 / 144])
    dropped = problem_from_spec({**spec, "remainder": "drop"})
    assert isinstance(dropped, VerticalNetworks)
    assert [partition.sizes.tolist() for partition in dropped.partitions] == [[28] * 5, [20] * 7]
    assert dropped.data_checksum != spread.data_checksum
    by_hand = problem_from_spec({**spec, "shards": [[44, 100], [144]], "silos": 2})
    assert by_hand.clients == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"silos": 31}, "silos = 31: there are 30 columns to split"),
        ({"widths": [10, 10]}, r"widths = \[10, 10\] must be 2 numbers, of 30 columns in all"),
        ({"split": "channels"}, "there are 1 channels to split"),
        ({"split": "rows"}, "unknown split"),
        ({"network": ["linear"]}, r"network = \['linear'\] must be a name, or 2 of them"),
        ({"network": "cnn"}, "pools images of 1x15 pixels to nothing"),
        ({"network": "cnn4-bn", "dataset": "digits", "silo_clients": 7}, "running statistics"),
        ({"loss": "logistic", "dataset": "wine"}, 'take "cross-entropy"'),
        ({"batch": 457}, "batch = 457"),
        ({"silo_clients": [4, 4, 4]}, "silo_clients are of 3 silos, silos = 2"),
        ({"shards": [[456], [56, 300]]}, r"shards = \[56, 300\] have 356 samples in all, there are 456"),
        ({"remainder": "ignore"}, "unknown remainder"),
    ],
)
def test_what_does_not_fit_is_reported(change: dict, told: str) -> None:
    with pytest.raises(FedboundsError, match=told):
        problem_from_spec({"kind": "vertical", **change})
