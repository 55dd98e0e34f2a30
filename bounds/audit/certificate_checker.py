"""Check a certificate of a proof in exact fractions, with Python's standard library: checker.py CERTIFICATE.json

A certificate says what is bounded, under which conditions and assumptions, and how every step follows from others.
This file knows no paper and shares no code with what wrote the certificate. FORMAT lists every key and every type of
value that a certificate may have, `Reader` the grammar of expressions, and everything else is refused. The checker
multiplies out both sides, and believes only what it prints: symbols, axioms, what a mean or a sum stands for, and what
stays the same from step to step. An expression is not negative if it is a sum of products of facts with factors in
which no coefficient and no symbol is negative, or of squares. Text of the author is printed in double quotes on lines
that begin with "| "; the verdict is the last line, and the only one that begins with "verdict: ".
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Set
from fractions import Fraction
from math import factorial
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

Json = Mapping[str, Any]
Monomial = tuple[tuple[str, int], ...]
Poly = dict[Monomial, Fraction]
ONE: Monomial = ()
SIGNS = ("real", "nonnegative", "positive")
RESERVED = {"dot", "floor", "exp", "power", "Fraction"}
NAME = re.compile(rf"(?!({'|'.join(sorted(RESERVED))})$)[A-Za-z_][A-Za-z0-9_]*")
TEXT = re.compile(r"([-+*/(),]| (?! )|(?<!\w)([A-Za-z_]\w*|0|[1-9][0-9]{0,98})(?!\w))*", re.ASCII)
WORK = 10**8  # symbols in products and sums, facts and characters, in one certificate: some minutes
BITS, DEEP, LONG = 4096, 400, 10**7  # of a coefficient; operations in each other; characters of a file
KINDS = {dict: "table", list: "list", str: "text", bool: "true or false", int: "whole number"}
ERRORS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError)


def texts(keys: str) -> dict[str, Any]:
    """A table whose values are text; a key with "?" may be missing."""
    return dict.fromkeys(keys.split(), str)


def why(data: Any) -> Json:
    """A reason: a sum of squares or of products."""
    return {"squares": [texts("weight") | {"because": why, "of": {"*": str}}]} if "squares" in data else PRODUCTS


def step(data: Any) -> dict[str, Any]:
    """The keys of a step by its rule; some rules say in words what they trust."""
    need(data["rule"] in STEPS, f"{quoted(data['rule'])} is no rule")
    by_steps = {"varying": [str], "still": [str]} if data["rule"] == "average" and "random" not in data else {}
    return STEP | STEPS[data["rule"]] | by_steps | texts("" if data["rule"] in SHOWN else "trusts")


# What a certificate is made of: a dict lists the keys of a table ("?": may be missing; "*": any), [x] is a list of x, a
# tuple a list of just these, a type a value of that type, and a function names one of these for a value.
PRODUCTS = {"above": [[str]], "below?": [[str]]}
RELATION = texts("left op right")
PLACES = {"floors?": [texts("of least") | {"because": why}], "positive?": [texts("is") | {"because": why}]}
STEP = RELATION | PLACES | texts("id says? rule at?")
STEP |= {key: [str] for key in ("premises?", "conditions?", "assumptions?", "needs?")}
SHOWN = ("combination", "geometric-sum")  # rules that believe nothing
STEPS: dict[str, dict[str, Any]] = {
    "axiom": {},
    "combination": {"multipliers": [texts("value") | {"because?": why}], "rest?": why},
    "clients": {"variables": [str], "facts": [RELATION], "pointwise": str, "because": why, "sums": [([int], str)]},
    "unroll": texts("now after multiplier additive steps")
    | {"varying": [str], "still": [str], "grows": why, "adds": why},
    "geometric-sum": texts("a steps constant"),
    "average": {"means": [texts("of is") | {"slope?": why}], "random?": str},
}
FORMAT = texts("format claim source") | {
    "symbols": {"*": texts("sign is low? high?") | {"whole": bool}},
    "numbers": {"*": texts("is low high")},
    "vectors": {"*": {"*": str}},
    "assumptions": {"*": str},
    "conditions": {"*": RELATION},
    "steps": [step],
    "statement": RELATION
    | PLACES
    | {"measure": str, "rename": [texts("of is")], "conditions": [str], "assumptions": [str], "follows": {"*": [why]}},
}


class Refused(ValueError):
    """The certificate does not show what it says; says where and why."""


def need(holds: bool, why: str) -> None:
    """Refuse the certificate unless this holds."""
    if not holds:
        raise Refused(why)


def quoted(text: Any) -> str:
    """Text of the author in double quotes: ASCII without control characters, and without two spaces in a row."""
    return json.dumps(str(text)).replace("  ", " \\u0020")


def formed(value: Any, form: Any, place: str) -> None:
    """Refuse a value that is not of this form: a key that nothing reads may say what is not checked."""
    if callable(form) and not isinstance(form, type):
        form = form(value)
    kind = form if isinstance(form, type) else list if isinstance(form, tuple) else type(form)
    need(type(value) is kind, f"{place} is no {KINDS[kind]}")
    printed = all(map(str.isprintable, [value] if kind is str else value if kind is dict else []))
    need(printed, f"{place} has a character that does not print")
    if isinstance(form, dict):
        keys = {key.rstrip("?"): part for key, part in form.items()}
        strange, optional = sorted({*value} - {*keys}), {key[:-1] for key in form if key[-1] == "?"}
        need("*" in form or not strange, f"{place} has no key {quoted(strange[:1])}")
        missing = sorted({*keys} - {*value, *optional, "*"})
        need(not missing, f"{place} lacks {quoted(missing[:1])}")
        for key, part in value.items():
            formed(part, keys["*" if "*" in form else key], f"{place}, {quoted(key)}")
    elif isinstance(form, list | tuple):
        need(isinstance(form, list) or len(value) == len(form), f"{place} has {len(value)} parts")
        for k, part in enumerate(value):
            formed(part, form[k if isinstance(form, tuple) else 0], f"{place}, {k}")


def reason_of(error: Exception) -> str:
    """What is the matter, in words."""
    return str(error) if isinstance(error, Refused) else f"it is not of this format: {quoted(repr(error)[:200])}"


def fraction(text: str) -> Fraction:
    """A whole number or a fraction of two."""
    need(bool(re.fullmatch(r"-?[0-9]{1,99}(/[1-9][0-9]{0,98})?", text)), f"{quoted(text[:80])} is no fraction")
    return Fraction(text)


def words(*names: str) -> set[str]:
    """The symbols and vectors that symbols are made of: dot a b, floor of, power of."""
    return {*re.findall(r"[A-Za-z_]\w*", " ".join(names))} - RESERVED


spent = Counter[str]()  # in the certificate that is checked


def spend(parts: int) -> None:
    """Count work, and refuse the certificate when it takes too much."""
    spent["work"] += parts
    need(spent["work"] < WORK, "it takes too much work")


def product(a: Poly, b: Poly) -> Poly:
    """The product of two polynomials, whose powers may be negative."""
    total: Poly = {}
    spend(sum(len(m) + 1 for m in a) * len(b) + sum(len(m) + 1 for m in b) * len(a))
    for m, c in a.items():
        for n, d in b.items():
            powers = dict(m)
            for s, k in n:
                powers[s] = powers.get(s, 0) + k
            both = tuple(sorted((s, k) for s, k in powers.items() if k)) if m and n else m or n
            total[both] = total[both] + c * d if both in total else c * d
    large = any(c.numerator.bit_length() + c.denominator.bit_length() > BITS for c in total.values())
    need(not large and all(abs(k) < 10**6 for m in total for _, k in m), "a coefficient or a power is too large")
    return {m: c for m, c in total.items() if c}


class Expression:
    """A polynomial over powers of factors that are no monomials; a factor is kept as its sorted terms."""

    def __init__(self, above: Poly, below: Mapping[Any, int] | None = None) -> None:
        self.above, self.below = above, {f: k for f, k in (below or {}).items() if k}

    def over(self, below: Mapping[Any, int]) -> Poly:
        """The numerator over this denominator, a multiple of its own."""
        above = self.above
        for f, k in below.items():
            for _ in range(k - self.below.get(f, 0)):
                above = product(above, dict(f))
        return above

    def __add__(self, other: Expression) -> Expression:
        below = {f: max(self.below.get(f, 0), other.below.get(f, 0)) for f in {*self.below, *other.below}}
        total, added = dict(self.over(below)), other.over(below)
        spend(len(total) + len(added))
        for m, c in added.items():
            total[m] = total.get(m, Fraction(0)) + c
        return Expression({m: c for m, c in total.items() if c}, below)

    def __mul__(self, other: Expression) -> Expression:
        below = {f: self.below.get(f, 0) + other.below.get(f, 0) for f in {*self.below, *other.below}}
        return Expression(product(self.above, other.above), below)

    def __sub__(self, other: Expression) -> Expression:
        return self + constant(-1) * other

    def factored(self) -> tuple[Expression, Poly]:
        """The inverse of a monomial of the numerator, and what it leaves, whose first coefficient is 1."""
        need(bool(self.above), "it divides by zero")
        powers: dict[str, list[int]] = {s: [] for s in self.symbols}
        for s, k in (part for m in self.above for part in m):
            powers[s].append(k)
        least = sorted((s, -min(ks if len(ks) == len(self.above) else [*ks, 0], default=0)) for s, ks in powers.items())
        inverse = {tuple((s, k) for s, k in least if k): 1 / self.above[min(self.above)]}
        return Expression(inverse), product(self.above, inverse)

    def inverse(self) -> Expression:
        """One over it."""
        monomial, factor = self.factored()
        above = Expression({ONE: Fraction(1)}).over(self.below)
        return monomial * Expression(above, {} if factor == {ONE: 1} else {tuple(sorted(factor.items())): 1})

    def __pow__(self, k: int) -> Expression:
        return self * self ** (k - 1) if k else constant(1)

    def equals(self, other: Expression) -> bool:
        """Whether both are the same when multiplied out."""
        return not (self - other).above

    @property
    def number(self) -> Fraction | None:
        """Its value if it holds no symbol."""
        return None if self.below or set(self.above) - {ONE} else self.above.get(ONE, Fraction(0))

    @property
    def key(self) -> str:
        """The expression in words, as part of a symbol's name."""
        return str((sorted(self.above.items()), sorted(self.below.items())))

    def counts(self, whole: Set[str]) -> bool:
        """Whether it is a product of symbols that are positive and whole."""
        ((powers, c),) = self.above.items() if len(self.above) == 1 else [(ONE, 0)]
        return c == 1 and powers != ONE and not self.below and all(s in whole and k > 0 for s, k in powers)

    @property
    def symbols(self) -> set[str]:
        """Every symbol of it."""
        return {s for part in (self.above, *map(dict, self.below)) for m in part for s, _ in m}


def constant(value: Fraction | int) -> Expression:
    """A number."""
    return Expression({ONE: Fraction(value)} if value else {})


def symbol(name: str) -> Expression:
    """A symbol."""
    return Expression({((name, 1),): Fraction(1)})


class Reader:
    """Reads expressions in declared symbols, and keeps these and the divisors; in numbers, `exp` is read too.

    Whole numbers, symbols, brackets, + - * /, dot(vector, vector), floor(expression), exp(fraction), and powers, whose
    exponents are whole numbers to 100 or products of symbols that are positive and whole. Inside of a floor, or of a
    power of such symbols, there is no other.
    """

    def __init__(
        self, known: Set[str], vectors: Set[str] = frozenset(), whole: Set[str] = frozenset(), exp: bool = False
    ) -> None:
        self.known, self.vectors, self.whole, self.exp = known, vectors, whole, exp
        self.divisors, self.names = dict[str, Expression](), set[str]()

    def __call__(self, text: str) -> Expression:
        spend(len(text))
        try:
            need(bool(TEXT.fullmatch(text)), f"{quoted(text[:80])} is no expression")
            return self._read(ast.parse(text.strip(), mode="eval").body, DEEP)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise Refused(f"{quoted(text[:80])} is no expression") from error

    def _read(self, e: ast.expr, deep: int) -> Expression:
        need(deep > 0, "an expression is too deep")
        match e:
            case ast.Constant(value=value) if type(value) is int:
                return constant(value)
            case ast.Name(id=name):
                need(name in self.known, f"the symbol {quoted(name)} is not declared")
                self.names.add(name)
                return symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return constant(-1) * self._read(operand, deep - 1)
            case ast.Call(func=ast.Name(id="dot"), args=[ast.Name(id=a), ast.Name(id=b)], keywords=[]):
                need({a, b} <= self.vectors, f"{quoted(a)} or {quoted(b)} is no declared vector")
                return symbol(f"dot {min(a, b)} {max(a, b)}")
            case ast.Call(func=ast.Name(id="floor"), args=[inside], keywords=[]):
                return symbol(f"floor {self._alone(self._read(inside, deep - 1))}")
            case ast.Call(func=ast.Name(id="exp"), args=[inside], keywords=[]) if self.exp:
                value = self._read(inside, deep - 1).number
                need(value is not None, "exp is of no fraction")
                return symbol(f"exp {value}")
            case ast.BinOp(left=left, op=op, right=right):
                return self._combined(self._read(left, deep - 1), op, self._read(right, deep - 1))
        raise Refused(f"{type(e).__name__} is not of this grammar")

    def _combined(self, left: Expression, op: ast.operator, right: Expression) -> Expression:
        ring = {ast.Add: Expression.__add__, ast.Sub: Expression.__sub__, ast.Mult: Expression.__mul__}
        if type(op) in ring:
            return ring[type(op)](left, right)
        need(isinstance(op, ast.Div | ast.Pow), f"{type(op).__name__} is not of this grammar")
        if isinstance(op, ast.Div):
            self.divisors[right.key] = right
            return left * right.inverse()
        if right.counts(self.whole):
            return symbol(f"power {self._alone(left)} {right.key}")
        need(right.number in range(101), "an exponent is no whole number to 100, and no product of whole symbols")
        return left ** int(right.number or 0)

    def _alone(self, e: Expression) -> str:
        """What is inside of a floor or a power, in words."""
        need(not any("(" in s for s in e.symbols), "a floor or a power is inside of another one")
        return e.key


def exponential(x: Fraction) -> tuple[Fraction, Fraction]:
    """Numbers below and above exp(x), for 0 <= x <= 20."""
    need(0 <= x <= 20 and x.denominator < 10**4, f"exp({x}) is not enclosed here")
    spend(10**4)
    low = sum((x**k / factorial(k) for k in range(140)), Fraction(0))
    return low, low + 2 * x**140 / factorial(140)


def enclosed(e: Expression) -> tuple[Fraction, Fraction]:
    """Numbers below and above a sum of fractions and multiples of exponentials of fractions; nothing else."""
    low = high = Fraction(0)
    need(not e.below, "a number divides by a sum with exp")
    for m, c in e.above.items():
        ends = (Fraction(1), Fraction(1))
        if m != ONE:
            need(len(m) == m[0][1] == 1 and m[0][0].startswith("exp "), "a number is no sum of fractions and exp")
            ends = exponential(Fraction(m[0][0][4:]))
        low, high = low + min(c * x for x in ends), high + max(c * x for x in ends)
    return low, high


class Relation:
    """left <= right, left == right, or, of conditions, left < right."""

    def __init__(self, data: Json, read: Reader) -> None:
        need(data["op"] in ("<=", "==", "<"), f"{quoted(data['op'])} is no relation")
        self.left, self.right, self.op = read(data["left"]), read(data["right"]), data["op"]
        self.slack = self.right - self.left


class Step:
    """One step, with the signs and facts that may be used in it."""

    def __init__(self, whole: Certificate, data: Json) -> None:
        self.whole, self.data, self.read = whole, data, Reader(whole.known, whole.vectors, whole.whole)
        spend(len(whole.sign) + len(whole.facts))
        self.sign, self.facts, self.strict = dict(whole.sign), dict(whole.facts), set[str]()
        names = data.get("premises", [])
        missing = [name for name in names if name not in whole.shown]
        need(not missing, f"its premise {quoted(missing[:1])} is no step that was shown before")
        self.premises, self.believed = [whole.shown[name] for name in names], list[str]()
        for k, name in enumerate(names):
            if name not in whole.starts or "at" in data:
                self._fact(f"premise {name}", whole.shown[name])
            else:
                need(k == 0 and data["rule"] == "unroll", f"{quoted(name)} holds at the start only")
        for name in data.get("conditions", []):
            self._fact(f"condition {name}", Relation(whole.data["conditions"][name], self.read))
        for floor in data.get("floors", []):
            self._floor(floor["of"], fraction(floor["least"]), floor["because"])
        self.conclusion = Relation(data, self.read)

    def _fact(self, name: str, relation: Relation) -> None:
        two = name in self.facts or f"{name} reversed" in self.facts
        need(not two, f"two facts are called {quoted(name)}")
        self.facts |= {name: relation.slack}
        self.strict |= {name} if relation.op == "<" else set()
        self.facts |= {f"{name} reversed": constant(-1) * relation.slack} if relation.op == "==" else {}

    def _floor(self, of: str, least: Fraction, because: Json) -> None:
        inside, floor = self.read(of), self.read(f"floor({of})")
        ((((name, _),), _),) = floor.above.items()
        need(least.denominator == 1, "a floor is a whole number")
        self.nonnegative(inside - constant(least), because, f"{of} less {least}")
        self.facts[f"floor-below {of}"] = inside - floor
        self.facts[f"floor-above {of}"] = floor + constant(1) - inside
        self.facts[f"floor-least {of}"] = floor - constant(least)
        self.sign[name] = "positive" if least > 0 else "nonnegative" if least == 0 else "real"

    def _sign(self, name: str) -> str:
        kind, *pair = name.split(" ")
        return "nonnegative" if kind == "dot" and len({*pair}) == 1 else self.sign.get(name, "real")

    def plainly(self, e: Expression, strictly: bool = False) -> bool:
        """Whether no coefficient, no symbol and no denominator can be negative; strictly, also not zero."""
        for part, positive in [(e.above, strictly), *((dict(f), True) for f in e.below)]:
            for m, c in part.items():
                signs = {(self._sign(s), k > 0, k % 2) for s, k in m}
                odd = {sign for sign, up, odd in signs if odd or not up}
                if c <= 0 or "real" in odd or any(sign != "positive" for sign, up, _ in signs if not up):
                    return False
            if positive and not any(all(self._sign(s) == "positive" for s, _ in m) for m in part):
                return False
        return True

    def nonnegative(self, e: Expression, why: Json, what: str, strictly: bool = False) -> None:
        """Refuse unless the certificate shows that the expression is nonnegative; strictly, positive."""
        if "squares" in why:
            total = constant(0)
            for square in why["squares"]:
                weight = self.read(square["weight"])
                self.nonnegative(weight, square["because"], f"the weight {square['weight']}")
                vector = [(name, self.read(c)) for name, c in square["of"].items()]
                need({*square["of"]} <= self.read.vectors, "a square is of no declared vector")
                products = (c * d * symbol(f"dot {min(a, b)} {max(a, b)}") for a, c in vector for b, d in vector)
                total = total + weight * sum(products, constant(0))
            need(not strictly and e.equals(total), f"{what} is not that sum of squares")
            return
        below = self._products(why.get("below", [["1"]]), True)
        total = self._products(why["above"], strictly)
        need((e * below).equals(total), f"{what} is not that sum of products")

    def _products(self, terms: list[list[str]], strictly: bool) -> Expression:
        total, positive = constant(0), False
        for text, *names in terms:
            factor = self.read(text)
            need(self.plainly(factor), f"{quoted(text[:80])} may be negative")
            positive |= {*names} <= self.strict and self.plainly(factor, True)
            for name in names:
                need(name in self.facts, f"{quoted(name)} is no fact here")
                factor = factor * self.facts[name]
            total = total + factor
        need(positive or not strictly, "it may be zero")
        return total

    def check(self) -> None:
        """Refuse the step unless it follows, and divides by nothing that may be zero."""
        speaks = self.data["rule"] in SHOWN or bool(self.data["trusts"].strip())
        need(speaks and self.conclusion.op != "<", "it is strict, or trusts without a word")
        at_start = self.data.get("at") == "start" and self.data["rule"] in ("axiom", "combination")
        need(at_start or "at" not in self.data, "it holds at another place than the start")
        need({*self.data.get("needs", [])} <= {*self.data.get("assumptions", [])}, "the rule needs another assumption")
        RULES[self.data["rule"]](self)
        self.divides()

    def divides(self) -> None:
        """Refuse unless whatever was divided by is not zero."""
        shown = list[Poly]()
        for data in self.data.get("positive", []):
            part = self.read(data["is"])
            self.nonnegative(part, data["because"], f"the divisor {data['is']}", True)
            shown.append(part.factored()[1])
        for divisor in list(self.read.divisors.values()):
            monomial, factor = divisor.factored()
            positive = all(self._sign(s) == "positive" for s in monomial.symbols)
            positive &= factor in shown or self.plainly(Expression(factor), True)
            need(positive, f"it divides by {divisor.key[:200]}, which is not shown to be positive")

    def combination(self) -> None:
        """slack = sum of multipliers times the premises' slacks, and a rest that is nonnegative."""
        rest = self.conclusion.slack
        pairs = len(self.data["multipliers"]), len(self.premises)
        need(pairs[0] == pairs[1], f"it has {pairs[0]} multipliers for {pairs[1]} premises")
        for data, premise in zip(self.data["multipliers"], self.premises, strict=True):
            factor = self.read(data["value"])
            used = premise.op == "<=" and bool(factor.above)
            need(used == ("because" in data), f"a reason is missing or not read: why {data['value']} is not negative")
            if used:
                need(self.conclusion.op == "<=", "an equality cannot rest on an inequality")
                self.nonnegative(factor, data["because"], f"the multiplier {data['value']}")
            rest = rest - factor * premise.slack
        need(("rest" in self.data) == (self.conclusion.op == "<="), "a rest is missing or not read")
        if self.conclusion.op == "==":
            need(not rest.above, "the two sides differ")
        else:
            self.nonnegative(rest, self.data["rest"], "what the premises leave")

    def clients(self) -> None:
        """A polynomial that is nonnegative for every client, summed over the clients monomial by monomial."""
        variables, believed = self.data["variables"], self.data["sums"]
        new = len({*variables}) == len(variables) and not {*variables} & {*self.read.known, *self.read.vectors}
        sums = {tuple(powers): self.read(text) for powers, text in believed}
        need(len(sums) == len(believed), "two sums of the same")
        need(new and all(map(NAME.fullmatch, variables)), f"{quoted(variables)} are no new names")
        need(all(len(powers) == len(variables) and min(powers) >= 0 for powers in sums), "a sum is of other powers")
        self.read.known = {*self.read.known, *variables}
        self.sign |= dict.fromkeys(variables, "nonnegative")
        self.believed += [f"for every client: 0 <= {v}" for v in variables]
        self.believed += [f"for every client: {written(data)}" for data in self.data["facts"]]
        self.believed += [f"the sum over clients with powers {k} of {', '.join(variables)}: {t}" for k, t in believed]
        for k, data in enumerate(self.data["facts"]):
            self._fact(f"client {k}", Relation(data, self.read))
        pointwise, total = self.read(self.data["pointwise"]), constant(0)
        self.nonnegative(pointwise, self.data["because"], "what holds for every client")
        need(not pointwise.below and self.conclusion.op == "<=", "no polynomial inequality")
        others = pointwise.symbols - {*variables}
        need(not any(words(name) & {*variables} for name in others), "a variable is in a floor or an exponent")
        self._fixed(others, "every client")
        for m, c in pointwise.above.items():
            need((powers := tuple(dict(m).get(v, 0) for v in variables)) in sums, f"no sum is given for {powers}")
            total = total + Expression({tuple(p for p in m if p[0] not in variables): c}) * sums[powers]
        need(total.equals(self.conclusion.slack), "the sum over the clients is not the slack")

    def unroll(self) -> None:
        """u_{k+1} <= m u_k + b, u_0 = 0, m >= 1, b >= 0: after n steps u <= b (m^n - 1)/(m - 1)."""
        now, m, b, n = (self.read(self.data[k]) for k in ("now", "multiplier", "additive", "steps"))
        (start, step, *_), after = self.premises, self.read(self.data["after"])
        need(start.op == "==" and start.left.equals(now) and not start.right.above, "it does not start at 0")
        need(step.left.equals(after) and step.right.equals(m * now + b), "the recursion is not u -> m u + b")
        need(step.op == "<=" and not after.equals(now), "the step leads nowhere")
        fixed = m.symbols | b.symbols | n.symbols
        need(not words(*now.symbols) & words(*fixed), "the recursion is not linear")
        self._differ([words(*dict(monomial)) for monomial in after.above], fixed)
        need(n.counts(self.whole.whole), "the number of steps is no product of whole symbols")
        self.believed += [f"{what}: {self.data[what]}" for what in ("now", "after", "steps")]
        self._fixed(fixed, "every step")
        self.nonnegative(m - constant(1), self.data["grows"], "the multiplier less 1")
        self.nonnegative(b, self.data["adds"], "the additive term")
        self.read.divisors["grows"] = m - constant(1)
        wanted = b * (symbol(f"power {m.key} {n.key}") - constant(1))
        need(self.conclusion.op == "<=" and self.conclusion.left.equals(now), "it bounds something else")
        need((self.conclusion.right * (m - constant(1))).equals(wanted), "it does not unroll to this")

    def _differ(self, parts: list[set[str]], fixed: set[str]) -> None:
        """Refuse if a part that differs from step to step is made only of symbols that are the same in all."""
        need(all(part - words(*fixed) for part in parts), f"what differs is made of {sorted(words(*fixed))}")

    def _fixed(self, symbols: set[str], throughout: str) -> None:
        """Refuse if one of these is said to differ between steps or rounds; it is printed that none does."""
        differing = {s for text in self.data.get("varying", []) for s in self.read(text).symbols}
        need({*self.data.get("still", [])} <= self.read.vectors, "what stays the same is no vector")
        for name in symbols if throughout == "every step" else ():
            still = (words(name) & self.read.vectors) <= {*self.data["still"]}
            need(still and not {name, *words(name)} & differing, f"{name} differs from step to step")
        self.believed += [f"the same in {throughout}: {', '.join(sorted(words(*symbols)))}"]

    def geometric_sum(self) -> None:
        """1 + m + ... + m^(n-1) <= c n for m = 1 + a/(n - 1/2), whole n >= 1 and c >= (e^a - 1)/a.

        With x = 1/(2n), b = 1 - 2a: log((1 - bx)/(1 - x))/(2x) and log((e^a - x)/(1 - x)) are power series in x that
        begin with a; their coefficients of x^k are (1 - b^(k+1))/(2(k+1)) and (1 - e^(-ak))/k.
        """
        a, n, c = fraction(self.data["a"]), self.read(self.data["steps"]), self.read(self.data["constant"])
        whole = n.counts(self.whole.whole) and self.conclusion.op == "<="
        need(whole and Fraction(1, 100) <= a < 1, "n need not be whole, or a is not between 1/100 and 1")
        exact = (symbol(f"exp {a}") - constant(1)) * constant(1 / a)
        named, least = self.whole.numbers.get(self.data["constant"]), (exponential(a)[1] - 1) / a
        need(
            named.equals(exact) if named else c.number is not None and c.number >= least,
            "the constant is not (e^a - 1)/a",
        )
        b, k, power = 1 - 2 * a, 0, Fraction(1)
        while k == 0 or abs(b) ** (k + 1) + 2 * power > 1:  # from there on every coefficient is dominated
            k += 1
            power = 1 / exponential(a * k)[0]
            need((1 - b ** (k + 1)) / (2 * (k + 1)) <= (1 - power) / k, f"coefficient {k} is not dominated")
        m = constant(1) + constant(a) * (n - constant(Fraction(1, 2))).inverse()
        left = (symbol(f"power {m.key} {n.key}") - constant(1)) * (m - constant(1)).inverse()
        need(self.conclusion.left.equals(left) and self.conclusion.right.equals(c * n), "the lemma says otherwise")

    def average(self) -> None:
        """A mean of an inequality that is linear in what differs, everything by its mean, or what that is at most."""
        (one,) = self.premises[:1]
        need(one.op == "<=" == self.conclusion.op, "it is no inequality")
        means = self.means(self.data["means"])
        for name, data in zip(means, self.data["means"], strict=True):
            if "slope" in data:  # only an upper bound of the mean is known
                own = {tuple(p for p in m if p[0] != name): c for m, c in one.slack.above.items() if dict(m).get(name)}
                self.nonnegative(Expression(own, one.slack.below), data["slope"], f"the factor of {data['of']}")
            self.believed += [f"the mean of {data['of']}{' is at most' if 'slope' in data else ''}: {data['is']}"]
        fixed = (one.right.symbols | (one.left.symbols if means else set())) - {*means}
        self._differ([words(name) for name in means], fixed)
        self._fixed(fixed, f"every outcome of {quoted(self.data['random'])}" if "random" in self.data else "every step")
        ends = self.conclusion.left.equals(averaged(one.left, means))
        need(ends and self.conclusion.right.equals(averaged(one.right, means)), "it is not the mean")

    def means(self, listed: list[Json]) -> dict[str, tuple[int, Expression]]:
        """Symbols with the power and what stands for it."""
        found = {}
        for data in listed:
            of = self.read(data["of"])
            ((((name, power),), coefficient),) = of.above.items()
            need(coefficient == 1 and power > 0 and not of.below, f"{data['of']} is no power of a symbol")
            found[name] = power, self.read(data["is"])
        need(len(found) == len(listed), "two means of the same")
        return found


def averaged(e: Expression, means: Mapping[str, tuple[int, Expression]]) -> Expression:
    """The expression with powers of symbols replaced by their means; refused unless it is linear in these."""
    total = constant(0)
    need(not any(s in means for f in e.below for m, _ in f for s, _ in m), "it divides by what differs")
    inside = words(*(s for s in e.symbols if "(" in s)) & words(*means)
    need(not inside, f"{sorted(inside)} differs, and is in a floor or an exponent")
    for m, c in e.above.items():
        own = [(s, k) for s, k in m if s in means]
        need(len(own) <= 1 and all(k == means[s][0] for s, k in own), "it is not linear in what differs")
        term = Expression({tuple(p for p in m if p[0] not in means): c}, e.below)
        total = total + (term * means[own[0][0]][1] if own else term)
    return total


METHODS = (Step.combination, Step.clients, Step.unroll, Step.geometric_sum, Step.average)
RULES = {method.__name__.replace("_", "-"): method for method in METHODS} | {"axiom": lambda step: None}


def written(data: Json) -> str:
    """A relation as it is printed."""
    return f"{data['left']} {data['op']} {data['right']}"


class Certificate:
    """A certificate as read, and what of it has been shown."""

    def __init__(self, data: Json) -> None:
        spent.clear()
        formed(data, FORMAT, "the certificate")
        need(data["format"] == "fedbounds certificate 1", "this is no certificate of format 1")
        self.data, symbols, numbers = data, data["symbols"], data["numbers"]
        self.vectors, self.known = {v for table in data["vectors"].values() for v in table}, {*symbols, *numbers}
        names = Counter([*symbols, *numbers, *self.vectors])
        need(all(map(NAME.fullmatch, names)), f"{quoted([n for n in names if not NAME.fullmatch(n)][:3])} are no names")
        need(max(names.values(), default=1) == 1, f"{[n for n in names if names[n] > 1][:1]} is in two tables")
        self.lines, self.believed, self.count = list[str](), list[str](), Counter[str]()
        self.shown, self.facts, self.starts = dict[str, Relation](), dict[str, Expression](), set[str]()
        self.used = set[str]()
        self.sign = {name: what["sign"] for name, what in symbols.items()} | dict.fromkeys(numbers, "positive")
        self.whole = {name for name, what in symbols.items() if what["whole"] and what["sign"] == "positive"}
        self.numbers = {name: Reader(set(), exp=True)(what["is"]) for name, what in numbers.items()}
        for name, number in self.numbers.items():
            (low, high), ends = enclosed(number), [fraction(numbers[name][end]) for end in ("low", "high")]
            need(0 < ends[0] <= low <= high <= ends[1], f"{name} is not between its bounds")
        for name, what in {**symbols, **numbers}.items():
            need(self.sign[name] in SIGNS, f"the sign of {name} is no sign")
            ends, whole = {end: fraction(what[end]) for end in ("low", "high") if end in what}, what.get("whole", False)
            need(not whole or all(e.denominator == 1 for e in ends.values()), f"the ends of {name} are not whole")
            high = ends.get("high", max(ends.get("low", 1), Fraction(1)))
            least = [ends.get("low", high), Fraction(0) if self.sign[name] != "real" else high]
            least += [Fraction(1)] if name in self.whole else []
            need(max(least) <= high and (high > 0 or self.sign[name] != "positive"), f"{name} has no value")
            below = {end: symbol(name) - constant(value) for end, value in ends.items()}
            self.facts |= {f"{end} {name}": e if end == "low" else constant(-1) * e for end, e in below.items()}

    def check(self) -> list[str]:
        """What is believed, in words, if everything follows; refused if anything does not."""
        for data in self.data["steps"]:
            self._step(data)
        self._statement()
        return self.believed

    def _step(self, data: Json) -> None:
        try:
            need(data["id"] not in self.shown, "a step of this name was shown before")
            step = Step(self, data)
            step.check()
        except ERRORS as error:
            raise Refused(f"{quoted(data['id'])}: {reason_of(error)}") from error
        self.shown[data["id"]] = step.conclusion
        self.used |= step.read.names
        self.starts |= {data["id"]} if "at" in data else set()
        how = "checked" if data["rule"] in SHOWN else "believed" if data["rule"] == "axiom" else "checked in part"
        place = " (at the start only)" if "at" in data else ""
        self.count[how] += 1
        line = f"{quoted(data['id'])}{place}: {written(data)}"
        if how != "checked":
            line += f"; believed: {'; '.join([quoted(data['trusts']), *step.believed])}"
            self.believed.append(line)
        self.lines.append(f"{how}: {line}")

    def _statement(self) -> None:
        """The last step is the statement, whose conditions and assumptions cover those of all steps."""
        end, steps, conditions = self.data["statement"], self.data["steps"], self.data["conditions"]
        need(bool(steps), "it has no steps")
        need(steps[-1]["id"] not in self.starts, "the last step holds at the start only")
        goal, shown = Step(self, end), self.shown[steps[-1]["id"]]
        used = {c for step in steps for c in step.get("conditions", [])}
        need({*conditions} == {*end["conditions"], *used}, "a condition is of no step and not of the statement")
        new = self._renamed(goal, shown)
        ends = goal.conclusion.left.equals(averaged(shown.left, new))
        ends &= goal.conclusion.right.equals(averaged(shown.right, new))
        need(ends and goal.conclusion.op == "<=" == shown.op, "the last step ends elsewhere")
        missing = {a for step in steps for a in step.get("assumptions", [])} - set(end["assumptions"])
        need(not missing, f"the steps assume {quoted(sorted(missing))}, which the statement does not")
        need({*end["assumptions"]} == {*self.data["assumptions"]}, "the words of an assumption are missing or not read")
        need({*end["follows"]} == used - {*end["conditions"]}, "a condition of a step does not follow, or one of none")
        for name, why in sorted(end["follows"].items()):
            relation = Relation(conditions[name], goal.read)
            need(len(why) == (2 if relation.op == "==" else 1), f"the condition {quoted(name)} is not the statement's")
            for slack, because in zip((relation.slack, constant(-1) * relation.slack), why, strict=False):
                goal.nonnegative(slack, because, f"the condition {quoted(name)}", relation.op == "<")
        goal.divides()

    def _renamed(self, goal: Step, shown: Relation) -> dict[str, tuple[int, Expression]]:
        """The symbols of the last step for which the statement has others, which have no values that these may not."""
        listed, symbols = self.data["statement"]["rename"], self.data["symbols"]
        new = goal.means(listed)
        need(len({part["is"] for part in listed}) == len(new), "two symbols are renamed to one")
        sides = [Relation(c, goal.read).slack for c in self.data["conditions"].values()]
        inside = {s for e in sides for s in e.symbols} | ((shown.left.symbols | shown.right.symbols) - {*new})
        held = inside | words(*inside)
        for part, (name, (power, _)) in zip(listed, new.items(), strict=True):
            renamed = name in symbols or (name.startswith("dot ") and goal._sign(name) == "nonnegative")
            need(renamed and part["is"] in symbols and power == 1, "a symbol is renamed to what is no symbol")
            to, old = symbols[part["is"]], symbols.get(name, {"sign": goal._sign(name), "whole": False})
            narrower = SIGNS.index(to["sign"]) >= SIGNS.index(old["sign"]) and (to["whole"] or not old["whole"])
            ranged = all(old[e] == to.get(e) for e in ("low", "high") if e in old)
            need(narrower and ranged, f"{part['is']} may have values that {part['of']} may not")
            need(name not in held, f"{part['of']} stands for something else, too")
            need(part["is"] not in held | self.used, f"{part['is']} stands for something else, too")
        return new

    @property
    def verdict(self) -> str:
        """What has been shown, in one line; after `check`."""
        rest = ", ".join(f"{self.count[how]} {how}" for how in ("checked in part", "believed") if self.count[how])
        proved = f"proved if what is believed holds: {len(self.lines)} steps, every step checked except {rest}"
        return proved if rest else f"proved: {len(self.lines)} steps, every step checked"

    def report(self) -> list[str]:
        """Everything that is shown, and everything that is taken as given, line by line; after `check`."""
        data, end = self.data, self.data["statement"]
        lines = [f"claim: {quoted(data['claim'])} of {quoted(data['source'])}", f"shown: {written(end)}"]
        lines += [f"of: {quoted(end['measure'])}"]
        lines += [f"where {written(data['conditions'][name])}" for name in end["conditions"]]
        lines += [f"written: {part['is']} for {part['of']}" for part in end["rename"]]
        for name, what in data["symbols"].items():
            ends = "".join(f", {end} {what[end]}" for end in ("low", "high") if end in what)
            lines += [f"symbol: {name}: sign {what['sign']}, whole {what['whole']}{ends}, is {quoted(what['is'])}"]
        lines += [f"number: {n} = {w['is']}, between {w['low']} and {w['high']}" for n, w in data["numbers"].items()]
        every = [(v, is_) for table in data["vectors"].values() for v, is_ in table.items()]
        lines += dict.fromkeys(f"vector: {v}: {quoted(is_)}" for v, is_ in every)
        lines += [f"assumed: {quoted(name)}: {quoted(data['assumptions'][name])}" for name in end["assumptions"]]
        return [*lines, *self.lines, "Words in quotation marks, and symbols, are the author's; check their sense."]


def checked(data: Any) -> Certificate:
    """The certificate once everything in it follows; refused whatever is the matter with it."""
    try:
        certificate = Certificate(data)
        certificate.check()
        certificate.report()  # words that are missing are refused like all else
    except ERRORS as error:
        raise Refused(reason_of(error)) from error
    return certificate


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of a JSON file, in which no key stands twice."""
    need(len({key for key, _ in pairs}) == len(pairs), f"a key stands twice among {quoted([k for k, _ in pairs][:5])}")
    return dict(pairs)


def printed(lines: list[str], verdict: str) -> None:
    """Print lines that no terminal breaks, each after "| ", and then the verdict as the last line."""
    width = min(max(20, get_terminal_size().columns - 1), 120)
    for line in lines:
        print(*wrap(line, width, initial_indent="| ", subsequent_indent="|   ", break_on_hyphens=False), sep="\n")
    print(f"verdict: {verdict}")


def main(arguments: list[str]) -> int:
    """Check the certificate in a file; 0 if everything follows, 1 if it is refused, 2 if there is no JSON to read."""
    try:
        (path,) = arguments
        with open(path, encoding="utf-8") as file:
            text = file.read(LONG + 1)
        need(len(text) <= LONG, f"it has more than {LONG} characters")
        found = checked(json.loads(text, object_pairs_hook=unique))
        printed(found.report(), found.verdict)
        return 0
    except (Refused, RecursionError) as error:
        printed([reason_of(error)], "refused, for the reason above")
        return 1
    except (OSError, ValueError) as error:
        print(f"usage: python checker.py CERTIFICATE.json ({quoted(error)[:200]})", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
