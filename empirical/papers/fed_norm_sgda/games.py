r"""The arguments and the result of a run, for tests of the invariants of minimax algorithms.

A *run* is any function that computes the states of Fed-Norm-SGDA, or of Fed-Norm-SGDA+ with snapshots:

    run(game, cohorts, weights=, local_steps=, momentum=, local_step_sizes=, step_sizes=, period=, seed=)
        -> states (T + 1, d_x + d_y)

`game` and `cohorts` are positional, the others keywords; `**_` takes those that are not used:

- `game`: `game.gradient(i, x, y)` is the pair $(\nabla_xf_i, \nabla_yf_i)$ of arrays (d_x,) and (d_y,); `game.x0`,
  `game.y0` and `game.clients` complete it (see `Game`). There is no gradient noise.
- `cohorts`: the participants, (T, P) indices of clients, each row without repetition.
- `weights`: $w_i$, (n,), summing to one; a client that takes part counts $w_in/P$.
- `local_steps`: $\tau_i$, (n,); `momentum`: $\rho$ of the heavy ball, whose buffer starts empty in every round.
- `local_step_sizes`: $(\eta_x, \eta_y)$; `step_sizes`: $(\Gamma_x, \Gamma_y)$, what multiplies the normalized
  directions $\sum_{i\in C}\tilde w_i\sum_ka_i^{(k)}\nabla f_i/\|a_i\|_1$.
- `period`: 0 for Fed-Norm-SGDA, else S, which divides T: the gradients in y are taken at the snapshot of x of the last
  round that S divides.
- `seed`: of the run's own randomness.

The states are $(x_0, y_0), \dots, (x_T, y_T)$, x before y.

Source: Sharma et al. 2023, *Federated Minimax Optimization with Client Heterogeneity*, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.empirical.invariants.cases import as_numbers, digits
from fedbounds.empirical.invariants.scope import Feature, Need

MinimaxRun = Callable[..., ArrayLike]


@dataclass(frozen=True, eq=False)
class Ripple:
    r"""What makes a game nonquadratic: $\kappa_i\sum_j(1 - \cos w_j^\top(z - o))$."""

    sizes: np.ndarray  # $\kappa_i$, (n,), unit f
    frame: np.ndarray  # the $w_j$, (d, d), the rows of an orthogonal matrix
    origin: np.ndarray  # $o$, (d,)

    def gradient(self, i: int, z: np.ndarray) -> np.ndarray:
        """What it adds to the gradient of client i, (d,)."""
        return self.sizes[i] * (self.frame.T @ np.sin(self.frame @ (z - self.origin)))

    @property
    def copied(self) -> Ripple:
        """The same with arrays of its own."""
        return Ripple(self.sizes.copy(), self.frame.copy(), self.origin.copy())


@dataclass(frozen=True, eq=False)
class Game:
    r"""Games as plain callables on NumPy arrays, quadratic but for a ripple.

    $$f_i(z) = \tfrac12 z^\top H_iz + b_i^\top z + \kappa_i\sum_j(1 - \cos w_j^\top(z - o)), \qquad z = (x, y)$$

    Source: Sharma et al. 2023, eq. (1); the family is ours.
    """

    hessians: np.ndarray  # $H_i$, (n, d, d), symmetric, unit f/x^2
    slopes: np.ndarray  # $b_i$, (n, d), unit f/x
    start: np.ndarray  # $(x_0, y_0)$, (d,)
    descent: int  # $d_x$, how many of the coordinates are x's
    ripple: Ripple | None = None  # $\kappa_i$, $w_j$ and $o$; None in a quadratic game

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

    def gradient(self, i: int, x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        r"""$\nabla_xf_i(x, y)$, (d_x,), and $\nabla_yf_i(x, y)$, (d_y,), unit f/x; of arrays, lists or tensors."""
        z = np.concatenate([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
        gradient = self.hessians[i] @ z + self.slopes[i]
        if self.ripple is not None:
            gradient += self.ripple.gradient(i, z)
        return gradient[: self.descent], gradient[self.descent :]

    def of(self, who: Sequence[int]) -> Game:
        """The game in which client k is client who[k] of this one."""
        ripple = self.ripple and replace(self.ripple, sizes=self.ripple.sizes[list(who)])
        return replace(self, hessians=self.hessians[list(who)], slopes=self.slopes[list(who)], ripple=ripple)

    @property
    def at_start(self) -> np.ndarray:
        """The gradients where the game begins, (n, d)."""
        gradients = [self.gradient(i, self.x0, self.y0) for i in range(self.clients)]
        return np.stack([np.concatenate(pair) for pair in gradients])

    def moved(self, shift: np.ndarray) -> Game:
        """The game in coordinates z + shift."""
        ripple = self.ripple and replace(self.ripple, origin=self.ripple.origin + shift)
        return replace(self, slopes=self.slopes - self.hessians @ shift, start=self.start + shift, ripple=ripple)

    def scaled(self, a: float) -> Game:
        """The game a times as steep."""
        ripple = self.ripple and replace(self.ripple, sizes=a * self.ripple.sizes)
        return replace(self, hessians=a * self.hessians, slopes=a * self.slopes, ripple=ripple)

    @property
    def exchanged(self) -> Game:
        """The game of the other sign in which y comes first, and descends."""
        order = np.roll(np.arange(len(self.start)), -self.descent)
        ripple = self.ripple and Ripple(-self.ripple.sizes, self.ripple.frame[:, order], self.ripple.origin[order])
        hessians, slopes = -self.hessians[:, order][:, :, order], -self.slopes[:, order]
        return Game(hessians, slopes, self.start[order], len(order) - self.descent, ripple)

    def turned(self, turn: np.ndarray) -> Game:
        """The game in coordinates turn @ z, for an orthogonal matrix that keeps the players apart."""
        hessians = turn @ self.hessians @ turn.T
        return replace(
            self,
            hessians=(hessians + hessians.transpose(0, 2, 1)) / 2,
            slopes=self.slopes @ turn.T,
            start=turn @ self.start,
            ripple=self.ripple
            and replace(self.ripple, frame=self.ripple.frame @ turn.T, origin=turn @ self.ripple.origin),
        )

    def __str__(self) -> str:
        rows = [f"{name} = {digits(value)}" for name, value in (("H", self.hessians), ("b", self.slopes))]
        start = f"x0 = {digits(self.x0)}, y0 = {digits(self.y0)}"
        form = "f_i(z) = z^T H_i z / 2 + b_i^T z"
        if self.ripple is not None:
            form += " + k_i sum_j (1 - cos w_j^T (z - o))"
            named = {"k": self.ripple.sizes, "W": self.ripple.frame, "o": self.ripple.origin}
            rows += [f"{name} = {digits(value)}" for name, value in named.items()]
        return "; ".join([f"{form}, z = (x, y)", f"n = {self.clients}", *rows, start])


@dataclass(frozen=True, eq=False)
class GameCase:
    """One run of a minimax algorithm, before it is run.

    Source: Sharma et al. 2023, Algorithm 1.
    """

    game: Game  # the clients
    cohorts: np.ndarray  # who takes part, (T, P)
    weights: np.ndarray  # $w_i$, (n,)
    local_steps: np.ndarray  # $\tau_i$, (n,)
    local_step_sizes: tuple[float, float]  # $(\eta_x, \eta_y)$, unit x^2/f
    step_sizes: tuple[float, float]  # $(\Gamma_x, \Gamma_y)$, unit x^2/f
    momentum: float = 0.0  # $\rho$
    period: int = 0  # S; 0 for no snapshots
    seed: int = 0  # for the run's own randomness
    exposed: bool = False  # whether a run gets the arrays themselves, not copies of them

    @property
    def copied(self) -> GameCase:
        """The same case with arrays of its own."""
        game = self.game
        own = replace(
            game,
            hessians=game.hessians.copy(),
            slopes=game.slopes.copy(),
            start=game.start.copy(),
            ripple=game.ripple and game.ripple.copied,
        )
        arrays = {name: getattr(self, name).copy() for name in ("cohorts", "weights", "local_steps")}
        return replace(self, game=own, **arrays)

    @property
    def arrays(self) -> np.ndarray:
        """All numbers that a run is given in arrays, one after another."""
        game = self.game
        ripple = () if game.ripple is None else tuple(vars(game.ripple).values())
        given = (game.hessians, game.slopes, game.start, *ripple, self.cohorts, self.weights, self.local_steps)
        return np.concatenate([values.ravel().astype(float) for values in given])

    def states(self, run: MinimaxRun) -> np.ndarray:
        r"""What a run makes of this case: $(x_0, y_0), \dots, (x_T, y_T)$, (T + 1, d)."""
        own = self if self.exposed else self.copied
        returned = run(
            own.game,
            own.cohorts,
            weights=own.weights,
            local_steps=own.local_steps,
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
        local, server = digits(self.local_step_sizes), digits(self.step_sizes)
        return "\n".join(
            [
                f"game:    {self.game}",
                f"cohorts: {self.cohorts.tolist()}",
                f"clients: weights {digits(self.weights)}, local steps {self.local_steps.tolist()}",
                f"run:     local step sizes {local}, the server's {server}, momentum {digits(self.momentum)}, "
                f"{f'snapshots every {self.period}' if self.period else 'no snapshots'}, "
                f"seed {self.seed}",
            ]
        )


# What a case may have and an implementation may do without.
FEATURES = (
    Feature("momentum", "no momentum (rho = 0)", lambda case: replace(case, momentum=0.0)),
    Feature("period", "no snapshots", lambda case: replace(case, period=0)),
    Feature(
        "local_steps", "one local step each", lambda case: replace(case, local_steps=np.ones_like(case.local_steps))
    ),
    Feature(
        "weights",
        "equal weights",
        lambda case: replace(case, weights=np.full(len(case.weights), 1 / len(case.weights))),
    ),
)
SNAPSHOTS = Need("snapshots", lambda case: case.period > 0)
NO_SNAPSHOTS = Need("a run without snapshots", lambda case: case.period == 0)
ABSENT = Need("a client that never takes part", lambda case: len(np.unique(case.cohorts)) < case.game.clients)
UNEQUAL = Need("unequal weights", lambda case: np.ptp(case.weights) > 1e-12)
MANY_STEPS = Need("more than one local step", lambda case: (case.local_steps > 1).any())
