r"""The invariants of TDCD, and the search for tables in silos that break them.

`fedbounds.empirical.papers.tdcd.tables` describes a run's arguments and result.

Source: Das et al. 2022, *Cross-Silo Federated Learning for Multi-Tier Networks with Vertical and Horizontal Data
Partitioning*, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.empirical.invariants.cases import digits
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.scope import InvariantSides, declare_scope
from fedbounds.empirical.invariants.search import Subject, check
from fedbounds.empirical.papers.tdcd import tables
from fedbounds.empirical.papers.tdcd.misreadings import MISREADINGS, Copies, Reading
from fedbounds.empirical.papers.tdcd.numpy_reference import tdcd

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Execute = Callable[[tables.TableCase], np.ndarray]


# --- embeddings -------------------------------------------------------------------------------------------


@declare_scope(tables.SEVERAL_SILOS)
def only_the_sum_counts(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""What one silo's embeddings have more and another's less changes nothing: $\Phi_j+\Phi_{-j}$ is the sum of all.

    $$(o_1,o_2)\to(o_1+s,o_2-s)$$
    """
    offsets, shift = case.table.offsets.copy(), np.arange(1.0, case.table.samples + 1) / 2
    offsets[0] += shift
    offsets[-1] -= shift
    other = case.of(replace(case.table, offsets=offsets))
    return InvariantSides(execute(other), execute(case), case=other, against=case)


def rows_by_id(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """Samples with other IDs, and the IDs of batches and clients in another order, change nothing: rows go by ID."""
    order = np.roll(np.arange(case.table.samples), 1)[::-1]
    other = case.of(case.table.renamed(order), batches=np.roll(order[case.batches], 1, axis=1))
    return InvariantSides(execute(other), execute(case), case=other, against=case)


@declare_scope(tables.SEVERAL_SILOS, tables.MANY_STEPS)
def others_as_they_were(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""In a round a silo's block does not depend on where the others move, but on their embeddings at its beginning.

    $$(X_l,\theta_l)\to(2X_l,\tfrac12\theta_l)\ \text{for all}\ l\ne j\implies\tilde\theta_j^{Q}\ \text{as before}$$
    """
    once, found = case.once, execute(case.once)[1:].copy()
    for j, block in enumerate(case.table.blocks):
        turns = [(1.0 if l == j else 0.5) * np.eye(len(start)) for l, start in enumerate(case.table.starts)]
        other = once.of(once.table.in_coordinates(turns))
        got = execute(other)[1:, block]
        if not np.allclose(got, found[:, block], rtol=0, atol=1e-9 * max(1.0, float(np.abs(found).max()))):
            return InvariantSides(got, found[:, block], case=other, against=once, via=f"in the block of silo {j}")
    return InvariantSides(found, found, case=once)


# --- rounds -----------------------------------------------------------------------------------------------


def one_local_step(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""With Q = 1 nothing is stale: each round is a step along the mean of the clients' gradients at the model itself.

    $$Q=1\implies\tilde\theta_j^{t+1}=\tilde\theta_j^t-\frac\eta{K_j}\sum_kg_{k,j}(\tilde\theta^t)$$
    """
    one = replace(case, local_steps=1)
    got = execute(one)
    expected = [got[0]]
    expected += [model - one.step_size * _direction(one, one.draw(t), model) for t, model in enumerate(got[:-1])]
    return InvariantSides(got, np.stack(expected), case=one)


def virtual_recursion(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""At every t, also within a round, the mean of the copies moves along the mean of the clients' gradients.

    $$\tilde\theta^{t+1}=\tilde\theta^t-\eta\,G^t,\qquad
      G_{(j)}^t=\frac1{K_j}\sum_kg_{k,j}(\theta_{-j}^{t_0},\theta_{k,j}^t)$$

    The mean after q steps is what a round of q steps gives; the copies are computed here.
    """
    start, batch = np.concatenate(case.table.starts), case.draw(0)
    algorithm = Reading.start(case, start)
    copies, means, got, expected = algorithm.copies(), [start], [start], [start]
    for q in range(case.local_steps):
        means.append(execute(replace(case.once, local_steps=q + 1))[1])
        got.append(means[-1])
        slopes = algorithm.slopes(copies, batch)
        expected.append(means[-2] - case.step_size * _mean(slopes))
        copies = algorithm.step_copies(copies, slopes)
    return InvariantSides(np.stack(got), np.stack(expected), case=case.once)


def restarted_rounds(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """A run that begins again where a round ended goes on as before: a round remembers nothing but the model."""
    got = execute(case)
    later = [execute(case.from_round(r, got[r]).once)[1] for r in range(1, case.rounds)]
    return InvariantSides(got, np.stack([*got[:2], *later]))


# --- partitions -------------------------------------------------------------------------------------------


@declare_scope(tables.EQUAL)
def merged_clients(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """With Q = 1, all samples in the batch and equal shards, the clients of a silo are as good as one."""
    one = replace(case.evened.whole, local_steps=1)
    return InvariantSides(execute(one), execute(one.merged), case=one, against=one.merged)


@declare_scope(tables.WIDE, tables.THREE_SILOS)
def split_silos(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """With Q = 1 a silo is as good as two that share its columns and have the same clients."""
    one, table = replace(case, local_steps=1), case.table
    j = max(range(table.silos), key=lambda silo: len(table.starts[silo]))
    if len(table.starts[j]) == 1:
        return InvariantSides(execute(one), execute(one), case=one)

    def cut(values: Sequence[Any], first: Any, second: Any) -> tuple[Any, ...]:
        return (*values[:j], first, second, *values[j + 1 :])

    X, start = table.features[j], table.starts[j]
    offsets = np.insert(table.offsets, j + 1, 0.0, axis=0)
    finer = replace(
        table, features=cut(table.features, X[:, :1], X[:, 1:]), starts=cut(table.starts, start[:1], start[1:]),
        offsets=offsets, clients=cut(table.clients, table.clients[j], table.clients[j]),
    )  # fmt: skip
    return InvariantSides(execute(one.of(finer)), execute(one), case=one.of(finer), against=one)


def relabeled(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """Silos, and clients within them, in the opposite order change nothing but the order of the blocks."""
    table = case.table
    other = case.of(tables.SplitTable(
        table.features[::-1], table.offsets[::-1], table.labels, tuple(silo[::-1] for silo in table.clients[::-1]),
        table.starts[::-1], table.loss,
    ))  # fmt: skip
    got = execute(other)
    back = np.hstack([got[:, block] for block in other.table.blocks[::-1]])
    return InvariantSides(back, execute(case), case=other, against=case, via="with the blocks in the opposite order")


@declare_scope(tables.PART)
def unbiased(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""The mean of the first step over all batches of the same size is the mean of the clients' own gradients.

    $$\binom MB^{-1}\sum_{|\zeta|=B}\frac{\tilde\theta_j^0-\tilde\theta_j^1(\zeta)}\eta
      =\frac1{K_j}\sum_k\nabla_{(j)}f_{k,j},\qquad f_{k,j}\text{ over all samples that the client holds}$$

    which is $\nabla_{(j)}\mathcal L$ where shards are equal. In every batch each client has a sample.
    """
    start, M = np.concatenate(case.table.starts), case.table.samples
    one = replace(case.once, local_steps=1)
    some = [replace(one, batches=np.array([ids])) for ids in combinations(range(M), case.batches.shape[1])]
    mean = np.mean([(start - execute(each)[1]) / case.step_size for each in some], axis=0)
    expected = _direction(one, np.arange(M), start)
    return InvariantSides(mean[None], expected[None], case=some[0], via="averaged over all batches")


# --- coordinates and units --------------------------------------------------------------------------------


def translation(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""Moving the origin of every block moves all models along.

    $$(\theta_j^0,o_j)\to(\theta_j^0+s_j,\ o_j-X_js_j)$$
    """
    table = case.table
    shift = np.arange(1.0, table.blocks[-1].stop + 1) / 2
    parts = [shift[block] for block in table.blocks]
    offsets = np.array([o - X @ s for o, X, s in zip(table.offsets, table.features, parts, strict=True)])
    starts = tuple(start + s for start, s in zip(table.starts, parts, strict=True))
    there = case.of(replace(table, offsets=offsets, starts=starts))
    via = f"moved by {digits(shift)}"
    return InvariantSides(execute(there), execute(case) + shift, case=there, against=case, via=via)


def rotation(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""Orthogonal changes of coordinates, one in each silo, commute with the run.

    $$(X_j,\theta_j^0)\to(X_jU_j^\top,U_j\theta_j^0)\implies\tilde\theta_j\to U_j\tilde\theta_j$$
    """
    turns = []
    for start in case.table.starts:
        v = np.arange(1.0, len(start) + 1)
        turns.append(np.eye(len(v)) - 2 * np.outer(v, v) / (v @ v))
    there, models = case.of(case.table.in_coordinates(turns)), execute(case)
    expected = [models[:, block] @ turn.T for block, turn in zip(case.table.blocks, turns, strict=True)]
    via = f"turned by {[digits(turn) for turn in turns]}"
    return InvariantSides(execute(there), np.hstack(expected), case=there, against=case, via=via)


def scaling(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""Only the step size times curvatures matters: parameters in another unit are the same run.

    $$(X,\theta^0,\eta)\to(2X,\tfrac12\theta^0,\tfrac14\eta)\implies\tilde\theta\to\tfrac12\tilde\theta$$
    """
    table = case.table.in_coordinates([0.5 * np.eye(len(start)) for start in case.table.starts])
    other = case.of(table, step_size=case.step_size / 4)
    return InvariantSides(execute(other), execute(case) / 2, case=other, against=case, via="halved")


# --- what is known in closed form -------------------------------------------------------------------------


@declare_scope(tables.SQUARES)
def closed_form(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""On least squares, with one client in each silo and all samples in the batch, a round is one linear map.

    $$\theta^+=\theta-\mathbf S\nabla\mathcal L(\theta),\qquad
      \mathbf S=\mathrm{diag}(S_j),\quad S_j=\eta\sum_{q<Q}(I-\eta A_{jj})^q$$
    """
    one = case.of(replace(case.table, loss="least squares")).whole.merged
    table = one.table
    X, M = np.hstack(table.features), table.samples
    S = np.zeros((X.shape[1], X.shape[1]))
    for block in table.blocks:
        map_ = np.eye(block.stop - block.start) - one.step_size * X[:, block].T @ X[:, block] / M
        S[block, block] = one.step_size * sum(np.linalg.matrix_power(map_, q) for q in range(one.local_steps))
    models = [np.concatenate(table.starts)]
    for _ in range(one.rounds):
        total = X @ models[-1] + table.offsets.sum(0) - table.labels
        models.append(models[-1] - S @ (X.T @ total / M))
    return InvariantSides(execute(one), np.stack(models), case=one)


@declare_scope(tables.SQUARES, tables.MANY_STEPS, tables.THREE_SILOS)
def stability(execute: Execute, case: tables.TableCase) -> InvariantSides:
    r"""A step size below $1/8L$ alone is not enough: where silos are coupled, 28 local steps diverge and 27 do not.

    $A=0.1I+0.9\,\mathbf 1\mathbf 1^\top$, three silos of one parameter, $\eta=\frac1{8L}$: along $\mathbf 1$ a round
    multiplies by $1-2.8s$ with $s=1-(1-\eta)^Q$, which is -0.9841 and -1.0205.
    """
    A = 0.1 * np.eye(3) + 0.9
    X = np.linalg.cholesky(3 * A).T
    clients = ((np.arange(3),),) * 3
    table = tables.SplitTable(tuple(X.T[:, :, None]), np.zeros((3, 3)), np.zeros(3), clients, (np.ones(1),) * 3)
    got, expected = [], []
    last = tables.TableCase(table, np.arange(3)[None], 1, 28, 1 / 22.4)
    for coupled in (replace(last, local_steps=27), last):
        got.append(execute(coupled)[1])
        expected.append(np.full(3, 1 - 2.8 * (1 - (1 - last.step_size) ** coupled.local_steps)))
    return InvariantSides(np.stack(got), np.stack(expected), case=last)


def repeated(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """Batches are given: the same case again gives the same models."""
    return InvariantSides(execute(replace(case)), execute(case), against=case)


def unchanged_arguments(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """A run leaves the arrays of the table as they are."""
    exposed = replace(case, table=case.table.copied, exposed=True)
    execute(exposed)
    return InvariantSides(exposed.table.arrays[None], case.table.arrays[None])


def reference_twin(execute: Execute, case: tables.TableCase) -> InvariantSides:
    """The models are those of Algorithm 1, corrected, in plain NumPy."""
    return InvariantSides(execute(case), case.models(tdcd))


def _mean(slopes: Copies) -> np.ndarray:
    """G: block by block the mean of the clients' gradients."""
    return np.concatenate([np.mean(silo, axis=0) for silo in slopes])


def _direction(case: tables.TableCase, batch: np.ndarray, model: np.ndarray) -> np.ndarray:
    """G where a round begins."""
    start = Reading.start(case, model)
    return _mean(start.slopes(start.copies(), batch))


VERTICAL_INVARIANTS: Mapping[str, Callable[[Execute, tables.TableCase], InvariantSides]] = {
    held.__name__.replace("_", " "): held
    for held in (
        only_the_sum_counts,
        rows_by_id,
        others_as_they_were,
        one_local_step,
        virtual_recursion,
        restarted_rounds,
        merged_clients,
        split_silos,
        relabeled,
        unbiased,
        translation,
        rotation,
        scaling,
        closed_form,
        stability,
        repeated,
        unchanged_arguments,
        reference_twin,
    )
}


def check_vertical(
    run: tables.TableRun,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float | None = None,
) -> Report:
    r"""Look for tables, split over silos and clients, on which an implementation of TDCD breaks an invariant.

    Args:
        run: a function `run(table, draw, *, rounds, local_steps, step_size)` that returns the models at the start and
            after every round as an array (R + 1, d); see `fedbounds.empirical.papers.tdcd.tables` for what it is given.
            If it names no `local_steps` (but takes `**_`) and they make no difference, the cases have one.
        invariants: names of `VERTICAL_INVARIANTS`; all if not given.
        examples: how many tables to try.
        seed: of the search; the same seed tries the same tables.
        cases: a strategy of `TableCase`; `strategies.table_cases()` of this package if not given.
        tolerance: largest difference, relative to the larger of 1 and the largest entry; if not given, 1e-9, or 1e-4
            for a run that returns single precision.

    Returns:
        A verdict for each invariant: held, for so many examples; broken, with the smallest counterexample found; or
        skipped, where it does not apply, with the reason. If something is broken, the likely cause.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a run that cannot be called as said or
            returns something else than models.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> check_vertical(tdcd, examples=20).broken
        ()
        >>> def printed(table, draw, *, rounds, local_steps, step_size):
        ...     if local_steps == 1:  # the one step is lost, and the model never moves
        ...         return np.tile(np.concatenate(table.starts), (rounds + 1, 1))
        ...     fewer = [draw(r * local_steps) for r in range(rounds)]
        ...     again = lambda t: fewer[t // (local_steps - 1)]
        ...     return tdcd(table, again, rounds=rounds, local_steps=local_steps - 1, step_size=step_size)
        >>> check_vertical(printed, invariants=["virtual recursion", "translation"]).cause
        'line 32 as printed: the last local step is lost'

    Source: Das et al. 2022, Algorithm 1 with line 32 corrected.
    """
    X, clients = np.array([[1.0], [0.5]]), ((np.array([1]), np.array([0])), (np.array([0, 1]),))
    table = tables.SplitTable((X, 2 * X), np.zeros((2, 2)), np.ones(2), clients, (np.ones(1), np.ones(1)))
    first = tables.TableCase(table, np.array([[0, 1]]), 2, 2, 0.25)
    subject = Subject(run, tables.TableCase.models, tdcd, tables.FEATURES, MISREADINGS)
    called = "run(table, draw, rounds=, local_steps=, step_size=)"
    cases_of = "fedbounds.empirical.papers.tdcd.strategies.table_cases"
    return check(subject, first, called, VERTICAL_INVARIANTS, cases_of, invariants, examples, seed, cases, tolerance)
