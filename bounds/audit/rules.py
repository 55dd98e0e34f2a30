"""Rules of inference that trust nothing: linear combinations, Gram matrices, sums over clients, recurrences,
telescopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, never_zero, prove, reduce_expression, same, says
from fedbounds.bounds.audit.proof_step_checker import ProofSetting, about_constants
from fedbounds.bounds.audit.vectors import factors_of_product, gram_symbols, opaque


@dataclass(frozen=True)
class Combine:
    r"""The conclusion is a combination of the premises: slack = sum_k m_k slack_k + rest with m_k >= 0, rest >= 0.

    Without premises it is a plain inequality, with equal sides an identity. A relation among the premises that is
    meant as a fact about constants only gets the multiplier 0.

    Args:
        multipliers: one for each premise that is a relation, in order.
    """

    multipliers: tuple[sp.Expr | int, ...] = ()
    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The residual is proved nonnegative, and so are the multipliers of inequalities."""
        if len(self.multipliers) != len(premises):
            return ProofFinding(
                False, "combination", f"{len(self.multipliers)} multipliers for {len(premises)} premises"
            )
        known = [*facts, *(p for p in premises if about_constants(p))]
        residual = conclusion.slack
        for multiplier, premise in zip(self.multipliers, premises, strict=True):
            factor = multiplier * sp.S.One
            if not never_zero(below := sp.fraction(reduce_expression(factor))[1], known):
                return ProofFinding(
                    False, "combination", f"the multiplier of {premise} divides by {below}, which may be 0"
                )
            if premise.op == "<=" and not factor.is_nonnegative:
                found = prove(factor, known)
                if not found.holds and gram_symbols(factor):
                    found = nonnegative_form(factor, known)
                if not found.holds:
                    return ProofFinding(False, "combination", f"the multiplier {factor} of {premise}: {found.evidence}")
            residual -= factor * premise.slack
        residual = reduce_expression(residual)
        unequal = any(p.op == "<=" and m != 0 for m, p in zip(self.multipliers, premises, strict=True))
        if conclusion.op == "==" and unequal:
            return ProofFinding(False, "combination", "an equality cannot rest on an inequality")
        return self.verify(residual, conclusion, premises, known, setting)

    def verify(
        self,
        residual: sp.Expr,
        conclusion: Relation,
        premises: Relations,
        known: Relations,
        setting: ProofSetting,
    ) -> ProofFinding:
        """Whether what the premises leave is zero, or nonnegative."""
        if conclusion.op == "==":
            zero = same(residual, sp.S.Zero)
            return ProofFinding(zero, "identity", "both sides are equal" if zero else f"the sides differ by {residual}")
        found = prove(residual, known)
        if not found.holds and gram_symbols(residual):
            found = nonnegative_form(residual, known)
        if not found.holds and premises:
            found = ProofFinding(False, found.method, f"the premises leave {residual} >= 0 to show: {found.evidence}")
        used = sum(1 for m in self.multipliers if m != 0)
        return ProofFinding(
            found.holds, f"combination of {used}; {found.method}" if used else found.method, found.evidence
        )


@dataclass(frozen=True)
class Gram:
    r"""slack = sum over atoms of M_{ab} <a, b> with M positive semidefinite, hence nonnegative for all vectors.

    Equalities among the premises are used first. M = L D L^T is formed symbolically; every pivot in D is proved
    nonnegative, and the row of a zero pivot must vanish.
    """

    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The pivots are proved nonnegative."""
        slack = sp.expand(conclusion.slack)
        for premise in premises:
            if premise.op != "==":
                return ProofFinding(False, "Gram matrix", f"{premise} is not an equality")
            symbols = sorted(gram_symbols(premise.slack), key=str)
            free = [s for s in symbols if not _is_square(s)] or symbols
            solved = sp.solve(premise.slack, free[-1])
            if len(solved) != 1 or not never_zero(sp.diff(premise.slack, free[-1]), facts):
                return ProofFinding(False, "Gram matrix", f"{premise} cannot be solved for an inner product")
            slack = sp.expand(slack.xreplace({free[-1]: solved[0]}))
        if conclusion.op == "==":
            zero = same(slack, sp.S.Zero)
            return ProofFinding(zero, "identity", "both sides are equal" if zero else f"the sides differ by {slack}")
        return nonnegative_form(slack, facts)


def nonnegative_form(expression: sp.Expr, facts: Relations) -> ProofFinding:
    """Whether a linear expression in inner products is nonnegative for all vectors."""
    pairs = gram_symbols(expression)
    atoms = sorted({name for pair in pairs.values() for name in pair})
    rest = expression.xreplace({s: sp.S.Zero for s in pairs})
    if not same(rest, sp.S.Zero):
        return ProofFinding(False, "Gram matrix", f"{rest} is no inner product")
    matrix = sp.zeros(len(atoms), len(atoms))
    for symbol, (a, b) in pairs.items():
        coefficient = sp.diff(expression, symbol)
        i, j = atoms.index(a), atoms.index(b)
        matrix[i, j] += coefficient / 2
        matrix[j, i] += coefficient / 2
    found = _semidefinite(matrix, atoms, facts)
    common = sp.S.One if found.holds else sp.gcd_list([entry for entry in matrix if entry != 0])
    if common.free_symbols and prove(common, facts).holds:  # it may be 0 where a pivot must not
        return _semidefinite(matrix / common, atoms, facts)
    return found


def _is_square(symbol: sp.Symbol) -> bool:
    pair = factors_of_product(symbol.name)
    return pair is not None and pair[0] == pair[1]


def _semidefinite(matrix: sp.Matrix, atoms: Sequence[str], facts: Relations) -> ProofFinding:
    current, positive, zero = matrix.applyfunc(reduce_expression), 0, 0
    for k in range(len(atoms)):
        pivot = current[k, k]
        if pivot == 0:
            if any(current[k, j] != 0 for j in range(k + 1, len(atoms))):
                return ProofFinding(False, "Gram matrix", f"the pivot of {atoms[k]} is 0 but its row is not")
            zero += 1
            continue
        found = prove(pivot, facts)
        if not found.holds:
            return ProofFinding(False, "Gram matrix", f"the pivot of {atoms[k]} is {pivot}: {found.evidence}")
        positive += 1
        if any(current[k, j] != 0 for j in range(k + 1, len(atoms))) and not never_zero(pivot, facts):
            return ProofFinding(
                False, "Gram matrix", f"the pivot of {atoms[k]} is {pivot}, which may be 0, but its row is not"
            )
        for i in range(k + 1, len(atoms)):
            factor = current[i, k] / pivot
            for j in range(k + 1, len(atoms)):
                current[i, j] = reduce_expression(current[i, j] - factor * current[k, j])
    return ProofFinding(
        True, "Gram matrix", f"{positive} nonnegative pivots and {zero} zero ones, for every set of vectors"
    )


@dataclass(frozen=True)
class Stated:
    """A condition among the premises, as it stands."""

    axiom: str = ""
    needs: tuple[str, ...] = ()
    equalities: ClassVar[bool] = True

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Equal sides and operator."""
        found = any(
            fact.op == conclusion.op and same(fact.left, conclusion.left) and same(fact.right, conclusion.right)
            for fact in facts
        )
        return ProofFinding(found, "condition", "one of them" if found else "no condition among the premises says so")


@dataclass(frozen=True)
class Unfolded(Combine):
    """A combination in which some of the setting's symbols stand for what they stand for."""

    def verify(
        self,
        residual: sp.Expr,
        conclusion: Relation,
        premises: Relations,
        known: Relations,
        setting: ProofSetting,
    ) -> ProofFinding:
        """Combine, with one layer of symbols after the other written out; the signs of these symbols are proved."""
        found = ProofFinding(False, "abbreviation", "no symbol of the setting is left over")
        while layer := outermost(residual, setting.symbols):
            for symbol, value in layer.items():
                if symbol.is_nonnegative and not (sign := _nonnegative(value, known)).holds:
                    return ProofFinding(
                        False, "abbreviation", f"{symbol} is not negative, {value} may be: {sign.evidence}"
                    )
                if symbol.is_positive and not (value.is_positive or never_zero(value, known)):
                    return ProofFinding(False, "abbreviation", f"{symbol} is positive, {value} may be 0")
            residual = residual.xreplace(layer)
            for rest in (reduce_expression(residual), residual):  # a condition may hold a maximum as it stands
                found = super().verify(rest, conclusion, premises, known, setting)
                if found.holds:
                    return found
        return found


def outermost(expression: sp.Expr, symbols: Mapping[sp.Symbol, sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
    """The symbols of an expression that no other symbol of it stands for."""
    used = {symbol: symbols[symbol] for symbol in expression.free_symbols if symbol in symbols}
    inside = {symbol for other in used.values() for symbol in _symbols_in(other, symbols)}
    return {symbol: value for symbol, value in used.items() if symbol not in inside}


def _symbols_in(value: sp.Expr, symbols: Mapping[sp.Symbol, sp.Expr]) -> set[sp.Symbol]:
    """The symbols that a value holds, also those that its symbols stand for."""
    own = {symbol for symbol in value.free_symbols if symbol in symbols}
    return own.union(*(_symbols_in(symbols[symbol], symbols) for symbol in own))


def expand_definitions(relation: Relation, symbols: Mapping[sp.Symbol, sp.Expr]) -> Relation:
    """The relation with every symbol replaced by what it stands for, which may hold symbols itself."""
    left, right = relation.left, relation.right
    while symbols and (left.free_symbols | right.free_symbols) & set(symbols):
        left, right = (side.xreplace(symbols) for side in (left, right))
    return Relation(left, right, relation.op, relation.strict)


def _nonnegative(expression: sp.Expr, facts: Relations) -> ProofFinding:
    found = prove(expression, facts)
    return nonnegative_form(sp.expand(expression), facts) if not found.holds and gram_symbols(expression) else found


@dataclass(frozen=True)
class ClientByClient:
    r"""A polynomial inequality for one client, summed: sum_n p(q_n, s_n) >= 0 term by term.

    Args:
        pointwise: p, nonnegative for every client.
        facts: what is known of one client (0 <= q <= 1, s <= sigma^2).
        sums: the sum over clients of each monomial of p, e.g. q -> 1, q^2 -> S_t, q s -> A, q^2 s -> B.
        variables: the client's symbols, in the order of the monomials.
    """

    pointwise: sp.Expr
    facts: tuple[Relation, ...]
    variables: tuple[sp.Symbol, ...]
    sums: tuple[tuple[tuple[int, ...], sp.Expr], ...]
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "what the sums stand for"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The pointwise inequality is proved, and its sum is the conclusion's slack."""
        found = prove(self.pointwise, self.facts)
        if not found.holds:
            return found
        sums: Mapping[tuple[int, ...], sp.Expr] = dict(self.sums)
        total = sp.S.Zero
        for powers, coefficient in sp.Poly(self.pointwise, *self.variables).terms():
            if powers not in sums:
                return ProofFinding(False, "sum over clients", f"no sum is given for the monomial with powers {powers}")
            total += coefficient * sums[powers]
        if not same(total, conclusion.slack):
            return ProofFinding(False, "sum over clients", f"the sum is {total}, the slack is {conclusion.slack}")
        return ProofFinding(True, "sum over clients", f"for each client: {found.method}, {found.evidence}")


@dataclass(frozen=True)
class Unroll:
    r"""From u_{k+1} <= m u_k + b and u_0 = 0, with m >= 1 and b >= 0: u_k <= b (m^n - 1)/(m - 1) for all k <= n.

    The premises are the start, the recursion, and facts about the constants.

    Args:
        now, after: the sequence at k and at k + 1, as they stand in the premise.
        steps: n.
        varying: symbols that change from step to step; neither m nor b may hold one, nor a vector that is not still.
    """

    now: sp.Expr
    after: sp.Expr
    steps: sp.Expr
    varying: tuple[sp.Symbol, ...] = ()
    axiom: str = ""
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "the number of steps"

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Induction: the multiplier is shown to be at least 1, the additive term nonnegative."""
        if len(premises) < 2:
            return ProofFinding(False, "induction", "the first premises must be the start u_0 = 0 and the recursion")
        start, recursion, *others = premises
        if not (same(start.left, self.now) and start.right == 0 and start.op == "=="):
            return ProofFinding(False, "induction", f"{start} does not start the sequence at 0")
        if not same(recursion.left, self.after):
            return ProofFinding(False, "induction", f"{recursion} does not bound the next value")
        multiplier, additive = _linear_in(recursion.right, self.now)
        changing = [s for s in self.varying if multiplier.has(s) or additive.has(s)]
        changing += varying_products(multiplier + additive, setting)
        if changing:
            names = ", ".join(map(str, changing))
            return ProofFinding(False, "induction", f"{names} changes between the steps, but stands in the recursion")
        for expression, name in ((multiplier - 1, "multiplier less 1"), (additive, "additive term")):
            found = prove(expression, [*facts, *others])
            if not found.holds:
                return ProofFinding(False, "induction", f"the {name}: {found.evidence}")
        expected = additive * power_sum(multiplier, self.steps)
        if not (same(conclusion.left, self.now) and same(conclusion.right, expected)):
            return ProofFinding(False, "induction", f"the recursion unrolls to {expected}")
        return ProofFinding(True, "induction", "the multiplier is at least 1 and the additive term nonnegative")


def varying_products(expression: sp.Expr, setting: ProofSetting) -> list[sp.Symbol]:
    """The inner products of vectors that change from round to round or from step to step."""
    still = {name for name, atom in setting.atoms.items() if atom.still}
    return [symbol for symbol, pair in gram_symbols(expression).items() if not set(pair) <= still]


def power_sum(multiplier: sp.Expr, steps: sp.Expr) -> sp.Expr:
    """1 + m + ... + m^(n-1)."""
    return (multiplier**steps - 1) / (multiplier - 1)


def _linear_in(expression: sp.Expr, part: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """(m, b) with expression = m part + b, where part is a polynomial in Gram symbols that occur nowhere else."""
    expanded = sp.expand(expression)
    symbols = sorted(gram_symbols(part), key=str)
    symbol = next(s for s in symbols if _is_square(s))
    multiplier = reduce_expression(sp.diff(expanded, symbol) / sp.diff(part, symbol))
    return multiplier, reduce_expression(expanded - multiplier * part)


@dataclass(frozen=True)
class Telescope:
    r"""Averaging over T rounds or windows: if $a_t\le c(f_t-f_{t+1})+\sum_jc_jw_{j,t}+r$ in each, the average of the
    a_t, and hence the least, is at most $c\frac FT+\sum_jc_j\bar w_j+r$.

    Args:
        decrease: the symbol of f_t - f_{t+1}.
        gap: F, at least the sum of all decreases.
        rounds: T.
        average: the symbol of the average of the a_t, or of the least of them.
        of: a_t, as the premise bounds it.
        means: what else differs between the rounds, each with the symbol of its average.
        below: the assumption that makes F finite.
        varying: symbols that differ between the rounds and have no average here; the bound may not hold one.
    """

    decrease: sp.Symbol
    gap: sp.Expr
    rounds: sp.Expr
    average: sp.Symbol
    of: sp.Expr
    means: tuple[tuple[sp.Symbol, sp.Symbol], ...] = ()
    below: str = "bounded-below"
    varying: tuple[sp.Symbol, ...] = ()
    axiom: str = "the objective is at least its infimum, so that the decreases sum to at most the initial gap"
    gives: ClassVar[str] = "the rounds averaged over"

    @property
    def needs(self) -> tuple[str, ...]:
        """That the objective is bounded below."""
        return (self.below,)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The average decrease for that of one round, and every mean for what it is the mean of."""
        averages = {self.decrease: self.gap / self.rounds, **dict(self.means)}
        return Relation(self.average, premises[0].right.xreplace(averages))

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Linear in what differs between the rounds, with constant coefficients; the decrease's is nonnegative."""
        method = "telescope"
        if not premises:
            return ProofFinding(False, method, "the first premise must be the inequality of one round")
        if premises[0].op != "<=" or not same(premises[0].left, self.of):
            return ProofFinding(False, method, f"{premises[0]} does not bound {self.of}")
        if not self.below:
            return ProofFinding(False, method, "no assumption is named by which the objective is bounded below")
        right, varying = sp.expand(premises[0].right), (self.decrease, *(symbol for symbol, _ in self.means))
        others = right.free_symbols - set(varying)
        loose = [s for s in others if s in self.varying or opaque(s)]
        if loose:
            return ProofFinding(False, method, f"{', '.join(sorted(map(str, loose)))} differs between the rounds")
        slopes = {s: sp.diff(right, s) for s in varying}
        known = [*facts, *(p for p in premises[1:] if about_constants(p))]
        if any(slope.has(s) for slope in slopes.values() for s in varying):
            return ProofFinding(False, method, f"{premises[0]} is not linear in what differs between the rounds")
        for expression, what in (
            (self.rounds - 1, "at least one round"),
            (slopes[self.decrease], "the decrease's factor"),
        ):
            found = prove(expression, known)
            if not found.holds:
                return ProofFinding(False, method, f"{what}: {found.evidence}")
        wanted = self.relation(setting, premises)
        if not says(conclusion, wanted):
            return ProofFinding(False, method, f"the average is at most {wanted.right}")
        return ProofFinding(
            True, method, "the coefficients are the same in every round, that of the decrease is nonnegative"
        )


@dataclass(frozen=True)
class Everywhere:
    """A bound that holds in every round and local step holds for the average, and for the supremum, over them.

    Args:
        varying: symbols that differ between rounds; the bound may not hold one.
        of, is_: what is averaged, and its average or supremum, where that has a symbol of its own.
    """

    varying: tuple[sp.Symbol, ...] = ()
    of: sp.Expr | None = None
    is_: sp.Expr | None = None
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @property
    def gives(self) -> str:
        """What the symbol of the average or supremum stands for, where it has one."""
        return "" if self.is_ is None else "what is averaged, or the largest of what"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The premise, of the average or supremum."""
        return Relation(premises[0].left if self.is_ is None else self.is_, premises[0].right)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The relation is carried over as it stands."""
        if len(premises) != 1 or premises[0].op != "<=":
            return ProofFinding(False, "average", "one premise, a bound that holds everywhere")
        premise = premises[0]
        changing = [s for s in self.varying if premise.right.has(s)] + varying_products(premise.right, setting)
        if changing:
            return ProofFinding(False, "average", f"{', '.join(map(str, changing))} differs between the rounds")
        if self.of is not None and not same(premise.left, self.of):
            return ProofFinding(False, "average", f"{premise} does not bound {self.of}")
        wanted = self.relation(setting, premises)
        equal = same(conclusion.left, wanted.left) and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "average", "at most the largest value" if equal else f"not {premise}")
