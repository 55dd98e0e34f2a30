"""A form with some constants left free: what the optimizer and the search for rounds work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledForm, CompiledResult
from fedbounds.bounds.evaluation.expression_tree import names_in
from fedbounds.bounds.evaluation.resolution import Value, resolve
from fedbounds.bounds.theory.names_by_meaning import unknown_constant
from fedbounds.bounds.theory.symbols import Constant, Notation, Quantity, dependencies

if TYPE_CHECKING:
    import sympy as sp

    from fedbounds.bounds.theory.result import Form, Result


class SearchCondition(Protocol):
    """A condition of a form, with its expressions or their trees."""

    @property
    def left(self) -> Any: ...
    @property
    def op(self) -> str: ...
    @property
    def right(self) -> Any: ...
    @property
    def why(self) -> str: ...
    @property
    def text(self) -> str: ...
    def words(self, notation: Notation, /) -> str:
        """The relation in plain text, as the paper writes it."""
        ...


@dataclass(frozen=True)
class Partial:
    """A form at fixed constants, as expressions in the free ones, or as their trees.

    Attributes:
        free: the names of the free constants.
        values: every other constant that the expressions need (numbers, or vectors over clients).
        terms: name to expression; constants derived from free ones are written out.
        conditions: those that involve a free constant, written out likewise.
        settled: those that do not.
        opaque: constants that follow from free ones by a numpy function, which no expression can hold.
    """

    result: Any  # a Result and a Form, or their views
    form: Any
    free: tuple[str, ...]
    values: Mapping[str, np.ndarray]
    terms: Mapping[str, Any]
    conditions: tuple[SearchCondition, ...]
    settled: tuple[SearchCondition, ...]
    opaque: tuple[str, ...]


def quantity_named(result: Result | CompiledResult, form: Form | CompiledForm, name: str) -> Quantity:
    """The number that this name (a symbol or a concept) stands for, where the form depends on it."""
    quantity = result.notation.resolve(name)
    where = f"{result.key} [{form.name}]"
    if quantity is None:
        raise unknown_constant(f"constant of {result.key}", name, result.notation)
    if quantity.shape:
        raise FedboundsError(
            f"{quantity.name} is one number per client ({quantity.meaning}); only a number can be free"
        )
    if quantity.name in form.prescribes:
        others = [
            f.name for f in result.forms if quantity.name not in f.prescribes and quantity.name in _dependencies(f)
        ]
        hint = f"; it is in these forms: {', '.join(others)}" if others else ""
        step = (form.whole() if isinstance(form, CompiledForm) else form).prescribes[quantity.name]
        raise FedboundsError(f"{where} prescribes {quantity.name} = {step}; it is not free{hint}")
    if quantity.name not in _dependencies(form):
        raise FedboundsError(f"{quantity.name} ({quantity.meaning}) does not enter {where}")
    return quantity


def _dependencies(form: Form | CompiledForm) -> set[str]:
    return dependencies(form.variables, form.derived)


def _given_symbols(result: Result | CompiledResult, constants: Mapping[str, Value], free: tuple[str, ...]) -> set[str]:
    """The symbols of what is given."""
    given = set()
    for name in constants:
        quantity = result.notation.resolve(name)
        if quantity is None:
            raise unknown_constant(f"constant of {result.key}", name, result.notation)
        given.add(quantity.name)
        if quantity.name in free:
            raise FedboundsError(f"{quantity.name} is given and also left free; leave it out of the constants")
    return given


def _values(result: Result | CompiledResult, known: Mapping[str, Constant]) -> dict[str, np.ndarray]:
    """The numbers and the vectors over clients."""
    values = {name: np.asarray(c.value, dtype=float) for name, c in known.items()}
    for name, value in values.items():
        if np.ndim(value) > len(result.notation[name].shape):
            raise FedboundsError(f"{name} is a list; one number is wanted here: {result.notation[name].meaning}")
    return values


def leave_free(
    form: CompiledForm, constants: Mapping[str, Value], free: Iterable[str], *, symbolic: bool = False
) -> Partial:
    """Fix every constant of a form but the free ones, which must be absent from the constants.

    The result holds trees, or sympy expressions if `symbolic`, or if a constant is derived from a free one.
    """
    free, result = tuple(free), form.result
    given = _given_symbols(result, constants, free)
    moving = set(free)
    while more := {r.name for r in form.derived if moving.intersection(r.inputs)} - given - moving:
        moving |= more
    if symbolic or moving.intersection(form.variables) - set(free):
        return _substitute_derived(form, constants, free, given)
    terms = dict(zip(form.terms, form.structure().terms, strict=True))
    values = _values(result, resolve(form, constants, needed=form.variables - moving))
    relations = [(c, bool(names_in(c.left, c.right).intersection(free))) for c in form.relations]
    moves, settled = (tuple(c for c, depends in relations if depends == wanted) for wanted in (True, False))
    return Partial(result, form, free, values, terms, moves, settled, ())


def _substitute_derived(
    compiled: CompiledForm, constants: Mapping[str, Value], free: tuple[str, ...], given: set[str]
) -> Partial:
    """The expressions of a form, in which constants derived from free ones are written out."""
    import sympy as sp  # takes its time

    from fedbounds.bounds.theory.expressions import substitute, symbol_names
    from fedbounds.bounds.theory.result import Condition

    result, form = compiled.result.whole(), compiled.whole()
    written: dict[str, sp.Expr | None] = {name: result.notation[name].symbol for name in free}

    def write(name: str, pending: tuple[str, ...]) -> bool:
        """Whether this constant depends on a free one; its expression is then in `written`."""
        if name in written:
            return True
        for rule in form.derived:
            if rule.name == name and name not in given and name not in pending:
                moving = [i for i in rule.inputs if write(i, (*pending, name))]
                known = all(i in moving or i in given or _available(result, form, i, given) for i in rule.inputs)
                if moving and known:
                    steps = {result.notation[i].symbol: e for i in moving if (e := written[i]) is not None}
                    written[name] = None
                    if isinstance(rule.rule, sp.Expr) and len(steps) == len(moving):
                        written[name] = substitute(rule.rule, steps)
                    return True
        return False

    needed = {s.name for s in form.symbols}
    moving = {name for name in needed if write(name, ())}
    steps = {result.notation[n].symbol: e for n, e in written.items() if e is not None and n not in free}
    terms = {t.name: substitute(t.expression, steps) for t in form.terms}
    conditions = [
        Condition(substitute(c.left, steps), c.op, substitute(c.right, steps), c.why, c.limits) for c in form.conditions
    ]
    symbols = symbol_names(*terms.values(), *(side for c in conditions for side in (c.left, c.right)))
    fixed = frozenset(symbols - set(written))
    values = _values(result, resolve(compiled, constants, needed=fixed))
    depends = [bool(symbol_names(c.left, c.right) & set(written)) for c in conditions]
    # as the form has them, but for those in which what follows from a free constant has cancelled
    still = [
        old if symbol_names(old.left, old.right) <= fixed else new
        for old, new in zip(form.conditions, conditions, strict=True)
    ]
    return Partial(
        result=result,
        form=form,
        free=free,
        values=values,
        terms=terms,
        conditions=tuple(c for c, moves in zip(conditions, depends, strict=True) if moves),
        settled=tuple(c for c, moves in zip(still, depends, strict=True) if not moves),
        opaque=tuple(sorted(n for n in moving if written[n] is None)),
    )


def _available(result: Result, form: Form, name: str, given: set[str]) -> bool:
    if name in given or result.notation[name].default is not None:
        return True
    return any(
        rule.name == name and all(_available(result, form, i, given) for i in rule.inputs) for rule in form.derived
    )
