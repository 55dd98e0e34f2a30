"""Averages over rounds, windows and blocks, on sequences: each obeys the bound of one round with equality.

A rule that averages says how many rounds there are and what their decreases add up to. Here these are counted: a run of
T rounds, one after the other, gives what is averaged, and the letters of the step mean what the notation says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import sympy as sp

from bounds.assumptions import Assumption
from bounds.audit.averages import HarmonicAverage
from bounds.audit.claim import Claim, Relation
from bounds.audit.docket import Docket
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Telescope
from bounds.audit.steps import StepOf, relation_of
from bounds.clients import OverClients
from bounds.compilation import arguments, compile_expressions
from bounds.symbols import Notation
from empirical.instances.premises import Drawn, premise_sides
from empirical.instances.sides import Trial

CASES = 30
SIZES = ((1, 1, 1), (7, 3, 2), (12, 4, 4), (1, 1, 100), (40, 5, 8), (41, 1, 8))
SMALL = ("local_step_size", "server_multiplier", "server_step_size")
Letters = dict[str, np.ndarray]


class Run(NamedTuple):
    """A run of so many rounds, with windows and blocks of so many, and letters for all that it does not decide.

    Attributes:
        rounds, window, block: how many rounds.
        interval: the letter for the rounds of a window; "" where the paper has none.
        letters: each (CASES, 1), or one for each client.
        rng: for the sequences.
    """

    rounds: int
    window: int
    block: int
    interval: str
    letters: Letters
    rng: np.random.Generator


Builder = Callable[..., Letters]


def value(expression: sp.Expr, letters: Mapping[str, np.ndarray]) -> np.ndarray:
    """An expression at these letters."""
    symbols = arguments((expression,))
    with np.errstate(all="ignore"):
        return np.asarray(compile_expressions(symbols, (expression,))(*(letters[s.name] for s in symbols))[0])


def telescoped(rule: Telescope | AverageOverRounds, premises: Sequence[Relation], run: Run) -> Letters:
    """What one round bounds, at its largest, averaged; the gap is the sum of the decreases, of either sign."""
    whole, average, means = (
        (rule.windows, rule.least, ()) if isinstance(rule, Telescope) else (rule.rounds, rule.average, rule.means)
    )
    number = run.block if "one block" in average.name else run.rounds
    if run.interval in {s.name for s in arguments((whole,))}:
        number = len(range(0, run.rounds - run.window + 1, run.window))
    decrease = run.rng.normal(size=(CASES, number))
    decrease[:, :1] += np.maximum(0, 0.1 - decrease.sum(axis=1, keepdims=True))
    varying = {each.name: run.rng.exponential(size=(CASES, number)) for each, _ in means}
    each_round = value(premises[0].right, run.letters | {rule.decrease.name: decrease} | varying)
    found = {average.name: np.broadcast_to(each_round, decrease.shape).mean(axis=1, keepdims=True)}
    found |= {mean.name: varying[each.name].mean(axis=1, keepdims=True) for each, mean in means}
    return found | {s.name: decrease.sum(axis=1, keepdims=True) for s in arguments((rule.gap,))}


def harmonic(rule: HarmonicAverage, premises: Sequence[Relation], run: Run) -> Letters:
    """A first round and rounds t = 1, ..., T-1, each at its bound."""
    t = np.arange(1.0, run.rounds)[None]
    first = np.broadcast_to(value(premises[0].right, run.letters), (CASES, 1))
    others = np.broadcast_to(value(premises[1].right, run.letters | {rule.round.name: t}), (CASES, run.rounds - 1))
    return {rule.average.name: np.concatenate([first, others], axis=1).mean(axis=1, keepdims=True)}


AVERAGES: Mapping[type, Builder] = {Telescope: telescoped, AverageOverRounds: telescoped, HarmonicAverage: harmonic}


def average_trial(claim: Claim, docket: Docket | None, builders: Mapping[type, Builder]) -> Trial | None:
    """How a step that averages is tried; None if it does not, or if its premises are not at hand."""
    subject = claim.subject
    if not isinstance(subject, StepOf) or type(subject.step.rule) not in builders:
        return None
    local = all(subject.proof.step(p) for p in subject.step.premises if isinstance(p, str))
    if docket is None:
        if not local:
            return None
        docket = Docket.of_claims([claim], ())
    names = [p for p in subject.step.premises if isinstance(p, str)]
    premises = tuple(relation_of(docket, subject.proof, name) for name in names)
    return Trial(lambda _, cells: _runs(subject, premises, builders[type(subject.step.rule)]), premise_sides, True)


def _runs(subject: StepOf, premises: tuple[Relation, ...], build: Builder) -> Iterator[Drawn]:
    rng, conclusion = np.random.default_rng(173), subject.step.conclusion
    symbols = arguments([side for r in (*premises, conclusion) for side in (r.left, r.right)])
    notation = subject.proof.result.notation
    interval = next((q.name for q in notation.values() if q.concept == "interval"), "")
    of_clients = any(side.has(OverClients) for r in (*premises, conclusion) for side in (r.left, r.right))
    met = frozenset(p.name for p in subject.step.premises if isinstance(p, Assumption))
    for rounds, window, block in SIZES:
        letters = {s.name: _letter(s, notation, rng, of_clients) for s in symbols}
        sizes = {"rounds": rounds, "iterations": rounds, "interval": window, "snapshot_period": block}
        counted = {q.name: sizes[q.concept] for q in notation.values() if q.concept in sizes}
        letters |= {name: np.full((CASES, 1), float(number)) for name, number in counted.items()}
        found = build(subject.step.rule, premises, Run(rounds, window, block, interval, letters, rng))
        whole = {name: n for name, n in counted.items() if conclusion.right.has(sp.Sum)}
        values = letters | found
        left = value(conclusion.left, values)
        yield Drawn(values, whole, met, np.isfinite(left) & (left > 0))


def _letter(symbol: sp.Symbol, notation: Notation, rng: np.random.Generator, of_clients: bool) -> np.ndarray:
    """A whole number, a small step size, or any number of its sign; one for each client where these differ."""
    known = notation.resolve(symbol.name)
    shape = (CASES, 3) if of_clients and known and known.shape else (CASES, 1)
    if symbol.is_integer:
        return np.floor(10 ** rng.uniform(0, 1.5, shape))
    scale = 1e-3 if known and known.concept in SMALL else 1.0
    drawn = scale * 10 ** rng.uniform(-1, 1, shape)
    return drawn / 10 if known and known.domain.high <= 1 else drawn
