"""The example `tdcd_deployment`: its models are TDCD's, its traffic that of the formulas, its data stay local."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from tdcd_deployment import Delivery, Deployment, Holding, Silo, silos_of

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import even_partition
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, PrintedTDCD, Tiered
from fedbounds.empirical.papers.tdcd.invariants import check_vertical
from fedbounds.empirical.papers.tdcd.traffic import LINKS, Traffic
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.simulate import simulate
from tests.papers.tdcd.test_invariants import LOSSES, affine, drawn_cases, tensors
from tests.papers.tdcd.test_traffic import SHAPES, silos, small

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 4
ALGORITHMS: Sequence[Tiered] = (
    TDCD(0.3, 4, empty="zero"),
    TDCD(0.3, 3, "shards", "drop"),
    TDCD(0.3, 1, "batches"),
    PrintedTDCD(0.3, 3),
    LabelPrivateTDCD(0.3, 3, empty="drop"),
    LabelPrivateTDCD(0.3, 3, "once a round", empty="drop"),
)


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
    hub.broadcast = lambda r: hub.encoding.seal(33, (r, 0), torch.cat([hub.own.ravel(), hub.block]), batch=hub.batch)
    for other in deployed.hubs[1:]:
        other.receive_embeddings = lambda when, silo, message, hub=other: hub.others.setdefault(
            silo, torch.zeros_like(hub.own)
        )


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
    old = deployed.hubs[0].begin(0)
    deployed.clients[0][0].begin(0, old)
    with pytest.raises(FedboundsError, match="checksums differ"):
        deployed.clients[0][0].begin(1, old)


def test_a_batch_that_clients_do_not_hold_once_is_refused() -> None:
    of = small()
    some = worlds(of)
    doubled = Silo(some[0].embedding, some[0].start, (some[0].holdings[0], *some[0].holdings))
    with pytest.raises(FedboundsError, match="expected each sample of the batch once"):
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
        (
            dict(loss=lambda total, labels: ((total[:, 0] - labels) ** 2).mean()),
            r"shape \(\); expected one number for each of 2 samples",
        ),
        (dict(batch=(0, 0, 1)), r"a sample twice: \[0, 0, 1\]"),
        (dict(start=float("nan")), "round 0, step 0 holds numbers that are not finite"),
        (dict(size=2), r"shape \(2, 2\); expected \(2, 1\), as embedding_size = 1"),
    ],
)
def test_what_is_brought_must_be_as_said(wrong, says) -> None:
    one_silo().round()
    with pytest.raises(FedboundsError, match=says):
        one_silo(**wrong).round()
    with pytest.raises(FedboundsError, match=r"3 IDs with \[2, 3\] rows; expected distinct IDs and one row for each"):
        Holding(np.arange(3), torch.ones(2, 1), torch.ones(3))
    with pytest.raises(FedboundsError, match="give at least one silo"):
        Deployment([], torch.add, lambda r: np.arange(1), TDCD(0.5, 1))


def test_a_client_without_samples_is_met_as_was_said() -> None:
    of = silos((2, 2), ((19, 1), (20,)), 5)
    with pytest.raises(
        FedboundsError,
        match=r"holds no sample of the batch: .* empty = .zero. .*stays in the mean, as in the published code",
    ):
        run(Deployment.of(of, TDCD(0.3, 2)))


def by_messages(made=TDCD):
    """A run of tables by messages."""

    def run(table, draw, *, rounds, local_steps, step_size):
        y = torch.from_numpy(table.labels)
        silos = [
            Silo(affine, torch.from_numpy(start), tuple(Holding(ids, X[ids], y[ids]) for ids in clients))
            for X, start, clients in zip(tensors(table), table.starts, table.clients, strict=True)
        ]
        deployed = Deployment(silos, LOSSES[table.loss], lambda r: draw(r * local_steps), made(step_size, local_steps))
        models = [deployed.model]
        for _ in range(rounds):
            deployed.round()
            models.append(deployed.model)
        return models

    return run


@pytest.mark.parametrize("algorithm", [TDCD, LabelPrivateTDCD])
def test_the_invariants_hold(algorithm) -> None:
    report = check_vertical(by_messages(algorithm), examples=8, cases=st.sampled_from(drawn_cases()))
    report.raise_if_broken()
    assert report.cause is None and not report.skipped, str(report)


def test_derivatives_once_a_round_are_another_algorithm() -> None:
    stale = check_vertical(
        by_messages(lambda *numbers: LabelPrivateTDCD(*numbers, "once a round")),
        invariants=["one local step", "closed form"], examples=20,
    )  # fmt: skip
    assert [verdict.status for verdict in stale.verdicts] == ["held", "broken"]
    assert stale.cause is not None and stale.cause.startswith("stale own embedding")


def test_the_demo_prints_what_the_readme_shows() -> None:
    folder = ROOT / "examples" / "tdcd_deployment"
    shown = (folder / "README.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    made = subprocess.run(
        [sys.executable, "demo.py"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert made.stdout == shown
