"""Random streams: independence of places, reproducibility, and the pool against new generators."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.runtime.streams import STREAMS, GeneratorPool, Streams


def numbers(streams: Streams, stream: str, *counter: int) -> tuple[float, ...]:
    return tuple(streams.generator(stream, *counter).standard_normal(5))


def test_every_seed_stream_round_and_client_has_numbers_of_its_own():
    drawn = {
        numbers(Streams(seed), stream, t, n)
        for seed in range(3)
        for stream in STREAMS
        for t in range(3)
        for n in range(3)
    }
    assert len(drawn) == 3 * len(STREAMS) * 9


def test_the_numbers_of_a_place_are_the_same_on_every_visit_and_in_every_version():
    assert numbers(Streams(3), "noise", 5, 2) == numbers(Streams(3), "noise", 5, 2)
    recorded = [-1.07723637, -0.24606678]  # by the first version: traces of old seeds must stay reproducible
    assert np.allclose(numbers(Streams(0), "noise", 1, 2)[:2], recorded, atol=1e-8)


def test_a_long_draw_of_one_client_never_meets_the_next_client():
    first = Streams(0).generator("noise", 0, 0).integers(2**63, size=100_000)
    second = Streams(0).generator("noise", 0, 1).integers(2**63, size=100_000)
    assert not np.intersect1d(first, second).size


def test_a_stream_held_fixed_is_the_same_for_all_seeds_and_the_others_are_not():
    one, other = (Streams(seed, fixed={"participation": 9}) for seed in (1, 2))
    assert numbers(one, "participation") == numbers(other, "participation")
    assert all(numbers(one, s) != numbers(other, s) for s in STREAMS if s != "participation")
    assert numbers(one, "participation") == numbers(Streams(9), "participation")


def test_a_pool_draws_what_new_generators_draw_even_when_drawn_in_alternation():
    pool, places = GeneratorPool(), [(0, 3), (7, 1), (2, 2)]
    for _ in range(2):  # the second visit re-aims the same generators
        aimed = [pool.aim(slot, Streams(slot), "noise", *place) for slot, place in enumerate(places)]
        by_turns = np.array([[generator.standard_normal(3) for generator in aimed] for _ in range(4)])
        for slot, place in enumerate(places):
            alone = Streams(slot).generator("noise", *place).standard_normal(12)
            assert (by_turns[:, slot].ravel() == alone).all()


def test_nothing_of_a_visit_survives_the_next_one():
    pool, streams = GeneratorPool(), Streams(4)
    pool.aim(0, streams, "noise", 3, 8, 1).random(dtype=np.float32)  # leaves half a word, and three counters
    there = pool.aim(0, streams, "masks", 5).random(9, dtype=np.float32)
    assert (there == streams.generator("masks", 5).random(9, dtype=np.float32)).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Streams(-1), "seed = -1"),
        (lambda: Streams(1.5), "seed = 1.5"),
        (lambda: Streams(True), "seed = True"),
        (lambda: Streams(0, {"noize": 1}), "did you mean noise"),
        (lambda: Streams(0, {"noise": "x"}), "streams.noise = 'x'"),
        (lambda: Streams(0, 7), "streams = 7"),
        (lambda: Streams(0).generator("batch"), "unknown stream 'batch'"),
        (lambda: Streams(0).generator("noise", 1, 2, 3, 4), "more than 3"),
    ],
)
def test_bad_seeds_and_streams_are_refused_in_one_line(make, says):
    with pytest.raises(FedboundsError, match=says.replace(".", r"\.")) as caught:
        make()
    assert "\n" not in str(caught.value)
