"""Numbers with a name: constants of a proof that should be read as K1, not as 12/7*(exp(7/12) - 1)."""

from __future__ import annotations

import sympy as sp


class NamedNumber(sp.AtomicExpr):
    """A positive real number with a name and an exact value."""

    is_number = True
    is_commutative = True
    is_real = True
    is_positive = True
    is_finite = True
    name: str
    exact: sp.Expr

    def __new__(cls, name: str, exact: sp.Expr) -> NamedNumber:
        number = super().__new__(cls)
        number.name, number.exact = name, exact
        return number

    def _hashable_content(self) -> tuple[object, ...]:
        return (self.name, self.exact)

    def __getnewargs__(self) -> tuple[object, ...]:
        return (self.name, self.exact)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        return self.exact._eval_evalf(prec) or self.exact

    def _eval_derivative(self, s: sp.Symbol) -> sp.Expr:
        return sp.S.Zero

    def _sympystr(self, printer: object) -> str:
        return self.name

    def _latex(self, printer: object) -> str:
        return sp.latex(sp.Symbol(self.name))

    def _numpycode(self, printer: object) -> str:
        return repr(float(sp.N(self.exact, 17)))
