r"""Propositions 4.4, 4.6, 4.7 and Corollary 4.8 on participation processes whose window covariance is exact.

A *shift process* has one vector w of weights and a walk on the N cyclic shifts: $q_t^n=w_{n-s_t}$, where $s_t$ starts
uniform and moves by an independent increment of law p each round. So $\mathbb Eq_t^n=1/N$ for any w, and after a
discrete Fourier transform (hats) each frequency j stands alone: $\lambda_j=\hat p_j$,
$$\mathrm{Cov}(q_t,q_{t+k})=\tfrac1N|\hat w_j|^2\lambda_j^k,\qquad
  \mathrm{Var}(\overline q)=\sum_{j\ne0}\tfrac{|\hat w_j|^2}{N^2}\Re c_P(\lambda_j),\qquad
  \hat\upsilon^2=\sum_{j\ne0}\tfrac{|\hat w_j|^2}{N^2}\Re\tfrac{1+\lambda_j}{1-\lambda_j},$$
with $c_P(\lambda)=\frac1P[1+2\sum_{k<P}(1-\frac kP)\lambda^k]$. A uniform increment makes the rounds independent; with
N = 2 it is the two-state Markov chain. All clients have the same variance, and the process is stationary.

For one window at all points at once, $F_n=f+h_n$ on a line, where $h_n'$ takes every balanced pattern of signs at some
point. Then the root of the largest left side of (7) is $\sum_n|k_n-m|/P$ for the clients' numbers of rounds $k_n$ and
an upper median m of them, with an exact law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, factorial
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.papers.arbitrary_participation.likely import ONE_WINDOW
from fedbounds.bounds.theory.symbols import Domain
from fedbounds.empirical.falsification.instances.population import LeftSide, Population, perturb, shake
from fedbounds.empirical.falsification.instances.ranges import Range, cancels, counts, nonnegative, reals, sums_to
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides


@dataclass(frozen=True, eq=False)
class FairCoins(Population):
    """B settings of two clients that toss for their weights."""

    measured: ClassVar[LeftSide] = "exact law"

    interval: Annotated[np.ndarray, counts()]  # P, (B,)
    windows: Annotated[np.ndarray, counts()]  # K, (B,)
    failure: Annotated[np.ndarray, Range(Domain(0, 1, low_open=True, high_open=True))]  # c, (B,)
    swing: Annotated[np.ndarray, Range(Domain(0, 0.5, low_open=True))]  # h in (0, 1/2], (B,)

    def mutate(self, rng: np.random.Generator) -> Self:
        return replace(
            self,
            interval=np.clip(np.rint(perturb(self.interval * 1.0, rng)), 1, self.interval.max()).astype(int),
            windows=np.clip(np.rint(perturb(self.windows * 1.0, rng)), 1, self.windows.max()).astype(int),
            failure=np.clip(perturb(self.failure, rng), 1e-4, 0.999),
            swing=np.minimum(perturb(self.swing, rng), 0.5),
        )

    def constants(self) -> dict[str, np.ndarray]:
        """Those of the propositions' forms, with d = 1, (B, 1)."""
        h, one = self.swing, np.ones(len(self))
        found = {"N": 2 * one, "d": one, "P": self.interval * one, "c": self.failure, "S": one, "theta": 0.9 * one}
        found |= {
            "T": self.interval * self.windows * one,
            "upsilon": h,
            "upsilonhat": h,
            "windowvar": h**2 / self.interval,
        }
        return {name: value[:, None] for name, value in found.items()}


def failure_of_all(z: FairCoins, bound: np.ndarray) -> np.ndarray:
    """The probability that one of the K windows is above the bound, (B,)."""
    one = np.array([_window(z, b, bound[b]) for b in range(len(z))])
    with np.errstate(divide="ignore"):  # a window that is surely above: log(0)
        return -np.expm1(z.windows * np.log1p(-np.minimum(one, 1)))


def _window(z: FairCoins, b: int, bound: float) -> float:
    values, law = _squares(int(z.interval[b]))
    return float(law[(2 * z.swing[b]) ** 2 * values / z.interval[b] ** 2 > bound * (1 + 1e-12)].sum())


def _squares(P: int) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers $(2X-P)^2$ and their probabilities."""
    x = np.arange(P + 1)
    return (2 * x - P) ** 2, np.array([comb(P, int(k)) for k in x]) / 2**P


def failure_of_average(z: FairCoins, bound: np.ndarray) -> np.ndarray:
    """The probability that the average over the K windows is above the bound, (B,)."""
    return np.array([_average(z, b, bound[b]) for b in range(len(z))])


def _average(z: FairCoins, b: int, bound: float) -> float:
    P, K = int(z.interval[b]), int(z.windows[b])
    values, law = _squares(P)
    one = np.zeros(P**2 + 1)
    np.add.at(one, values, law)
    total = np.ones(1)
    for _ in range(K):
        total = np.convolve(total, one)
    average = (2 * z.swing[b]) ** 2 * np.arange(len(total)) / (K * P**2)
    return float(total[average > bound * (1 + 1e-12)].sum())


def tail_sides(claim: Claim, z: FairCoins) -> Sides:
    """The probability of failure against c."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    names = {a.name for a in claim.assumptions}
    # by construction: coins are fair and independent, the weights 1/2 + h and 1/2 - h
    unknown = names - {"bounded-divergence", "unbiased-sampling", "independent-rounds", "strongly-mixing", "weights"}
    unknown -= {"window-variance", "weights-at-most", "jointly-independent-rounds"}  # no weight is above 1 = 1/S
    values = z.constants()
    parts = compile_form(subject.form).parts(values)
    bound = np.broadcast_to(sum(parts.terms), (len(z), 1))[:, 0]
    average = (subject.form.measure or subject.result.measure).of.startswith("average")
    left = (failure_of_average if average else failure_of_all)(z, bound)
    covered = np.logical_and.reduce([np.full((len(z), 1), not unknown), *parts.holds])
    unmet = f"not checkable here: {', '.join(sorted(unknown))}" if unknown else ""
    sides, met = {"probability": z.failure[:, None]}, {name: name not in unknown for name in names}
    return Sides(left[:, None], sides, covered, 1e-13, unmet, z.describe, values, met)


def draw_coins(rng: np.random.Generator, B: int, most_windows: int, longest: int) -> FairCoins:
    """Random settings."""
    return FairCoins(
        rng.integers(1, longest + 1, size=B),
        rng.integers(1, most_windows + 1, size=B),
        10.0 ** rng.uniform(-2, -0.1, size=B),
        np.where(rng.random(B) < 0.5, 0.5, rng.uniform(0.01, 0.5, size=B)),
    )


def coin_populations(claim: Claim, cells: int) -> Iterator[FairCoins]:
    """Random windows, probabilities and weights; few and short windows where an average must be convolved."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    average = (subject.form.measure or subject.result.measure).of.startswith("average")
    yield draw_coins(np.random.default_rng(53), 4 * cells, *((6, 12) if average else (300, 60)))


TAILS = InstanceTest(coin_populations, tail_sides)


# By construction: one client takes part, drawn uniformly in every round anew, and d = 1
KNOWN = {"bounded-divergence", "unbiased-sampling", "independent-rounds", "jointly-independent-rounds", "weights"}


@lru_cache(maxsize=256)
def law_of_largest(clients: int, rounds: int) -> tuple[Fraction, ...]:
    r"""The probabilities that $\sum_n|k_n-m|$ is 0, 1, ..., P, for an even number of clients."""
    N, P, half = clients, rounds, clients // 2

    def powers(series: list[int], largest: int) -> list[list[int]]:
        found = [[int(k == 0) for k in range(P + 1)]]
        for _ in range(largest):
            found.append([sum(comb(k, i) * found[-1][i] * series[k - i] for i in range(k + 1)) for k in range(P + 1)])
        return found

    ways = [0] * (P + 1)
    for m in range(P // half + 1):
        below = powers([int(k < m) for k in range(P + 1)], half)
        at = powers([int(k == m) for k in range(P + 1)], N)
        above = powers([int(k > m) for k in range(P + 1)], half - 1)
        for a, b in product(range(half + 1), range(1, N + 1)):
            g = N - a - b
            if a + b <= half or g < 0:  # the upper median is not m
                continue
            who = factorial(N) // (factorial(a) * factorial(b) * factorial(g))
            for low in range(P - b * m + 1):
                high = P - b * m - low
                count = comb(P, low) * comb(P - low, high) * below[a][low] * at[b][b * m] * above[g][high]
                if count:
                    ways[(a * m - low) + (high - g * m)] += who * count
    return tuple(Fraction(w, N**P) for w in ways)


@dataclass(frozen=True, eq=False)
class Patterns(Population):
    """B settings of one client a round."""

    measured: ClassVar[LeftSide] = "exact law"

    clients: Annotated[np.ndarray, Range(Domain(2, 50, integer=True))]  # N, even, (B,)
    interval: Annotated[np.ndarray, counts(most=150)]  # P, (B,)
    failure: Annotated[np.ndarray, Range(Domain(0, 1, low_open=True, high_open=True))]  # c, (B,)

    def rules(self) -> dict[str, np.ndarray]:
        return {"the number of clients is even": self.clients % 2 == 0}

    def mutate(self, rng: np.random.Generator) -> Self:
        interval = np.clip(np.rint(perturb(self.interval * 1.0, rng)), 1, self.interval.max()).astype(int)
        return replace(self, interval=interval, failure=np.clip(perturb(self.failure, rng), 1e-4, 0.999))

    def constants(self) -> dict[str, np.ndarray]:
        """Those of Proposition 4.7's forms, (B, 1)."""
        N, one = self.clients * 1.0, np.ones(len(self))
        found = {"N": N, "d": one, "P": self.interval * one, "T": self.interval * one, "c": self.failure}
        found["upsilon"] = np.sqrt(N - 1) / N
        return {name: value[:, None] for name, value in found.items()}

    def failure_of(self, bound: np.ndarray) -> np.ndarray:
        """The probability that the largest left-hand side is above the bound, (B,)."""
        found = []
        for N, P, most in zip(self.clients, self.interval, bound, strict=True):
            law = law_of_largest(int(N), int(P))
            found.append(float(sum(p for k, p in enumerate(law) if k**2 > most * (1 + 1e-12) * int(P) ** 2)))
        return np.array(found)


def pattern_sides(claim: Claim, z: Patterns) -> Sides:
    """The probability of failure against c."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    names, values = {a.name for a in claim.assumptions}, z.constants()
    unknown = names - KNOWN
    parts = compile_form(subject.form).parts(values)
    bound = np.broadcast_to(sum(parts.terms), (len(z), 1))[:, 0]
    covered = np.logical_and.reduce([np.full((len(z), 1), not unknown), *parts.holds])
    unmet = f"not checkable here: {', '.join(sorted(unknown))}" if unknown else ""
    left, met = z.failure_of(bound)[:, None], {name: name in KNOWN for name in names}
    return Sides(left, {"probability": z.failure[:, None]}, covered, 1e-13, unmet, z.describe, values, met)


def draw_patterns(claim: Claim, cells: int) -> Iterator[Patterns]:
    """Two to eight clients and short windows."""
    rng, B = np.random.default_rng(57), 4 * cells
    yield Patterns(2 * rng.integers(1, 5, size=B), rng.integers(1, 25, size=B), 10.0 ** rng.uniform(-2, -0.1, size=B))


PATTERNS = InstanceTest(draw_patterns, pattern_sides)


LONG = 1024, 4096  # two windows from which the limit of an asymptotic claim is taken
SOON = 0.98  # correlations up to this size have died out after the shorter one


@dataclass(frozen=True, eq=False)
class ShiftProcesses(Population):
    """B processes of N clients."""

    base: Annotated[np.ndarray, nonnegative("N")]  # w, nonnegative with sum 1, (B, N)
    increments: Annotated[np.ndarray, nonnegative("N")]  # p, a law on the N shifts, (B, N)
    slopes: Annotated[np.ndarray, reals("N d")]  # the clients' offsets from grad f, zero mean, (B, N, d)
    interval: Annotated[np.ndarray, counts()]  # P, (B,)

    def rules(self) -> dict[str, np.ndarray]:
        return {
            "the weights sum to one": sums_to(self.base, 1),
            "the law of the increments sums to one": sums_to(self.increments, 1),
            "the slopes sum to zero": cancels(self.slopes),
        }

    def mutate(self, rng: np.random.Generator) -> Self:
        base, increments = perturb(self.base, rng), perturb(self.increments, rng)
        slopes = shake(self.slopes, rng)
        return replace(
            self,
            base=base / base.sum(axis=1, keepdims=True),
            increments=increments / increments.sum(axis=1, keepdims=True),
            slopes=slopes - slopes.mean(axis=1, keepdims=True),
            interval=np.maximum(1, np.rint(perturb(self.interval * 1.0, rng))).astype(int),
        )

    @property
    def correlation(self) -> np.ndarray:
        r"""$\lambda_j$ for $j\ne0$, (B, N-1)."""
        return np.fft.fft(self.increments, axis=1)[:, 1:]

    @property
    def power(self) -> np.ndarray:
        r"""$|\hat w_j|^2$ for $j\ne0$, (B, N-1)."""
        return np.abs(np.fft.fft(self.base, axis=1)[:, 1:]) ** 2

    def independent(self) -> np.ndarray:
        """Whether the rounds are independent, (B,)."""
        return np.abs(self.increments - 1 / self.base.shape[1]).max(axis=1) < 1e-12

    def mixing(self) -> np.ndarray:
        """Whether every frequency that the weights have dies out, geometrically, (B,)."""
        return ((np.abs(self.correlation) < 1 - 1e-6) | (self.power == 0)).all(axis=1)

    def constants(self, interval: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """N, d, P and the exact deviations of the weights, (B, 1)."""
        P = self.interval if interval is None else interval
        N = self.base.shape[1]
        share, lam = self.power / N**2, self.correlation
        with np.errstate(divide="ignore", invalid="ignore"):
            long_run = np.where(self.power > 0, share * ((1 + lam) / (1 - lam)).real, 0).sum(axis=1)
        found = {
            "N": np.full(len(self), float(N)),
            "P": P * 1.0,
            "d": np.sqrt((self.slopes**2).sum(axis=2).max(axis=1)),
            "upsilon": np.sqrt(share.sum(axis=1)),
            "upsilonhat": np.sqrt(np.maximum(long_run, 0)),
            "windowvar": (share * window_factor(lam, P)).sum(axis=1),
        }
        return {name: value[:, None] for name, value in found.items()}

    def expected_window(self, interval: np.ndarray | None = None) -> np.ndarray:
        r"""$\mathbb E\|\sum_n\overline{q^n}b_n\|^2$ exactly, (B, 1)."""
        P = self.interval if interval is None else interval
        N = self.base.shape[1]
        size = (np.abs(np.fft.fft(self.slopes, axis=1)[:, 1:]) ** 2).sum(axis=2)
        return (size * self.power / N**2 * window_factor(self.correlation, P)).sum(axis=1)[:, None]


def window_factor(correlation: np.ndarray, interval: np.ndarray) -> np.ndarray:
    r"""The real part of $c_P(\lambda)$: in closed form, and by summation where that cancels, (B, J)."""
    P = np.broadcast_to(interval[:, None], correlation.shape)
    away = 1 - correlation
    near = P * np.abs(away) < 0.05
    away = np.where(near, 1.0, away)
    factor = ((2 - away) / away - 2 * correlation * (1 - correlation**P) / (P * away**2)) / P
    for b, j in np.argwhere(near):
        lag = np.arange(1, int(P[b, j]))
        factor[b, j] = (1 + 2 * ((1 - lag / P[b, j]) * correlation[b, j] ** lag).sum()) / P[b, j]
    return factor.real


def draw_processes(rng: np.random.Generator, B: int, N: int) -> ShiftProcesses:
    """Random processes: a third with independent rounds, a third that mostly move on by one, a third any."""
    kind = rng.integers(3, size=(B, 1))
    onward, one = rng.uniform(0, 1, (B, 1)), np.eye(N)[1 % N]
    lazy = onward * one + (1 - onward) * np.eye(N)[0]
    walk = np.select([kind == 0, kind == 1], [np.full((B, N), 1 / N), lazy], rng.dirichlet(np.ones(N), size=B))
    base = rng.dirichlet(np.full(N, 0.4), size=B)
    base = np.where(rng.random((B, 1)) < 0.4, np.eye(N)[0], base)
    slopes = rng.normal(size=(B, N, int(rng.integers(1, 4))))
    slopes -= slopes.mean(axis=1, keepdims=True)
    return ShiftProcesses(base, walk, slopes, rng.integers(1, 40, size=B))


def process_sides(claim: Claim, z: ShiftProcesses) -> Sides:
    """A bound on the expected window divergence; where it is asymptotic, its limit."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    form, names = subject.form, {a.name for a in claim.assumptions}
    mixing, always = z.mixing(), np.ones(len(z), dtype=bool)
    # by construction: a walk that starts anywhere brings every client its mean; the symbols are those of the process
    known = dict.fromkeys(("bounded-divergence", "unbiased-sampling", "weights", "window-variance"), always)
    known |= {"independent-rounds": z.independent(), "strongly-mixing": mixing, "ergodic": mixing}
    unknown = names - set(known)
    met = {name: known.get(name, ~always) for name in names}
    covered = np.logical_and.reduce([always, *met.values()])
    note = f"not checkable here: {', '.join(sorted(unknown))}" if unknown else ""
    if form.asymptotic and not {"independent-rounds", "strongly-mixing", "ergodic"} & names:
        note = "no assumption says that the limit exists"
        covered[:] = False
    left, interval = z.expected_window(), z.interval
    if form.asymptotic:
        left, interval = limit_of_windows(z), np.full(len(z), LONG[1])
        covered &= (np.abs(z.correlation) < SOON).all(axis=1)
    values = z.constants(interval)
    parts = compile_form(form).parts(values)
    terms = {t.name: np.broadcast_to(v, (len(z), 1)) for t, v in zip(form.terms, parts.terms, strict=True)}
    d2 = values["d"] ** 2

    def describe(b: int) -> dict[str, Any]:
        return z.describe(b) | {"interval": int(interval[b])}

    return Sides(left, terms, covered[:, None], 1e-14 * d2, note, describe, values, met)


def limit_of_windows(z: ShiftProcesses) -> np.ndarray:
    r"""$\lim_{P\to\infty}P\,\mathbb E\,\mathrm{LHS}(7)$, over the longer window's P, (B, 1)."""
    short, long = (P * z.expected_window(np.full(len(z), P)) for P in LONG)
    return (LONG[1] * long - LONG[0] * short) / (LONG[1] - LONG[0]) / LONG[1]


def vanishing_sides(z: ShiftProcesses) -> Sides:
    """Proposition 4.4 on stationary processes: a window of 4096 rounds against a hundredth of a window of one."""
    one, long = (z.expected_window(np.full(len(z), P)) for P in (1, 4096))
    slow = (np.abs(1 - z.correlation) < 0.05).any(axis=1)  # vanishes too, but later
    return Sides(long, {"limit": 0.0 * one}, (z.mixing() & ~slow)[:, None], one / 100 + 1e-14, "", z.describe)


@dataclass(frozen=True, eq=False)
class HeldCoins(Population):
    r"""One of two clients through a whole block, by a fair coin; block j is $\lceil j^\theta\rceil$ rounds long."""

    growth: Annotated[np.ndarray, nonnegative()]  # $\theta\ge0$, (B,)

    def mutate(self, rng: np.random.Generator) -> Self:
        return replace(self, growth=perturb(self.growth, rng))

    def lengths(self, rounds: int) -> list[np.ndarray]:
        """The blocks' lengths until they fill this many rounds, one array per instance."""
        every = [np.ceil(np.arange(1, rounds + 1) ** g) for g in self.growth]
        return [np.minimum(a[: int(np.searchsorted(np.cumsum(a), rounds)) + 1], rounds) for a in every]

    def variance(self, interval: int) -> np.ndarray:
        r"""Of a weight's mean over the first P rounds, of which block j has $m_j$: $\frac14\sum_jm_j^2/P^2$, (B,)."""
        sums = [((np.diff(np.minimum(np.cumsum(a), interval), prepend=0)) ** 2).sum() for a in self.lengths(interval)]
        return np.array(sums) / (4 * interval**2)

    def latest_variance(self, interval: int) -> np.ndarray:
        """The largest over all starts: blocks grow without end, so that some window lies within one; (B,)."""
        return np.where(self.growth > 0, 0.25, 1 / (4 * interval))

    def sides(self) -> Sides:
        r"""Is $\sup_{t_0}\mathbb E\,\mathrm{LHS}(7)$, with $d=1$, small on a long window, if from $t_0=0$ it is?"""
        decays = [self.variance(P) for P in (16, 256, 4096)]
        covered = (decays[1] < decays[0]) & (decays[2] < decays[1]) & (decays[2] < 0.05)
        left = 4 * self.latest_variance(4096)[:, None]
        return Sides(left, {"limit": 0 * left}, covered[:, None], 0.1, "", self.describe)


def vanishing(claim: Claim, z: ShiftProcesses | HeldCoins) -> Sides:
    """Proposition 4.4 as printed: a limit that is uniform in the window's start."""
    sides = z.sides() if isinstance(z, HeldCoins) else vanishing_sides(z)
    return replace(sides, met={a.name: sides.covered[:, 0] for a in claim.assumptions})


def draw_vanishing(claim: Claim, cells: int) -> Iterator[ShiftProcesses | HeldCoins]:
    """Stationary processes, and coins that are held for longer and longer, or not."""
    rng = np.random.default_rng(48)
    for N in (2, 3, 5):
        yield draw_processes(rng, 60, N)
    yield HeldCoins(rng.choice([0.0, 0.5, 1.0], size=6))


def process_populations(claim: Claim, cells: int) -> Iterator[ShiftProcesses]:
    """Random shift processes of 1 to 6 clients."""
    rng = np.random.default_rng(47)
    for _ in range(max(6, cells // 3)):
        yield draw_processes(rng, 60, int(rng.integers(1, 7)))


def trial_of(claim: Claim) -> InstanceTest:
    """How a form of Propositions 4.4, 4.6 or 4.7 is tried."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    if claim.id.endswith("proposition-4.4[printed]"):
        return InstanceTest(draw_vanishing, vanishing)
    if (subject.form.measure or subject.result.measure) == ONE_WINDOW:
        return PATTERNS
    return TAILS if "probability" in (subject.form.measure or subject.result.measure).given else PROCESSES


PROCESSES = InstanceTest(process_populations, process_sides)
