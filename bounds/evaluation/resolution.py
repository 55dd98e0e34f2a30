"""From the constants that are given to all that a form needs: validated, derived, and none contradicting another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledForm, CompiledResult, NumericRule
from fedbounds.bounds.inputs.checks import as_real, check_memory
from fedbounds.bounds.theory.argument_checks import check_constants, check_settings
from fedbounds.bounds.theory.names_by_meaning import unknown_constant
from fedbounds.bounds.theory.symbols import SOFT, Constant, NoConstant, Quantity, Source

if TYPE_CHECKING:
    pass

Value = float | int | np.ndarray | Iterable[float] | Constant


def resolve(
    form: CompiledForm, constants: Mapping[str, Value], *, needed: frozenset[str] | None = None
) -> dict[str, Constant]:
    """The constants a form needs: given ones validated, derived ones computed, contradictions and gaps refused."""
    result = form.result
    check_constants(constants)
    given: dict[str, Constant] = {}
    for name, value in constants.items():
        quantity = result.notation.resolve(name)
        if quantity is None:
            raise unknown_constant(f"constant of {result.key}", name, result.notation)
        constant = as_constant(quantity, _for_all(result, quantity, value, constants))
        if quantity.name in given and not np.array_equal(given[quantity.name].value, constant.value):
            raise FedboundsError(f"{quantity.name} is given twice, unequal (by symbol and by concept {name!r})")
        given[quantity.name] = constant
    _same_clients(result, given)
    check_settings(result.notation, given)
    if needed is None:
        needed = form.needs
    known = dict(given)
    missing: list[str] = []
    for name in sorted(needed):
        if not _derive(form, name, known, ()):
            missing.append(name)
    if missing:
        roots = _roots(form, missing, known)
        wanted = ", ".join(f"{n} ({result.notation[n].meaning})" for n in roots)
        raise FedboundsError(
            f"{result.key} [{form.name}] needs {wanted}{_instead(form, roots, known)}{_choice(form, roots)}"
        )
    for rule in form.derived:
        if rule.name in given and rule.free is not True:
            _agree(form, rule, given)
    for rule in result.floors:
        if rule.name in given and all(i in known and known[i].source not in SOFT for i in rule.inputs):
            _agree(form, rule, known)
    order = [n for n in result.notation if n in known and (n in needed or n in given or known[n].note == "default")]
    return {n: known[n] for n in order}


def unknown_constants(form: CompiledForm, names: Iterable[str]) -> list[str]:
    """The symbols that a form needs besides these and those derived from them.

    Example:
        >>> from fedbounds.bounds.evaluation.form_cache import as_compiled
        >>> form = as_compiled("fedau/theorem-2").form()
        >>> unknown_constants(form, ["L", "F", "I", "T", "gamma", "eta", "sigma", "G", "p", "K"])
        ['delta']
    """
    known = {*names, *(q.name for q in form.result.notation.values() if q.default is not None)}
    while more := {r.name for r in form.derived if r.name not in known and known.issuperset(r.inputs)}:
        known |= more
    missing = sorted(form.needs - known)
    return _roots(form, missing, {name: Constant(0.0, "given") for name in known})


def _roots(form: CompiledForm, missing: Sequence[str], known: Mapping[str, Constant]) -> list[str]:
    """The missing constants without those that would follow from the others."""
    left, given = set(missing), {*known, *(q.name for q in form.result.notation.values() if q.default is not None)}
    for name in missing:
        found = left - {name} | given
        while more := {r.name for r in form.derived if r.name not in found and found.issuperset(r.inputs)}:
            found |= more
        left -= {name} & found
    return sorted(left)


def _instead(form: CompiledForm, missing: Sequence[str], known: Mapping[str, Constant]) -> str:
    """The fewest constants from which several of the missing ones follow, in words; "" if there are none."""
    given = {*known, *(q.name for q in form.result.notation.values() if q.default is not None)}
    best: tuple[set[str], set[str]] = set(), set()
    for first in (rule for rule in form.derived if rule.name in missing):
        found = given | (more := {*first.inputs} - given)
        while new := {r.name for r in form.derived if r.name not in found and found.issuperset(r.inputs)}:
            found |= new
        follow = {*missing} & found - more
        if not more & {*missing} and (len(follow) - len(more), -len(more)) > (
            len(best[0]) - len(best[1]),
            -len(best[1]),
        ):
            best = follow, more
    if not best[0]:
        return ""
    return f"; {', '.join(sorted(best[0]))} follow{'s' * (len(best[0]) == 1)} from {', '.join(sorted(best[1]))}"


def _choice(form: CompiledForm, missing: Sequence[str]) -> str:
    """How the missing step sizes can be chosen, in words; "" if none is missing."""
    steps = ",".join(n for n in missing if "step size" in form.result.notation[n].meaning)
    if not steps:
        return ""
    return f"; to choose {steps}: fedbounds optimize --over {steps}, or --optimize {steps} in rounds and compare"


def _derive(form: CompiledForm, name: str, known: dict[str, Constant], pending: tuple[str, ...]) -> bool:
    """Make `name` known by a derivation rule or its default, if it can be; whether it is known."""
    notation = form.result.notation
    if name in known:
        return True
    for rule in form.derived:
        usable = rule.name == name and name not in pending
        if usable and all(_derive(form, i, known, (*pending, name)) for i in rule.inputs):
            value = np.asarray(_apply(rule, known), dtype=float)
            try:
                notation[name].check(value)
            except FedboundsError as error:
                values = [(i, np.asarray(known[i].value, dtype=float)) for i in rule.inputs]
                inputs = ", ".join(f"{i} = {v.item():.12g}" if v.size == 1 else i for i, v in values)
                raise FedboundsError(f"{error}; it follows from {inputs} ({rule.why})") from None
            sources: list[Source] = [known[i].source for i in rule.inputs if known[i].source in SOFT]
            known[name] = Constant(value, sources[0] if sources else "derived", rule.why)
            return True
    default = notation[name].default
    if default is not None:
        known[name] = Constant(np.asarray(default), "given", "default")
    return name in known


def _apply(rule: NumericRule, known: Mapping[str, Constant]) -> np.ndarray | float:
    return rule.rule(*(np.asarray(known[i].value, dtype=float) for i in rule.inputs))


def _agree(form: CompiledForm, rule: NumericRule, given: Mapping[str, Constant]) -> None:
    """Refuse a given constant that contradicts what follows from the others."""
    others = {name: constant for name, constant in given.items() if name != rule.name}
    try:
        if not all(_derive(form, i, others, (rule.name,)) for i in rule.inputs):
            return
        derived = np.asarray(_apply(rule, others))
    except FedboundsError:
        return  # what cannot be computed, as a weight error over too many rounds, has to be given
    value, derived = np.broadcast_arrays(np.asarray(given[rule.name].value, dtype=float), derived)
    wrong = ~rule.admits(value, derived)
    if wrong.any():
        relation = {"upwards": "is below", "downwards": "is above"}.get(str(rule.free), "conflicts with")
        rest = "" if relation == "conflicts with" else ", or give a value beyond it"
        origin = f", computed from {', '.join(rule.inputs)}" if rule.inputs else ""
        raise FedboundsError(
            f"{rule.name} = {value[wrong][0]:.12g} {relation} {derived[wrong][0]:.12g}{origin} ({rule.why}); "
            f"{'give only one of the two' if rule.inputs else f'leave {rule.name} out'}{rest}"
        )


def derived_constants(form: CompiledForm, name: str, known: Mapping[str, Constant]) -> tuple[Constant, ...]:
    """The values that a constant must have, or have at least, by the rules of a form; none if an input is missing.

    Example:
        >>> from fedbounds.bounds.evaluation.form_cache import as_compiled
        >>> form = as_compiled("fed-norm-sgda/theorem-1").form("explicit")
        >>> steps = {"gammax": Constant(0.1, "given"), "taueff": Constant(5.0, "given")}
        >>> [float(c.value) for c in derived_constants(form, "Gammax", steps)]
        [0.5]
    """
    found = ()
    for rule in form.derived:
        others = {symbol: constant for symbol, constant in known.items() if symbol != name}
        if rule.name != name or rule.free not in (False, "upwards"):
            continue
        try:
            if all(_derive(form, i, others, (name,)) for i in rule.inputs):
                found += (Constant(np.asarray(_apply(rule, others)), "derived", rule.why),)
        except FedboundsError:
            continue  # what cannot be computed, as a weight error over too many rounds
    return found


def _for_all(result: CompiledResult, quantity: Quantity, value: Value, constants: Mapping[str, Value]) -> Value:
    """One number for a constant of every client, where the number of clients is given: all clients have it."""
    if not quantity.shape or isinstance(value, NoConstant):
        return value
    number = value.value if isinstance(value, Constant) else value
    clients = next((q for q in result.notation.values() if q.concept == "clients"), None)
    count = next((v for name, v in constants.items() if clients and result.notation.resolve(name) is clients), None)
    if clients is None or count is None or isinstance(number, Sequence) or np.ndim(number):  # pyright: ignore[reportArgumentType]
        return value
    how_many = as_constant(clients, count).value
    if np.ndim(how_many):
        return value
    check_memory(f"{quantity.name} for {clients.name} = {how_many:g} clients", 8 * int(how_many))
    every = np.full(int(how_many), as_real(f"{quantity.name} ({quantity.meaning})", number))
    return replace(value, value=every) if isinstance(value, Constant) else every


def as_constant(quantity: Quantity, value: Value) -> Constant:
    """A given value as a constant inside its domain."""
    if isinstance(value, NoConstant):
        raise FedboundsError(f"{quantity.name} ({quantity.meaning}) has no finite value: {value.why}")
    constant = value if isinstance(value, Constant) else Constant(value, "given")  # pyright: ignore[reportArgumentType]
    array = as_real(f"{quantity.name} ({quantity.meaning})", constant.value)
    if quantity.shape and array.ndim == 0:
        number = f"{float(array):.12g}"
        raise FedboundsError(
            f"{quantity.name} = {number} is one number; it needs one per client: {quantity.meaning} "
            f"(the same for all clients: give their number too; for a single client: '{quantity.name}={number},' with "
            "a comma at its end, or a list of one in Python)"
        )
    if array.size == 0:
        raise FedboundsError(f"{quantity.name} is empty: {quantity.meaning}")
    quantity.check(array)
    return Constant(array, constant.source, constant.note)


def _same_clients(result: CompiledResult, given: Mapping[str, Constant]) -> None:
    """Vectors over clients must agree on how many clients there are, with each other and with their number."""
    lengths = {n: np.asarray(c.value).shape[-1] for n, c in given.items() if result.notation[n].shape}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{n} has {k}" for n, k in lengths.items())
        raise FedboundsError(f"the vectors over clients differ in length: {listed}")
    for name, constant in given.items():
        counts, vector = np.ravel(constant.value), next(iter(lengths), "")
        if vector and result.notation[name].concept == "clients" and (wrong := counts != lengths[vector]).any():
            raise FedboundsError(
                f"{name} = {counts[wrong][0]:.12g} conflicts with {lengths[vector]}, computed from {vector} "
                f"(the length of {vector}); give only one of the two"
            )
