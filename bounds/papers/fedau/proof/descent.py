# pyright: reportArgumentType=false, reportReturnType=false, reportMissingTypeArgument=false
# sympy types its operators as unions, and a scalar times a Vec as an Expr
r"""Lemmas B.3.3 and B.5.1: one round, eqs. (B.3.5) to (B.3.10) and (B.5.1), with the cross term of (B.3.8) kept.

With $v$ the mean gradient and $a$ the mean noise of one client over its local steps, (B.3.8)(a) takes $\langle a,v
\rangle$ for 0, but later gradients depend on earlier noise (step S10, which nothing shows). What holds is $\langle a,
v\rangle=\langle a,v-\nabla F_n(x_t)\rangle$, which Young's inequality splits into noise and drift (S10').
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational, Symbol, sqrt

from bounds.audit.axioms import Assumed, Descent, Smooth
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import (
    CauchySchwarz,
    ClientMean,
    MeanUpdate,
    NoiseGivenPast,
    NoiseOverSteps,
    SecondMoment,
    Squared,
    StepMean,
    WeightedDescent,
)
from bounds.audit.rules import Combine, Gram
from bounds.audit.steps import Proof, Step
from bounds.audit.vectors import inner, square
from bounds.papers.fedau.assumptions import BERNOULLI, ONE_STEP, PAST_WEIGHTS
from bounds.papers.fedau.lemmas import (
    DIVERGENCE_GROWTH,
    E_2,
    GLOBAL_CAP,
    GRADIENT_GROWTH,
    LEMMA_B_3_3,
    LEMMA_B_5_1,
    LOCAL_CAP,
    NOISE_GROWTH,
    ONE_LOCAL_STEP,
    PRINTED_STEP,
    REPAIRED_STEP,
    SMALLER_CAP,
    descent_terms,
)
from bounds.papers.fedau.notation import NOTATION as n
from bounds.papers.fedau.proof.drift import (
    A1,
    A2,
    GENERAL,
    GY,
    ITSELF,
    MARTINGALE,
    MEAN_DRIFT,
    TO_GRADSQ,
    G,
    Objective,
    Xi,
    a,
    d,
    divergence_step,
    f0,
    g0,
    round_setting,
    s,
    v,
    z,
)
from bounds.result import Condition

L, I, N, gamma, eta, sigma = n.L, n.I, n.N, n.gamma, n.eta, n.sigma
INDEPENDENT = ONE_STEP[2]
CHOSEN = (A2, MARTINGALE, BERNOULLI, PAST_WEIGHTS)
tau, move = gamma * L * I, gamma * eta * I  # move: how far the update goes along d
HALF = Rational(1, 2)
ROUND, CLIENTS = "for every round t", "for every client n and round t"
DECREASE = Symbol("[f(x_t) - E_t f(x_{t+1})]", real=True)
THIRTIETH, FIFTEENTH = 1 / (30 * L * I), 1 / (15 * L * I)
ROOT_AT_MOST, KAPPA_AT_MOST = Rational(17, 20), Rational(18, 25)


@dataclass(frozen=True)
class Branch:
    """One way through the chain.

    Args:
        name: the suffix of its steps.
        drift: the step that bounds the averaged drift by k I (gamma^2 sigma^2 + ...).
        k: that constant.
        rho: Young's parameter for the product of noise and drift; 0 drops the product, as (B.3.8)(a) does.
        conditions: of the drift.
    """

    name: str
    drift: str
    k: sp.Expr
    rho: sp.Expr
    conditions: tuple[Condition, ...] = ()

    def apart(self, o: Objective) -> sp.Expr:
        """The bound on |v - grad F_n(x_t)|^2."""
        return self.k * I * L**2 * gamma**2 * (sigma**2 + 6 * I * (o.divergence**2 + G))

    def gradient(self, o: Objective) -> sp.Expr:
        """The bound on |v|^2, eq. (B.3.9)."""
        return 3 * self.apart(o) + 3 * (o.divergence**2 + G)

    def update(self, o: Objective) -> sp.Expr:
        """The bound on |v + a|^2."""
        cross = self.apart(o) / self.rho if self.rho else 0
        return (1 + self.rho) * sigma**2 / I + cross + self.gradient(o)

    def end(self, o: Objective) -> sp.Expr:
        """The bound on the increase of the objective in one round."""
        second = L * move / 2 * o.moment / N * self.update(o)
        return move * (3 * HALF * o.gap * self.gradient(o) + self.apart(o) / 2 + second - G / 4)


SHARP = Branch("", "S5'", E_2, sqrt(E_2) * tau)
ONE = Branch("-one", "S5'one", Integer(0), Rational(1, 16), (ONE_LOCAL_STEP,))
PRINTED = Branch("-printed", "S5'five", Integer(5), Integer(0))


def shared_steps(o: Objective) -> Iterator[Step]:
    """What needs no bound on the drift."""
    step = -move * d
    weighted = bool(o.weights)
    rule = (WeightedDescent if weighted else Descent)("f0", step, DECREASE, L)
    yield Step(
        "D1",
        "descent lemma for the update of a round, eq. (B.3.6)",
        Relation(-DECREASE, sp.expand(inner(f0, step) + L / 2 * square(step))),
        rule,
        (A1, *o.weights),
        ROUND,
    )
    yield Step(
        "D2",
        "participation and noise averaged out of the first-order term, eq. (B.3.7)",
        Relation(inner(d, f0), inner(z, f0), "=="),
        MeanUpdate("d", "f0"),
        CHOSEN,
        ROUND,
    )
    yield Step(
        "S6",
        "Young with 1/2 for the part that the weights miss",
        Relation(-inner(f0, z - s), G / 4 + square(z - s)),
        Gram(),
        (),
        ROUND,
    )
    yield Step(
        "S7",
        "the product of two vectors by three squares",
        Relation(-inner(f0, s), square(s - f0) / 2 - G / 2 - square(s) / 2, "=="),
        Combine(),
        (),
        ROUND,
    )
    yield Step(
        "S8",
        "the first-order term: 1/4 + 1/2 - 1 = -1/4 of the gradient's square",
        Relation(-inner(f0, d), square(z - s) + square(s - f0) / 2 - square(s) / 2 - G / 4),
        Combine((-1, 1, 1)),
        ("D2", "S6", "S7"),
        ROUND,
    )
    yield Step(
        "S9a",
        "smoothness between the local models and x_t",
        Relation(square(GY - g0), L**2 * MEAN_DRIFT),
        Smooth("GY", "g0", L),
        (A1,),
        CLIENTS,
    )
    yield Step(
        "S9b",
        "Jensen over the local steps",
        Relation(square(v - g0), square(GY - g0)),
        StepMean(GY - g0),
        (),
        CLIENTS,
    )
    yield divergence_step(o)
    yield Step(
        "S14a",
        "Jensen for three gradients",
        Relation(square(v), 3 * square(v - g0) + 3 * square(g0 - f0) + 3 * G),
        Gram(),
        (),
        CLIENTS,
    )
    yield Step(
        "S11a",
        "the noise of one step",
        Relation(square(Xi), sigma**2),
        Assumed(square(Xi), sigma**2, (A2.name,), "the noise of client n at its local models"),
        (A2,),
        CLIENTS,
    )
    yield Step(
        "S11",
        "the mean noise of one client; the paper writes '='",
        Relation(square(a), sigma**2 / I),
        NoiseOverSteps("a", "Xi", I),
        ("S11a", A2, MARTINGALE),
        CLIENTS,
    )
    yield Step(
        "S10'a",
        "the noise is uncorrelated with what is known at x_t",
        Relation(inner(a, g0), Integer(0), "=="),
        NoiseGivenPast(a, g0),
        (A2, MARTINGALE),
        CLIENTS,
    )
    yield Step(
        "S12",
        "the squared update by what the objective asks for and what the weights miss",
        Relation(square(z), 2 * square(z - s) + 2 * square(s)),
        Gram(),
        (),
        ROUND,
    )
    yield Step("S13", "the squared update does not ascend", Relation(L * move, HALF), Combine(), (GLOBAL_CAP,))


def branch_steps(o: Objective, b: Branch) -> Iterator[Step]:
    """From a bound on the averaged drift to one round."""
    name = b.name
    yield Step(
        f"S9c{name}",
        "the mean gradient of a client against that at x_t",
        Relation(square(v - g0), b.apart(o)),
        Combine((1, 1, L**2)),
        ("S9a", "S9b", f"{o.average}/{b.drift}", *b.conditions),
        CLIENTS,
    )
    yield Step(
        f"S9d{name}",
        "Jensen over the clients, with the weights of the objective",
        Relation(square(s - f0), b.apart(o)),
        ClientMean(v - g0, uniform=not o.weights),
        (f"S9c{name}", *o.weights),
        ROUND,
    )
    yield Step(
        f"S14{name}",
        "the size of a client's mean gradient, eq. (B.3.9)",
        Relation(square(v), b.gradient(o)),
        Combine((1, 3, 3)),
        ("S14a", f"S9c{name}", "S2b"),
        CLIENTS,
    )
    yield Step(
        f"S9{name}",
        "Cauchy-Schwarz over the clients",
        Relation(square(z - s), o.gap * b.gradient(o)),
        CauchySchwarz("v", z - s, o.gap),
        (f"S14{name}",),
        ROUND,
    )
    if b.rho:
        yield Step(
            f"S10'b{name}",
            "Young for the product of a client's noise and its later gradients",
            Relation(2 * inner(a, v - g0), b.rho * square(a) + square(v - g0) / b.rho),
            Gram(),
            (),
            CLIENTS,
        )
        yield Step(
            f"S10'{name}",
            "one client's update, its noise and its later gradients correlated",
            Relation(square(v + a), b.update(o)),
            Combine((2, 1, 1, 1 + b.rho, 1 / b.rho)),
            ("S10'a", f"S10'b{name}", f"S14{name}", "S11", f"S9c{name}"),
            CLIENTS,
        )
    else:
        yield Step(
            "S10",
            "(B.3.8)(a) as printed: a client's noise is uncorrelated with its gradients, also the later ones",
            Relation(inner(a, v), Integer(0), "=="),
            NoiseGivenPast(a, v),
            (A2, MARTINGALE),
            CLIENTS,
        )
        yield Step(
            f"S10'{name}",
            "(B.3.8)(a) as printed: one client's update without the product of noise and gradients",
            Relation(square(v + a), b.update(o)),
            Combine((2, 1, 1)),
            ("S10", f"S14{name}", "S11"),
            CLIENTS,
        )
    yield Step(
        f"S11b{name}",
        "independent participation and noise: the variance of a sum, Var(1_n) <= p_n, eq. (B.3.8)",
        Relation(square(d), o.moment / N * b.update(o) + square(z)),
        SecondMoment("d", "v", "a", o.moment / N),
        (f"S10'{name}", *CHOSEN, INDEPENDENT),
        ROUND,
    )
    yield Step(
        f"S16{name}",
        "one round: first- and second-order terms together, eq. (B.3.10)",
        Relation(-DECREASE, b.end(o)),
        Combine(
            (
                1,
                move,
                L * move**2 / 2,
                L * move**2 / 2,
                move * (square(z - s) + square(s)),
                3 * move / 2,
                move / 2,
            )
        ),
        ("D1", "S8", f"S11b{name}", "S12", "S13", f"S9{name}", f"S9d{name}"),
        ROUND,
    )


def constants_steps() -> Iterator[Step]:
    """What the growth factors are at most, at the caps; once for all objectives."""
    yield Step("K1", "e - 2 is at most 18/25", Relation(E_2, KAPPA_AT_MOST), Combine())
    yield Step("K2", "its root is at most 17/20", Relation(sqrt(E_2), ROOT_AT_MOST), Combine())
    yield Step("K3", "15 is less than the root of 240", Relation(gamma, FIFTEENTH), Combine(), (LOCAL_CAP,))
    rows = (
        ("A", NOISE_GROWTH, 2 * tau, 3, Rational(9, 8), Rational(17, 16)),
        ("B", DIVERGENCE_GROWTH, 6 * tau, 18, Rational(17, 5), Rational(27, 8)),
        ("D", GRADIENT_GROWTH, Integer(0), 18, Rational(27, 8), Rational(27, 8)),
    )
    for letter, growth, root, quadratic, at_cap, at_thirtieth in rows:
        multipliers = (root, quadratic * tau**2)
        at = f"with gamma at most {FIFTEENTH}"
        yield Step(
            f"K-{letter}",
            f"S15: {letter}_tau is at most {at_cap}, {at}",
            Relation(growth, at_cap),
            Combine((*multipliers, 0)),
            ("K2", "K1", "K3"),
        )
        yield Step(
            f"K-{letter}-small",
            f"S15: {letter}_tau is at most {at_thirtieth}, with gamma at most {THIRTIETH}",
            Relation(growth, at_thirtieth),
            Combine(multipliers),
            ("K2", "K1", SMALLER_CAP),
        )


def descent_steps(o: Objective) -> tuple[Step, ...]:
    """The whole chain for one objective, and where each form of its lemma ends."""
    steps = [*shared_steps(o), *(constants_steps() if o is GENERAL else ())]
    branches = (SHARP, ONE, PRINTED) if o is GENERAL else (SHARP, ONE)
    for b in branches:
        steps += branch_steps(o, b)
    sums = (o.gap, o.moment, o.divergence)
    square_sum = o.divergence**2 + G
    home = "" if o is GENERAL else f"{GENERAL.proof}/"
    second = L * move**2 / 2 * o.moment / N
    by_growth = (1, second * sigma**2 / I, second * square_sum, 3 * HALF * move * o.gap * square_sum, Integer(0))

    def end(constants: tuple[sp.Expr, ...]) -> Relation:
        """The form with these constants, in the letters of the steps."""
        terms = descent_terms(*[*constants, *sums])
        return Relation(-DECREASE, sp.Add(*(t.expression for t in terms)).xreplace({n.gradsq: G}))

    steps += [
        Step(
            "B.3.5-repaired",
            "with 9/8 and 17/5",
            end(REPAIRED_STEP),
            Combine(by_growth),
            ("S16", *(f"{home}{name}" for name in ("K-A", "K-B", "K-D", "K1"))),
            ROUND,
        ),
        Step(
            "B.3.5-small",
            "as printed, with gamma at most 1/(30LI)",
            end(PRINTED_STEP),
            Combine(by_growth),
            ("S16", *(f"{home}{name}" for name in ("K-A-small", "K-B-small", "K-D-small", "K1"))),
            ROUND,
        ),
        Step(
            "B.3.5-one",
            "as printed, with one local step",
            end(PRINTED_STEP),
            Combine((1,)),
            ("S16-one", ONE_LOCAL_STEP, LOCAL_CAP),
            ROUND,
        ),
    ]
    if PRINTED in branches:
        squared = 240 * (L * I) ** 2  # of 90 and 15 in (B.3.9) 3/8 and 1/16 are left at the cap
        steps += [
            Step("K4", "S15: the cap squared", Relation(gamma**2, 1 / squared), Squared(), (LOCAL_CAP,)),
            Step(
                "B.3.5-printed",
                "as printed, resting on (B.3.8)(a)",
                end(PRINTED_STEP),
                Combine((1, squared * (second * (sigma**2 / I + 6 * square_sum) + 9 * move * o.gap * square_sum) / 16)),
                ("S16-printed", "K4"),
                ROUND,
            ),
        ]
    return tuple(steps)


def descent_proof(o: Objective, ends: dict[str, str]) -> Proof:
    """The chain of one objective."""
    lemma = LEMMA_B_3_3 if o.weights else LEMMA_B_5_1
    return Proof(o.proof, round_setting(o.name), descent_steps(o), lemma, ends, -DECREASE, TO_GRADSQ)


REPAIRS = {
    "repaired": "B.3.5-repaired",
    "repaired:smaller-cap": "B.3.5-small",
    "repaired:I=1": "B.3.5-one",
    "sharp": "S16",
}
DESCENT_PROOF = descent_proof(GENERAL, {"printed": "B.3.5-printed", **REPAIRS})
DESCENT_OF_F = descent_proof(ITSELF, REPAIRS)
