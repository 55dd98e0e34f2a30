"""What the proofs of Fed-Norm-SGDA's Appendix A and of Remark 6 take from definitions, on functions and on noise."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.proof_step_checker import StepOf, measure_symbol
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, HETEROGENEITY
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_basic import LEMMA_A_4, SQUARE_OF_MEAN
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_3, LEMMA_C_5
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION
from fedbounds.bounds.papers.fed_norm_sgda.proof import ascent, basic, descent, moreau, remarks, restart, theorem_4
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as symbols
from fedbounds.bounds.papers.fed_norm_sgda.proof.corollaries import NEEDED, FirstAt
from fedbounds.bounds.papers.fed_norm_sgda.proof.restart import APPROACH
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import Gammax
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem_4 import (
    LAG_MEAN,
    STALE_MEAN,
    OverBlocks,
    OverUnequalBlocks,
    SnapshotLag,
)
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE
from fedbounds.empirical.falsification.instances.averages import CASES, AveragingRun, Builder, SymbolValues, value
from fedbounds.empirical.falsification.instances.premises import PremiseCases
from fedbounds.empirical.falsification.instances.sides import ROUNDING

B = 60
SHAPES = frozenset({"smooth", "convex", "bounded-below", "strongly-convex", "strongly-concave"})
NOISE = frozenset({BLOCK_NOISE.name, MARTINGALE.name, INDEPENDENT_CLIENTS.name, HETEROGENEITY.name})


def functions(claim: Claim) -> Iterator[PremiseCases]:
    r"""$g(z)=\sum_j\frac{a_j}2z_j^2+b_j(1-\cos z_j)$ with $0\le b_j\le a_j$: convex between mu and Lf, least at 0."""
    rng = np.random.default_rng(179)
    concave = claim.id.startswith("fed-norm-sgda/lemma-a.2/")
    for d in (1, 2, 4):
        a, b = 10 ** rng.uniform(-1, 1, (2, B, d))
        b = np.where(np.arange(B)[:, None] % 2 == 0, 0, np.minimum(a, b))
        a = np.where(np.arange(B)[:, None] % 4 == 0, a[:, :1], a)

        def g(z: np.ndarray, a: np.ndarray = a, b: np.ndarray = b) -> np.ndarray:
            return (a / 2 * z**2 + b * (1 - np.cos(z))).sum(axis=1, keepdims=True)

        def slope(z: np.ndarray, a: np.ndarray = a, b: np.ndarray = b) -> np.ndarray:
            return a * z + b * np.sin(z)

        mu, L = (a - b).min(axis=1, keepdims=True), (a + b).max(axis=1, keepdims=True)
        x, y = rng.normal(size=(2, B, d)) * rng.choice([0.1, 1, 5], size=(2, B, 1))
        values = {"mu": mu, "Lf": L}
        if concave:  # -g at y, from y'
            step = y - x
            values |= {basic.DIFFERENCE.name: g(x) - g(y), "slope": -dot(slope(x), step), "distsq": dot(step, step)}
        elif "lemma-a.6" in claim.id:  # g above its tangent at x, seen from y
            here = slope(y) - slope(x)
            after = y - here / L
            values |= {basic.BREGMAN.name: g(y) - g(x) - dot(slope(x), y - x), "<gradient,gradient>": dot(here, here)}
            values |= {basic.AFTER.name: g(after) - g(x) - dot(slope(x), after - x)}
        else:
            here = slope(x)
            values |= {
                basic.EXCESS.name: g(x),
                "<gradient,gradient>": dot(here, here),
                basic.AFTER.name: g(x - here / L),
            }
            values |= {"<away,away>": dot(x, x), "<away,gradient>": -dot(here, x)}
        yield PremiseCases(values, met=SHAPES, covered=mu > 0, error=1e-14 * (g(x) + g(y)))


def dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Inner products, (B, 1)."""
    return (u * v).sum(axis=1, keepdims=True)


def squares(claim: Claim) -> Iterator[PremiseCases]:
    """Vectors of n clients, some all alike, with weights that sum to 1."""
    rng = np.random.default_rng(181)
    for n in (1, 2, 5):
        u = rng.normal(size=(B, n, 3))
        u = np.where(np.arange(B)[:, None, None] % 3 == 0, u[:, :1], u)
        w = rng.dirichlet(np.ones(n), size=B)
        values = {"squares": (u**2).sum(axis=2), "w": w, "n": np.full((B, 1), float(n))}
        values[measure_symbol(SQUARE_OF_MEAN).name] = ((w[:, :, None] * u).sum(axis=1) ** 2).sum(axis=1)[:, None]
        yield PremiseCases(values | {measure_symbol(LEMMA_A_4.measure).name: (u.sum(axis=1) ** 2).sum(axis=1)[:, None]})


def noise(claim: Claim) -> Iterator[PremiseCases]:
    """Noise of either sign with the level that Assumption 2 allows, at n clients and in n samples of the first one."""
    rng = np.random.default_rng(191)
    for n in (1, 2, 5):
        g = rng.normal(size=(B, n, 2)) * rng.choice([0.1, 1, 10], size=(B, n, 1))
        betaL, betaG = rng.uniform(0, 2, (2, B, 1))
        sigmaL = rng.choice([0.0, 1.0], size=(B, 1))
        own, mean = (g**2).sum(axis=2), (g.mean(axis=1) ** 2).sum(axis=1)[:, None]
        spread = own.mean(axis=1, keepdims=True)
        signs = np.array(list(product((-1.0, 1.0), repeat=n)))  # (2^n, n)

        def of_mean(level: np.ndarray, signs: np.ndarray = signs) -> np.ndarray:
            return ((signs[None] * np.sqrt(level)[:, None]).mean(axis=2) ** 2).mean(axis=1)[:, None]

        level = sigmaL**2 + betaL**2 * own
        one = level[:, :1] * np.ones((B, n))
        in_samples = claim.id.endswith("/samples")
        values = {"betaL": betaL, "betaG": betaG, "sigmaL": sigmaL, "n": np.full((B, 1), float(n))}
        values |= {remarks.EACH.name: level, remarks.OWN.name: own, remarks.MEAN.name: spread}
        values |= {remarks.OF_CLIENTS.name: of_mean(level), remarks.OF_SAMPLES.name: of_mean(one)}
        values |= {"sigmaG": np.sqrt(np.maximum(spread - betaG**2 * mean, 0))}
        yield PremiseCases(values | {"gradxsq": own[:, :1] if in_samples else mean}, met=NOISE)


Draw = Callable[[Claim], Iterable[PremiseCases]]
BY_PLACE: tuple[tuple[str, tuple[str, ...], Draw], ...] = (  # proof, steps (all if none), where they are tried
    ("fed-norm-sgda/lemma-a.2", (), functions),
    ("fed-norm-sgda/lemma-a.3", ("fact",), squares),
    ("fed-norm-sgda/lemma-a.4", (), squares),
    ("fed-norm-sgda/lemma-a.5", (), functions),
    ("fed-norm-sgda/lemma-a.5-gradient", (), functions),
    ("fed-norm-sgda/lemma-a.6", ("step", "least"), functions),
    ("fed-norm-sgda/lemma-a.7", ("step", "least"), functions),
    ("fed-norm-sgda/remark-6", ("each", "clients", "samples", "spread"), noise),
)


def premise_cases(subject: StepOf) -> Draw | None:
    """Where a premise of these proofs is tried; None if it has no place here."""
    for proof, steps, draw in BY_PLACE:
        if subject.proof.id == proof and (subject.step.id in steps or not steps):
            return draw
    return None


# --- averages --------------------------------------------------------------------------------------------------------

MEANS: Mapping[sp.Symbol, sp.Expr] = {
    ascent.G_MEAN: symbols.G,
    ascent.GAP_MEAN: symbols.DELTA,
    ascent.H_MEAN: symbols.H,
    measure_symbol(LEMMA_C_3.measure): theorem_4.STALE,
    measure_symbol(LEMMA_C_5.measure): theorem_4.STALE,
    theorem_4.GAP_MEAN: symbols.DELTA,
    theorem_4.STALE_MEAN: theorem_4.STALE,
    theorem_4.LAG_MEAN: theorem_4.LAG,
    theorem_4.ENVELOPE_MEAN: moreau.GRADIENT,
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {
    ascent.GAP_DECREASE: NOTATION.delta0,
    descent.DECREASE: NOTATION.Delta,
    restart.APPROACH: restart.FIRST,
    moreau.ENVELOPE_DECREASE: NOTATION.Deltabar,
}


NEVER = 1e30  # rounds


def lag(rule: SnapshotLag, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """The way of x from the snapshot where every round moves it as far as it can, always in one direction."""
    length = np.broadcast_to(value(premises[0].right, run.numbers), (CASES, 1))
    x, snapshot, far = np.zeros((CASES, 1)), np.zeros((CASES, 1)), []
    for t in range(run.rounds - run.rounds % run.block or run.rounds):
        snapshot = x if t % run.block == 0 else snapshot
        far.append(np.abs(x - snapshot))
        x = x - run.numbers[Gammax.name] * length
    return {LAG_MEAN.name: np.mean(far, axis=0), NOTATION.S.name: np.full((CASES, 1), float(run.block))}


def whole(rule: OverBlocks, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """Every block at its bound, in rounds that differ."""
    bound = np.broadcast_to(value(premises[0].right, run.numbers | _size(run)), (CASES, 1))
    blocks = -(-run.rounds // run.block)
    each = run.rng.exponential(size=(CASES, blocks, run.block))
    each *= bound[:, :, None] / each.mean(axis=2, keepdims=True)
    rounds = each.reshape(CASES, -1)
    count = {NOTATION.T.name: np.full((CASES, 1), float(rounds.shape[1]))}
    return {STALE_MEAN.name: rounds.mean(axis=1, keepdims=True)} | count | _size(run)


def unequal(rule: OverUnequalBlocks, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """Each block starts as far away as it may and ends at the maximizer, all in its first round; the last is cut."""
    each, start = premises
    symbols = run.numbers | _size(run)
    away = np.broadcast_to(value(start.right, symbols), (CASES, 1))
    stale = []
    for t in range(run.rounds):
        approach = away if t % run.block == 0 else np.zeros((CASES, 1))
        stale.append(np.broadcast_to(value(each.right, symbols | {APPROACH.name: approach}), (CASES, 1)))
    return {STALE_MEAN.name: np.mean(stale, axis=0)} | _size(run)


def first(rule: FirstAt, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """The rounds until the squared gradient is at most eps^2 where it is what the premise shows, but not earlier."""
    shown = value(premises[0].right, run.numbers)
    reached = np.broadcast_to(shown <= run.numbers[NOTATION.eps.name] ** 2 * (1 + ROUNDING), (CASES, 1))
    return {NEEDED.name: np.where(reached, np.ceil(value(rule.least, run.numbers)), NEVER)}


def _size(run: AveragingRun) -> SymbolValues:
    return {NOTATION.S.name: np.full((CASES, 1), float(run.block))}


BUILDERS: Mapping[type, Builder] = {SnapshotLag: lag, OverBlocks: whole, OverUnequalBlocks: unequal, FirstAt: first}
