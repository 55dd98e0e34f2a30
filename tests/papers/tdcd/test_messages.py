"""What hubs and clients of TDCD send: that it is the algorithm, how much it is, and what of a silo stays in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.remarks import LATENCY
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import even_partition
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, PrintedTDCD, Tiered
from fedbounds.empirical.papers.tdcd.deployment import Deployment, silos_of
from fedbounds.empirical.papers.tdcd.messages import Delivery
from fedbounds.empirical.papers.tdcd.nodes import Holding, Silo
from fedbounds.empirical.papers.tdcd.traffic import LINKS, Traffic, round_time, round_traffic
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems.block_quadratics import BlockQuadratic
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.problems.test_vertical_networks import made as noise
from tests.empirical.problems.test_vertical_networks import problem

ROUNDS = 4
SHAPES = {
    "two silos": ((3, 2), ((10, 10), (8, 7, 5)), 12),
    "three silos": ((1, 4, 2), ((20,), (10, 10), (6, 7, 7)), 14),
    "one silo": ((3,), ((10, 10),), 10),
    "one client": ((2, 2), ((20,), (20,)), 19),
}
ALGORITHMS: Sequence[Tiered] = (
    TDCD(0.3, 4, empty="zero"),
    TDCD(0.3, 3, "shards", "drop"),
    TDCD(0.3, 1, "batches"),
    PrintedTDCD(0.3, 3),
    LabelPrivateTDCD(0.3, 3, empty="drop"),
    LabelPrivateTDCD(0.3, 3, "once a round", empty="drop"),
)


def silos(widths: Sequence[int], shards: Sequence[Sequence[int]], batch: int) -> VerticalNetworks:
    """Linear models on columns of noise."""
    data = noise((1, 1, sum(widths)), 2, sum(shards[0]))
    return problem(data, shards, network="linear", widths=widths, batch=batch, gradient_norm=False)


def small(shape: str = "two silos") -> VerticalNetworks:
    return silos(*SHAPES[shape])


def worlds(of: VerticalNetworks) -> list[Silo]:
    return silos_of(of, of.initial_point(Streams(0).generator("initialization")))


def deployed_from(some: Sequence[Silo], of: VerticalNetworks, algorithm: Tiered, **how: Any) -> Deployment:
    """By what silos bring that need not be the problem's."""

    def draw(r: int) -> np.ndarray:
        drawn = of.draw_round(Streams(0).generator("noise", r))
        assert drawn is not None
        return drawn

    return Deployment(some, of.loss.values, draw, algorithm, embedding_size=2, **how)


def run(deployed: Deployment, rounds: int = ROUNDS) -> np.ndarray:
    models = [deployed.model]
    for _ in range(rounds):
        deployed.round()
        models.append(deployed.model)
    return torch.stack(models).numpy()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_messages_alone_make_the_algorithm(algorithm: Tiered, shape: str) -> None:
    of = small(shape)
    trace = simulate(algorithm, of, Full(of.clients), ROUNDS, seeds=(0,), record_models=True)
    np.testing.assert_allclose(run(Deployment.of(of, algorithm)), trace.model[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("label_silo", [0, 2])
def test_with_derivatives_in_every_step_one_silo_with_the_labels_is_as_good_as_all(label_silo: int) -> None:
    of = small("three silos")
    private = LabelPrivateTDCD(0.3, 5, empty="zero")
    models = run(Deployment.of(of, private, label_silo=label_silo))
    np.testing.assert_allclose(models, run(Deployment.of(of, TDCD(0.3, 5, empty="zero"))), rtol=0, atol=1e-12)
    rare = LabelPrivateTDCD(0.3, 5, "once a round", empty="zero")
    assert np.abs(run(Deployment.of(of, rare, label_silo=label_silo)) - models).max() > 1e-3


def test_clients_may_look_up_their_rows_of_the_whole_sum() -> None:
    of, algorithm = small("three silos"), TDCD(0.3, 3, empty="zero")
    np.testing.assert_array_equal(run(Deployment.of(of, algorithm, whole_sum=True)), run(Deployment.of(of, algorithm)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize(("whole", "dtype"), [(False, torch.float32), (True, torch.float64)])
def test_the_formulas_are_what_is_on_the_wire(algorithm: Tiered, shape: str, whole: bool, dtype: torch.dtype) -> None:
    of = small(shape)
    deployed = Deployment.of(of, algorithm, whole_sum=whole, dtype=dtype)
    run(deployed, 2)
    traffic = Traffic.of(of, algorithm, whole_sum=whole, number_bytes=dtype.itemsize)
    for r in range(2):
        assert deployed.sent(r) == {(sent.link, sent.what): sent for sent in traffic.kinds}
        for link in LINKS:
            wire = [each.message for each in deployed.deliveries if each.round == r and each.link == link]
            assert sum(map(len, wire)) == traffic.bytes(link)
    assert traffic.bytes() == sum(len(each.message) for each in deployed.deliveries) / 2
    assert traffic.uplink_bytes == traffic.bytes() - traffic.bytes("hub to client")


def test_local_steps_are_free_unless_one_silo_has_the_labels() -> None:
    of = small("three silos")

    def floats(algorithm: Tiered) -> int:
        return Traffic.of(of, algorithm).floats()

    few, many = (floats(TDCD(0.3, Q)) for Q in (1, 7))
    B, E, N, models = 14, 2, 3, 2 * (2 * 1 + 5 * 2 + 3 * 3)
    assert few == many == 2 * models + 2 * N * B * E + N * (N - 1) * B * E
    one, every = (LabelPrivateTDCD(0.3, 7, how) for how in ("once a round", "every step"))
    assert floats(every) - floats(one) == 6 * 6 * (N - 1) * B * E
    assert floats(LabelPrivateTDCD(0.3, 1)) == floats(one)


def test_a_trace_counts_what_clients_send_their_hubs_and_hubs_each_other() -> None:
    of, algorithm = small("three silos"), TDCD(0.3, 3, empty="zero")
    trace = simulate(algorithm, of, Full(of.clients), 5, record_every=2)
    sent = Traffic.of(of, algorithm)
    each = sent.bytes("client to hub") + sent.bytes("hub to hub")
    assert trace.uplink_bytes.tolist() == [[0, 2 * each, 4 * each, 5 * each]]
    phases = [(algorithm, 2), (LabelPrivateTDCD(0.3, 2, empty="zero"), 1)]
    other = Traffic.of(of, phases[1][0]).uplink_bytes
    trace = simulate(None, of, Full(of.clients), phases=phases)
    assert trace.uplink_bytes.tolist() == [[0, each, 2 * each, 2 * each + other]]
    quadratic = BlockQuadratic(np.eye(2), (1, 1), (1, 2))
    assert "uplink_bytes" not in simulate(TDCD(0.1, 1), quadratic, Full(3), 2).arrays


@pytest.mark.parametrize(
    ("algorithm", "batch"),
    [
        (TDCD(0.1, 2, empty="drop"), 6),
        (LabelPrivateTDCD(0.1, 3, empty="drop"), 6),
        (LabelPrivateTDCD(0.1, 3, "once a round", empty="drop"), 6),
        (TDCD(0.1, 2), None),
    ],
)
def test_images_run_by_messages_too_and_a_client_may_hold_no_sample_of_a_batch(algorithm: Tiered, batch) -> None:
    digits = load_dataset("digits")
    rows = [even_partition(digits.train_labels, 4, np.random.default_rng(silo)) for silo in range(3)]
    of = VerticalNetworks(
        digits, rows, ["cnn-small-smooth", "mlp", "linear"], batch, widths=[4, 2, 2], dtype=torch.float64
    )
    trace = simulate(algorithm, of, Full(12), 3, seeds=(3,), record_models=True)
    deployed = Deployment.of(of, algorithm, 3, label_silo=1)
    np.testing.assert_allclose(run(deployed, 3), trace.model[0], rtol=0, atol=1e-12)
    shortest = min(len(each.message) for each in deployed.deliveries if each.link == "client to hub")
    assert (shortest == 16) == (batch is not None)


# --- what stays in a silo ---------------------------------------------------------------------------------


def heard(deployed: Deployment, silo: int, r: int = 0) -> list[Delivery]:
    """All that a silo receives, its hub and its clients, from others."""
    return [each for each in deployed.deliveries if each.target[0] == silo and each.round == r]


def table(theta: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """The embedding of a silo whose features are its embeddings, and whose parameters are none that anyone uses."""
    return features + 0 * theta.sum()


def hollow(silo: Silo) -> Silo:
    """Another world: a silo with the same embeddings of other features, with another block of another length."""
    holdings = tuple(Holding(h.ids, silo.embedding(silo.start, h.features), 1 - h.labels) for h in silo.holdings)
    return Silo(table, torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64), holdings)


def turned(silo: Silo) -> Silo:
    r"""The world of $X_lR^{-1}$ and $R\theta_l$, with an R that rounds nothing."""
    R = torch.tensor([2.0, -4.0, 0.5, -1.0], dtype=torch.float64)[: silo.holdings[0].features.shape[-1]]
    holdings = tuple(replace(h, features=h.features / R) for h in silo.holdings)
    weights, biases = silo.start[:-2].view(2, len(R)) * R, silo.start[-2:]
    return Silo(silo.embedding, torch.cat([weights.ravel(), biases]), holdings)


def leaks(make: Callable[[Sequence[Silo]], Deployment], silos: Sequence[Silo], world: Callable[[Silo], Silo]) -> bool:
    """Whether any silo can tell from a round in which of two worlds another one lives."""
    first = make(silos)
    first.round()
    for secret in range(len(silos)):
        other = make([world(silo) if j == secret else silo for j, silo in enumerate(silos)])
        other.round()
        for j in range(len(silos)):
            if j != secret and heard(first, j) != heard(other, j):
                return True
    return False


@pytest.mark.parametrize("shape", ["two silos", "three silos"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("world", [hollow, turned])
def test_nothing_that_a_silo_hears_depends_on_more_of_another_than_its_embeddings(shape, whole, world) -> None:
    of = small(shape)
    assert not leaks(
        lambda some: deployed_from(some, of, TDCD(0.3, 4, empty="zero"), whole_sum=whole), worlds(of), world
    )


def test_derivatives_once_a_round_say_no_more_than_embeddings_and_labels() -> None:
    of, algorithm = small(), LabelPrivateTDCD(0.3, 4, "once a round", empty="zero")
    for world in (turned, unlabeled_twin):
        assert not leaks(lambda some: deployed_from(some, of, algorithm), worlds(of), world)


def unlabeled_twin(silo: Silo) -> Silo:
    """The same silo by other features; its labels, if it has any, are the same."""
    other = hollow(silo)
    return replace(other, holdings=tuple(
        replace(h, labels=old.labels) for h, old in zip(other.holdings, silo.holdings, strict=True)
    ))  # fmt: skip


def with_feature(deployed: Deployment) -> None:
    """One number of an embedding is a feature: as long as it should be."""
    client = deployed.clients[0][0]
    honest = client.embeddings

    def leaking(own: torch.Tensor) -> torch.Tensor:
        found = honest(own)
        secret = client.holding.features[client.rows].ravel()[:1]
        return torch.cat([secret, found.ravel()[1:]]).view_as(found)

    client.embeddings = leaking


def with_block(deployed: Deployment) -> None:
    """The block goes along to the other hubs."""
    hub = deployed.hubs[0]
    hub.broadcast = lambda r: hub.encoding.sealed(33, (r, 0), torch.cat([hub.own.ravel(), hub.block]), batch=hub.batch)
    for other in deployed.hubs[1:]:
        other.hear = lambda when, silo, message, hub=other: hub.others.setdefault(silo, torch.zeros_like(hub.own))


def in_the_last_bits(deployed: Deployment) -> None:
    """A parameter is hidden in the last bits of an embedding."""
    hub = deployed.hubs[0]
    honest = hub.collect

    def leaking(r: int, messages: Sequence[bytes]) -> None:
        honest(r, messages)
        hub.own = hub.own + 1e-12 * hub.block[0]

    hub.collect = leaking


@pytest.mark.parametrize("leak", [with_feature, with_block, in_the_last_bits])
def test_a_leak_is_seen(leak: Callable[[Deployment], None]) -> None:
    of, algorithm = small(), TDCD(0.3, 4, empty="zero")

    def leaking(silos: Sequence[Silo]) -> Deployment:
        deployed = deployed_from(silos, of, algorithm)
        leak(deployed)
        return deployed

    assert leaks(leaking, worlds(of), turned)
    deployed = leaking(worlds(of))
    deployed.round()
    honest = {(sent.link, sent.what): sent for sent in Traffic.of(of, algorithm).kinds}
    assert (deployed.sent(0) != honest) == (leak is with_block)


def test_hubs_hold_no_data_and_clients_no_block_but_their_own() -> None:
    of = small("three silos")
    deployed = Deployment.of(of, LabelPrivateTDCD(0.3, 4, empty="zero"), label_silo=1)
    run(deployed, 1)

    def numbers(thing: object) -> list[torch.Tensor]:
        if isinstance(thing, torch.Tensor):
            return [thing]
        inside = thing if isinstance(thing, list | tuple) else getattr(thing, "__dict__", {}).values()
        inside = thing.values() if isinstance(thing, dict) else inside
        return [tensor for each in inside for tensor in numbers(each)]

    def holds(thing: object, secret: torch.Tensor) -> bool:
        return any(each.shape == secret.shape and bool((each == secret).all()) for each in numbers(thing))

    for (j, hub), (silo, part) in itertools.product(enumerate(deployed.hubs), itertools.product(range(3), range(3))):
        if part < of.silo_clients[silo]:
            holding = deployed.clients[silo][part].holding
            assert not holds(hub, holding.features) and holds(deployed.clients[silo][part], holding.features)
            assert (holding.labels is None) == (silo != 1)
            assert not any(holds(client, holding.features) for client in deployed.clients[j] if silo != j)


# --- messages ---------------------------------------------------------------------------------------------


class Tampering(Deployment):
    """One message is another on its way."""

    change: tuple[str, Callable[[bytes], bytes]]

    def send(self, source, target, what, message):
        arrived = super().send(source, target, what, message)
        return self.change[1](arrived) if what == self.change[0] else arrived


@pytest.mark.parametrize("what", ["model", "embeddings", "others"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda message: message[:-1], "checksums differ"),
        (lambda message: message[:40] + bytes([message[40] ^ 1]) + message[41:], "checksums differ"),
        (lambda message: message[:2] + b"\x07" + message[3:], "version 7"),
        (lambda message: message[:3] + b"\x01" + message[4:], "encoding 1"),
        (lambda message: message[:10], "ends after 10 bytes"),
    ],
)
def test_a_message_that_was_damaged_is_refused(what: str, change: Callable[[bytes], bytes], says: str) -> None:
    of = small()
    deployed = Deployment.of(of, TDCD(0.3, 2))
    deployed.__class__ = Tampering
    deployed.change = (what, change)  # type: ignore[attr-defined]
    with pytest.raises(FedboundsError, match=says):
        deployed.round()


def test_hubs_that_drew_other_batches_do_not_understand_each_other() -> None:
    deployed = Deployment.of(small(), TDCD(0.3, 2))
    deployed.hubs[1].draw = lambda r: np.arange(12)
    with pytest.raises(FedboundsError, match="checksums differ"):
        deployed.round()


def test_a_message_of_another_round_is_refused() -> None:
    deployed = Deployment.of(small(), TDCD(0.3, 2))
    old = deployed.hubs[0].open(0)
    deployed.clients[0][0].begin(0, old)
    with pytest.raises(FedboundsError, match="checksums differ"):
        deployed.clients[0][0].begin(1, old)


def test_a_batch_that_clients_do_not_hold_once_is_refused() -> None:
    of = small()
    some = worlds(of)
    doubled = Silo(some[0].embedding, some[0].start, (some[0].holdings[0], *some[0].holdings))
    with pytest.raises(FedboundsError, match="not those of the batch, each once"):
        deployed_from([doubled, some[1]], of, TDCD(0.3, 2)).round()


def one_silo(loss=lambda total, labels: (total[:, 0] - labels) ** 2 / 2, batch=(0, 1), start=0.0, size=1) -> Deployment:
    """Three samples of one client, by hand."""
    y = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    holding = Holding(np.arange(3), torch.ones_like(y)[:, None].expand(3, size), y)
    silo = Silo(lambda theta, features: features * theta, torch.full((1,), start, dtype=torch.float64), (holding,))
    return Deployment([silo], loss, lambda r: np.array(batch), TDCD(0.5, 1))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (dict(loss=lambda total, labels: ((total[:, 0] - labels) ** 2).mean()), r"shape \(\); one number for each"),
        (dict(batch=(0, 0, 1)), r"a sample twice: \[0, 0, 1\]"),
        (dict(start=float("nan")), "round 0, step 0 holds numbers that are not finite"),
        (dict(size=2), r"shape \(2, 2\), embedding_size = 1"),
    ],
)
def test_what_is_brought_must_be_as_said(wrong, says) -> None:
    one_silo().round()
    with pytest.raises(FedboundsError, match=says):
        one_silo(**wrong).round()
    with pytest.raises(FedboundsError, match=r"3 IDs, each once, and as many rows; these have \[2, 3\]"):
        Holding(np.arange(3), torch.ones(2, 1), torch.ones(3))
    with pytest.raises(FedboundsError, match="at least one silo"):
        Deployment([], torch.add, lambda r: np.arange(1), TDCD(0.5, 1))


def test_a_client_without_samples_is_met_as_was_said() -> None:
    of = silos((2, 2), ((19, 1), (20,)), 5)
    with pytest.raises(
        FedboundsError,
        match=r"holds no sample of the batch: .* empty = .zero. .*stays in the mean, as in the published code",
    ):
        run(Deployment.of(of, TDCD(0.3, 2)))


# --- formulas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([2], [1, 1], 4, 1), "parameters are of 1 silos, silo_clients of 2"),
        (([2, 0], [1, 1], 4, 1), r"parameters\[1\] = 0"),
        (([2, 2], [1, 1], 0, 1), "batch_size = 0"),
        (([2, 2], [1, 1], 4, 0), "embedding_size = 0"),
    ],
)
def test_sizes_that_are_none_are_refused(arguments, says) -> None:
    with pytest.raises(FedboundsError, match=says):
        round_traffic(*arguments)
    with pytest.raises(FedboundsError, match="label_silo"):
        round_traffic([2, 2], [1, 1], 4, 1, derivative_exchanges=1, label_silo=2)
    with pytest.raises(FedboundsError, match="number_bytes"):
        round_traffic([2, 2], [1, 1], 4, 1, number_bytes=2)
    with pytest.raises(FedboundsError, match="unknown link"):
        round_traffic([2, 2], [1, 1], 4, 1).bytes("hub to hubs")  # type: ignore[arg-type]


def test_without_embeddings_nothing_is_said_of_messages() -> None:
    quadratic = BlockQuadratic(np.eye(2), (1, 1), (1, 2))
    with pytest.raises(FedboundsError, match="has no embeddings"):
        Traffic.of(quadratic, TDCD(0.1, 1))


def test_time_of_rounds_at_the_two_ratios_of_the_figures() -> None:
    speedups = {
        10: [1.938, 4.429, 7.75, 14.091, 19.375], 100: [1.993, 4.934, 9.71, 23.154, 43.0],
    }  # (3 rho + 1) / (3 rho / Q + 1), by hand  # fmt: skip
    for rho, expected in speedups.items():
        times = {Q: round_time(Q, rho, 1) for Q in (1, 2, 5, 10, 25, 50)}
        np.testing.assert_allclose([Q * times[1] / times[Q] for Q in (2, 5, 10, 25, 50)], expected, atol=5e-4)
        assert times == {Q: float(LATENCY.subs({n.Q: Q, n.tcomm: rho, n.tcomp: 1})) for Q in times}
