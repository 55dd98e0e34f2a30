r"""The invariants of federated minimax algorithms with normalized averaging, and the search for games that break them.

What a run is given, and what it returns, is said in `fedbounds.empirical.papers.fed_norm_sgda.games`.

Source: Sharma et al. 2023, *Federated Minimax Optimization with Client Heterogeneity*, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.empirical.invariants.cases import digits
from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.scope import InvariantSides, declare_scope
from fedbounds.empirical.invariants.search import Subject, check
from fedbounds.empirical.papers.fed_norm_sgda import games
from fedbounds.empirical.papers.fed_norm_sgda.numpy_reference import fed_norm_sgda

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Execute = Callable[[games.GameCase], np.ndarray]


# --- players ----------------------------------------------------------------------------------------------


@declare_scope(games.NO_SNAPSHOTS)
def exchanged_players(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""The players exchange their roles with the sign of the game: without snapshots no one can tell.

    $$(x_t, y_t)(f;\ \eta_x, \eta_y, \Gamma_x, \Gamma_y) = (y_t, x_t)(-f^\top;\ \eta_y, \eta_x, \Gamma_y, \Gamma_x)$$
    """
    plain = replace(case, period=0)
    d, cut = len(case.game.start), case.game.descent
    order = np.roll(np.arange(d), -cut)
    there = replace(
        plain,
        game=case.game.exchanged,
        local_step_sizes=plain.local_step_sizes[::-1],
        step_sizes=plain.step_sizes[::-1],
    )
    via = f"with coordinates in the order {order.tolist()}"
    return InvariantSides(execute(there), execute(plain)[:, order], case=there, against=plain, via=via)


# --- normalized averaging ---------------------------------------------------------------------------------


@declare_scope(games.MANY_STEPS)
def normalized_directions(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""Where gradients do not change, more local steps, or momentum, do not make a client count more.

    $$H_i = 0,\ \kappa_i = 0 \implies (x_t, y_t)(\tau, \rho) = (x_t, y_t)(1, 0)$$
    """
    game = case.game
    flat_game = replace(game, hessians=np.zeros_like(game.hessians), slopes=game.at_start, ripple=None)
    flat = replace(case, game=flat_game)
    once = replace(flat, local_steps=np.ones_like(case.local_steps), momentum=0.0)
    return InvariantSides(execute(flat), execute(once), case=flat, against=once)


def single_local_step(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""With one local step each, the local step sizes and the momentum play no role.

    $$\tau_i = 1 \implies (x_t, y_t)(\eta_x, \eta_y, \rho) = (x_t, y_t)(2\eta_x, 3\eta_y, 0)$$
    """
    one = replace(case, local_steps=np.ones_like(case.local_steps))
    ex, ey = case.local_step_sizes
    other = replace(one, local_step_sizes=(2 * ex, 3 * ey), momentum=0.0)
    return InvariantSides(execute(one), execute(other), case=one, against=other)


def mean_over_cohorts(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""The mean of a round's states over all cohorts of P clients is the state with everyone.

    $$\binom nP^{-1}\sum_{|C| = P}(x_1, y_1)(C) = (x_1, y_1)(\{1, \dots, n\})$$
    """
    n, P = case.game.clients, case.cohorts.shape[1]
    once = replace(case, period=min(case.period, 1))
    some = [replace(once, cohorts=np.array([C])) for C in combinations(range(n), P)]
    together = replace(once, cohorts=np.arange(n)[None])
    mean = np.mean([execute(each) for each in some], axis=0)
    return InvariantSides(
        execute(together), mean, case=together, against=some[0], via=f"averaged over all cohorts of {P}"
    )


# --- snapshots --------------------------------------------------------------------------------------------


@declare_scope(games.SNAPSHOTS, games.NO_SNAPSHOTS)
def snapshots_of_every_round(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""With a snapshot in every round and one local step, the snapshot is where the gradient is taken anyway.

    $$S = 1,\ \tau_i = 1 \implies \text{Fed-Norm-SGDA+} = \text{Fed-Norm-SGDA}$$
    """
    one = replace(case, local_steps=np.ones_like(case.local_steps))
    with_them, without = replace(one, period=1), replace(one, period=0)
    return InvariantSides(execute(with_them), execute(without), case=with_them, against=without)


def restarted_blocks(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""A run that begins again where a block of S rounds ended (without snapshots: at any round) goes on as before."""
    got, size = execute(case), case.period or 1
    expected = got.copy()
    for t in range(size, len(case.cohorts), size):
        block = replace(case, game=replace(case.game, start=got[t]), cohorts=case.cohorts[t : t + size])
        expected[t + 1 : t + size + 1] = execute(block)[1:]
    return InvariantSides(got, expected)


# --- clients ----------------------------------------------------------------------------------------------


@declare_scope(games.ABSENT)
def absent_clients(execute: Execute, case: games.GameCase) -> InvariantSides:
    """What a client would have computed in a round without it changes nothing."""
    absent = np.setdiff1d(np.arange(case.game.clients), case.cohorts)
    slopes, steps = case.game.slopes.copy(), case.local_steps.copy()
    slopes[absent] += 1
    steps[absent] += 1
    other = replace(case, game=replace(case.game, slopes=slopes), local_steps=steps)
    return InvariantSides(execute(other), execute(case), case=other, against=case)


def relabeled_clients(execute: Execute, case: games.GameCase) -> InvariantSides:
    """Renaming the clients, together with their weights, their local steps and the cohorts, changes nothing."""
    n = case.game.clients
    order = np.roll(np.arange(n), 1)
    renamed = case.of(order.tolist(), case.weights[order])
    renamed = replace(renamed, cohorts=np.argsort(order)[case.cohorts])
    return InvariantSides(execute(renamed), execute(case), case=renamed, against=case)


@declare_scope(games.UNEQUAL)
def split_clients(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""With everyone there, two copies of a client whose weights add up to the client's are the client.

    $$(w_1, w_2, \dots) \to (\tfrac14w_1, \tfrac34w_1, w_2, \dots)$$
    """
    first, others = case.weights[:1], case.weights[1:]
    who = [0, *range(case.game.clients)]
    split = case.of(who, np.concatenate([first / 4, 3 * first / 4, others]))
    return InvariantSides(execute(split.everyone), execute(case.everyone), case=split.everyone, against=case.everyone)


# --- coordinates and units --------------------------------------------------------------------------------


def translation(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""Moving the origins of both players moves every state along.

    $$z_t(f_i(\cdot - s), z_0 + s) = z_t(f_i, z_0) + s$$
    """
    shift = np.arange(1.0, len(case.game.start) + 1)
    there = replace(case, game=case.game.moved(shift))
    return InvariantSides(
        execute(there), execute(case) + shift, case=there, against=case, via=f"moved by {digits(shift)}"
    )


def rotation(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""Orthogonal changes of coordinates, one of each player's, commute with the run.

    $$z_t(f_i(U^\top\cdot), Uz_0) = Uz_t(f_i, z_0), \qquad U = \operatorname{diag}(U_x, U_y)$$
    """
    turn = np.zeros_like(case.game.hessians[0])
    for block in (slice(0, case.game.descent), slice(case.game.descent, None)):
        v = np.arange(1.0, len(case.game.start[block]) + 1)
        turn[block, block] = np.eye(len(v)) - 2 * np.outer(v, v) / (v @ v)
    there, via = replace(case, game=case.game.turned(turn)), f"turned by {digits(turn)}"
    return InvariantSides(execute(there), execute(case) @ turn.T, case=there, against=case, via=via)


def scaling(execute: Execute, case: games.GameCase) -> InvariantSides:
    r"""Only step sizes times gradients matter: a game a times as steep undoes steps divided by a.

    $$z_t(af_i;\ \eta/a, \Gamma/a) = z_t(f_i;\ \eta, \Gamma)$$
    """
    a = 3.0
    local, server = (tuple(step / a for step in steps) for steps in (case.local_step_sizes, case.step_sizes))
    other = replace(case, game=case.game.scaled(a), local_step_sizes=local, step_sizes=server)
    return InvariantSides(execute(other), execute(case), case=other, against=case)


# --- randomness -------------------------------------------------------------------------------------------


def seed_without_noise(execute: Execute, case: games.GameCase) -> InvariantSides:
    """Nothing here is random: the case run again, with another seed, gives the same states."""
    other = replace(case, seed=case.seed + 1)
    return InvariantSides(execute(other), execute(case), case=other, against=case)


def unchanged_arguments(execute: Execute, case: games.GameCase) -> InvariantSides:
    """A run leaves the arrays that it is given as they are."""
    exposed = replace(case.copied, exposed=True)
    execute(exposed)
    return InvariantSides(exposed.arrays[None], case.arrays[None])


def reference_twin(execute: Execute, case: games.GameCase) -> InvariantSides:
    """The states are those of Algorithm 1 in plain NumPy, with the general local map of eq. (12)."""
    return InvariantSides(execute(case), case.states(fed_norm_sgda))


MINIMAX_INVARIANTS: Mapping[str, Callable[[Execute, games.GameCase], InvariantSides]] = {
    held.__name__.replace("_", " "): held
    for held in (
        exchanged_players,
        normalized_directions,
        single_local_step,
        mean_over_cohorts,
        snapshots_of_every_round,
        restarted_blocks,
        absent_clients,
        relabeled_clients,
        split_clients,
        translation,
        rotation,
        scaling,
        seed_without_noise,
        unchanged_arguments,
        reference_twin,
    )
}


def _lengths(case: games.GameCase) -> np.ndarray:
    r"""$\|a_i\|_1$, (n,): a gradient that is followed by j more steps counts $1 + \rho + \dots + \rho^j$ times."""
    return np.array([sum((tau - m) * case.momentum**m for m in range(tau)) for tau in case.local_steps])


def _as_if(change: Callable[[games.GameCase], dict[str, Any]]) -> Callable[..., np.ndarray]:
    """The twin on a changed case."""
    return lambda twin, case: twin(replace(case, **change(case)))


MISREADINGS = (
    Misreading(
        "it ignores the momentum", _as_if(lambda case: {"momentum": 0.0}), "if it has none: game_cases(momenta=(0.0,))"
    ),
    Misreading(
        "it ignores the snapshots", _as_if(lambda case: {"period": 0}), "if it has none: game_cases(periods=(0,))"
    ),
    Misreading(
        "it ignores momentum and snapshots",
        _as_if(lambda case: {"momentum": 0.0, "period": 0}),
        "if it has neither: game_cases(momenta=(0.0,), periods=(0,))",
    ),
    Misreading(
        "it gives all clients the same weight",
        _as_if(lambda case: {"weights": np.full_like(case.weights, 1 / len(case.weights))}),
        "if that is meant: game_cases(parts=(1,))",
    ),
    Misreading(
        "it forgets the factor n/P of who takes part",
        _as_if(lambda case: {"weights": case.weights * case.cohorts.shape[1] / case.game.clients}),
    ),
    Misreading(
        "it does not normalize: more local steps count more",
        _as_if(lambda case: {"weights": case.weights * _lengths(case)}),
    ),
    Misreading(
        "it normalizes by the local steps, and not by the coefficients of momentum",
        _as_if(lambda case: {"weights": case.weights * _lengths(case) / case.local_steps}),
    ),
    Misreading(
        "it does one local step, however many there are",
        _as_if(lambda case: {"local_steps": np.ones_like(case.local_steps)}),
        "if it has no local steps: game_cases(local_steps=(1,))",
    ),
    Misreading("y descends", _as_if(lambda case: {"step_sizes": (case.step_sizes[0], -case.step_sizes[1])})),
    Misreading(
        "y descends in the local steps",
        _as_if(lambda case: {"local_step_sizes": (case.local_step_sizes[0], -case.local_step_sizes[1])}),
    ),
    Misreading("it never renews the snapshot", _as_if(lambda case: {"period": case.period and len(case.cohorts)})),
)


def check_minimax(
    run: games.MinimaxRun,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float | None = None,
) -> Report:
    r"""Look for games in which an implementation of Fed-Norm-SGDA, or Fed-Norm-SGDA+, breaks an invariant.

    Args:
        run: a function `run(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period,
            seed)` that returns the states $(x_0, y_0), \dots, (x_T, y_T)$ as an array (T + 1, d); see
            `fedbounds.empirical.papers.fed_norm_sgda.games` for what it is given. If it names no `momentum`, `period`,
            `local_steps` or `weights` (but takes `**_`) and none makes a difference, the cases have none.
        invariants: names of `MINIMAX_INVARIANTS`; all if not given. Naive averaging keeps all but "normalized
            directions" and "reference twin".
        examples: how many games to try.
        seed: of the search; the same seed tries the same games.
        cases: a strategy of `GameCase`; `strategies.game_cases()` of this package if not given.
        tolerance: largest difference, relative to the larger of 1 and the largest entry; if not given, 1e-9, or 1e-4
            for a run that returns single precision.

    Returns:
        A verdict for each invariant: held, for so many examples; broken, with the smallest counterexample found; or
        skipped, where it does not apply, with the reason. If something is broken, the likely cause.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a run that cannot be called as said or
            returns something else than states.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> check_minimax(fed_norm_sgda, examples=20).broken
        ()
        >>> def renormalizes(game, cohorts, weights, **numbers):
        ...     n, P = game.clients, cohorts.shape[1]
        ...     states = [np.concatenate([game.x0, game.y0])]
        ...     for t, cohort in enumerate(cohorts):
        ...         here = replace(game, start=states[-1])
        ...         share = weights * P / n / weights[cohort].sum()  # weights that sum to one over the cohort
        ...         states.append(fed_norm_sgda(here, cohort[None], weights=share, **numbers)[1])
        ...     return np.stack(states)
        >>> report = check_minimax(renormalizes, invariants=["mean over cohorts", "translation"])
        >>> [verdict.status for verdict in report.verdicts]
        ['broken', 'held']

    Source: Sharma et al. 2023, Algorithm 1.
    """
    hessian = np.array([[1.0, 0.5], [0.5, -1.0]])
    game = games.Game(np.stack([hessian] * 2), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]), 1)
    first = games.GameCase(game, np.array([[0], [1]]), np.full(2, 0.5), np.array([1, 2]), (0.25, 0.25), (0.25, 0.5))
    called = "run(game, cohorts, weights=, local_steps=, momentum=, local_step_sizes=, step_sizes=, period=, seed=)"
    subject = Subject(run, games.GameCase.states, fed_norm_sgda, games.FEATURES, MISREADINGS)
    cases_of = "fedbounds.empirical.papers.fed_norm_sgda.strategies.game_cases"
    return check(subject, first, called, MINIMAX_INVARIANTS, cases_of, invariants, examples, seed, cases, tolerance)
