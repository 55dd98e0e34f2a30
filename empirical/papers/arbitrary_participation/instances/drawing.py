"""Random instances of generalized FedAvg: many shapes, patterns and step sizes, at the caps and inside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import FedAvgInstances

EACH = 40  # instances of one shape


def patterns(rng: np.random.Generator, B: int, T: int, N: int, P: int) -> np.ndarray:
    """Weights (B, T, N): random, one client, everyone, subsets, fixed, in turn (regular if N divides P), halves."""
    kinds = rng.integers(7, size=B)
    subsets = np.argsort(rng.random((B, T, N)), axis=2) < rng.integers(1, N + 1, (B, 1, 1))
    halves = np.arange(N) < rng.integers(1, N + 1, (B, 1))
    both = np.stack([halves, np.where((~halves).any(axis=1, keepdims=True), ~halves, halves)], axis=1)
    first = rng.dirichlet(np.full(N, 0.4), size=B)
    in_turn = np.stack([np.roll(first, t, axis=1) for t in range(T)], axis=1)
    choices = [
        rng.dirichlet(np.full(N, 0.5), size=(B, T)),
        np.eye(N)[rng.integers(N, size=(B, T))],
        np.ones((B, T, N)),
        subsets * 1.0,
        np.repeat(first[:, None], T, axis=1),
        in_turn,
        both[:, np.arange(T) % 2] * 1.0,
    ]
    q = np.select([(kinds == k)[:, None, None] for k in range(len(choices))], choices)
    return q / q.sum(axis=2, keepdims=True)


def draw(rng: np.random.Generator, B: int, shape: tuple[int, ...], *, rippled: bool, wide: bool) -> FedAvgInstances:
    """B random instances of one shape (N, d, I, P, T)."""
    N, d, I, P, T = shape

    def sizes(*values: float) -> np.ndarray:
        return rng.choice(values, size=B)

    scale = sizes(0.05, 1.0, 20.0)[:, None]
    spectrum = rng.uniform(0, 1, (B, d)) ** sizes(1.0, 8.0)[:, None]
    spectrum[:, 0] = 1.0
    ripple = rng.uniform(0, 1, (B, d)) * rippled
    curvature = scale * np.where(rippled, rng.uniform(0, 1, (B, d)) * sizes(0, 1)[:, None], spectrum)
    slopes = sizes(0.0, 0.1, 1.0, 10.0)[:, None, None] * rng.normal(size=(B, N, d))
    spreads = np.where(rng.random((B, N)) < 0.3, rng.uniform(0, 1, (B, N)), 1.0)
    spreads[:, 0] = 1.0
    z = FedAvgInstances(
        curvature=curvature,
        ripple=scale * ripple,
        slopes=slopes - slopes.mean(axis=1, keepdims=True),
        start=sizes(0.01, 1.0, 10.0)[:, None] * rng.normal(size=(B, d)),
        noise=0.0 * curvature if rippled else sizes(0.0, 0.1, 1.0, 10.0)[:, None] * rng.uniform(0, 1, (B, d)),
        correlation=spreads[:, :, None] * np.eye(N),
        weights=patterns(rng, B, T, N, P),
        gamma=np.ones(B),
        eta=np.ones(B),
        local_steps=I,
        interval=P,
        reach=1 if wide else P,
    )
    return z.with_step_shares(sizes(1.0, 1.0, 0.3, 0.03, 1e-4), sizes(1.0, 1.0, 0.3, 0.03))


def shapes(rng: np.random.Generator, cells: int) -> Iterator[tuple[int, ...]]:
    """Random shapes (N, d, I, P, T), each with one complete window at least, mostly with two."""
    for cell in range(cells):
        P = int(rng.integers(1, 8))
        T = P * int(rng.integers(1 if cell % 8 == 7 else 2, 5)) + int(rng.integers(P))
        yield int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 7)), P, T


@lru_cache(maxsize=4)
def pool(cells: int = 45, seed: int = 31) -> tuple[FedAvgInstances, ...]:
    """Instances that remember their exact courses, 40 of each shape; a third non-convex, a fifth with a wider step."""
    rng = np.random.default_rng(seed)
    drawn = (
        draw(rng, EACH, shape, rippled=cell % 3 == 2, wide=cell % 5 == 4)
        for cell, shape in enumerate(shapes(rng, cells))
    )
    return (*plain(), *drawn)


def plain() -> Iterator[FedAvgInstances]:
    """Instances with one cause at work, in a steep or a flat direction: distance, pull, spread or noise."""
    for (N, I, P), windows in (
        ((2, 8, 4), 2),
        ((2, 1, 1), 8),
        ((2, 1, 1), 60),
        ((2, 1, 1), 400),
        ((3, 2, 1), 2),
        ((3, 1, 6), 8),
    ):
        T, B, one = windows * P, 12, np.eye(N)[0]
        cause, direction = np.arange(B) // 2, np.eye(2)[np.arange(B) % 2]
        slopes = np.zeros((B, N, 2))
        slopes[:, 0] = np.isin(cause, (1, 2, 3))[:, None] * direction
        weights = np.full((B, T, N), 1 / N)
        weights[np.isin(cause, (1, 5))] = one
        weights[cause == 2, : T // 2] = one
        z = FedAvgInstances(
            curvature=np.tile([1.0, 1e-3], (B, 1)),
            ripple=np.zeros((B, 2)),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            start=np.array([0.0, -1.0, -1.0, 0.0, 1.0, 1.0])[cause, None] * direction,
            noise=np.isin(cause, (0, 4, 5))[:, None] * direction,
            correlation=np.repeat(np.eye(N)[None], B, axis=0),
            weights=weights,
            gamma=np.ones(B),
            eta=np.ones(B),
            local_steps=I,
            interval=P,
            reach=P,
        )
        yield z.with_step_shares(np.full(B, 1.0), np.ones(B))
        yield z.with_step_shares(np.full(B, 1e-3), np.ones(B))
