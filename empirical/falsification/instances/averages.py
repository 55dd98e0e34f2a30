"""Averages over rounds, windows and blocks, tested on sequences that attain the bound of each round.

The sequences of T rounds are averaged here with the meaning that the paper gives to every symbol (`instances.MEANS`),
independently of the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.averages import AverageOverClients, HarmonicAverage
from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.concentration import AllAtOnce
from fedbounds.bounds.audit.derivations import InExpectation
from fedbounds.bounds.audit.proof_step_checker import StepOf, relation_of
from fedbounds.bounds.audit.rules import Everywhere, Telescope
from fedbounds.bounds.evaluation.numpy_code import arguments, compile_expressions
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.symbols import Notation
from fedbounds.empirical.falsification.instances.premises import PremiseCases, premise_sides
from fedbounds.empirical.falsification.instances.sides import InstanceTest

CASES = 30
SIZES = ((1, 1, 1), (7, 3, 2), (12, 4, 4), (1, 1, 100), (40, 5, 8), (41, 1, 8))
SMALL = ("local_step_size", "server_multiplier", "server_step_size")
SymbolValues = dict[str, np.ndarray]
Means = Mapping[sp.Symbol, sp.Expr]
Gaps = Mapping[sp.Symbol, sp.Symbol]
Averaging = Telescope | InExpectation | Everywhere | AverageOverClients | AllAtOnce


class AveragingRun(NamedTuple):
    """A run of rounds with windows and blocks, and values of all other symbols."""

    rounds: int  # rounds, window, block: numbers of rounds
    window: int
    block: int
    interval: str  # the symbol of the window's rounds; "" where the paper has none
    numbers: SymbolValues  # symbol to values (CASES, 1), or one for each client
    rng: np.random.Generator  # for the sequences
    means: Means  # each symbol of an average, and the averaged expression
    gaps: Gaps  # symbol of a decrease per round to the symbol of its sum over the run


Builder = Callable[..., SymbolValues]


def value(expression: sp.Expr, numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """The value of an expression."""
    symbols = arguments((expression,))
    with np.errstate(all="ignore"):
        return np.asarray(compile_expressions(symbols, (expression,))(*(numbers[s.name] for s in symbols))[0])


def averaged_symbols(rule: Averaging) -> tuple[sp.Symbol, ...]:
    """The symbols that a rule declares to be averages, or maxima."""
    sides: tuple[sp.Expr, ...]
    match rule:
        case Telescope():
            sides = (rule.average, *(mean for _, mean in rule.means))
        case InExpectation():
            sides = tuple(mean for _, mean in rule.means)
        case AverageOverClients():
            sides = (rule.average,)
        case AllAtOnce():
            sides = (rule.every,)
        case Everywhere():
            same = arguments((rule.of or sp.S.Zero,))  # what is no average stays as it is
            return tuple(s for s in arguments((rule.is_ or sp.S.Zero,)) if s not in same)
    return arguments(sides)


def compute_averages(rule: Averaging, premise: Relation, cases: SymbolValues, run: AveragingRun) -> SymbolValues:
    """Every average that the rule names, where the premise holds with equality in each case."""
    names = averaged_symbols(rule)
    if not names:
        raise KeyError(f"{type(rule).__name__} names no average")
    parts = {s for name in names for s in arguments((run.means[name],))}
    shape = (CASES, max(v.shape[1] for v in cases.values()))
    known = run.numbers | cases
    free = next(s for s in sorted(arguments((premise.left,)), key=str) if s in parts)
    at_0, at_1 = (value(premise.left, known | {free.name: np.full(shape, x)}) for x in (0.0, 1.0))
    known = known | {free.name: (value(premise.right, known) - at_0) / (at_1 - at_0)}
    return {
        name.name: np.broadcast_to(value(run.means[name], known), shape).mean(axis=1, keepdims=True) for name in names
    }


def telescope(rule: Telescope, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """The average of rounds that attain their bound; the gap is the sum of the decreases, of either sign."""
    number = run.block if "one block" in rule.average.name else run.rounds
    if run.interval in {s.name for s in arguments((rule.rounds,))}:
        number = len(range(0, run.rounds - run.window + 1, run.window))
    decrease = run.rng.normal(size=(CASES, number))
    decrease[:, :1] += np.maximum(0, 0.1 - decrease.sum(axis=1, keepdims=True))
    varying = draw_values(averaged_symbols(rule), run, number) | {rule.decrease.name: decrease}
    return compute_averages(rule, premises[0], varying, run) | {
        run.gaps[rule.decrease].name: decrease.sum(axis=1, keepdims=True)
    }


def draw_values(names: Sequence[sp.Symbol], run: AveragingRun, number: int) -> SymbolValues:
    """Random values of the averaged symbols, of their sign, (CASES, number)."""
    parts = sorted({s for name in names for s in arguments((run.means[name],))}, key=str)
    draws = {s: run.rng.exponential if s.is_nonnegative else run.rng.normal for s in parts}
    return {s.name: draw(size=(CASES, number)) for s, draw in draws.items()}


def equally_likely_cases(
    rule: InExpectation | Everywhere, premises: Sequence[Relation], run: AveragingRun
) -> SymbolValues:
    """As many cases as there are rounds, all equally likely."""
    return compute_averages(rule, premises[0], draw_values(averaged_symbols(rule), run, run.rounds), run)


def client_values(rule: AverageOverClients, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """Every client at its own bound."""
    return compute_averages(rule, premises[0], draw_values(averaged_symbols(rule), run, 3), run)


def together(rule: AllAtOnce, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """Every window fails with the largest probability of its bound, and no two of them at once."""
    number = len(range(0, run.rounds - run.window + 1, run.window))
    (every,) = averaged_symbols(rule)
    if run.means[every] != premises[0].left:
        raise KeyError(f"{every} is the largest of another quantity")
    level = value(premises[0].right, run.numbers | {rule.c.name: run.numbers[rule.c.name] / number})
    return {every.name: np.broadcast_to(level, (CASES, 1))}


def harmonic(rule: HarmonicAverage, premises: Sequence[Relation], run: AveragingRun) -> SymbolValues:
    """A first round and rounds t = 1, ..., T-1, each at its bound."""
    t = np.arange(1.0, run.rounds)[None]
    first = np.broadcast_to(value(premises[0].right, run.numbers), (CASES, 1))
    others = np.broadcast_to(value(premises[1].right, run.numbers | {rule.round.name: t}), (CASES, run.rounds - 1))
    return {rule.average.name: np.concatenate([first, others], axis=1).mean(axis=1, keepdims=True)}


AVERAGES: Mapping[type, Builder] = {
    Telescope: telescope,
    HarmonicAverage: harmonic,
    InExpectation: equally_likely_cases,
    Everywhere: equally_likely_cases,
    AverageOverClients: client_values,
    AllAtOnce: together,
}


def averaging_test(
    claim: Claim, claims: ClaimSet | None, builders: Mapping[type, Builder], means: Means, gaps: Gaps
) -> InstanceTest | None:
    """How an averaging step is tested; None for other steps, or if its premises are not available."""
    builders = {**AVERAGES, **builders}
    subject = claim.subject
    if not isinstance(subject, StepOf) or type(subject.step.rule) not in builders:
        return None
    if isinstance(subject.step.rule, Averaging) and not set(averaged_symbols(subject.step.rule)) <= set(means):
        return None
    local = all(subject.proof.step(p) for p in subject.step.premises if isinstance(p, str))
    if claims is None:
        if not local:
            return None
        claims = ClaimSet.from_claims([claim], ())
    names = [p for p in subject.step.premises if isinstance(p, str)]
    premises = tuple(relation_of(claims, subject.proof, name) for name in names)
    build = builders[type(subject.step.rule)]
    return InstanceTest(lambda _, cells: _runs(subject, premises, build, means, gaps), premise_sides, True)


def _runs(
    subject: StepOf, premises: tuple[Relation, ...], build: Builder, means: Means, gaps: Gaps
) -> Iterator[PremiseCases]:
    rng, conclusion = np.random.default_rng(173), subject.step.conclusion
    symbols = arguments([side for r in (*premises, conclusion) for side in (r.left, r.right)])
    notation = subject.proof.result.notation
    interval = next((q.name for q in notation.values() if q.concept == "interval"), "")
    of_clients = any(side.has(OverClients) for r in (*premises, conclusion) for side in (r.left, r.right))
    met = frozenset(p.name for p in subject.step.premises if isinstance(p, Assumption))
    for rounds, window, block in SIZES:
        numbers = {s.name: _random_values(s, notation, rng, of_clients) for s in symbols}
        sizes = {"rounds": rounds, "iterations": rounds, "interval": window, "snapshot_period": block}
        counted = {q.name: sizes[q.concept] for q in notation.values() if q.concept in sizes}
        numbers |= {name: np.full((CASES, 1), float(number)) for name, number in counted.items()}
        found = build(
            subject.step.rule, premises, AveragingRun(rounds, window, block, interval, numbers, rng, means, gaps)
        )
        whole = {name: n for name, n in counted.items() if conclusion.right.has(sp.Sum)}
        values = numbers | found
        left = value(conclusion.left, values)
        yield PremiseCases(values, whole, met, np.isfinite(left) & (left > 0))


def _random_values(symbol: sp.Symbol, notation: Notation, rng: np.random.Generator, of_clients: bool) -> np.ndarray:
    """Random values of a symbol: integers, small step sizes, or numbers of its sign; one per client if needed."""
    known = notation.resolve(symbol.name)
    shape = (CASES, 3) if of_clients and known and known.shape else (CASES, 1)
    if symbol.is_integer:
        return np.floor(10 ** rng.uniform(0, 1.5, shape))
    scale = 1e-3 if known and known.concept in SMALL else 1.0
    drawn = scale * 10 ** rng.uniform(-1, 1, shape)
    return drawn / 10 if known and known.domain.high <= 1 else drawn
