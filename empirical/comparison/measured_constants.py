r"""The constants of the theory where no formula gives them: measured at the models that a run recorded.

All divergences of the papers at a point x, for whatever weights, are quadratic forms in the products
$\nabla F_n(x)^\top\nabla F_m(x)$. The curvature is the largest eigenvalue of a Hessian, from its products with vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import GeneratorPool, Streams
from fedbounds.empirical.simulation.engines.local_steps import draw_limited_blocks, local_updates
from fedbounds.empirical.simulation.trace import Trace

SIMULATED_ROUND = "simulated_round"  # an array of a trace without its empty rounds

ROUNDING = 16  # units of rounding, of the longer of two points, up to which they are the same


def products(gradients: Tensor) -> np.ndarray:
    r"""The products of vectors with each other, in float64: (N, d) -> (N, N)."""
    wide = gradients.double()
    return (wide @ wide.T).cpu().numpy()


def largest_secant(here: Tensor, there: Tensor, gradients_here: Tensor, gradients_there: Tensor) -> float:
    r"""The largest $\|\nabla F(u)-\nabla F(v)\|/\|u-v\|$ over pairs of points: a lower estimate of the smoothness."""
    rise = torch.linalg.vector_norm((gradients_here - gradients_there).double(), dim=-1)
    run = torch.linalg.vector_norm((here - there).double(), dim=-1)
    size = torch.maximum(*(torch.linalg.vector_norm(end.double(), dim=-1) for end in (here, there)))
    apart = run > ROUNDING * torch.finfo(here.dtype).eps * size
    return float((rise[apart] / run[apart]).max()) if bool(apart.any()) else 0.0


def local_models(problem: Problem, local: LocalSGD, x: Tensor, clients: np.ndarray, streams: Streams, t: int) -> Tensor:
    r"""The local models $\mathbf y_{t,i}^n$, $i<I$, of a round that was run, from its own random numbers."""
    seen: list[Tensor] = []
    names = torch.from_numpy(np.asarray(clients)).to(problem.device)
    start, own = x.expand(1, len(names), -1).clone(), [streams] * len(names)
    drawn = draw_limited_blocks(problem, local, np.asarray(clients), own, t, GeneratorPool(), (1, len(names)))
    local_updates(problem, local, start, names[None], drawn, watch=seen.append)
    return torch.stack(seen)[:, 0]


Product = Callable[[Tensor], Tensor]


class Curvature(NamedTuple):
    """An eigenvalue of a symmetric matrix H of largest size, from below."""

    value: float  # $|\theta|$ of the Ritz value $\theta$ of largest size; never above $\|H\|$
    residual: float  # $\|Hv-\theta v\|$ for its unit vector v: some eigenvalue of H is within it of $\theta$
    products: int  # how many products with H it took


def largest_curvature(product: Product, start: Tensor, steps: int = 20, block: slice | None = None) -> Curvature:
    r"""Lanczos with full reorthogonalization, for at most so many steps.

    Ritz values are eigenvalues of $Q^\top HQ$ with orthonormal Q, so they lie within the spectrum of H: whatever the
    number of steps, the value is a lower estimate of $\|H\|$, and exact once the residual is 0.

    Source: Golub & Van Loan, Matrix Computations, Section 10.1.
    """
    inside = slice(None) if block is None else block
    steps = min(check_count("steps", steps), len(start[inside]))

    def within(v: Tensor) -> Tensor:
        whole = torch.zeros_like(start)
        whole[inside] = v.to(start.dtype)
        return product(whole)[inside].double()

    v = start[inside].double()
    basis, diagonal, beside = [v / torch.linalg.vector_norm(v)], [], []
    for step in range(steps):
        w = within(basis[-1])
        diagonal.append(float(w @ basis[-1]))
        known = torch.stack(basis)
        for _ in range(2):  # twice is enough
            w = w - known.T @ (known @ w)
        beside.append(float(torch.linalg.vector_norm(w)))
        scale = max(abs(d) for d in diagonal) + max(beside)
        if beside[-1] <= 1e-12 * scale or step + 1 == steps:
            break
        basis.append(w / beside[-1])
    off = beside[: len(diagonal) - 1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    at = int(np.abs(values).argmax())
    return Curvature(float(abs(values[at])), float(beside[-1] * abs(vectors[-1, at])), len(diagonal))


def second_derivatives(function: Callable[[Tensor], Tensor], x: Tensor) -> Product:
    r"""$v\mapsto\nabla^2F(x)\,v$ of a function that autograd differentiates twice, at one point (d,)."""
    place = x.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(function(place), place, create_graph=True)
    return lambda v: torch.autograd.grad(slope, place, v, retain_graph=True)[0]


def client_curvatures(
    problem: Problem, x: Tensor, steps: int = 20, blocks: Sequence[slice] = (slice(None),), seed: int = 0
) -> np.ndarray:
    r"""The largest $|\lambda(\nabla^2F_n(x))|$ of every client, from below, in each of some blocks of coordinates."""
    rng = np.random.default_rng(seed)
    start = torch.from_numpy(rng.standard_normal(len(x))).to(x)
    found = np.empty((problem.clients, len(blocks)))
    for n in range(problem.clients):
        product = second_derivatives(lambda z, n=n: problem.local_loss(z, n), x)
        found[n] = [largest_curvature(product, start, steps, block).value for block in blocks]
    return found


NOISE_POINTS = 5  # models per seed at which the gradient of every single sample is computed
LOCAL_ROUNDS = 4  # rounds per seed whose local models are computed again


class Visit(NamedTuple):
    """A recorded model."""

    seed: int  # its row
    round: int  # when
    model: Tensor  # (d,)
    drawn: int  # the round of its random numbers: also counts rounds without participants that a comparison drops


def visits(run: Trace, problem: Problem, rounds: np.ndarray, seed: int | None = None) -> Iterator[Visit]:
    """The recorded models of some rounds, seed by seed; of all rows by default."""
    for row in range(len(run.arrays["seed"])) if seed is None else (seed,):
        for column in np.flatnonzero(np.isin(run.arrays["round"], rounds)).tolist():
            model, t = torch.from_numpy(run.arrays["model"][row, column]), int(run.arrays["round"][column])
            if not bool(torch.isfinite(model).all()):
                raise FedboundsError(f"the run diverges: seed {run.arrays['seed'][row]} has no finite model at {t}")
            drawn = int(run.arrays.get(SIMULATED_ROUND, run.arrays["round"])[column])
            yield Visit(row, t, model.to(problem.device, problem.dtype), drawn)


def recorded_products(run: Trace, seed: int, t: int) -> np.ndarray | None:
    """The products of the clients' gradients at a recorded round, (N, N), of a row; None if they were not recorded."""
    if "gradient_products" not in run.arrays:
        return None
    return run.arrays["gradient_products"][seed, np.searchsorted(run.arrays["round"], t)]


def evenly_spaced(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the values, evenly spaced, with the first and the last."""
    return values[np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))]


@lru_cache(maxsize=8)
def largest_noise(run: Trace, problem: Problem) -> Constant | NoConstant:
    """The root of the largest variance of a client's stochastic gradient, at some recorded models.

    The variance is exact at a point; the proofs need it at all local models, so the largest value is a lower estimate.
    """
    rounds = evenly_spaced(run.arrays["round"], NOISE_POINTS)
    try:
        largest = max(float(problem.gradient_variance(at.model).max()) for at in visits(run, problem, rounds))
    except FedboundsError as error:
        return NoConstant(str(error))
    note = (
        f"lower estimate: exact variance of a minibatch gradient, largest over clients at {len(rounds)} models a seed"
    )
    return Constant(largest**0.5, "estimated", note)


def constant(value: float, complete: bool, what: str, where: str) -> Constant:
    """A supremum along a run: `trajectory` where nothing was left out, else `estimated`, from below."""
    if complete:
        return Constant(value, "trajectory", f"{what} {where}")
    return Constant(value, "estimated", f"lower estimate: {what} {where}")
