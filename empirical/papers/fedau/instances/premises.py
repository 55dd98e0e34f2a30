"""What the proofs of Wang & Ji (2024) take from assumptions, definitions and the law of the weights, on numbers.

Algorithm 2 runs on every record of participation; its weights, intervals and their chances give every symbol.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.fedau.notation import NOTATION
from fedbounds.bounds.papers.fedau.proof import descent, theorem
from fedbounds.bounds.papers.fedau.proof import weights as of_weights
from fedbounds.bounds.papers.fedau.proof.exponentials import Tangent
from fedbounds.bounds.papers.fedau.proof.theorem import OMEGA_T
from fedbounds.bounds.papers.fedau.proof.whole_numbers import Cases
from fedbounds.empirical.falsification.instances.averages import AveragingRun, Builder, SymbolValues, value
from fedbounds.empirical.falsification.instances.premises import PremiseCases
from fedbounds.empirical.papers.fedau.instances.intervals import draw_intervals
from fedbounds.empirical.papers.fedau.instances.records import draw_recorded, every_record, weights_of

RATES = np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.95, 1.0])[:, None]
LAW = frozenset({"cut-off-geometric", "fedau-weights", "bernoulli-participation"})
KNOWN = frozenset(
    {"constant-weights", "inverse-rates", "equal-rates", "nearly-optimal-weights", "sure-Q", "bounded-gradient"}
)

# --- vectors: Lemma B.3.1 --------------------------------------------------------------------------------------------


def divergences(claim: Claim) -> Iterator[PremiseCases]:
    """Gradients of N clients at one point, their mean and their mean with the weights varphi."""
    rng = np.random.default_rng(149)
    for N in (2, 2, 3, 5):
        B, d = 60, int(rng.integers(1, 4))
        g = rng.normal(size=(B, N, d)) * rng.choice([0.1, 1.0, 10.0], size=(B, N, 1))
        phi = rng.dirichlet(np.full(N, 0.3), size=B)
        phi[: N * 4] = np.tile(np.eye(N), (4, 1))
        f, weighted = g.mean(axis=1, keepdims=True), (phi[:, :, None] * g).sum(axis=1, keepdims=True)
        products = inner_products({"gn": g, "gf": f, "gt": weighted})
        delta = np.sqrt(((g - f) ** 2).sum(axis=2).max(axis=1, keepdims=True))
        met = frozenset({"bounded-divergence", "objective-weights"})
        yield PremiseCases(products | {"delta": delta, "varphi": phi}, met=met)


def inner_products(vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of vectors (B, N, d) or (B, 1, d), pair by pair."""
    names = sorted(vectors)
    return {f"<{a},{b}>": (vectors[a] * vectors[b]).sum(axis=2) for a in names for b in names if a <= b}


# --- weights over rounds ---------------------------------------------------------------------------------------------


def recorded_weights(claim: Claim) -> Iterator[PremiseCases]:
    """FedAU over all records: round by round, and over the run, with the gradient of a bounded-gradient function."""
    rng = np.random.default_rng(151)
    for N, T in ((1, 2), (1, 6), (2, 4), (3, 3)):
        z = draw_recorded(rng, 40, (N, 2, 1, T))
        _, weights, chance = z._records
        p, sure = z.p[:, None, :, None], (chance > 0)[:, :, None]
        error, second = (p * weights - 1) ** 2, p * weights**2
        of_round = {"Wt": error.mean(axis=2), "Qt": second.mean(axis=2)}
        largest = {name: np.where(sure, v, 0).max(axis=1) for name, v in of_round.items()}  # (B, T)
        gradient = z.scale**2 * np.tanh(z.start) ** 2
        yield PremiseCases(
            largest
            | {
                "Q": largest["Qt"].max(axis=1, keepdims=True),
                "Wmax": largest["Wt"].max(axis=1, keepdims=True),
                "W": (chance[:, :, None] * of_round["Wt"]).sum(axis=1).mean(axis=1, keepdims=True),
                "Qmean": (chance[:, :, None] * of_round["Qt"]).sum(axis=1).mean(axis=1, keepdims=True),
                of_weights.TOTAL.name: each_client(z.p, z.cutoff, T).mean(axis=1, keepdims=True),
                "<f0,f0>": gradient.sum(axis=1, keepdims=True),
                "G": np.sqrt((z.scale**2).sum(axis=1, keepdims=True)),
            },
            met=LAW | {"sure-Q", "bounded-gradient"},
        )


def each_client(p: np.ndarray, cutoff: np.ndarray, rounds: int) -> np.ndarray:
    """The error of every client's weights, averaged over the rounds, record by record of that client alone, (B, N)."""
    records = every_record(rounds)
    ones, found = records.sum(axis=1), np.empty_like(p)
    for b, K in enumerate(cutoff):
        weights = weights_of(records, K)
        for n, chance in enumerate(p[b]):
            likely = chance**ones * (1 - chance) ** (rounds - ones)
            found[b, n] = (likely[:, None] * (chance * weights - 1) ** 2).sum(axis=0).mean()
    return found


def constant_weights(claim: Claim) -> Iterator[PremiseCases]:
    """Weights that never change: any, nearly 1/p_n, and 1/p_n at any rates or at one rate for all clients."""
    rng = np.random.default_rng(157)
    exact, equal = "appendix" in claim.id, claim.id.startswith("fedau/appendix-a.3/")
    for N in (1, 2, 5):
        p = rng.choice([0.125, 0.25, 0.5, 1.0], size=(40, 1 if equal else N)) * np.ones((1, N))  # p (1/p) is 1 exactly
        off = np.where(rng.random((40, N)) < 0.3, 1, rng.uniform(0, 1, (40, N))) * rng.choice([-1, 1], size=(40, N)) / 9
        if not exact:
            p, off = (
                np.maximum(rng.uniform(0, 1, (40, N)), 1e-3),
                np.where(np.arange(40)[:, None] < 20, np.abs(off[:, :1]), off),
            )
        omega = 1 / p if exact else (1 + off) / p
        error, second = ((p * omega - 1) ** 2).mean(axis=1), (p * omega**2).mean(axis=1)
        symbols = {
            "Wt": error,
            "W": error,
            "Qt": second,
            "Q": second,
            "S": p.sum(axis=1),
            "P": np.einsum("bn,bn->b", omega, p),
        }
        symbols["N"] = np.full(40, float(N))
        vectors = {"p": p, "omega": omega, OMEGA_T.name: omega}
        yield PremiseCases({k: v[:, None] for k, v in symbols.items()} | vectors, met=KNOWN)


# --- one interval and one weight: Lemma B.6.1 and Theorem 3 ----------------------------------------------------------


def moments(records: np.ndarray, value: np.ndarray, among: np.ndarray | float = 1.0) -> np.ndarray:
    """The mean of a value of each record, (R,), where `among` holds, at each of the rates, (B, 1)."""
    ones, rounds = records.sum(axis=1), records.shape[1]
    chance = RATES**ones * (1 - RATES) ** (rounds - ones)
    return (chance * value * among).sum(axis=1, keepdims=True)


def interval(cut: int) -> dict[str, np.ndarray]:
    """Mean, second moment, variance and squared bias of the first interval, cut off."""
    records = every_record(cut)
    first = np.where(records.any(axis=1), records.argmax(axis=1) + 1.0, np.inf)
    length = np.minimum(first, cut)
    mean = moments(records, length)
    ones = records.sum(axis=1)
    chance = RATES**ones * (1 - RATES) ** (cut - ones)
    return {
        of_weights.MEAN.name: mean,
        of_weights.SECOND.name: moments(records, length**2),
        of_weights.VARIANCE.name: (chance * (length - mean) ** 2).sum(axis=1, keepdims=True),
        of_weights.SQUARED_BIAS.name: (chance * (RATES * length - 1) ** 2).sum(axis=1, keepdims=True),
        "rate": RATES,
        "p": RATES,
    }


def intervals(claim: Claim) -> Iterator[PremiseCases]:
    """The law of one interval at cut-offs from 1 to 7, where the result's K is that number."""
    for cut in range(1, 8):
        yield PremiseCases(interval(cut), {"cut": cut, "K": cut}, LAW)


def lengths(claim: Claim) -> Iterator[PremiseCases]:
    """The chance that the first interval of Algorithm 2 has length k < K."""
    for k in range(1, 7):
        records = every_record(k)
        ends = (records[:, -1] == 1) & (records[:, :-1].sum(axis=1) == 0)
        yield PremiseCases({of_weights.CHANCE.name: moments(records, ends.astype(float)), "p": RATES}, {"k": k}, LAW)


def one_weight(claim: Claim) -> Iterator[PremiseCases]:
    """The weight before round t, at most 7, under cut-offs from 1 to 8: late where t >= K, else early."""
    for t in (1, 2, 4, 7):
        for cut in (1, 2, 3, 8):
            yield weight_at(t, cut)


def weight_at(t: int, cut: int) -> PremiseCases:
    """All symbols for one round and cut-off."""
    records = every_record(t + 1)  # the last entry is not seen by the weight before round t
    omega = weights_of(records, cut)[:, t]
    seen = records[:, :t].any(axis=1) | (t >= cut)
    mean, error = moments(records, omega), (RATES * omega - 1) ** 2
    ones = records.sum(axis=1)
    chance = RATES**ones * (1 - RATES) ** (t + 1 - ones)
    when = "late" if t >= cut else "early"
    symbols = {
        "late": (of_weights.MEAN_LATE, of_weights.ERROR_LATE),
        "early": (of_weights.MEAN_EARLY, of_weights.ERROR_EARLY),
    }
    values = interval(cut) | {
        symbols[when][0].name: mean,
        symbols[when][1].name: (chance * error).sum(axis=1, keepdims=True),
        of_weights.AT_START.name: (RATES * weights_of(records, cut)[0, 0] - 1) ** 2,
    }
    if when == "late":
        values[of_weights.SPREAD_LATE.name] = (chance * (omega - mean) ** 2).sum(axis=1, keepdims=True)
        return PremiseCases(values, {"cut": cut, "K": cut, "s": t - cut}, LAW, error=1e-15)
    values |= {
        of_weights.NONE_YET.name: (chance * ~seen).sum(axis=1, keepdims=True),
        of_weights.COUNTED.name: (chance * seen * error).sum(axis=1, keepdims=True),
        of_weights.COUNTED_MEAN.name: (chance * seen * omega).sum(axis=1, keepdims=True),
    }
    return PremiseCases(values, {"cut": cut, "K": cut, "t": t, "s": cut - t - 1}, LAW)


EITHER = {
    of_weights.MEAN_OF: (of_weights.MEAN_LATE, of_weights.MEAN_EARLY),
    of_weights.ERROR: (of_weights.ERROR_LATE, of_weights.ERROR_EARLY),
}


def late_or_early(rule: Cases, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """The weight before round t of Algorithm 2: late where t >= K, else early, each at what is shown of it."""
    t, cut = (run.numbers[symbol.name] for symbol in (of_weights.t, of_weights.cut))
    right = {premise.left: premise.right for premise in premises}
    found = {}
    for either, (late, early) in EITHER.items():
        if late in right and early in right:
            after = value(right[late], run.numbers | {of_weights.s.name: t - cut})
            before = value(right[early], run.numbers | {of_weights.s.name: cut - t - 1})
            found[either.name] = np.where(t >= cut, after, before)
    return found


BUILDERS: Mapping[type, Builder] = {Cases: late_or_early}


def all_rounds(claim: Claim) -> Iterator[PremiseCases]:
    """Every client's weights over T rounds, by their exact law; cut-offs up to none."""
    rng = np.random.default_rng(163)
    for T in (2, 3, 12, 100):
        z = draw_intervals(rng, 40, 2, T)
        values = {"T": np.full((len(z), 1), float(T)), "K": z.cutoff[:, None], "p": z.p}
        yield PremiseCases(values | {of_weights.PER_CLIENT.name: z.errors.mean(axis=2)}, met=LAW)


def harmonic(claim: Claim) -> Iterator[PremiseCases]:
    """Numbers of rounds."""
    for T in (2, 3, 10, 40):
        yield PremiseCases({}, {"T": T}, LAW)


def powers(claim: Claim) -> Iterator[PremiseCases]:
    """Powers of 1 - p_n for rare and frequent clients, R from the rarest; whole cut-offs as the step has them."""
    rng = np.random.default_rng(167)
    for T in (2, 3, 10, 1000, 10**6):
        p = np.where(
            rng.random((80, 1)) < 0.05, 1.0, rng.uniform(0, 1, (80, 3)) ** rng.choice([0.2, 1, 4], size=(80, 1))
        )
        rarest = np.clip(p.min(axis=1, keepdims=True), 1e-6, 1)
        with np.errstate(divide="ignore"):
            R = np.where(rarest < 1, -1 / np.log((1 - rarest) ** 2), 0.0)
        p, exact = np.maximum(p, rarest), R * np.log(T)
        for cut in (np.ceil(exact), np.ceil(exact) + 1, exact):
            yield PremiseCases(
                {"p": p, "R": R, "T": np.full((80, 1), float(T)), "cut": np.maximum(cut, 1)}, covered=cut >= 1
            )


Draw = Callable[[Claim], Iterable[PremiseCases]]
BY_PLACE: tuple[tuple[str, tuple[str, ...], Draw], ...] = (  # proof, steps (all if none), where they are tried
    ("fedau/lemma-b.3.1", (), divergences),
    ("fedau/theorem-2", ("T1", "T1b", "T0"), recorded_weights),
    ("fedau/theorem-2-option-1", ("T0",), constant_weights),
    ("fedau/theorem-b.4.1", ("H1", "H2a"), constant_weights),
    ("fedau/appendix-a.3-unequal", ("T0", "A1", "A2", "A3"), constant_weights),
    ("fedau/appendix-a.3", ("E1",), constant_weights),
    ("fedau/corollary-4", ("C12",), recorded_weights),
    ("fedau/corollary-4-option-1", ("C7", "C12"), recorded_weights),
    ("fedau/lemma-b.6.1", (), intervals),
    ("fedau/lemma-b.6.1-variance", (), intervals),
    ("fedau/theorem-3", ("S21",), lengths),
    ("fedau/theorem-3", ("S22", "S22a", "S23a", "S23c", "S23e", "S24a", "S24b", "S24c", "S24d"), one_weight),
    ("fedau/theorem-3", ("S27b",), harmonic),
    ("fedau/theorem-3", ("T2", "T5", "T8"), all_rounds),
)


def premise_cases(subject: StepOf) -> Draw | None:
    """Where a premise of these proofs is tried; None if it has no place here."""
    if isinstance(subject.step.rule, Tangent):
        return powers
    for proof, steps, draw in BY_PLACE:
        if subject.proof.id == proof and (subject.step.id in steps or not steps):
            return draw
    return None


# --- averages --------------------------------------------------------------------------------------------------------

START = product_symbol("f0", "f0")  # the squared gradient at the start of a round
MEANS: Mapping[sp.Symbol, sp.Expr] = {
    theorem.GRADIENT_MEAN: START,
    theorem.DECREASE_MEAN: descent.DECREASE,
    theorem.ERROR_MEAN: NOTATION.Wt,
    theorem.MOMENT_MEAN: NOTATION.Qt,
    theorem.AVERAGE: theorem.GRADIENT_MEAN,
    NOTATION.W: theorem.ERROR_MEAN,
    NOTATION.Qmean: theorem.MOMENT_MEAN,
    theorem.H_GRADIENT: START,
    theorem.H_DECREASE: descent.DECREASE,
    theorem.AVERAGE_OF_H: theorem.H_GRADIENT,
    of_weights.TOTAL: of_weights.PER_CLIENT,
    product_symbol("Y", "Y"): product_symbol("y", "y"),
    product_symbol("Y", "x0"): product_symbol("y", "x0"),
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {
    theorem.DECREASE_MEAN: NOTATION.F,
    theorem.H_DECREASE: NOTATION.H,
}
