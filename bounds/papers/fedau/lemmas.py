r"""The one-step lemmas of Appendices B.3 and B.5: divergence from a weighted objective, local drift, descent.

$\tilde f=\sum_n\varphi_nF_n$ is the objective of Definition B.3.1.
"""

from dataclasses import replace

import sympy as sp
from sympy import Abs, Integer, Rational, sqrt

from fedbounds.bounds.papers.fedau.assumptions import BOUNDED_DIVERGENCE, LOCAL, OBJECTIVE_WEIGHTS, ONE_STEP
from fedbounds.bounds.papers.fedau.notation import NOTATION as n
from fedbounds.bounds.papers.fedau.notation import new_result
from fedbounds.bounds.theory.client_reductions import MeanOverClients, MedianOverClients, SumOverClients
from fedbounds.bounds.theory.measures import single
from fedbounds.bounds.theory.named_numbers import NamedNumber
from fedbounds.bounds.theory.result import Condition, Form, Term
from fedbounds.bounds.theory.symbols import OBJECTIVE, PARAMETER, Derived, length_of

L, I, N, gamma, eta, sigma, delta, p = n.L, n.I, n.N, n.gamma, n.eta, n.sigma, n.delta, n.p
deltatilde, gradsq = n.deltatilde, n.gradsq

CLIENTS = length_of("p", "N")

# The three numbers of the repaired one-step lemma: the geometric sum of the averaged drift is at most (e - 2) I^2 (the
# paper: 5 I^2), and the cross term of noise and drift that (B.3.8) drops is kept.
E_2 = NamedNumber("kappa", sp.E - 2)
tau = gamma * L * I
NOISE_GROWTH = 1 + 2 * sqrt(E_2) * tau + 3 * E_2 * tau**2
DIVERGENCE_GROWTH = 3 + 6 * sqrt(E_2) * tau + 18 * E_2 * tau**2
GRADIENT_GROWTH = 3 + 18 * E_2 * tau**2


# --- Lemmas B.3.1 and B.3.2: divergence from f~, local drift ------------------------------------------------------

TWICE = Derived("deltatilde", ("delta",), 2 * delta, "at most twice delta, Lemma B.3.1", free="downwards")
LEMMA_B_3_1 = new_result(
    "lemma-b.3.1",
    "Divergence from a weighted objective",
    single(
        "squared distance of a client's gradient from the gradient of f~",
        r"\|\nabla F_n(\mathbf x)-\nabla\tilde f(\mathbf x)\|^2",
    ),
    "At every point, for every client and f~ = sum_n varphi_n F_n. The paper's 2 delta is attained by two "
    "clients with opposite deviations and varphi = (0, 1).",
    (
        Form("printed", (Term("divergence", 4 * delta**2),), note="eq. (B.3.2): the square of 2 delta"),
        Form(
            "sharp",
            (
                Term(
                    "divergence", delta**2 * sp.Pow(1 + SumOverClients(Abs(n.varphi - MedianOverClients(n.varphi))), 2)
                ),
            ),
            note="the deviations sum to zero, so any mu may be taken off every varphi_n; the median is best. Equal "
            "varphi_n give delta^2, which is why Lemma B.5.1 has delta for 2 delta",
        ),
    ),
    equations=("B.3.2",),
    assumptions=(BOUNDED_DIVERGENCE, OBJECTIVE_WEIGHTS),
)

DRIFT_CAP = Condition(gamma, "<=", 1 / (sqrt(30) * L * I), "the recursion of Lemma B.3.2", gamma)


def drift_terms(noise: sp.Expr, rest: sp.Expr) -> tuple[Term, ...]:
    r"""$c_1I\gamma^2\sigma^2+c_2I^2\gamma^2(\tilde\delta^2+\|\nabla\tilde f(x_t)\|^2)$."""
    return (
        Term("local noise", noise * I * gamma**2 * sigma**2),
        Term("divergence", rest * I**2 * gamma**2 * deltatilde**2),
        Term("gradient", rest * I**2 * gamma**2 * gradsq),
    )


LEMMA_B_3_2 = new_result(
    "lemma-b.3.2",
    "Local drift",
    single(
        "squared distance of a client's local model from the global model after i <= I steps",
        r"\mathbb E_t\|\mathbf y_{t,i}^n-\mathbf x_t\|^2",
        PARAMETER**2,
        expectation="gradient noise",
        given="x_t and the weights",
    ),
    "For every client and every local step i <= I of a round.",
    (
        Form("printed", drift_terms(Integer(5), Integer(30)), note="eq. (B.3.3)"),
        Form(
            "sharp",
            drift_terms(1 + E_2, 6 * (1 + E_2)),
            note="the geometric sum is at most (e - 1) I, its limit for many local steps, not 5 I",
        ),
        Form(
            "sharp:average",
            drift_terms(E_2, 6 * E_2),
            note="what the descent lemma uses: the average over the steps i = 0 .. I-1, which starts at 0",
            measure=single(
                "squared distance of a client's local model from the global model, averaged over i < I",
                r"\frac1I\sum_{i<I}\mathbb E_t\|\mathbf y_{t,i}^n-\mathbf x_t\|^2",
                PARAMETER**2,
                expectation="gradient noise",
                given="x_t and the weights",
            ),
        ),
    ),
    equations=("B.3.3",),
    default="sharp",
    conditions=(DRIFT_CAP,),
    assumptions=(*LOCAL, OBJECTIVE_WEIGHTS),
    derived=(TWICE,),
)

# --- Lemmas B.3.3 and B.5.1: one round ----------------------------------------------------------------------------

LOCAL_CAP = Condition(gamma, "<=", 1 / (4 * sqrt(15) * L * I), "local drift, Lemma B.3.3", gamma)
GLOBAL_CAP = Condition(gamma * eta, "<=", 1 / (2 * L * I), "the squared update must not ascend, Lemma B.3.3", gamma)
SMALLER_CAP = Condition(
    gamma, "<=", 1 / (30 * L * I), "the cross term of noise and drift fits into 17/16 and 27/8", gamma
)
ONE_LOCAL_STEP = Condition(I, "==", Integer(1), "one local step: noise and drift have no cross term")


def descent_terms(
    error_noise: sp.Expr,
    error: sp.Expr,
    drift: sp.Expr,
    noise: sp.Expr,
    participation: sp.Expr,
    drift_slope: sp.Expr,
    weight_gap: sp.Expr,
    second_moment: sp.Expr,
    divergence: sp.Expr,
) -> tuple[Term, ...]:
    r"""The right-hand side of (B.3.5) less $\tilde f(x_t)$, with $v=N\sum_n(p_n\omega_t^n/N-\varphi_n)^2$ and
    $z=\frac1N\sum_np_n(\omega_t^n)^2$.

    $$\tfrac32\gamma\eta I\big(c_1L^2I\gamma^2\sigma^2+c_2\tilde\delta^2\big)v
      +c_3\gamma^3\eta L^2I^2(\sigma^2+6I\tilde\delta^2)
      +\frac{\gamma^2\eta^2LI}{2N}\big(c_4\sigma^2+c_5I\tilde\delta^2\big)z
      +\gamma\eta I\big[\tfrac32c_2v+c_6L^2I^2\gamma^2+\tfrac{c_5}2\tfrac{\gamma\eta LI}Nz-\tfrac14\big]
       \|\nabla\tilde f(x_t)\|^2$$
    """
    step = gamma * eta * I
    update = step * gamma * eta * L / (2 * N) * second_moment
    bracket = (
        Rational(3, 2) * error * weight_gap
        + drift_slope * (gamma * L * I) ** 2
        + participation / 2 * gamma * eta * L * I / N * second_moment
    )
    return (
        Term(
            "weight error",
            Rational(3, 2) * step * (error_noise * L**2 * I * gamma**2 * sigma**2 + error * divergence**2) * weight_gap,
        ),
        Term("local drift", drift * step * gamma**2 * L**2 * I * (sigma**2 + 6 * I * divergence**2)),
        Term("gradient noise", noise * update * sigma**2),
        Term("participation", participation * update * I * divergence**2),
        Term("gradient", step * bracket * gradsq),
        Term("descent", -step / 4 * gradsq),
    )


Six = tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr, sp.Expr, sp.Expr]
Three = tuple[sp.Expr, sp.Expr, sp.Expr]
PRINTED_STEP: Six = (Integer(15), Rational(27, 8), Rational(5, 2), Rational(17, 16), Rational(27, 8), Integer(15))
REPAIRED_STEP: Six = (Integer(15), Rational(27, 8), Rational(5, 2), Rational(9, 8), Rational(17, 5), Integer(15))
TIGHT_STEP: Six = (3 * E_2, GRADIENT_GROWTH, E_2 / 2, NOISE_GROWTH, DIVERGENCE_GROWTH, 3 * E_2)
ANY_OBJECTIVE: Three = (N * n.V, n.Z / N, deltatilde)
MEAN_OBJECTIVE: Three = (n.Wt, n.Qt, delta)


ANY_SUMS = (
    CLIENTS,
    TWICE,
    Derived("V", ("p", "N", "omega", "varphi"), SumOverClients((p * n.omega / N - n.varphi) ** 2), "its definition"),
    Derived("Z", ("p", "omega"), SumOverClients(p * n.omega**2), "its definition"),
)
MEAN_SUMS = (
    CLIENTS,
    Derived("Wt", ("p", "omega"), MeanOverClients((p * n.omega - 1) ** 2), "its definition"),
    Derived("Qt", ("p", "omega"), MeanOverClients(p * n.omega**2), "its definition"),
)
DESCENT_ERRATUM = "descent-lemma"


def one_step_forms(sums: Three, printed: Form) -> tuple[Form, ...]:
    """The printed lemma, where it holds verbatim, with two constants repaired, and with every constant kept small."""
    forms = (
        printed,
        Form(
            "repaired",
            descent_terms(*REPAIRED_STEP, *sums),
            (LOCAL_CAP, GLOBAL_CAP),
            note="9/8 for 17/16, and 17/5 for 27/8 at the second moment of the weights: the cross term of noise and "
            "drift, kept",
        ),
        Form(
            "repaired:smaller-cap",
            descent_terms(*PRINTED_STEP, *sums),
            (SMALLER_CAP, GLOBAL_CAP),
            note="as printed, with local steps small enough to pay for the cross term",
        ),
        Form(
            "repaired:I=1",
            descent_terms(*PRINTED_STEP, *sums),
            (LOCAL_CAP, GLOBAL_CAP, ONE_LOCAL_STEP),
            note="as printed, for one local step",
        ),
        Form(
            "sharp",
            descent_terms(*TIGHT_STEP, *sums),
            (DRIFT_CAP, GLOBAL_CAP),
            note="the cross term weighed by Young's inequality, the averaged drift at its limit e - 2, all slopes kept",
        ),
    )
    rest = ((*ONE_STEP, OBJECTIVE_WEIGHTS), ANY_SUMS) if sums is ANY_OBJECTIVE else (ONE_STEP, MEAN_SUMS)
    return tuple(replace(form, assumptions=rest[0], derived=rest[1]) for form in forms)


LEMMA_B_3_3 = new_result(
    "lemma-b.3.3",
    "General descent lemma",
    single(
        "increase of f~ over one round",
        r"\mathbb E_t\tilde f(\mathbf x_{t+1})-\tilde f(\mathbf x_t)",
        OBJECTIVE,
        expectation="gradient noise and participation",
        given="x_t and the weights",
        signed=True,
    ),
    "One round, for any objective f~ and any weights made of the past. The divergence is used at x_t only, "
    "so its value there will do.",
    one_step_forms(
        ANY_OBJECTIVE,
        Form(
            "printed",
            descent_terms(*PRINTED_STEP, *ANY_OBJECTIVE),
            (LOCAL_CAP, GLOBAL_CAP),
            refuted_by=DESCENT_ERRATUM,
            note="eq. (B.3.5); (B.3.8)(a) drops the correlation of the noise with the later gradients of its client",
        ),
    ),
    equations=("B.3.5",),
    default="sharp",
)
LEMMA_B_5_1 = new_result(
    "lemma-b.5.1",
    "Descent lemma for f itself",
    replace(
        LEMMA_B_3_3.measure, of="increase of f over one round", latex=r"\mathbb E_tf(\mathbf x_{t+1})-f(\mathbf x_t)"
    ),
    "Lemma B.3.3 for varphi_n = 1/N, with delta for 2 delta. The paper states it without step sizes; it "
    "needs those of Lemma B.3.3. gradsq is |grad f(x_t)|^2.",
    one_step_forms(
        MEAN_OBJECTIVE,
        Form(
            "printed",
            descent_terms(*PRINTED_STEP, *MEAN_OBJECTIVE),
            (),
            refuted_by=DESCENT_ERRATUM,
            note="eq. (B.5.1), printed without a condition on the step sizes",
        ),
    ),
    equations=("B.5.1",),
    default="sharp",
)

RESULTS = (LEMMA_B_3_1, LEMMA_B_3_2, LEMMA_B_3_3, LEMMA_B_5_1)
