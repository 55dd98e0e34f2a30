"""A second transcription of the theorems in files: plain functions, written from the sources and not from the files.

Each reading has the whole right-hand side of one form and the conditions on its constants. The parameters of its
functions are the symbols of `CONCEPTS`. Inside an O(.) every constant and every logarithm is 1. A bound on a number of
rounds R(epsilon) is solved for epsilon one term at a time: R = a/epsilon^2 gives sqrt(a/R), R = a/epsilon^(3/2) gives
(a/R)^(2/3), R = a/epsilon gives a/R, and R = a*log(1/epsilon) gives F*exp(-R/a).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

CONCEPTS = {
    "A": "contraction",
    "B": "expansion",
    "Bd": "relative_dissimilarity",
    "D2": "initial_squared_distance",
    "F": "initial_gap",
    "G0": "initial_gradient_error",
    "Gamma": "function_heterogeneity",
    "Gd": "heterogeneity_offset",
    "Gs": "stochastic_gradient_bound",
    "I": "local_steps",
    "K": "iterations",
    "L": "smoothness",
    "Lm": "negative_curvature",
    "Lp": "mean_smoothness",
    "N": "clients",
    "Psi0": "initial_lyapunov",
    "S": "participating_clients",
    "T": "rounds",
    "alpha": "compressor_contraction",
    "cstep": "descent_share",
    "d": "gradient_divergence_sup",
    "decrease": "expected_decrease",
    "direction": "mean_direction_error",
    "drift": "local_gradient_error",
    "embedding": "compression_error",
    "embedding_gradient": "embedding_gradient_bound",
    "embedding_hessian": "embedding_hessian_bound",
    "eta": "server_multiplier",
    "gamma": "local_step_size",
    "gradsq": "squared_gradient_norm",
    "hsq": "squared_sampled_direction",
    "ine": "inexactness",
    "kappa": "condition_number",
    "mu": "strong_convexity",
    "mup": "proximal_parameter",
    "omega": "compressor_variance",
    "pc": "communication_probability",
    "ps": "synchronization_probability",
    "radius": "squared_radius",
    "sigma": "gradient_noise",
    "sigmastar": "optimum_noise",
    "tau": "hessian_heterogeneity",
    "unavailable": "unavailable_rounds",
    "w": "objective_weights",
    "y": "local_steps_by_client",
    "zeta": "mean_gradient_divergence",
    "zetastar": "optimum_heterogeneity",
    "zl": "lag_threshold",
}


@dataclass(frozen=True)
class Reading:
    """One form of a theorem, as it was read.

    Attributes:
        bound: the right-hand side, from numbers by concept.
        holds: whether the conditions on the constants hold.
        source: the paper, and the text that was read.
        read: "constants" (the statement with its constants), "order" (the statement, which prints an order), "quoted"
            (another paper's statement of it) or "memory".
        concepts: all that the two functions depend on.
    """

    bound: Callable[[Mapping[str, Any]], float]
    holds: Callable[[Mapping[str, Any]], bool]
    source: str
    read: str
    concepts: tuple[str, ...]


READINGS: dict[str, Reading] = {}


def add(
    name: str, source: str, read: str, bound: Callable[..., float], holds: Callable[..., bool] = lambda: True
) -> None:
    """Add the reading of a form, "key[form]"; parameters of the functions are symbols."""
    needed = [tuple(inspect.signature(one).parameters) for one in (bound, holds)]

    def by_concept(function: Callable[..., Any], symbols: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Any]:
        return lambda at: function(**{symbol: at[CONCEPTS[symbol]] for symbol in symbols})

    concepts = tuple(sorted({CONCEPTS[symbol] for symbols in needed for symbol in symbols}))
    READINGS[name] = Reading(by_concept(bound, needed[0]), by_concept(holds, needed[1]), source, read, concepts)


# --- SGD ------------------------------------------------------------------------------------------------------------
# (1/L) E|grad f(x_R)|^2 <= (2 F/L + sigma^2 sum gamma_k^2)/sum (2 gamma_k - L gamma_k^2) for gamma_k < 2/L, where R has
# the probabilities proportional to 2 gamma_k - L gamma_k^2; for gamma <= 1/L the denominator is at least gamma.
GHADIMI = "Ghadimi and Lan 2013, Theorem 2.1 a, eq. (2.4); formal statement of it in Lean"
add(
    "ghadimi-2013/sgd[explicit]", GHADIMI, "constants",
    lambda L, F, sigma, gamma, K: 2 * F / (gamma * K) + L * gamma * sigma**2,
    lambda L, gamma: gamma * L <= 1,
)  # fmt: skip
add(
    "ghadimi-2013/sgd[explicit:large-steps]", GHADIMI, "constants",
    lambda L, F, sigma, gamma, K: (2 * F + L * sigma**2 * gamma**2 * K) / (K * (2 * gamma - L * gamma**2)),
    lambda L, gamma: gamma * L < 2,
)  # fmt: skip

# --- Local SGD, convex ----------------------------------------------------------------------------------------------
add(
    "khaled-2020/local-sgd[explicit]", "Khaled et al. 2020, main theorem for heterogeneous data; slides", "constants",
    lambda L, D2, sigmastar, gamma, K, N, I: (
        4 * D2 / (gamma * K) + 20 * gamma * sigmastar**2 / N + 16 * gamma**2 * L * (I - 1) ** 2 * sigmastar**2
    ),
    lambda L, gamma, I: 4 * L * gamma <= 1 and 8 * L * (I - 1) * gamma <= 1,
)  # fmt: skip
# gamma = sqrt(N)/(4 L sqrt(K)), which I <= sqrt(K/N) keeps below 1/(4 I L).
add(
    "khaled-2019/local-gd[explicit]", "Khaled et al. 2019, local GD on heterogeneous data; slides", "constants",
    lambda L, D2, zetastar, K, N, I: 8 * L * D2 / sqrt(N * K) + 3 * N * zetastar**2 * I**2 / (2 * L * K),
    lambda K, N, I: N * I**2 <= K,
)  # fmt: skip
KOLOSKOVA = "Koloskova et al. 2020, Theorem 2"
add(
    "koloskova-2020/local-sgd-convex[printed]", f"{KOLOSKOVA}, as in Table 1 of Patel et al. 2024", "quoted",
    lambda L, D2, sigma, zetastar, T, I, N: (
        L * D2 / T
        + (L * sigma**2 * D2**2) ** (1 / 3) / (I ** (1 / 3) * T ** (2 / 3))
        + sigma * sqrt(D2) / sqrt(N * I * T)
        + (L * zetastar**2 * D2**2) ** (1 / 3) / T ** (2 / 3)
    ),
)  # fmt: skip
# Iterations K = I T to epsilon: L F (sigma^2/(N eps^2) + (zeta I + sigma sqrt(I))/eps^(3/2) + I/eps), three fractions.
add(
    "koloskova-2020/local-sgd-nonconvex[printed]", KOLOSKOVA, "memory",
    lambda L, F, sigma, zeta, T, I, N: (
        sqrt(L * F * sigma**2 / (N * I * T))
        + (L * F * (zeta * I + sigma * sqrt(I)) / (I * T)) ** (2 / 3)
        + L * F / T
    ),
)  # fmt: skip
add(
    "woodworth-2020/local-sgd-convex[printed]", "Woodworth et al. 2020, as in Table 2 of Patel et al. 2024", "quoted",
    lambda L, D2, sigma, d, T, I, N: (
        L * D2 / (I * T)
        + sigma * sqrt(D2) / sqrt(N * I * T)
        + (L * d**2 * D2**2) ** (1 / 3) / T ** (2 / 3)
        + (L * sigma**2 * D2**2) ** (1 / 3) / (I ** (1 / 3) * T ** (2 / 3))
    ),
)  # fmt: skip

# --- FedAvg, strongly convex ----------------------------------------------------------------------------------------


def li_2020(
    variance: float, C: float, L: float, mu: float, D2: float, Gamma: float, Gs: float, I: int, K: int
) -> float:
    """E F(w_K) - F* with eta_t = 2/(mu (g + t)) and g = max(8 L/mu, I)."""
    g = max(8 * L / mu, I)
    noise = variance + 6 * L * Gamma + 8 * (I - 1) ** 2 * Gs**2
    return L / mu / (g + K - 1) * (2 * (noise + C) / mu + mu * g / 2 * D2)


def li_2020_poster(
    variance: float, C: float, L: float, mu: float, D2: float, Gamma: float, Gs: float, I: int, K: int
) -> float:
    """The same on the authors' poster, where g = max(9 L/mu, I)."""
    g = max(9 * L / mu, I)
    noise = variance + 6 * L * Gamma + 8 * (I - 1) ** 2 * Gs**2
    return 2 * (L / mu) / (g + K) * ((noise + C) / mu + 2 * L * D2)


def add_li_2020(form: str, at: Callable[..., float], where: str) -> None:
    """Add one printed form of the three theorems."""
    source = f"Li et al. 2020, {where}"
    add(
        f"li-2020/fedavg-full[{form}]", source, "constants",
        lambda w, sigma, L, mu, D2, Gamma, Gs, I, K: at(
            sum(one**2 for one in w) * sigma**2, 0, L, mu, D2, Gamma, Gs, I, K
        ),
    )  # fmt: skip
    add(
        f"li-2020/fedavg-with-replacement[{form}]", source, "constants",
        lambda w, sigma, L, mu, D2, Gamma, Gs, I, K, S: at(
            sum(one**2 for one in w) * sigma**2, 4 / S * I**2 * Gs**2, L, mu, D2, Gamma, Gs, I, K
        ),
    )  # fmt: skip
    add(
        f"li-2020/fedavg-without-replacement[{form}]", source, "constants",
        lambda sigma, L, mu, D2, Gamma, Gs, I, K, S, N: at(
            sigma**2 / N, (N - S) / (N - 1) * 4 / S * I**2 * Gs**2, L, mu, D2, Gamma, Gs, I, K
        ),
    )  # fmt: skip


add_li_2020("printed", li_2020, "Theorems 1 to 3; text of the paper")
add_li_2020("printed:poster", li_2020_poster, "poster of the authors")

# --- Compressed gradients -------------------------------------------------------------------------------------------


def lazy(F: float, G0: float, gamma: float, T: int, A: float) -> float:
    """2 F/(gamma T) + G0/(A T)."""
    return 2 * F / (gamma * T) + G0 / (A * T)


def step_fits(L: float, Lp: float, gamma: float, ratio: float) -> bool:
    """gamma <= 1/(L + Lp sqrt(B/A))."""
    return gamma * (L + Lp * sqrt(ratio)) <= 1


def theta(alpha: float) -> float:
    """A of EF21."""
    return 1 - sqrt(1 - alpha)


THREE = "Richtarik et al. 2022, Theorem 1 and Table 1; poster of the authors"
add(
    "richtarik-2022/three-point-compressors[explicit]", THREE, "constants",
    lambda F, G0, gamma, T, A: lazy(F, G0, gamma, T, A),
    lambda L, Lp, gamma, A, B: step_fits(L, Lp, gamma, B / A),
)  # fmt: skip
add(
    "richtarik-2022/three-point-compressors[explicit:lag]", THREE, "constants",
    lambda F, G0, gamma, T: lazy(F, G0, gamma, T, 1),
    lambda L, Lp, gamma, zl: step_fits(L, Lp, gamma, zl),
)  # fmt: skip
add(
    "richtarik-2022/three-point-compressors[explicit:clag]", THREE, "constants",
    lambda F, G0, gamma, T, alpha: lazy(F, G0, gamma, T, theta(alpha)),
    lambda L, Lp, gamma, alpha, zl: step_fits(L, Lp, gamma, max((1 - alpha) / theta(alpha), zl) / theta(alpha)),
)  # fmt: skip
add(
    "richtarik-2021/ef21[explicit]", "Richtarik et al. 2021, Theorem 1; notes that state it, poster", "constants",
    lambda F, G0, gamma, T, alpha: lazy(F, G0, gamma, T, theta(alpha)),
    lambda L, Lp, gamma, alpha: step_fits(L, Lp, gamma, (1 - alpha) / theta(alpha) ** 2),
)  # fmt: skip
# The first gradient is exact: G0 = 0. A = ps, B = (1 - ps) omega/N.
add(
    "gorbunov-2021/marina[explicit]", "Gorbunov et al. 2021, Theorem 2.1; its pair A, B in Table 1 of 3PC", "quoted",
    lambda F, gamma, T: 2 * F / (gamma * T),
    lambda L, Lp, gamma, ps, omega, N: step_fits(L, Lp, gamma, (1 - ps) * omega / (ps * N)),
)  # fmt: skip

# --- FedAvg and FedVARP, nonconvex, sampling without replacement -----------------------------------------------------
FEDVARP = "Jhunjhunwala et al. 2022"


def unsampled(N: int, S: int) -> float:
    """(N - S)/(S (N - 1))."""
    return (N - S) / (S * (N - 1))


def jhunjhunwala_fits(L: float, gamma: float, eta: float, I: int) -> bool:
    """The step sizes of Theorem 1."""
    return 8 * L * I * gamma <= 1 and 24 * I * L * gamma * eta <= 1


add(
    "jhunjhunwala-2022/fedavg[printed]", f"{FEDVARP}, Theorem 1", "order",
    lambda L, F, sigma, d, gamma, eta, I, T, N, S: (
        F / (eta * gamma * I * T)
        + eta * gamma * L * sigma**2 / S
        + gamma**2 * L**2 * (I - 1) * sigma**2
        + eta * gamma * I * L * unsampled(N, S) * d**2
        + gamma**2 * L**2 * I * (I - 1) * d**2
    ),
    jhunjhunwala_fits,
)  # fmt: skip


# With e = eta gamma I, g = |grad f|^2, h = mean_n |grad F_n - h_n|^2, q = 8 gamma^2 L^2 I (I - 1), u = (N-S)/((N-1)S):
#   5: E f+ - f <= -(e/2)(g + E|hbar|^2 - h) + (e^2 L/2)(2 sigma^2/(S I) + 2 C), where C is the square of lemma 7
#   7: C <= 3 h + 3 u d^2 + 3 g;    6: h <= q sigma^2/(4 I) + q (d^2 + g)
# Dropping -E|hbar|^2 and inserting 7, then 6:
#   E f+ - f <= -e g (1/2 - 3 e L - (1/2 + 3 e L) q) + e (1/2 + 3 e L) q (sigma^2/(4 I) + d^2)
#               + e^2 L (sigma^2/(S I) + 3 u d^2)
# gamma <= 1/(8 L I) gives q <= 1/8, and eta gamma <= 1/(24 I L) gives 3 e L <= 1/8. So the factor of -e g is at least
# 1/2 - 1/8 - (5/8)(1/8) = 19/64, and 1/2 + 3 e L <= 5/8. Sum over T rounds, divide by 19 e T/64.
# The supplement ends, with coarser steps, at 4 F/(e T) + 4 e L sigma^2/(S I) + 12 e L u d^2 + q sigma^2/I + 4 q d^2.
def jhunjhunwala_explicit(
    L: float, F: float, sigma: float, d: float, gamma: float, eta: float, I: int, T: int, N: int, S: int
) -> float:
    """(64/19)(F/(e T) + (5/8) q (sigma^2/(4 I) + d^2) + e L (sigma^2/(S I) + 3 u d^2))."""
    e, q = eta * gamma * I, 8 * gamma**2 * L**2 * I * (I - 1)
    drift = 5 / 8 * q * (sigma**2 / (4 * I) + d**2)
    return 64 / 19 * (F / (e * T) + drift + e * L * (sigma**2 / (S * I) + 3 * unsampled(N, S) * d**2))


add(
    "jhunjhunwala-2022/fedavg[explicit]", f"{FEDVARP}, derived from lemmas 5 to 7 of its supplement", "constants",
    jhunjhunwala_explicit, jhunjhunwala_fits,
)  # fmt: skip
# (e/2)(|grad f|^2 + E|hbar|^2), which the lemma subtracts, is on the left-hand side.
add(
    "jhunjhunwala-2022/lemma-5[explicit]", f"{FEDVARP}, supplement, Lemma 5", "constants",
    lambda L, sigma, gamma, eta, I, S, direction, hsq: (
        eta * gamma * I / 2 * direction + (eta * gamma * I) ** 2 * L / 2 * (2 * sigma**2 / (S * I) + 2 * hsq)
    ),
    lambda S, N: S <= N,
)  # fmt: skip
add(
    "jhunjhunwala-2022/lemma-6[explicit]", f"{FEDVARP}, supplement, Lemma 6", "constants",
    lambda L, sigma, d, gamma, I, gradsq: (
        2 * gamma**2 * L**2 * (I - 1) * sigma**2 + 8 * gamma**2 * L**2 * I * (I - 1) * (d**2 + gradsq)
    ),
    lambda L, gamma, I: 2 * L * I * gamma <= 1,
)  # fmt: skip
add(
    "jhunjhunwala-2022/lemma-7[explicit]", f"{FEDVARP}, supplement, Lemma 7", "constants",
    lambda d, N, S, drift, gradsq: 3 * drift + 3 * unsampled(N, S) * d**2 + 3 * gradsq,
)  # fmt: skip
add(
    "jhunjhunwala-2022/fedvarp[printed]", f"{FEDVARP}, Theorem 2", "order",
    lambda L, F, sigma, d, gamma, eta, I, T, S: (
        F / (eta * gamma * I * T)
        + eta * gamma * L * sigma**2 / S
        + gamma**2 * L**2 * (I - 1) * sigma**2
        + gamma**2 * L**2 * I * (I - 1) * d**2
    ),
    lambda L, gamma, eta, I, N, S: (
        10 * L * I * gamma <= 1
        and gamma * eta <= min(S**1.5 / (8 * L * I * N), 5 * S / (48 * I * L), 1 / (4 * L * I))
    ),
)  # fmt: skip

# --- SCAFFOLD -------------------------------------------------------------------------------------------------------
SCAFFOLD = "Karimireddy et al. 2020, {}; text of the paper"
add(
    "karimireddy-2020/scaffold-nonconvex[printed]", SCAFFOLD.format("Theorem III"), "order",
    lambda L, F, sigma, T, I, N, S: sqrt(L * sigma**2 * F / (I * S * T)) + (N / S) ** (2 / 3) * L * F / T,
)  # fmt: skip
# The printed N F/S has no epsilon, and a unit; it counts rounds as N F/(S epsilon).
add(
    "karimireddy-2020/scaffold-convex[printed]", SCAFFOLD.format("Theorem III"), "order",
    lambda L, D2, F, sigma, T, I, N, S: sqrt(sigma**2 * D2 / (I * S * T)) + L * D2 / T + N * F / (S * T),
)  # fmt: skip
add(
    "karimireddy-2020/scaffold-strongly-convex[printed]", SCAFFOLD.format("Theorem III"), "order",
    lambda L, mu, F, sigma, T, I, N, S: sigma**2 / (mu * I * S * T) + F * exp(-T / (N / S + L / mu)),
)  # fmt: skip
# Printed: (1 - S/N) G^2 F/(S eps^2) and sqrt(L) G/eps^(3/2); the units need a factor L, and L F G in the other.
add(
    "karimireddy-2020/fedavg-nonconvex[printed]", SCAFFOLD.format("Theorem I"), "order",
    lambda L, F, sigma, Gd, Bd, T, I, N, S: (
        sqrt(L * sigma**2 * F / (I * S * T))
        + sqrt((1 - S / N) * Gd**2 * F / (S * T))
        + (sqrt(L) * Gd / T) ** (2 / 3)
        + Bd**2 * L * F / T
    ),
)  # fmt: skip
add(
    "karimireddy-2020/fedavg-nonconvex[repaired:units]", SCAFFOLD.format("Theorem I"), "order",
    lambda L, F, sigma, Gd, Bd, T, I, N, S: (
        sqrt(L * sigma**2 * F / (I * S * T))
        + sqrt((1 - S / N) * L * Gd**2 * F / (S * T))
        + (L * F * Gd / T) ** (2 / 3)
        + Bd**2 * L * F / T
    ),
)  # fmt: skip

# --- FedProx --------------------------------------------------------------------------------------------------------


def fedprox_decrease(L: float, Lm: float, mup: float, ine: float, Bd: float, S: int) -> float:
    """rho, the factor of -|grad f|^2 in the decrease of one round."""
    left = mup - Lm
    return (
        1 / mup
        - ine * Bd / mup
        - Bd * (1 + ine) * sqrt(2) / (left * sqrt(S))
        - L * Bd * (1 + ine) / (left * mup)
        - L * (1 + ine) ** 2 * Bd**2 / (2 * left**2)
        - L * Bd**2 * (1 + ine) ** 2 / (left**2 * S) * (2 * sqrt(2 * S) + 2)
    )


# f(x) - E f(x+) >= rho |grad f(x)|^2, solved for |grad f(x)|^2.
add(
    "li-2020b/fedprox-round[explicit]", "Li et al. 2020 (FedProx), Theorem 4; three transcriptions of it", "quoted",
    lambda decrease, L, Lm, mup, ine, Bd, S: decrease / fedprox_decrease(L, Lm, mup, ine, Bd, S),
    lambda L, Lm, mup, ine, Bd, S: mup > Lm and fedprox_decrease(L, Lm, mup, ine, Bd, S) > 0,
)  # fmt: skip

# --- ProxSkip -------------------------------------------------------------------------------------------------------
add(
    "mishchenko-2022/proxskip[explicit]", "Mishchenko et al. 2022, Theorem 3.6; ProxSkip-VR, eq. (8)", "quoted",
    lambda mu, gamma, pc, Psi0, K: (1 - min(gamma * mu, pc**2)) ** K * Psi0,
    lambda L, gamma: gamma * L <= 1,
)  # fmt: skip

# --- Convex, intermittent communication (Patel et al. 2024, Table 1) -------------------------------------------------
PATEL_2024 = "Patel et al. 2024, {}; text of the paper"


def noise_fits(L: float, D2: float, sigma: float, N: int, I: int, T: int) -> bool:
    """What Table 1 assumes throughout: sigma B/sqrt(M K R) <= H B^2."""
    return sigma * sqrt(D2) <= L * D2 * sqrt(N * I * T)


def minibatch(L: float, D2: float, sigma: float, N: int, I: int, T: int) -> float:
    """H B^2/R + sigma B/sqrt(M K R)."""
    return L * D2 / T + sigma * sqrt(D2) / sqrt(N * I * T)


def accelerated(L: float, D2: float, sigma: float, N: int, I: int, T: int) -> float:
    """H B^2/R^2 + sigma B/sqrt(M K R)."""
    return L * D2 / T**2 + sigma * sqrt(D2) / sqrt(N * I * T)


add("patel-2024/minibatch-sgd-convex[printed]", PATEL_2024.format("Table 1"), "order", minibatch, noise_fits)
add(
    "patel-2024/accelerated-minibatch-sgd-convex[printed]", PATEL_2024.format("Table 1"), "order",
    accelerated, noise_fits,
)  # fmt: skip
add(
    "patel-2024/local-sgd-lower-bound[printed]", PATEL_2024.format("Theorem 9"), "order",
    lambda L, D2, sigma, zetastar, N, I, T: (
        minibatch(L, D2, sigma, N, I, T)
        + (L * sigma**2 * D2**2) ** (1 / 3) / (I ** (1 / 3) * T ** (2 / 3))
        + (L * zetastar**2 * D2**2) ** (1 / 3) / T ** (2 / 3)
    ),
    lambda L, D2, sigma, N, I, T: I >= 2 and noise_fits(L, D2, sigma, N, I, T),
)  # fmt: skip
add(
    "patel-2024/convex-lower-bound[printed]", PATEL_2024.format("Theorem 11"), "order", accelerated,
    lambda L, D2, sigma, N, I, T: I >= 2 and noise_fits(L, D2, sigma, N, I, T),
)  # fmt: skip

# --- Nonconvex, intermittent communication (Patel et al. 2022) --------------------------------------------------------
PATEL_2022 = "Patel et al. 2022, {}; text of the paper"


def storm_noise(Lp: float, F: float, sigma: float, calls: float) -> float:
    """sigma^2/n + (sigma F L/n)^(2/3), where n counts all calls of the oracle."""
    return sigma**2 / calls + (sigma * F * Lp / calls) ** (2 / 3)


add(
    "patel-2022/minibatch-sgd-nonconvex[printed]", PATEL_2022.format("Table 1"), "order",
    lambda L, F, sigma, N, I, T: L * F / T + sqrt(sigma**2 * F * L / (N * I * T)),
)  # fmt: skip
# The momentum parameter (F L)^(2/3) (M K)^(1/3)/(sigma^(4/3) R^(2/3)) must be at most 1.
add(
    "patel-2022/minibatch-storm[printed]", PATEL_2022.format("Theorem C.1"), "order",
    lambda Lp, F, sigma, N, I, T: F * Lp / T + storm_noise(Lp, F, sigma, N * I * T),
    lambda Lp, F, sigma, N, I, T: F * Lp * sqrt(N * I) <= sigma**2 * T,
)  # fmt: skip
add(
    "patel-2022/ce-lsgd[printed]", PATEL_2022.format("Theorem 3.1 a"), "order",
    lambda Lp, F, sigma, tau, N, I, T: F * tau / T + F * Lp / (sqrt(I) * T) + storm_noise(Lp, F, sigma, N * I * T),
    lambda Lp, F, sigma, tau, N, I, T: tau <= 2 * Lp and F * Lp * sqrt(N * I) <= sigma**2 * T,
)  # fmt: skip
add(
    "patel-2022/centralized-lower-bound[printed]", PATEL_2022.format("Theorem 2.9"), "order",
    lambda Lp, F, sigma, N, I, T: F * Lp / T + storm_noise(Lp, F, sigma, N * I * T),
)  # fmt: skip
add(
    "patel-2022/partial-lower-bound[printed]", PATEL_2022.format("Theorem 4.5"), "order",
    lambda Lp, F, sigma, zeta, tau, S, I, T: (
        min(F * tau / T, zeta**2 / T)
        + F * Lp / (I * T)
        + storm_noise(Lp, F, sigma, S * I * T)
        + zeta**2 / (S * T)
        + (zeta * F * Lp / (S * I * T)) ** (2 / 3)
    ),
    lambda Lp, F, zeta, tau: tau <= 2 * Lp and zeta**2 <= F * Lp,
)  # fmt: skip
# Queries are those of all clients.
ARJEVANI = "Arjevani et al. 2023, summary of the paper"
add(
    "arjevani-2023/lower-bound-bounded-variance[printed]", ARJEVANI, "quoted",
    lambda L, F, sigma, N, I, T: sqrt(F * L * sigma**2 / (N * I * T)),
)  # fmt: skip
add(
    "arjevani-2023/lower-bound-mean-squared-smooth[printed]", ARJEVANI, "quoted",
    lambda Lp, F, sigma, N, I, T: storm_noise(Lp, F, sigma, N * I * T),
)  # fmt: skip

# --- Other federated methods ----------------------------------------------------------------------------------------
# The constant: 0 < c < 1/2 - 15 I^2 gamma^2 L^2.
add(
    "yang-2021/fedavg-full[explicit]", "Yang et al. 2021, Theorem 1; its shape and 6 K sigma_G^2 in DELTA", "memory",
    lambda L, F, sigma, d, gamma, eta, I, T, N, cstep: (
        F / (cstep * eta * gamma * I * T)
        + (L * eta * gamma * sigma**2 / (2 * N) + 5 * I * gamma**2 * L**2 / 2 * (sigma**2 + 6 * I * d**2)) / cstep
    ),
    lambda L, gamma, eta, I, cstep: (
        8 * L * I * gamma <= 1 and eta * gamma * I * L <= 1 and cstep <= 1 / 2 - 15 * I**2 * gamma**2 * L**2
    ),
)  # fmt: skip
# SGD without momentum: |a_n|_1 = |a_n|_2^2 = y_n and the last entry of a_n is 1; weights of the update equal w.


def fednova(sigma: float, Gd: float, w: Sequence[float], y: Sequence[float], T: int, gap: float) -> float:
    """(ym/ye)/sqrt(m ym T) + A sigma^2/sqrt(m ym T) + m B sigma^2/(ym T) + m C kappa^2/(ym T), the first times gap."""
    m, mean, effective = len(y), sum(y) / len(y), sum(a * b for a, b in zip(w, y, strict=True))
    A = m * effective * sum(a**2 / b for a, b in zip(w, y, strict=True))
    B = sum(a * (b - 1) for a, b in zip(w, y, strict=True))
    C = max(b * (b - 1) for b in y)
    size = sqrt(m * mean * T)
    return gap * mean / effective / size + A * sigma**2 / size + m * (B * sigma**2 + C * Gd**2) / (mean * T)


FEDNOVA = "Wang et al. 2020 (FedNova), Theorems 1 and 3; text of the paper"
add(
    "wang-2020/fednova[printed]", FEDNOVA, "order",
    lambda sigma, Gd, w, y, T: fednova(sigma, Gd, w, y, T, 1),
)  # fmt: skip
# The gap f(x_0) - f* has no factor in the paper; the units need L F.
add(
    "wang-2020/fednova[repaired:units]", FEDNOVA, "order",
    lambda L, F, sigma, Gd, w, y, T: fednova(sigma, Gd, w, y, T, L * F),
)  # fmt: skip
add(
    "reddi-2021/fedadam[printed]", "Reddi et al. 2021, Corollary 2", "memory",
    lambda L, F, Gs, sigma, zeta, N, I, T: (
        F / sqrt(N * I * T)
        + sigma**2 * L / (Gs**2 * sqrt(N * I * T))
        + (sigma**2 + I * zeta**2) / (Gs * I * T)
        + (sigma**2 + I * zeta**2) * L * sqrt(N) / (Gs**2 * sqrt(I) * T**1.5)
    ),
)  # fmt: skip
add(
    "gu-2021/mifa[printed]", "Gu et al. 2021, as in Table 1 of Wang and Ji 2022", "quoted",
    lambda sigma, unavailable, I, N, T: (1 + sigma**2) * sqrt(unavailable) / sqrt(N * I * T),
)  # fmt: skip
add(
    "castiglia-2022/c-vfl[printed]", "Castiglia et al. 2022, Theorem 1", "memory",
    lambda L, F, sigma, gamma, I, K, embedding_hessian, embedding_gradient, embedding: (
        4 * F / (gamma * K)
        + 6 * gamma * I * L * sigma**2
        + 92 * I**2 * embedding_hessian**2 * embedding_gradient**2 * embedding
    ),
    lambda L, gamma, I: 16 * I * L * gamma <= 1,
)  # fmt: skip
add(
    "sharma-2022/local-sgda-ncsc[printed]", "Sharma et al. 2022, as in Table 2 of Sharma et al. 2023", "quoted",
    lambda sigma, zeta, N, I, T: 1 / sqrt(N * I * T) + N * I * (sigma**2 + zeta**2) / T,
)  # fmt: skip
# Gradients to epsilon: (kappa^2 L F + kappa L^2 D^2)/eps^2 max(1, kappa sigma^2/eps^2); the table has kappa^3/eps^4.
add(
    "lin-2020/sgda-ncsc[printed]", "Lin et al. 2020, Theorem 4.5; a table of Sharma et al. 2022", "memory",
    lambda kappa, L, F, radius, sigma, K: (
        (kappa**2 * L * F + kappa * L**2 * radius) / K
        + sqrt((kappa**2 * L * F + kappa * L**2 * radius) * kappa * sigma**2 / K)
    ),
)  # fmt: skip
