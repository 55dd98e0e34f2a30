r"""Remark 1, eq. (6), Remark 3 and Remark 6: all clients alike, the PL condition, and one full synchronization."""

from dataclasses import replace

from sympy import Integer, Rational, sqrt

from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BLOCK_NOISE, HETEROGENEITY, NOISE, PRINTED, USED
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE, DERIVED, LARGEST, LEGAL, SIMPLEX, W, d
from fedbounds.bounds.papers.fed_norm_sgda.corollaries import EQUAL_CLIENTS
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import with_pl
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.notation import new_result
from fedbounds.bounds.papers.fed_norm_sgda.results import AS_PRINTED, ENOUGH_ROUNDS, ENVELOPE, STEPS, THEOREM_1, TIGHT
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE, Assumption
from fedbounds.bounds.theory.client_reductions import MaxOverClients, SumOverClients
from fedbounds.bounds.theory.expressions import largest
from fedbounds.bounds.theory.measures import single
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import GRADIENT

kappa, nu, tau, P, T = n.kappa, n.nu, n.taubar, n.P, n.T
sigmaL, betaL, sigmaG, betaG = n.sigmaL, n.betaL, n.sigmaG, n.betaG
PLAIN = (  # no coefficient is above 1, and they sum to tau: all are 1
    Condition(MaxOverClients(n.amax), "==", Integer(1), "plain local steps"),
    Condition(SumOverClients(n.a1), "==", n.n * tau, "plain local steps"),
    Condition(n.taueff, "==", tau, "the server's step counts the local ones"),
)
GAP, DUAL, NOISE_FACTOR, LOCAL = TIGHT
SPEED = sqrt(P * tau * T)
PL_NOISE = largest(kappa * betaL**2 * MaxOverClients(n.a2 / n.a1**2), 1)
REMARK_1 = new_result(
    "remark-1",
    "Theorem 1 for equal weights and equal local steps",
    ENVELOPE,
    "A_w = B_w = E_w = 1, C_w = tau - 1 and D = (tau - 1)(tau - 1 + betaL^2). That the participation error "
    "grows with tau comes from the steps of (4), not from the algorithm.",
    (
        Form(
            "printed",
            (
                Term("full synchronization", (sigmaL**2 + betaL**2 * sigmaG**2) / SPEED),
                Term("local updates", (sigmaL**2 + tau * sigmaG**2) / (tau * T)),
                Term("partial participation", d * sigmaG**2 * sqrt(tau / (P * T))),
            ),
            (*EQUAL_CLIENTS, CURVATURE),
            PRINTED,
            order_only=True,
            hides="one numerical constant for each term, kappa^2 and L_f",
            refuted_by="gap-of-remark-1",
            note="eq. (6) as printed, which drops kappa^2 and the terms of the initial gaps",
        ),
        Form(
            "repaired",
            (
                Term("initial gap", 156 * GAP * kappa**2 * n.Delta * n.Lf / SPEED),
                Term("initial dual gap", DUAL * kappa**2 * n.delta0 * n.Lf / SPEED),
                Term(
                    "full synchronization",
                    NOISE_FACTOR * nu * kappa**2 * (sigmaL**2 + 2 * betaL**2 * sigmaG**2) / SPEED,
                ),
                Term("partial participation", 2 * NOISE_FACTOR * nu * kappa**2 * d * sigmaG**2 * sqrt(tau / (P * T))),
                Term(
                    "local updates",
                    2
                    * LOCAL
                    * nu
                    * kappa**2
                    * (tau - 1)
                    * (sigmaL**2 + 2 * (tau - 1 + betaL**2) * sigmaG**2)
                    / (tau**2 * T),
                ),
            ),
            (*EQUAL_CLIENTS, LARGEST, *PLAIN, CURVATURE, *ENOUGH_ROUNDS),
            USED,
            prescribes=STEPS,
            note="the sharp Theorem 1 at its steps, in this case",
        ),
    ),
    equations=("6",),
    derived=DERIVED,
)
REMARK_3 = new_result(
    "remark-3",
    "Theorem 1 under the PL condition",
    ENVELOPE,
    "The bounds of Theorem 1 where sum_i w_i f_i is mu-PL in y. The printed conditions ask for a factor "
    "kappa more in two places; only smoothness bounds the gradient in y, so neither is needed.",
    (
        replace(
            THEOREM_1.form("printed"),
            conditions=(
                *LEGAL,
                CURVATURE,
                *AS_PRINTED[:1],
                Condition(
                    n.Gammay * kappa * n.Lf * betaG**2 / P * PL_NOISE,
                    "<=",
                    Rational(1, 64),
                    "the second condition of Appendix B.5, whose noise has a factor kappa",
                    n.Gammay,
                ),
                *AS_PRINTED[2:5],
                Condition(16 * kappa * n.etay * n.Lf * betaG * sqrt(n.D), "<=", Integer(1), "(f) with kappa", n.etay),
                AS_PRINTED[6],
            ),
            assumptions=with_pl(PRINTED),
        ),
        *(replace(THEOREM_1.form(name), assumptions=with_pl(USED)) for name in ("repaired", "sharp")),
    ),
    number="Remark 3 and Appendix B.5",
    default="sharp",
)
ONE_NODE = single(
    "squared noise of the mean of n samples at one client",
    r"\mathbb E\|\tfrac1n\sum_j[\nabla f_1(z;\xi_j)-\nabla f_1(z)]\|^2",
    GRADIENT**2,
    expectation="gradient noise",
)


def noise_of_means(kind: str, assumptions: tuple[Assumption, ...], note: str) -> tuple[Form, Form]:
    """Remark 6 for n clients, and for n samples at one client, which knows no heterogeneity."""
    noise, growth = Term("noise", sigmaL**2 / n.n), betaL**2 / n.n
    clients = (noise, Term("growing noise", growth * betaG**2 * n.gradxsq), Term("heterogeneity", growth * sigmaG**2))
    equal = (SIMPLEX, Condition(n.n * W, "==", Integer(1), "equal weights"))
    alone = tuple(a for a in assumptions if a is not HETEROGENEITY)
    return (
        Form(kind, clients, equal, assumptions, derived=DERIVED, note=note),
        Form(
            f"{kind}:one-node",
            (noise, Term("growing noise", growth * n.gradxsq)),
            (),
            alone,
            derived=DERIVED,
            note=f"the mean of n samples at one client, {note}",
            measure=ONE_NODE,
        ),
    )


REMARK_6 = new_result(
    "remark-6",
    "Noise of n clients in one synchronized step",
    single(
        "squared noise of the mean gradient of all clients at one point",
        r"\mathbb E\|\tfrac1n\sum_i[\nabla f_i(z;\xi_i)-\nabla f_i(z)]\|^2",
        GRADIENT**2,
        expectation="gradient noise",
    ),
    "One block, equal weights. Heterogeneity enters even with one local step and full participation if "
    "betaL > 0; with a batch of n at one node it does not. gradxsq is the squared gradient norm of the mean in x.",
    (
        *noise_of_means("printed", (NOISE, HETEROGENEITY), "as printed, beta_G for beta_H"),
        *noise_of_means(
            "repaired",
            (BLOCK_NOISE, HETEROGENEITY, INDEPENDENT_CLIENTS, MARTINGALE),
            "with noise that is independent between clients, and drawn anew in every sample",
        ),
    ),
    default="repaired",
)
RESULTS = (REMARK_1, REMARK_3, REMARK_6)
