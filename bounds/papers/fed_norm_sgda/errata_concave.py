r"""Counterexamples about Theorem 4's ascent, Lemma C.3: the bound 4R and the condition behind 1/4."""

from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import (
    BOUNDED_ITERATES,
    CONCAVE,
    JOINTLY_SMOOTH,
    LIPSCHITZ,
    NOISE,
    ONE_POINT_CONCAVE,
)
from fedbounds.bounds.papers.fed_norm_sgda.errata_constants import condition_checks, equal_clients
from fedbounds.bounds.papers.fed_norm_sgda.errata_noise import twin_checks
from fedbounds.bounds.papers.fed_norm_sgda.errata_rates import ASCENT_CAP, SECOND_CAP
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_3

ONE, ZERO = Fraction(1), Fraction(0)
PRINTED = LEMMA_C_3.form("printed")
HYPOTHESES = (*PRINTED.assumptions, ONE_POINT_CONCAVE, *PRINTED.conditions)


def ascent_block(ascent: Fraction, top: Fraction, S: int) -> tuple[Fraction, Fraction, Fraction]:
    r"""Ascent on $-\frac12(y-\text{top})^2$ from 0 over a block of $S$ rounds."""
    y, gaps, most = ZERO, ZERO, ZERO
    for _ in range(S):
        gaps += (y - top) ** 2 / 2
        y += ascent * (top - y)
        most = max(most, y**2)
    return most, 4 * most / (ascent * S), gaps / S


def bound_on_the_iterates_only(top: Fraction = ONE, S: int = 1) -> Replay:
    """f_i = -(y - 1)^2/2 from y_0 = 0: after one round y is at 1/16, far from its maximizer."""
    ascent = Fraction(1, 16)
    R, claimed, true = ascent_block(ascent, top, S)
    four = ascent_block(ascent, top, 4)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = -(y - {top})^2/2, no noise, one local step; Gamma_y = {ascent}, "
        f"S = T = {S}, y_0 = 0; R = max_t |y_t|^2 = {R}.",
        hypotheses=(
            Check(JOINTLY_SMOOTH, "|f''| = 1 <= Lf", 1, "<=", 1),
            Check(NOISE, "no noise: its variance <= 0", 0, "<=", 0),
            *twin_checks(),
            Check(CONCAVE, "-f_yy >= 0", 1, ">=", 0),
            Check(LIPSCHITZ, "f_i does not depend on x: |grad_x f_i| <= Gx", 0, "<=", 1),
            Check(
                ONE_POINT_CONCAVE, "a concave f_i is one-point concave, and both have the same maximizer", 1, ">=", 0
            ),
            Check(BOUNDED_ITERATES, "max over t <= T of |y_t|^2 <= R", R, "<=", R),
            *condition_checks(PRINTED, equal_clients(2, Lf=1, etay=0, Gammay=ascent), 2),
        ),
        lines=(
            Line("y_1 = Gamma_y", ascent * top),
            Line("|y*|^2, which nobody bounds", top**2),
            Line("|y_0 - y*|^2, which the proof takes to be at most 4R", top**2),
            Line("4R", 4 * R),
            Line("the right-hand side with R = |y*|^2", 4 * top**2 / (ascent * S)),
        ),
        claimed=claimed,
        true=true,
        sides=("4R/(Gamma_y S), all other terms 0 =", "average of max_y F - F(y_t) ="),
        minimal="one round, one dimension, no noise; longer blocks let y_t come near y*",
        smaller=(Smaller("S = T = 4", four[1], four[2]), Smaller("y* = y_0 = 0", *ascent_block(ascent, ZERO, 1)[1:])),
    )


def bound_on_the_maximizer_too() -> Argument:
    """4R with both in the ball."""
    ascent = Fraction(1, 16)
    return Argument(
        text="|y_t - y*|^2 <= 2|y_t|^2 + 2|y*|^2 <= 4R if |y*(x^(s))|^2 <= R as well as E|y_(sS)|^2 <= R; only the "
        "first iterate of each block is needed. Theorems 2, 3 and 4 need the same.",
        checks=(
            Check("2 + 2", "(|u| + |v|)^2 <= 2|u|^2 + 2|v|^2 at |u| = |v| = 1, with equality", 4, "==", 2 + 2),
            Check("instance", "average gap 1/2 <= 4/Gamma_y", Fraction(1, 2), "<=", 4 / ascent),
        ),
        axioms=("the argument in words",),
    )


def quarter(n: int = 3, P: int = 2) -> Replay:
    """Three clients, two of them drawn, all weight on one: both caps are met with equality."""
    r, d, share = Fraction(n, P), Fraction(n - P, n - 1), Fraction(P - 1, n - 1)
    growth = Fraction(1, 2)  # betaL^2; W = Q = K = 1
    ascent = Fraction(1, 16) / (r * max(share, growth, d))

    def value(clients: int, drawn: int, noise: Fraction) -> Fraction:
        many, few = Fraction(clients, drawn), Fraction(clients - drawn, clients - 1)
        second = Fraction(drawn - 1, clients - 1)
        step = Fraction(1, 16) / (many * max(second, noise, few))
        return 2 * step * many * (second + few + noise)

    return Replay(
        instance=f"n = {n}, P = {P}, w = (1, 0, 0), one local step, Lf = betaG = 1, betaL^2 = 1/2; Gamma_y = {ascent}.",
        hypotheses=(
            Check(ASCENT_CAP, "2 Gamma_y Lf (n/P) max{(P-1)/(n-1), betaL^2 K}", 2 * ascent * r * max(share, growth),
                  "<=", Fraction(1, 8)),
            Check(SECOND_CAP, "2 Gamma_y Lf (n/P) max{betaL^2 Q, dW}", 2 * ascent * r * max(growth, d), "<=",
                  Fraction(1, 8)),
        ),
        lines=(
            Line("(P-1)/(n-1)", share),
            Line("d = (n-P)/(n-1), and W = 1", d),
            Line("S_1 = dW + betaL^2 Q", d + growth),
            Line("n/P", r),
        ),
        claimed=Fraction(1, 4),
        true=2 * ascent * r * (share + d + growth),
        sides=("what the proof of Lemma C.3 says it is at most, 1/4 =",
               "2 Gamma_y Lf (n/P) [(P-1)/(n-1) + betaG^2 S_1] ="),
        minimal="three quantities of at most 1/8 each; with full participation or betaL = 0 two are left",
        smaller=(
            Smaller("betaL = 0", Fraction(1, 4), value(n, P, ZERO)),
            Smaller("P = n = 3", Fraction(1, 4), value(3, 3, Fraction(1, 2))),
        ),
    )  # fmt: skip


def three_eighths() -> Argument:
    """The lemma stands with 3/8."""
    bad = Fraction(3, 8)
    return Argument(
        text="The three parts are at most 1/8 each, so both brackets of (71) are at least 1 - 3/8 and at most 1 + 3/8. "
        "With 8 eta_y^2 Lf^2 D betaG^2 <= 1/8 the coefficient of the gap is at most -2 Gamma_y (5/8) + Gamma_y "
        "(11/8)(1/8) = -69/64 Gamma_y <= -Gamma_y, and the drift's is 2 (11/8) <= 4: Lemma C.3 keeps its constants.",
        checks=(
            Check("sum", "three times 1/8", 3 * Fraction(1, 8), "==", bad),
            Check("gap", "-2 (1 - 3/8) + (1 + 3/8)/8", -2 * (1 - bad) + (1 + bad) / 8, "==", -Fraction(69, 64)),
            Check("gap", "-69/64 <= -1", -Fraction(69, 64), "<=", -1),
            Check("drift", "2 (1 + 3/8) <= 4", 2 * (1 + bad), "<=", 4),
        ),
    )
