r"""Counterexamples about the envelope: its smoothness (Lemmas B.1 and B.3), Moreau envelopes (Corollary 2.1)."""

from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fed_norm_sgda import assumptions as given
from fedbounds.bounds.papers.fed_norm_sgda.composites import CURVATURE
from fedbounds.bounds.papers.fed_norm_sgda.errata_constants import (
    as_fraction,
    condition_checks,
    equal_clients,
    evaluate_in_fractions,
)
from fedbounds.bounds.papers.fed_norm_sgda.errata_noise import sign_noise_checks, twin_checks
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_3

ONE, HALF = Fraction(1), Fraction(1, 2)
WEIGHTS = "w and p are on the simplex"

# --- Lemma B.1 ---------------------------------------------------------------------------------------------------


def envelope_curvature(a: Fraction, b: Fraction, m: Fraction) -> Fraction:
    r"""$\phi''$ for $f=\frac a2x^2+bxy-\frac m2y^2$: the maximizer is $bx/m$, so it is $a+b^2/m$."""
    return a + b**2 / m


def printed_smoothness(L: Fraction, mu: Fraction) -> Fraction:
    r"""$\kappa L_f/2+L_f$ of Lemma B.1."""
    return L**2 / mu / 2 + L


def envelope_smoothness(mu: int = 5, b: int = 12, L: int = 13) -> Replay:
    """f = (mu/2)(x^2 - y^2) + b x y, whose eigenvalues are +-Lf: the envelope's curvature is kappa Lf."""
    mu_, b_, L_ = Fraction(mu), Fraction(b), Fraction(L)
    two = envelope_curvature(Fraction(3), Fraction(4), Fraction(3))
    return Replay(
        instance=f"f(x, y) = {mu}/2 x^2 + {b} x y - {mu}/2 y^2, in one dimension each.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "both eigenvalues squared, mu^2 + b^2 <= Lf^2", mu_**2 + b_**2, "<=", L_**2),
            Check(given.STRONGLY_CONCAVE, "-f_yy >= mu", mu, ">=", mu),
            Check(CURVATURE, "kappa = Lf/mu >= 1", L_ / mu_, ">=", 1),
        ),
        lines=(
            Line("sum of the eigenvalues of the Hessian", mu_ - mu_),
            Line("their product", -(mu_**2) - b_**2),
            Line("kappa = Lf/mu", L_ / mu_),
            Line("y*(x)/x = b/mu", b_ / mu_),
            Line("kappa Lf, the largest phi'' of a quadratic", L_**2 / mu_),
            Line("(1 + kappa) Lf", L_ + L_**2 / mu_),
        ),
        claimed=printed_smoothness(L_, mu_),
        true=envelope_curvature(mu_, b_, mu_),
        sides=("(kappa/2 + 1) Lf =", "phi'' ="),
        minimal="one dimension each, where phi'' = |product of the eigenvalues|/|f_yy| <= kappa Lf: with kappa <= 2 "
        "none exceeds (kappa/2 + 1) Lf; without curvature in x, b x y - mu y^2/2, it takes kappa > 4",
        smaller=(
            Smaller("mu = 3, b = 4, Lf = 5, kappa = 5/3", printed_smoothness(Fraction(5), Fraction(3)), two),
            Smaller("at kappa = 2 both are equal: mu = 1, b^2 = 3, Lf = 2", printed_smoothness(Fraction(2), ONE),
                    1 + Fraction(3)),
        ),
    )  # fmt: skip


def envelope_is_smooth() -> Argument:
    """(1 + kappa) Lf, and less: Lf sqrt(1 + kappa^2)."""
    kappa = Fraction(13, 5)
    return Argument(
        text="y* is kappa-Lipschitz: mu |y*(x) - y*(x')|^2 <= <grad_y f(x, y*(x')) - grad_y f(x, y*(x)), y*(x) - "
        "y*(x')> = <grad_y f(x, y*(x')) - grad_y f(x', y*(x')), y*(x) - y*(x')> <= Lf |x - x'| |y*(x) - y*(x')|. "
        "Since grad phi(x) = grad_x f(x, y*(x)), |grad phi(x) - grad phi(x')| <= Lf sqrt(|x - x'|^2 + |y*(x) - "
        "y*(x')|^2) <= Lf sqrt(1 + kappa^2) |x - x'|, which is at most (1 + kappa) Lf |x - x'|.",
        checks=(
            Check("(1 + kappa)^2", "(1 + kappa)^2 - (1 + kappa^2) = 2 kappa", (1 + kappa) ** 2 - (1 + kappa**2), "==",
                  2 * kappa),
            Check("instance", "(phi'')^2 <= Lf^2 (1 + kappa^2)", (13 * kappa) ** 2, "<=", 169 * (1 + kappa**2)),
            Check("instance", "phi'' <= (1 + kappa) Lf", 13 * kappa, "<=", 13 * (1 + kappa)),
        ),
        axioms=("Danskin's theorem", "strong monotonicity", "their application, in words"),
    )  # fmt: skip


def descent_at_the_saddle_of_the_envelope(mu: int = 5, b: Fraction = Fraction(12), L: int = 13) -> Replay:
    """One step of two clients from the saddle of the same function, with noise in x and the steps of Theorem 1."""
    form, curvature = LEMMA_B_3.form("printed"), envelope_curvature(Fraction(mu), b, Fraction(mu))
    step = Fraction(1, 2 * L) / (156 * Fraction(L, mu) ** 2)

    def sides(curvature: Fraction, L: int, mu: int, step: Fraction) -> tuple[Fraction, Fraction, dict[str, Fraction]]:
        values = equal_clients(2, 1, Lf=L, mu=mu, gammax=step, sigmaL=1, gradsq=0, gap=0, direction=0, drift=0)
        return as_fraction(evaluate_in_fractions(form.bound, values, 2)), curvature / 2 * step**2 / 2, values

    claimed, true, values = sides(curvature, L, mu, step)
    even = sides(Fraction(4), 2, 1, step)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = {mu}/2 x^2 + {b} x y - {mu}/2 y^2, w_i = 1/2, one local step from "
        f"the saddle x_t = y_t = 0, noise +1 or -1 in x, none in y; Gamma_x = {step}, the largest of Theorem 1.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "both eigenvalues squared, mu^2 + b^2 <= Lf^2", mu**2 + b**2, "<=", L**2),
            Check(given.STRONGLY_CONCAVE, "-f_yy >= mu", mu, ">=", mu),
            *sign_noise_checks(ONE, ONE, Fraction(0), ONE),
            *twin_checks(),
            *condition_checks(form, values, 2),
        ),
        lines=(
            Line("phi'' = mu + b^2/mu", curvature),
            Line("(kappa/2 + 1) Lf", printed_smoothness(Fraction(L), Fraction(mu))),
            Line("E|x_(t+1)|^2 = Gamma_x^2/2", step**2 / 2),
            Line("Gamma_x^2 phi''/4, at any step", true),
        ),
        claimed=claimed,
        true=true,
        sides=("right-hand side of (15) =", "E[Phi(x_(t+1)) - Phi(x_t)] ="),
        minimal="one local step at a saddle, where everything but the noise is 0; kappa > 2 is needed in one dimension "
        "each",
        smaller=(Smaller("kappa = 2: mu = 1, b^2 = 3, Lf = 2", even[0], even[1]),),
    )


# --- Corollary 2.1 -----------------------------------------------------------------------------------------------


def proximal_point(a: Fraction, x: Fraction, L: Fraction) -> Fraction:
    r"""$\operatorname{argmin}_u\frac a2u^2+L(u-x)^2$."""
    return 2 * L * x / (a + 2 * L)


def weighted(values: tuple[Fraction, Fraction], weights: tuple[Fraction, Fraction]) -> Fraction:
    """The weighted sum of two numbers."""
    return values[0] * weights[0] + values[1] * weights[1]


def two_envelopes(
    curvatures: tuple[Fraction, Fraction], w: tuple[Fraction, Fraction], p: tuple[Fraction, Fraction], L: Fraction
) -> tuple[Fraction, Fraction, Fraction]:
    r"""Squared gradients of both Moreau envelopes at $x=1$ and $8L^2$ times the squared distance of the proximal
    points.
    """
    points = [proximal_point(weighted(curvatures, u), ONE, L) for u in (w, p)]
    near, far = ((2 * L * (1 - u)) ** 2 for u in points)
    return near, far, 8 * L**2 * (points[0] - points[1]) ** 2


def moreau_gap(p_1: Fraction = Fraction(3, 4)) -> Replay:
    """Two clients with f_i = c_i x^2/2 near 0, so the envelopes are x^2/2 for w and 0.6 x^2 for p."""
    curvatures, w, p, L = (Fraction(7, 5), Fraction(3, 5)), (HALF, HALF), (p_1, 1 - p_1), Fraction(10)
    near, far, between = two_envelopes(curvatures, w, p, L)
    same = two_envelopes(curvatures, w, w, L)
    points = [proximal_point(weighted(curvatures, u), ONE, L) for u in (w, p)]
    return Replay(
        instance=f"Two clients f_i = c_i h(x), c = (7/5, 3/5), h = x^2/2 for |x| <= 2 and 2|x| - 2 beyond; w = (1/2, "
        f"1/2), p = ({p_1}, {1 - p_1}); Lf = {L}, T = 1, x_0 = 1.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "max c_i <= Lf", max(curvatures), "<=", L),
            Check(given.CONCAVE, "f_yy = 0, so f_i(x, .) is concave", 0, "<=", 0),
            Check(given.LIPSCHITZ, "|f_i'| <= 2 c_i <= Gx = 14/5", 2 * max(curvatures), "<=", Fraction(14, 5)),
            Check(given.NOISE, "no noise: its variance <= 0", 0, "<=", 0),
            Check(
                given.HETEROGENEITY,
                "all |f_i'| <= 14/5: sum w_i |f_i'|^2 <= sigmaG^2 = 8",
                Fraction(14, 5) ** 2,
                "<=",
                8,
            ),
            Check(given.BOUNDED_ITERATES, "f_i does not depend on y, which stays at 0: |y_t|^2 <= R", 0, "<=", 1),
            Check(given.SAMPLING, "P = n: all clients take part in every round", 2, "==", 2),
            Check(given.LOCAL_MAP, "one plain step: its coefficient", 1, ">=", 0),
            Check(WEIGHTS, "sum of w and of p", sum(w) + sum(p), "==", 2),
        ),
        lines=(
            Line("proximal point for w, 20/21, where |u| < 2", points[0]),
            Line("proximal point for p", points[1]),
            Line("epsilon'_opt = |grad of the envelope for w|^2", near),
            Line("8 Lf^2 |distance of the proximal points|^2", between),
            Line("the appendix's (55), with 2 epsilon'_opt", 2 * near + between),
        ),
        claimed=near + between,
        true=far,
        sides=("epsilon'_opt + 8 Lf^2 |x~ - x-|^2 =", "|grad of the envelope for p|^2 ="),
        minimal="one round and two clients: with one client p = w",
        smaller=(Smaller("p = w", same[0] + same[2], same[1]),),
    )


def moreau_triangle() -> Argument:
    """(55), with its 2."""
    near, far, between = two_envelopes(
        (Fraction(7, 5), Fraction(3, 5)), (HALF, HALF), (Fraction(3, 4), Fraction(1, 4)), Fraction(10)
    )
    return Argument(
        text="The gradients are 2 Lf (x - proximal point), so their difference is 2 Lf (x~ - x-), and |u + v|^2 <= "
        "2|u|^2 + 2|v|^2 gives 2 epsilon'_opt + 2 (2 Lf)^2 |x~ - x-|^2, in every round.",
        checks=(
            Check("2 (2 Lf)^2 = 8 Lf^2", "at Lf = 10", 2 * 20**2, "==", 800),
            Check("instance", "|grad for p|^2 <= (55)", far, "<=", 2 * near + between),
        ),
        axioms=("the argument in words",),
    )


# --- Around the assumptions --------------------------------------------------------------------------------------


def ascent_gradient_without_concavity() -> Argument:
    """|grad_y F|^2 <= 2 Lf delta from smoothness alone."""
    m = Fraction(3)
    return Argument(
        text="A step 1/Lf along grad_y F(x, y) raises an Lf-smooth F(x, .) by at least |grad_y F|^2/(2 Lf), and cannot "
        "raise it by more than the gap delta. So |grad_y F|^2 <= 2 Lf delta with or without concavity (A.7), where "
        "the PL section has 2 kappa Lf delta.",
        checks=(
            Check("-m y^2/2 with m <= Lf", "|grad|^2 - 2 m delta at m = 3, y = 1", m**2 - 2 * m * m / 2, "==", 0),
            Check("a step 1/Lf", "1/Lf - Lf/(2 Lf^2) = 1/(2 Lf) at Lf = 3", 1 / m - m / (2 * m**2), "==", 1 / (2 * m)),
        ),
        axioms=("the descent lemma", "its application, in words"),
    )


def different_hessians() -> Argument:
    """f_1 = x y - y^2/2 and f_2 = x^2/2 - y^2/2 along x = -y."""

    def spread(x: Fraction) -> tuple[Fraction, Fraction]:
        gradients = (-x, x)  # grad_x f_1 = y = -x, grad_x f_2 = x
        return sum((g**2 for g in gradients), Fraction(0)) / 2, (sum(gradients, Fraction(0)) / 2) ** 2

    ten, hundred = spread(Fraction(10)), spread(Fraction(100))
    return Argument(
        text="The mean of the gradients in x is a linear map with a kernel; along it the right-hand side of Assumption "
        "3 stays constant, and the left grows unless every client's gradient is a matrix times the mean. For f_1 = x y "
        "- y^2/2, f_2 = x^2/2 - y^2/2, w = (1/2, 1/2) it grows along x = -y. The gradient in x of x y is y, which no "
        "Gx bounds.",
        checks=(
            Check("mean gradient", "its square at x = 10 and at x = 100", ten[1] + hundred[1], "==", 0),
            Check("spread", "at x = 100, a hundred times that at x = 10", hundred[0], "==", 100 * ten[0]),
            Check("spread", "at x = 10 it is positive", ten[0], ">", 0),
        ),
        axioms=("the argument in words",),
    )
