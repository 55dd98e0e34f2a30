"""What to take where the form that is taken by default does not apply: another form of the same result that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledForm
from fedbounds.bounds.evaluation.evaluate import Evaluation, Value, evaluate_form


def others(form: CompiledForm) -> Iterator[CompiledForm]:
    """The other forms with the same left-hand side that say a number, in numbers, and are not refuted."""
    for other in form.result.forms:
        mute = other.order_only or other.asymptotic or other.refuted_by
        if (
            other.name == form.name
            or mute
            or other.own_measure != form.own_measure
            or other.standing().verdict == "refuted"
        ):
            continue
        yield other


def forms_that_hold(evaluation: Evaluation, constants: Mapping[str, Value]) -> dict[str, float]:
    """The forms whose conditions hold at the constants where this one's fail, each with its value, the least first.

    Example:
        >>> from fedbounds.bounds.evaluation.evaluate import evaluate
        >>> known = dict(L=10, F=1, I=5, S=5, sigma=1, N=50, d=1, T=10_000)
        >>> default = evaluate("arbitrary-participation/corollary-4.8", known)
        >>> bool(default.valid), {name: round(value, 3) for name, value in forms_that_hold(default, known).items()}
        (False, {'repaired:any-I': 1.935})
    """
    found: dict[str, float] = {}
    if np.ndim(evaluation.valid) or evaluation.valid:
        return found
    for form in others(evaluation.view):
        try:
            there = evaluate_form(form, constants, strict=False)
        except FedboundsError:  # it needs what is not given
            continue
        if np.ndim(there.value) == 0 and there.valid and np.isfinite(there.value):
            found[form.name] = float(there.value)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def forms_that_reach(form: CompiledForm, ask: Callable[[str], Any]) -> dict[str, int]:
    """The forms that reach a target which this one does not, each with its rounds, the least first."""
    from fedbounds.bounds.search.rounds_answers import Reached  # flint takes its time

    found: dict[str, int] = {}
    for other in others(form):
        try:
            answer = ask(other.name)
        except FedboundsError:
            continue
        if isinstance(answer, Reached):
            found[other.name] = answer.rounds
    return dict(sorted(found.items(), key=lambda item: item[1]))
