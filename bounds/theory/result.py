"""The heart: a Result is one numbered statement of a paper; a Form is one way of writing its right-hand side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast

import sympy as sp

from fedbounds.bounds.display.tables import Shown, Table
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.form_selection import select_form
from fedbounds.bounds.theory.measures import Measure
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.printing import NamedParts, as_printed, latex, name_shared_parts, plain
from fedbounds.bounds.theory.symbols import Derived, Notation, dependencies

ResultKind = Literal["theorem", "corollary", "proposition", "lemma", "remark"]
Operator = Literal["<=", "<", ">=", ">", "=="]
OPERATORS = {"<=": r"\le", ">=": r"\ge", "==": "="}
BLACKBOARD = re.compile(r"\\mathbb\s*\{?\s*([A-Z])\}?")  # which amsmath does not have


@dataclass(frozen=True)
class Term:
    r"""One summand of a bound, named for what it means.

    Args:
        name: "initial gap", "client drift", "participation", "gradient noise", ...
        expression: its value; sums are never merged across terms.

    Example:
        >>> L, F, T = sp.symbols("L F T", positive=True)
        >>> Term("initial gap", 8 * L * F / T).expression
        8*F*L/T
    """

    name: str
    expression: sp.Expr


@dataclass(frozen=True)
class Condition:
    r"""A hypothesis on the constants, kept as two sides and an operator so that both can be shown.

    Args:
        left, op, right: the relation, e.g. gamma <= 1/(12 L I P).
        why: where the proof uses it.
        limits: the constant it caps or floors; the extreme admissible value of that constant is reported.
        legal: whether it says what the symbols mean (P of n clients, weights that sum to one) rather than what the
            result needs; where it fails, the result is not evaluated.

    Example:
        >>> gamma, eta, L = sp.symbols("gamma eta L", positive=True)
        >>> Condition(gamma * eta, "<=", 1 / (2 * L), "the descent step", limits=gamma).extreme
        1/(2*L*eta)
    """

    left: sp.Expr
    op: Operator
    right: sp.Expr
    why: str
    limits: sp.Symbol | None = None
    legal: bool = False

    @property
    def extreme(self) -> sp.Expr | None:
        """The value of the limited constant at which both sides are equal; None where it has no closed form here."""
        return self._solved[0]

    @property
    def caps(self) -> bool | None:
        """Whether the constant that it limits may be smaller than the extreme (else larger); None where neither.

        Example:
            >>> gamma, L, P, T = sp.symbols("gamma L P T", positive=True)
            >>> Condition(gamma, "<=", 1 / L, "", limits=gamma).caps, Condition(P, "<=", T, "", limits=T).caps
            (True, False)
        """
        return self._solved[1]

    @property
    def _solved(self) -> tuple[sp.Expr | None, bool | None]:
        """The extreme, and whether it is a largest value: what stands beside the constant is positive."""
        if self.limits is None:
            return None, None
        for near, far in ((self.left, self.right), (self.right, self.left)):
            rest, power = near.as_independent(self.limits, as_Add=False)
            base, exponent = power.as_base_exp()
            if base == self.limits and not far.has(self.limits):
                grows = exponent.is_positive == (near is self.left)  # whether a larger one has a larger left - right
                caps = None if self.op == "==" else (self.op in ("<=", "<")) == grows
                return (far / rest) ** (1 / exponent), caps
        return None, None

    def as_printed(self, notation: Notation) -> Condition:
        """The relation as the paper writes it; ours is evaluated, also where that one divides 0 by 0."""
        left, right = (as_printed(side, notation).expression for side in (self.left, self.right))
        return replace(self, left=left, right=right)

    def words(self, notation: Notation) -> str:
        """The relation in plain text, as the paper writes it."""
        return self.as_printed(notation).text

    @property
    def text(self) -> str:
        """The relation in plain text."""
        return f"{plain(self.left)} {self.op} {plain(self.right)}"

    @property
    def latex(self) -> str:
        """The relation in LaTeX."""
        return f"{sp.latex(self.left)} {OPERATORS.get(self.op, self.op)} {sp.latex(self.right)}"


@dataclass(frozen=True, eq=False)
class Form(Shown):
    r"""One way of writing the right-hand side of a result, with its own conditions and assumptions.

    Args:
        name: "printed", "explicit", "repaired:R1", "sharp:B3", "explicit:I=1", ...; the part before ":" is its kind.
        terms: the summands, in order.
        conditions: what the constants must satisfy.
        assumptions: what the problem, the noise and the participation must satisfy.
        order_only: whether an O(.) hides constants (then every hidden constant is 1, and it is never a guarantee).
        hides: what the O hides, in words.
        hidden: the constants with a unit that the O hides; numbers are always hidden by an O.
        asymptotic: the limit in which alone it holds, e.g. "P -> infinity" ("" if it holds as it stands).
        prescribes: step sizes (or an interval) that the result sets, as expressions.
        derived: constants this form can compute from others.
        refuted_by: the id of the erratum whose counterexample refutes this form, or a step it rests on ("" if none).
        note: why this form exists, in one line.
        measure: its own left-hand side where it differs from the result's.
    """

    name: str
    terms: tuple[Term, ...]
    conditions: tuple[Condition, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    order_only: bool = False
    hides: str = ""
    hidden: tuple[sp.Symbol, ...] = ()
    asymptotic: str = ""
    prescribes: Mapping[str, sp.Expr] = field(default_factory=dict)
    derived: tuple[Derived, ...] = ()
    refuted_by: str = ""
    note: str = ""
    measure: Measure | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("printed", "explicit", "repaired", "sharp"):
            kinds = "printed, explicit, repaired or sharp"
            raise FedboundsError(f"form {self.name!r} must be {kinds}, or one of these and a name: printed:{self.name}")
        if len({term.name for term in self.terms}) != len(self.terms):
            raise FedboundsError(f"form {self.name!r}: two terms share a name")

    @property
    def kind(self) -> str:
        """printed, explicit, repaired or sharp."""
        return self.name.partition(":")[0]

    @property
    def implicit(self) -> str:
        """The assumptions that a printed form needs and its paper does not print ("" if there are none).

        Example:
            >>> from fedbounds.bounds.theory.registry import load
            >>> load("arbitrary-participation/theorem-3.1").form("printed").implicit
            'under an implicit assumption: martingale-noise (not printed in the paper)'
        """
        unstated = [a.name for a in self.assumptions if a.unstated] if self.kind == "printed" else []
        count = "implicit assumptions" if len(unstated) > 1 else "an implicit assumption"
        return f"under {count}: {', '.join(unstated)} (not printed in the paper)" if unstated else ""

    @property
    def bound(self) -> sp.Expr:
        """The sum of the terms, unevaluated so that nothing merges behind one's back."""
        return sp.Add(*(term.expression for term in self.terms), evaluate=False)

    def tables(self) -> tuple[Table, ...]:
        """Terms, what the names in them mean, conditions and assumptions."""
        short = name_shared_parts((t.expression for t in self.terms), Notation([]))
        terms = [(t.name, sp.latex(e)) for t, e in zip(self.terms, short.expressions, strict=True)]
        names = [(sp.latex(sp.Symbol(name)), sp.latex(meaning)) for name, meaning in short.definitions()]
        conditions = [(c.latex, c.why) for c in self.hypotheses]
        assumed = [(a.name, a.statement, a.label) for a in self.assumptions]
        return (
            Table("terms", ("term", "formula"), terms, ("formula",)),
            Table("where", ("name", "meaning"), names, ("name", "meaning")),
            Table("conditions", ("condition", "why"), conditions, ("condition",)),
            Table("assumptions", ("assumption", "statement", "label"), assumed),
        )

    @property
    def hypotheses(self) -> tuple[Condition, ...]:
        """The conditions that are the theorem's own."""
        return tuple(c for c in self.conditions if not c.legal)

    @property
    def said(self) -> tuple[sp.Expr, ...]:
        """Its expressions but for those that only say what the symbols mean."""
        return replace(self, conditions=self.hypotheses).expressions

    def __repr__(self) -> str:
        """One line; its attributes say the rest."""
        return f"<Form [{self.name}]: {', '.join(term.name for term in self.terms)}>"

    @property
    def headline(self) -> str:
        """Its name, and why it exists."""
        return f"[{self.name}] {self.note}\n{self.implicit}".strip()

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {sp.latex(self.bound)}$"

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """Every expression of it: terms, both sides of the conditions, prescribed step sizes."""
        sides = [side for c in self.conditions for side in (c.left, c.right)]
        return (*(t.expression for t in self.terms), *sides, *self.prescribes.values())

    @cached_property
    def symbols(self) -> frozenset[sp.Symbol]:
        """Every symbol that the terms and conditions need."""
        expressions = [t.expression for t in self.terms]
        expressions += [side for c in self.conditions for side in (c.left, c.right)]
        return frozenset(s for e in expressions for s in e.free_symbols if isinstance(s, sp.Symbol))

    @cached_property
    def length(self) -> int:
        """How many parts the expressions of its terms and conditions have."""
        expressions = self.expressions[: len(self.terms) + 2 * len(self.conditions)]
        return sum(1 for e in expressions for _ in sp.preorder_traversal(e))

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of the constants that its bound and its conditions are made of."""
        return frozenset(symbol.name for symbol in self.symbols)

    @cached_property
    def needs(self) -> frozenset[str]:
        """The names of the constants that its bound, its conditions and its step sizes are made of."""
        return frozenset(
            str(s) for s in (*self.symbols, *(s for e in self.prescribes.values() for s in e.free_symbols))
        )


@dataclass(frozen=True)
class Source:
    """Where a result stands: paper (as its citation key), number and equations; an asterisk if nobody read it there."""

    paper: str
    number: str
    equations: tuple[str, ...] = ()
    unread: bool = False

    def __str__(self) -> str:
        equations = f", eq. {', '.join(f'({e})' for e in self.equations)}" if self.equations else ""
        return f"{self.paper}, {self.number}{equations}{' *' * self.unread}"


@dataclass(frozen=True)
class LatexParts:
    """A form in LaTeX: left-hand side, terms, conditions, step sizes, and what the names in them mean."""

    left: str
    terms: tuple[str, ...]
    conditions: tuple[str, ...]
    steps: tuple[str, ...]
    names: tuple[str, ...]
    order_only: bool
    lower: bool = False

    @property
    def claim(self) -> str:
        """Left-hand side, relation and terms."""
        return f"{self.left} {self.opening}{' + '.join(self.terms)}{self.closing}"

    @property
    def opening(self) -> str:
        """The relation, and what stands before the first term."""
        return (r"\ge " if self.lower else r"\le ") + self._order * self.order_only

    @property
    def closing(self) -> str:
        """What stands after the last term."""
        return r"\Big)" * self.order_only

    @property
    def _order(self) -> str:
        return (r"\Omega" if self.lower else "O") + r"\Big("

    @property
    def lines(self) -> str:
        """The claim, then the conditions, then what the names mean, line by line."""
        return "\n".join([self.claim, *self.conditions, *self.names])

    @property
    def display(self) -> str:
        """The same as one display, as notebooks typeset it."""
        lines = plain_amsmath(self.lines).splitlines()
        return "$$\\begin{gathered}\n" + " \\\\\n".join(lines) + "\n\\end{gathered}$$"


def plain_amsmath(text: str) -> str:
    r"""LaTeX without what amsmath does not have: \mathbb.

    Example:
        >>> print(plain_amsmath(r"\mathbb E X"))
        \operatorname{E} X
    """
    return BLACKBOARD.sub(r"\\operatorname{\1}", text)


@dataclass(frozen=True, eq=False)
class Result(Shown):
    """One numbered statement of a paper.

    Args:
        key: "paper/name", e.g. "fedau/theorem-2".
        kind: theorem, corollary, proposition, lemma or remark.
        title: one phrase.
        source: paper, number, equations.
        measure: the left-hand side.
        notation: the paper's symbols.
        forms: its right-hand sides, from the paper's own to ours.
        default: the name of the strongest form that is not refuted.
        statement: what it says, in words.
        file: the theorem file that states it ("" if none does).
        algorithm: the kind of the algorithm it is about, as a theorem file names it.
    """

    key: str
    kind: ResultKind
    title: str
    source: Source
    measure: Measure
    notation: Notation
    forms: tuple[Form, ...]
    default: str
    statement: str = ""
    file: str = ""
    algorithm: str = ""

    def __post_init__(self) -> None:
        symbols = {quantity.symbol for quantity in self.notation.values()}
        for form in self.forms:
            if unknown := sorted(map(str, form.symbols - symbols)):
                raise FedboundsError(f"{self.key}[{form.name}]: not a symbol of the notation: {', '.join(unknown)}")

    @property
    def paper(self) -> str:
        """The part of the key before the slash."""
        return self.key.partition("/")[0]

    def form(self, name: str | None = None) -> Form:
        """The form with this name, else the first form of this kind; without a name the default form.

        Raises:
            FedboundsError: names the forms there are.
        """
        return select_form(self.forms, self.key, name, self.default)

    def sympy(self, form: str | None = None) -> sp.Expr:
        """The bound of a form in the symbols of the notation, with the numbers that have names written out.

        Example:
            >>> from fedbounds.bounds.theory.registry import load
            >>> theorem = load("tdcd/theorem-1")
            >>> theorem.sympy("repaired").diff(theorem.notation.Delta)
            4/(Q*R*eta)
        """
        bound = sp.Add(*(term.expression for term in self.form(form).terms))
        return bound.xreplace({number: number.exact for number in bound.atoms(NamedNumber)})

    def __repr__(self) -> str:
        """One line; its attributes say the rest."""
        return f"<Result {self.key}: {self.title}, in {len(self.forms)} form{'s' * (len(self.forms) != 1)}>"

    @property
    def headline(self) -> str:
        """Where it stands, what it says and what is on its left."""
        return "\n".join(filter(None, [f"{self.key}: {self.title} ({self.source})", self.statement, str(self.measure)]))

    def printed(self, form: Form) -> NamedParts:
        """Terms, conditions and step sizes of a form as the paper writes them; without legal ranges of constants."""
        return name_shared_parts((as_printed(e, self.notation).expression for e in form.said), self.notation)

    def latex_parts(self, form: Form) -> LatexParts:
        """A form in LaTeX, piece by piece, as the paper writes it; without the legal ranges of constants."""
        short = self.printed(form)
        expressions = iter(latex(e, self.notation) for e in short.expressions)
        return LatexParts(
            (form.measure or self.measure).latex,
            tuple(next(expressions) for _ in form.terms),
            tuple(f"{next(expressions)} {OPERATORS.get(c.op, c.op)} {next(expressions)}" for c in form.hypotheses),
            tuple(f"{self.notation[name].latex} = {next(expressions)}" for name in form.prescribes),
            tuple(
                f"{sp.latex(sp.Symbol(name))} = {latex(meaning, self.notation)}"
                + (rf" \approx {float(meaning):.6g}" if name in short.numbers else "")
                for name, meaning in short.definitions()
            ),
            form.order_only,
            (form.measure or self.measure).lower,
        )

    def tables(self) -> tuple[Table, ...]:
        """Every form with its claim, the one that is taken by default first."""
        ordered = sorted(self.forms, key=lambda form: form.name != self.default)
        rows = [
            (f.name, f"refuted: {f.refuted_by}" if f.refuted_by else "", self.latex_parts(f).claim) for f in ordered
        ]
        return (Table("forms, the default first", ("form", "erratum", "claim"), rows, ("claim",)),)

    def _repr_latex_(self) -> str:
        return self.latex_parts(self.form()).display


def paper_result(
    paper: str,
    citation: str,
    notation: Notation,
    name: str,
    title: str,
    measure: Measure,
    statement: str,
    forms: Iterable[Form],
    *,
    number: str = "",
    equations: tuple[str, ...] = (),
    kind: ResultKind | None = None,
    default: str = "",
    conditions: tuple[Condition, ...] = (),
    assumptions: tuple[Assumption, ...] = (),
    prescribes: Mapping[str, sp.Expr] | None = None,
    derived: tuple[Derived, ...] = (),
) -> Result:
    """One result of a paper, with the fields that its forms share written once.

    Args:
        paper, citation, notation: of the paper.
        name: the key without the paper; "lemma-b.3" is a lemma, what is no theorem, corollary, proposition or lemma is
            a remark unless `kind` says otherwise.
        title, measure, statement, forms: as in `Result`.
        number, equations: of the source; the number is the name in words ("Lemma B.3") where it is not given.
        default: the name of the strongest form that is not refuted; the last form where it is not given.
        conditions, assumptions, prescribes, derived: of every form that has none of its own.
    """
    shared = {"conditions": conditions, "assumptions": assumptions, "prescribes": prescribes or {}, "derived": derived}
    own = tuple(replace(f, **{key: getattr(f, key) or value for key, value in shared.items()}) for f in forms)
    first = name.partition("-")[0]
    guessed = cast(ResultKind, first if first in ("theorem", "corollary", "proposition", "lemma") else "remark")
    source = Source(citation, number or name.replace("-", " ").title(), equations)
    key, strongest = f"{paper}/{name}", default or own[-1].name
    return Result(key, kind or guessed, title, source, measure, notation, own, strongest, statement)


def reachable(form: Form, *, prescribed: bool = False) -> set[str]:
    """Every constant that the bound or a condition depends on, directly or through a derivation."""
    return dependencies(form.needs if prescribed else form.variables, form.derived)
