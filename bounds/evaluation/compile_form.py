"""The views of results that are there with their expressions (`fedbounds.bounds.evaluation.compiled_form`)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fedbounds.bounds.evaluation.compiled_form import ConditionView, FormView, PrintedCondition, ResultView
from fedbounds.bounds.evaluation.expression_tree import Structure, as_tree

if TYPE_CHECKING:
    from fedbounds.bounds.theory.result import Condition, Form, Result
    from fedbounds.bounds.theory.symbols import Notation


def form_view(result: Result, form: Form) -> FormView:
    """The view of a form, of a result that may be without it.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("fedau/theorem-2")
        >>> form_view(theorem, theorem.form("printed")).terms[0]
        'initial gap'
    """
    return _form_view(view(result), result, form)


@lru_cache(maxsize=256)
def view(result: Result) -> ResultView:
    """The view of a result."""
    from fedbounds.bounds.evaluation.numpy_code import numeric_rule  # sympy takes its time

    floors = tuple(numeric_rule(rule, result.notation) for rule in result.notation.floors)
    made = ResultView(
        result.key, str(result.source), result.measure, result.notation, result.default, floors, lambda: result
    )
    made.forms.extend(_form_view(made, result, form) for form in result.forms)
    return made


@lru_cache(maxsize=1024)
def _form_view(of: ResultView, result: Result, form: Form) -> FormView:
    from fedbounds.bounds.audit.ledger import audit_status
    from fedbounds.bounds.evaluation.numpy_code import code_expressions, compile_form_function, numeric_rule
    from fedbounds.bounds.theory.feasible_set import feasible_set

    declared = feasible_set(result, form)
    relations, known = (declared.relations, declared.witnessed) if declared else ((), ())
    sides = tuple(side for c in (*relations, *known) for side in (c.left, c.right))
    return FormView(
        of,
        form.name,
        form.order_only,
        form.hides,
        form.asymptotic,
        form.refuted_by,
        form.generous,
        tuple(term.name for term in form.terms),
        tuple(condition_view(condition, result.notation) for condition in form.conditions),
        tuple(assumption.name for assumption in form.assumptions),
        tuple(form.prescribes),
        tuple(numeric_rule(rule, result.notation) for rule in form.derived),
        form.variables,
        form.needs,
        form.measure,
        lambda: form,
        lambda which: code_expressions(sides) if which == "feasible" else compile_form_function(form, which),
        lambda: audit_status(result, form),
        lambda: tuple(assumption.cover for assumption in form.assumptions),
        lambda: _structure(form),
        tuple(condition_view(c, result.notation) for c in relations) if declared else None,
        tuple(condition_view(c, result.notation) for c in known),
        declared.computed_from if declared else (),
    )


def _structure(form: Form) -> Structure:
    return Structure(
        tuple(as_tree(term.expression) for term in form.terms),
        tuple((as_tree(c.left), as_tree(c.right)) for c in form.conditions),
        form.length,
    )


def condition_view(condition: Condition, notation: Notation) -> ConditionView:
    """The view of a condition."""

    @lru_cache(maxsize=1)
    def said() -> PrintedCondition:
        printed = condition.as_printed(notation)
        return PrintedCondition(
            printed.text, printed.latex, condition.text, condition.extreme is not None, condition.caps
        )

    limits = "" if condition.limits is None else condition.limits.name
    return ConditionView(condition.op, condition.why, limits, condition.legal, said)
