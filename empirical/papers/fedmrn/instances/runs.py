"""Both theorems on quadratics with exact moments, for operators whose relative error is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.empirical.instances.readable import against_form
from fedbounds.empirical.instances.sides import Sides, Trial
from fedbounds.empirical.moments.operators import Masking, masked_moments, norm_scaled_sign, sparsifier
from fedbounds.empirical.problems import Quadratic

RUNS = 40
OPERATORS: tuple[tuple[Masking, Callable[[int], float]], ...] = (  # and the square of q in so many dimensions
    (Masking("identity", lambda squares, _: 0 * squares), lambda d: 0.0),
    (sparsifier(0.5), lambda d: 1.0),
    (norm_scaled_sign(), lambda d: d - 1.0),
)
MET = (
    *("unbiased-noise", "bounded-gradients", "relative-error", "uniform-sampling", "independent-masks"),
    *("independent-clients", "martingale-noise", "smooth", "bounded-below", "strongly-convex", "quadratic-upper-bound"),
)


@dataclass(frozen=True, eq=False)
class Runs:
    """B runs: what was measured, the letters, each (B, 1), and the assumptions that they meet."""

    left: np.ndarray
    values: Mapping[str, np.ndarray]
    met: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.left)

    def describe(self, index: int) -> dict[str, Any]:
        """The letters of one run."""
        return {name: float(value[index, 0]) for name, value in self.values.items()}


def problem_of(rng: np.random.Generator) -> Quadratic:
    """A quadratic of up to four clients and three parameters, with noise or without; half have one Hessian."""
    N, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    roots = rng.normal(size=(N, d, d))
    own = roots @ np.swapaxes(roots, 1, 2) / d + 0.3 * np.eye(d)
    hessians = np.tile(np.eye(d), (N, 1, 1)) if rng.random() < 0.5 else own
    noise = float(rng.choice([0.0, 0.5, 2.0]))
    return Quadratic(hessians=hessians, centers=rng.normal(size=(N, d)), noise=noise, x0=rng.normal(size=d))


def letters_of(problem: Quadratic) -> dict[str, float]:
    """What does not depend on the run."""
    A = np.stack([problem.hessian(k).numpy() for k in range(problem.clients)])
    c, curvatures = problem.centers.numpy(), np.linalg.eigvalsh(A)
    ws = np.linalg.solve(A.mean(axis=0), np.einsum("kij,kj->i", A, c) / len(c))
    away, start = ws - c, problem.x0.numpy() - ws
    return {
        "L": curvatures.max(),
        "mu": curvatures.min(),
        "sigma": problem.noise * problem.dimension**0.5,
        "Gamma": np.einsum("ki,kij,kj->", away, A, away) / (2 * len(c)),
        "Delta1": start @ start,
        "F": start @ A.mean(axis=0) @ start / 2,
        "N": len(c),
        "d": problem.dimension,
    }


@lru_cache(maxsize=8)
def runs(convex: bool, any_step: bool, progressive: bool) -> Runs:
    """Runs with the steps of Theorem 1, or with one constant step."""
    rng, rows, left = np.random.default_rng(211), list[dict[str, float]](), list[float]()
    for _ in range(RUNS):
        problem, (masking, square) = problem_of(rng), OPERATORS[rng.integers(len(OPERATORS))]
        c, S = letters_of(problem), int(rng.integers(1, 5))
        K, T = int(rng.integers(1, problem.clients + 1)), S * int(rng.integers(1, 30))
        eta = rng.uniform(0.05, 1) / c["L"] if any_step else 1 / (c["L"] * T**0.5)
        gamma = max(8 * c["L"] / c["mu"], S) - 1

        def step(t: int, mu: float = c["mu"], gamma: float = gamma, eta: float = eta) -> float:
            return 2 / (mu * (gamma + t)) if convex else eta

        first = 1 if convex else 0
        run = masked_moments(
            problem, masking, step, iterations=T, local_steps=S, cohort=K, first=first, progressive=progressive
        )
        left.append(float(run.objective_gap[-1] if convex else run.gradient_norm_squared[:-1].mean()))
        q = square(problem.dimension) ** 0.5
        rows.append(c | {"G": run.gradient_bound, "q": q, "K": K, "S": S, "T": T + first, "eta": eta})
    values = {name: np.array([[row[name]] for row in rows], dtype=float) for name in rows[0]}
    met = (*MET, "progressive-masking") if progressive else MET
    return Runs(np.array(left)[:, None], values, met)


def sides(claim: Claim, z: Runs) -> Sides:
    """The exact left side against the form, term by term."""
    covered = np.ones((len(z), 1), dtype=bool)
    met = dict.fromkeys(z.met, True)
    return against_form(claim, z.left, z.values, met, covered, (0.0, 1e-11), frozenset(), z.describe)


def trial(claim: Claim) -> Trial | None:
    """Both theorems' forms that assume nothing but what these runs meet."""
    subject = claim.subject
    if not isinstance(subject, ResultForm) or subject.form.order_only:
        return None
    name = subject.result.key.partition("/")[2]
    progressive = any(a.name == "progressive-masking" for a in claim.assumptions)
    if name not in ("theorem-1", "theorem-2") or not {a.name for a in claim.assumptions} <= {
        *MET,
        "progressive-masking",
    }:
        return None
    any_step = not subject.form.prescribes

    def draw(claim: Claim, cells: int) -> Iterable[Runs]:
        return (runs(name == "theorem-1", any_step, progressive),)

    return Trial(draw, sides)
