"""The cases of the papers' checks have every size that their pages state, whatever the seed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

from fedbounds.empirical.invariants import strategies
from fedbounds.empirical.invariants.coverage import classes_tried
from fedbounds.empirical.papers.fed_norm_sgda import strategies as minimax
from fedbounds.empirical.papers.fedau import strategies as weights
from fedbounds.empirical.papers.fedmrn import strategies as masking
from fedbounds.empirical.papers.tdcd import strategies as vertical


def sized(strategy, seed=3):
    """One case of each size class."""

    def one(each):
        drawn = []
        with pytest.raises(NoSuchExample):
            quiet = settings(max_examples=2, phases=[Phase.generate], database=None, deadline=None)
            find(each.exact, lambda case: bool(drawn.append(case)), settings=quiet, random=Random(seed))
        return drawn[-1]

    return [one(each) for each in classes_tried(strategy, 50)]


def test_games_have_every_size():
    cases = sized(minimax.game_cases())
    assert len(cases) == len(minimax.SIZES) <= 25
    for case, size in zip(cases, minimax.SIZES, strict=True):
        assert case.cohorts.shape == (size.rounds, size.participants)
        assert (case.game.clients, case.local_steps.max(), case.period) == (size[0], size.local_steps, size.period)
        assert (case.game.descent, len(case.game.start)) == (size.descent, size.descent + size.ascent)
        np.testing.assert_allclose(case.game.hessians, case.game.hessians.transpose(0, 2, 1))
    assert {size.clients for size in minimax.SIZES} == {size.participants for size in minimax.SIZES} == set(range(1, 8))
    assert {size.local_steps for size in minimax.SIZES} >= {*range(1, 11), 13}
    assert max(size.rounds for size in minimax.SIZES) == 130
    assert max(size.rounds * size.local_steps for size in minimax.SIZES if size.clients == 1) > 200
    assert {case.momentum for case in cases} == {0.0, 0.5, 0.9, 0.3}
    assert len({case.local_step_sizes + case.step_sizes for case in cases}) == len(cases)
    sides = {
        np.sign(size.clients - size.participants) + (size.participants == 1) for size in minimax.SIZES if size[0] > 2
    }
    assert sides == {0, 1, 2}  # all, some and one


def test_restricted_games_are_so_in_every_size():
    wanted = minimax.game_cases(momenta=(0.0,), periods=(0,), local_steps=(1, 2), parts=(1,), everyone=True)
    for case in sized(wanted):
        assert not case.momentum and not case.period and case.local_steps.max() <= 2 and np.ptp(case.weights) < 1e-12
        assert case.cohorts.shape[1] == case.game.clients


def test_tables_have_every_size():
    cases = sized(vertical.table_cases())
    assert len(cases) == len(vertical.SIZES) <= 25
    for case, size in zip(cases, vertical.SIZES, strict=True):
        assert (case.table.silos, case.table.samples, case.rounds) == (size.silos, size.samples, size.rounds)
        assert case.local_steps == size.local_steps and max(map(len, case.table.starts)) == size.width
        for silo in case.table.clients:
            assert sorted(np.concatenate(silo)) == list(range(size.samples))
            assert all(np.isin(batch, ids).any() for batch in case.batches for ids in silo)
    assert {size.silos for size in vertical.SIZES} == set(range(1, 8)) and {case.table.loss for case in cases} == {
        "least squares", "logistic"}  # fmt: skip
    assert {size.local_steps for size in vertical.SIZES} == {*range(1, 11), 13}
    assert max(size.rounds for size in vertical.SIZES) == 130
    assert max(size.rounds * size.local_steps for size in vertical.SIZES) > 200
    squares = [case for case in cases if case.table.loss == "least squares"]
    assert all(not np.isin(case.table.labels, (0, 1)).any() for case in squares)
    assert max(np.abs(case.table.labels).max() for case in squares) > 1e6 / 10
    assert min(np.abs(case.table.labels).max() for case in squares) < 1e-5
    assert max(len(silo) for case in cases for silo in case.table.clients) == 6


def test_restricted_tables_are_so_in_every_size():
    wanted = dict(local_steps=(1,), silos=(2,), equal_shards=True, same_rows=True, losses=("logistic",))
    for case in sized(vertical.table_cases(**wanted)):
        assert (case.local_steps, case.table.silos, case.table.loss) == (1, 2, "logistic")
        assert len({len(ids) for ids in case.table.clients[0]}) == 1 and case.table.clients[0] is case.table.clients[1]


def odd(values):
    """Whether no number is representable in single precision, and none is zero."""
    values = np.asarray(values, dtype=float)
    return (values.astype(np.float32).astype(float) != values).all() and np.all(values)


def test_runs_have_every_size_and_magnitude():
    cases = sized(strategies.cases())
    for case, size in zip(cases, strategies.SIZES, strict=True):
        assert (case.problem.clients, case.rounds, case.local_steps, case.interval) == tuple(size)
        assert odd(case.problem.start) and odd(case.step_size)
    assert max(case.problem.dimension for case in cases) == 12
    assert max(case.rounds * case.local_steps for case in cases) > 200 and max(case.rounds for case in cases) > 127
    assert sum(not case.problem.quadratic for case in cases) > 3
    assert len({case.multiplier for case in cases}) > 3 and {0.3, 1.7} <= {case.multiplier for case in cases}
    sizes = [np.abs(case.problem.start).max() for case in cases]
    assert min(sizes) < 2e-6 and max(sizes) > 1e5
    absent = [np.diff(np.flatnonzero(np.append(case.weights[:, 0], 1))).max() for case in cases if case.rounds > 12]
    assert max(absent) > 100


def test_games_have_every_magnitude_and_most_are_quadratic():
    cases = sized(minimax.game_cases())
    assert all(odd(case.game.start) and odd(case.step_sizes) for case in cases)
    assert 5 < sum(case.game.ripple is not None for case in cases) < 12
    sizes = [np.abs(case.game.start).max() for case in cases]
    assert min(sizes) < 2e-6 and max(sizes) > 1e5


def test_steps_of_servers_have_every_magnitude():
    cases = sized(strategies.averaging_cases())
    assert all(odd(case.model) for case in cases)
    assert {len(case.model) for case in cases} == {1, 2, 3, 9, 300} and max(len(case.shares) for case in cases) == 12
    sizes = [np.abs(case.model).max() for case in cases]
    assert min(sizes) < 2e-6 and max(sizes) > 1e5 and min(case.shares.min() for case in cases) < 1e-3


def test_records_are_longer_than_a_byte_and_exceed_every_cutoff():
    cases = sized(weights.weight_cases())
    assert {case.cutoff for case in cases} == set(weights.CUTOFFS)
    long = [case for case in cases if len(case.participated) > 127]
    assert len(long) == 4 and any(case.cutoff == np.inf for case in long)
    for case in long:
        here = np.flatnonzero(case.participated[:, 0])
        assert np.diff(here).max() > min(case.cutoff, 127)


def test_masks_have_every_size():
    cases = sized(masking.mask_cases())
    assert [(case.steps, len(case.model)) for case in cases] == [tuple(size) for size in masking.SIZES]
    assert {size.steps for size in masking.SIZES} >= set(range(2, 11)) and len(cases) <= 25
    assert {size.dimension for size in masking.SIZES} == set(range(1, 10))
    assert {case.masks for case in cases if case.steps > 4 and len(case.model) > 4} == {"binary", "signed"}
    assert {case.masks for case in sized(masking.mask_cases(masks=("binary",)))} == {"binary"}
