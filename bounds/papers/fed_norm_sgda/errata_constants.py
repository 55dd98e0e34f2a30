r"""Forms of Sharma et al. (2023) at identical clients who all take part, in exact fractions."""

from collections.abc import Mapping
from fractions import Fraction

import sympy as sp

from fedbounds.bounds.audit.counterexample import Check
from fedbounds.bounds.theory.client_reductions import OverClients, SumOverClients
from fedbounds.bounds.theory.result import Condition, Form


def equal_clients(clients: int, tau: int = 1, **given: Fraction | int) -> dict[str, Fraction]:
    """The constants of identical clients with equal weights and tau plain local steps, betaG = 1, no noise."""
    ones = dict.fromkeys(("mu", "betaG", "alast", "amax", "alpha", "taueff", "E_w"), 1)
    zeros = dict.fromkeys(("sigmaL", "betaL", "sigmaG", "rho"), 0)
    counts = dict(n=clients, P=clients, w=Fraction(1, clients), nu=min(tau, 2))
    counts |= dict.fromkeys(("tau", "a1", "a2", "taubar"), tau)
    values = {name: Fraction(value) for name, value in (ones | zeros | counts | given).items()}
    of_noise = values["taueff"] / tau
    drift = (tau - 1) ** 2 + values["betaL"] ** 2 * (tau - 1)
    composites = dict(A_w=of_noise, B_w=of_noise, C_w=Fraction(tau - 1), D=drift, kappa=values["Lf"] / values["mu"])
    steps = {f"Gamma{b}": values["taueff"] * values[f"gamma{b}"] for b in "xy" if f"gamma{b}" in values}
    return composites | steps | values


def evaluate_in_fractions(expression: sp.Expr, values: Mapping[str, Fraction], clients: int) -> sp.Expr:
    """An expression where every client has the same numbers, exactly; complex infinity where it divides by zero."""
    plain = expression.replace(
        lambda e: isinstance(e, OverClients), lambda e: e.args[0] * (clients if isinstance(e, SumOverClients) else 1)
    )
    assert isinstance(plain, sp.Expr)
    number = plain.xreplace({s: sp.Rational(*values[str(s)].as_integer_ratio()) for s in plain.free_symbols})
    assert isinstance(number, sp.Expr)
    return number


def as_fraction(number: sp.Expr) -> Fraction:
    """A sympy rational as a Fraction."""
    assert isinstance(number, sp.Rational)
    return Fraction(int(number.p), int(number.q))


def condition_checks(form: Form, values: Mapping[str, Fraction], clients: int) -> tuple[Check, ...]:
    """Every condition of a form at these constants."""
    return tuple(condition_check(condition, values, clients) for condition in form.conditions)


def condition_check(condition: Condition, values: Mapping[str, Fraction], clients: int) -> Check:
    """One condition at these constants; a cap that divides by zero caps nothing, a cap with a root is squared."""
    left, right = (evaluate_in_fractions(side, values, clients) for side in (condition.left, condition.right))
    op = condition.op
    assert op in ("<=", ">=", "==")
    if op == "<=" and right.is_infinite:
        return Check(condition, f"{condition.why}: no local drift, so there is no cap", 0, "<=", 1)
    if not (left.is_Rational and right.is_Rational):
        assert left.is_nonnegative and right.is_nonnegative
        left, right = left**2, right**2
        return Check(condition, f"{condition.why}, squared", as_fraction(left), op, as_fraction(right))
    return Check(condition, condition.why, as_fraction(left), op, as_fraction(right))
