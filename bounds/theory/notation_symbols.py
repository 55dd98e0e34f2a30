"""Symbols of a notation as sympy symbols."""

from __future__ import annotations

import sympy as sp
from sympy.printing.latex import LatexPrinter, modifier_dict


class PlainSymbol(sp.Symbol):
    r"""A symbol whose LaTeX is its name, where sympy would read a decoration into it: sigmaG as $|sig|$ ("mag").

    Example:
        >>> sp.latex(sp.Symbol("sigmaG")), sp.latex(PlainSymbol("sigmaG"))
        ('\\left|{sig}\\right|', '\\sigma_{G}')
    """

    def _latex(self, printer: LatexPrinter, **_: object) -> str:
        stem = max((w for w in GREEK if self.name.startswith(w)), key=len, default="")
        rest = self.name[len(stem) :]
        names = printer._settings["symbol_names"]
        return names.get(self) or (rf"\{stem}_{{{rest}}}" if stem and rest else rf"\mathrm{{{self.name}}}")


PlainSymbol.__name__ = "Symbol"  # sympy orders and hashes by the name of the class: products keep their order
GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "eta", "kappa", "mu", "nu", "rho", "sigma", "tau", "omega")
DECORATIONS = ("hat", "tilde", "bar")  # those that the papers use, and that names end in on purpose


def _misread(name: str) -> bool:
    """Whether sympy reads a decoration into this name that nobody meant."""
    return any(
        name.lower().endswith(word) and len(name) > len(word) and word not in DECORATIONS for word in modifier_dict
    )


def symbol(name: str, signed: bool, positive: bool, whole: bool) -> sp.Symbol:
    """The sympy symbol of a quantity, with the assumptions that its domain implies.

    Example:
        >>> symbol("T", False, True, True).assumptions0["positive"]
        True
    """
    kind, integer = PlainSymbol if _misread(name) else sp.Symbol, True if whole else None
    if signed:
        return kind(name, real=True, integer=integer)
    return kind(name, positive=True if positive else None, nonnegative=True, integer=integer)
