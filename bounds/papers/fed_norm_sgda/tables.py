"""Tables 1 and 2 of Sharma et al. (2023): orders as printed, and as computed from the theorems."""

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational, sqrt

from fedbounds.bounds.asymptotics.rates import Complexity, best_complexity
from fedbounds.bounds.papers.fed_norm_sgda import assumptions as given
from fedbounds.bounds.papers.fed_norm_sgda.composites import DERIVED, K, a_m, d
from fedbounds.bounds.papers.fed_norm_sgda.concave import MOREAU, THEOREM_3, THEOREM_4
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import ROUNDS, ROUNDS_ERRATUM
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION
from fedbounds.bounds.papers.fed_norm_sgda.results import ENVELOPE, PAPER, THEOREM_1
from fedbounds.bounds.theory.assumptions import CITED as CITED_ELSEWHERE
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.client_reductions import OverClients, SumOverClients
from fedbounds.bounds.theory.measures import Measure, single
from fedbounds.bounds.theory.result import Condition, Form, Result, Source, Term
from fedbounds.bounds.theory.symbols import NONE

n = NOTATION
WORK = sp.Symbol("work", positive=True)  # n tau: gradients of all clients in a round
ALIKE: Mapping[sp.Expr, sp.Expr] = {  # equal weights 1/n, SGDA with tau steps, taueff = tau, and n tau = WORK
    n.A_w: Integer(1),
    n.B_w: Integer(1),
    n.E_w: Integer(1),
    n.C_w: n.taubar,
    n.D: n.taubar**2,
    n.taueff: n.taubar,
    n.nu: Integer(2),
    n.taubar: WORK / n.n,
}


@dataclass(frozen=True)
class TableCase:
    """One theorem where all clients are alike and take part."""

    result: Result  # the theorem
    steps: tuple[sp.Symbol, ...]  # what may depend on T besides the work
    capped: bool = True  # whether its conditions must hold

    def complexity(self) -> Complexity:
        """The best exponents that its bound admits.

        Example:
            >>> NONCONVEX_CONCAVE.complexity().rounds, TableCase(THEOREM_4, STEPS_4, capped=False).complexity().rounds
            (Fraction(6, 1), Fraction(4, 1))
        """
        form = self.result.form()
        terms = [Term(t.name, equal_clients(t.expression)) for t in form.terms]
        about_steps = [c for c in form.conditions if (c.left.free_symbols | c.right.free_symbols) & set(self.steps)]
        kept = [c for c in about_steps if c.op != "=="] if self.capped else []
        conditions = [Condition(equal_clients(c.left), c.op, equal_clients(c.right), c.why) for c in kept]
        whole = (WORK, n.S) if n.S in self.steps else (WORK,)
        return best_complexity(terms, conditions, n.T, (*self.steps, WORK), WORK, whole=whole)


def equal_clients(expression: sp.Expr) -> sp.Expr:
    """An expression where all clients have the weight 1/n, take the same local steps, and take part; S - 1 as S."""
    values = {K: n.n**-1 / n.taubar, a_m: n.taubar**2, SumOverClients(n.w**2): 1 / n.n, n.S - 1: n.S}
    special = expression.xreplace(values).subs(n.P, n.n).xreplace(dict(ALIKE)).xreplace(dict(ALIKE))
    assert not special.atoms(OverClients), special
    return sp.expand(special)


STEPS_1 = (n.Gammax, n.Gammay, n.etax, n.etay)
STEPS_4 = (n.Gammax, n.Gammay, n.S, n.etax, n.etay)
NONCONVEX_STRONGLY_CONCAVE = TableCase(THEOREM_1, STEPS_1)
NONCONVEX_CONCAVE = TableCase(THEOREM_4, STEPS_4)
ONE_POINT_CONCAVE = TableCase(THEOREM_3, STEPS_4)

# --- The tables -----------------------------------------------------------------------------------------------------

CITED = CITED_ELSEWHERE.with_label("Tables 1 and 2")
CITED_NOTE = "a cited order, whose assumptions are not stated here"
GRADIENTS = single(
    "gradients per client after which the mean squared gradient norm of the envelope is at most eps^2",
    r"T_\epsilon\tau",
    NONE,
)
UNITS = "everything that is not shown: a numerical constant, L_f, kappa, G_x, R, the initial gap, sigma_L and sigma_G"
eps, tau, P, T, sigmaL, sigmaG = n.eps, n.taubar, n.P, n.T, n.sigmaL, n.sigmaG

CONCAVE_RATES = {
    "partial participation": (d / (P * T)) ** Rational(1, 4),
    "noise": (tau * P * T) ** -Rational(1, 4),
    "descent": (P * tau) ** Rational(1, 4) / T ** Rational(3, 4),
}
CONCAVE_RATES_NOTE = "as (7), at steps that Theorem 4's cap excludes once n tau grows faster than T^(1/3)"


@dataclass(frozen=True)
class Entry:
    """One row of a table."""

    order: sp.Expr | Mapping[str, sp.Expr]  # one expression, or several by name
    assumptions: tuple[Assumption, ...] = (CITED,)  # of the theorem, or CITED
    refuted_by: str = ""  # an erratum
    note: str = CITED_NOTE  # in a line

    @property
    def terms(self) -> tuple[Term, ...]:
        """By name, "order" if there is one only."""
        parts = self.order if isinstance(self.order, Mapping) else {"order": self.order}
        return tuple(Term(name, expression) for name, expression in parts.items())


def table(
    name: str, number: int, title: str, measure: Measure, rows: Mapping[str, Entry], statement: str = ""
) -> Result:
    """The rows of one class of problems as forms of one result."""
    forms = tuple(
        Form(
            form,
            row.terms,
            (),
            row.assumptions,
            order_only=True,
            hides=UNITS,
            hidden=(n.Lf, n.Delta, n.Gx, n.R),
            derived=DERIVED,
            refuted_by=row.refuted_by,
            note=row.note,
        )
        for form, row in rows.items()
    )
    default = "repaired" if "repaired" in rows else "printed"
    source = Source(PAPER, f"Table {number}")
    return Result(f"fed-norm-sgda/{name}", "remark", title, source, measure, NOTATION, forms, default, statement)


def rates(participation: sp.Expr, drawn: sp.Symbol) -> dict[str, sp.Expr]:
    """Table 2's rates for nonconvex-strongly-concave problems with this factor of the participation error."""
    return {
        "partial participation": participation * sqrt(tau / (drawn * T)),
        "noise": 1 / sqrt(drawn * tau * T),
        "local updates": (sigmaL**2 + tau * sigmaG**2) / (tau * T),
    }


FULL = "all clients take part, with equal weights and local steps; eps bounds the norm"
ALIKE_TEXT = "equal weights and local steps"
OURS = "the paper's own row"
NEEDED = "the same order, with what the theorem's proof needs besides"
HEADLINE = "as printed; Theorem 4's own cap on the step in y does not admit it"
SIX = "what Theorem 4 gives with the best powers of T that its conditions admit"
TABLES = (
    table("table-1-nc-sc", 1, "Rounds for nonconvex-strongly-concave problems", ROUNDS, {
        "printed": Entry(eps**-2, given.PRINTED, note=OURS),
        "repaired": Entry(eps**-2, given.USED, note=NEEDED),
        "printed:sharma-2022": Entry(eps**-3),
        "printed:yang-2022": Entry(eps**-2),
    }, FULL),
    table("table-1-nc-sc-gradients", 1, "Gradients for nonconvex-strongly-concave problems", GRADIENTS, {
        "printed": Entry(1 / (n.n * eps**4), given.PRINTED, note=OURS),
        "repaired": Entry(1 / (n.n * eps**4), given.USED, note=NEEDED),
        "printed:lin-2020": Entry(eps**-4),
        "printed:sharma-2022": Entry(1 / (n.n * eps**4)),
        "printed:yang-2022": Entry(1 / (n.n * eps**4)),
    }, FULL),
    table("table-1-nc-c", 1, "Rounds for nonconvex-concave problems", ROUNDS, {
        "printed": Entry(eps**-4, given.CONCAVE_PRINTED, ROUNDS_ERRATUM, HEADLINE),
        "repaired": Entry(eps**-6, given.CONCAVE_USED, note=SIX),
        "printed:sharma-2022": Entry(eps**-7),
    }, FULL),
    table("table-1-nc-c-gradients", 1, "Gradients for nonconvex-concave problems", GRADIENTS, {
        "printed": Entry(1 / (n.n * eps**8), given.CONCAVE_PRINTED, note=OURS),
        "repaired": Entry(1 / (n.n * eps**8), given.CONCAVE_USED, note=NEEDED),
        "printed:lin-2020": Entry(eps**-8),
        "printed:sharma-2022": Entry(1 / (n.n * eps**8)),
    }, FULL),
    table("table-1-nc-1pc", 1, "Rounds for nonconvex-one-point-concave problems", ROUNDS, {
        "printed": Entry(eps**-4, given.ONE_POINT_PRINTED, ROUNDS_ERRATUM, HEADLINE),
        "repaired": Entry(eps**-6, given.ONE_POINT_USED, note=SIX),
        "printed:deng-2021": Entry(n.n ** Rational(1, 6) * eps**-8),
        "printed:sharma-2022": Entry(eps**-7),
    }, FULL),
    table("table-1-nc-1pc-gradients", 1, "Gradients for nonconvex-one-point-concave problems", GRADIENTS, {
        "printed": Entry(1 / (n.n * eps**8), given.ONE_POINT_PRINTED, note=OURS),
        "repaired": Entry(1 / (n.n * eps**8), given.ONE_POINT_USED, note=NEEDED),
        "printed:deng-2021": Entry(eps**-12),
        "printed:sharma-2022": Entry(eps**-8),
    }, FULL),
    table("table-2-nc-sc", 2, "Rate for nonconvex-strongly-concave problems", ENVELOPE, {
        "printed": Entry(rates(d * sigmaG**2, P), given.PRINTED, note="as (6), with 1 for its noise; it drops kappa^2"),
        "printed:yang-2022": Entry(rates((n.n - P) / n.n * sigmaG**2, P)),
        "printed:sharma-2022": Entry(
            {"noise": 1 / sqrt(n.n * tau * T), "local updates": n.n * tau * (sigmaL**2 + sigmaG**2) / T}
        ),
    }, ALIKE_TEXT),
    table("table-2-nc-c", 2, "Rate for nonconvex-concave problems", MOREAU, {
        "printed": Entry(CONCAVE_RATES, given.CONCAVE_PRINTED, note=CONCAVE_RATES_NOTE),
        "printed:sharma-2022": Entry(
            {"noise": (tau * n.n * T) ** -Rational(1, 4), "descent": (n.n * tau) ** Rational(3, 2) / sqrt(T)}
        ),
    }, ALIKE_TEXT),
    table("table-2-nc-1pc", 2, "Rate for nonconvex-one-point-concave problems", MOREAU, {
        "printed": Entry(CONCAVE_RATES, given.ONE_POINT_PRINTED, note=CONCAVE_RATES_NOTE),
        "printed:sharma-2022": Entry(
            {"noise": (tau * T) ** -Rational(1, 4), "descent": tau ** Rational(3, 2) / sqrt(T)}
        ),
    }, ALIKE_TEXT),
)  # fmt: skip
RESULTS = TABLES
