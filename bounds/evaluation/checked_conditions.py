"""Relations of constants at given ones: whether they hold, and what there is to show about them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from fedbounds.bounds.display.plain_text import number, number_to, whole_to
from fedbounds.bounds.evaluation.compiled_form import CompiledCondition, CompiledForm
from fedbounds.bounds.theory.symbols import Notation

UNDECLARED = "which constants can occur together is not declared for this form: list its result in FEASIBLE"
OPPOSITE = {"<=": ">", ">=": "<", "==": "!=", "<": ">=", ">": "<="}


@dataclass(frozen=True)
class CheckedCondition:
    """One condition at the given constants: whether it holds, and, when asked for, what there is to show about it."""

    condition: CompiledCondition  # the relation
    holds: np.ndarray  # whether it holds, up to rounding
    notation: Notation = field(repr=False, compare=False)  # the paper's symbols
    # both sides and the extreme admissible value, computed when first needed
    shown: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray | None]] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The relation in plain text, as the paper writes it."""
        return self.condition.printed().text

    @property
    def latex(self) -> str:
        """The relation in LaTeX, as the paper writes it."""
        return self.condition.printed().latex

    @property
    def why(self) -> str:
        """Where the proof uses it."""
        return self.condition.why

    @property
    def limits(self) -> str:
        """The constant that it caps or floors ("" for none)."""
        return self.condition.limits

    @property
    def left(self) -> np.ndarray:
        """The left-hand side's value."""
        return self.shown()[0]

    @property
    def right(self) -> np.ndarray:
        """The right-hand side's value."""
        return self.shown()[1]

    @property
    def admissible(self) -> np.ndarray | None:
        """The extreme admissible value of the constant that it limits; None where there is no closed form."""
        return self.shown()[2]

    @property
    def limit(self) -> str:
        """The extreme admissible value for people: what is printed is admissible, and whole where the constant is."""
        if self.admissible is None:
            return ""
        value, caps = float(self.admissible), self.condition.printed().caps
        if caps is None:
            return number(value)
        side = "below" if caps else "above"
        if not self.notation[self.limits].domain.integer:
            return number_to(side, value)
        strict = self.condition.op in ("<", ">") and value.is_integer()  # infinity is none
        return whole_to(side, value + (1 - 2 * caps) * strict)


def constants_together(chosen: CompiledForm, numbers: Mapping[str, np.ndarray]) -> tuple[CheckedCondition, ...]:
    """What constants that occur together satisfy, and where a problem is known, at these constants."""
    if not (relations := (*(chosen.feasible or ()), *chosen.witnessed)):
        return ()
    compiled, notation = chosen.occurring, chosen.result.notation
    shown = cache(lambda: compiled.sides(numbers))
    verdicts = compiled.parts(numbers).holds
    return tuple(
        CheckedCondition(c, verdict, notation, lambda i=i: shown()[i])
        for i, (c, verdict) in enumerate(zip(relations, verdicts, strict=True))
    )


def why_impossible(
    chosen: CompiledForm, together: Sequence[CheckedCondition], known: Container[str]
) -> tuple[str, ...]:
    """Why no problem has these constants, or none is known to."""
    if chosen.feasible is None:
        return (UNDECLARED,) if chosen.standing().verdict == "proved" and not chosen.order_only else ()
    count = len(chosen.feasible)
    violated = [c for c in together[:count] if not np.all(c.holds)]
    computed = chosen.computed_from and all(name in known for name in chosen.computed_from)
    unknown = [] if computed else [c for c in together[count:] if not np.all(c.holds)]
    if violated:
        c = violated[0]
        where, left, right = _first_violation(c)
        sides = f"{left} {OPPOSITE[c.condition.op]} {right}"
        return (f"no problem has these constants{where}: {c.text} ({c.why}), got {sides}",)
    if unknown and chosen.computed_from:
        names = ", ".join(chosen.computed_from)
        return (f"no problem is known to have these constants: give {names} instead of what follows from them",)
    if unknown:
        where, left, right = _first_violation(c := unknown[0])
        return (
            f"no problem is known to have these constants{where}: those that are ({c.why}) need "
            f"{left} {c.condition.op} {right}",
        )
    return ()


def _first_violation(c: CheckedCondition) -> tuple[str, str, str]:
    """At how many settings it fails, if there are several, and both sides at the first of them."""
    holds, left, right = np.broadcast_arrays(c.holds, c.left, c.right)
    where = f" at {np.count_nonzero(~holds)} of {holds.size} settings" if holds.ndim else ""
    return where, f"{left[~holds][0]:.6g}", f"{right[~holds][0]:.6g}"
