"""Random rounds of Fed-Norm-SGDA."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from fedbounds.empirical.papers.fed_norm_sgda.instances.families import BoundedInstances, CoupledInstances, KinkedGames
from fedbounds.empirical.papers.fed_norm_sgda.instances.problems import REGIMES

Array = np.ndarray


class PopulationShape(NamedTuple):
    """What all instances of one population share."""

    clients: int  # n
    sampled: int  # P
    steps: int  # the most local steps of a client
    in_x: int  # in_x, in_y: dimensions
    in_y: int


def draw_coefficients(rng: np.random.Generator, tau: Array, steps: int) -> Array:
    """SGDA, momentum or variable step sizes, one kind for all clients of an instance, (B, n, steps + 1, steps)."""
    B = len(tau)
    k, j = np.arange(steps + 1)[:, None], np.arange(steps)
    momentum = rng.uniform(0, 0.95, (B, 1, 1))
    kinds = np.stack([
        np.ones((B, steps + 1, steps)),
        (1 - momentum ** np.maximum(k - j, 0)) / (1 - momentum),
        np.repeat(10.0 ** rng.uniform(-1.5, 1, (B, 1, steps)), steps + 1, axis=1),
    ])  # fmt: skip
    chosen = kinds[rng.choice(3, size=B, p=(0.5, 0.25, 0.25)), np.arange(B)]
    some = (j < k) & (k <= tau[:, :, None, None])
    return np.where(some, chosen[:, None], 0.0)


def unit(rng: np.random.Generator, *shape: int) -> Array:
    """Random unit vectors."""
    v = rng.normal(size=shape)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def draw_steps(rng: np.random.Generator, B: int, tau: Array) -> dict[str, Array]:
    """Caps of the step sizes, and the shares taken of them, half the time all."""
    regime = rng.choice(len(REGIMES), size=B)
    capped = np.where(rng.random((B, 4)) < 0.5, 1.0, 10.0 ** rng.uniform(-2, 0, (B, 4)))
    without = 10.0 ** rng.uniform(-1.5, 0.7, (B, 4))
    nu = np.minimum(2.0, tau.max(axis=1))
    return {
        "regime": regime,
        "price": np.where(rng.random(B) < 0.5, nu, 1.0),
        "shares": np.where(regime[:, None] == 0, without, capped),
    }


def draw_shared(
    rng: np.random.Generator, B: int, shape: PopulationShape, sizes: Array, even: Array
) -> dict[str, Array]:
    """What every family draws alike."""
    n, T, dx, dy = shape.clients, shape.steps, shape.in_x, shape.in_y

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    w = np.where(pick(0, 0, 1)[:, None] > 0, np.full((B, n), 1 / n), rng.dirichlet(np.full(n, 1.0), size=B))
    tau = np.where(pick(0, 1)[:, None] > 0, T, rng.integers(1, T + 1, (B, n)))
    less = np.where(pick(0, 1)[:, None] > 0, 1.0, rng.uniform(0, 1, (B, n)) * (rng.random((B, n)) < 0.7))
    less[np.arange(B), rng.integers(0, n, B)] = 1.0
    return {
        "scale": np.where(even[:, None], 1.0, rng.uniform(0.2, 2, (B, n))),
        "slope_x": sizes[:, None, None] * rng.normal(size=(B, n, dx)),
        "slope_y": sizes[:, None, None] * rng.normal(size=(B, n, dy)),
        "w": w, "p": rng.dirichlet(np.full(n, 1.0), size=B), "tau": tau, "coefficients": draw_coefficients(rng, tau, T),
        "sigma": pick(0.0, 0.1, 1.0, 10.0)[:, None] * less, "beta": pick(0.0, 0.0, 0.5, 2.0)[:, None] * less,
        "noise_x": unit(rng, B, n, dx), "noise_y": unit(rng, B, n, dy), "theta": pick(0.1, 1.0),
        **draw_steps(rng, B, tau),
    }  # fmt: skip


def draw_coupled(rng: np.random.Generator, B: int, shape: PopulationShape) -> CoupledInstances:
    """Quadratics, some with ripples, some without coupling; some start where the envelope has no gradient."""
    dx, dy = shape.in_x, shape.in_y

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    even = pick(0, 1) > 0
    shared = draw_shared(rng, B, shape, pick(0.0, 0.0, 0.1, 1.0), even)
    spread = rng.normal(size=(B, dx, dx))
    flat = pick(1, 1, -1)[:, None, None] * np.eye(dx)
    A = pick(0.1, 1.0, 3.0)[:, None, None] * np.where(
        pick(0, 1)[:, None, None] > 0, (spread + spread.swapaxes(1, 2)) / 2, flat
    )
    down = pick(0.1, 1.0, 3.0)[:, None] * np.where(pick(0, 1)[:, None] > 0, 1.0, rng.uniform(0.1, 1, (B, dy)))
    z = CoupledInstances(
        x=pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dx)),
        y=np.zeros((B, dy)),
        snapshot=np.zeros((B, dx)),
        **shared,
        sampled=shape.sampled,
        curvature=A,
        ripple=pick(0.0, 0.0, 1.0, 3.0),
        frequency=pick(1.0, 5.0, 20.0),
        coupling=pick(0.0, 0.1, 1.0, 3.0)[:, None, None] * rng.normal(size=(B, dx, dy)),
        down=down,
    )  # fmt: skip
    z = replace(
        z,
        y=z.maximizer(z.x) + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dy)),
        snapshot=z.x + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, dx)),
    )
    flat_here = z.mean_gradients(z.x, z.maximizer(z.x))[0][:, None] * (even & (pick(0, 1) > 0))[:, None, None]
    return replace(z, slope_x=z.slope_x - flat_here)


def draw_kinked(rng: np.random.Generator, B: int, shape: PopulationShape) -> KinkedGames:
    """The same with kinks about the round's start instead of ripples, as far away as a step or ten go."""
    z = draw_coupled(rng, B, shape)
    near = 10.0 ** rng.uniform(-3, 0, (B, 1, 1)) * np.maximum(z.sigma.max(axis=1), 0.1)[:, None, None]
    knots = np.sort(z.x[:, :, None] + near * rng.normal(size=(B, shape.in_x, 2)), axis=2)
    pieces = rng.choice([0.3, 1.0, 3.0], size=(B, 1, 1)) * rng.choice([-1.0, 0.0, 1.0], size=(B, shape.in_x, 3))
    given = {f.name: getattr(z, f.name) for f in fields(z)} | {"ripple": 0 * z.ripple, "curvature": 0.1 * z.curvature}
    return KinkedGames(**given, knots=knots, pieces=pieces)


def draw_bounded(rng: np.random.Generator, B: int, shape: PopulationShape) -> BoundedInstances:
    """Functions that are Lipschitz in x, concave in y or only one-point concave."""
    d = shape.in_x

    def pick(*values: float) -> Array:
        return rng.choice(values, size=B)

    concave, even = pick(0, 1, 1) > 0, pick(0, 1) > 0
    shared = draw_shared(rng, B, shape, pick(0.0, 0.05, 0.3), even)
    height = pick(0.3, 1.0, 3.0)
    lean = np.abs((shared["w"][:, :, None] * shared["slope_y"]).sum(axis=1)).max(axis=1)
    room = 0.9 * height * (shared["w"] * shared["scale"]).sum(axis=1)
    fitted = shared["slope_y"] * np.minimum(1, room / np.maximum(lean, 1e-300))[:, None, None]
    shared["slope_y"] = fitted * (concave & (pick(0, 1) > 0))[:, None, None]
    z = BoundedInstances(
        x=rng.uniform(-3, 3, (B, d)),
        y=np.zeros((B, d)),
        snapshot=np.zeros((B, d)),
        **shared,
        sampled=shape.sampled,
        ripple=pick(0.0, 0.5, 1.0),
        height=height,
        bend=pick(0.0, 0.3, 1.0),
        concave=concave,
    )
    return replace(
        z,
        y=z.maximizer(z.x) + pick(0.0, 0.3, 2.0)[:, None] * rng.normal(size=(B, d)),
        snapshot=z.x + pick(0.0, 0.1, 1.0)[:, None] * rng.normal(size=(B, d)),
    )


def draw_far(rng: np.random.Generator, B: int, shape: PopulationShape) -> BoundedInstances:
    """One-point concave functions, from where they curve upwards: there ascent adds to the noise before it."""
    z = draw_bounded(rng, B, shape)
    z = replace(z, concave=np.zeros(B, dtype=bool), slope_y=0 * z.slope_y, sigma=np.maximum(z.sigma, 0.1))
    return replace(z, y=z.maximizer(z.x) + rng.uniform(2, 6, z.y.shape) * rng.choice([-1, 1], size=z.y.shape))
