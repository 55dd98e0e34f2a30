"""The runs test of presence, against all orders of a record."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.empirical.participation.mixing import Presences


def presences(record: np.ndarray) -> Presences:
    """The state after the rounds of a record (rounds, clients)."""
    seen = Presences(record.shape[1])
    for present in record:
        seen.add(present)
    return seen


def runs(row: tuple[bool, ...]) -> int:
    return sum(now and not before for before, now in zip((False, *row), row, strict=False))


def enumerated_p_value(record: np.ndarray) -> float:
    """Two-sided, from all orders of every client's presences, times the number of clients."""
    rounds, clients = record.shape
    tails = []
    for row in record.T.astype(bool):
        orders = [
            runs(tuple(t in chosen for t in range(rounds))) for chosen in combinations(range(rounds), int(row.sum()))
        ]
        seen = runs(tuple(row))
        tails.append(min(np.mean([k <= seen for k in orders]), np.mean([k >= seen for k in orders])))
    return min(1.0, 2 * clients * min(tails))


records = st.integers(1, 8).flatmap(
    lambda rounds: st.integers(1, 3).flatmap(
        lambda clients: st.lists(
            st.lists(st.booleans(), min_size=clients, max_size=clients), min_size=rounds, max_size=rounds
        )
    )
)


@given(records)
def test_the_p_value_is_that_of_all_orders(record):
    assert presences(np.array(record)).order_p_value() == pytest.approx(enumerated_p_value(np.array(record)))


def test_clients_in_blocks_of_five_rounds_are_not_independent():
    blocks = np.arange(40)[:, None] // 5 % 2 == np.arange(2)
    assert 0 < presences(blocks).order_p_value() < 1e-3
    assert presences(blocks[:0]).order_p_value() == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": -1},
        {"present": [-1, 2]},
        {"present": [5, 2]},
        {"twice": [0, 3]},
        {"twice": [-1, 0]},
        {"present": [0, 2], "first": [True, False]},
    ],
)
def test_a_state_that_no_rounds_leave_is_found(change):
    seen = presences(np.array([[True, False], [False, True], [True, True], [False, False]]))
    assert seen.inconsistency() == ""
    for name, value in change.items():
        seen.state[name][...] = value
    assert seen.inconsistency()
