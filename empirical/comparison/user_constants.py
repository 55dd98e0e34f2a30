"""What the user gives beside what a run says of itself: it agrees, or it is refused."""

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

Says = Callable[[frozenset[str]], RunFacts]  # the letters that need not be found out -> what the run says


@dataclass(frozen=True)
class Ground:
    """What a run says of the constants that a user gives for it, where it contradicts none.

    Attributes:
        doubts: why some have no ground in the run at all, in words.
        unseen: the letters of which the run says nothing, but which the form uses.
    """

    doubts: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


def ground(result: Result, form: Form, given: Mapping[str, Value], says: Says) -> Ground:
    """Hold every given constant against what the problem, the algorithm, the participation and the run say of it.

    They say it themselves, or through what the form derives it from. A bound may be given larger than it need be,
    never smaller; what is no bound is what it is.

    Args:
        result, form: what is promised.
        given: by letter.
        says: what the run says when these letters are left to the user.

    Raises:
        FedboundsError: a given constant contradicts the run: both values.
    """
    doubts, unseen = [], []
    idle = compiled_form(result, form).unused(given)
    everything = _known(says, frozenset()) if given else None
    for name, value in given.items():
        quantity = result.notation.resolve(name)
        if quantity is None or isinstance(value, NoConstant):
            continue  # evaluating the form says so
        own = as_constant(quantity, value)
        run = everything or _known(says, frozenset(given) - {name})
        facts = () if run is None else _facts(result, form, quantity, run.said)
        for fact in facts:
            if isinstance(fact, Constant):
                whose = {"trajectory": "along this run", "estimated": "estimated from below"}.get(
                    fact.source, fact.note
                )
                check_agreement(quantity, np.asarray(own.value), np.asarray(fact.value), whose or "of the run")
            elif quantity.name not in idle:
                doubts.append(f"{quantity.name} is given, and there is none: {fact.why}")
        if not facts and quantity.name not in idle:
            unseen.append(quantity.name)
    return Ground(tuple(doubts), tuple(unseen))


def _facts(
    result: Result, form: Form, quantity: Quantity, said: Mapping[str, Constant | NoConstant]
) -> tuple[Constant | NoConstant, ...]:
    """What a run says of a constant."""
    if quantity.concept in said:
        return (said[quantity.concept],)
    letters = {q.name: said[q.concept] for q in result.notation.values() if q.concept in said}
    known = {name: constant for name, constant in letters.items() if isinstance(constant, Constant)}
    return derived_constants(compiled_form(result, form), quantity.name, known)


def surer(
    result: Result, form: Form, run: Mapping[str, Value], given: Mapping[str, Value]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """What follows from given constants in place of what was only measured; and what is given in vain, with the reason.

    Args:
        result, form: what is promised.
        run: what the run says, by letter.
        given: by letter; these win anyway.

    Returns:
        The letters of the run to be left out, so that they are derived, and notes for the reader.
    """
    letters = {
        name: as_constant(quantity, value)
        for name, value in {**run, **given}.items()
        if (quantity := result.notation.resolve(name)) and not isinstance(value, NoConstant)
    }
    hard = {name for name, constant in letters.items() if constant.source not in SOFT}
    rules = [rule for rule in form.derived if rule.name in letters.keys() - given.keys() and rule.free is not True]
    rules = [rule for rule in rules if given.keys() & set(rule.inputs)]
    better = [rule for rule in rules if rule.name not in hard and hard.issuperset(rule.inputs)]
    replaced = frozenset(rule.name for rule in better)
    used = _entering(form, frozenset(letters) - replaced)
    notes = [
        f"{rule.name} follows from {' and '.join(rule.inputs)}, not from what was measured ({rule.why})"
        for rule in better
    ]
    idle = compiled_form(result, form).unused(given)
    for name in sorted(letters.keys() & given.keys() - used):
        instead = [f"{rule.name} is {letters[rule.name].source}" for rule in rules if name in rule.inputs]
        why = "nothing in this form depends on it" if name in idle or not instead else " and ".join(instead)
        notes.append(f"{name} is given and not used: {why}")
    return replaced, tuple(notes)


def _entering(form: Form, known: frozenset[str]) -> set[str]:
    """The letters that a form asks for when these are known: those that follow from others ask for the others."""
    waiting, seen = [*needed_constants(form)], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen and name not in known:
            waiting += [i for rule in form.derived if rule.name == name for i in rule.inputs]
        seen.add(name)
    return seen


def drop_rounds(result: Result, given: Mapping[str, Value], rounds: int) -> dict[str, Value]:
    """The given constants without the number of rounds, which is the run's own.

    Raises:
        FedboundsError: another number of rounds than the run has.
    """
    rest = dict(given)
    for name in given:
        quantity = result.notation.resolve(name)
        if quantity is not None and quantity.concept == "rounds":
            check_agreement(
                quantity, np.asarray(as_constant(quantity, rest.pop(name)).value), np.array(rounds), "of the run"
            )
    return rest


def _known(says: Says, given: frozenset[str]) -> RunFacts | None:
    """What the run says, or None where it cannot say everything that is asked."""
    try:
        return says(given)
    except FedboundsError:
        return None
