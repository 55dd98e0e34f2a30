"""Blind searches: which of the paper's errors are found again from its printed claims and stated assumptions alone.

A search knows a printed claim and a class of instances, and no number of a known counterexample. Three classes are
built around the suspicion itself; their description says "(a hint)". Errors without a search are listed with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.falsification.instances.climbing import LIGHT, SearchEffort, climb, search_population
from fedbounds.empirical.falsification.instances.population import Population, perturb, shake
from fedbounds.empirical.falsification.instances.sides import InstanceFinding, Sides, examine
from fedbounds.empirical.papers.arbitrary_participation.instances.claims import draw, form_sides, instance_test

GENERATIONS = 60


@dataclass(frozen=True)
class Sighting:
    """The outcome of a blind search.

    Attributes:
        error: the id of the erratum, or of the statement that an assumption is needed.
        claim: the printed claim that was searched.
        where: the class of instances, in words.
        finding: worst ratio and instance; None if there is no search for it, for the reason in `where`.
    """

    error: str
    claim: str
    where: str
    finding: InstanceFinding | None = None

    @property
    def found(self) -> bool:
        """Whether a covered instance contradicts the printed claim."""
        return self.finding is not None and self.finding.refuted


def stated(key: str, form: str = "printed", without: str = "") -> Claim:
    """The claim of a form under the assumptions that the paper states, all of them or all but one."""
    result = load(f"arbitrary-participation/{key}")
    claim = ResultForm(result, result.form(form)).claim()
    return replace(claim, assumptions=tuple(a for a in claim.assumptions if not a.unstated and a.name != without))


def as_printed(key: str, form: str = "printed") -> InstanceFinding:
    """The ordinary search on the printed claim."""
    claim = stated(key, form)
    how = instance_test(claim)
    assert how is not None
    return search_population(claim, how, LIGHT)


def changing_weights(effort: SearchEffort = LIGHT) -> InstanceFinding:
    """Proposition 4.1, on random weights and offsets only."""
    claim, rng = stated("proposition-4.1"), np.random.default_rng(97)
    found = []
    for _ in range(effort.climbers * 4):
        z = draw(rng, 20, (int(rng.integers(1, 6)), 1, 1, 1, int(rng.integers(1, 6))), rippled=False, wide=False)
        found.append(form_sides(claim, climb(z, lambda y: form_sides(claim, y), GENERATIONS // 3, rng)))
    return examine(found)


def correlated_noise(effort: SearchEffort = LIGHT) -> InstanceFinding:
    """Theorem 3.1 with the proof's constants, where the clients' noise may be correlated: more clients, longer runs."""
    claim = stated("theorem-3.1", "explicit", without="independent-clients")
    rng = np.random.default_rng(71)
    found = []
    for _ in range(effort.climbers * 4):
        N, P = int(rng.integers(2, 25)), int(rng.integers(1, 3))
        z = draw(rng, 20, (N, 1, 1, P, int(rng.integers(20, 80))), rippled=False, wide=False)
        shared = rng.uniform(0, 1, (20, 1, 1)) * (1 - np.eye(N))
        z = replace(z, correlation=np.eye(N) + shared, weights=np.where(rng.random((20, 1, 1)) < 0.5, 1 / N, z.weights))
        found.append(form_sides(claim, climb(z, lambda y: form_sides(claim, y), GENERATIONS, rng)))
    return examine(found)


@dataclass(frozen=True, eq=False)
class NoiseDriven(Population):
    r"""N equal clients $F_n=\frac L2x^2$ on a line, I = P = 1; one takes part, chosen by its noise now and then.

    Attributes:
        smoothness, noise, start: L, sigma and $x_0$, (B,).
        clients, rounds: N and T, (B,).
        preference: probability that the client with the largest noise is chosen, else a uniform one, (B,).
        step, share: $\gamma\eta L$ in (0, 1/2], and $\gamma$ as a share of 1/(12L), (B,).
    """

    smoothness: np.ndarray
    noise: np.ndarray
    start: np.ndarray
    clients: np.ndarray
    rounds: np.ndarray
    preference: np.ndarray
    step: np.ndarray
    share: np.ndarray

    def mutate(self, rng: np.random.Generator) -> Self:
        return replace(
            self,
            smoothness=perturb(self.smoothness, rng),
            noise=perturb(self.noise, rng),
            start=shake(self.start, rng),
            rounds=np.clip(np.rint(perturb(self.rounds, rng)), 2, 1e6),
            preference=np.clip(self.preference + 0.2 * rng.normal(size=len(self)), 0, 1),
            step=np.minimum(perturb(self.step, rng), 0.5),
            share=np.minimum(perturb(self.share, rng), 1),
        )

    def largest(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and second moment of the largest of N standard normals, by quadrature, (B,)."""
        from scipy.special import ndtr

        x = np.linspace(-9, 9, 4001)
        density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        law = self.clients[:, None] * density * ndtr(x) ** (self.clients[:, None] - 1) * (x[1] - x[0])
        return (law * x).sum(axis=1), (law * x**2).sum(axis=1)

    def least_gradient(self) -> np.ndarray:
        """A lower bound on min over t < T of E|grad f(x_t)|^2: the least over all real t in that range, (B, 1)."""
        first, second = self.largest()
        pull = self.preference * first * self.noise
        variance = self.noise**2 * (1 + self.preference * (second - 1)) - pull**2
        keep = 1 - self.step
        rest, limit = -pull / self.smoothness, (self.step / self.smoothness) ** 2 * variance / (1 - keep**2)
        away = self.start - rest  # mean rest + u away and variance limit (1 - u^2), with u = keep^t
        u = -rest * away / np.where(away**2 == limit, 1e-300, away**2 - limit)
        ends = np.stack([np.ones(len(self)), keep ** (self.rounds - 1)])
        points = np.concatenate([ends, np.clip(u, ends[1], ends[0])[None]])
        return (self.smoothness**2 * ((rest + points * away) ** 2 + limit * (1 - points**2))).min(axis=0)[:, None]

    def sides(self, claim: Claim) -> Sides:
        """Theorem 3.1's form at the exact constants: one client a round, no divergence."""
        subject = claim.subject
        assert isinstance(subject, ResultForm)
        gamma, one = self.share / (12 * self.smoothness), np.ones(len(self))
        named = {"L": self.smoothness, "F": self.smoothness * self.start**2 / 2, "sigma": self.noise, "gamma": gamma}
        named |= {"eta": self.step / self.smoothness / gamma, "T": self.rounds, "rho": one, "I": one, "P": one}
        named |= {name: 0 * one for name in ("nu", "beta", "delta")}
        parts = compile_form(subject.form).parts({name: value[:, None] for name, value in named.items()})
        covered = np.logical_and.reduce(parts.holds)
        terms = {t.name: v for t, v in zip(subject.form.terms, parts.terms, strict=True)}
        return Sides(self.least_gradient(), terms, covered, 0.0, "", self.describe)


def noise_driven() -> InstanceFinding:
    """Theorem 3.1 with the proof's constants, where participation may look at the noise."""
    claim = stated("theorem-3.1", "explicit", without="exogenous-participation")
    rng, B = np.random.default_rng(73), 60
    z = NoiseDriven(
        10 ** rng.uniform(-1, 1, B), 10 ** rng.uniform(-1, 1, B), rng.normal(size=B), rng.integers(2, 10, B),
        np.floor(10 ** rng.uniform(1, 4, B)), rng.uniform(0, 1, B), 10 ** rng.uniform(-3, -0.4, B),
        rng.uniform(0, 1, B),
    )  # fmt: skip
    return examine([climb(z, lambda y: y.sides(claim), GENERATIONS, rng).sides(claim)])


def literal_recursion() -> InstanceFinding:
    """(C.9) unrolled over a window, against the unrolled sum that has S_t of the current round throughout."""
    rng, B = np.random.default_rng(83), 400
    found = []
    for I, P in ((1, 2), (2, 3), (3, 5)):
        squares = rng.uniform(0.05, 1, (B, P))
        rho2, ratio = squares.max(axis=1, keepdims=True), 1 + 5 / (9 * (I * P - 0.5))
        powers = ratio ** np.arange(I * P - I + 1)[::-1]  # up to the first step of the last round
        own = np.repeat(rho2 + (1 - squares) / (6 * P), I, axis=1)[:, : len(powers)]
        now = rho2 + (1 - squares[:, -1:]) / (6 * P)
        left, right = (own @ powers)[:, None], now * powers.sum()

        def describe(b: int, squares: np.ndarray = squares, I: int = I) -> dict[str, Any]:
            return {"sum_of_squares": squares[b].tolist(), "I": I}

        found.append(Sides(left, {"noise": right}, np.ones((B, 1), dtype=bool), 0.0, "", describe))
    return examine(found)


def whole_interval() -> InstanceFinding:
    """Corollary 4.8's conditions, against Corollary 3.3's condition at the next whole P: 4LIP^2F/rho^2 <= T."""
    rng, B = np.random.default_rng(89), 2000
    N = rng.integers(2, 12, B)
    S, I, T = (
        np.maximum(1, np.floor(rng.uniform(0, 1, B) * N)),
        rng.integers(1, 5, B),
        np.floor(10 ** rng.uniform(1, 6, B)),
    )
    upsilon2 = (N - S) / (S * N**2)
    with np.errstate(divide="ignore"):
        root = np.where(S < N, 1 / np.sqrt(S) / (2 * upsilon2 * N**2.5 * I), 0)  # sqrt(LF) at the cap on I
    exact = upsilon2 * N**2.5 * np.sqrt(I * T)
    P = np.ceil(exact)
    covered = (S < N) & (4 * upsilon2**2 * I * N**5 <= T) & (exact >= 1)
    named = {"N": N, "S": S, "I": I, "T": T, "LF": root**2}

    def describe(b: int) -> dict[str, Any]:
        return {name: float(value[b]) for name, value in named.items()}

    left = (4 * root**2 * I * P**2 * S)[:, None]
    return examine([Sides(left, {"rounds": T[:, None]}, covered[:, None], 0.0, "", describe)])


SEARCHES: Mapping[str, tuple[str, str, Callable[[], InstanceFinding]]] = {
    "suprema-at-different-rounds": (
        "proposition-4.1[printed]", "random weights and offsets", changing_weights,
    ),
    "one-window-is-not-all-windows": (
        "proposition-4.7[printed:probability]", "two clients that toss a coin; window, number of windows and c",
        lambda: as_printed("proposition-4.7", "printed:probability"),
    ),
    "chebyshev-for-one-window": (
        "proposition-4.6[printed:probability]", "two clients that toss a coin; window, number of windows and c",
        lambda: as_printed("proposition-4.6", "printed:probability"),
    ),
    "ergodic-but-not-uniformly": (
        "proposition-4.4[printed]", "walks, and (a hint) coins held for growing blocks",
        lambda: as_printed("proposition-4.4"),
    ),
    "independent-noise-is-needed": (
        "theorem-3.1[explicit]", "quadratics whose noise is correlated over clients", correlated_noise,
    ),
    "exogenous-participation-is-needed": (
        "theorem-3.1[explicit]", "(a hint) equal clients, one chosen by its noise now and then", noise_driven,
    ),
    "earlier-rounds-in-lemma-c.2": ("lemma-c.2", "sums of squared weights round by round", literal_recursion),
    "interval-is-not-a-whole-number": ("corollary-4.8[printed]", "N, S, I and T at the cap on I", whole_interval),
}  # fmt: skip
NOT_SEARCHED: Mapping[str, tuple[str, str]] = {
    "noise-with-memory": ("theorem-3.1[explicit]", "the moments here are of noise without memory"),
    "vanishing-long-run-variance": ("proposition-4.6[printed]", "no walk here is the difference of a sequence"),
    "lost-weight-variance": ("table-1-independent[printed:probability]", "an order in S and N: algebra"),
    "step-size-with-a-unit": ("corollary-3.3[printed]", "a unit: the dimension checker finds it"),
}


def blind_test() -> tuple[Sighting, ...]:
    """Every search, and every error for which there is none."""
    looked = tuple(Sighting(error, claim, where, look()) for error, (claim, where, look) in SEARCHES.items())
    return looked + tuple(Sighting(error, claim, why) for error, (claim, why) in NOT_SEARCHED.items())
