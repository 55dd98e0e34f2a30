"""What a round of TDCD sends: the counts of `Traffic`, in traces, and the time of a round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.remarks import LATENCY
from fedbounds.empirical.papers.tdcd.algorithms import TDCD, LabelPrivateTDCD, Tiered
from fedbounds.empirical.papers.tdcd.traffic import Traffic, round_time, round_traffic
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems.block_quadratics import BlockQuadratic
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks
from fedbounds.empirical.simulation.simulate import simulate
from tests.empirical.problems.test_vertical_networks import made as noise
from tests.empirical.problems.test_vertical_networks import problem

SHAPES = {
    "two silos": ((3, 2), ((10, 10), (8, 7, 5)), 12),
    "three silos": ((1, 4, 2), ((20,), (10, 10), (6, 7, 7)), 14),
    "one silo": ((3,), ((10, 10),), 10),
    "one client": ((2, 2), ((20,), (20,)), 19),
}


def silos(widths: Sequence[int], shards: Sequence[Sequence[int]], batch: int) -> VerticalNetworks:
    """Linear models on columns of noise."""
    data = noise((1, 1, sum(widths)), 2, sum(shards[0]))
    return problem(data, shards, network="linear", widths=widths, batch=batch, gradient_norm=False)


def small(shape: str = "two silos") -> VerticalNetworks:
    return silos(*SHAPES[shape])


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
