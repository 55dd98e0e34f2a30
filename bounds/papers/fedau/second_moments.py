r"""What the weight error of FedAU implies for the second moment of its weights.

With $u_n=p_n\omega_n$, the weight error bounds $u$'s distance from its target, and the second moment is
$\sum_nu_n^2/p_n$. For every $\lambda>0$ and target $\varphi_n$
$$\frac{u^2}{p}+\lambda(u-\varphi)^2\ge\frac{\lambda\varphi^2}{1+\lambda p},$$
the minimum over $u$. Summed over clients, and in the mean over rounds and paths:
$$\sum_n\frac{u_n^2}{p_n}\ge\sum_n\frac{\lambda\varphi_n^2}{1+\lambda p_n}-\lambda V,\qquad V=\sum_n(u_n-\varphi_n)^2.$$
The best $\lambda$ for equal $p$ is taken; it is attained there, and as $V\to0$ it tends to $\sum_n\varphi_n^2/p_n$.
"""

from __future__ import annotations

import numpy as np


def least_squares(p: np.ndarray, target: np.ndarray, V: np.ndarray) -> np.ndarray:
    r"""The least $\sum_nu_n^2/p_n$ with $\sum_n(u_n-\varphi_n)^2\le V$: a lower bound, attained for equal $p_n$.

    Example:
        >>> p, target = np.array([0.5, 0.5]), np.array([0.5, 0.5])
        >>> [round(float(least_squares(p, target, np.array(V))), 12) for V in (0.0, 0.125)]
        [1.0, 0.25]
    """
    squares = target**2
    length, miss = np.sqrt(squares.sum(axis=-1)), np.sqrt(V)
    mean = (squares * p).sum(axis=-1) / squares.sum(axis=-1)
    beyond = miss >= length  # then u = 0 will do
    shift = np.where(beyond, 0.0, mean * miss / np.where(beyond, 1.0, length - miss))  # 1/lambda
    least = (squares / (p + shift[..., None])).sum(axis=-1) - miss * np.where(beyond, 0.0, length - miss) / mean
    return np.where(beyond, 0.0, np.maximum(least, 0.0))


def least_second_moment(p: np.ndarray, W: np.ndarray) -> np.ndarray:
    r"""The least mean over clients of $p_n\omega_n^2$ at the weight error $W$, the mean of $(p_n\omega_n-1)^2$."""
    N = p.shape[-1]
    return N * least_squares(p, np.full(N, 1 / N), W / N)


def least_sum(N: np.ndarray, V: np.ndarray) -> np.ndarray:
    r"""The least $\sum_np_n\omega_n^2$ at $V=\sum_n(p_n\omega_n/N-\varphi_n)^2$: $N^2(|\varphi|-\sqrt V)^2$, and
    $|\varphi|^2\ge1/N$.

    Example:
        >>> float(least_sum(np.array(4.0), np.array(0.0)))
        4.0
    """
    return N**2 * np.maximum(1 / np.sqrt(N) - np.sqrt(V), 0.0) ** 2


def least_weighted_sum(p: np.ndarray, varphi: np.ndarray, V: np.ndarray) -> np.ndarray:
    r"""The least $\sum_np_n\omega_n^2$ at $V=\sum_n(p_n\omega_n/N-\varphi_n)^2$.

    Example:
        >>> float(least_weighted_sum(np.array([0.5, 0.5]), np.array([1.0, 0.0]), np.array(0.0)))
        8.0
    """
    return p.shape[-1] ** 2 * least_squares(p, varphi, V)
