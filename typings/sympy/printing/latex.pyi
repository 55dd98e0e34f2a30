from sympy import Expr, Symbol
from sympy.printing.str import StrPrinter

modifier_dict: dict[str, object]

class LatexPrinter(StrPrinter):
    def _needs_mul_brackets(self, expr: Expr, first: bool = False, last: bool = False) -> bool: ...
    def _print_Symbol(self, expr: Symbol) -> str: ...
