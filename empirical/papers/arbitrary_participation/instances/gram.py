r"""The inner products in the proof's steps, exactly, on every instance.

A step's brackets average over the clients of a round with their weights (over a window's rounds and local steps too)
and over the gradient noise. They are kept for *differences* of the step's vectors, so that nothing cancels:
$e=y-\bar y$, $D=\bar y-x_{t_0}$, $k_y=\nabla F_n(y)-\nabla F_n(\bar y)$, $k_m=\nabla F_n(\bar y)-\nabla F_n(x_{t_0})$,
$o=\nabla F_n(x_{t_0})-\nabla f(x_{t_0})$, with their weighted means `m...`, and $f_0$, $\xi$. In a window
$s_1,s_2,s_3$ are the means of $k_y,k_m,o$ over it and z that of the noise.
"""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.falsification.instances.readable import product_key
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import (
    FedAvgInstances,
    Path,
    QuadraticMoments,
    slope,
    slope_change,
    split,
)

# The proof's vectors in these differences; points are taken from x_{t_0}, as only differences of points occur.
ROUND_BASIS = {
    "y": ("e", "D"), "ybar": ("D",), "x0": (), "f0": ("f0",), "xi": ("xi",), "mxi": ("mxi",),
    "gy": ("ky", "km", "o", "f0"), "gm": ("km", "o", "f0"), "g0": ("o", "f0"),
    "mgy": ("mky", "km", "mo", "f0"), "mgm": ("km", "mo", "f0"), "mg0": ("mo", "f0"),
}  # fmt: skip
WINDOW_BASIS = {
    "y": ("e", "D"), "ybar": ("D",), "x0": (), "f0": ("f0",), "mxi": ("mxi",), "z": ("z",),
    "gy": ("ky", "km", "o", "f0"), "gm": ("km", "o", "f0"), "g0": ("o", "f0"),
    "s": ("s1", "s2", "s3", "f0"), "m": ("s2", "s3", "f0"), "w0": ("s3", "f0"),
}  # fmt: skip
POINT_BASIS = {"g": ("o", "f0"), "f": ("f0",), "mg": ("mo", "f0")}  # at the model with which a window starts
Products = dict[tuple[str, str], np.ndarray]


def round_products(z: FedAvgInstances) -> Products:
    """The products of a round before every local step, each (B, T, I+1) or broadcasting; pairs not given are zero."""
    behind = z.course.behind
    return _quadratic_round(z, behind) if isinstance(behind, QuadraticMoments) else _rippled_round(z, behind)


def window_products(z: FedAvgInstances) -> Products:
    """The products of a complete window, each (B, K); pairs not given are zero or do not occur in the proof."""
    I, P, K = z.local_steps, z.interval, z.rounds // z.interval
    wanted = [("e", "e"), ("D", "D"), ("ky", "ky"), ("km", "km"), ("mxi", "mxi"), ("f0", "f0")]
    products = round_products(z)

    def averaged(values: np.ndarray) -> np.ndarray:
        whole = np.broadcast_to(values, (len(z), z.rounds, I + 1))
        return whole[:, : K * P, :I].reshape(len(z), K, -1).mean(axis=2)

    found = {pair: averaged(products[pair]) for pair in wanted if pair in products}
    behind = z.course.behind
    means = _quadratic_window(z, behind) if isinstance(behind, QuadraticMoments) else _rippled_window(z, behind)
    return found | means


def _quadratic_round(z: FedAvgInstances, law: QuadraticMoments) -> Products:
    a, gamma = z.curvature[:, None, None], z.gamma[:, None, None, None]
    powers = (1 - gamma * a) ** np.arange(z.local_steps)[:, None]
    zero = np.zeros((len(z), 1, 1, a.shape[3]))
    sums = np.concatenate([zero, np.cumsum(powers, axis=2)], axis=2)
    squares = np.concatenate([zero, np.cumsum(powers**2, axis=2)], axis=2)
    cohort, pull, noise = z.cohort[:, :, None], z.pulls[:, :, None], z.noise[:, None, None] ** 2
    own = np.einsum("btn,bnn->bt", z.weights, z.correlation)[:, :, None, None]
    left = z.noise_weight[:, :, None, None]
    m, C, zeta = law.m[:, :, None], law.C[:, :, None], law.zeta
    ee = gamma**2 * (sums**2 * cohort + squares * noise * (own - left))
    DD, Dx, xx = zeta**2 + law.psi**2 * C + law.rest, m * zeta + law.psi * C, m**2 + C
    basic = {
        ("e", "e"): ee, ("e", "ky"): a * ee, ("ky", "ky"): a**2 * ee, ("e", "o"): -gamma * sums * cohort,
        ("ky", "o"): -gamma * a * sums * cohort, ("D", "D"): DD, ("D", "km"): a * DD, ("km", "km"): a**2 * DD,
        ("D", "f0"): a * Dx, ("f0", "km"): a**2 * Dx, ("D", "o"): zeta * pull, ("D", "mo"): zeta * pull,
        ("km", "o"): a * zeta * pull, ("km", "mo"): a * zeta * pull, ("f0", "f0"): a**2 * xx,
        ("f0", "o"): a * m * pull, ("f0", "mo"): a * m * pull, ("o", "o"): cohort + pull**2, ("mo", "o"): pull**2,
        ("mo", "mo"): pull**2, ("xi", "xi"): noise * own, ("mxi", "xi"): noise * left, ("mxi", "mxi"): noise * left,
    }  # fmt: skip
    return {product_key(*pair): value.sum(axis=3) for pair, value in basic.items()}


def _rippled_round(z: FedAvgInstances, path: Path) -> Products:
    q = z.weights[:, :, None, :, None]
    mean, apart = split(z, path)
    D = path.moved[:, :, None, None] + mean[:, :, :, None]
    start, ky = path.anchor[:, :, None, None], _from_their_mean(z, path)
    vectors = {
        "e": apart, "D": D, "ky": ky, "mky": (q * ky).sum(axis=3, keepdims=True),
        "km": slope_change(z, start, D), "o": z.slopes[:, None, None], "mo": z.pulls[:, :, None, None],
        "f0": slope(z, start),
    }  # fmt: skip
    names = sorted(vectors)
    return {(a, b): (q * vectors[a] * vectors[b]).sum(axis=(3, 4)) for a in names for b in names if a <= b}


def _from_their_mean(z: FedAvgInstances, path: Path) -> np.ndarray:
    """The gradients at the local models less those at their mean, (B, T, I+1, N, d)."""
    mean, apart = split(z, path)
    middle = (path.anchor + path.moved)[:, :, None, None] + mean[:, :, :, None]
    return slope_change(z, middle, apart)


def _quadratic_window(z: FedAvgInstances, law: QuadraticMoments) -> Products:
    K, P, a = law.mean_zeta.shape[1], z.interval, z.curvature[:, None]
    m, C = (v[:, : K * P : P] for v in (law.m, law.C))
    pull = z.pulled(z.window_weights)
    DD = law.mean_zeta**2 + law.mean_psi**2 * C + law.mean_rest
    basic = {
        ("s2", "s2"): a**2 * DD, ("f0", "s2"): a**2 * (m * law.mean_zeta + law.mean_psi * C),
        ("s2", "s3"): a * law.mean_zeta * pull, ("s2", "z"): a * law.mean_cross, ("z", "z"): law.mean_noise,
        ("s3", "s3"): pull**2, ("f0", "s3"): a * m * pull,
    }  # fmt: skip
    return {product_key(*pair): value.sum(axis=2) for pair, value in basic.items()}


def _rippled_window(z: FedAvgInstances, path: Path) -> Products:
    I, P, K = z.local_steps, z.interval, z.rounds // z.interval
    q = z.weights[:, :, None, :, None]
    mean = path.moved[:, :, None] + split(z, path)[0]  # (B, T, I+1, d)
    start = path.anchor[:, :, None]

    def averaged(values: np.ndarray) -> np.ndarray:
        return values[:, : K * P, :I].reshape(len(z), K, I * P, -1).mean(axis=2)

    f0 = slope(z, path.anchor[:, : K * P : P])
    vectors = {
        "s1": averaged((q * _from_their_mean(z, path)).sum(axis=3)),
        "s2": averaged(slope_change(z, start, mean)),
        "s3": z.pulled(z.window_weights),
        "f0": f0,
    }
    names = sorted(vectors)
    return {(a, b): (vectors[a] * vectors[b]).sum(axis=2) for a in names for b in names if a <= b}
