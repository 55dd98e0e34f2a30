"""JavaScript of expressions, forms and rules; the functions that it calls are in `theory.js` and in the papers'
packages.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp
from sympy.printing.jscode import JavascriptCodePrinter

from fedbounds.bounds.theory.client_reductions import OverClients
from fedbounds.bounds.theory.expressions import parts
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.result import Condition, Form
from fedbounds.bounds.theory.symbols import Derived, Notation


class _Printer(JavascriptCodePrinter):
    """Constants are properties of `c`; the symbol of a vector is its n-th entry, as in a reduction over clients."""

    def __init__(self, notation: Notation) -> None:
        super().__init__({"allow_unknown_functions": True})
        self.vectors = {q.symbol for q in notation.values() if q.shape}

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return f"c.{expr.name}[n]" if expr in self.vectors else f"c.{expr.name}"

    def _print_floor(self, expr: sp.Expr) -> str:
        return f"floor({self._print(expr.args[0])})"

    def _print_ceiling(self, expr: sp.Expr) -> str:
        return f"ceiling({self._print(expr.args[0])})"

    def _print_NamedNumber(self, expr: NamedNumber) -> str:
        return repr(float(sp.N(expr.exact, 17)))

    def _reduction(self, expr: OverClients) -> str:
        return self.of_clients(expr.word, parts(expr)[0])

    _print_SumOverClients = _print_MeanOverClients = _print_MaxOverClients = _print_MedianOverClients = _reduction

    def of_clients(self, function: str, expr: sp.Expr) -> str:
        """A call with the number of clients and a function of the index of one."""
        vectors = sorted(str(s) for s in expr.free_symbols & self.vectors)
        count = f"c.{vectors[0]}.length" if vectors else "1"
        return f"{function}({count}, n => {self._print(expr)})"


def javascript(expression: sp.Expr, notation: Notation) -> str:
    """The expression in JavaScript.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> theorem = load("fed-norm-sgda/theorem-1")
        >>> javascript(theorem.form("printed").conditions[0].left, theorem.notation)
        'sum_clients(c.w.length, n => c.w[n])'
    """
    return _Printer(notation).doprint(expression)


def form_function(form: Form, feasible: Iterable[Condition], notation: Notation) -> str:
    """A function of the constants that returns terms, prescribed values, sides and extremes of conditions, and feasible
    sides.
    """
    conditions = [
        _array((c.left, c.right, *([] if c.extreme is None else [c.extreme])), notation) for c in form.conditions
    ]
    terms = _array((t.expression for t in form.terms), notation)
    steps, together = (
        _array(form.prescribes.values(), notation),
        [_array((c.left, c.right), notation) for c in feasible],
    )
    return f"c => [{terms}, {steps}, [{', '.join(conditions)}], [{', '.join(together)}]]"


def _array(expressions: Iterable[sp.Expr], notation: Notation) -> str:
    return f"[{', '.join(javascript(e, notation) for e in expressions)}]"


def rule_function(rule: Derived, notation: Notation) -> str:
    """A function of the constants that returns a derived one; empty if the rule exists only in numpy."""
    if isinstance(rule.rule, sp.Expr):
        printer = _Printer(notation)
        each = notation[rule.name].shape
        return "c => " + (printer.of_clients("each", rule.rule) if each else printer.doprint(rule.rule))
    return f"c => ({rule.javascript})({', '.join(f'c.{name}' for name in rule.inputs)})" if rule.javascript else ""
