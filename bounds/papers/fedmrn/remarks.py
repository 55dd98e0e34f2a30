r"""Proposition 1 and Remark 2: what progressive masking gains, and the rates."""

from sympy import sqrt

from fedbounds.bounds.papers.fedmrn import assumptions
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.notation import new_result
from fedbounds.bounds.papers.fedmrn.results import CURVATURE, SAMPLED, THEOREM_1, THEOREM_2
from fedbounds.bounds.theory.measures import single
from fedbounds.bounds.theory.result import Form, Result, Term
from fedbounds.bounds.theory.symbols import Dimension

q, S, T = n.q, n.S, n.T

PROPOSITION_1 = new_result(
    "proposition-1",
    "What progressive masking gains",
    single(
        "squared relative error of a progressively masked update, mean over the local steps of a round",
        r"\frac1S\sum_{\tau\le S}\sup_{\mathbf u}"
        r"\frac{\mathbb E\|\mathcal S_{\mathrm{PM},\tau}(\mathbf u)-\mathbf u\|^2}{\|\mathbf u\|^2}",
        Dimension.of(),
        expectation="masks",
    ),
    "For an operator of relative error q, in local steps alone: the uploaded update is masked as a whole.",
    (
        Form(
            "printed",
            (Term("masking", q**2 * (S + 1) * (2 * S + 1) / (6 * S**2)),),
            refuted_by="progressive-masking-squares-its-probability",
            note="q times sqrt(sum of tau^2 / S^3), squared; that is the error of a blend (1 - p) u + p S(u)",
        ),
        Form(
            "repaired",
            (Term("masking", q**2 * (S + 1) / (2 * S)),),
            note="a coordinate is masked or not: E P^2 = p, so the mean of tau/S and not of its square counts",
        ),
    ),
    equations=("10",),
    assumptions=(assumptions.RELATIVE_ERROR, assumptions.PROGRESSIVE),
)


def same_rate(key: str, theorem: Result, forms: tuple[Form, ...]) -> Result:
    """One half of Remark 2."""
    return new_result(
        f"remark-2-{key}",
        f"Rate of FedMRN, {key}",
        theorem.measure,
        "The rate in T that the paper calls the same as that of FedAvg. What it hides is not: the error of "
        "masks grows with the number of parameters d.",
        forms,
        number="Remark 2",
        default=forms[-1].name,
    )


HIDDEN = (n.L, n.mu, n.sigma, n.G, n.Gamma, n.Delta1, n.F, n.N, n.K, n.S, n.d)
RATE, ROOT_RATE = (Term("rate", 1 / T),), (Term("rate", 1 / T + 1 / sqrt(T)),)
REMARK_2_CONVEX = same_rate(
    "strongly-convex",
    THEOREM_1,
    (
        Form(
            "printed",
            RATE,
            (SAMPLED, CURVATURE),
            (*assumptions.USED, assumptions.QUADRATIC_GROWTH, assumptions.STRONGLY_CONVEX),
            order_only=True,
            hidden=(*HIDDEN, q),
            note="O(1/T) under the conditions of Theorem 1, Assumption 4 (squared) among them: for operators with a "
            "relative error, not for the masks that Theorem 1 prescribes (frozen-amplitude)",
        ),
    ),
)
REMARK_2_NONCONVEX = same_rate(
    "non-convex",
    THEOREM_2,
    (
        Form(
            "printed",
            ROOT_RATE,
            (SAMPLED,),
            (*assumptions.MASKED, assumptions.FIXED_MASKS, assumptions.LIPSCHITZ, assumptions.BELOW),
            order_only=True,
            hidden=HIDDEN,
            note="O(1/T) + O(1/sqrt(T)) with the masks that Theorem 2 prescribes",
        ),
    ),
)
RESULTS = (PROPOSITION_1, REMARK_2_CONVEX, REMARK_2_NONCONVEX)
