r"""The composite constants of Sharma et al. (2023), and what every form computes from what it is given.

Only $\Gamma_x=\tau_{\rm eff}\gamma_x$ and $\Gamma_y=\tau_{\rm eff}\gamma_y$ matter of the server's steps. A client
enters through its weight and its coefficients $\boldsymbol a_i$: local SGDA has $(1,\dots,1)$, momentum $\rho$ has
$\frac1{1-\rho}(1-\rho^{\tau_i},\dots,1-\rho)$, with

$$\|a_i\|_1=\frac1{1-\rho}\Big[\tau_i-\frac{\rho(1-\rho^{\tau_i})}{1-\rho}\Big],\qquad
  \|a_i\|_2^2=\frac1{(1-\rho)^2}\Big[\tau_i-\frac{2\rho(1-\rho^{\tau_i})}{1-\rho}
  +\frac{\rho^2(1-\rho^{2\tau_i})}{1-\rho^2}\Big].$$

Other coefficients are given by their norms `a1`, `a2` and their last and largest entries `alast`, `amax`.
"""

import numpy as np
import sympy as sp
from sympy import Integer, floor

from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION
from fedbounds.bounds.theory.client_reductions import MaxOverClients, MeanOverClients, SumOverClients
from fedbounds.bounds.theory.expressions import largest, least
from fedbounds.bounds.theory.result import Condition
from fedbounds.bounds.theory.symbols import Derived, length_of

notation = NOTATION
Lf, mu, kappa, betaL, n, P = notation.Lf, notation.mu, notation.kappa, notation.betaL, notation.n, notation.P
T, tau, w, p, rho, a1, a2 = notation.T, notation.tau, notation.w, notation.p, notation.rho, notation.a1, notation.a2
alast, amax, alpha, taueff, A_w = notation.alast, notation.amax, notation.alpha, notation.taueff, notation.A_w
B_w, E_w = notation.B_w, notation.E_w


# Sampling P of n: E|sum over the sample|^2 = c |mean|^2 + r d sum w_i^2 |.|^2; one client means c = 1, d = 0.
r = n / P
d = (n - P) / largest(1, n - 1)
c = r * (1 - d)

# What is behind the paper's A_w, B_w, E_w
Z = A_w / (n * taueff)
Q = B_w / (n * taueff)
W = E_w / n
K = MaxOverClients(w * amax / a1)
a_m = MaxOverClients(a1 * (largest(0, a1 - alast) + betaL**2 * alpha))
S_1 = d * W + betaL**2 * Q
S_2 = d * W + betaL**2 * K


def full_synchronization(noise: sp.Expr, growth: sp.Expr) -> sp.Expr:
    r"""$r(uZ+vQ)$ as (4), (7) and (18) write it, without the n that cancels: $\frac{uA_w+vB_w}{P\tau_{\rm eff}}$.

    Example:
        >>> full_synchronization(notation.sigmaL**2, notation.sigmaG**2)
        (A_w*sigmaL**2 + B_w*sigmaG**2)/(P*taueff)
    """
    return (noise * A_w + growth * B_w) / (P * taueff)


def weight_mismatch(p: np.ndarray, w: np.ndarray) -> np.ndarray:
    r"""$\chi^2_{p\|w}=\sum_i(p_i-w_i)^2/w_i$; infinite where a client that counts has no weight.

    Example:
        >>> float(weight_mismatch(np.array([0.5, 0.5]), np.array([0.2, 0.8])))
        0.5625
        >>> float(weight_mismatch(np.array([0.5, 0.5]), np.array([0.0, 1.0])))
        inf
    """
    p, w = np.broadcast_arrays(p, w)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(p == w, 0.0, (p - w) ** 2 / w)
    return parts.sum(axis=-1)


def effective_steps(p: np.ndarray, w: np.ndarray, a1: np.ndarray) -> np.ndarray:
    r"""$\tau_{\rm eff}$ by eq. (2): $\sum_ip_i\|a_i\|_1$ where the server averages naively, so that
    $w_i\propto p_i\|a_i\|_1$; $\sum_iw_i\|a_i\|_1$ for any other weights.

    Example:
        >>> p, tau = np.array([0.5, 0.5]), np.array([2.0, 5.0])
        >>> print(effective_steps(p, np.array([2 / 7, 5 / 7]), tau), effective_steps(p, np.array([0.25, 0.75]), tau))
        3.5 4.25
    """
    pull = p * a1
    mean = pull.sum(axis=-1)
    naive = np.all(np.isclose(w * mean[..., None], pull, rtol=1e-9, atol=0), axis=-1)
    return np.where(naive, mean, (w * a1).sum(axis=-1))


def momentum_buffer(tau: np.ndarray, rho: np.ndarray) -> np.ndarray:
    r"""$(1-\rho^{\tau})/(1-\rho)$: the weight of the first of tau gradients in the last buffer, shape (clients,)."""
    rho = rho[..., None]
    return np.where(tau == 1, 1.0, (1 - rho**tau) / (1 - rho))


def momentum_sum(tau: np.ndarray, rho: np.ndarray) -> np.ndarray:
    r"""$\|a\|_1$ of heavy-ball momentum, shape (clients,).

    Example:
        >>> print(momentum_sum(np.array([1.0, 2.0]), np.array(0.5)))  # 1, and 1.5 + 1
        [1.  2.5]
    """
    some = rho[..., None]
    return np.where(tau == 1, 1.0, (tau - some * momentum_buffer(tau, rho)) / (1 - some))


def momentum_squares(tau: np.ndarray, rho: np.ndarray) -> np.ndarray:
    r"""$\|a\|_2^2$ of heavy-ball momentum, shape (clients,).

    Example:
        >>> print(momentum_squares(np.array([1.0, 2.0]), np.array(0.5)))
        [1.   3.25]
    """
    some = rho[..., None]
    whole = tau - 2 * some * momentum_buffer(tau, rho) + some**2 * (1 - some ** (2 * tau)) / (1 - some**2)
    return np.where(tau == 1, 1.0, whole / (1 - some) ** 2)


STEPS = (
    Derived("Gammax", ("taueff", "gammax"), taueff * notation.gammax, "its definition"),
    Derived("Gammay", ("taueff", "gammay"), taueff * notation.gammay, "its definition"),
)
CURVATURES = (
    Derived("kappa", ("Lf", "mu"), Lf / mu, "kappa = Lf/mu"),
    Derived("mu", ("Lf", "kappa"), Lf / kappa, "kappa = Lf/mu"),
    Derived("Lf", ("mu", "kappa"), kappa * mu, "kappa = Lf/mu"),
)
MOMENTUM = "local SGDA with momentum rho"
COEFFICIENTS = (
    Derived("a1", ("tau", "rho"), momentum_sum, MOMENTUM, True, "momentum_sum"),
    Derived("a2", ("tau", "rho"), momentum_squares, MOMENTUM, True, "momentum_squares"),
    Derived("alast", ("tau",), np.ones_like, "the last gradient counts once", True, "tau => tau.map(() => 1)"),
    Derived("amax", ("tau", "rho"), momentum_buffer, "the first gradient, with momentum rho", True, "momentum_buffer"),
    Derived("alpha", ("amax",), MaxOverClients(amax), "the largest of all coefficients"),
)
DERIVED = (
    length_of("tau", "n"),
    length_of("w", "n"),
    *CURVATURES,
    *COEFFICIENTS,
    Derived(
        "taueff",
        ("p", "w", "a1"),
        effective_steps,
        "eq. (2) for naive weights, else sum of w_i |a_i|_1",
        free=True,
        javascript="effective_steps",
    ),
    Derived("taueff", ("w", "a1"), SumOverClients(w * a1), "sum of w_i |a_i|_1, unless it is given", free=True),
    *STEPS,
    Derived("A_w", ("n", "taueff", "w", "a1", "a2"), n * taueff * SumOverClients(w**2 * a2 / a1**2), "its definition"),
    Derived("B_w", ("n", "taueff", "w", "a1", "a2"), n * taueff * MaxOverClients(w * a2 / a1**2), "its definition"),
    Derived("C_w", ("w", "a2", "alast"), SumOverClients(w * largest(0, a2 - alast**2)), "its definition"),
    Derived(
        "D",
        ("a1", "a2", "alast", "betaL"),
        MaxOverClients((a1 - alast) ** 2 + betaL**2 * largest(0, a2 - alast**2)),
        "its definition",
    ),
    Derived("E_w", ("n", "w"), n * MaxOverClients(w), "its definition"),
    Derived(
        "nu",
        ("tau",),
        least(2, MaxOverClients(tau)),
        "1 if every client takes one step, where noise and drift do not mix, else 2",
    ),
    Derived("taubar", ("tau",), MeanOverClients(tau), "its definition"),
    Derived(
        "chi2",
        ("p", "w"),
        weight_mismatch,
        "sum_i (p_i - w_i)^2/w_i; infinite if a client has p_i > 0 = w_i",
        javascript="weight_mismatch",
    ),
)
WITHOUT_CURVATURE = tuple(rule for rule in DERIVED if rule not in CURVATURES)  # where f_i need not be strongly concave

# w and p that do not sum to 1 are refused wherever they are given; this says so to the proofs
SIMPLEX = Condition(SumOverClients(w), "==", Integer(1), "the weights are on the simplex", legal=True)
SAMPLED = Condition(P, "<=", n, "P of n clients are drawn without replacement", P, legal=True)
CURVATURE = Condition(kappa, ">=", Integer(1), "mu is at most Lf", kappa, legal=True)
LARGEST = Condition(
    MaxOverClients(largest(a2 / (amax * a1), a1 / (tau * amax), alast / amax, alast**2 / a2)),
    "<=",
    Integer(1),
    "amax is the largest of the coefficients with these norms",
    legal=True,
)
LEGAL = (SIMPLEX, SAMPLED, LARGEST)
WHOLE_BLOCKS = Condition(
    T / notation.S, "==", floor(T / notation.S), "T is a whole number of blocks of S rounds", legal=True
)
