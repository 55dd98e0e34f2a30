"""Search for counterexamples to what a certificate says, with exact fractions and a linear program.

The search shares no code with the checker: it parses expressions by `ast`, evaluates them at sampled points, and reads
the certificate as JSON. A step is an implication: where symbols have their declared signs and ranges, and conditions
and premises hold, the conclusion holds. What a step believes is taken as it is printed.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from scipy.optimize import linprog

from fedbounds.bounds.asymptotics.exact_lp import maximize
from fedbounds.bounds.errors import FedboundsError

Json = Mapping[str, Any]
Point = dict[str, Fraction]
BOX = 1e4  # of the symbols in which a step is linear
CLOSE = 1e-5  # of the sizes of the terms: smaller differences are rounding of the linear program
EXACT = Fraction(1, 10**25)  # the same where only numbers with exp are rounded


class Unknown(ValueError):
    """The expression is outside what this oracle evaluates."""


@lru_cache(maxsize=20000)
def tree(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def value(text: str, point: Mapping[str, Fraction]) -> Fraction:
    """The expression at a point; dot(a, b) is the symbol "dot a b" with a <= b."""
    return _value(tree(text), point)


def _value(e: ast.expr, point: Mapping[str, Any]) -> Any:
    match e:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.Name(id=name):
            return point[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, point)
        case ast.Call(func=ast.Name(id="dot"), args=[ast.Name(id=a), ast.Name(id=b)], keywords=[]):
            return point[f"dot {min(a, b)} {max(a, b)}"]
        case ast.Call(func=ast.Name(id="floor"), args=[inside], keywords=[]):
            return Fraction(floor(_value(inside, point)))
        case ast.Call(func=ast.Name(id="exp"), args=[inside], keywords=[]):
            with mpmath.workdps(60):
                x = _value(inside, point)
                return fraction_of(mpmath.exp(mpmath.mpf(x.numerator) / x.denominator))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, point), _value(right, point)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div():
                    return a / b
                case ast.Pow() if b.denominator == 1 and 0 <= b <= 2000:
                    return a ** int(b)
    raise Unknown(ast.dump(e)[:100])


def fraction_of(x: Any) -> Fraction:
    sign, man, exp, _ = mpmath.mpf(x)._mpf_
    return Fraction((-1) ** sign * int(man)) * Fraction(2) ** exp


def letters_of(*texts: str) -> set[str]:
    """Every symbol and inner product in these expressions."""
    return {s for text in texts for s in _symbols(text)}


@lru_cache(maxsize=20000)
def _symbols(text: str) -> frozenset[str]:
    found: set[str] = set()

    def visit(e: ast.AST) -> None:
        match e:
            case ast.Call(func=ast.Name(id="dot"), args=[ast.Name(id=a), ast.Name(id=b)]):
                found.add(f"dot {min(a, b)} {max(a, b)}")
            case ast.Call(args=args):
                for part in args:
                    visit(part)
            case ast.Name(id=name):
                found.add(name)
            case ast.BinOp(left=left, right=right):
                visit(left)
                visit(right)
            case ast.UnaryOp(operand=operand):
                visit(operand)

    visit(tree(text))
    return frozenset(found)


def degree(e: ast.expr, names: set[str]) -> int:
    """The degree in these symbols as it is written; 9 where they are inside of a function or a denominator."""
    match e:
        case ast.Name(id=name):
            return int(name in names)
        case ast.Call(func=ast.Name(id="dot"), args=[ast.Name(id=a), ast.Name(id=b)]):
            return int(f"dot {min(a, b)} {max(a, b)}" in names)
        case ast.Call(args=args):
            return 9 if any(degree(part, names) for part in args) else 0
        case ast.UnaryOp(operand=operand):
            return degree(operand, names)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return max(degree(left, names), degree(right, names))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return degree(left, names) + degree(right, names)
        case ast.BinOp(left=left, op=op, right=right):
            whole = isinstance(op, ast.Div) or degree(left, names) == 0
            return degree(left, names) if whole and degree(right, names) == 0 else 9
    return 0


def slack(said: Json, point: Mapping[str, Fraction]) -> Fraction:
    return value(said["right"], point) - value(said["left"], point)


def size(said: Json, point: Mapping[str, Fraction]) -> Fraction:
    return abs(value(said["right"], point)) + abs(value(said["left"], point))


class Search:
    """Searches for counterexamples to the steps and the statement of one certificate.

    Args:
        certificate: as JSON.
        seed: of the sampled points.
        points: how many points are sampled for each step.
        known: steps that were searched before; what is found true is added.
    """

    def __init__(self, certificate: Json, seed: int = 0, points: int = 6, known: set[str] | None = None) -> None:
        self.said, self.points = certificate, points
        self.random, self.known = random.Random(seed), set[str]() if known is None else known
        self.numbers = {n: value(w["is"], {}) for n, w in certificate["numbers"].items()}
        self.tried = self.empty = 0  # steps, and those for which no point was found
        self.most = 80  # of symbols that are whole

    def counterexamples(self) -> Iterator[str]:
        """What is false, in words."""
        for name, what in self.said["numbers"].items():
            if not 0 < Fraction(what["low"]) <= self.numbers[name] <= Fraction(what["high"]):
                yield f"number {name}"
        shown: dict[str, Json] = {}
        for step in self.said["steps"]:
            premises = [shown[p] for p in step.get("premises", [])]
            conditions = [self.said["conditions"][c] for c in step.get("conditions", [])]
            shown[step["id"]] = step
            key = json.dumps([step, [_relation(p) for p in premises], conditions, self.domains(step, premises)])
            if step["rule"] == "axiom" or key in self.known:
                continue
            self.tried += 1
            found = list(self._step(step, premises, conditions))
            if not found:
                self.known.add(key)
            yield from (f"{step['id']}: {what}" for what in found)
        yield from (f"statement: {what}" for what in self._statement())

    def domains(self, *parts: Any) -> list[Any]:
        """What is declared of the symbols in these."""
        text = json.dumps(parts)
        tables = (self.said["symbols"], self.said["numbers"])
        used = [(n, w) for table in tables for n, w in table.items() if re.search(rf"\b{n}\b", text)]
        return [(n, {k: v for k, v in w.items() if k != "is" or n in self.numbers}) for n, w in used]

    # --- points -------------------------------------------------------------------------------------------------------

    def point(self, names: set[str], relations: list[Json]) -> Point | None:
        """Values of symbols at which these relations hold; nothing if none was found."""
        names = names | {s for r in relations for s in letters_of(r["left"], r["right"])}
        point = {name: self._one(name) for name in sorted(names)}
        for _ in range(60):
            broken = [r for r in relations if not self._holds(r, point)]
            if not broken:
                return self._pushed(point, relations)
            self._repair(broken[0], point)
        return None

    def _one(self, name: str) -> Fraction:
        if name in self.numbers:
            return self.numbers[name]
        what = self.said["symbols"].get(name, {"sign": "real", "whole": False})
        if name.startswith("dot ") and len({*name.split(" ")[1:]}) == 1:
            what = {"sign": "nonnegative", "whole": False}
        pick = self.random
        low = Fraction(what["low"]) if "low" in what else None
        high = Fraction(what["high"]) if "high" in what else None
        if what["sign"] != "real":
            low = max(low or Fraction(0), Fraction(0))
        chosen = Fraction(pick.choice([k for k in (1, 1, 2, 3, 5, 12, 80, 10**5) if k <= self.most]))
        if not what["whole"]:
            chosen = Fraction(pick.randint(1, 99), 10) * Fraction(10) ** pick.choice([-6, -2, -1, -1, 0, 0, 0, 1, 2, 5])
            if what["sign"] == "real":
                chosen *= pick.choice([-1, 1])
        if what["sign"] != "positive" and not what.get("low") and pick.random() < 0.15:
            chosen = Fraction(0)
        if low is not None and high is not None and not low <= chosen <= high:
            chosen = pick.choice([low, high, low + (high - low) * Fraction(pick.randint(1, 9), 10)])
        elif low is not None and chosen < low:
            chosen = low + (0 if what["whole"] else chosen)
        elif high is not None and chosen > high:
            chosen = high
        if what["whole"]:
            chosen = Fraction(floor(chosen))
        return Fraction(1, 100) if what["sign"] == "positive" and chosen <= 0 else chosen

    def _admits(self, name: str, chosen: Fraction) -> bool:
        what = self.said["symbols"].get(name, {"sign": "real", "whole": False})
        dot = name.startswith("dot ") and len({*name.split(" ")[1:]}) == 1
        signed = (what["sign"] == "real" and not dot) or chosen > 0 or (chosen == 0 and what["sign"] != "positive")
        ranged = all((e != "low" or chosen >= Fraction(what[e])) for e in ("low", "high") if e in what)
        ranged &= "high" not in what or chosen <= Fraction(what["high"])
        whole = not what["whole"] or (chosen.denominator == 1 and chosen <= self.most)
        return signed and ranged and whole and name not in self.numbers

    def _holds(self, relation: Json, point: Point) -> bool:
        try:
            left = slack(relation, point)
        except ZeroDivisionError:
            return False  # where a condition has no value, it is not met
        if relation["op"] == "==":
            return left == 0
        return left > 0 or (left == 0 and relation["op"] == "<=")

    def _repair(self, relation: Json, point: Point) -> None:
        """Another value for one of the symbols of a relation that is broken."""
        names = sorted(n for n in letters_of(relation["left"], relation["right"]) if n not in self.numbers)
        if not names:
            return
        name, before = (n := self.random.choice(names)), point[n]
        with suppress(ZeroDivisionError):
            zero, one = (slack(relation, point | {name: Fraction(k)}) for k in (0, 1))
            if zero != one and self._admits(name, root := zero / (zero - one)):
                point[name] = root
                if self._holds(relation, point) and self.random.random() < 0.7:
                    return
                point[name] = before
        factor = Fraction(10) ** self.random.choice([-4, -2, -1, 1, 2, 4])
        point[name] = before * factor if self._admits(name, before * factor) else self._one(name)

    def _pushed(self, point: Point, relations: list[Json]) -> Point:
        """The same, or with one symbol moved to where a relation is about to break."""
        names = sorted({s for r in relations for s in letters_of(r["left"], r["right"])} - {*self.numbers})
        if not names or self.random.random() < 0.4:
            return point
        name = self.random.choice(names)
        held, step = point[name], self.random.choice([Fraction(2), Fraction(1, 2), Fraction(8)])
        for _ in range(24):
            tried = held * step
            if self._admits(name, tried) and all(self._holds(r, point | {name: tried}) for r in relations):
                held = tried
            elif point[name].denominator == 1 == held.denominator:
                break
            else:
                step = (1 + step) / 2
        return point | {name: held}

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, step: Json, premises: list[Json], conditions: list[Json]) -> Iterator[str]:
        rules = {"clients": self._clients, "unroll": self._unroll, "average": self._average}
        search = rules.get(step["rule"], self._implied)
        self.most, found = _most(step, *premises, *conditions), 0
        for _ in range(self.points):
            try:
                wrong = search(step, premises, conditions)
            except ZeroDivisionError:
                wrong = "divides by zero at an admitted point"
            except Unknown as error:
                wrong = f"is not evaluated: {error}"
            found += wrong is not None
            if wrong:
                yield wrong
                return
        self.empty += not found

    def _implied(self, step: Json, premises: list[Json], conditions: list[Json]) -> str | None:
        """The least slack of the conclusion over the symbols in which all is linear; "" if it is not negative."""
        relations = [*premises, step]
        names = letters_of(*(r[side] for r in relations for side in ("left", "right")))
        free = self._linear(names, relations, conditions)
        fixed = [p for p in premises if not letters_of(p["left"], p["right"]) & {*free}]
        others = [p for p in premises if p not in fixed]
        point = self.point(names - {*free}, [*conditions, *fixed])
        if point is None:
            return None
        origin = point | dict.fromkeys(free, Fraction(0))
        rows = [self._row(r, origin, free) for r in [*others, step]]
        scaled = [(np.array(c, float) / top, float(b) / top) for c, b in rows for top in [_largest(c, b)]]
        (goal, least), bounds = scaled[-1], [self._range(name) for name in free]
        if not free:
            return "" if rows[-1][1] >= -EXACT * size(step, point) else f"fails at {_short(point)}"
        at_most = [(c, b) for (c, b), r in zip(scaled, others, strict=False) if r["op"] != "=="]
        equal = [(c, b) for (c, b), r in zip(scaled, others, strict=False) if r["op"] == "=="]
        if step["op"] == "==":
            goal, least = self.random.choice([(goal, least), (-goal, -least)])
        done = linprog(
            goal,
            A_ub=[-c for c, _ in at_most] or None,
            b_ub=[b for _, b in at_most] or None,
            A_eq=[c for c, _ in equal] or None,
            b_eq=[-b for _, b in equal] or None,
            bounds=bounds,
            options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        )
        if not done.success:
            return None  # no point at which the premises hold
        total = float(done.fun) + least
        terms = float(np.abs(goal) @ np.abs(done.x)) + abs(least)
        prices = sum(float(np.abs(part.marginals).sum()) for part in (done.ineqlin, done.eqlin))
        if total >= -CLOSE * max(terms, 1e-300) - 1e-8 * prices:
            return ""
        if "squares" in json.dumps(step):
            return self._with_vectors(step, premises, conditions)
        if not self._exactly(rows, [r["op"] for r in [*others, step]], free):
            return ""
        return f"slack {total:.3g} at {_short(point)}, {dict(zip(free, map(float, done.x), strict=True))}"

    def _exactly(self, rows: list[tuple[list[Fraction], Fraction]], ops: list[str], free: list[str]) -> bool:
        """Whether the slack can be negative where the premises hold, in fractions."""
        ends = [self._range(name) for name in free]
        at_most, limits = list[list[Fraction]](), list[Fraction]()
        for (c, b), op in zip(rows[:-1], ops, strict=False):
            for sign in (1, -1) if op == "==" else (1,):
                at_most.append([-sign * x for x in c])
                limits.append(sign * b)
        for j, (low, high) in enumerate(ends):
            unit = [Fraction(int(k == j)) for k in range(len(free))]
            if high < BOX:
                at_most.append(unit)
                limits.append(Fraction(high))
            if low > -BOX:
                at_most.append([-x for x in unit])
                limits.append(-Fraction(low))
        start = feasible_point(at_most, limits, len(free))
        if start is None:
            return False
        room = [b - sum(a * x for a, x in zip(row, start, strict=True)) for row, b in zip(at_most, limits, strict=True)]
        goal, least = rows[-1]
        least += sum(g * x for g, x in zip(goal, start, strict=True))
        for sign in (1, -1) if ops[-1] == "==" else (1,):
            try:
                if maximize([-sign * g for g in goal], at_most, room).value - sign * least > 0:
                    return True
            except FedboundsError:
                return True  # unbounded
        return False

    def _with_vectors(self, step: Json, premises: list[Json], conditions: list[Json]) -> str | None:
        """The slack less the premises' multiples, where inner products are those of vectors."""
        names = letters_of(*(r[side] for r in [*premises, step] for side in ("left", "right")))
        values = [m["value"] for m in step["multipliers"]]
        names |= letters_of(*values) if values else set()
        about_constants = [
            p for p in premises if not any(s.startswith("dot ") for s in letters_of(p["left"], p["right"]))
        ]
        point = self.point({n for n in names if not n.startswith("dot ")}, [*conditions, *about_constants])
        if point is None:
            return None
        dots = sorted(n for n in names if n.startswith("dot "))
        atoms = sorted({a for n in dots for a in n.split(" ")[1:]})

        def rest(at: Mapping[str, Fraction]) -> Fraction:
            return slack(step, at) - sum(f * slack(p, at) for f, p in zip(factors, premises, strict=True))

        origin = point | dict.fromkeys(dots, Fraction(0))
        factors = [value(v, origin) for v in values]
        if any(f < 0 and p["op"] != "==" for f, p in zip(factors, premises, strict=True)):
            return f"a multiplier is negative at {_short(point)}"
        constant, form = rest(origin), np.zeros((len(atoms), len(atoms)))
        for n in dots:
            i, j = (atoms.index(a) for a in n.split(" ")[1:])
            form[i, j] += float(rest(origin | {n: Fraction(1)}) - constant) / 2
            form[j, i] += float(rest(origin | {n: Fraction(1)}) - constant) / 2
        least = np.linalg.eigvalsh(form)[0] if atoms else 0.0
        bad = least < -CLOSE * float(np.abs(form).max(initial=1e-300)) or constant < 0
        return f"the form has the eigenvalue {least} and the constant {constant} at {_short(point)}" if bad else ""

    def _linear(self, names: set[str], relations: list[Json], conditions: list[Json]) -> list[str]:
        """Symbols in which all relations are linear together."""
        held = {s for c in conditions for s in letters_of(c["left"], c["right"])} | {*self.numbers}
        whole = {n for n, w in self.said["symbols"].items() if w["whole"]}
        free: list[str] = []
        for name in sorted(names - held - whole, key=lambda n: (not n.startswith("dot "), n)):
            tried = [*free, name]
            if all(degree(tree(r[side]), {*tried}) < 2 for r in relations for side in ("left", "right")):
                free = tried
        return free

    def _row(self, relation: Json, origin: Point, free: list[str]) -> tuple[list[Fraction], Fraction]:
        constant, own = slack(relation, origin), letters_of(relation["left"], relation["right"])
        ones = [slack(relation, origin | {n: Fraction(1)}) - constant if n in own else Fraction(0) for n in free]
        return ones, constant

    def _range(self, name: str) -> tuple[float, float]:
        what = self.said["symbols"].get(name, {"sign": "real"})
        square = name.startswith("dot ") and len({*name.split(" ")[1:]}) == 1
        low = max(-BOX if what["sign"] == "real" and not square else 0.0, float(Fraction(what.get("low", "-10000"))))
        return low, min(BOX, float(Fraction(what.get("high", "10000"))))

    def _clients(self, step: Json, premises: list[Json], conditions: list[Json]) -> str | None:
        """What holds for every client at sampled clients, and the sum of what it is made of by its coefficients."""
        own = step["variables"]
        texts = [step["pointwise"], step["left"], step["right"], *(t for _, t in step["sums"])]
        names = letters_of(*texts) - {*own}
        letters = dict(self.said["symbols"])
        try:
            self.said = {**self.said, "symbols": letters | {v: {"sign": "nonnegative", "whole": False} for v in own}}
            point = self.point(names | {*own}, [*conditions, *premises, *step["facts"]])
        finally:
            self.said = {**self.said, "symbols": letters}
        if point is None:
            return None
        if value(step["pointwise"], point) < 0:
            return f"pointwise fails at {_short(point)}"
        symbols = {n: sp.Symbol(n) for n in point}
        poly = sp.Poly(_value(tree(step["pointwise"]), symbols), *(symbols[v] for v in own))
        total = Fraction(0)
        for powers, coefficient in poly.terms():
            at = {symbols[n]: sp.Rational(v.numerator, v.denominator) for n, v in point.items()}
            c = sp.Rational(coefficient.subs(at))
            total += Fraction(int(c.p), int(c.q)) * value(dict((tuple(k), t) for k, t in step["sums"])[powers], point)
        return "" if total == slack(step, point) else f"another sum at {_short(point)}"

    def _unroll(self, step: Json, premises: list[Json], conditions: list[Json]) -> str | None:
        """The recursion itself, step by step."""
        texts = [step[k] for k in ("multiplier", "additive", "steps", "left", "right", "now", "after")]
        names = letters_of(*texts, *(p[side] for p in premises for side in ("left", "right")))
        about = [p for p in premises[2:] if p["op"] != "=="]
        point = self.point(names, [*conditions, *about])
        if point is None:
            return None
        m, b, n = (value(step[k], point) for k in ("multiplier", "additive", "steps"))
        same = value(premises[1]["right"], point) - m * value(step["now"], point) - b
        if same or value(premises[1]["left"], point) != value(step["after"], point) or premises[1]["op"] != "<=":
            return "another recursion"
        if value(premises[0]["left"], point) != value(step["now"], point) or value(premises[0]["right"], point):
            return "another start"
        if {step["now"], step["after"]} <= {*self.said["symbols"]}:
            return self._trajectory(step, point, [*conditions, *about])
        terms, after = letters_of(*(step[k] for k in ("multiplier", "additive", "steps"))), letters_of(step["after"])
        if terms & letters_of(step["now"]) or after <= terms:
            return "its terms hold what changes"
        u = Fraction(0)
        for _ in range(int(n)):
            u = m * u + b
        right = value(step["right"], point)
        held = n.denominator == 1 and right >= u - EXACT * u and value(step["left"], point) == value(step["now"], point)
        return "" if held else f"after {n} steps {float(u)} > {float(right)} at {_short(point)}"

    def _trajectory(self, step: Json, point: Point, relations: list[Json]) -> str | None:
        """Values from 0 on, each of which keeps the recursion, and the bound at the last one."""
        now, after = step["now"], step["after"]
        values, rule = [Fraction(0)], {"left": after, "right": f"({step['multiplier']})*{now} + {step['additive']}"}
        while len(values) < value(step["steps"], point) + 2:
            at = point | {now: values[-1]}
            top = value(rule["right"], at | {after: Fraction(0)})
            tried = [top * Fraction(k, 8) for k in (32, 16, 12, 8, 7, 6, 5, 4, 3, 2, 1, 0)]
            kept = [
                v for v in tried if all(self._holds(r, at | {after: v}) for r in [{**rule, "op": "<="}, *relations])
            ]
            if not (kept and self._admits(now, values[-1]) and self._admits(after, kept[0])):
                return None
            values.append(kept[0])
        at = point | {now: values[-2], after: values[-1]}
        held = slack(step, at) >= -EXACT * size(step, at)
        return "" if held else f"{now} = {', '.join(map(str, values))[:300]} at {_short(at)}"

    def _average(self, step: Json, premises: list[Json], conditions: list[Json]) -> str | None:
        """Both sides are linear in what differs, and it stands there by its mean."""
        one = premises[0]
        means = [(next(iter(letters_of(m["of"]))), m) for m in step["means"]]
        texts = [step["left"], step["right"], one["left"], one["right"], *(m["is"] for _, m in means)]
        point = self.point(letters_of(*texts) | {n for n, _ in means}, conditions)
        if point is None:
            return None
        differing = {n: Fraction(0) for n, _ in means}
        for side in ("left", "right"):
            base, mean, there = value(one[side], point | differing), Fraction(0), Fraction(0)
            for name, m in means:
                slope = value(one[side], point | differing | {name: Fraction(1)}) - base
                mean += slope * value(m["is"], point)
                there += slope * value(m["of"], point)
            if base + there != value(one[side], point):
                return f"the {side} side is not linear at {_short(point)}"
            if base + mean != value(step[side], point):
                return f"another mean of the {side} side at {_short(point)}"
        for name, m in means:
            rate = slack(one, point | differing | {name: Fraction(1)}) - slack(one, point | differing)
            if "slope" in m and rate < 0:
                return f"the mean of {name} is only bounded above, at {_short(point)}"
        return ""

    def _statement(self) -> Iterator[str]:
        """The statement is the last step, and its conditions are enough for those of the steps."""
        end, last = self.said["statement"], self.said["steps"][-1]
        conditions = [self.said["conditions"][c] for c in end["conditions"]]
        used = {c for step in self.said["steps"] for c in step.get("conditions", [])} - {*end["conditions"]}
        followed = [(c, self.said["conditions"][c]) for c in sorted(used)]
        new = {next(iter(letters_of(part["of"]))): part["is"] for part in end["rename"]}
        yield from self._reused(end, conditions)
        texts = [last["left"], last["right"], end["left"], end["right"]]
        names = letters_of(*texts, *(c[side] for _, c in followed for side in ("left", "right"))) - {*new}
        self.most = _most(last, *self.said["conditions"].values())
        for _ in range(self.points):
            point = self.point(names | {*new.values()}, conditions)
            if point is None:
                continue
            renamed = point | {of: point[to] for of, to in new.items()}
            try:
                for name, condition in followed:
                    if not self._holds(condition, point):
                        yield f"{name} does not follow at {_short(point)}"
                        return
                for side in ("left", "right"):
                    if value(end[side], point) != value(last[side], renamed):
                        yield f"another {side} side than the last step's at {_short(point)}"
                        return
            except KeyError as error:
                yield f"it holds {error}, which is renamed"
                return
            except ZeroDivisionError:
                yield f"divides by zero at {_short(point)}"
                return

    def _reused(self, end: Json, conditions: list[Json]) -> Iterator[str]:
        """Where all steps hold, and the statement does not, as a symbol of it stands for something else in steps."""
        shown = [s for s in self.said["steps"] if "at" not in s]
        used = letters_of(*(s[side] for s in shown for side in ("left", "right")))
        if not used & {part["is"] for part in end["rename"]}:
            return
        sides = {side: end[side] for side in ("left", "right")}
        for part in end["rename"]:
            if part["is"] not in used:
                sides = {k: re.sub(rf"\b{part['is']}\b", part["of"], text) for k, text in sides.items()}
        self.most = _most(*shown, *conditions)
        for _ in range(self.points):
            with suppress(ZeroDivisionError):
                if wrong := self._implied({"rule": "", "op": end["op"], **sides}, shown, conditions):
                    yield wrong
                    return


def feasible_point(rows: list[list[Fraction]], limits: list[Fraction], n: int) -> tuple[Fraction, ...] | None:
    """A point x with A x <= b, in fractions; nothing where there is none.

    Rows that the origin breaks are met in full at s = 1: the largest s <= 1 with A x + s max(-b, 0) <= max(b, 0) is
    sought.
    """
    zero = Fraction(0)
    relaxed = [[*row, max(-b, zero)] for row, b in zip(rows, limits, strict=True)]
    relaxed.append([zero] * n + [Fraction(1)])
    found = maximize([zero] * n + [Fraction(1)], relaxed, [*(max(b, zero) for b in limits), Fraction(1)], 1)
    return found.point[:n] if found.value == 1 else None


def _most(*relations: Json) -> int:
    """How large whole symbols are where they may be exponents, and where they are not."""
    powers = any(re.search(r"\*\*[A-Za-z(]", r[side]) for r in relations for side in ("left", "right"))
    return 12 if powers else 10**5


def _relation(said: Json) -> list[str]:
    return [said["left"], said["op"], said["right"]]


def _largest(coefficients: list[Fraction], constant: Fraction) -> float:
    return max(map(abs, (*(float(c) for c in coefficients), float(constant)))) or 1.0


def _short(point: Point) -> str:
    return ", ".join(f"{n} = {v}" for n, v in sorted(point.items()))[:300]
