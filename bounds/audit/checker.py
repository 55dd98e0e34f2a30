"""Check a certificate of a proof in exact fractions, with Python's standard library: checker.py CERTIFICATE.json

A certificate says what is bounded, under which conditions and assumptions, and how every step follows from others.
This file knows no paper and shares no code with what wrote the certificate. It reads expressions with its own grammar,
multiplies out both sides, and believes only what it prints: letters, axioms, what a mean or a sum stands for, and what
stays the same from step to step. An expression is not negative if it is a sum of products of facts with factors in
which no coefficient and no letter is negative, or of squares.
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
from typing import Any

Json = Mapping[str, Any]
Monomial = tuple[tuple[str, int], ...]
Poly = dict[Monomial, Fraction]
ONE: Monomial = ()
SIGNS = ("real", "nonnegative", "positive")
RESERVED = {"dot", "floor", "exp", "power", "Fraction"}
NAME = re.compile(rf"(?!({'|'.join(sorted(RESERVED))})$)[A-Za-z_][A-Za-z0-9_]*")
KEYS = {  # that a table may have
    "certificate": "assumptions claim conditions format letters numbers source statement steps vectors",
    "step": "a additive adds after assumptions at because conditions constant facts floors grows id left means "
    "multiplier multipliers needs now op pointwise positive premises random rest right rule says steps still sums "
    "trusts variables varying",
    "statement": "assumptions conditions floors follows left measure op positive premises rename right",
}
MOST = 10**7  # products of terms in one certificate, some minutes; the longest of ours has a ninth of it
ERRORS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError)


class Refused(ValueError):
    """The certificate does not show what it says; says where and why."""


def need(holds: bool, why: str) -> None:
    """Refuse the certificate unless this holds."""
    if not holds:
        raise Refused(why)


def plain(value: Any) -> None:
    """Refuse what is neither a table, a list, a whole number, true, false nor a line of text that prints as it is."""
    need(isinstance(value, dict | list | int) or (isinstance(value, str) and value.isprintable()), f"it has {value!a}")
    for part in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        plain(part)


def only(said: Json, kind: str) -> None:
    """Refuse a table with a key that nothing reads: it may say what is not checked."""
    strange = sorted({*said} - {*KEYS[kind].split()})
    need(not strange, f"a {kind} has no {strange[:3]!a}")


def plainly_said(error: Exception) -> str:
    """What is the matter, in words."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return str(error) if isinstance(error, Refused) else f"it is not of this format: {repr(error)[:200]}"


def fraction(text: str) -> Fraction:
    """A whole number or a fraction of two."""
    need(bool(re.fullmatch(r"-?[0-9]{1,99}(/[1-9][0-9]{0,98})?", text)), f"{text[:80]} is no fraction")
    return Fraction(text)


def words(name: str) -> set[str]:
    """The letters and vectors that a letter is made of: dot a b, floor of, exp of, power of."""
    return {*re.findall(r"[A-Za-z_]\w*", name)} - RESERVED


work = Counter[str]()  # of the certificate that is checked


def product(a: Poly, b: Poly) -> Poly:
    """The product of two polynomials, whose powers may be negative."""
    total: Poly = {}
    work["products"] += len(a) * len(b)
    need(work["products"] < MOST, "it takes too many products")
    for m, c in a.items():
        for n, d in b.items():
            powers = Counter(dict(m))
            powers.update(dict(n))
            both = tuple(sorted((s, k) for s, k in powers.items() if k))
            total[both] = total.get(both, Fraction(0)) + c * d
    need(all(c.numerator.bit_length() + c.denominator.bit_length() < 10**5 for c in total.values()), "too large")
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
        total = dict(self.over(below))
        for m, c in other.over(below).items():
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
        letters = {s for m in self.above for s, _ in m}
        least = sorted((s, -min(dict(m).get(s, 0) for m in self.above)) for s in letters)
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
        """Its value if it holds no letter."""
        return None if self.below or set(self.above) - {ONE} else self.above.get(ONE, Fraction(0))

    @property
    def key(self) -> str:
        """The expression in words, as part of a letter's name."""
        return str((sorted(self.above.items()), sorted(self.below.items())))

    @property
    def letters(self) -> set[str]:
        """Every letter of it."""
        return {s for part in (self.above, *map(dict, self.below)) for m in part for s, _ in m}


def constant(value: Fraction | int) -> Expression:
    """A number."""
    return Expression({ONE: Fraction(value)} if value else {})


def letter(name: str) -> Expression:
    """A letter."""
    return Expression({((name, 1),): Fraction(1)})


class Reader:
    """Reads expressions in declared letters, and remembers by what they divide."""

    def __init__(self, known: Set[str], vectors: Set[str] = frozenset()) -> None:
        self.known, self.vectors, self.divisors = known, vectors, dict[str, Expression]()

    def __call__(self, text: str) -> Expression:
        need(bool(re.fullmatch(r"[A-Za-z0-9_+*/(), -]+", text)), f"{text[:80]!a} is no expression")
        try:
            return self._read(ast.parse(text, mode="eval").body)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise Refused(f"{text[:80]!r} is no expression") from error

    def _read(self, e: ast.expr) -> Expression:
        match e:
            case ast.Constant(value=int(value)) if value is not True and value is not False:
                return constant(value)
            case ast.Name(id=name):
                need(name in self.known, f"the letter {name} is not declared")
                return letter(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return constant(-1) * self._read(operand)
            case ast.Call(func=ast.Name(id="dot"), args=[ast.Name(id=a), ast.Name(id=b)]):
                need({a, b} <= self.vectors, f"{a} or {b} is no declared vector")
                return letter(f"dot {min(a, b)} {max(a, b)}")
            case ast.Call(func=ast.Name(id="floor" | "exp" as function), args=[inside]):
                return letter(f"{function} {self._read(inside).key}")
            case ast.BinOp(left=left, op=op, right=right):
                return self._combined(self._read(left), op, self._read(right))
        raise Refused(f"{ast.dump(e)[:80]} is not of this grammar")

    def _combined(self, left: Expression, op: ast.operator, right: Expression) -> Expression:
        ring = {ast.Add: Expression.__add__, ast.Sub: Expression.__sub__, ast.Mult: Expression.__mul__}
        if type(op) in ring:
            return ring[type(op)](left, right)
        power = right.number
        need(isinstance(op, ast.Div | ast.Pow), f"{type(op).__name__} is not of this grammar")
        if isinstance(op, ast.Div):
            self.divisors[right.key] = right
            return left * right.inverse()
        if power is None:
            return letter(f"power {left.key} {right.key}")
        need(power in range(101), "only whole powers to 100 are read")
        return left ** int(power)


def exponential(x: Fraction) -> tuple[Fraction, Fraction]:
    """Numbers below and above exp(x), for 0 <= x <= 20."""
    need(0 <= x <= 20 and x.denominator < 10**4, f"exp({x}) is not enclosed here")
    low = sum((x**k / factorial(k) for k in range(140)), Fraction(0))
    return low, low + 2 * x**140 / factorial(140)


def enclosed(e: Expression) -> tuple[Fraction, Fraction]:
    """Numbers below and above a sum of fractions and multiples of exponentials of fractions; no other letter."""
    low = high = Fraction(0)
    for m, c in e.above.items():
        ends = (Fraction(1), Fraction(1))
        if m:
            ((name, power),) = m
            inside = re.findall(r"^exp \(\[\(\(\), Fraction\((\d+), (\d+)\)\)\], \[\]\)$", name)
            need(len(inside) == power == 1 and not e.below, "a number is made of fractions and exp of positive ones")
            ends = exponential(Fraction(int(inside[0][0]), int(inside[0][1])))
        low, high = low + min(c * x for x in ends), high + max(c * x for x in ends)
    return low, high


class Relation:
    """left <= right, left == right, or, of conditions, left < right."""

    def __init__(self, said: Json, read: Reader) -> None:
        need(said["op"] in ("<=", "==", "<"), f"{said['op']} is no relation")
        self.left, self.right, self.op = read(said["left"]), read(said["right"]), said["op"]
        self.slack = self.right - self.left


class Step:
    """One step, with the signs and facts that may be used in it."""

    def __init__(self, whole: Certificate, said: Json) -> None:
        self.whole, self.said, self.read = whole, said, Reader(whole.known, whole.vectors)
        self.sign, self.facts, self.strict = dict(whole.sign), dict(whole.facts), set[str]()
        missing = [name for name in said.get("premises", []) if name not in whole.shown]
        need(not missing, f"its premise {missing[:1]} is no step that was shown before")
        self.premises, self.believed = [whole.shown[name] for name in said.get("premises", [])], list[str]()
        for k, name in enumerate(said.get("premises", [])):
            if name not in whole.starts or "at" in said:
                self._fact(f"premise {name}", whole.shown[name])
            else:
                need(k == 0 and said["rule"] == "unroll", f"{name} holds at the start only")
        for name in said.get("conditions", []):
            self._fact(f"condition {name}", Relation(whole.said["conditions"][name], self.read))
        for floor in said.get("floors", []):
            self._floor(floor["of"], fraction(floor["least"]), floor["because"])
        self.conclusion = Relation(said, self.read)

    def _fact(self, name: str, relation: Relation) -> None:
        need(not {name, f"{name} reversed"} & {*self.facts}, f"two facts are called {name}")
        self.facts |= {name: relation.slack}
        self.strict |= {name} if relation.op == "<" else set()
        self.facts |= {f"{name} reversed": constant(-1) * relation.slack} if relation.op == "==" else {}

    def _floor(self, of: str, least: Fraction, because: Json) -> None:
        inside, name = self.read(of), f"floor {self.read(of).key}"
        need(least.denominator == 1, "a floor is a whole number")
        self.nonnegative(inside - constant(least), because, f"{of} less {least}")
        self.facts[f"floor-below {of}"] = inside - letter(name)
        self.facts[f"floor-above {of}"] = letter(name) + constant(1) - inside
        self.facts[f"floor-least {of}"] = letter(name) - constant(least)
        self.sign[name] = "positive" if least > 0 else "nonnegative" if least == 0 else "real"

    def _sign(self, name: str) -> str:
        kind, *pair = name.split(" ")
        return "nonnegative" if kind == "dot" and len({*pair}) == 1 else self.sign.get(name, "real")

    def plainly(self, e: Expression, strictly: bool = False) -> bool:
        """Whether no coefficient, no letter and no denominator can be negative; strictly, also not zero."""
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
                products = (c * d * letter(f"dot {min(a, b)} {max(a, b)}") for a, c in vector for b, d in vector)
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
            need(self.plainly(factor), f"{text[:80]} may be negative")
            positive |= {*names} <= self.strict and self.plainly(factor, True)
            need({*names} <= {*self.facts}, f"{names} are no facts here")
            for name in names:
                factor = factor * self.facts[name]
            total = total + factor
        need(positive or not strictly, "it may be zero")
        return total

    def check(self) -> None:
        """Refuse the step unless it follows, and divides by nothing that may be zero."""
        need(self.said["rule"] in RULES, f"{self.said['rule']} is no rule")
        speaks = self.said["rule"] in SHOWN or bool(self.said["trusts"].strip())
        need(speaks and self.conclusion.op != "<", "it is strict, or trusts without a word")
        at_start = self.said.get("at") == "start" and self.said["rule"] in ("axiom", "combination")
        need(at_start or "at" not in self.said, "it holds at another place than the start")
        need({*self.said.get("needs", [])} <= {*self.said.get("assumptions", [])}, "the rule needs another assumption")
        RULES[self.said["rule"]](self)
        self.divides()

    def divides(self) -> None:
        """Refuse unless whatever was divided by is not zero."""
        shown = list[Poly]()
        for said in self.said.get("positive", []):
            part = self.read(said["is"])
            self.nonnegative(part, said["because"], f"the divisor {said['is']}", True)
            shown.append(part.factored()[1])
        for divisor in list(self.read.divisors.values()):
            monomial, factor = divisor.factored()
            positive = all(self._sign(s) == "positive" for s in monomial.letters)
            positive &= factor in shown or self.plainly(Expression(factor), True)
            need(positive, f"it divides by {divisor.key[:200]}, which is not shown to be positive")

    def combination(self) -> None:
        """slack = sum of multipliers times the premises' slacks, and a rest that is nonnegative."""
        rest = self.conclusion.slack
        pairs = len(self.said["multipliers"]), len(self.premises)
        need(pairs[0] == pairs[1], f"it has {pairs[0]} multipliers for {pairs[1]} premises")
        for said, premise in zip(self.said["multipliers"], self.premises, strict=True):
            factor = self.read(said["value"])
            if premise.op == "<=" and factor.above:
                need(self.conclusion.op == "<=", "an equality cannot rest on an inequality")
                self.nonnegative(factor, said["because"], f"the multiplier {said['value']}")
            rest = rest - factor * premise.slack
        if self.conclusion.op == "==":
            need(not rest.above, "the two sides differ")
        else:
            self.nonnegative(rest, self.said["rest"], "what the premises leave")

    def clients(self) -> None:
        """A polynomial that is nonnegative for every client, summed over the clients monomial by monomial."""
        variables, believed = self.said["variables"], self.said["sums"]
        new = len({*variables}) == len(variables) and not {*variables} & {*self.read.known, *self.read.vectors}
        sums = {tuple(powers): self.read(text) for powers, text in believed}
        need(len(sums) == len(believed), "two sums of the same")
        need(new and all(map(NAME.fullmatch, variables)), f"{variables} are no new names")
        self.read.known = {*self.read.known, *variables}
        self.sign |= dict.fromkeys(variables, "nonnegative")
        self.believed += [f"for every client: 0 <= {v}" for v in variables]
        self.believed += [f"for every client: {written(said)}" for said in self.said["facts"]]
        self.believed += [f"the sum over clients with powers {k} of {', '.join(variables)}: {t}" for k, t in believed]
        for k, said in enumerate(self.said["facts"]):
            self._fact(f"client {k}", Relation(said, self.read))
        pointwise, total = self.read(self.said["pointwise"]), constant(0)
        self.nonnegative(pointwise, self.said["because"], "what holds for every client")
        need(not pointwise.below and self.conclusion.op == "<=", "no polynomial inequality")
        self._fixed(pointwise.letters - {*variables}, "every client")
        for m, c in pointwise.above.items():
            need((powers := tuple(dict(m).get(v, 0) for v in variables)) in sums, f"no sum is given for {powers}")
            total = total + Expression({tuple(p for p in m if p[0] not in variables): c}) * sums[powers]
        need(total.equals(self.conclusion.slack), "the sum over the clients is not the slack")

    def unroll(self) -> None:
        """u_{k+1} <= m u_k + b, u_0 = 0, m >= 1, b >= 0: after n steps u <= b (m^n - 1)/(m - 1)."""
        now, m, b, n = (self.read(self.said[k]) for k in ("now", "multiplier", "additive", "steps"))
        (start, step, *_), after = self.premises, self.read(self.said["after"])
        need(start.op == "==" and start.left.equals(now) and not start.right.above, "it does not start at 0")
        need(step.left.equals(after) and step.right.equals(m * now + b), "the recursion is not u -> m u + b")
        need(step.op == "<=" and not after.equals(now), "the step leads nowhere")
        self.believed += [f"{what}: {self.said[what]}" for what in ("now", "after", "steps")]
        self._fixed(m.letters | b.letters | n.letters, "every step")
        self.nonnegative(m - constant(1), self.said["grows"], "the multiplier less 1")
        self.nonnegative(b, self.said["adds"], "the additive term")
        self.read.divisors["grows"] = m - constant(1)
        wanted = b * (letter(f"power {m.key} {n.key}") - constant(1))
        need(self.conclusion.op == "<=" and self.conclusion.left.equals(now), "it bounds something else")
        need((self.conclusion.right * (m - constant(1))).equals(wanted), "it does not unroll to this")

    def _fixed(self, letters: set[str], throughout: str) -> None:
        """Refuse if one of these is said to differ between steps or rounds; it is printed that none does."""
        for name in letters if throughout == "every step" else ():
            still = (words(name) & self.read.vectors) <= {*self.said["still"]}
            need(still and not words(name) & {*self.said["varying"]}, f"{name} differs from step to step")
        self.believed += [f"the same in {throughout}: {', '.join(sorted({w for s in letters for w in words(s)}))}"]

    def geometric_sum(self) -> None:
        """1 + m + ... + m^(n-1) <= c n for m = 1 + a/(n - 1/2), whole n >= 1 and c >= (e^a - 1)/a.

        With x = 1/(2n), b = 1 - 2a: log((1 - bx)/(1 - x))/(2x) and log((e^a - x)/(1 - x)) are power series in x that
        begin with a; their coefficients of x^k are (1 - b^(k+1))/(2(k+1)) and (1 - e^(-ak))/k.
        """
        a, n, c = fraction(self.said["a"]), self.read(self.said["steps"]), self.read(self.said["constant"])
        whole = all(s in self.whole.whole and k > 0 for m in n.above for s, k in m)
        whole &= not n.below and list(n.above.values()) == [1] and self.conclusion.op == "<="
        need(whole and Fraction(1, 100) <= a < 1, "n need not be whole, or a is not between 1/100 and 1")
        exact = (letter(f"exp {constant(a).key}") - constant(1)) * constant(1 / a)
        named, least = self.whole.numbers.get(self.said["constant"]), (exponential(a)[1] - 1) / a
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
        left = (letter(f"power {m.key} {n.key}") - constant(1)) * (m - constant(1)).inverse()
        need(self.conclusion.left.equals(left) and self.conclusion.right.equals(c * n), "the lemma says otherwise")

    def average(self) -> None:
        """A mean of an inequality that is linear in what differs, everything by its mean, or what that is at most."""
        (one,) = self.premises[:1]
        need(one.op == "<=" == self.conclusion.op, "it is no inequality")
        means = self.means(self.said["means"])
        for name, said in zip(means, self.said["means"], strict=True):
            if "slope" in said:  # only an upper bound of the mean is known
                own = {tuple(p for p in m if p[0] != name): c for m, c in one.slack.above.items() if dict(m).get(name)}
                self.nonnegative(Expression(own, one.slack.below), said["slope"], f"the factor of {said['of']}")
            self.believed += [f"the mean of {said['of']}{' is at most' if 'slope' in said else ''}: {said['is']}"]
        fixed = (one.right.letters | (one.left.letters if means else set())) - {*means}
        self._fixed(fixed, f"every outcome of {self.said['random']}" if self.said.get("random") else "every step")
        ends = self.conclusion.left.equals(averaged(one.left, means))
        need(ends and self.conclusion.right.equals(averaged(one.right, means)), "it is not the mean")

    def means(self, listed: list[Json]) -> dict[str, tuple[int, Expression]]:
        """Letters with the power and what stands for it."""
        found = {}
        for said in listed:
            ((((name, power),), coefficient),) = self.read(said["of"]).above.items()
            need(coefficient == 1 and power > 0, f"{said['of']} is no power of a letter")
            found[name] = power, self.read(said["is"])
        need(len(found) == len(listed), "two means of the same")
        return found


def averaged(e: Expression, means: Mapping[str, tuple[int, Expression]]) -> Expression:
    """The expression with powers of letters replaced by their means; refused unless it is linear in these."""
    total = constant(0)
    need(not any(s in means for f in e.below for m, _ in f for s, _ in m), "it divides by what differs")
    inside = {w for s in e.letters if "(" in s for w in words(s)} & {w for s in means for w in words(s)}
    need(not inside, f"{inside} differs, and is in a floor or an exponent")
    for m, c in e.above.items():
        own = [(s, k) for s, k in m if s in means]
        need(len(own) <= 1 and all(k == means[s][0] for s, k in own), "it is not linear in what differs")
        term = Expression({tuple(p for p in m if p[0] not in means): c}, e.below)
        total = total + (term * means[own[0][0]][1] if own else term)
    return total


SHOWN = ("combination", "geometric-sum")  # rules that believe nothing
METHODS = (Step.combination, Step.clients, Step.unroll, Step.geometric_sum, Step.average)
RULES = {method.__name__.replace("_", "-"): method for method in METHODS} | {"axiom": lambda step: None}


def written(said: Json) -> str:
    """A relation as it is printed."""
    return f"{said['left']} {said['op']} {said['right']}"


class Certificate:
    """A certificate as read, and what of it has been shown."""

    def __init__(self, said: Json) -> None:
        need(isinstance(said, dict), "it is no table")
        need(said.get("format") == "fedbounds certificate 1", "this is no certificate of format 1")
        plain(said)
        only(said, "certificate")
        work.clear()
        self.said, letters, numbers = said, said["letters"], said["numbers"]
        self.vectors, self.known = {v for table in said["vectors"].values() for v in table}, {*letters, *numbers}
        names = [*letters, *numbers, *self.vectors]
        need(all(map(NAME.fullmatch, names)), f"{[ascii(n) for n in names if not NAME.fullmatch(n)][:3]} are no names")
        need(len({*names}) == len(names), f"{[n for n in names if names.count(n) > 1][:1]} is in two tables")
        self.lines, self.believed, self.count = list[str](), list[str](), Counter[str]()
        self.shown, self.facts, self.starts = dict[str, Relation](), dict[str, Expression](), set[str]()
        self.sign = {name: what["sign"] for name, what in letters.items()} | dict.fromkeys(numbers, "positive")
        self.whole = {name for name, what in letters.items() if what["whole"] and what["sign"] == "positive"}
        self.numbers = {name: Reader(set())(what["is"]) for name, what in numbers.items()}
        for name, number in self.numbers.items():
            (low, high), ends = enclosed(number), [fraction(numbers[name][end]) for end in ("low", "high")]
            need(0 < ends[0] <= low <= high <= ends[1], f"{name} is not between its bounds")
        for name, what in {**letters, **numbers}.items():
            need(self.sign[name] in SIGNS and what.get("whole", False) in (0, 1), f"the sign of {name} is no sign")
            ends, whole = {end: fraction(what[end]) for end in ("low", "high") if end in what}, name in self.whole
            high = ends.get("high", max(ends.get("low", 1), Fraction(1)))
            least = [ends.get("low", high), *([0] if self.sign[name] != "real" else []), *([1] if whole else [])]
            need(not whole or all(e.denominator == 1 for e in ends.values()), f"the ends of {name} are not whole")
            need(max(least) <= high and (high > 0 or self.sign[name] != "positive"), f"{name} has no value")
            below = {end: letter(name) - constant(value) for end, value in ends.items()}
            self.facts |= {f"{end} {name}": e if end == "low" else constant(-1) * e for end, e in below.items()}

    def check(self) -> list[str]:
        """What is believed, in words, if everything follows; refused if anything does not."""
        for said in self.said["steps"]:
            self._step(said)
        self._statement()
        return self.believed

    def _step(self, said: Json) -> None:
        try:
            need(said["id"] not in self.shown, "a step of this name was shown before")
            only(said, "step")
            step = Step(self, said)
            step.check()
        except ERRORS as error:
            raise Refused(f"{said['id']}: {plainly_said(error)}") from error
        self.shown[said["id"]] = step.conclusion
        self.starts |= {said["id"]} if "at" in said else set()
        how = "checked" if said["rule"] in SHOWN else "believed" if said["rule"] == "axiom" else "checked in part"
        place = " (at the start only)" if "at" in said else ""
        self.count[how] += 1
        line = f"{said['id']}{place}: {written(said)}"
        if how != "checked":
            line += f"; believed: {'; '.join([said['trusts'], *step.believed])}"
            self.believed.append(line)
        self.lines.append(f"{how}: {line}")

    def _statement(self) -> None:
        """The last step is the statement, whose conditions and assumptions cover those of all steps."""
        end, steps = self.said["statement"], self.said["steps"]
        need(bool(steps) and not end.get("premises"), "it has no steps, or its statement rests on them as a premise")
        need(steps[-1]["id"] not in self.starts, "the last step holds at the start only")
        only(end, "statement")
        said, shown = Step(self, end), self.shown[steps[-1]["id"]]
        means = said.means(end["rename"])
        need(len({part["is"] for part in end["rename"]}) == len(means), "two letters are renamed to one")
        used = {s for name in end["conditions"] for s in said.facts[f"condition {name}"].letters}
        for part, (name, (power, _)) in zip(end["rename"], means.items(), strict=True):
            new = self.said["letters"].get(part["is"], {})
            need(bool(new) and power == 1, "a letter is renamed to what is no letter")
            old = self.said["letters"].get(name, {"sign": said._sign(name), "whole": False})
            narrower = SIGNS.index(new["sign"]) >= SIGNS.index(old["sign"]) and (new["whole"] or not old["whole"])
            ranged = all(old[e] == new.get(e) for e in ("low", "high") if e in old)
            need(narrower and ranged, f"{part['is']} may have values that {part['of']} may not")
            apart = part["is"] not in {w for s in shown.right.letters | shown.left.letters | used for w in words(s)}
            need(apart, f"{part['is']} stands for something else than {part['of']}")
        ends = said.conclusion.left.equals(shown.left) and said.conclusion.right.equals(averaged(shown.right, means))
        need(ends and said.conclusion.op == "<=" == shown.op, "the last step ends elsewhere")
        missing = {a for step in steps for a in step.get("assumptions", [])} - set(end["assumptions"])
        need(not missing, f"the steps assume {', '.join(sorted(missing))}, which the statement does not")
        need({*end["assumptions"]} <= {*self.said["assumptions"]}, "an assumption is not said in words")
        for name in sorted({c for step in steps for c in step.get("conditions", [])} - set(end["conditions"])):
            relation, why = Relation(self.said["conditions"][name], said.read), end["follows"].get(name, [])
            need(len(why) == (2 if relation.op == "==" else 1), f"the condition {name} is not the statement's")
            for slack, because in zip((relation.slack, constant(-1) * relation.slack), why, strict=False):
                said.nonnegative(slack, because, f"the condition {name}", relation.op == "<")
        said.divides()

    @property
    def verdict(self) -> str:
        """What has been shown, in one line; after `check`."""
        rest = ", ".join(f"{self.count[how]} {how}" for how in ("checked in part", "believed") if self.count[how])
        proved = f"proved if what is believed holds: {len(self.lines)} steps, every step checked except {rest}"
        return proved if rest else f"proved: {len(self.lines)} steps, every step checked"

    def report(self) -> list[str]:
        """Everything that is shown, and everything that is taken as given, line by line; after `check`."""
        said, end = self.said, self.said["statement"]
        lines = [f"claim: {said['claim']}", f"shown: {written(end)}", f"of: {end['measure']}"]
        lines += [f"where {written(said['conditions'][name])}" for name in end["conditions"]]
        lines += [f"written: {part['is']} for {part['of']}" for part in end["rename"]]
        lines += [f"letter: {n}: {', '.join(f'{k} {v}' for k, v in w.items())}" for n, w in said["letters"].items()]
        lines += [f"number: {n} = {w['is']}, between {w['low']} and {w['high']}" for n, w in said["numbers"].items()]
        lines += dict.fromkeys(f"vector: {v}: {w}" for table in said["vectors"].values() for v, w in table.items())
        lines += [f"assumed: {name}: {said['assumptions'][name]}" for name in end["assumptions"]]
        return [*lines, *self.lines, "Words and letters are the author's; check their sense.", self.verdict]


def checked(said: Json) -> Certificate:
    """The certificate once everything in it follows; refused whatever is the matter with it."""
    try:
        certificate = Certificate(said)
        certificate.check()
        certificate.report()  # words that are missing are refused like all else
    except ERRORS as error:
        raise Refused(plainly_said(error)) from error
    return certificate


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of a JSON file, in which no key stands twice."""
    need(len({key for key, _ in pairs}) == len(pairs), f"a key stands twice among {[k for k, _ in pairs][:5]}")
    return dict(pairs)


def main(arguments: list[str]) -> int:
    """Check the certificate in a file; 0 if everything follows, 1 if it is refused, 2 if there is no JSON to read."""
    try:
        (path,) = arguments
        with open(path, encoding="utf-8") as file:
            print(*checked(json.load(file, object_pairs_hook=unique)).report(), sep="\n")
        return 0
    except (Refused, RecursionError) as error:
        print(f"refused: {str(error) if str(error).isprintable() else ascii(str(error))}")
        return 1
    except (OSError, ValueError) as error:
        print(f"usage: python checker.py CERTIFICATE.json ({error!r})", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
