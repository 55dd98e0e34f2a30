"""The largest eigenvalue of a Hessian, from its products with vectors alone: Lanczos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.inputs.checks import check_count
from fedbounds.empirical.problems import Problem

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
