"""From a `Form` to its compiled form: expressions become numpy programs and trees, which need no sympy."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from types import FunctionType
from typing import Any

import numpy as np
import sympy as sp
from sympy.printing.numpy import NumPyPrinter

from fedbounds.bounds.audit.ledger import audit_status
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import (
    CompiledCondition,
    CompiledForm,
    CompiledResult,
    NumericRule,
    NumpyRule,
    PrintedCondition,
)
from fedbounds.bounds.evaluation.expression_tree import Structure, as_tree
from fedbounds.bounds.evaluation.program import (
    OPERATIONS,
    OVER_CLIENTS,
    STEP,
    CompiledFunctions,
    Layout,
    Program,
    function_at,
)
from fedbounds.bounds.theory.feasible_set import feasible_set
from fedbounds.bounds.theory.result import Condition, Form, Result
from fedbounds.bounds.theory.symbols import Derived, Notation

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


class _Printer(NumPyPrinter):
    """numpy code whose minima and maxima broadcast (the stock printer stacks their arguments) and whose reductions keep
    the client axis."""

    keeps_clients = True

    def _fold(self, name: str, arguments: Sequence[sp.Expr]) -> str:
        code = self._print(arguments[0])
        for argument in arguments[1:]:
            code = f"{self._module_format('numpy.' + name)}({code}, {self._print(argument)})"
        return code

    def _print_Min(self, expr: sp.Min) -> str:
        return self._fold("minimum", expr.args)

    def _print_Max(self, expr: sp.Max) -> str:
        return self._fold("maximum", expr.args)

    def _whole(self, name: str, sign: str, argument: sp.Expr) -> str:
        code = self._print(argument)
        nearly = f"{code} {sign} {STEP!r}*{self._module_format('numpy.abs')}({code})"
        return f"{self._module_format('numpy.' + name)}({nearly})"

    def _print_floor(self, expr: sp.floor) -> str:
        return self._whole("floor", "+", expr.args[0])

    def _print_ceiling(self, expr: sp.ceiling) -> str:
        return self._whole("ceil", "-", expr.args[0])

    def _print_Pow(self, expr: sp.Expr, rational: bool = False) -> str:
        base, exponent = expr.args
        if base.is_Symbol and isinstance(exponent, sp.Integer) and 2 <= exponent.p <= 4:  # products beat pow by far
            return "(" + "*".join([self._print(base)] * exponent.p) + ")"
        return super()._print_Pow(expr, rational=rational)


@lru_cache(maxsize=1024)
def compile_expressions(
    names: tuple[sp.Symbol, ...], expressions: tuple[sp.Expr, ...]
) -> Callable[..., list[np.ndarray]]:
    """A numpy function of the symbols (in order) that returns the expressions' values."""
    printer = _Printer(
        {
            "fully_qualified_modules": False,
            "inline": True,
            "allow_unknown_functions": True,
            "user_functions": {},
        }
    )
    return sp.lambdify(names, list(expressions), modules=["numpy"], cse=True, printer=printer, docstring_limit=0)


@lru_cache(maxsize=2**14)
def _arguments(expressions: tuple[sp.Expr, ...]) -> tuple[sp.Symbol, ...]:
    return tuple(sorted({s for e in expressions for s in e.free_symbols}, key=lambda s: s.name))


def arguments(expressions: Sequence[sp.Expr]) -> tuple[sp.Symbol, ...]:
    """Every free symbol, in alphabetical order."""
    return _arguments(tuple(expressions))


@lru_cache(maxsize=256)
def compile_program(expressions: tuple[sp.Expr, ...]) -> Program:
    """The program that computes these expressions from their free symbols, in alphabetical order."""
    symbols = arguments(expressions)
    names, function = tuple(s.name for s in symbols), compile_expressions(symbols, expressions)
    try:
        return program_of(names, function)
    except LookupError:  # a user's expression has an operation that no file can name
        return call_program(names, function, len(expressions))


def call_program(names: tuple[str, ...], function: Callable[..., list[np.ndarray]], count: int) -> Program:
    """The program that calls a function and takes its results one by one."""
    call = (function, *range(len(names)))
    places = range(len(names) + 1, len(names) + 1 + count)
    return Program(names, (), (call, *((itemgetter(k), len(names)) for k in range(count))), tuple(places))


def nest_common_factors(total: sp.Expr) -> sp.Expr:
    """The same sum with common factors taken out, again and again, as in Horner's rule: often fewer products.

    Example:
        >>> x, y = sp.symbols("x y", positive=True)
        >>> nest_common_factors(x**3 * y + 2 * x**2 + 3 * x + 5)
        x*(x*(x*y + 2) + 3) + 5
    """
    terms = [term.as_coeff_Mul() for term in sp.Add.make_args(total)]
    powers = [
        {base: e for base, e in (f.as_base_exp() for f in sp.Mul.make_args(rest)) if e.is_Rational and e.is_positive}
        for _, rest in terms
    ]
    shared = Counter(base for each in powers for base in each)
    if not shared or max(shared.values()) < 2:
        return total
    often = min(shared, key=lambda base: (-shared[base], str(base)))
    taken = often ** min(each[often] for each in powers if often in each)
    inside = sp.Add(*(n * (rest / taken) for (n, rest), each in zip(terms, powers, strict=True) if often in each))
    outside = sp.Add(*(n * rest for (n, rest), each in zip(terms, powers, strict=True) if often not in each))
    return sp.Add(sp.Mul(taken, nest_common_factors(inside)), nest_common_factors(outside))


def compile_form_program(form: Form, which: str) -> Program:
    """One of the programs of a form: its "value" alone, its "parts", or the "sides" of its conditions.

    The parts are terms, prescribed step sizes, and both sides of every condition; the sides are followed by the extreme
    admissible values that there are.
    """
    terms = tuple(t.expression for t in form.terms)
    sides = tuple(side for c in form.conditions for side in (c.left, c.right))
    if which == "value":
        total = sp.Add(*terms)
        candidates = [compile_program((each,)) for each in (total, nest_common_factors(total))]
        return min(candidates, key=lambda program: len(program.steps))
    if which == "parts":
        return compile_program((*terms, *form.prescribes.values(), *sides))
    return compile_program((*sides, *(c.extreme for c in form.conditions if c.extreme is not None)))


@lru_cache(maxsize=256)
def compile_form(form: Form, vectors: frozenset[str] = frozenset()) -> CompiledFunctions:
    """The numpy functions of a form, made once per process."""

    def limited() -> tuple[bool, ...]:
        return tuple(c.extreme is not None for c in form.conditions)

    layout = Layout(len(form.terms), len(form.prescribes), tuple(c.op for c in form.conditions), limited)
    return CompiledFunctions(layout, lambda which: compile_form_program(form, which), vectors)


def compiled_form(result: Result, form: Form) -> CompiledForm:
    """The compiled form of a form, of a result that may be without it."""
    return _compiled_form(compile_result(result), result, form)


@lru_cache(maxsize=256)
def compile_result(result: Result) -> CompiledResult:
    """The compiled forms of a result."""
    floors = tuple(numeric_rule(rule, result.notation) for rule in result.notation.floors)
    compiled = CompiledResult(
        result.key, str(result.source), result.measure, result.notation, result.default, floors, lambda: result
    )
    compiled.forms.extend(_compiled_form(compiled, result, form) for form in result.forms)
    return compiled


@lru_cache(maxsize=1024)
def _compiled_form(of: CompiledResult, result: Result, form: Form) -> CompiledForm:
    declared = feasible_set(result, form)
    relations, known = (declared.relations, declared.witnessed) if declared else ((), ())
    sides = tuple(side for c in (*relations, *known) for side in (c.left, c.right))
    return CompiledForm(
        result=of,
        **{name: getattr(form, name) for name in CompiledForm.COPIED},
        terms=tuple(term.name for term in form.terms),
        conditions=tuple(compile_condition(condition, result.notation) for condition in form.conditions),
        assumptions=tuple(assumption.name for assumption in form.assumptions),
        prescribes=tuple(form.prescribes),
        derived=tuple(numeric_rule(rule, result.notation) for rule in form.derived),
        own_measure=form.measure,
        whole=lambda: form,
        program=lambda which: compile_program(sides) if which == "feasible" else compile_form_program(form, which),
        standing=lambda: audit_status(result, form),
        covers=lambda: tuple(assumption.cover for assumption in form.assumptions),
        structure=lambda: _structure(form),
        feasible=tuple(compile_condition(c, result.notation) for c in relations) if declared else None,
        witnessed=tuple(compile_condition(c, result.notation) for c in known),
        computed_from=declared.computed_from if declared else (),
    )


def _structure(form: Form) -> Structure:
    return Structure(
        tuple(as_tree(term.expression) for term in form.terms),
        tuple((as_tree(c.left), as_tree(c.right)) for c in form.conditions),
        form.length,
    )


def compile_condition(condition: Condition, notation: Notation) -> CompiledCondition:
    """The compiled form of a condition."""

    @lru_cache(maxsize=1)
    def printed() -> PrintedCondition:
        as_paper = condition.as_printed(notation)
        return PrintedCondition(
            as_paper.text, as_paper.latex, condition.text, condition.extreme is not None, condition.caps
        )

    limits = "" if condition.limits is None else condition.limits.name
    return CompiledCondition(condition.op, condition.why, limits, condition.legal, printed)


def numeric_rule(rule: Derived, notation: Notation) -> NumericRule:
    """The same rule as a numpy function."""
    formula = rule.rule
    if isinstance(formula, sp.Expr):
        vectors = frozenset(name for name in rule.inputs if notation[name].shape)
        whole = bool(notation[rule.name].shape)
        formula = NumpyRule(rule.inputs, vectors, whole, lambda: compile_program((rule.rule,)))
    return NumericRule(rule.name, rule.inputs, formula, rule.why, rule.free)


def program_of(names: tuple[str, ...], function: Callable[..., list[np.ndarray]]) -> Program:
    """A function that `compile_expressions` has made, as a program of the same operations in the same order.

    Example:
        >>> x = sp.Symbol("x", positive=True)
        >>> program_of(("x",), compile_expressions((x,), (sp.sqrt(x) / 2, x**2)))
        Program(names=('x',), numbers=(0.5,), steps=(('sqrt', 0), ('*', 1, 2), ('*', 0, 0)), results=(3, 4))
    """
    (definition,) = ast.parse(inspect.getsource(function)).body
    match definition:
        case ast.FunctionDef(args=ast.arguments(args=given), body=[*lines, ast.Return(value=ast.List(elts=results))]):
            writer = _Writer([argument.arg for argument in given], function.__globals__)
            for line in lines:
                match line:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        writer.places[name] = writer.value(value)
                    case _:
                        raise LookupError(ast.dump(line))
            return writer.program(names, [writer.value(result) for result in results])
    raise LookupError(ast.dump(definition))


Place = tuple[int, int]  # 0, 1 or 2 for arguments, numbers and steps, and which of them


class _Writer:
    """Writes down what Python code computes."""

    def __init__(self, arguments: Sequence[str], space: Mapping[str, Any]) -> None:
        self.places: dict[str, Place] = {name: (0, k) for k, name in enumerate(arguments)}
        self._space, self._numbers = space, list[float]()
        self._steps: dict[tuple[str, *tuple[Place, ...]], Place] = {}  # what is computed twice is one step

    def program(self, names: tuple[str, ...], results: Sequence[Place]) -> Program:
        """The program that makes these results."""
        taken = {place for _, *places in self._steps for place in places} | {*results}
        numbers = [k for k in range(len(self._numbers)) if (1, k) in taken]  # others went into these

        def at(place: Place) -> int:
            kind, k = place
            return (k, len(names) + numbers.index(k) if kind == 1 else 0, len(names) + len(numbers) + k)[kind]

        return Program(
            names,
            tuple(self._numbers[k] for k in numbers),
            tuple((name, *map(at, places)) for name, *places in self._steps),
            tuple(map(at, results)),
        )

    def value(self, node: ast.expr) -> Place:
        """The place of what an expression computes."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return self._number(number)
            case ast.Name(id=name) if name in self.places:
                return self.places[name]
            case ast.Name(id=name) if isinstance(number := self._space.get(name), int | float):
                return self._number(number)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                return self._step(OPERATORS[type(operator)], left, right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._step("negative", operand)
            case ast.Call(func=ast.Name(id=name), args=taken, keywords=[]):
                return self._step(_operation_name(self._space[name], name), *taken)
            case ast.Call(func=ast.Name(id=name), args=[taken], keywords=[_, _] as keywords):
                for word, reduction in OVER_CLIENTS.items():
                    said = {k.arg: ast.literal_eval(k.value) for k in keywords}
                    if reduction.func is self._space[name] and reduction.keywords == said:
                        return self._step(word, taken)
        raise LookupError(ast.dump(node))

    def _number(self, number: float) -> Place:
        same = [k for k, other in enumerate(self._numbers) if repr(other) == repr(number)]  # 1 and 1.0 are two
        self._numbers += [] if same else [number]
        return 1, (*same, len(self._numbers) - 1)[0]

    def _step(self, name: str, *taken: ast.expr) -> Place:
        places = [self.value(each) for each in taken]
        if all(kind == 1 for kind, _ in places) and isinstance(
            number := OPERATIONS[name](*(self._numbers[k] for _, k in places)), int | float
        ):
            return self._number(number if isinstance(number, int) else float(number))
        return self._steps.setdefault((name, *places), (2, len(self._steps)))


def _operation_name(function: Callable[..., Any], name: str) -> str:
    """The name of a function in programs."""
    known = {id(each): word for word, each in OPERATIONS.items()} | {id(abs): "abs"}
    return known.get(id(function)) or place_of(function, name)


def place_of(function: Any, name: str) -> str:
    """Where a function stands, as MODULE:NAME, if a program may call it from there.

    Example:
        >>> place_of(arguments, "arguments")
        'fedbounds.bounds.evaluation.numpy_code:arguments'
    """
    if isinstance(function, FunctionType | np.ufunc):
        module = inspect.getmodule(function)
        place = f"{module.__name__ if module else ''}:{function.__name__}"
        with suppress(FedboundsError, ValueError, ImportError):
            if function_at(place) is function:
                return place
    raise LookupError(f"{name} stands in no module of ours")
