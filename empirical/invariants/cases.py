r"""Cases for property tests: a problem of plain NumPy callables, and the numbers of a run.

A *run* is any function that computes the models of a generalized FedAvg (Wang & Ji 2022, Algorithm 1):

    run(problem, weights, rounds, step_size, local_steps, multiplier, interval, seed) -> models (T + 1, d)

`problem` and `weights` come by position, the others by name, so that `**_` may stand for those that are not used:

- `problem`: `problem.gradient(n, x)` is $\nabla F_n(x)$ as an array (d,); `problem.noise(t, n, i)`, (d,), is what the
  gradient noise of client n adds to it in local step i of round t (zero, unless the cases have noise);
  `problem.x0` (d,), `problem.clients` and `problem.dimension` are the rest. See `PlainProblem`.
- `weights`: $q_t^n$, (T, N), at least 0; each row sums to one. They are not to be changed in place.
- `rounds` T, `step_size` $\gamma$, `local_steps` I, `multiplier` $\eta$, `interval` P; `seed` is for whatever
  randomness a run has of its own. A run of another algorithm is also given what is its own, such as `cutoff`.

The models are $x_0,\dots,x_T$; at an interval's end the amplified one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.empirical.invariants.scope import Feature, Need, accepted_numbers
from fedbounds.empirical.problems import CosineQuadratic, Quadratic

Run = Callable[..., ArrayLike]


@dataclass(frozen=True, eq=False)
class PlainProblem:
    r"""Local gradients as plain callables on NumPy arrays.

    $$F_n(x) = \tfrac12 (x - c_n)^\top A_n (x - c_n) + b_n^\top x + \kappa\sum_j(1 - \cos w_j^\top(x - o)),$$

    where the $w_j$ are the rows of an orthogonal matrix: the quadratics and the rippled bowls of
    `fedbounds.empirical.problems`, in any coordinates.

    Args:
        hessians: $A_n$, (N, d, d), unit f/x^2.
        centers: $c_n$, (N, d), unit x.
        slopes: $b_n$, (N, d), unit f/x.
        start: the initial model, (d,).
        ripple: $\kappa$.
        frame: the $w_j$, (d, d).
        origin: $o$, (d,).
        noises: the gradient noise of each round, client and local step, (T, N, I, d); none if there is none.

    Example:
        >>> from fedbounds.empirical.problems import toy_example
        >>> problem = PlainProblem.from_problem(toy_example())
        >>> problem.clients, problem.gradient(1, problem.x0), problem.noise(0, 1, 0)
        (3, array([0., 2.]), array([0., 0.]))

    Source: Wang & Ji 2022, eq. (1); the family is ours.
    """

    hessians: np.ndarray
    centers: np.ndarray
    slopes: np.ndarray
    start: np.ndarray
    ripple: float
    frame: np.ndarray
    origin: np.ndarray
    noises: np.ndarray | None = None

    @classmethod
    def from_problem(cls, problem: Quadratic | CosineQuadratic, noises: np.ndarray | None = None) -> PlainProblem:
        """The same clients as plain callables; the noise is given, not drawn."""
        N, d = problem.clients, problem.dimension
        zeros, start = np.zeros((N, d)), problem.x0.numpy()
        if isinstance(problem, Quadratic):
            hessians = np.stack([problem.hessian(n).numpy() for n in range(N)])
            return cls(hessians, problem.centers.numpy(), zeros, start, 0.0, np.eye(d), np.zeros(d), noises)
        hessians = np.tile(problem.curvature * np.eye(d), (N, 1, 1))
        return cls(hessians, zeros, problem.slopes.numpy(), start, problem.ripple, np.eye(d), np.zeros(d), noises)

    @property
    def clients(self) -> int:
        """N."""
        return len(self.centers)

    @property
    def dimension(self) -> int:
        """d."""
        return len(self.start)

    @property
    def x0(self) -> np.ndarray:
        """The initial model (d,), a fresh copy each time."""
        return self.start.copy()

    @property
    def quadratic(self) -> bool:
        """Whether all $F_n$ are plain quadratics with centers."""
        return self.ripple == 0 and not self.slopes.any()

    def gradient(self, n: int, x: ArrayLike) -> np.ndarray:
        r"""$\nabla F_n(x)$, (d,), unit f/x; x may be an array, a list or a tensor."""
        x = np.asarray(x, dtype=float)
        gradient = self.hessians[n] @ (x - self.centers[n]) + self.slopes[n]
        if self.ripple:
            gradient += self.ripple * (self.frame.T @ np.sin(self.frame @ (x - self.origin)))
        return gradient

    def noise(self, t: int, n: int, i: int) -> np.ndarray:
        """What is added to the gradient of client n in local step i of round t, (d,), unit f/x."""
        return 0.0 * self.start if self.noises is None else self.noises[t, n, i].copy()

    def __str__(self) -> str:
        form = "F_n(x) = (x - c_n)^T A_n (x - c_n) / 2"
        shown = {"A": self.hessians, "c": self.centers}
        if not self.quadratic:
            form += f" + b_n^T x + {digits(self.ripple)} sum_j (1 - cos w_j^T (x - o))"
            shown |= {"b": self.slopes, "W": self.frame, "o": self.origin}
        shown |= {"x0": self.start} | ({} if self.noises is None else {"noise": self.noises})
        values = [f"{name} = {digits(array)}" for name, array in shown.items()]
        return "; ".join([form, f"N = {self.clients}, d = {self.dimension}", *values])


@dataclass(frozen=True, eq=False)
class Case:
    r"""One run, before it is run: the problem, the weights and the numbers of Algorithm 1.

    Args:
        problem: the clients.
        weights: $q_t^n$, (T, N).
        step_size: $\gamma$, unit x^2/f.
        local_steps: I.
        multiplier: $\eta$.
        interval: P, in rounds.
        seed: for the run's own randomness.
        own: numbers of the algorithm alone, such as FedAU's cut-off, by name; a run that takes them is given them.

    Example:
        >>> from fedbounds.empirical.problems import toy_example
        >>> case = Case(PlainProblem.from_problem(toy_example()), np.eye(3), step_size=0.5, local_steps=1)
        >>> case.step(0, case.problem.x0)  # client 0 is at (-1, 0), and goes half the way
        array([-1., -1.])

    Source: Wang & Ji 2022, Algorithm 1.
    """

    problem: PlainProblem
    weights: np.ndarray
    step_size: float
    local_steps: int
    multiplier: float = 1.0
    interval: int = 1
    seed: int = 0
    own: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.weights)

    def models(self, run: Run) -> np.ndarray:
        """The models that a run returns for this case: $x_0, \\dots, x_T$, (T + 1, d).

        Raises:
            FedboundsError: the run returns something else, or numbers that are not finite.
            ChangedArgument: the run changes the weights that it is given.
        """
        numbers = {name: getattr(self, name) for name in ("step_size", "local_steps", "multiplier", "interval", "seed")}
        numbers |= accepted_numbers(run, self.own)
        given = self.weights.copy()
        returned = run(self.problem, given, rounds=self.rounds, **numbers)
        check_unchanged("run", {"weights": given}, vars(self))
        wanted = (self.rounds + 1, self.problem.dimension)
        return as_numbers(
            returned,
            wanted,
            f"the run returned {{}}; expected models of shape {wanted}",
            f"the run returned shape {{}}; expected the models x_0..x_T, {wanted}",
            "the run returned x_{t} = {row}, which is not finite",
        )

    def update(self, t: int, n: int, x: np.ndarray) -> np.ndarray:
        r"""$\Delta_t^n$: I local steps of client n from x, minus x; (d,)."""
        y = x
        for i in range(self.local_steps):
            y = y - self.step_size * (self.problem.gradient(n, y) + self.problem.noise(t, n, i))
        return y - x

    def step(self, t: int, x: np.ndarray) -> np.ndarray:
        r"""$\sum_n q_t^n\Delta_t^n$ from x, (d,)."""
        return self.weights[t] @ np.stack([self.update(t, n, x) for n in range(self.problem.clients)])

    @property
    def sums_to_one(self) -> np.ndarray:
        """Whether the weights of each round sum to one, booleans (T,)."""
        return np.isclose(self.weights.sum(axis=1), 1, rtol=0, atol=1e-12)

    def ends(self, t: int) -> bool:
        """Whether round t is the last of its interval."""
        return (t + 1) % self.interval == 0

    def restart(self, t0: int, x: np.ndarray) -> Case:
        """The rounds from t0 on, beginning at x."""
        noises = self.problem.noises
        problem = replace(self.problem, start=x, noises=None if noises is None else noises[t0:])
        return replace(self, problem=problem, weights=self.weights[t0:])

    def rename_clients(self, who: np.ndarray, weights: np.ndarray) -> Case:
        """The case in which client n is client who[n] of this one, with weights of its own (T, len(who))."""
        old = self.problem
        noises = None if old.noises is None else old.noises[:, who]
        clients = {"hessians": old.hessians[who], "centers": old.centers[who], "slopes": old.slopes[who]}
        own = {name: value[who] if np.ndim(value) else value for name, value in self.own.items()}
        return replace(self, problem=replace(old, noises=noises, **clients), weights=weights, own=own)

    def translate(self, shift: np.ndarray) -> Case:
        """The case in coordinates x + shift."""
        old = self.problem  # b_n^T (x - shift) has the gradient b_n, wherever it is
        moved = {"centers": old.centers + shift, "start": old.start + shift, "origin": old.origin + shift}
        return replace(self, problem=replace(old, **moved))

    def rotate(self, turn: np.ndarray) -> Case:
        """The case in coordinates turn @ x, for an orthogonal matrix."""
        old = self.problem
        hessians = turn @ old.hessians @ turn.T
        turned = {
            "hessians": (hessians + hessians.transpose(0, 2, 1)) / 2,
            "centers": old.centers @ turn.T,
            "slopes": old.slopes @ turn.T,
            "start": turn @ old.start,
            "frame": old.frame @ turn.T,
            "origin": turn @ old.origin,
            "noises": None if old.noises is None else old.noises @ turn.T,
        }
        return replace(self, problem=replace(old, **turned))

    def scale(self, a: float) -> Case:
        """The case with gradients a times as large, also of noise and proximal terms, and the step size over a."""
        old = self.problem
        noises = None if old.noises is None else a * old.noises
        steeper = {"hessians": a * old.hessians, "slopes": a * old.slopes, "ripple": a * old.ripple}
        own = {name: a * value if name == "proximal_mu" else value for name, value in self.own.items()}
        return replace(self, problem=replace(old, noises=noises, **steeper), step_size=self.step_size / a, own=own)

    def __str__(self) -> str:
        own = "".join(f", {name} {digits(value)}" for name, value in self.own.items())
        numbers = f"T = {self.rounds}, I = {self.local_steps}, P = {self.interval}, step size {digits(self.step_size)}"
        return "\n".join(
            [
                f"problem: {self.problem}",
                f"weights: {digits(self.weights)}",
                f"run:     {numbers}, multiplier {digits(self.multiplier)}, seed {self.seed}{own}",
            ]
        )


# Optional features of implementations.
FEATURES = (
    Feature("multiplier", "no multiplier (eta = 1)", lambda case: replace(case, multiplier=1.0)),
    Feature("interval", "no interval (P = 1)", lambda case: replace(case, interval=1)),
    Feature("local_steps", "one local step (I = 1)", lambda case: replace(case, local_steps=1)),
)
AMPLIFIED = Need("a multiplier other than 1", lambda case: case.multiplier != 1)
LONG_INTERVAL = Need("an interval of more than one round", lambda case: case.interval > 1)
ABSENT = Need("a client of weight zero", lambda case: not case.weights.all())
UNEQUAL = Need(
    "unequal weights in a round", lambda case: any(len(np.unique(row[row != 0])) > 1 for row in case.weights)
)
ANY_SUM = Need(
    "weights that do not sum to one",
    lambda case: not case.sums_to_one.all(),
    "they are outside the theory, and cases(unit_sum=False) asks for them",
)


class ChangedArgument(FedboundsError):
    """A function changed an argument that it was given."""


def check_unchanged(who: str, given: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Refuse a function that changed its arguments."""
    for name, value in given.items():
        if not np.array_equal(value, expected[name]):
            raise ChangedArgument(f"the {who} changed its argument `{name}` in place; copy it before changing it")


def as_numbers(returned: ArrayLike, wanted: tuple[int, ...], none: str, misshapen: str, infinite: str) -> np.ndarray:
    """A returned value as finite numbers of the expected shape."""
    try:
        raw = as_array(returned)
        exact = raw.dtype.kind == "O" and all(isinstance(value, Real) for value in raw.flat)  # fractions, say
        if raw.dtype.kind not in "iuf" and not exact:
            raise TypeError
        numbers = raw.astype(float)
    except (TypeError, ValueError):
        raise FedboundsError(none.format(quote(returned))) from None
    if numbers.shape != wanted:
        raise FedboundsError(misshapen.format(numbers.shape))
    if not np.isfinite(numbers).all():
        t = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
        raise FedboundsError(infinite.format(t=t, row=numbers[t].tolist()))
    return numbers


def as_array(returned: Any) -> np.ndarray:
    """An array from arrays, lists or tensors, with or without gradients."""
    if isinstance(returned, list | tuple):
        return np.asarray([as_array(each) if hasattr(each, "detach") else each for each in returned])
    return np.asarray(returned.detach().cpu() if hasattr(returned, "detach") else returned)


def digits(values: ArrayLike) -> str:
    """Numbers on one line with all digits, so that a printed case can be run again."""
    return str(np.asarray(values, dtype=float).tolist()).replace(".0,", ",").replace(".0]", "]").removesuffix(".0")
