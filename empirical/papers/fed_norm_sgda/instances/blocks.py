"""Blocks between two snapshots of Fed-Norm-SGDA+, one round after the other; and rounds until a target is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof.corollaries import NEEDED, FirstAt
from fedbounds.bounds.papers.fed_norm_sgda.proof.restart import APPROACH
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import Gammax
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem_4 import (
    LAG_MEAN,
    STALE_MEAN,
    OverBlocks,
    OverUnequalBlocks,
    SnapshotLag,
)
from fedbounds.empirical.falsification.instances.averages import CASES, Builder, LetteredRun, Letters, value
from fedbounds.empirical.falsification.instances.sides import ROUNDING

NEVER = 1e30  # rounds


def lag(rule: SnapshotLag, premises: Sequence[Relation], run: LetteredRun) -> Letters:
    """The way of x from the snapshot where every round moves it as far as it can, always in one direction."""
    length = np.broadcast_to(value(premises[0].right, run.letters), (CASES, 1))
    x, snapshot, far = np.zeros((CASES, 1)), np.zeros((CASES, 1)), []
    for t in range(run.rounds - run.rounds % run.block or run.rounds):
        snapshot = x if t % run.block == 0 else snapshot
        far.append(np.abs(x - snapshot))
        x = x - run.letters[Gammax.name] * length
    return {LAG_MEAN.name: np.mean(far, axis=0), n.S.name: np.full((CASES, 1), float(run.block))}


def whole(rule: OverBlocks, premises: Sequence[Relation], run: LetteredRun) -> Letters:
    """Every block at its bound, in rounds that differ."""
    bound = np.broadcast_to(value(premises[0].right, run.letters | _size(run)), (CASES, 1))
    blocks = -(-run.rounds // run.block)
    each = run.rng.exponential(size=(CASES, blocks, run.block))
    each *= bound[:, :, None] / each.mean(axis=2, keepdims=True)
    rounds = each.reshape(CASES, -1)
    count = {n.T.name: np.full((CASES, 1), float(rounds.shape[1]))}
    return {STALE_MEAN.name: rounds.mean(axis=1, keepdims=True)} | count | _size(run)


def unequal(rule: OverUnequalBlocks, premises: Sequence[Relation], run: LetteredRun) -> Letters:
    """Each block starts as far away as it may and ends at the maximizer, all in its first round; the last is cut."""
    each, start = premises
    letters = run.letters | _size(run)
    away = np.broadcast_to(value(start.right, letters), (CASES, 1))
    stale = []
    for t in range(run.rounds):
        approach = away if t % run.block == 0 else np.zeros((CASES, 1))
        stale.append(np.broadcast_to(value(each.right, letters | {APPROACH.name: approach}), (CASES, 1)))
    return {STALE_MEAN.name: np.mean(stale, axis=0)} | _size(run)


def first(rule: FirstAt, premises: Sequence[Relation], run: LetteredRun) -> Letters:
    """The rounds until the squared gradient is at most eps^2 where it is what the premise shows, but not earlier."""
    shown = value(premises[0].right, run.letters)
    reached = np.broadcast_to(shown <= run.letters[n.eps.name] ** 2 * (1 + ROUNDING), (CASES, 1))
    return {NEEDED.name: np.where(reached, np.ceil(value(rule.least, run.letters)), NEVER)}


def _size(run: LetteredRun) -> Letters:
    return {n.S.name: np.full((CASES, 1), float(run.block))}


BUILDERS: Mapping[type, Builder] = {SnapshotLag: lag, OverBlocks: whole, OverUnequalBlocks: unequal, FirstAt: first}
