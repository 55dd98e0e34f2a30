"""Counterexamples to Lemmas C.1, C.2 and C.4 as printed: noise in x that grows with the gradient in y."""

from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import CONCAVE, JOINTLY_SMOOTH, LIPSCHITZ, NOISE
from fedbounds.bounds.papers.fed_norm_sgda.errata_constants import (
    as_fraction,
    condition_checks,
    equal_clients,
    evaluate_in_fractions,
)
from fedbounds.bounds.papers.fed_norm_sgda.errata_noise import twin_checks
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_1, LEMMA_C_2, LEMMA_C_4

ONE, HALF = Fraction(1), Fraction(1, 2)
MEAN_OF_SIGNS = ((ONE, Fraction(1, 4)), (Fraction(0), HALF), (-ONE, Fraction(1, 4)))  # of two clients: value, chance


def huber(u: Fraction, knee: Fraction) -> Fraction:
    """u^2/2 up to the knee, its tangent beyond."""
    return u**2 / 2 if abs(u) <= knee else knee * abs(u) - knee**2 / 2


def one_block_checks(smooth: Fraction, Lf: Fraction, growth: Fraction, slope: Fraction, Gx: Fraction) -> list[Check]:
    """The hypotheses of Appendix C; `growth` is the variance of the noise over |grad f_i|^2 less betaL^2."""
    return [
        Check(JOINTLY_SMOOTH, "the largest curvature <= Lf", smooth, "<=", Lf),
        Check(NOISE, "mean of the noise", 0, "==", 0),
        Check(NOISE, "its variance over |grad_y f_i|^2 <= |grad f_i|^2, less betaL^2", growth, "<=", 0),
        *twin_checks(),
        Check(CONCAVE, "-f_yy >= 0", 0, ">=", 0),
        Check(LIPSCHITZ, "|grad_x f_i| <= Gx", slope, "<=", Gx),
    ]


# --- Lemma C.1 -----------------------------------------------------------------------------------------------------


def envelope_round(beta: Fraction, step: Fraction, knee: Fraction) -> tuple[Fraction, Fraction, dict[str, Fraction]]:
    r"""One round from (0, 1) of $f=h(x)-\frac12y^2$, h the Huber function: the bound of Lemma C.1 and the increase of
    the Moreau envelope, which is $\frac13x^2$ as long as its proximal point $\frac23x$ is below the knee.
    """
    moved = [(step * beta * sign, chance) for sign, chance in MEAN_OF_SIGNS]
    assert all(2 * abs(x) / 3 <= knee for x, _ in moved)
    values = equal_clients(2, 1, Lf=1, betaL=beta, Gx=knee, gammax=step, gradsq=0, gap=HALF, drift=0)
    bound = as_fraction(evaluate_in_fractions(LEMMA_C_1.form("printed").bound, values, 2))
    return bound, sum((chance * x**2 / 3 for x, chance in moved), Fraction(0)), values


def one_block_in_c_1(beta: Fraction = Fraction(32), step: Fraction = Fraction(1, 64)) -> Replay:
    """f_i = h(x) - y^2/2 at the minimizer of h: the noise moves x, and the bound sees Gx only."""
    knee = Fraction(1, 3)
    claimed, true, values = envelope_round(beta, step, knee)
    form = LEMMA_C_1.form("printed")
    return Replay(
        instance="n = P = 2 identical clients f_i = h(x) - y^2/2, h = x^2/2 for |x| <= 1/3 and |x|/3 - 1/18 beyond, "
        f"one local step from x_t = 0, y_t = 1; betaL = {beta}, sigmaL = 0, noise betaL |y| times +1 or -1, all of it "
        f"in x; Gamma_x = {step}.",
        hypotheses=(*one_block_checks(ONE, ONE, Fraction(0), knee, knee), *condition_checks(form, values, 2)),
        lines=(
            Line("|grad_x f_i| at x_t", 0),
            Line("|grad_y f_i|^2 at y_t", 1),
            Line("x_(t+1) if both signs agree, Gamma_x betaL", step * beta),
            Line("Moreau envelope there, x^2/3", (step * beta) ** 2 / 3),
            Line("the dual gap, y^2/2", HALF),
            *(
                Line(f"right-hand side, {term.name}", as_fraction(evaluate_in_fractions(term.expression, values, 2)))
                for term in form.terms
            ),
        ),
        claimed=claimed,
        true=true,
        sides=("right-hand side of Lemma C.1 =", "increase of the Moreau envelope ="),
        minimal="one local step, one dimension each, no heterogeneity",
        smaller=(
            Smaller("betaL = 16", *envelope_round(Fraction(16), step, knee)[:2]),
            Smaller("betaL = 0", *envelope_round(Fraction(0), step, knee)[:2]),
        ),
    )


# --- Lemma C.2 -----------------------------------------------------------------------------------------------------


def drift_of_one_block(y: Fraction) -> tuple[Fraction, Fraction, dict[str, Fraction]]:
    r"""Two local steps of $f=-\frac12y^2$, $\eta_x=1$, $\eta_y=0$, $\beta_L=1$: the bound of Lemma C.2 and $X_t$."""
    values = equal_clients(2, 2, Lf=1, betaL=1, Gx=1, etax=1, etay=0, staledual=y**2 / 2)
    bound = as_fraction(evaluate_in_fractions(LEMMA_C_2.form("printed").bound, values, 2))
    return bound, y**2 / 2, values  # the second of two local models is y away from the start


def one_block_in_c_2(y: Fraction = Fraction(5)) -> Replay:
    """f_i = -y^2/2 with the noise in x: the local x moves as far as y is large."""
    claimed, true, values = drift_of_one_block(y)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = -y^2/2, two local steps with eta_x = 1, eta_y = 0 from y_t = {y}; "
        "betaL = 1, sigmaL = 0, Gx = 1, noise |y| times +1 or -1, all of it in x.",
        hypotheses=(
            *one_block_checks(ONE, ONE, Fraction(0), Fraction(0), ONE),
            *condition_checks(LEMMA_C_2.form("printed"), values, 2),
        ),
        lines=(
            Line("grad_x f_i", 0),
            Line("E|x_i^(t,1) - x_t|^2 = eta_x^2 betaL^2 y^2", y**2),
            Line("X_t, its mean over the two local models", y**2 / 2),
            Line("D = 1 + betaL^2", values["D"]),
            Line("4 Lf^2 D eta_x^2 Gx^2", 4 * values["D"]),
        ),
        claimed=claimed,
        true=true,
        sides=("right-hand side of Lemma C.2 =", "X_t ="),
        minimal="fewest local steps: the first local model has not moved",
        smaller=(Smaller("y_t = 4", *drift_of_one_block(Fraction(4))[:2]),),
    )


# --- Lemma C.4 -----------------------------------------------------------------------------------------------------


def stale_gap(beta: Fraction, slope: Fraction, step: Fraction) -> tuple[Fraction, Fraction, dict[str, Fraction]]:
    r"""Two rounds from (0, 1) of $f=-h(y-\epsilon x)$, h the Huber function with knee 1, $\Gamma_y=1$, $S=T=2$: the
    bound of Lemma C.4 and the average dual gap.
    """
    # y_1 = 1 - Gamma_y h'(1) = 0 and x_1 = -Gamma_x (slope + beta times the mean of the signs)
    gaps = [(huber(slope * step * (slope + beta * sign), ONE), chance) for sign, chance in MEAN_OF_SIGNS]
    average = (HALF + sum((chance * gap for gap, chance in gaps), Fraction(0))) / 2
    stale = (HALF + huber(Fraction(0), ONE)) / 2
    values = equal_clients(2, 1, Lf=2, betaL=beta, Gx=slope, gammax=step, S=2, staledual=stale)
    return as_fraction(evaluate_in_fractions(LEMMA_C_4.form("printed").bound, values, 2)), average, values


def one_block_in_c_4(
    beta: Fraction = Fraction(4), slope: Fraction = Fraction(1, 16), step: Fraction = Fraction(8)
) -> Replay:
    """f_i = -h(y - x/16): x is thrown far by noise that grows with the gradient in y, 16 times that in x."""
    claimed, true, values = stale_gap(beta, slope, step)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = -h(y - {slope} x), h(u) = u^2/2 for |u| <= 1 and |u| - 1/2 "
        f"beyond; one local step, Gamma_x = {step}, Gamma_y = 1, S = T = 2, x_0 = 0, y_0 = 1; betaL = {beta}, sigmaL = "
        "0, noise betaL |grad_y f_i| times +1 or -1, all of it in x.",
        hypotheses=(
            *one_block_checks(1 + slope**2, Fraction(2), Fraction(0), slope, slope),
            *condition_checks(LEMMA_C_4.form("printed"), values, 2),
        ),
        lines=(
            Line("dual gap in round 0, stale or not", HALF),
            Line("y_1 = y_0 - Gamma_y", 0),
            Line("stale dual gap in round 1", 0),
            Line("x_1 if both signs are -1", -step * (slope - beta)),
            Line("expected dual gap in round 1", 2 * true - HALF),
            Line("I_1 = Gx sqrt(1 + betaL^2/2), squared", slope**2 * (1 + beta**2 / 2)),
        ),
        claimed=claimed,
        true=true,
        sides=("right-hand side of Lemma C.4 =", "average dual gap ="),
        minimal="one local step, two rounds: with S = 1 no snapshot is stale",
        smaller=(Smaller("betaL = 0", *stale_gap(Fraction(0), slope, step)[:2]),),
    )
