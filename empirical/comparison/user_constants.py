"""Constants that the user gives for a run: they agree with the run, or are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.consistency import check_agreement
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.evaluation.resolution import Value, as_constant, derived_constants
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.symbols import SOFT, Constant, NoConstant, Quantity
from fedbounds.empirical.comparison.paper_runs import RunFacts, needed_constants

FactsFor = Callable[[frozenset[str]], RunFacts]  # the symbols that the user gives -> the facts of the run


@dataclass(frozen=True)
class GivenCheck:
    """The comparison of given constants with a run that contradicts none of them."""

    doubts: tuple[str, ...] = ()  # why some have no counterpart in the run, and why the form may not be about the run
    unconfirmed: tuple[str, ...] = ()  # symbols that the form uses and the run does not know


def check_given(result: Result, form: Form, given: Mapping[str, Value], facts_for: FactsFor) -> GivenCheck:
    """Compare every given constant with that of the run, known or derived by the form's rules.

    A bound may be given larger than necessary, never smaller; any other constant must agree.
    """
    doubts, unconfirmed = [], []
    idle = compiled_form(result, form).unused(given)
    complete = _facts_or_none(facts_for, frozenset()) if given else None
    for name, value in given.items():
        quantity = result.notation.resolve(name)
        if quantity is None or isinstance(value, NoConstant):
            continue  # evaluating the form says so
        own = as_constant(quantity, value)
        facts = complete or _facts_or_none(facts_for, frozenset(given) - {name})
        known = () if facts is None else _constants_of_run(result, form, quantity, facts.all_constants)
        for constant in known:
            if isinstance(constant, Constant):
                kinds = {"trajectory": "along this run", "estimated": "estimated from below"}
                source = kinds.get(constant.source, constant.note) or "of the run"
                check_agreement(quantity, np.asarray(own.value), np.asarray(constant.value), source)
            elif quantity.name not in idle:
                doubts.append(f"{quantity.name} is given, and there is none: {constant.why}")
        if not known and quantity.name not in idle:
            unconfirmed.append(quantity.name)
    return GivenCheck(tuple(doubts), tuple(unconfirmed))


def _constants_of_run(
    result: Result, form: Form, quantity: Quantity, all_constants: Mapping[str, Constant | NoConstant]
) -> tuple[Constant | NoConstant, ...]:
    """The constants of a run for a quantity, known or derived by the form's rules."""
    if quantity.concept in all_constants:
        return (all_constants[quantity.concept],)
    known_quantities = (q for q in result.notation.values() if q.concept in all_constants)
    by_symbol = {q.name: all_constants[q.concept] for q in known_quantities}
    known = {name: constant for name, constant in by_symbol.items() if isinstance(constant, Constant)}
    return derived_constants(compiled_form(result, form), quantity.name, known)


def replace_measured(
    result: Result, form: Form, run: Mapping[str, Value], given: Mapping[str, Value]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """The measured constants that given ones determine; and the given ones that are not used, with the reason."""
    known = {
        name: as_constant(quantity, value)
        for name, value in {**run, **given}.items()
        if (quantity := result.notation.resolve(name)) and not isinstance(value, NoConstant)
    }
    reliable = {name for name, constant in known.items() if constant.source not in SOFT}
    rules = [
        rule
        for rule in form.derived
        if rule.name in known.keys() - given.keys() and rule.free is not True and given.keys() & set(rule.inputs)
    ]
    better = [rule for rule in rules if rule.name not in reliable and reliable.issuperset(rule.inputs)]
    replaced = frozenset(rule.name for rule in better)
    used = _required_symbols(form, frozenset(known) - replaced)
    notes = [
        f"{rule.name} follows from {' and '.join(rule.inputs)}, not from what was measured ({rule.why})"
        for rule in better
    ]
    idle = compiled_form(result, form).unused(given)
    for name in sorted(known.keys() & given.keys() - used):
        instead = [f"{rule.name} ({known[rule.name].source})" for rule in rules if name in rule.inputs]
        why = (
            "nothing in this form depends on it" if name in idle or not instead else f"{' and '.join(instead)} is used"
        )
        notes.append(f"the given {name} has no effect: {why}")
    return replaced, tuple(notes)


def _required_symbols(form: Form, known: frozenset[str]) -> set[str]:
    """The symbols that a form needs when these are known: one that is derived from others asks for the others."""
    waiting, seen = [*needed_constants(form)], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen and name not in known:
            waiting += [i for rule in form.derived if rule.name == name for i in rule.inputs]
        seen.add(name)
    return seen


def drop_rounds(result: Result, given: Mapping[str, Value], rounds: int) -> dict[str, Value]:
    """The given constants without the number of rounds, which is the run's own."""
    rest = dict(given)
    for name in given:
        quantity = result.notation.resolve(name)
        if quantity is not None and quantity.concept == "rounds":
            check_agreement(
                quantity, np.asarray(as_constant(quantity, rest.pop(name)).value), np.array(rounds), "of the run"
            )
    return rest


def _facts_or_none(facts_for: FactsFor, given: frozenset[str]) -> RunFacts | None:
    """The facts of the run, or None where a constant that is not given cannot be known."""
    try:
        return facts_for(given)
    except FedboundsError:
        return None
