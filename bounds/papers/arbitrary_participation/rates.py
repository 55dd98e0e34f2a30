"""Table 1 and Section 5: the dominant rates as claims, each an order for large T with rho = 1/sqrt(S)."""

from dataclasses import replace

from sympy import Expr, Integer, Rational, log, sqrt

from fedbounds.bounds.papers.arbitrary_participation import assumptions as given
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n
from fedbounds.bounds.papers.arbitrary_participation.notation import new_result
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.theory.assumptions import CITED as CITED_ELSEWHERE
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.measures import LEAST_GRADIENT, Measure
from fedbounds.bounds.theory.problem_class import box, where
from fedbounds.bounds.theory.result import Form, Result, Term

HIDDEN = "one numerical constant, L, F, d (the table ignores other variables) and every term of lower order in T"
LIKELY = replace(LEAST_GRADIENT, given="participation, an event of probability at least 1 - c")
EVERYONE_CALLED = Assumption(
    "everyone-called",
    "in every window of P rounds every client makes at least M independent oracle calls at the window's first model",
    "Section 5",
    participation=True,
    cover=where(box(participation=given.IN_WINDOWS), perhaps=[box()]),
)
CITED = CITED_ELSEWHERE.with_label("Table 1")


def rate(
    name: str,
    title: str,
    statement: str,
    expressions: dict[str, Expr],
    kind: tuple[Assumption, ...],
    measure: Measure = LEAST_GRADIENT,
    note: str = "",
    **refuted: str,
) -> Result:
    """One row of Table 1; `refuted` maps a form's qualifier to the erratum that refutes it."""
    forms = tuple(
        Form(
            form,
            (Term("rate", expression),),
            (),
            kind,
            order_only=True,
            hides=HIDDEN,
            hidden=(n.L, n.F, n.d),
            asymptotic="T -> infinity",
            note=note,
            refuted_by=refuted.get(form.partition(":")[2], ""),
            measure=LIKELY if form.endswith(":probability") else None,
        )
        for form, expression in expressions.items()
    )
    return new_result(
        f"{name}",
        title,
        measure,
        statement,
        forms,
        number="Table 1" if name.startswith("table") else "Section 5",
        default="printed",
    )


SPEED = sqrt(n.S * n.I * n.T)
ONE_PLUS_NOISE = 1 + n.sigma**2
RESULTS = (
    rate(
        "table-1-regularized",
        "Rate under regularized participation",
        "The order of centralized SGD with S I T oracle calls (Corollary 4.3).",
        {"printed": n.sigma / SPEED},
        (*given.BOUNDED, given.REGULARIZED),
    ),
    rate(
        "table-1-ergodic",
        "Limit under ergodic participation",
        "Tends to zero as T grows (Proposition 4.4), if P grows with T such that T/P tends to infinity slowly enough: "
        "the mean over the window at kP is (k + 1) times the mean of the first (k + 1)P rounds less k times that of "
        "the first kP, which are means from the fixed t_0 = 0.",
        {"printed": Integer(0)},
        (*given.BOUNDED, given.UNBIASED_SAMPLING, given.ERGODIC),
        OVER_PARTICIPATION,
        note="the limit for P that grows slowly with T is argued in words",
    ),
    rate(
        "table-1-mixing",
        "Rate under mixing participation",
        "In expectation, and with probability 1 - c (Proposition 4.6, Corollary 4.8); both need Corollary 4.8's cap on "
        "I, which no T satisfies by itself.",
        {"printed": ONE_PLUS_NOISE / SPEED, "printed:probability": ONE_PLUS_NOISE / (n.c * SPEED)},
        (*given.BOUNDED, given.UNBIASED_SAMPLING, given.MIXING),
        OVER_PARTICIPATION,
        note="follows only under Corollary 4.8's cap on I, which no T satisfies by itself; whether the order holds "
        "beyond the cap is open",
    ),
    rate(
        "table-1-independent",
        "Rate under participation that is independent over rounds",
        "In expectation (Proposition 4.7, Corollary 4.8), under Corollary 4.8's cap on I, which no T satisfies by "
        "itself. The entry with probability 1 - c does not follow from Corollary 4.8's P: a factor 1/upsilon^2 stays.",
        {"printed": ONE_PLUS_NOISE / SPEED, "printed:probability": ONE_PLUS_NOISE * log(2 / n.c) / SPEED},
        (*given.BOUNDED, given.UNBIASED_SAMPLING, given.INDEPENDENT_ROUNDS),
        OVER_PARTICIPATION,
        note="follows only under Corollary 4.8's cap on I, which no T satisfies by itself; whether the order holds "
        "beyond the cap is open",
        probability="lost-weight-variance",
    ),
    rate(
        "table-1-yan",
        "Rate of Yan et al. as cited",
        "Clients unavailable for at most E rounds in a row; also assumes bounded gradients. Not checked here.",
        {"printed": ONE_PLUS_NOISE * n.N ** Rational(1, 4) * sqrt(n.E) / sqrt(n.S * n.T)},
        (CITED,),
        note="a cited rate, whose assumptions are not stated here",
    ),
    rate(
        "table-1-gu",
        "Rate of Gu et al. as cited",
        "Clients unavailable for at most E rounds in a row; also assumes Lipschitz Hessians and almost surely bounded "
        "noise. Not checked here.",
        {"printed": ONE_PLUS_NOISE * sqrt(n.E) / sqrt(n.N * n.I * n.T)},
        (CITED,),
        note="a cited rate, whose assumptions are not stated here",
    ),
    rate(
        "section-5-wait-for-all",
        "Rate of waiting until every client has taken part",
        "One step per window of P rounds with M oracle calls per client; with M = P S I/N it equals Corollary 4.3's.",
        {"printed": n.sigma * sqrt(n.P) / sqrt(n.M * n.N * n.T)},
        (*given.NOISE, EVERYONE_CALLED, given.BOUNDED_BELOW),
        note="the paper gives neither the update nor its step size",
    ),
)
