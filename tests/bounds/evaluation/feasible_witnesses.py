"""Problems, weights and coefficients built for given constants, and the constants that they have, computed from them.

`WITNESSES[paper](name, constants)` builds the best that it knows for these constants, whether they can occur or not,
and returns what it has: symbols of problems are measured on it, and not copied. Symbols of `CHOSEN` are of the
algorithm or of the question, and any occur.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

Constants = Mapping[str, np.ndarray]
Found = dict[str, object]
TINY = 1e-9
GRID = np.linspace(-1, 1, 4001)

# What a problem may have with slack (at most, at least) by an assumption; every other symbol is met exactly.
AT_MOST = {
    "arbitrary-participation": "L sigma nu beta delta d rho windowvar",
    "fed-norm-sgda": "Lf sigmaL betaL sigmaG Gx R",
    "fedau": "L sigma delta deltatilde G Q Wmax",
    "fedmrn": "L sigma G q",
    "tdcd": "L Lmax sigmaj",
}
AT_LEAST = {"fedmrn": "mu", "fed-norm-sgda": "mu", "arbitrary-participation": "S"}
CHOSEN = {
    "arbitrary-participation": "I P T gamma eta r s theta c",
    "fed-norm-sgda": "betaG P T S etax etay gammax gammay Gammax Gammay taueff eps epsbar young rho kappa n nu "
    "A_w B_w C_w D E_w alpha taubar chi2",
    "fedau": "I T gamma eta K etatilde cgamma cboth rate S",
    "fedmrn": "T d a eta etat",
    "tdcd": "Q R eta c W tcomm tcomp",
}


@dataclass(frozen=True)
class Valley:
    """c/2 x^2 that goes on as a line where its slope is g: convex, c-smooth, with gradients up to g."""

    c: float
    g: float

    def value(self, x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        return np.where(self.c * x <= self.g, self.c / 2 * x**2, self.g * x - self.g**2 / (2 * self.c))

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.clip(self.c * x, -self.g, self.g)

    def measured(self, gap: float) -> tuple[float, float, float]:
        """The gap at the point where it should be this, the largest secant of the gradient, and the largest slope."""
        start = 0.0
        if self.g > 0:
            bend = self.g**2 / (2 * self.c)
            start = np.sqrt(2 * gap / self.c) if gap <= bend else (gap + bend) / self.g
        xs = GRID * max(3 * start, 3 * self.g / self.c, TINY)
        slopes, values = self.slope(xs), self.value(xs)
        secants = np.abs(np.diff(slopes) / np.diff(xs))
        return float(self.value(np.asarray(start)) - values.min()), float(secants.max()), float(np.abs(slopes).max())


def number(c: Constants, name: str, otherwise: float = 1.0) -> float:
    return float(c[name]) if name in c else otherwise


# --- Wang & Ji 2022 ------------------------------------------------------------------------------------------------


def of_squares(total: float, clients: int) -> np.ndarray:
    """Weights whose squares sum to this, or as near to it as weights on the simplex can."""
    off = np.sqrt(max(0.0, (clients - 1) * (clients * total - 1)))
    first = min(1.0, (1 + off) / clients)
    return np.array([first, *[(1 - first) / max(1, clients - 1)] * (clients - 1)])


def weights_law(deviation: float, clients: int, norm: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of two vectors of weights, in which the first has mean 1/N and this deviation, if any can."""
    if clients == 1:
        return np.array([0.5, 0.5]), np.ones((2, 1))
    off, whole = np.sqrt(max(0.0, (clients - 1) * (clients * norm**2 - 1))), np.sqrt(clients - 1)
    scale = min(1.0, off / whole, deviation * clients / whole)
    first = (1 + scale * np.array([clients - 1, -1])) / clients
    chance = np.array([1 / clients, 1 - 1 / clients])
    return chance, np.stack([np.array([q, *[(1 - q) / (clients - 1)] * (clients - 1)]) for q in first])


def arbitrary_participation(name: str, c: Constants) -> Found:
    found: Found = dict.fromkeys(("sigma", "nu", "beta", "delta", "d", "windowvar"), 0.0)
    gap, secant, _ = Valley(number(c, "L") / 2, 1.0).measured(number(c, "F", 0.0))
    found |= {"F": gap, "L": secant}
    if "upsilon" in c:
        clients = int(c["N"])
        chance, weights = weights_law(float(c["upsilon"]), clients, number(c, "rho"))
        mean = chance @ weights
        assert np.allclose(mean, 1 / clients) and np.allclose(weights.sum(axis=1), 1) and (weights > -TINY).all()
        found["upsilon"] = float(np.sqrt((chance @ (weights - mean) ** 2).max()))
        found |= {"N": weights.shape[1], "rho": float(np.sqrt(chance @ (weights**2).sum(axis=1)))}
    elif "qbar" in c:
        assert abs(c["qbar"].sum() - 1) < TINY
        found |= {"qbar": c["qbar"], "N": len(c["qbar"])}
    else:
        squares = number(c, "sumsq", number(c, "rho") ** 2)
        clients = int(c["N"]) if "N" in c else int(np.ceil(1 / squares))
        weights = of_squares(1 / clients if "S" in c else squares, clients)
        found |= {"N": clients, "sumsq": float((weights**2).sum()), "rho": float(np.sqrt((weights**2).sum()))}
        found["S"] = 1 / weights.max()
    if "gradsq" in c:
        found["gradsq"] = float(c["gradsq"])  # of a line
    if "decrease" in c:
        found |= window(c)
    return found


def window(c: Constants) -> Found:
    """One window on a line, or on a quadratic from its minimum with noise; exact moments, step by step."""
    L, gamma, eta, I, P = (float(c[name]) for name in ("L", "gamma", "eta", "I", "P"))
    wanted = float(c["decrease"])
    if wanted >= 0:
        slope, x = np.sqrt(wanted / (gamma * eta * I * P)), 0.0
        for _ in range(int(P)):
            x -= eta * sum(gamma * slope for _ in range(int(I)))
        return {"decrease": -slope * x, "sigma": 0.0}

    def rise(sigma: float) -> float:
        second = 0.0
        for _ in range(int(P)):
            kept, noise = 1.0, 0.0
            for _ in range(int(I)):
                kept, noise = (1 - gamma * L) * kept, (1 - gamma * L) ** 2 * noise + gamma**2 * sigma**2
            second = (1 - eta * (1 - kept)) ** 2 * second + eta**2 * float(c["rho"]) ** 2 * noise
        return L / 2 * second

    most = rise(float(c["sigma"]))
    sigma = float(c["sigma"]) * np.sqrt(min(1.0, -wanted / most)) if most else 0.0
    return {"decrease": -rise(sigma), "sigma": sigma}


# --- Wang & Ji 2024 ------------------------------------------------------------------------------------------------


def of_error(error: float, clients: int) -> np.ndarray:
    """The smallest u > 0 with this mean of (u - 1)^2."""
    if error < 1:
        return np.full(clients, 1 - np.sqrt(error))
    return np.array([1 + np.sqrt(1 + clients * (error - 1)), *[TINY] * (clients - 1)])


def objective(V: float, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights on the simplex, and the smallest u/N > 0 at this squared distance from them."""
    if clients == 1:
        return np.ones(1), np.array([1 + np.sqrt(V) if V >= 1 else 1 - np.sqrt(V)])
    if V * clients < 1:
        return (equal := np.full(clients, 1 / clients)), equal * (1 - np.sqrt(clients * V))
    phi = of_squares(min(V, 1.0), clients)
    return phi, np.array([TINY, np.sqrt(max(V - 1, 0.0)) + TINY, *[TINY] * (clients - 2)])


def fedau(name: str, c: Constants) -> Found:
    found: Found = dict.fromkeys(("sigma", "delta", "deltatilde"), 0.0)
    height = "F" if "F" in c else "H"
    found[height], found["L"], found["G"] = Valley(number(c, "L") / 2, number(c, "G")).measured(number(c, height, 0.0))
    clients = int(number(c, "N", 2))
    found["N"] = clients
    if "gradsq" in c:
        found["gradsq"] = float(c["gradsq"])
    if "varphi" in c:
        assert abs(c["varphi"].sum() - 1) < TINY
        found["varphi"] = c["varphi"]
    if "p" in c:
        found |= {"p": c["p"], "N": len(c["p"]), "Q": float((1 / c["p"]).mean())}
        found["R"] = rarity(c["p"])
    elif "R" in c:  # FedAU's weights, at 1 in the first round and as large as they become
        rarest = 1 - np.exp(-1 / (2 * c["R"])) if c["R"] > 0 else 1.0
        T = float(c["T"])
        most = min(max(1.0, np.ceil(float(c["R"]) * np.log(T))), max(T - 1, 1.0))
        rest = rarest if rarest * most**2 <= 1 else 1.0
        if "Wmax" in c and most == 1:
            left = max(0.0, clients * float(c["Wmax"]) - (1 - rarest) ** 2) / max(1, clients - 1)
            rest = max(rarest, 1 - np.sqrt(left))
        elif "Wmax" in c:
            rest = 1.0
        p = np.array([rarest, *[rest] * (clients - 1)])
        ends = np.array([np.ones(clients), np.where(p < 1, most, 1.0)])
        found |= {"R": rarity(p), "Q": float((p * ends**2).mean(1).max())}
        found["Wmax"] = float(((p * ends - 1) ** 2).max(0).mean())
    elif "Qtilde" in c:
        p, P = np.full(clients, min(1.0, 1 / float(c["Qtilde"]))), number(c, "P")
        omega = P / (clients * p)
        found |= {"P": float((omega * p).sum()), "Qtilde": float((p * (omega * clients / P) ** 2).mean())}
    elif "V" in c:
        phi, y = objective(float(c["V"]), clients)
        u = clients * y
        p = np.full(clients, min(1.0, float((u**2).sum()) / float(c["Z"])))
        found |= {"V": float(((p * (u / p) / clients - phi) ** 2).sum()), "Z": float((p * (u / p) ** 2).sum())}
    elif "W" in c or "Wt" in c:
        moment, error = ("Qt", "Wt") if "Wt" in c else ("Qmean", "W")
        u = of_error(float(c[error]), clients)
        p = np.full(clients, min(1.0, float((u**2).mean()) / float(c[moment])) if moment in c else 1.0)
        omega = u / p
        second, off = float((p * omega**2).mean()), float(((p * omega - 1) ** 2).mean())
        found |= {moment: second, "Q": second, error: off, "Wmax": off}
    return found


def rarity(p: np.ndarray) -> float:
    return 0.0 if p.min() == 1 else float(-1 / (2 * np.log1p(-p.min())))


# --- Li et al. 2024 ------------------------------------------------------------------------------------------------


def fedmrn(name: str, c: Constants) -> Found:
    found: Found = {"sigma": 0.0, "G": 0.0, "q": 0.0}
    if name.startswith("theorem-1"):
        return found | strongly_convex(c, "d" in c)
    if name.startswith("lemma-4"):  # no step is bounded: a quadratic, with the moments that noise may have
        curvature = float(c["mu"])
        assert curvature <= float(c["L"]) * (1 + TINY)
        heterogeneity, _ = minimum(curvature, np.sqrt(2 * float(c["Gamma"]) / curvature) * np.array([[1.0], [-1.0]]))
        distance = np.sqrt(c["Deltat"]) * np.array([1.0, -1.0])
        drift, noise = np.sqrt(c["Dt"]) * np.array([1.0, -1.0]), np.sqrt(c["V"]) * np.array([1.0, -1.0])
        moments = {k: float((v**2).mean()) for k, v in (("Deltat", distance), ("Dt", drift), ("V", noise))}
        return {"L": curvature, "mu": curvature, "Gamma": heterogeneity, **moments}
    if name.startswith("lemma-5"):
        return kink(np.sqrt(c["gradsq"]), np.sqrt(c["meansq"]), np.sqrt(c["Dt"])) | {
            "M": float(c["M"]),
            "V": float(c["V"]),
        }
    gap, secant, _ = Valley(number(c, "L") / 2, 1.0).measured(number(c, "F", 0.0))
    # the slope lies beyond all points where gradients are taken, which are all on the plateau: any G, also 0
    found |= {
        "F": gap,
        "L": secant,
        "N": int(number(c, "N")),
        "K": int(min(number(c, "K"), number(c, "N"))),
        "S": c.get("S"),
    }
    return found


def kink(here: float, there: float, away: float) -> Found:
    """A gradient that is `here` at 0 and `there` at +-away, where gradients are taken with equal probability."""
    points = np.array([-away, away])
    slope = (there - here) / away if away else 0.0
    grid = GRID * max(2 * away, TINY)
    gradient = here + slope * np.minimum(np.abs(grid), away)
    taken = here + slope * np.minimum(np.abs(points), away)
    secant = np.abs(np.diff(gradient) / np.diff(grid)).max()
    return {"gradsq": here**2, "meansq": float((taken**2).mean()), "Dt": float((points**2).mean()), "L": float(secant)}


def minimum(curvature: float, centers: np.ndarray) -> tuple[float, np.ndarray]:
    """F* less the mean of the clients' minima, and the minimizer, for curvature/2 |w - c_k|^2."""
    best = centers.mean(axis=0)
    return float(curvature / 2 * ((best - centers) ** 2).sum(axis=1).mean()), best


def strongly_convex(c: Constants, masks: bool) -> Found:
    mu, L, S, T = float(c["mu"]), float(c["L"]), int(c["S"]), int(c["T"])
    N, K, dimension = int(c["N"]), int(min(c["K"], c["N"])), int(number(c, "d", 4))
    pairs = max(1, N // 2)
    spread = np.sqrt(2 * float(c["Gamma"]) / mu * N / (2 * pairs)) if N > 1 else 0.0
    centers, start = np.zeros((N, dimension)), np.zeros(dimension)
    if masks or N % 2 == 0 or N == 1:
        centers[:pairs, -1], centers[pairs : 2 * pairs, -1] = spread, -spread
        if N == 1:
            centers[:] = 0
    else:  # a regular polygon
        angles = 2 * np.pi * np.arange(N) / N
        radius = np.sqrt(2 * float(c["Gamma"]) / mu)
        centers[:, -1], centers[:, -2] = radius * np.cos(angles), radius * np.sin(angles)
    start[0] += np.sqrt(float(c["Delta1"]))
    heterogeneity, best = minimum(mu, centers)
    shift = max(8 * L / mu, S)
    step = lambda t: 2 / (mu * (shift - 1 + t))  # noqa: E731
    seen = masked_gradients if masks else expected_gradients
    largest = seen(centers, start, mu, step, S, T, K, float(c["G"]))
    return {
        "L": mu,
        "mu": mu,
        "Gamma": heterogeneity,
        "Delta1": float(((start - best) ** 2).sum()),
        "G": largest,
        "N": N,
        "K": K,
        "S": S,
    }


def expected_gradients(
    centers: np.ndarray, start: np.ndarray, mu: float, step: Callable[[int], float], S: int, T: int, K: int, _: float
) -> float:
    """The largest root of E|gradient|^2 of a client, over all cohorts with equal probability; T - 1 steps."""
    cohorts = np.array([centers[list(cohort)].mean(axis=0) for cohort in combinations(range(len(centers)), K)])
    spread = float(((cohorts - cohorts.mean(axis=0)) ** 2).sum(axis=1).mean())
    mean, variance, largest = start, 0.0, 0.0
    for first in range(1, T, S):
        kept = 1.0
        for t in range(first, min(first + S, T)):
            squares = kept**2 * (((mean - centers) ** 2).sum(axis=1) + variance)  # of w_k - c_k
            largest = max(largest, mu**2 * float(squares.max()))
            kept *= 1 - mu * step(t)
        mean, variance = kept * mean + (1 - kept) * cohorts.mean(axis=0), kept**2 * variance + (1 - kept) ** 2 * spread
    return np.sqrt(largest)


def masked_gradients(
    centers: np.ndarray, start: np.ndarray, mu: float, step: Callable[[int], float], S: int, T: int, K: int, G: float
) -> float:
    """The largest gradient where masks may take the models: every sign of every coordinate, the same in a cohort."""
    signs = np.array(list(product((-1, 1), repeat=len(start))))
    models, largest = start[None], 0.0
    for first in range(1, T, S):
        models = (models[:, None] + step(first) * S * G * signs).reshape(
            -1, len(start)
        )  # also where gradients are taken
        away = np.sqrt(((models[:, None] - centers) ** 2).sum(axis=-1))
        largest = max(largest, mu * float(away.max()))
    return largest


# --- Das et al. 2022 -----------------------------------------------------------------------------------------------


def tdcd(name: str, c: Constants) -> Found:
    gap, secant, _ = Valley(number(c, "L") / 2, 1.0).measured(number(c, "Deltainf", number(c, "Delta", 0.0)))
    found: Found = {"L": secant, "Lmax": min(secant, number(c, "Lmax")), "Delta": gap, "Deltainf": gap}
    S = number(c, "S", 0.0)
    share = number(c, "SK", S) / S if S else 0.0
    many = max(2, int(np.ceil(2 / share))) if share > 0 else 10**6  # clients of the second silo; the first has one
    first = np.clip((share - 1 / many) / (1 - 1 / many), 0, 1)
    squares, clients = S * np.array([first, 1 - first]), np.array([1, many])
    found |= {"S": float(squares.sum()), "SK": float((squares / clients).sum()), "sigmaj": 0.0}
    return found | {name: float(c[name]) for name in ("gradsq", "G0") if name in c}


# --- Sharma et al. 2023 --------------------------------------------------------------------------------------------


def coefficients(total: float, squares: float, last: float, largest: float, steps: int) -> np.ndarray:
    """Numbers >= 0 with these norms, last and largest entry, or some that are near."""
    fixed = [last] if last >= largest * (1 - TINY) else [largest, last]
    m = max(0, steps - len(fixed))
    left = max(0.0, min(total - sum(fixed), m * largest))
    if m == 0:
        return np.array(fixed[-steps:])
    equal, full = np.full(m, left / m), int(left / largest * (1 + TINY))
    corner = np.array(
        [largest] * min(full, m) + [max(0.0, left - full * largest)] * (full < m) + [0.0] * (m - full - 1)
    )
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        mixed = (1 - middle) * equal + middle * corner
        rest = squares - sum(x**2 for x in fixed)
        low, high = (middle, high) if (mixed**2).sum() < rest else (low, middle)
    return np.array([*((1 - low) * equal + low * corner), *fixed])


def fed_norm_sgda(name: str, c: Constants) -> Found:
    lemma = name.partition("[")[0]
    found: Found = dict.fromkeys(("sigmaL", "betaL", "sigmaG"), 0.0)
    for symbol in ("w", "p", "usq", "vsq", "squares", "bregman", "excess"):  # vectors, and functions of one variable
        if symbol in c:
            found[symbol] = c[symbol]
    if "a1" in c:
        rows = [
            coefficients(*(float(c[k][i]) for k in ("a1", "a2", "alast", "amax")), int(c["tau"][i]))
            for i in range(len(c["tau"]))
        ]
        found |= {
            "tau": np.array([len(row) for row in rows], dtype=float),
            "a1": np.array([row.sum() for row in rows]),
            "a2": np.array([(row**2).sum() for row in rows]),
            "alast": np.array([row[-1] for row in rows]),
            "amax": np.array([row.max() for row in rows]),
        }
    Lf = number(c, "Lf")
    steepest = number(c, "Gx")
    for symbol in ("Delta", "Deltabar"):
        if symbol in c:
            found[symbol], _, found["Gx"] = Valley(Lf / 2, steepest).measured(float(c[symbol]))
    found.setdefault("Gx", 0.0)
    found |= {"Lf": Valley(Lf / 2, steepest).measured(1.0)[1], "R": 0.0, "mu": number(c, "mu", Lf)}
    curvature = Lf / number(c, "kappa", 1.0)  # -curvature/2 y^2
    for symbol in ("delta0", "gap", "staledual"):
        if symbol in c:
            y = np.sqrt(2 * float(c[symbol]) / curvature)
            found[symbol] = float(curvature / 2 * y**2)
    if lemma == "lemma-a.2":
        distance = np.sqrt(c["distsq"])
        steep = float(c["slope"]) / distance if distance else 0.0
        found |= {"distsq": float(distance**2), "slope": steep * distance}
    if "lag" in c:
        found |= mismatch(c)
    if "proxlag" in c:  # envelopes (x -+ a)^2/2 of two objectives have proximal points apart in proportion to a
        found["proxlag"] = float(c["proxlag"])
    if "epsopt" in c:
        found["epsopt"] = float(c["epsopt"])  # of a line, in every round
    return found | local_round(lemma, c)


def mismatch(c: Constants) -> Found:
    """Maximizers for p and w of -m/2 y^2 + b_i y, with b_i as different as sigmaG allows."""
    p, w, wanted = c["p"], c["w"], np.sqrt(float(c["lag"]))
    b = np.sign(p - w) * min(1.0, float(c["sigmaG"]) / 2) * (wanted > 0)
    pulled = float(((p - w) * b).sum())
    m = pulled / wanted if wanted and pulled > TINY else 1.0
    if m > number(c, "Lf"):
        b, m = b * number(c, "Lf") / m, number(c, "Lf")
    spread = float(np.sqrt((w * (b - (w * b).sum()) ** 2).sum()))
    return {"lag": float(((p * b).sum() / m - (w * b).sum() / m) ** 2), "sigmaG": spread}


def local_round(lemma: str, c: Constants) -> Found:
    """The mean exact direction and the drift: the last local iterates alone are away, and gradients have a kink."""
    found: Found = {}
    moved = next((k for k in ("drift", "sampledrift", "noisydrift") if k in c), "")
    gradient = "gradxsq" if "gradxsq" in c else "gradsq"
    if gradient in c:
        found[gradient] = min(float(c[gradient]), float(c["Gx"]) ** 2) if lemma == "lemma-c.1" else float(c[gradient])
    if not moved:
        return found | ({"direction": found.get(gradient, c["epsopt"])} if "direction" in c else {})
    w, tau, a1, a2, alast, Lf = c["w"], c["tau"], c["a1"], c["a2"], c["alast"], number(c, "Lf")
    away = tau > 1
    share = {"drift": w * alast / a1, "sampledrift": w**2 * alast / a1, "noisydrift": (w * alast / a1) ** 2}[
        moved
    ] * away
    distance = np.sqrt(float(c[moved]) / share.sum()) / Lf if share.sum() else 0.0
    found[moved] = float(Lf**2 * (share * distance**2).sum())
    if "direction" in c:
        here, there = np.sqrt(found[gradient]), np.sqrt(float(c["direction"]))
        kept = float((w * alast / a1 * away).sum())
        slope = np.clip((there - here) / (kept * distance), -Lf, Lf) if kept * distance and moved == "drift" else 0.0
        found["direction"] = float((here + kept * slope * distance) ** 2)
    if "noisysq" in c:
        found["noisysq"] = float((w**2 / a1**2 * a2 * found[gradient]).sum())
    return found


WITNESSES: Mapping[str, Callable[[str, Constants], Found]] = {
    "arbitrary-participation": arbitrary_participation,
    "fed-norm-sgda": fed_norm_sgda,
    "fedau": fedau,
    "fedmrn": fedmrn,
    "tdcd": tdcd,
}
