"""What the proofs of Section 4 of Wang & Ji (2022) take from definitions and from probability, on numbers.

Windows with random mean weights, the law of a cohort over every sequence of rounds, and the tail of a binomial mean.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations, product
from math import comb, lgamma

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf, measure_symbol
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.proof import likely, window
from fedbounds.bounds.papers.arbitrary_participation.proof import likely as at_all_points
from fedbounds.bounds.papers.arbitrary_participation.proof import participation as section_4
from fedbounds.bounds.participation.window_variance import without_replacement_variance
from fedbounds.empirical.falsification.instances.premises import PremiseCases

B = 60
MET = frozenset(
    {
        "weights", "bounded-divergence", "unbiased-sampling", "independent-rounds", "jointly-independent-rounds",
        "weights-at-most", "window-variance",
    }
)  # fmt: skip


def windows(claim: Claim) -> Iterator[PremiseCases]:
    """Offsets v_n of the gradients, which sum to zero, and the clients' mean weights, which sum to one."""
    rng = np.random.default_rng(193)
    by_deviation = "median" in claim.id
    equal = claim.id == "arbitrary-participation/proposition-4.2/D2"
    for N in (2, 4, 5):
        v = rng.normal(size=(B, N, 2)) * rng.choice([0.1, 1.0, 10.0], size=(B, N, 1))
        v -= v.mean(axis=1, keepdims=True)
        q = rng.dirichlet(np.full(N, 0.4), size=B)
        q[:N] = np.eye(N)
        q = np.full((B, N), 1 / N) if equal else q
        median = np.median(q, axis=1, keepdims=True)
        over = np.abs(q - median) if by_deviation else np.full((B, N), 1 / N)
        over = over / over.sum(axis=1, keepdims=True)
        vectors = {"qv": q[:, :, None] * v, "v": v, "sv": np.sign(q - median)[:, :, None] * v}
        values = {
            f"<{a},{b}>": (over * (vectors[a] * vectors[b]).sum(axis=2)).sum(axis=1, keepdims=True)
            for a, b in (("qv", "qv"), ("qv", "v"), ("v", "v"), ("sv", "sv"))
        }
        for name, mean in (
            ("mqv", vectors["qv"].mean(axis=1)),
            ("msv", (over[:, :, None] * vectors["sv"]).sum(axis=1)),
        ):
            values[f"<{name},{name}>"] = (mean**2).sum(axis=1, keepdims=True)
        values[at_all_points.LARGEST2.name] = ((q[:, :, None] * v).sum(axis=1) ** 2).sum(axis=1, keepdims=True)
        largest = np.sqrt((v**2).sum(axis=2).max(axis=1, keepdims=True))
        met = MET | {"regularized"} if equal else MET
        yield PremiseCases(values | {"qbar": q, "d": largest, "N": np.full((B, 1), float(N))}, met=met)


def exchanged(claim: Claim) -> Iterator[PremiseCases]:
    """Two draws of one round's weights, and the offsets of the gradients; the bracket weighs by their mean."""
    rng = np.random.default_rng(197)
    for N in (2, 3, 6):
        v = rng.normal(size=(B, N, 2)) * rng.choice([0.1, 1.0, 10.0], size=(B, N, 1))
        v -= v.mean(axis=1, keepdims=True)
        q, other = rng.dirichlet(np.full(N, 0.3), size=(2, B))
        q[:N], other[:N] = np.eye(N), np.roll(np.eye(N), 1, axis=1)
        total, ahead = q + other, q - other
        share = np.divide(ahead, total, out=np.zeros_like(total), where=total > 0)
        squared = (v**2).sum(axis=2)
        P = rng.integers(1, 4, B).astype(float)
        redrawn = q - ahead / P[:, None]
        before, after = (np.sqrt(((w[:, :, None] * v).sum(axis=1) ** 2).sum(axis=1)) for w in (q, redrawn))
        numbers = {
            at_all_points.MOVES.name: np.abs(before - after),
            "P": P,
            "<ev,ev>": (total / 2 * share**2 * squared).sum(axis=1),
            "<mev,mev>": ((ahead[:, :, None] / 2 * v).sum(axis=1) ** 2).sum(axis=1),
            "d": np.sqrt(squared.max(axis=1)),
            at_all_points.DEVIATIONS.name: ((q - 1 / N) ** 2).sum(axis=1),
            "N": np.full(B, float(N)),
        }
        yield PremiseCases({name: value[:, None] for name, value in numbers.items()}, met=MET)


def logarithms(claim: Claim) -> Iterator[PremiseCases]:
    """Probabilities of failure."""
    yield PremiseCases({"c": np.logspace(-9, -0.01, 30)[:, None]}, met=MET)


def cohorts(claim: Claim) -> Iterator[PremiseCases]:
    """S of N clients in each of P rounds, without replacement: every sequence of cohorts, all equally likely."""
    for N, S, P in ((2, 1, 1), (2, 1, 5), (3, 1, 3), (4, 2, 3), (4, 3, 2), (3, 3, 2)):
        rounds = np.array([[1 / S if n in chosen else 0.0 for n in range(N)] for chosen in combinations(range(N), S)])
        means = np.array([sum(choice) / P for choice in product(rounds, repeat=P)])
        offsets = np.arange(N) - (N - 1) / 2
        way = np.abs(means @ offsets)  # |sum_n qbar_n v_n|
        values = {
            section_4.MEAN_SQUARES.name: ((means - 1 / N) ** 2).sum(axis=1).mean(),
            section_4.VARIANCE.name: means.var(axis=0).max(),
            at_all_points.ROUND.name: ((rounds - 1 / N) ** 2).sum(axis=1).mean(),
            at_all_points.MEAN.name: way.mean(),
            at_all_points.MEAN2.name: (way**2).mean(),
            section_4.E7.name: (way**2).mean(),
            "d": np.abs(offsets).max(),
            "windowvar": without_replacement_variance(N, S, P),
            "upsilon": np.sqrt(rounds.var(axis=0).max()),
            "N": N,
            "P": P,
        }
        yield PremiseCases({name: np.full((1, 1), float(v)) for name, v in values.items()}, met=MET)


def tails(claim: Claim) -> Iterator[PremiseCases]:
    """Two groups of S clients, one of which takes part in each of P rounds, by a fair coin: its tail, exactly."""
    for P in (1, 10, 200, 3000):
        heads = np.arange(P + 1)
        law = np.exp([lgamma(P + 1) - lgamma(k + 1) - lgamma(P - k + 1) - P * np.log(2) for k in heads])
        for S in (1, 3) if "/D7" in claim.id else (1,):
            squares = ((heads / P - 1 / 2) / S) ** 2
            order = np.argsort(squares)
            beyond = 1 - np.cumsum(law[order])  # that the squared deviation is more
            for c in (0.5, 0.1, 1e-3, 1e-8):
                likely = squares[order][np.argmax(beyond <= c * (1 + 1e-9))]
                numbers = {section_4.TAIL.name: likely, "c": c, "P": P, "S": S, "N": 2 * S, "d": 1.5}
                numbers[section_4.LIKELY.name] = (1.5 * 2 * S) ** 2 * likely  # the groups' offsets are -d and d
                theta = np.linspace(0.05, 0.95, 19)[:, None]
                yield PremiseCases(
                    {k: np.full((19, 1), float(v)) for k, v in numbers.items()} | {"theta": theta}, met=MET
                )


def seldom(claim: Claim) -> Iterator[PremiseCases]:
    """One of two clients alone, either of them, with a probability just above c in a window of one round, else both."""
    for c in (0.5, 0.1, 1e-4):
        law = np.array([c / 2, c / 2, 1 - c]) * (1 + 1e-12 * np.array([1, 1, -2 * c]))
        weights = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        way = (weights @ np.array([-1.5, 1.5])) ** 2
        variance = law @ (weights[:, 0] - 0.5) ** 2
        numbers = {
            section_4.LIKELY.name: way.max(),
            section_4.E7.name: law @ way,
            "windowvar": variance,
            "upsilon": np.sqrt(variance),
            "N": 2,
            "P": 1,
            "d": 1.5,
            "c": c,
        }
        yield PremiseCases({k: np.full((1, 1), float(v)) for k, v in numbers.items()}, met=MET)


def coins(claim: Claim) -> Iterator[PremiseCases]:
    """P fair coins, each of which moves the distance by 2d/P: its mean and its tail, exactly."""
    for P in range(1, 9):
        heads = np.arange(P + 1)
        law = np.array([comb(P, k) for k in heads]) / 2.0**P
        beyond = 1 - np.cumsum(law)  # the probability of more heads
        way = 2 * 1.5 * heads / P
        for c in (0.5, 0.1, 2.0**-P * (1 - 1e-9)):
            numbers = {
                at_all_points.ONE.name: way[np.argmax(beyond <= c)] ** 2,
                "N": P + 1,
                "upsilon": np.sqrt(P) / (P + 1),
                "P": P,
                "d": law @ way,
                "c": c,
            }
            yield PremiseCases({k: np.full((1, 1), float(v)) for k, v in numbers.items()}, met=MET)


def in_a_round(claim: Claim) -> Iterator[PremiseCases]:
    """Gradients at one point, and the weights of the cohorts of some rounds: one client, two, or all."""
    rng = np.random.default_rng(199)
    for N in (2, 3, 5):
        g = rng.normal(size=(B, N, 2)) * rng.choice([0.1, 1.0, 10.0], size=(B, N, 1))
        f = g.mean(axis=1, keepdims=True)
        rounds = [np.eye(N)[n] for n in range(N)] + [(np.eye(N)[0] + np.eye(N)[1]) / 2, np.full(N, 1 / N)]
        means = [(q[:, None] * g).sum(axis=1, keepdims=True) for q in rounds]
        around = [((mean - f) ** 2).sum(axis=(1, 2)) for mean in means]
        within = [(q * ((g - mean) ** 2).sum(axis=2)).sum(axis=1) for q, mean in zip(rounds, means, strict=True)]
        numbers = {
            section_4.ANY_ROUND.name: np.max(around, axis=0),
            section_4.OTHER_ROUND.name: np.max(within, axis=0),
            "d": np.sqrt(((g - f) ** 2).sum(axis=2).max(axis=1)),
        }
        yield PremiseCases({k: v[:, None] for k, v in numbers.items()}, met=MET)


Draw = Callable[[Claim], Iterable[PremiseCases]]
PAPER = "arbitrary-participation"
BY_PLACE: tuple[tuple[str, tuple[str, ...], Draw], ...] = (  # proof, steps (all if none), where they are tried
    (f"{PAPER}/proposition-4.2", ("D1", "D2"), windows),
    (f"{PAPER}/equation-15", ("D1",), windows),
    (f"{PAPER}/equation-15-median", ("D1", "D2", "D3"), windows),
    (f"{PAPER}/proposition-4.1", ("D3", "D4"), in_a_round),
    (f"{PAPER}/proposition-4.4", ("D1", "D2", "D3"), cohorts),
    (f"{PAPER}/proposition-4.6", ("D2",), seldom),
    (f"{PAPER}/proposition-4.7", ("D3",), seldom),
    (f"{PAPER}/proposition-4.7", ("D1",), cohorts),
    (f"{PAPER}/proposition-4.7", ("D4", "D5", "D7"), tails),
    (f"{PAPER}/proposition-4.7-likely", ("H1", "H2", "H3", "H6"), exchanged),
    (f"{PAPER}/proposition-4.7-likely", ("H4",), windows),
    (f"{PAPER}/proposition-4.7-likely", ("H5", "H7", "H8", "H9", "H11"), cohorts),
    (f"{PAPER}/proposition-4.7-likely", ("H13", "H14"), coins),
    (f"{PAPER}/proposition-4.7-likely", ("H17",), logarithms),
)


def premise_cases(subject: StepOf) -> Draw | None:
    """Where a premise of these proofs is tried; None if it has no place here."""
    for proof, steps, draw in BY_PLACE:
        if subject.proof.id == proof and (subject.step.id in steps or not steps):
            return draw
    return None


# --- averages --------------------------------------------------------------------------------------------------------

START = product_symbol("f0", "f0")  # the squared gradient at the start of a window
MEANS: Mapping[sp.Symbol, sp.Expr] = {
    window.LEAST: START,  # no more than the average over the windows
    measure_symbol(OVER_PARTICIPATION): START,
    likely.EVERY: likely.ONE,  # the largest of all windows
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {n.decrease: n.F}
