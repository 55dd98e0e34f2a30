"""Checks of a stated theorem against the reference theorems of its class.

A bound that falls faster with the number of rounds than a lower bound for a class that it covers is false. A bound that
is far above an explicit one of which the assumptions hold in its setting has room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fedbounds.bounds.advice.coverage import coverage
from fedbounds.bounds.advice.theorem_check import Finding, constants_at, draw_constants
from fedbounds.bounds.asymptotics.orders import exponent
from fedbounds.bounds.asymptotics.rates import SMALL, STEPS, at_equal_steps, at_most, rate
from fedbounds.bounds.display.plain_text import number
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.bounds.theory.problem_class import ProblemClass
from fedbounds.bounds.theory.problem_class_terms import AXES
from fedbounds.bounds.theory.registry import load, papers
from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.theorem_file import TheoremFile, read_theorem_file

OPEN = {"heterogeneity", "local-steps"}  # properties that a lower bound may leave open: its problem may be the easiest
FAR = 10  # times another bound, in every random setting


def compare_with_references(theorem: TheoremFile) -> Iterator[Finding]:
    """What the reference theorems say of every form, and keys that no result has.

    Nothing of a form without a setting, or where no reference theorem is about it.
    """
    yield from _unknown_keys(theorem)
    mine = theorem.result
    if theorem.setting is None or mine.measure.lower:
        return
    others = [r for p in papers(references=True) for r in p.results if r.file and r.key != mine.key]
    for form in mine.forms:
        place = () if len(mine.forms) == 1 else ("forms", form.name)
        if (fast := _faster_than_linear(mine, form)) is not None:
            yield replace(fast, form=form.name, place=(*place, "terms"))
        for about in map(read_theorem_file, (other.file for other in others)):
            found = (_below if about.result.measure.lower else _far_above)(theorem, form, about)
            if found is not None:
                yield replace(found, form=form.name, place=(*place, "terms"))


def _faster_than_linear(result: Result, form: Form) -> Finding | None:
    """A bound that falls faster with the number of participants than with the rounds."""
    try:
        found = rate(result, form)
    except FedboundsError:
        return None
    if found.speed_up != "faster than linear":
        return None
    text = (
        f"the bound falls as the power -{found.participants} of the number of participants and as {found.order}: M "
        "participants would need less than 1/M of the rounds, which no lower bound with averaged noise allows"
    )
    return Finding("warning", "references", "", text)


def _unknown_keys(theorem: TheoremFile) -> Iterator[Finding]:
    """Keys in `uses` and `improves` that no result has, and no file beside the theorem's."""
    place = Path(theorem.result.file)
    for name, keys in (("uses", theorem.uses), ("improves", theorem.improves)):
        for key in keys:
            try:
                load(key)
            except FedboundsError as error:
                beside = place.parent.glob("*.toml") if theorem.result.file else ()
                if key not in {_key_of(file) for file in beside}:
                    yield Finding("error", "references", theorem.result.default, f"{name}: {error}", (name,))


def _key_of(file: Path) -> Any:
    """The key in a theorem file; None where it has none, or cannot be read."""
    try:
        return read_toml(str(file), names_files=False).get("key")
    except FedboundsError:
        return None


def _covers(result: Result, form: Form, other: TheoremFile) -> bool:
    """Whether a form covers a class of a lower bound, which holds for each kind that it lists.

    It may leave open how clients differ and work, and the server if the lower bound is about every algorithm.
    """
    if other.setting is None:
        return False
    asked = other.setting.said if other.algorithm else {"server": tuple(AXES["server"].kinds), **other.setting.said}
    found = coverage(result, form, (), ProblemClass(asked))
    return found.answer != "not covered" and found.only_if.keys() <= OPEN | asked.keys()


def _below(theorem: TheoremFile, form: Form, lower: TheoremFile) -> Finding | None:
    """A bound that falls faster than a lower bound for a class that it covers."""
    result, other = theorem.result, lower.result
    own = form.measure or result.measure
    if lower.algorithm not in ("", theorem.algorithm) or own.of != other.measure.of or not _covers(result, form, lower):
        return None
    try:
        mine, theirs = rate(result, form), rate(other, other.form())
    except FedboundsError:
        return None
    if mine.stays or theirs.stays or mine.power <= theirs.power or not _many_rounds(result, form, mine.rounds):
        return None
    text = (
        f"false: it falls as {mine.order}, and no method does better than {theirs.order} "
        f"on some problem that it covers: {other.key} ({other.source})"
    )
    return Finding("error", "references", "", text)


def _many_rounds(result: Result, form: Form, rounds: sp.Symbol) -> bool:
    """Whether the conditions hold after any large number of rounds at fixed constants; not where that is unknown."""
    if result.notation[rounds.name].domain.high < inf:
        return False
    steps = [q.symbol for q in result.notation.values() if q.concept in STEPS]
    for condition in at_equal_steps(form, steps).hypotheses:
        if any(side.has(*steps) for side in (condition.left, condition.right)):
            continue  # those of step sizes that are left free: the rate is at powers of T that meet them
        for below, above in at_most(condition):
            try:
                first, second = (exponent(_slow_logs(side, rounds), rounds) for side in (below, above))
            except FedboundsError:
                return False
            if first is not None and (second is None or first > second):
                return False
    return True


def _slow_logs(side: sp.Expr, rounds: sp.Symbol) -> sp.Expr:
    """The expression with a small power of T for every logarithm that depends on T."""
    return side.xreplace({log: sp.Pow(rounds, sp.Rational(SMALL)) for log in side.atoms(sp.log) if log.has(rounds)})


def _far_above(theorem: TheoremFile, form: Form, upper: TheoremFile) -> Finding | None:
    """An explicit bound that is at least FAR times another one, whose class contains its setting, everywhere."""
    result, other = theorem.result, upper.result
    if form.order_only or form.prescribes or other.form().order_only:
        return None
    if theorem.setting is None or upper.algorithm != theorem.algorithm:
        return None
    theirs, own = other.form().measure or other.measure, form.measure or result.measure
    if theorem.setting.kinds("participation") == ("all",):
        theirs, own = theirs.of_all_clients(), own.of_all_clients()
    if not own.is_at_most(theirs):
        return None
    if coverage(other, other.form(), (), theorem.setting).answer != "covered":
        return None
    drawn = draw_constants(result, form)
    if drawn is None:
        return None
    evaluation, constants = drawn
    known = {result.notation[name].concept: values for name, values in constants.items()}
    wanted = {q.concept for q in other.notation.values() if q.name in other.form().needs}
    if not wanted <= known.keys():
        return None
    at = evaluate(other, {c: known[c] for c in wanted}, other.form().name, strict=False)
    both = evaluation.valid & at.valid & (np.asarray(at.value) > 0)
    if not both.any():
        return None
    ratios = np.where(both, np.asarray(evaluation.value) / np.where(both, at.value, 1), np.inf)
    least = int(np.argmin(ratios))
    if not ratios[least] > FAR:
        return None
    text = f"at least {number(float(ratios[least]))} times {other.key} [{other.form().name}], which covers its setting"
    return Finding("warning", "references", "", text, (), constants_at(constants, least))
