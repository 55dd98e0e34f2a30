# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Remarks 1, 3 and 6 from the theorem and from the assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Symbol

from bounds.assumptions import INDEPENDENT_CLIENTS, MARTINGALE, Assumption
from bounds.audit.axioms import Assumed, Schema, Unfit
from bounds.audit.claim import Relation
from bounds.audit.rules import Combine, Stated
from bounds.audit.steps import Premise, Proof, Setting, Step, condition_fact, measure_symbol
from bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, HETEROGENEITY
from bounds.papers.fed_norm_sgda.composites import CURVATURE, LEGAL
from bounds.papers.fed_norm_sgda.corollaries import EQUAL_CLIENTS
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.ascent import G_MEAN, ON_AVERAGE, SETTING
from bounds.papers.fed_norm_sgda.proof.axioms import NOISE
from bounds.papers.fed_norm_sgda.proof.letters import DESCENT_SETTING
from bounds.papers.fed_norm_sgda.proof.theorem import THEOREM_PROOF
from bounds.papers.fed_norm_sgda.remarks import PLAIN, REMARK_1, REMARK_3, REMARK_6
from bounds.papers.fed_norm_sgda.results import ENOUGH_ROUNDS, THEOREM_1_AT_ITS_STEPS

# --- Remark 1 -------------------------------------------------------------------------------------------------------

VALUES = (
    (n.A_w, Integer(1)),
    (n.B_w, Integer(1)),
    (n.E_w, Integer(1)),
    (n.C_w, n.taubar - 1),
    (n.D, (n.taubar - 1) * (n.taubar - 1 + n.betaL**2)),
)
SAID = (EQUAL_CLIENTS[0], *EQUAL_CLIENTS[2:], *PLAIN)


@dataclass(frozen=True)
class AllAlike(Schema):
    r"""The composite constants where all clients have the weight 1/n and take $\tau$ plain steps, and
    $\tau_{\rm eff}=\tau$: $A_w=B_w=E_w=1$, $C_w=\tau-1$, $D=(\tau-1)(\tau-1+\beta_L^2)$.

    Args:
        which: one of these constants.
    """

    which: sp.Symbol
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The premises say that weights, steps and coefficients are alike."""
        said = {(fact.left, fact.right) for fact in map(condition_fact, SAID)}
        if not said <= {(p.left, p.right) for p in premises if p.op == "=="}:
            raise Unfit("the premises do not say that all clients are alike")
        return Relation(self.which, dict(VALUES)[self.which], "==")


def alike_steps() -> Iterator[Step]:
    """(6) repaired: Theorem 1 at its steps with these values, one after the other."""
    for k, condition in enumerate(SAID):
        fact = condition_fact(condition)
        yield Step(f"R{k}", condition.why, fact, Stated(), (condition,))
    names = tuple(f"R{k}" for k in range(len(SAID)))
    for letter, value in VALUES:
        yield Step(f"{letter}", "all clients are alike", Relation(letter, value, "=="), AllAlike(letter), names)
    theorem = THEOREM_1_AT_ITS_STEPS.form("sharp")
    start = sp.expand(theorem.bound)
    yield Step(
        "6-general",
        "Theorem 1 at its steps",
        Relation(G_MEAN, start),
        Combine((1,)),
        (f"{THEOREM_1_AT_ITS_STEPS.key}[sharp]", *LEGAL, CURVATURE, *ENOUGH_ROUNDS),
    )
    source, effective = "6-general", f"R{len(SAID) - 1}"
    at = start.xreplace({n.taueff: n.taubar})
    factor = sp.cancel((start - at) / (n.taueff - n.taubar))
    yield Step("6-taueff", "with taueff = tau", Relation(G_MEAN, at), Combine((1, factor)), (source, effective))
    source = "6-taueff"
    for letter, value in VALUES:
        after, slope = sp.expand(at.xreplace({letter: value})), sp.diff(at, letter)
        yield Step(
            f"6-{letter}",
            f"with {letter} = {value}",
            Relation(G_MEAN, after),
            Combine((1, slope)),
            (source, f"{letter}"),
        )
        source, at = f"6-{letter}", after


REMARK_1_PROOF = Proof(REMARK_1.key, DESCENT_SETTING, tuple(alike_steps()), REMARK_1, {"repaired": "6-D"})

# --- Remark 3 -------------------------------------------------------------------------------------------------------


def pl_step(name: str, source: str) -> Step:
    """Theorem 1, whose proof uses no more of concavity than the PL condition gives."""
    end = THEOREM_PROOF.step(source)
    assert end is not None
    return Step(name, "Theorem 1 as it is", end.conclusion, Combine((1,)), (f"{THEOREM_PROOF.id}/{source}",))


PL_THEOREM_PROOF = Proof(
    REMARK_3.key,
    SETTING,
    (pl_step("PL", "18"), pl_step("PL-sharp", "18-sharp")),
    REMARK_3,
    {"repaired": "PL", "sharp": "PL-sharp"},
    substitute=ON_AVERAGE,
)

# --- Remark 6 -------------------------------------------------------------------------------------------------------

EACH, MEAN = Symbol("[|noise of client i|^2]", nonnegative=True), Symbol("[mean of |grad f_i|^2]", nonnegative=True)
OWN = Symbol("[|grad f_i|^2]", nonnegative=True)
OF_CLIENTS, OF_SAMPLES = (measure_symbol(form.measure or REMARK_6.measure) for form in REMARK_6.forms[:2])
MEANS = {OF_CLIENTS: MEAN, OF_SAMPLES: n.gradxsq}  # whose squared gradients the noise of each mean grows with
LEVEL = n.sigmaL**2 + n.betaL**2 * OWN


@dataclass(frozen=True)
class MeanOfNoise(Schema):
    r"""$\mathbb E\|\frac1n\sum_i\zeta_i\|^2\le\frac1n\cdot\frac1n\sum_i(s+b\|u_i\|^2)$ for uncorrelated noise with
    $\mathbb E\|\zeta_i\|^2\le s+b\|u_i\|^2$; of n samples at one client, $u_i=u$.

    Args:
        noise: what is bounded: of n clients, or of n samples at one.
    """

    noise: sp.Symbol
    axiom: str = "noise of different clients, and of different samples, is uncorrelated"
    needs: tuple[str, ...] = (*NOISE, INDEPENDENT_CLIENTS.name)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The bound comes from the premise."""
        if len(premises) != 1 or premises[0].left != EACH:
            raise Unfit("the premise does not bound the noise of one client")
        if self.noise not in MEANS:
            raise Unfit(f"{self.noise} is not the noise of a mean")
        return Relation(self.noise, sp.expand(premises[0].right.xreplace({OWN: MEANS[self.noise]}) / n.n))


def noise_steps() -> Iterator[Step]:
    """n clients, and n samples of one."""
    noise: tuple[Premise, ...] = (BLOCK_NOISE, MARTINGALE, INDEPENDENT_CLIENTS)
    yield Step("each", "Assumption 2", Relation(EACH, LEVEL), assumed(EACH, LEVEL, BLOCK_NOISE), (BLOCK_NOISE,))
    for name, of_mean in (("clients", OF_CLIENTS), ("samples", OF_SAMPLES)):
        bound = sp.expand(LEVEL.xreplace({OWN: MEANS[of_mean]}) / n.n)
        yield Step(name, f"the mean of n {name}", Relation(of_mean, bound), MeanOfNoise(of_mean), ("each", *noise))
    spread = n.betaG**2 * n.gradxsq + n.sigmaG**2
    rule = assumed(MEAN, spread, HETEROGENEITY)
    yield Step("spread", "Assumption 3", Relation(MEAN, spread), rule, (HETEROGENEITY,))
    end = n.sigmaL**2 / n.n + n.betaL**2 / n.n * spread
    yield Step(
        "6", "Remark 6", Relation(OF_CLIENTS, sp.expand(end)), Combine((1, n.betaL**2 / n.n)), ("clients", "spread")
    )


def assumed(left: sp.Expr, right: sp.Expr, assumption: Assumption) -> Assumed:
    """A hypothesis at one point."""
    return Assumed(left, right, (assumption.name,), "at one point, in one block")


REMARK_6_PROOF = Proof(
    REMARK_6.key,
    Setting("one point", {}),
    tuple(noise_steps()),
    REMARK_6,
    {"repaired": "6", "repaired:one-node": "samples"},
)
REMARK_PROOFS = (REMARK_1_PROOF, PL_THEOREM_PROOF, REMARK_6_PROOF)
