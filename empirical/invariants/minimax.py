r"""The invariants of federated minimax algorithms with normalised averaging, and the search for games that break them.

A *run* is any function that computes the states of Fed-Norm-SGDA, or of Fed-Norm-SGDA+ with snapshots:

    run(game, cohorts, weights=, local_steps=, momentum=, local_step_sizes=, step_sizes=, period=, seed=)
        -> states (T + 1, d_x + d_y)

`game` and `cohorts` come by position, the others by name, so that `**_` may stand for those that are not used:

- `game`: `game.gradient(i, x, y)` is the pair $(\nabla_xf_i, \nabla_yf_i)$ of arrays (d_x,) and (d_y,); `game.x0`,
  `game.y0` and `game.clients` say the rest. See `Game`. There is no gradient noise.
- `cohorts`: who takes part, (T, P) indices of clients, each row without repetition.
- `weights`: $w_i$, (n,), summing to one; a client that takes part counts $w_in/P$.
- `local_steps`: $\tau_i$, (n,); `momentum`: $\rho$ of the heavy ball, whose buffer starts empty in every round.
- `local_step_sizes`: $(\eta_x, \eta_y)$; `step_sizes`: $(\Gamma_x, \Gamma_y)$, what multiplies the normalised
  directions $\sum_{i\in C}\tilde w_i\sum_ka_i^{(k)}\nabla f_i/\|a_i\|_1$.
- `period`: 0 for Fed-Norm-SGDA, else S, which divides T: the gradients in y are taken at the snapshot of x of the last
  round that S divides.
- `seed`: for whatever randomness a run has of its own.

The states are $(x_0, y_0), \dots, (x_T, y_T)$, x before y.

Source: Sharma et al. 2023, *Federated Minimax Optimization with Client Heterogeneity*, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from empirical.invariants.cases import as_numbers
from empirical.invariants.properties import ROUND_OFF, Sides
from empirical.invariants.search import Report, chosen_from, search, strategy_of, try_out
from empirical.invariants.twin import fed_norm_sgda

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MinimaxRun = Callable[..., ArrayLike]


@dataclass(frozen=True, eq=False)
class Game:
    r"""Quadratic games as plain callables on NumPy arrays.

    $$f_i(z) = \tfrac12 z^\top H_iz + b_i^\top z, \qquad z = (x, y)$$

    Args:
        hessians: $H_i$, (n, d, d), symmetric, unit f/x^2.
        slopes: $b_i$, (n, d), unit f/x.
        start: $(x_0, y_0)$, (d,).
        descent: $d_x$, how many of the coordinates are x's.

    Example:
        >>> game = Game(np.array([[[1.0, 2.0], [2.0, -1.0]]]), np.array([[0.0, 3.0]]), np.array([1.0, 1.0]), 1)
        >>> game.gradient(0, game.x0, game.y0)
        (array([3.]), array([4.]))

    Source: Sharma et al. 2023, eq. (1); the family is ours.
    """

    hessians: np.ndarray
    slopes: np.ndarray
    start: np.ndarray
    descent: int

    @property
    def clients(self) -> int:
        """n."""
        return len(self.hessians)

    @property
    def x0(self) -> np.ndarray:
        """The initial x, (d_x,), a fresh copy each time."""
        return self.start[: self.descent].copy()

    @property
    def y0(self) -> np.ndarray:
        """The initial y, (d_y,), a fresh copy each time."""
        return self.start[self.descent :].copy()

    def gradient(self, i: int, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""$\nabla_xf_i(x, y)$, (d_x,), and $\nabla_yf_i(x, y)$, (d_y,), unit f/x."""
        gradient = self.hessians[i] @ np.concatenate([x, y]) + self.slopes[i]
        return gradient[: self.descent], gradient[self.descent :]

    def of(self, who: Sequence[int]) -> Game:
        """The game in which client k is client who[k] of this one."""
        return replace(self, hessians=self.hessians[list(who)], slopes=self.slopes[list(who)])

    def turned(self, turn: np.ndarray) -> Game:
        """The game in coordinates turn @ z, for an orthogonal matrix that keeps the players apart."""
        hessians = turn @ self.hessians @ turn.T
        return replace(
            self,
            hessians=(hessians + hessians.transpose(0, 2, 1)) / 2,
            slopes=self.slopes @ turn.T,
            start=turn @ self.start,
        )

    def __str__(self) -> str:
        rows = [f"{name} = {value.tolist()}" for name, value in (("H", self.hessians), ("b", self.slopes))]
        start = f"x0 = {self.x0.tolist()}, y0 = {self.y0.tolist()}"
        return "; ".join(["f_i(z) = z^T H_i z / 2 + b_i^T z, z = (x, y)", f"n = {self.clients}", *rows, start])


@dataclass(frozen=True, eq=False)
class GameCase:
    r"""One run of a minimax algorithm, before it is run.

    Args:
        game: the clients.
        cohorts: who takes part, (T, P).
        weights: $w_i$, (n,).
        local_steps: $\tau_i$, (n,).
        local_step_sizes: $(\eta_x, \eta_y)$, unit x^2/f.
        step_sizes: $(\Gamma_x, \Gamma_y)$, unit x^2/f.
        momentum: $\rho$.
        period: S; 0 for no snapshots.
        seed: for the run's own randomness.

    Source: Sharma et al. 2023, Algorithm 1.
    """

    game: Game
    cohorts: np.ndarray
    weights: np.ndarray
    local_steps: np.ndarray
    local_step_sizes: tuple[float, float]
    step_sizes: tuple[float, float]
    momentum: float = 0.0
    period: int = 0
    seed: int = 0

    def states(self, run: MinimaxRun) -> np.ndarray:
        r"""What a run makes of this case: $(x_0, y_0), \dots, (x_T, y_T)$, (T + 1, d).

        Raises:
            FedboundsError: the run returns something else, or numbers that are not finite.
        """
        returned = run(
            self.game,
            self.cohorts.copy(),
            weights=self.weights.copy(),
            local_steps=self.local_steps.copy(),
            momentum=self.momentum,
            local_step_sizes=self.local_step_sizes,
            step_sizes=self.step_sizes,
            period=self.period,
            seed=self.seed,
        )
        wanted = (len(self.cohorts) + 1, len(self.game.start))
        return as_numbers(
            returned,
            wanted,
            f"the run returned {{}}; expected states of shape {wanted}",
            f"the run returned shape {{}}; expected (x_0, y_0)..(x_T, y_T), {wanted}",
            "the run returned (x_{t}, y_{t}) = {row}, which is not finite",
        )

    @property
    def everyone(self) -> GameCase:
        """The same with all clients in every round."""
        n = self.game.clients
        return replace(self, cohorts=np.tile(np.arange(n), (len(self.cohorts), 1)))

    def of(self, who: Sequence[int], weights: np.ndarray) -> GameCase:
        """The case in which client k is client who[k] of this one, with weights of its own and the same cohorts."""
        return replace(self, game=self.game.of(who), weights=weights, local_steps=self.local_steps[list(who)])

    def __str__(self) -> str:
        (ex, ey), (gx, gy) = self.local_step_sizes, self.step_sizes
        return "\n".join(
            [
                f"game:    {self.game}",
                f"cohorts: {self.cohorts.tolist()}",
                f"clients: weights {np.round(self.weights, 4).tolist()}, local steps {self.local_steps.tolist()}",
                f"run:     local steps of {ex:g} and {ey:g}, the server's {gx:g} and {gy:g}, momentum "
                f"{self.momentum:g}, {f'snapshots every {self.period}' if self.period else 'no snapshots'}, "
                f"seed {self.seed}",
            ]
        )


Execute = Callable[[GameCase], np.ndarray]


# --- players ----------------------------------------------------------------------------------------------


def exchanged_players(execute: Execute, case: GameCase) -> Sides:
    r"""The players exchange their roles with the sign of the game: without snapshots no one can tell.

    $$(x_t, y_t)(f;\ \eta_x, \eta_y, \Gamma_x, \Gamma_y) = (y_t, x_t)(-f^\top;\ \eta_y, \eta_x, \Gamma_y, \Gamma_x)$$
    """
    plain = replace(case, period=0)
    d, cut = len(case.game.start), case.game.descent
    order = np.roll(np.arange(d), -cut)
    game = Game(
        -case.game.hessians[:, order][:, :, order], -case.game.slopes[:, order], case.game.start[order], d - cut
    )
    there = replace(plain, game=game, local_step_sizes=plain.local_step_sizes[::-1], step_sizes=plain.step_sizes[::-1])
    return Sides(execute(there), execute(plain)[:, order])


# --- normalised averaging ---------------------------------------------------------------------------------


def normalised_directions(execute: Execute, case: GameCase) -> Sides:
    r"""Where the local models stay, more local steps, or momentum, do not make a client count more.

    $$\eta_x = \eta_y = 0 \implies (x_t, y_t)(\tau, \rho) = (x_t, y_t)(1, 0)$$
    """
    still = replace(case, local_step_sizes=(0.0, 0.0))
    return Sides(execute(still), execute(replace(still, local_steps=np.ones_like(case.local_steps), momentum=0.0)))


def single_local_step(execute: Execute, case: GameCase) -> Sides:
    r"""With one local step each, the local step sizes and the momentum play no role.

    $$\tau_i = 1 \implies (x_t, y_t)(\eta_x, \eta_y, \rho) = (x_t, y_t)(0, 0, 0)$$
    """
    one = replace(case, local_steps=np.ones_like(case.local_steps))
    return Sides(execute(one), execute(replace(one, local_step_sizes=(0.0, 0.0), momentum=0.0)))


def mean_over_cohorts(execute: Execute, case: GameCase) -> Sides:
    r"""The mean of a round's states over all cohorts of P clients is the state with everyone.

    $$\binom nP^{-1}\sum_{|C| = P}(x_1, y_1)(C) = (x_1, y_1)(\{1, \dots, n\})$$
    """
    n, P = case.game.clients, case.cohorts.shape[1]
    once = replace(case, period=min(case.period, 1))
    every = [execute(replace(once, cohorts=np.array([C])))[1] for C in combinations(range(n), P)]
    together = execute(replace(once, cohorts=np.arange(n)[None]))[1]
    return Sides(np.mean(every, axis=0)[None], together[None])


# --- snapshots --------------------------------------------------------------------------------------------


def snapshots_of_every_round(execute: Execute, case: GameCase) -> Sides:
    r"""With a snapshot in every round and one local step, the snapshot is where the gradient is taken anyway.

    $$S = 1,\ \tau_i = 1 \implies \text{Fed-Norm-SGDA+} = \text{Fed-Norm-SGDA}$$
    """
    one = replace(case, local_steps=np.ones_like(case.local_steps))
    return Sides(execute(replace(one, period=1)), execute(replace(one, period=0)))


def restarted_blocks(execute: Execute, case: GameCase) -> Sides:
    r"""A run that begins again where a block of S rounds ended (without snapshots: at any round) goes on as before."""
    got, size = execute(case), case.period or 1
    expected = got.copy()
    for t in range(size, len(case.cohorts), size):
        later = replace(case, game=replace(case.game, start=got[t]), cohorts=case.cohorts[t:])
        expected[t + 1 : t + size + 1] = execute(later)[1 : size + 1]
    return Sides(got, expected)


# --- clients ----------------------------------------------------------------------------------------------


def absent_clients(execute: Execute, case: GameCase) -> Sides:
    """What a client would have computed in a round without it changes nothing."""
    absent = np.setdiff1d(np.arange(case.game.clients), case.cohorts)
    slopes, steps = case.game.slopes.copy(), case.local_steps.copy()
    slopes[absent] += 1
    steps[absent] += 1
    return Sides(
        execute(replace(case, game=replace(case.game, slopes=slopes), local_steps=steps)), execute(replace(case))
    )


def relabelled_clients(execute: Execute, case: GameCase) -> Sides:
    """Renaming the clients, together with their weights, their local steps and the cohorts, changes nothing."""
    n = case.game.clients
    order = np.roll(np.arange(n), 1)
    renamed = case.of(order.tolist(), case.weights[order])
    return Sides(execute(replace(renamed, cohorts=np.argsort(order)[case.cohorts])), execute(case))


def split_clients(execute: Execute, case: GameCase) -> Sides:
    r"""With everyone there, two copies of a client whose weights add up to the client's are the client.

    $$(w_1, w_2, \dots) \to (\tfrac14w_1, \tfrac34w_1, w_2, \dots)$$
    """
    first, others = case.weights[:1], case.weights[1:]
    who = [0, *range(case.game.clients)]
    split = case.of(who, np.concatenate([first / 4, 3 * first / 4, others]))
    return Sides(execute(split.everyone), execute(case.everyone))


# --- coordinates and units --------------------------------------------------------------------------------


def translation(execute: Execute, case: GameCase) -> Sides:
    r"""Moving the origins of both players moves every state along.

    $$z_t(f_i(\cdot - s), z_0 + s) = z_t(f_i, z_0) + s$$
    """
    game = case.game
    shift = np.arange(1.0, len(game.start) + 1)
    moved = replace(game, slopes=game.slopes - game.hessians @ shift, start=game.start + shift)
    return Sides(execute(replace(case, game=moved)), execute(case) + shift)


def rotation(execute: Execute, case: GameCase) -> Sides:
    r"""Orthogonal changes of coordinates, one of each player's, commute with the run.

    $$z_t(f_i(U^\top\cdot), Uz_0) = Uz_t(f_i, z_0), \qquad U = \operatorname{diag}(U_x, U_y)$$
    """
    turn = np.zeros_like(case.game.hessians[0])
    for block in (slice(0, case.game.descent), slice(case.game.descent, None)):
        v = np.arange(1.0, len(case.game.start[block]) + 1)
        turn[block, block] = np.eye(len(v)) - 2 * np.outer(v, v) / (v @ v)
    return Sides(execute(replace(case, game=case.game.turned(turn))), execute(case) @ turn.T)


def scaling(execute: Execute, case: GameCase) -> Sides:
    r"""Only step sizes times gradients matter: a game a times as steep undoes steps divided by a.

    $$z_t(af_i;\ \eta/a, \Gamma/a) = z_t(f_i;\ \eta, \Gamma)$$
    """
    a = 3.0
    steeper = replace(case.game, hessians=a * case.game.hessians, slopes=a * case.game.slopes)
    local, server = (tuple(step / a for step in steps) for steps in (case.local_step_sizes, case.step_sizes))
    return Sides(execute(replace(case, game=steeper, local_step_sizes=local, step_sizes=server)), execute(case))


# --- randomness -------------------------------------------------------------------------------------------


def seed_without_noise(execute: Execute, case: GameCase) -> Sides:
    """Nothing here is random: the case run again, with another seed, gives the same states."""
    return Sides(execute(replace(case, seed=case.seed + 1)), execute(case))


def reference_twin(execute: Execute, case: GameCase) -> Sides:
    """The states are those of Algorithm 1 in plain NumPy, with the general local map of eq. (12)."""
    return Sides(execute(case), case.states(fed_norm_sgda))


MINIMAX_INVARIANTS: Mapping[str, Callable[[Execute, GameCase], Sides]] = {
    held.__name__.replace("_", " "): held
    for held in (
        exchanged_players,
        normalised_directions,
        single_local_step,
        mean_over_cohorts,
        snapshots_of_every_round,
        restarted_blocks,
        absent_clients,
        relabelled_clients,
        split_clients,
        translation,
        rotation,
        scaling,
        seed_without_noise,
        reference_twin,
    )
}


def check_minimax(
    run: MinimaxRun,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float = ROUND_OFF,
) -> Report:
    r"""Look for games in which an implementation of Fed-Norm-SGDA, or Fed-Norm-SGDA+, breaks an invariant.

    Args:
        run: a function `run(game, cohorts, *, weights, local_steps, momentum, local_step_sizes, step_sizes, period,
            seed)` that returns the states $(x_0, y_0), \dots, (x_T, y_T)$ as an array (T + 1, d); see
            `empirical.invariants.minimax` for what it is given.
        invariants: names of `MINIMAX_INVARIANTS`; all if not given. Naive averaging keeps all but "normalised
            directions" and "reference twin".
        examples: how many games to try.
        seed: of the search; the same seed tries the same games.
        cases: a strategy of `GameCase`; that of `empirical.strategies.game_cases()` if not given.
        tolerance: largest difference, relative to the larger of 1 and the largest entry.

    Returns:
        A verdict for each invariant: held, for so many examples, or broken, with the smallest counterexample found.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a run that cannot be called as said or
            returns something else than states.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> check_minimax(fed_norm_sgda, examples=20).broken
        ()
        >>> def renormalises(game, cohorts, weights, **numbers):
        ...     n, P = game.clients, cohorts.shape[1]
        ...     states = [np.concatenate([game.x0, game.y0])]
        ...     for t, cohort in enumerate(cohorts):
        ...         here = Game(game.hessians, game.slopes, states[-1], game.descent)
        ...         share = weights * P / n / weights[cohort].sum()  # weights that sum to one over the cohort
        ...         states.append(fed_norm_sgda(here, cohort[None], weights=share, **numbers)[1])
        ...     return np.stack(states)
        >>> report = check_minimax(renormalises, invariants=["mean over cohorts", "translation"])
        >>> [verdict.status for verdict in report.verdicts]
        ['broken', 'held']

    Source: Sharma et al. 2023, Algorithm 1.
    """
    strategy = strategy_of(cases, "game_cases")
    chosen = chosen_from(MINIMAX_INVARIANTS, invariants)
    hessian = np.array([[1.0, 0.5], [0.5, -1.0]])
    game = Game(np.stack([hessian] * 2), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]), 1)
    first = GameCase(game, np.array([[0], [1]]), np.full(2, 0.5), np.array([1, 2]), (0.25, 0.25), (0.25, 0.5))
    called = "run(game, cohorts, weights=, local_steps=, momentum=, local_step_sizes=, step_sizes=, period=, seed=)"
    try_out(lambda: first.states(run), f"the run raised {{}}; it is called as {called}")
    return search(chosen, strategy, lambda case: case.states(run), examples, seed, tolerance)
