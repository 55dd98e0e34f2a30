"""What the type checker is told, and what it may not be told to overlook."""

import ast
from pathlib import Path

import pytest
import sympy as sp

from fedbounds.bounds.audit.derivations import Leading
from fedbounds.bounds.audit.induction import Induction
from fedbounds.bounds.audit.rule import Grows, specializes

ROOT = Path(__file__).parents[1]
STUB = ast.parse((ROOT / "typings/sympy/__init__.pyi").read_text())
DECLARED = [node for node in STUB.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"]


def test_the_type_checker_reads_every_file_with_every_report_on():
    files = [path for folder in ("bounds", "empirical", "figures") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 200
    assert [path.name for path in files if path.read_text().startswith("# pyright:")] == []


@pytest.mark.parametrize("node", DECLARED, ids=lambda node: node.name)
def test_what_the_type_checker_is_reported_of_sympy_exists_there(node):
    found = sp.PolynomialError if node.name == "PolynomialError" else getattr(sp, node.name, None)
    found = sp.logic.boolalg.Boolean if node.name == "Boolean" else found
    assert found is not None
    everywhere = {"__bool__", "__iter__"}  # Python asks a boolean by its type, and iterates over a matrix by its items
    methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    if isinstance(node, ast.ClassDef):
        assert [name for name in methods if not hasattr(found, name) and name not in everywhere] == []


def test_sums_products_powers_and_substitutions_of_expressions_are_expressions():
    x, y = sp.symbols("x y", positive=True)
    made = (x + 1, x - y, 2 * x, x / y, x**2, -x, x.xreplace({x: y}), (x * y).subs({x: 2}), sp.sqrt(x), sp.Max(x, y))
    assert all(isinstance(e, sp.Expr) for e in (*made, sp.diff(x**2, x), sp.limit(1 / x, x, sp.oo), *x.as_coeff_Mul()))


def test_an_induction_is_about_every_number_and_discharges_no_condition_that_only_large_ones_meet():
    T = sp.Symbol("T", positive=True, integer=True)
    assert not isinstance(Induction(T), Grows) and not specializes(Induction(T))
    assert specializes(Leading(1 / T, T, ()))
