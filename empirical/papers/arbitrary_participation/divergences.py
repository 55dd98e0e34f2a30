r"""The left-hand sides of (5), (6) and (7) for given weights, from what is known of the clients' gradients.

(5) and (7) are $\|\sum_nc_n\nabla F_n-\nabla f\|^2$, with the weights of a round or their means over a window for c;
(6) is $\sum_nq^n\|\nabla F_n-\sum_mq^m\nabla F_m\|^2$. Here
$\nabla f=\sum_np_n\nabla F_n$, with $p_n=\frac1N$ in the paper.

Source: Wang & Ji 2022, Assumption 3'.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.participation.constants import SUM_TOLERANCE, centered_offsets


def objective_weights(clients: int, client_weights: np.ndarray | None) -> np.ndarray:
    """$p_n$ of every client, (clients,)."""
    return np.full(clients, 1 / clients) if client_weights is None else client_weights


def _weighted_medians(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The median of every row of values, (K, N) -> (K,), by weights that sum to one."""
    order = np.argsort(values, axis=1)
    place = (np.cumsum(weights[order], axis=1) >= 0.5 - SUM_TOLERANCE).argmax(axis=1)
    return np.take_along_axis(values, np.take_along_axis(order, place[:, None], axis=1), axis=1)[:, 0]


class Divergences(ABC):
    """What is known of the clients' gradients."""

    word: str = ""  # what notes say first

    @abstractmethod
    def combined(self, weights: np.ndarray) -> np.ndarray:
        r"""$\|\sum_nc_n\nabla F_n-\nabla f\|^2$ for weights that sum to one, (K, N) -> (K,)."""

    @abstractmethod
    def spread(self, weights: np.ndarray) -> float:
        """The left side of (6) for the weights of a round, (N,)."""

    @abstractmethod
    def expected(self, mean: np.ndarray, covariance: np.ndarray, independent: bool) -> float:
        """The expectation of `combined` for random weights with this mean (N,) and covariance (N, N)."""

    @abstractmethod
    def expected_spread(self, mean: np.ndarray, participation: float) -> float:
        """The expectation of `spread` for weights with this mean (N,), where that of (5) is known."""


class Offsets(Divergences):
    r"""Offsets $\mathbf v_n=\nabla F_n-\nabla f$ that do not depend on x: exact."""

    def __init__(self, v: np.ndarray, client_weights: np.ndarray | None = None) -> None:
        self.offsets = centered_offsets(v, client_weights=client_weights)

    def combined(self, weights: np.ndarray) -> np.ndarray:
        return ((weights @ self.offsets) ** 2).sum(axis=1)

    def spread(self, weights: np.ndarray) -> float:
        present = np.flatnonzero(weights)
        share, cohort = weights[present], self.offsets[present]
        return float(share @ ((cohort - share @ cohort) ** 2).sum(axis=1))

    def expected(self, mean: np.ndarray, covariance: np.ndarray, independent: bool) -> float:
        bias = mean @ self.offsets
        return float(bias @ bias) + max(float(np.vdot(covariance @ self.offsets, self.offsets)), 0.0)

    def expected_spread(self, mean: np.ndarray, participation: float) -> float:
        return max(float(mean @ (self.offsets**2).sum(axis=1)) - participation, 0.0)


class Bounds(Divergences):
    r"""Gradients that are bounded, $\|\nabla F_n(x)\|\le b_n$ for every x: everything from above.

    With $e_n=c_n-p_n$: $\|\sum_ne_n\nabla F_n\|\le\sum_n|e_n|b_n$, and (6) is at most $\sum_nq^nb_n^2$, as a mean
    of squares is least around the mean. For random weights that are independent of the model, with covariance C and
    bias $\bar e$, the gradients' Gram matrix G enters by $\bar e^\top G\bar e+\mathrm{tr}(CG)$, where
    $\mathrm{tr}(CG)\le\sum_{nm}|C_{nm}|b_nb_m$ and $\mathrm{tr}(CG)\le\lambda_{\max}(C)\,\mathrm{tr}\,G$. For others,
    $\mathbb E(\sum_n|e_n|b_n)^2\le(\sum_nb_n\sqrt{\mathbb Ee_n^2})^2$ by Cauchy and Schwarz, and on every path
    $\|\sum_nc_n\nabla F_n-\nabla f\|\le\max_nb_n+\sum_np_nb_n$.
    """

    word = "upper bound of the "

    def __init__(self, b: np.ndarray, client_weights: np.ndarray | None = None) -> None:
        self.b, self.p = b, objective_weights(len(b), client_weights)

    def combined(self, weights: np.ndarray) -> np.ndarray:
        return (np.abs(weights - self.p) @ self.b) ** 2

    def spread(self, weights: np.ndarray) -> float:
        alone = np.count_nonzero(weights) == 1  # nobody differs from himself
        return 0.0 if alone else float(weights @ self.b**2)

    def expected(self, mean: np.ndarray, covariance: np.ndarray, independent: bool) -> float:
        b, bias = self.b, mean - self.p
        if not independent:
            roots = np.sqrt(np.maximum(np.diag(covariance), 0.0) + bias**2)
            return min(float(b @ roots), float(b.max() + self.p @ b)) ** 2
        along = max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0) * float(b @ b)
        return float(np.abs(bias) @ b) ** 2 + min(float(b @ np.abs(covariance) @ b), along)

    def expected_spread(self, mean: np.ndarray, participation: float) -> float:
        return float(mean @ self.b**2)


@dataclass(frozen=True, eq=False)
class Products:
    r"""The products $\nabla F_n(x)^\top\nabla F_m(x)$ at one point: everything exact there, and unknown elsewhere."""

    products: np.ndarray  # (N, N)
    client_weights: np.ndarray | None = None  # $p_n$ of f, (N,); 1/N each if not given

    def combined(self, weights: np.ndarray) -> np.ndarray:
        r"""$\|\sum_nc_n\nabla F_n-\nabla f\|^2$, (K, N) -> (K,)."""
        excess = weights - objective_weights(len(self.products), self.client_weights)
        return np.maximum(((excess @ self.products) * excess).sum(axis=1), 0.0)

    def spread(self, weights: np.ndarray) -> float:
        """The left side of (6) for the weights of a round, (N,), which sum to one."""
        return max(float(weights @ np.diag(self.products) - weights @ self.products @ weights), 0.0)


class Within(Divergences):
    r"""Gradients that differ from their mean by at most d, $\|\nabla F_n(x)-\nabla f(x)\|\le d$: everything from above.

    As $\sum_np_n\mathbf v_n=0$, $\|\sum_nc_n\mathbf v_n\|\le d\sum_n|c_n-\mu p_n|$ for every $\mu$, least at the
    median of the ratios $c_n/p_n$ with weights $p_n$, and at most $d$ for weights that sum to one ($\mu=0$); for random
    weights, $d^2\sum_n\frac1{p_n}\mathbb E(c_n-p_n)^2$ by Cauchy and Schwarz (with $p_n=\frac1N$: (15)), and at most
    $d^2$.
    """

    word = "upper bound, from d, of the "

    def __init__(self, d: float, client_weights: np.ndarray | None = None) -> None:
        self.d, self.p = d, client_weights

    def combined(self, weights: np.ndarray) -> np.ndarray:
        if self.p is None:
            nearest = np.median(weights, axis=1, keepdims=True)
        else:
            nearest = _weighted_medians(weights / self.p, self.p)[:, None] * self.p
        return (self.d * np.abs(weights - nearest).sum(axis=1)) ** 2

    def spread(self, weights: np.ndarray) -> float:
        return 0.0 if np.count_nonzero(weights) == 1 else self.d**2  # nobody differs from himself

    def expected(self, mean: np.ndarray, covariance: np.ndarray, independent: bool) -> float:
        p = objective_weights(len(mean), self.p)
        return self.d**2 * min(float(((np.diag(covariance) + (mean - p) ** 2) / p).sum()), 1.0)

    def expected_spread(self, mean: np.ndarray, participation: float) -> float:
        return self.d**2
