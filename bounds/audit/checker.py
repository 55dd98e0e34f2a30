"""Check a certificate of a proof in exact fractions, with Python's standard library: checker.py CERTIFICATE.json

A certificate says what is bounded, under which conditions and assumptions, and how every step follows from earlier
ones. This file knows no paper and shares no code with what wrote the certificate. It reads expressions with a grammar
of its own, multiplies out both sides, and believes nothing but what a step says that it trusts: axioms (listed whole),
what a mean, a sum or the number of steps stand for, and what differs from step to step. An expression is not negative
if it is a sum of products of facts with factors in which no coefficient and no letter is negative, or of squares.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import factorial
from typing import Any

Json = Mapping[str, Any]
Monomial = tuple[tuple[str, int], ...]
Poly = dict[Monomial, Fraction]
ONE: Monomial = ()


class Refused(ValueError):
    """The certificate does not show what it says; says where and why."""


def need(holds: bool, why: str) -> None:
    """Refuse the certificate unless this holds."""
    if not holds:
        raise Refused(why)


def product(a: Poly, b: Poly) -> Poly:
    """The product of two polynomials, whose powers may be negative."""
    total: Poly = {}
    for m, c in a.items():
        for n, d in b.items():
            powers = Counter(dict(m))
            powers.update(dict(n))
            both = tuple(sorted((s, k) for s, k in powers.items() if k))
            total[both] = total.get(both, Fraction(0)) + c * d
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


OPERATIONS = {ast.Add: Expression.__add__, ast.Sub: Expression.__sub__, ast.Mult: Expression.__mul__}


class Reader:
    """Reads expressions in declared letters, and remembers by what they divide."""

    def __init__(self, known: set[str]) -> None:
        self.known, self.divisors = known, dict[str, Expression]()

    def __call__(self, text: str) -> Expression:
        try:
            return self._read(ast.parse(text, mode="eval").body)
        except (SyntaxError, RecursionError) as error:
            raise Refused(f"{text[:80]!r} is no expression") from error

    def _read(self, e: ast.expr) -> Expression:
        match e:
            case ast.Constant(value=int(value)):
                return constant(value)
            case ast.Name(id=name):
                need(name in self.known, f"the letter {name} is not declared")
                return letter(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return constant(-1) * self._read(operand)
            case ast.Call(func=ast.Name(id="dot"), args=[ast.Name(id=a), ast.Name(id=b)]):
                return letter(f"dot {min(a, b)} {max(a, b)}")
            case ast.Call(func=ast.Name(id="floor" | "exp" as function), args=[inside]):
                return letter(f"{function} {self._read(inside).key}")
            case ast.BinOp(left=left, op=op, right=right):
                return self._combined(self._read(left), op, self._read(right))
        raise Refused(f"{ast.dump(e)[:80]} is not of this grammar")

    def _combined(self, left: Expression, op: ast.operator, right: Expression) -> Expression:
        if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](left, right)
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
    need(0 <= x <= 20, f"exp({x}) is not enclosed here")
    low = sum((x**k / factorial(k) for k in range(140)), Fraction(0))
    return low, low + 2 * x**140 / factorial(140)


def enclosed(e: Expression) -> tuple[Fraction, Fraction]:
    """Numbers below and above a sum of fractions and multiples of exponentials of fractions."""
    low = high = Fraction(0)
    for m, c in e.above.items():
        ends = (Fraction(1), Fraction(1))
        if m:
            ((name, power),) = m
            need(name.startswith("exp ") and power == 1 and not e.below, "a number is made of fractions and exp")
            ((_, inside),) = ast.literal_eval(name[4:].replace("Fraction", ""))[0]
            ends = exponential(Fraction(*inside))
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
        self.whole, self.said, self.read = whole, said, Reader(whole.known)
        self.sign, self.facts, self.strict = dict(whole.sign), dict(whole.facts), set[str]()
        self.premises = [whole.shown[name] for name in said.get("premises", [])]
        for name in said.get("premises", []):
            self._fact(f"premise {name}", whole.shown[name])
        for name in said.get("conditions", []):
            self._fact(f"condition {name}", whole.condition(name))
        for floor in said.get("floors", []):
            self._floor(floor["of"], int(floor["least"]), floor["because"])
        self.conclusion = Relation(said, self.read)

    def _fact(self, name: str, relation: Relation) -> None:
        self.facts |= {name: relation.slack}
        self.strict |= {name} if relation.op == "<" else set()
        self.facts |= {f"{name} reversed": constant(-1) * relation.slack} if relation.op == "==" else {}

    def _floor(self, of: str, least: int, because: Json) -> None:
        inside, name = self.read(of), f"floor {self.read(of).key}"
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
            for name in names:
                need(name in self.facts, f"{name} is no fact here")
                factor = factor * self.facts[name]
            total = total + factor
        need(positive or not strictly, "it may be zero")
        return total

    def check(self) -> None:
        """Refuse the step unless it follows, and divides by nothing that may be zero."""
        need(self.said["rule"] in RULES, f"{self.said['rule']} is no rule")
        shows = self.said["rule"] in ("combination", "geometric-sum")
        need(
            self.conclusion.op != "<" and (shows or bool(self.said["trusts"])), "it is strict, or trusts without a word"
        )
        missing = set(self.said.get("needs", [])) - set(self.said.get("assumptions", []))
        need(not missing, f"the rule needs {', '.join(missing)}")
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
            positive &= self.plainly(Expression(factor), True) or factor in shown
            need(positive, f"it divides by {divisor.key[:200]}, which is not shown to be positive")

    def combination(self) -> None:
        """slack = sum of multipliers times the premises' slacks, and a rest that is nonnegative."""
        rest = self.conclusion.slack
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
        variables = self.said["variables"]
        self.read.known = {*self.read.known, *variables}
        self.sign |= dict.fromkeys(variables, "nonnegative")
        for k, said in enumerate(self.said["facts"]):
            self._fact(f"client {k}", Relation(said, self.read))
        pointwise, total = self.read(self.said["pointwise"]), constant(0)
        self.nonnegative(pointwise, self.said["because"], "what holds for every client")
        need(not pointwise.below and self.conclusion.op == "<=", "no polynomial inequality")
        sums = {tuple(powers): self.read(text) for powers, text in self.said["sums"]}
        for m, c in pointwise.above.items():
            powers = tuple(dict(m).get(v, 0) for v in variables)
            need(powers in sums, f"no sum is given for the powers {powers}")
            total = total + Expression({tuple(p for p in m if p[0] not in variables): c}) * sums[powers]
        need(total.equals(self.conclusion.slack), "the sum over the clients is not the slack")

    def unroll(self) -> None:
        """u_{k+1} <= m u_k + b, u_0 = 0, m >= 1, b >= 0: after n steps u <= b (m^n - 1)/(m - 1)."""
        now, m, b, n = (self.read(self.said[k]) for k in ("now", "multiplier", "additive", "steps"))
        start, step, *_ = self.premises
        need(start.op == "==" and start.left.equals(now) and not start.right.above, "it does not start at 0")
        next_is = step.left.equals(self.read(self.said["after"])) and step.right.equals(m * now + b)
        need(next_is, "the recursion is not u -> m u + b")
        self._fixed(m.letters | b.letters)
        self.nonnegative(m - constant(1), self.said["grows"], "the multiplier less 1")
        self.nonnegative(b, self.said["adds"], "the additive term")
        wanted = b * (letter(f"power {m.key} {n.key}") - constant(1))
        need(self.conclusion.op == "<=" and self.conclusion.left.equals(now), "it bounds something else")
        need((self.conclusion.right * (m - constant(1))).equals(wanted), "it does not unroll to this")

    def _fixed(self, letters: set[str]) -> None:
        """Refuse if one of these differs between steps or rounds."""
        for name in letters:
            still = not name.startswith("dot ") or set(name.split(" ")[1:]) <= set(self.said["still"])
            need(name not in self.said["varying"] and still, f"{name} differs from step to step")

    def geometric_sum(self) -> None:
        """1 + m + ... + m^(n-1) <= c n for m = 1 + a/(n - 1/2), whole n >= 1 and c >= (e^a - 1)/a.

        With x = 1/(2n), b = 1 - 2a: log((1 - bx)/(1 - x))/(2x) and log((e^a - x)/(1 - x)) are power series in x that
        begin with a; their coefficients of x^k are (1 - b^(k+1))/(2(k+1)) and (1 - e^(-ak))/k.
        """
        a, n, c = Fraction(self.said["a"]), self.read(self.said["steps"]), self.read(self.said["constant"])
        whole = all(s in self.whole.whole and k > 0 for m in n.above for s, k in m)
        need(0 < a < 1 and whole and not n.below and list(n.above.values()) == [1], "n need not be whole")
        exact = (letter(f"exp {constant(a).key}") - constant(1)) * constant(1 / a)
        named = self.whole.numbers.get(self.said["constant"])
        at_least = c.number is not None and c.number >= (exponential(a)[1] - 1) / a
        need(at_least if named is None else named.equals(exact), "the constant is not (e^a - 1)/a")
        b, k, power = 1 - 2 * a, 0, Fraction(1)
        while k == 0 or abs(b) ** (k + 1) + 2 * power > 1:  # from there on every coefficient is dominated
            k += 1
            power = 1 / exponential(a * k)[0]
            need((1 - b ** (k + 1)) / (2 * (k + 1)) <= (1 - power) / k, f"coefficient {k} is not dominated")
        m = constant(1) + constant(a) * (n - constant(Fraction(1, 2))).inverse()
        left = (letter(f"power {m.key} {n.key}") - constant(1)) * (m - constant(1)).inverse()
        ends = self.conclusion.left.equals(left) and self.conclusion.right.equals(c * n)
        need(ends and self.conclusion.op == "<=", "the lemma says otherwise")

    def average(self) -> None:
        """A mean of an inequality that is linear in what differs, everything by its mean, or what that is at most."""
        (one,) = self.premises[:1]
        need(one.op == "<=" == self.conclusion.op, "it is no inequality")
        means = self.means(self.said["means"])
        for name, said in zip(means, self.said["means"], strict=True):
            if "slope" in said:  # only an upper bound of the mean is known
                own = {tuple(p for p in m if p[0] != name): c for m, c in one.right.above.items() if dict(m).get(name)}
                self.nonnegative(Expression(own, one.right.below), said["slope"], f"the factor of {said['of']}")
        if not self.said.get("random"):
            self._fixed(one.right.letters - set(means))
        ends = self.conclusion.left.equals(averaged(one.left, means))
        need(ends and self.conclusion.right.equals(averaged(one.right, means)), "it is not the mean")

    def means(self, listed: list[Json]) -> dict[str, tuple[int, Expression]]:
        """Letters with the power and what stands for it."""
        found = {}
        for said in listed:
            ((((name, power),), coefficient),) = self.read(said["of"]).above.items()
            need(coefficient == 1 and power > 0, f"{said['of']} is no power of a letter")
            found[name] = power, self.read(said["is"])
        return found

    def axiom(self) -> None:
        """Trusted as it stands."""


def averaged(e: Expression, means: Mapping[str, tuple[int, Expression]]) -> Expression:
    """The expression with powers of letters replaced by their means; refused unless it is linear in these."""
    total = constant(0)
    need(not any(s in means for f in e.below for m, _ in f for s, _ in m), "it divides by what differs")
    for m, c in e.above.items():
        own = [(s, k) for s, k in m if s in means]
        need(len(own) <= 1 and all(k == means[s][0] for s, k in own), "it is not linear in what differs")
        term = Expression({tuple(p for p in m if p[0] not in means): c}, e.below)
        total = total + (term * means[own[0][0]][1] if own else term)
    return total


BELIEVED = ("sums", "now", "after", "steps", "means", "random", "varying", "still")  # what a rule does not show
METHODS = (Step.combination, Step.clients, Step.unroll, Step.geometric_sum, Step.average, Step.axiom)
RULES = {method.__name__.replace("_", "-"): method for method in METHODS}


class Certificate:
    """A certificate as read, and what of it has been shown."""

    def __init__(self, said: Json) -> None:
        need(said.get("format") == "fedbounds certificate 1", "this is no certificate of format 1")
        self.said, letters, numbers = said, said["letters"], said["numbers"]
        self.known, self.shown, self.facts = {*letters, *numbers}, dict[str, Relation](), dict[str, Expression]()
        self.sign = {name: what["sign"] for name, what in letters.items()} | dict.fromkeys(numbers, "positive")
        self.whole = {name for name, what in letters.items() if what["whole"] and what["sign"] == "positive"}
        self.numbers = {name: Reader(set())(what["is"]) for name, what in numbers.items()}
        for name, number in self.numbers.items():
            low, high = enclosed(number)
            inside = 0 < Fraction(numbers[name]["low"]) <= low <= high <= Fraction(numbers[name]["high"])
            need(inside, f"{name} is not between its bounds")
        for name, what in {**letters, **numbers}.items():
            self.facts |= {f"{end} {name}": letter(name) - constant(Fraction(what[end])) for end in {"low"} & {*what}}
            self.facts |= {f"{end} {name}": constant(Fraction(what[end])) - letter(name) for end in {"high"} & {*what}}

    def condition(self, name: str) -> Relation:
        """A declared condition."""
        return Relation(self.said["conditions"][name], Reader(self.known))

    def check(self) -> list[str]:
        """What is trusted, in words, if everything follows; refused if anything does not."""
        trusted = list[str]()
        for said in self.said["steps"]:
            try:
                need(said["id"] not in self.shown, "a step of this name was shown before")
                step = Step(self, said)
                step.check()
            except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError) as error:
                raise Refused(f"{said.get('id')}: {error if isinstance(error, Refused) else repr(error)}") from error
            self.shown[said["id"]] = step.conclusion
            if said["rule"] not in ("combination", "geometric-sum"):
                believed = "".join(f"; {key}: {said[key]}" for key in BELIEVED if said.get(key))
                trusted.append(f"{said['id']}: {said['trusts']}: {said['left']} {said['op']} {said['right']}{believed}")
        self._statement()
        return trusted

    def _statement(self) -> None:
        """The last step is the statement, whose conditions and assumptions cover those of all steps."""
        end, steps = self.said["statement"], self.said["steps"]
        said, shown = Step(self, end), self.shown[steps[-1]["id"]]
        need(all(part["is"] in self.sign for part in end["rename"]), "a letter is renamed to what is no letter")
        right = averaged(shown.right, said.means(end["rename"]))
        ends = said.conclusion.left.equals(shown.left) and said.conclusion.right.equals(right)
        need(ends and said.conclusion.op == "<=" == shown.op, "the last step ends elsewhere")
        missing = {a for step in steps for a in step.get("assumptions", [])} - set(end["assumptions"])
        need(not missing, f"the steps assume {', '.join(sorted(missing))}, which the statement does not")
        for name in sorted({c for step in steps for c in step.get("conditions", [])} - set(end["conditions"])):
            relation, why = self.condition(name), end["follows"].get(name, [])
            need(len(why) == (2 if relation.op == "==" else 1), f"the condition {name} is not the statement's")
            for slack, because in zip((relation.slack, constant(-1) * relation.slack), why, strict=False):
                said.nonnegative(slack, because, f"the condition {name}", relation.op == "<")
        said.divides()


def main(arguments: list[str]) -> int:
    """Check the certificate in a file; 0 if everything follows, 1 if not, 2 if there is nothing to read."""
    try:
        (path,) = arguments
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        trusted = Certificate(said).check()
    except Refused as error:
        print(f"refused: {error}")
        return 1
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"usage: python checker.py CERTIFICATE.json ({error!r})", file=sys.stderr)
        return 2
    end, conditions = said["statement"], [said["conditions"][name] for name in said["statement"]["conditions"]]
    lines = [f"{said['claim']}: all {len(said['steps'])} steps follow", f"shown: {end['left']} <= {end['right']}"]
    lines += [f"where {c['left']} {c['op']} {c['right']}" for c in conditions]
    lines += [f"written: {part['is']} for {part['of']}" for part in end["rename"]]
    lines += [f"letter: {name}: {', '.join(f'{k} {v}' for k, v in w.items())}" for name, w in said["letters"].items()]
    lines += [f"assumed: {name}: {said['assumptions'].get(name)}" for name in end["assumptions"]]
    print(*lines, *(f"trusted: {line}" for line in trusted), "Words are the author's; check their sense.", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
