"""The cases of the papers' checks have every size that their pages state, whatever the seed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

from fedbounds.empirical.invariants.coverage import classes_tried
from fedbounds.empirical.papers.fed_norm_sgda import strategies as minimax
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
    assert {size.local_steps for size in minimax.SIZES} == set(range(1, 11))
    assert max(size.rounds for size in minimax.SIZES) == 40 and {case.momentum for case in cases} == {0.0, 0.5}
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
    assert {size.local_steps for size in vertical.SIZES} == set(range(1, 11))
    assert max(size.rounds for size in vertical.SIZES) == 40
    assert max(len(silo) for case in cases for silo in case.table.clients) == 6


def test_restricted_tables_are_so_in_every_size():
    wanted = dict(local_steps=(1,), silos=(2,), equal_shards=True, same_rows=True, losses=("logistic",))
    for case in sized(vertical.table_cases(**wanted)):
        assert (case.local_steps, case.table.silos, case.table.loss) == (1, 2, "logistic")
        assert len({len(ids) for ids in case.table.clients[0]}) == 1 and case.table.clients[0] is case.table.clients[1]


def test_masks_have_every_size():
    cases = sized(masking.mask_cases())
    assert [(case.steps, len(case.model)) for case in cases] == [tuple(size) for size in masking.SIZES]
    assert {size.steps for size in masking.SIZES} >= set(range(2, 11)) and len(cases) <= 25
    assert {size.dimension for size in masking.SIZES} == set(range(1, 10))
    assert {case.masks for case in cases if case.steps > 4 and len(case.model) > 4} == {"binary", "signed"}
    assert {case.masks for case in sized(masking.mask_cases(masks=("binary",)))} == {"binary"}
