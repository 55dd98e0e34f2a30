"""Noise-free runs on non-convex instances, step by step in float64."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import Course, FedAvgInstances, Path


def slope(z: FedAvgInstances, x: np.ndarray) -> np.ndarray:
    """grad f at points (B, ..., d)."""
    a, kappa = (v.reshape(len(z), *[1] * (x.ndim - 2), -1) for v in (z.curvature, z.ripple))
    return a * x + kappa * np.sin(x)


def slope_change(z: FedAvgInstances, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """grad f(x + step) - grad f(x) for (B, ..., d), without the cancellation of two nearly equal gradients."""
    ndim = max(x.ndim, step.ndim)
    a, kappa = (v.reshape(len(z), *[1] * (ndim - 2), -1) for v in (z.curvature, z.ripple))
    return a * step + 2 * kappa * np.cos(x + step / 2) * np.sin(step / 2)


def value_change(z: FedAvgInstances, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """f(x + step) - f(x), by coordinate, for (B, d), without the cancellation of two nearly equal values."""
    half = x + step / 2
    return z.curvature * step * half + 2 * z.ripple * np.sin(half) * np.sin(step / 2)


def rippled_course(z: FedAvgInstances) -> Course:
    """Every client's local steps as Algorithm 1 of Wang & Ji 2022 has them, for all instances at once."""
    B, T, I, P, d = len(z), z.rounds, z.local_steps, z.interval, z.curvature.shape[1]
    gamma = z.gamma[:, None, None]
    path = Path(np.empty((B, T, d)), np.empty((B, T, d)), np.empty((B, T, I + 1, z.clients, d)))
    visited = np.empty((B, T + 1, d))
    x = anchor = z.start
    moved, decrease = np.zeros_like(x), np.empty((B, T // P))
    for t in range(T):
        if t % P == 0:
            anchor, moved = x, np.zeros_like(x)
        visited[:, t], path.anchor[:, t], path.moved[:, t] = x, anchor, moved
        change = np.zeros_like(z.slopes)  # from x, so that small steps are not lost in x
        for i in range(I + 1):
            path.change[:, t, i] = change
            if i < I:
                change = change - gamma * (slope(z, x[:, None] + change) + z.slopes)
        moved = moved + (z.weights[:, t, :, None] * change).sum(axis=1)
        whole = moved if (t + 1) % P else z.eta[:, None] * moved
        x = anchor + whole
        if (t + 1) % P == 0:
            decrease[:, t // P] = -value_change(z, anchor, whole).sum(axis=1)
    visited[:, T] = x
    a, kappa = z.curvature[:, None], z.ripple[:, None]
    gap = (a / 2 * visited**2 + 2 * kappa * np.sin(visited / 2) ** 2).sum(axis=2)
    mean, apart = split(z, path)
    spread = (z.weights[:, :, None] * (apart**2).sum(axis=4)).sum(axis=3)
    drift = ((path.moved[:, :, None] + mean) ** 2).sum(axis=3)
    return Course((slope(z, visited) ** 2).sum(axis=2), gap, decrease, spread, drift, path)


def split(z: FedAvgInstances, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The clients' mean change of the model in a round, (B, T, I+1, d), and each client's distance from it.

    Distances that are rounding are zero: clients that agree do not spread.
    """
    mean = (z.weights[:, :, None, :, None] * path.change).sum(axis=3)
    apart = path.change - mean[:, :, :, None]
    size = np.abs(path.change).max(axis=(1, 2, 3, 4), keepdims=True)
    return mean, np.where(np.abs(apart) < 1e-14 * size, 0.0, apart)
