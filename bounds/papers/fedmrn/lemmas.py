"""Lemmas 1 to 5 (Appendix B); Lemma 2 is false for a single client and true on average over the clients."""

from fedbounds.bounds.papers.fedmrn.assumptions import (
    CONSTANT_STEPS,
    FALLING_STEPS,
    FIRST_WALK,
    INDEPENDENT_MASKS,
    LIPSCHITZ,
    NOISE,
    QUADRATIC_GROWTH,
    RELATIVE_ERROR,
    SAMPLING,
    STRONGLY_CONVEX,
    WALK,
)
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.notation import new_result
from fedbounds.bounds.papers.fedmrn.results import (
    CURVATURE,
    EVERYONE,
    FIRST_MOMENT,
    PRINTED_SHARE,
    SAMPLED,
    SAMPLING_ERROR,
    SEVERAL,
)
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE
from fedbounds.bounds.theory.measures import single
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import OBJECTIVE, PARAMETER

L, mu, sigma, G, q, Gamma, N, K, S = n.L, n.mu, n.sigma, n.G, n.q, n.Gamma, n.N, n.K, n.S
etat, Deltat, V, Dt, M, gradsq, meansq = n.etat, n.Deltat, n.V, n.Dt, n.M, n.gradsq, n.meansq

LEMMA_1 = new_result(
    "lemma-1",
    "Noise of the averaged gradient",
    single(
        "squared distance of the averaged stochastic gradient from its mean",
        r"\mathbb E\|\mathbf g_t-\bar{\mathbf g}_t\|^2",
        expectation=EVERYONE,
    ),
    "In every iteration; the clients' weights are 1/N.",
    (
        Form(
            "printed",
            (Term("gradient noise", sigma**2 / N),),
            assumptions=(NOISE, SAMPLING, INDEPENDENT_CLIENTS),
            note="eq. (16) from Assumption 2 read as a bound on the variance",
        ),
    ),
    equations=("16",),
)


def drift_terms(factor: int) -> tuple[Term, ...]:
    r"""$c(1+q^2)\eta_t^2(S-1)^2G^2$, in two parts."""
    walk = factor * etat**2 * (S - 1) ** 2 * G**2
    return (Term("local drift", walk), Term("masking", q**2 * walk))


LEMMA_2 = new_result(
    "lemma-2",
    "Distance of the masked models from their average",
    single(
        "squared distance of the masked local models from the averaged model, mean over the clients",
        r"\frac1N\sum_k\mathbb E\|\bar{\mathbf w}_t-\mathbf x_k^t\|^2",
        PARAMETER**2,
        expectation=EVERYONE,
    ),
    "In every iteration. The paper says it of every client, of which it is false; the theorems use the mean "
    "over the clients.",
    (
        Form(
            "printed",
            drift_terms(4),
            assumptions=(*FIRST_WALK, FALLING_STEPS),
            refuted_by="drift-of-one-client",
            note="eq. (17), for every client by itself",
            measure=single(
                "squared distance of one client's masked model from the averaged model",
                r"\mathbb E\|\bar{\mathbf w}_t-\mathbf x_k^t\|^2",
                PARAMETER**2,
                expectation=EVERYONE,
            ),
        ),
        Form(
            "repaired", drift_terms(4), assumptions=(*WALK, FALLING_STEPS), note="eq. (17) on average over the clients"
        ),
        Form(
            "sharp",
            drift_terms(1),
            assumptions=(*WALK, CONSTANT_STEPS),
            note="constant steps: the factor 4 is the square of how much the steps of a round may differ",
        ),
    ),
    equations=("17",),
)


def synchronization_terms(factor: int) -> tuple[Term, ...]:
    r"""$\text{factor}\,\big(\frac{q^2}K+\frac{N-K}{K(N-1)}\big)\eta_t^2S^2G^2$, in two parts."""
    walk = factor * etat**2 * S**2 * G**2
    return (Term("masking", q**2 / K * walk), Term("client sampling", SAMPLING_ERROR * walk))


LEMMA_3 = new_result(
    "lemma-3",
    "Error of masks and client sampling at a synchronization",
    single(
        "squared distance of the model after synchronization from the average before",
        r"\mathbb E\|\bar{\mathbf w}_{t+1}-\bar{\mathbf v}_{t+1}\|^2",
        PARAMETER**2,
        expectation=EVERYONE,
    ),
    "In every iteration; between synchronizations the left side is 0.",
    (
        Form(
            "printed",
            (Term("masking and sampling", 4 * PRINTED_SHARE * etat**2 * S**2 * G**2),),
            (SAMPLED, SEVERAL),
            (*FIRST_WALK, FALLING_STEPS),
            refuted_by=FIRST_MOMENT,
            note="eq. (18) from Assumption 4 as printed, a first moment; c divides by N - 1",
        ),
        Form("repaired", synchronization_terms(4), assumptions=(*WALK, FALLING_STEPS), note="eq. (18)"),
        Form("sharp", synchronization_terms(1), assumptions=(*WALK, CONSTANT_STEPS), note="constant steps"),
    ),
    equations=("18",),
    conditions=(SAMPLED,),
)

QUARTER_STEP = Condition(etat, "<=", 1 / (4 * L), "gamma_t in (52) is at least eta_t", etat)
HALF_STEP = Condition(etat, "<=", 1 / (2 * L), "gamma_t in (52) must not be negative", etat)
STEP_NEEDS = (QUADRATIC_GROWTH, STRONGLY_CONVEX, SAMPLING, MARTINGALE)
LEMMA_4 = new_result(
    "lemma-4",
    "One step towards the minimizer",
    single(
        "squared distance of the averaged local models from the minimizer after a step",
        r"\mathbb E\|\bar{\mathbf v}_{t+1}-\mathbf w^*\|^2",
        PARAMETER**2,
        expectation=EVERYONE,
    ),
    "In every iteration. (19) holds for masks of any kind, biased ones too; the sharp form needs unbiased masks.",
    (
        Form(
            "printed",
            (
                Term("distance", (1 - etat * mu) * Deltat),
                Term("heterogeneity", 6 * L * etat**2 * Gamma),
                Term("gradient noise", etat**2 * V),
                Term("drift", 2 * Dt),
            ),
            (QUARTER_STEP, CURVATURE),
            STEP_NEEDS,
            note="eq. (19), whatever the masked models x_k are",
        ),
        Form(
            "sharp",
            (
                Term("distance", (1 - etat * mu) * Deltat),
                Term("heterogeneity", (6 * L * etat**2 - 4 * L**2 * etat**3) * Gamma),
                Term("gradient noise", etat**2 * V),
                Term("drift", (2 - 2 * L * etat - mu * etat) * Dt),
            ),
            (HALF_STEP, CURVATURE),
            (*STEP_NEEDS, RELATIVE_ERROR, INDEPENDENT_MASKS),
            note="what (52) to (54) leave before they are rounded up, for unbiased masks",
        ),
    ),
    equations=("19",),
)

LEMMA_5 = new_result(
    "lemma-5",
    "One step down the objective",
    single(
        "increase of the objective at the averaged model in one step",
        r"\mathbb EF(\bar{\mathbf w}_{t+1})-\mathbb EF(\bar{\mathbf w}_t)",
        OBJECTIVE,
        expectation=EVERYONE,
        signed=True,
    ),
    "In every iteration, for any step size: the paper's 1/(L sqrt(T)) is not used.",
    tuple(
        Form(
            name,
            (
                Term("gradient", -etat / 2 * gradsq),
                Term("mean gradient", (L * etat**2 - etat) / 2 * meansq),
                Term("drift", etat / 2 * L**2 * Dt),
                Term("gradient noise", L * etat**2 / 2 * V),
                Term("synchronization", L / 2 * M),
            ),
            (),
            assumptions,
            refuted_by=refuted,
            note=note,
        )
        for name, assumptions, refuted, note in (
            (
                "printed",
                (QUADRATIC_GROWTH, SAMPLING, MARTINGALE),
                "one-sided-smoothness",
                "eq. (26) from Assumption 1 as printed",
            ),
            (
                "repaired",
                (LIPSCHITZ, SAMPLING, MARTINGALE, INDEPENDENT_MASKS, RELATIVE_ERROR),
                "",
                "eq. (26) for Lipschitz gradients, which (61) uses, and unbiased masks, which (58) uses",
            ),
        )
    ),
    equations=("26",),
    default="repaired",
)
LEMMAS = (LEMMA_1, LEMMA_2, LEMMA_3, LEMMA_4, LEMMA_5)
