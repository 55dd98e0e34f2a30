"""Claims: everything that can be verified, each with its premises and its place in the paper."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import sympy as sp

from fedbounds.bounds.audit.canonical_text import canonical_text
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.printing import latex
from fedbounds.bounds.theory.result import Condition, Form, Result

CHECKERS = "fedbounds.checkers"  # the group of entry points by which other layers and packages register a checker
ClaimKind = Literal["result", "units", "step", "limit", "erratum", "repair", "assumption", "wording"]
Relator = Literal["<=", "=="]


@dataclass(frozen=True)
class Relation:
    r"""left <= right, or left == right, kept as two sides because sympy would evaluate the relation.

    Args:
        left, right, op: the relation.
        strict: whether left < right is known, so that one may divide by the slack; for conditions, not for steps.

    Example:
        >>> x = sp.Symbol("x", positive=True)
        >>> str(Relation(x, 2 * x))
        'x <= 2*x'
    """

    left: sp.Expr
    right: sp.Expr
    op: Relator = "<="
    strict: bool = False

    @property
    def slack(self) -> sp.Expr:
        """right - left; what must be nonnegative, or zero."""
        return self.right - self.left

    @property
    def latex(self) -> str:
        """The relation in LaTeX."""
        op = "=" if self.op == "==" else r"\le"
        return f"{sp.latex(self.left)} {op} {sp.latex(self.right)}"

    def __str__(self) -> str:
        return f"{self.left} {'<' if self.strict else self.op} {self.right}"


Relations = Sequence[Relation]


@dataclass(frozen=True, eq=False)
class Claim:
    """One statement to verify.

    Args:
        id: its name, e.g. "arbitrary-participation/theorem-3.1[explicit]" or ".../lemma-c.1/L1.4".
        kind: what sort of statement it is; wording carries no verdict.
        text: the statement in one line.
        subject: the object that the checkers look at (a ResultForm, a step of a proof, a limit, a counterexample).
        content: everything that the verdict may depend on, as text; the ledger keeps its hash.
        quantifiers: for all of what.
        given: what is held fixed.
        assumptions, conditions: its hypotheses.
        source: where it stands in the paper.
        instead: the id of the claim that holds instead, where this one fails.
    """

    id: str
    kind: ClaimKind
    text: str
    subject: object
    content: str
    quantifiers: str = ""
    given: str = ""
    assumptions: tuple[Assumption, ...] = ()
    conditions: tuple[Condition, ...] = ()
    source: str = ""
    instead: str = ""

    @property
    def latex(self) -> str:
        """The statement in LaTeX; empty where the subject has none."""
        return getattr(self.subject, "latex", "")

    @property
    def paper(self) -> str:
        """The part of the id before the first slash."""
        return self.id.partition("/")[0]

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits of the content's SHA-256."""
        parts = (self.id, self.kind, self.content, self.quantifiers, self.given)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class ResultForm:
    """One form of one result, as a subject of trials."""

    result: Result
    form: Form

    @property
    def id(self) -> str:
        """The claim's id."""
        return f"{self.result.key}[{self.form.name}]"

    @property
    def latex(self) -> str:
        """That the right-hand side bounds the measure."""
        return rf"{(self.form.measure or self.result.measure).latex} \le {latex(self.form.bound, self.result.notation)}"

    @property
    def content(self) -> str:
        """Terms, conditions, assumptions, step sizes, left-hand side and algorithm as text."""
        form = self.form
        lines = [f"{t.name}: {canonical_text(t.expression)}" for t in form.terms]
        lines += [f"{canonical_text(c.left)} {c.op} {canonical_text(c.right)}" for c in form.conditions]
        lines += [f"{name} = {canonical_text(value)}" for name, value in form.prescribes.items()]
        lines += [f"assumes {a.name}: {a.statement}" for a in form.assumptions]
        lines += [str(form.measure or self.result.measure), form.asymptotic, form.refuted_by, str(form.order_only)]
        lines += [f"algorithm {self.result.algorithm}"] if self.result.algorithm else []
        return "\n".join(lines)

    def claim(self) -> Claim:
        """The claim that this right-hand side bounds the result's measure."""
        form, measure = self.form, self.form.measure or self.result.measure
        bound = " + ".join(str(t.expression) for t in form.terms)
        relation = "==" if self.result.kind == "remark" and form.kind == "explicit" and not form.conditions else "<="
        order = f"O({bound})" if form.order_only else bound
        return Claim(
            id=self.id,
            kind="result",
            text=f"{measure} {relation} {order}",
            subject=self,
            content=self.content,
            quantifiers=form.asymptotic,
            given=measure.given,
            assumptions=form.assumptions,
            conditions=form.conditions,
            source=str(self.result.source),
            instead=form.refuted_by,
        )
