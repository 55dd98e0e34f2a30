"""A formula for a step size, as it stands in a program, against the conditions of a theorem, for all constants.

The ratio of the formula to the largest legal value is a monomial where both are: its supremum over the legal constants
is then exact. Other ratios are compared with 1 by the prover of the audit, and where it decides nothing by random
constants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import sympy as sp
from sympy.simplify.powsimp import powsimp

from fedbounds.bounds.advice.monomial_supremum import supremum
from fedbounds.bounds.advice.theorem_check import DRAWS, constants_at, draw_quantity, meet, natural_order
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.display.plain_text import number, number_to
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.dimensions import DimensionMismatch, dimension_of
from fedbounds.bounds.theory.names_by_meaning import unknown_constant
from fedbounds.bounds.theory.parsing import FUNCTIONS, is_finite_real, read_text_expression
from fedbounds.bounds.theory.printing import plain, plain_decimals
from fedbounds.bounds.theory.result import Condition, Form, Result
from fedbounds.bounds.theory.standard_symbols import STANDARD
from fedbounds.bounds.theory.symbols import Notation, Quantity
from fedbounds.bounds.theory.theorem_file import STEP_CONCEPTS

Answer = Literal["holds", "fails", "no counterexample"]
CLIMBS = 4  # rounds of settings near the worst one
LARGEST_POWER = 100  # of ten, in formulas and constants: products of them are floats
POSITIVE = "a step size is positive"
NEAR_EDGE = 1e-9  # distance of a value from an open end of its domain
SHORT = 1000  # denominators of fractions that are kept
NEAR = 1e-6  # relative distance of a found supremum from the number that is proved to be an upper bound


@dataclass(frozen=True)
class FormulaCheck:
    """One condition at a formula."""

    condition: str  # as the theorem writes it
    step: str  # the first step size in it, of which ratio and factor are
    answer: Answer
    ratio: str  # the formula over the largest legal value; "" where there is no closed form
    how: str  # how it is known
    largest_factor: float | None  # the largest c for which c times the formula is legal; 0 if none, None if not known
    exact: bool  # whether this factor is proved; else it is an upper bound, found by a search
    strict: bool = False  # whether the factor itself is not legal, but all smaller ones are
    at: Mapping[str, float] = field(default_factory=dict)  # of a counterexample
    left: float = float("nan")
    right: float = float("nan")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "at": dict(self.at)}


@dataclass(frozen=True)
class StepFormula:
    """Formulas of step sizes against one form."""

    claim: str  # key[form]
    formulas: Mapping[str, str]  # symbol to formula
    unit_faults: tuple[str, ...]
    checks: tuple[FormulaCheck, ...]

    @property
    def legal(self) -> bool:
        """Whether the units are right and no condition fails for any constants."""
        return not self.unit_faults and all(check.answer != "fails" for check in self.checks)

    @property
    def fails_at_every_factor(self) -> tuple[str, ...]:
        """The conditions that fail, and that do not depend on the first formula."""
        first = next(iter(self.formulas))
        return tuple(check.condition for check in self.checks if check.answer == "fails" and check.step != first)

    @property
    def _size_checks(self) -> tuple[FormulaCheck, ...]:
        """The conditions that limit the size of a step size: not those that a formula is positive."""
        return tuple(check for check in self.checks if check.condition != f"{check.step} > 0")

    @property
    def largest_factor(self) -> float | None:
        """The largest factor of the first formula at which every condition holds; None if it is not known."""
        not_positive = any(check.answer == "fails" for check in self.checks if check not in self._size_checks)
        if not_positive or self.fails_at_every_factor:
            return 0.0
        factors = [check.largest_factor for check in self._size_checks if check.step == next(iter(self.formulas))]
        if 0.0 in factors:  # whatever the others are
            return 0.0
        return None if None in factors or not factors else min(f for f in factors if f is not None)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "claim": self.claim,
            "formulas": dict(self.formulas),
            "units": list(self.unit_faults),
            "legal": self.legal,
            "largest_factor": self.largest_factor,
            "conditions": [check.to_dict() for check in self.checks],
        }


def check_formulas(
    result: Result, form: Form, texts: Mapping[str, str], given: Mapping[str, float] | None = None
) -> StepFormula:
    """Whether formulas of step sizes meet every condition of a form on them, for all legal constants.

    Args:
        result, form: the theorem.
        texts: symbol or concept of a step size to its formula; the symbol "" is the only step size that is not fixed.
        given: constants that are fixed.

    Raises:
        FedboundsError: an unknown name, or a symbol that is no step size.

    Example:
        >>> from fedbounds.bounds.theory.theorem_file import theorem
        >>> result = theorem("draft/local", measure="minimum over rounds of squared gradient norm of f",
        ...                  terms={"gap": "2*F/(gamma*I*T)"}, conditions=["gamma <= 1/(4*L*I)"])
        >>> found = check_formulas(result, result.form(), {"": "1/(8*L)"})
        >>> found.checks[0].answer, found.checks[0].ratio, found.largest_factor
        ('fails', 'I/2', 0.0)
        >>> check_formulas(result, result.form(), {"": "1/(8*L)"}, {"I": 2}).largest_factor
        1.0
    """
    known = {name for q in result.notation.values() for name in (q.name, q.concept)}
    more = [q for q in STANDARD.values() if not known & {q.name, q.concept}]
    notation = Notation([*result.notation.values(), *more])  # a formula may have constants that the theorem has not
    result = replace(result, notation=notation)
    fixed = {_symbol(notation, name): _rational(value) for name, value in (given or {}).items()}
    for symbol, value in fixed.items():
        notation[symbol.name].check(np.asarray(float(value)))
    names = _names(notation)
    steps: dict[sp.Symbol, sp.Expr] = {}
    for name, text in texts.items():
        step = _step_symbol(result, form, name, fixed)
        if step in steps:
            raise FedboundsError(f"--step {step} is given twice, under two of its names; give one formula for {step}")
        formula = read_text_expression(text, "--step", names, FUNCTIONS)
        if not is_finite_real(formula):
            raise FedboundsError(f"--step {step}={text!r} is no finite real number")
        for one in formula.atoms(sp.Rational):
            _check_size(one, f"--step {step}={text!r} contains a number of about")
        if step in formula.free_symbols:
            raise FedboundsError(
                f"--step {step}={text!r} contains {step} itself; give a formula of the other constants"
            )
        steps[step] = formula
    faults = tuple(_unit_faults(notation, steps))
    about = [c for c in form.conditions if (c.left.free_symbols | c.right.free_symbols) & steps.keys()]
    others = [c for c in form.conditions if c not in about]
    named = {str(s) for e in (*form.expressions, *steps.values()) for s in e.free_symbols}
    for smaller, larger in natural_order(notation, named):
        low = notation[smaller].symbol
        others.append(Condition(low, "<=", notation[larger].symbol, "what the symbols mean", limits=low))
    rows = [*about, *_prescribed(form, steps)]
    rows += [Condition(step, ">", sp.Integer(0), POSITIVE) for step, formula in steps.items() if _subtracts(formula)]
    if not rows:
        named = ", ".join(map(str, steps))
        raise FedboundsError(f"{result.key} [{form.name}] has no condition on {named}: there is nothing to check")
    checks = tuple(_Search(result, form, steps, fixed, others).check(condition) for condition in rows)
    formulas = {str(step): plain_decimals(formula) for step, formula in steps.items()}
    return StepFormula(f"{result.key}[{form.name}]", formulas, faults, () if faults else checks)


def _subtracts(formula: sp.Expr) -> bool:
    """Whether a formula may not be positive: it is zero, or subtracts something."""
    sums = [arg for each in formula.atoms(sp.Add) for arg in each.args]
    return formula == 0 or any(each.could_extract_minus_sign() for each in (formula, *sums))


def _prescribed(form: Form, steps: Mapping[sp.Symbol, sp.Expr]) -> Iterator[Condition]:
    """That a formula is the step size that a form sets."""
    for step in steps:
        if str(step) in form.prescribes:
            yield Condition(step, "==", form.prescribes[str(step)], "the step size that the theorem sets", step)


def _names(notation: Notation) -> dict[str, sp.Expr]:
    """What names of a formula stand for: symbols, concepts, and the standard symbols of the same concepts."""
    found: dict[str, sp.Expr] = {q.name: q.symbol for q in STANDARD.values()}
    own = {q.concept: q.symbol for q in notation.values()}
    found = {name: own[STANDARD[name].concept] for name in found if STANDARD[name].concept in own}
    return {**found, **own, **{q.name: q.symbol for q in notation.values()}}


def _check_size(number: sp.Rational, what: str) -> None:
    """Refuse a number so large or small that products with it are no floats."""
    power = float(sp.log(abs(number), 10)) if number else 0.0
    if abs(power) > LARGEST_POWER:
        raise FedboundsError(f"{what} 1e{power:.0f}; numbers are from 1e-{LARGEST_POWER} to 1e{LARGEST_POWER}")


def _rational(value: float) -> sp.Rational:
    """The short fraction that a float is nearest to, as 1/3, else the decimal number that it is printed as."""
    if not np.isfinite(value):
        raise FedboundsError(f"{value} is no finite number; --step needs finite constants")
    near = Fraction(value).limit_denominator(SHORT)
    rational = sp.Rational(str(near) if float(near) == value else repr(float(value)))
    _check_size(rational, "a constant is about")
    return rational


def _symbol(notation: Notation, name: str) -> sp.Symbol:
    quantity = notation.resolve(name)
    if quantity is None:
        raise unknown_constant("constant", name, notation)
    return quantity.symbol


def _step_symbol(result: Result, form: Form, name: str, fixed: Collection[sp.Symbol]) -> sp.Symbol:
    """The symbol of a step size of the form; without a name the only one that is not fixed."""
    notation = result.notation
    used = {str(s) for e in form.expressions for s in e.free_symbols} | form.prescribes.keys()
    sizes = [q.name for q in notation.values() if q.name in used and q.concept.endswith(STEP_CONCEPTS)]
    if not sizes:
        raise FedboundsError(f"{result.key} [{form.name}] has no step size: --step needs a form with conditions on one")
    if not name:
        free = [size for size in sizes if notation[size].symbol not in fixed] if len(sizes) > 1 else sizes
        if len(free) == 1:
            return notation[free[0]].symbol
        example = f'--step {sizes[0]}="FORMULA"'
        raise FedboundsError(f"{result.key} has several step sizes: {', '.join(sizes)}; name one, e.g. {example}")
    quantity = notation.resolve(name)
    if quantity is None or quantity.name not in sizes:
        raise unknown_name("step size", name, sizes)
    return quantity.symbol


def _unit_faults(notation: Notation, steps: Mapping[sp.Symbol, sp.Expr]) -> Iterator[str]:
    for step, formula in steps.items():
        wanted = notation[str(step)].dimension
        try:
            unit = dimension_of(formula, notation)
        except DimensionMismatch as mismatch:
            yield f"{step} = {plain(formula)}: {mismatch}"
            continue
        if unit is not None and unit != wanted:
            yield f"{step} = {plain(formula)} has unit {unit}, not {wanted}"


@dataclass(frozen=True, eq=False)
class _Search:
    """The conditions of a form at formulas."""

    result: Result
    form: Form
    steps: Mapping[sp.Symbol, sp.Expr]
    fixed: Mapping[sp.Symbol, sp.Expr]
    others: Sequence[Condition]  # that are not about these step sizes

    def at(self, expression: sp.Expr) -> sp.Expr:
        """An expression at the formulas and the given constants."""
        return expression.xreplace(dict(self.steps)).xreplace(dict(self.fixed))

    def check(self, condition: Condition) -> FormulaCheck:
        """One condition."""
        step = next(s for s in self.steps if s in condition.left.free_symbols | condition.right.free_symbols)
        extreme, limited = condition.right, replace(condition, limits=step)
        if condition.op != "==":
            extreme = limited.extreme if limited.caps else None
        if extreme is None:
            return self._compare(condition, str(step), None)
        ratio = self.at(self.steps[step]) / self.at(extreme)
        return self._compare(condition, str(step), powsimp(sp.simplify(ratio), force=True))

    def _compare(self, condition: Condition, step: str, ratio: sp.Expr | None) -> FormulaCheck:
        text, strict = condition.words(self.result.notation), condition.op in ("<", ">")
        left, right = self.at(condition.left), self.at(condition.right)
        shown = "" if ratio is None else plain_decimals(ratio)
        others = [replace(c, left=self.at(c.left), right=self.at(c.right)) for c in self.others]
        limit = None if ratio is None else supremum(ratio, self.result.notation, others)
        worst, values, at = self._worst(left, right, condition, ratio)
        if condition.op == "==":
            answer: Answer = "holds" if ratio == 1 else "no counterexample" if values is None else "fails"
            sides = values or (float("nan"), float("nan"))
            return FormulaCheck(text, step, answer, shown, "simplified", None, True, False, at, *sides)
        largest = None if limit is None else limit.value
        sure = largest is not None and bool(largest < 1 or (largest == 1 and not strict))
        factor, proved = None, False
        if limit is not None and (limit.sharp or worst > float(limit.value) * (1 - NEAR)):
            factor, proved = (0.0 if limit.value == sp.oo else float(1 / limit.value)), True
        elif ratio is not None and worst > 0:
            factor, proved = self._round_factor(ratio, worst)
        if sure or self._proved(left, right, condition):
            how = "proved from the domains of the constants"
            if sure and largest is not None:
                at_most = f"the ratio {shown} is at most {plain_decimals(largest)}"
                how = at_most if ratio != largest else f"the ratio is {shown}"
            return FormulaCheck(text, step, "holds", shown, how, factor, proved, strict)
        if values is not None:
            how = "a counterexample"
            return FormulaCheck(text, step, "fails", shown, how, factor, proved, strict, at, *values)
        how = f"no counterexample in {DRAWS * (1 + CLIMBS)} settings"
        return FormulaCheck(text, step, "no counterexample", shown, how, factor, proved, strict)

    def _facts(self) -> list[Relation]:
        """The other conditions, for the prover."""
        swapped = {">=": "<=", ">": "<="}
        found = []
        for c in self.others:
            left, right = self.at(c.left), self.at(c.right)
            if c.op in swapped:
                left, right = right, left
            found.append(Relation(left, right, "==" if c.op == "==" else "<="))
        return found

    def _proved(self, left: sp.Expr, right: sp.Expr, condition: Condition) -> bool:
        """Whether the prover of the audit shows it; false without the extra `audit`."""
        try:
            from fedbounds.bounds.audit.nonnegative import prove
        except ImportError:
            return False
        if condition.op in ("<", ">"):
            return False
        slack = right - left if condition.op == "<=" else left - right
        try:
            return prove(slack, self._facts()).holds
        except (FedboundsError, ArithmeticError, TypeError, ValueError):
            return False

    def _round_factor(self, ratio: sp.Expr, worst: float) -> tuple[float, bool]:
        """The factor 1/worst, as a short fraction that is proved to be legal where there is one."""
        near = Fraction(worst).limit_denominator(SHORT)
        value = sp.Rational(near.numerator, near.denominator)
        if abs(float(near) / worst - 1) < NEAR and self._proved(ratio, value, Condition(ratio, "<=", value, "")):
            return float(1 / near), True
        return 1 / worst, False

    def _worst(
        self, left: sp.Expr, right: sp.Expr, condition: Condition, ratio: sp.Expr | None
    ) -> tuple[float, tuple[float, float] | None, dict[str, float]]:
        """The largest ratio that was found, both sides where the condition fails, and the constants there."""
        above = condition.op in ("<=", "<")
        merit = ratio if ratio is not None else (left / right if above else right / left)
        own = Condition(left, condition.op, right, condition.why)
        kept = [replace(c, left=self.at(c.left), right=self.at(c.right)) for c in self.others]
        conditions = (own, Condition(merit, "<=", sp.Integer(1), ""), *kept)
        form = replace(self.form, terms=(), conditions=conditions, prescribes={}, derived=())
        result = replace(self.result, forms=(form,), default=form.name)
        rng = np.random.default_rng(0)
        names = sorted(form.variables)
        constants = {name: draw_quantity(result.notation[name], rng) for name in names}
        for name, values in constants.items():  # the plainest setting
            if result.notation[name].total is None:
                values[0] = 1.0
        for c in (*kept, *kept):  # the limit of one may depend on what another moves
            meet(result, c, constants, rng)
        constants = {name: _legal(result.notation[name], values) for name, values in constants.items()}
        own_symbols = left.free_symbols | right.free_symbols
        best, sides, at = 0.0, None, {}
        for climb in range(CLIMBS + 1):
            found = evaluate(result, constants, form.name, strict=False) if names else evaluate(result, {}, form.name)
            holds = [np.broadcast_to(check.holds, (DRAWS,)) for check in found.conditions]
            sizes = np.broadcast_to(found.conditions[1].left, (DRAWS,))
            legal = np.logical_and.reduce(holds[2:]) if kept else np.ones(DRAWS, dtype=bool)
            bad = np.flatnonzero(legal & ~holds[0])
            if bad.size and sides is None:
                one = int(bad[np.argmin(_spread(constants)[bad])])
                left_value, right_value = (np.broadcast_to(v, (DRAWS,))[one] for v in found.conditions[0].shown()[:2])
                sides, named = (float(left_value), float(right_value)), {str(s) for s in own_symbols}
                own_constants = {name: values for name, values in constants.items() if name in named}
                at = _counterexample(own_constants, one, left - right, sides[0] - sides[1])
            usable = np.where(legal & np.isfinite(sizes), sizes, -np.inf)
            top = int(np.argmax(usable))
            if usable[top] > best:
                best = float(usable[top])
            if not names or climb == CLIMBS:
                break
            together = 10 ** rng.uniform(0, 4, DRAWS)  # several constants may have to grow together
            constants = {n: self._near(result.notation, n, v[top], together, rng) for n, v in constants.items()}
            for smaller, larger in natural_order(result.notation, constants):
                constants[smaller] = np.minimum(constants[smaller], constants[larger])
        return best, sides, at

    @staticmethod
    def _near(notation: Notation, name: str, value: Any, together: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Legal values around one, over four orders of magnitude, or by a factor that all constants share."""
        value = np.asarray(value)
        shape = (DRAWS, *value.shape)
        common = together.reshape(DRAWS, *[1] * value.ndim)
        share = rng.random(shape)
        factor = np.where(share < 0.5, 1.0, np.where(share < 0.75, 10 ** rng.uniform(-2, 2, shape), common))
        return _legal(notation[name], np.minimum(value * factor, 1e9))


def _legal(quantity: Quantity, values: np.ndarray) -> np.ndarray:
    """Values moved into the domain of a quantity, and of a vector with a fixed sum scaled to it."""
    domain = quantity.domain
    moved = np.round(values) if domain.integer else values
    low = domain.low + (NEAR_EDGE if domain.low_open else 0)
    high = domain.high - (NEAR_EDGE if domain.high_open else 0)
    moved = np.clip(moved, max(low, 1) if domain.integer else low, high)
    if quantity.total is None:
        return moved
    sums = moved.sum(-1, keepdims=True)
    return np.where(sums > 0, moved / np.where(sums > 0, sums, 1), 1 / moved.shape[-1]) * quantity.total


def _counterexample(constants: Mapping[str, np.ndarray], one: int, difference: Any, value: float) -> dict[str, float]:
    """The constants of one setting; of vectors the entries of the client at which a difference has a value."""
    if all(values.ndim == 1 for values in constants.values()):
        return constants_at(constants, one)
    client = {name: values.reshape(DRAWS, -1)[one] for name, values in constants.items()}
    symbols = sorted(difference.free_symbols, key=str)
    differences = sp.lambdify(symbols, difference, "numpy")(*(client[str(s)] for s in symbols))
    entry = int(np.argmin(np.abs(differences - value)))
    return {name: float(values[entry if values.size > 1 else 0]) for name, values in client.items()}


def _spread(constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """How far the constants of each setting are from 1, in orders of magnitude: a plain counterexample is near."""
    sizes = [np.abs(values.reshape(DRAWS, -1)) for values in constants.values()]
    return sum((np.abs(np.log10(np.maximum(size, 1e-12))).sum(1) for size in sizes), np.zeros(DRAWS))


def describe_factor(found: StepFormula) -> str:
    """The largest factor in words."""
    factor, step = found.largest_factor, next(iter(found.formulas))
    formula = "the formula" if len(found.formulas) == 1 else f"the formula of {step}"
    if factor is None:
        return f"the largest factor of {formula} that is always legal is not known"
    if stuck := found.fails_at_every_factor:
        return f"no factor of {formula} makes all conditions hold: {stuck[0]} does not depend on {step}, and fails"
    if factor == 0:
        return f"no factor c > 0 makes c times {formula} legal for all constants"
    if not all(check.exact for check in found._size_checks):
        return f"the largest factor c for which c times {formula} is always legal: at most about {number(factor)}"
    if any(check.strict and check.largest_factor == factor for check in found.checks):
        return f"c times {formula} is always legal for every c < {number_to('below', factor)}"
    return f"the largest factor c for which c times {formula} is always legal: {number_to('below', factor)}"
