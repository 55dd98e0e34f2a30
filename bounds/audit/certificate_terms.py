"""The words of a certificate: how symbols, numbers and floors are written, and why what is said of them holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.nonnegative import same
from fedbounds.bounds.audit.signs import NoReason, Reason, plainly, reason
from fedbounds.bounds.audit.vectors import factors_of_product, gram_symbols
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.expressions import parts
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.symbols import Domain

Json = dict[str, Any]


class TermWriter:
    """Writes expressions and reasons, collecting what they speak of.

    Args:
        domains: of the symbols that have one.
        digits: to how many decimal digits named numbers are enclosed.
    """

    def __init__(self, domains: Mapping[sp.Symbol, Domain], digits: int) -> None:
        self.domains, self.digits = dict(domains), digits
        self.names: dict[sp.Symbol, str] = {}
        self.numbers: dict[NamedNumber, sp.Symbol] = {}
        self.floors: dict[sp.Expr, sp.Symbol] = {}
        self.least: dict[sp.Expr, int] = {}
        self.strict: set[str] = set()
        self.divided: list[sp.Expr] = []

    def text(self, e: sp.Expr) -> str:
        """An expression in the checker's grammar."""
        if isinstance(e, sp.Symbol):
            return self._name(e)
        if isinstance(e, NamedNumber):
            self.numbers.setdefault(e, sp.Symbol(str(e), positive=True))
            return str(e)
        if isinstance(e, sp.Rational):
            return str(e.p) if e.q == 1 else f"({e.p}/{e.q})"
        if isinstance(e, sp.Add):
            return self._sum([self.text(a) for a in e.args])
        if isinstance(e, sp.Mul):
            return self._product(e)
        if isinstance(e, sp.Pow):
            if e.exp.is_number and e.exp < 0:
                return self._product(e)
            return f"{self._factor(e.base)}**{self._factor(e.exp)}"
        if isinstance(e, sp.floor):
            return f"floor({self.text(e.args[0])})"
        raise FedboundsError(f"a certificate has no word for {type(e).__name__} in {e}")

    def _product(self, e: sp.Expr) -> str:
        """A product as one fraction."""
        above, below = sp.fraction(e)
        divided = ""
        for part in sp.Mul.make_args(below) if below != 1 else ():
            base, power = part.as_base_exp()
            whole = int(power) if power.is_Integer and not base.is_Symbol else 1
            self.divided += [base]
            divided += f"/{self._factor(base if whole > 1 else part, True)}" * whole  # each is shown not to be 0
        if divided:
            return f"{self._factor(above)}{divided}"
        if e.args[0] == -1:
            return f"-{self._factor(-e)}"
        return "*".join(map(self._factor, parts(e)))

    def _factor(self, e: sp.Expr, whole: bool = False) -> str:
        """An expression in brackets where another sign beside it would tear it apart."""
        text = self.text(e)
        alone = e.is_Symbol or isinstance(e, NamedNumber | sp.floor) or e.is_Add or (e.is_Integer and e >= 0)
        return text if alone or (e.is_Rational and not e.is_Integer) or (e.is_Pow and not whole) else f"({text})"

    def _sum(self, terms: list[str]) -> str:
        """A sum in pieces, so that it is no deep tree."""
        if len(terms) > 100:
            return self._sum([self._sum(terms[k : k + 100]) for k in range(0, len(terms), 100)])
        return f"({' + '.join(terms)})"

    def _name(self, symbol: sp.Symbol) -> str:
        for inside, stands in self.floors.items():
            if stands == symbol:
                return f"floor({self.text(inside)})"
        if symbol in self.names:
            return self.names[symbol]
        pair = factors_of_product(symbol.name)
        if symbol.name.startswith("slack"):
            return symbol.name
        if pair:
            name = f"dot({', '.join(vector_name(a) for a in pair)})"
        elif symbol in self.numbers.values():
            return symbol.name
        else:
            taken = set(self.names.values())
            plain = symbol.name.isidentifier() and symbol.name not in ("dot", "floor", "lambda")
            name = symbol.name if plain else f"m{len(self.names)}"
            while name in taken:
                name += "_"
        self.names[symbol] = name
        return name

    def declared(self, symbol: sp.Symbol) -> Json:
        """The sign and the domain of a symbol."""
        domain = self.domains.get(symbol)
        found: Json = {
            "sign": "positive" if symbol.is_positive else "nonnegative" if symbol.is_nonnegative else "real",
            "whole": bool(symbol.is_integer),
            "is": symbol.name,
        }
        if symbol.is_integer and symbol.is_positive:
            found["low"] = "1"
        elif domain is not None and domain.low > 0:
            found["low"] = str(sp.Rational(domain.low))
        if domain is not None and isfinite(domain.high):
            found["high"] = str(sp.Rational(domain.high))
        return found

    def _bounds(self, number: NamedNumber) -> tuple[sp.Rational, sp.Rational]:
        """A number rounded down and up."""
        scale = 10**self.digits
        low = int(sp.floor(number.exact * scale))
        return sp.Rational(low, scale), sp.Rational(low + 1, scale)

    def enclosure(self, number: NamedNumber) -> Json:
        """A number and two fractions around it."""
        low, high = self._bounds(number)
        return {"is": str(number.exact), "low": str(low), "high": str(high)}

    def plain(self, e: sp.Expr) -> sp.Expr:
        """The expression with symbols for named numbers and floors."""
        for number in sorted(e.atoms(NamedNumber), key=str):
            self.numbers.setdefault(number, sp.Symbol(str(number), positive=True))
        e = e.xreplace(dict(self.numbers))
        return e.xreplace({sp.floor(inside): stands for inside, stands in self.floors.items()})

    def facts(self, relations: Sequence[Relation], names: Sequence[str]) -> dict[str, sp.Expr]:
        """What is not negative, by the checker's names."""
        found: dict[str, sp.Expr] = {}
        for relation, name in zip(relations, names, strict=True):
            found[name] = self.plain(relation.slack)
            self.strict |= {name} if relation.strict else set()
            if relation.op == "==":
                found[f"{name} reversed"] = -found[name]
        return found

    def _around(self, e: sp.Expr, facts: Mapping[str, sp.Expr]) -> dict[str, sp.Expr]:
        """The facts, and those about the domains of all symbols."""
        found = dict(facts)
        symbols = {s for part in (e, *facts.values()) for s in part.free_symbols}
        numbers = {stands: number for number, stands in self.numbers.items()}
        for symbol in sorted(symbols - set(numbers) - set(self.floors.values()), key=str):
            said = self.declared(symbol)
            if "low" in said:
                found[f"low {self._name(symbol)}"] = symbol - sp.Rational(said["low"])
            if "high" in said:
                found[f"high {self._name(symbol)}"] = sp.Rational(said["high"]) - symbol
        for symbol in symbols & set(numbers):
            low, high = self._bounds(numbers[symbol])
            found |= {f"low {symbol}": symbol - low, f"high {symbol}": high - symbol}
        return found

    def reason(self, e: sp.Expr, facts: Mapping[str, sp.Expr], strictly: bool = False) -> Reason:
        """Why an expression is not negative, where these facts and the domains hold."""
        e = self.plain(e)
        return reason(e, self._around(e, facts), self.text, strictly, self.strict)

    def nonnegative(self, e: sp.Expr, facts: Mapping[str, sp.Expr]) -> Reason:
        """The same, or why it is a sum of squares."""
        pairs = gram_symbols(e)
        try:
            return self.reason(e, facts)
        except NoReason:
            if not pairs:
                raise
        return {"squares": list(self._squares(e, facts))}

    def _squares(self, e: sp.Expr, facts: Mapping[str, sp.Expr]) -> Iterator[Json]:
        """Squares of vectors with their weights: M = L D L^T, pivot by pivot."""
        pairs = gram_symbols(e)
        if not same(rest := e.xreplace(dict.fromkeys(pairs, sp.S.Zero)), sp.S.Zero):
            raise NoReason(f"no certificate was found that {str(rest)[:120]}... is not negative")
        atoms = sorted({name for pair in pairs.values() for name in pair})
        left = {tuple(sorted(pair)): sp.diff(sp.expand(e), symbol) for symbol, pair in pairs.items()}
        for first in atoms:
            pivot = sp.cancel(left.get((first, first), sp.S.Zero))
            row = {a: left.get(tuple(sorted((first, a))), sp.S.Zero) / 2 for a in atoms if a > first}
            row = {a: c for a, c in ((a, sp.cancel(c)) for a, c in row.items()) if c != 0}
            if pivot == 0:
                if row:
                    raise NoReason(f"the pivot of {first} is 0 but its row is not")
                continue
            vector = {first: sp.S.One} | {a: sp.cancel(c / pivot) for a, c in row.items()}
            yield {
                "weight": self.text(pivot),
                "because": self.reason(pivot, facts),
                "of": {vector_name(a): self.text(c) for a, c in vector.items()},
            }
            for a, c in row.items():
                for b, d in row.items():
                    if a <= b:
                        both = (a, b)
                        left[both] = sp.cancel(left.get(both, sp.S.Zero) - (1 if a == b else 2) * c * d / pivot)

    def divisors(self, facts: Mapping[str, sp.Expr]) -> list[Json]:
        """Why whatever was divided by since the last call is not zero, where that is not plain."""
        found: dict[sp.Expr, Json] = {}
        while self.divided:
            base = self.plain(self.divided.pop())
            if base in found or base.is_Symbol or base.is_number or plainly(sp.expand(base), True):
                continue
            try:
                found[base] = {"is": self.text(base), "because": self.reason(base, facts, strictly=True)}
            except NoReason:
                found[base] = {"is": self.text(-base), "because": self.reason(-base, facts, strictly=True)}
        return list(found.values())

    def relation(self, relation: Relation) -> Json:
        """Both sides and the operator."""
        op = "<" if relation.strict else relation.op
        return {"left": self.text(relation.left), "op": op, "right": self.text(relation.right)}

    def reach(self, relations: Sequence[Relation], usable: Sequence[tuple[str, Relation]]) -> list[Json]:
        """The floors that occur, with the least whole number that their arguments reach."""
        found: list[Json] = []
        inside = {f.args[0] for r in relations for side in (r.left, r.right) for f in side.atoms(sp.floor)}
        self.floors = {}
        facts = self.facts(
            [r for _, r in usable if not r.slack.has(sp.floor)], [n for n, r in usable if not r.slack.has(sp.floor)]
        )
        self.least = {}
        for argument in sorted(inside, key=str):
            for least in (2, 1, 0):
                try:
                    why = self.reason(argument - least, facts)
                except NoReason:
                    continue
                found.append({"of": self.text(argument), "least": str(least), "because": why})
                symbol = sp.Symbol(f"[{argument}]", integer=True, positive=least > 0 or None, nonnegative=True)
                self.floors[argument], self.least[argument] = symbol, least
                break
        return found

    def floor_facts(self) -> dict[str, sp.Expr]:
        """What is known of the floors that `reach` has found."""
        facts: dict[str, sp.Expr] = {}
        for argument, symbol in self.floors.items():
            name = self.text(argument)
            facts |= {
                f"floor-below {name}": argument - symbol,
                f"floor-above {name}": symbol + 1 - argument,
                f"floor-least {name}": symbol - self.least[argument],
            }
        return facts


def vector_name(name: str) -> str:
    """The name of a vector as the checker reads it."""
    return name if name.isidentifier() else "v_" + "".join(c if c.isalnum() else "_" for c in name)
