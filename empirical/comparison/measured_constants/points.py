r"""Exact quantities at a point: the clients' gradients and their products, and the local models of a round.

All divergences of the papers at a point x, for whatever weights, are quadratic forms in the products
$\nabla F_n(x)^\top\nabla F_m(x)$.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.streams import GeneratorPool, Streams
from fedbounds.empirical.simulation.engines.local_steps import draw_limited_blocks, local_updates

ROUNDING = 16  # units of rounding, of the longer of two points, up to which they are the same


def client_gradients(problem: Problem, x: Tensor, clients: np.ndarray | None = None) -> Tensor:
    r"""$\nabla F_n(x)$ over all data of a client: (d,) -> (clients, d); of all clients by default."""
    names = torch.arange(problem.clients) if clients is None else torch.from_numpy(np.asarray(clients))
    names = names.to(problem.device)
    return problem.gradient(x.expand(1, len(names), -1), names[None])[0]


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
