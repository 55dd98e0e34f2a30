"""Lemmas 1 and 2: a stochastic gradient where a round starts, and how far the gradients drift in a round."""

import sympy as sp

from fedbounds.bounds.papers.tdcd.assumptions import BLOCK_SMOOTH, ONE_BLOCK_SMOOTH, UNBIASED_CLIENTS, UNBIASED_SILOS
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.notation import new_result
from fedbounds.bounds.papers.tdcd.results import DRIFT_GROWTH, KAPPA_GROWTH, LEMMA_CAP, PRINTED_GROWTH
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.measures import single
from fedbounds.bounds.theory.result import Condition, Form, Term

FIRST_GRADIENT = (Term("gradient noise", n.sigmaj**2), Term("gradient", n.gradsq))

LEMMA_1 = new_result(
    "lemma-1",
    "A stochastic gradient where a round starts",
    single(
        "clients' mean squared stochastic gradient in block j where a round starts",
        r"\frac1{K_j}\sum_k\mathbb E\|g_{k,j}(y_{k,j}^{t_0})\|^2",
        expectation="gradient noise",
    ),
    "In every silo j, where a round starts.",
    (
        Form(
            "printed",
            FIRST_GRADIENT,
            assumptions=(UNBIASED_CLIENTS,),
            note="eq. (23), for every client by itself",
            measure=single(
                "squared stochastic gradient of a client in block j where a round starts",
                r"\mathbb E\|g_{k,j}(y_{k,j}^{t_0})\|^2",
                expectation="gradient noise",
            ),
        ),
        Form(
            "repaired",
            FIRST_GRADIENT,
            assumptions=(UNBIASED_SILOS,),
            note="eq. (23) on average over the clients, of whom only the mean need be unbiased",
        ),
    ),
    equations=("23",),
)


def drift_form(
    name: str, growth: sp.Expr, assumption: Assumption, conditions: tuple[Condition, ...], note: str, refuted: str = ""
) -> Form:
    """The summed drift is at most this multiple of the first gradients' squares."""
    return Form(
        name, (Term("local drift", growth * n.G0),), conditions, (assumption,), refuted_by=refuted, note=note
    )  # fmt: skip


LEMMA_2 = new_result(
    "lemma-2",
    "Drift of the gradients in a round",
    single(
        "squared distance of the stochastic gradients from those where the round starts, summed over its local steps "
        "and the silos, mean over the clients of each",
        r"\sum_{t=t_0}^{t_0+Q-1}\sum_j\frac1{K_j}\sum_k\mathbb E\|g_{k,j}(y_{k,j}^t)-g_{k,j}(y_{k,j}^{t_0})\|^2",
        expectation="gradient noise",
    ),
    "In every round, on every path: only a client's own block moves, so that the Lipschitz constant in that "
    "block is enough, and what other silos do in the meantime does not enter.",
    (
        drift_form(
            "printed",
            PRINTED_GROWTH,
            ONE_BLOCK_SMOOTH,
            (LEMMA_CAP,),
            "eq. (30) with the Lmax of (10), a maximum over the clients k alone",
            "largest-over-clients-alone",
        ),
        drift_form("repaired", PRINTED_GROWTH, BLOCK_SMOOTH, (LEMMA_CAP,), "eq. (30), Lmax being that of all silos"),
        drift_form(
            "sharp:kappa",
            KAPPA_GROWTH,
            BLOCK_SMOOTH,
            (LEMMA_CAP,),
            "(54) as it stands: ((1 + 2/Q)^Q - 3)/4, which is at most 1.0973, where (56) has 2",
        ),
        drift_form(
            "sharp:growth",
            DRIFT_GROWTH,
            BLOCK_SMOOTH,
            (),
            "|g^s - g^0| <= ((1 + eta Lmax)^s - 1) |g^0|, summed, for every step size",
        ),
    ),
    equations=("30",),
    default="sharp:growth",
)
LEMMAS = (LEMMA_1, LEMMA_2)
