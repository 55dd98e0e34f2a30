r"""Counterexamples about FedMRN's own masks: Assumption 4, Theorem 1's amplitude, Proposition 1, Remark 1, eq. (54)."""

from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fedmrn.assumptions import (
    BELOW,
    FIXED_MASKS,
    FROZEN_MASKS,
    INDEPENDENT_MASKS,
    LIPSCHITZ,
    NOISE,
    PROGRESSIVE,
    QUADRATIC_GROWTH,
    RELATIVE_ERROR,
    SAMPLING,
    STRONGLY_CONVEX,
    SURE_GRADIENT_BOUND,
)
from fedbounds.bounds.papers.fedmrn.results import CURVATURE, SAMPLED
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

SIGNED, AT_START = "signed masks, eq. (7)", "the update is 0 at the start of a round"
HALF = Fraction(1, 2)


def signed_error(u: Fraction, n: Fraction) -> Fraction:
    """E(n m - u)^2 where m = 1 with probability (u + n)/(2n), else -1."""
    up = (u + n) / (2 * n)
    return up * (n - u) ** 2 + (1 - up) * (-n - u) ** 2


def binary_error(u: Fraction, n: Fraction) -> Fraction:
    """E(n m - u)^2 where m = 1 with probability u/n, else 0."""
    return u / n * (n - u) ** 2 + (1 - u / n) * u**2


def masking_error_at_zero() -> Replay:
    """The first thing that a client masks is 0."""
    small = Fraction(1, 100)
    return Replay(
        instance="One parameter, noise +-1, update 0.",
        hypotheses=(
            Check(SIGNED, "a mask is +1 with probability (u + n)/(2n)", (0 + 1) * HALF, "==", HALF),
            Check(AT_START, "u", 0, "==", 0),
        ),
        lines=(
            Line("E|S(u) - u|^2/|u|^2 at u = 1/100", signed_error(small, Fraction(1)) / small**2),
            Line("the same of binary masks", binary_error(small, Fraction(1)) / small**2),
            Line("E|S(0) - 0|, so that the first moment does not help", 1),
        ),
        claimed=0,
        true=signed_error(Fraction(0), Fraction(1)),
        sides=("q^2 |u|^2, whatever q is", "E|S(u) - u|^2"),
        minimal="one parameter; an update as large as the noise has no error",
        smaller=(Smaller("u = n, with q = 0", 0, signed_error(Fraction(1), Fraction(1))),),
    )


def prescribed_amplitude(kappa: int, S: int, G: int = 1, mu: int = 1) -> Fraction:
    """2 eta_0 S G with eta_0 = 2/(mu gamma)."""
    return Fraction(4 * S * G, mu * (max(8 * kappa, S) - 1))


def bound_11(T: int, q: int) -> Fraction:
    """Eq. (11) for one client, mu = L = G = S = 1, sigma = 0, from the minimizer: B = 4 q^2 and gamma = 7."""
    return Fraction(2 * 4 * q**2, 7 + T)


def frozen_amplitude() -> Replay:
    """One client, one local step: every round moves the model by the amplitude, one way or the other."""
    a = prescribed_amplitude(1, 1)
    T = next(T for T in range(2, 1000, 2) if bound_11(T, 1) < a**2 / 2)
    return Replay(
        instance="One client with F = w^2/2, one parameter, mu = L = 1, no noise, S = 1, G = 1, w_1 = w* = 0. Every "
        "iteration moves w by +-a, so w_T is an odd multiple of a at every even T.",
        hypotheses=(
            Check(QUADRATIC_GROWTH, "L = 1 is the second derivative", 1, "<=", 1),
            Check(STRONGLY_CONVEX, "mu = 1 is the second derivative", 1, ">=", 1),
            Check(CURVATURE, "mu <= L", 1, "<=", 1),
            Check(NOISE, "no noise: its variance", 0, "<=", 0),
            Check(MARTINGALE, "no noise: its mean", 0, "==", 0),
            Check(INDEPENDENT_CLIENTS, "one client: covariance", 0, "==", 0),
            Check(INDEPENDENT_MASKS, "one client: covariance", 0, "==", 0),
            Check(SAMPLING, "the one client has weight 1 and is always drawn: K", 1, "==", 1),
            Check(SAMPLED, "1 of 1", 1, "<=", 1),
            Check(FROZEN_MASKS, "a = 2 (2/7) S G", a, "==", Fraction(4, 7)),
        ),
        lines=(
            Line("a", a),
            Line("F(w_T) - F* at every even T, at least a^2/2", a**2 / 2),
            Line(f"(11) at T = {T} with q = 1, which is 8/(7 + T)", bound_11(T, 1)),
            Line("(11) at T = 4900 with q = 10", bound_11(4900, 10)),
        ),
        claimed=0,
        true=a**2 / 2,
        sides=("what O(1/T) tends to", "least F(w_T) - F* over even T"),
        minimal="one client, one parameter, one local step",
    )


def gradients_at_the_start(kappa: int, S: int) -> tuple[Fraction, Fraction]:
    """G^2 = 1 and the least E|grad F_k(x)|^2 at u = 0, where x = w +- a: (mu a)^2."""
    return Fraction(1), prescribed_amplitude(kappa, S) ** 2


def hypotheses_exclude_each_other() -> Replay:
    """Strong convexity makes the gradients at w + a and w - a differ by 2 mu a."""
    claimed, true = gradients_at_the_start(1, 2)
    return Replay(
        instance="Any F_k with mu = L = 1, one parameter, S = 2; so gamma = 7 and a = 8 G/7.",
        hypotheses=(
            Check(
                SIGNED, "noise of amplitude a = 2 eta_0 S G, at G = 1", prescribed_amplitude(1, 2), "==", Fraction(8, 7)
            ),
            Check(AT_START, "x = w +- a with probability 1/2 each: mean of x - w", 0, "==", 0),
            Check(STRONGLY_CONVEX, "|grad F_k(w + a) - grad F_k(w - a)| >= 2 mu a: mu", 1, ">=", 1),
        ),
        lines=(
            Line("largest d for kappa = 10, S = 5: (gamma/(4S))^2", Fraction(79, 20) ** 2),
            Line(
                "for quadratics with tight L, 2 eta_0 S L <= 1 is needed; it is 4 S kappa/(8 kappa - 1), at least",
                Fraction(4 * 2, 8),
            ),
        ),
        claimed=claimed,
        true=true,
        sides=("G^2", "least E|grad F_k(x)|^2"),
        minimal="one parameter, fewest local steps",
        smaller=(Smaller("one local step", *gradients_at_the_start(1, 1)),),
    )


def room_for_masks() -> Argument:
    """A strongly convex problem on which the repaired amplitude leaves slack."""
    S, L, G = 2, 4, 1
    eta = Fraction(2, 8 * L)
    a = eta * S * G
    return Argument(
        "With a = eta_{t_0} S G the same argument needs eta_{t_0} S mu sqrt(d) <= 1 only, and a larger declared L "
        "makes every step as small as one likes: at mu = 1, d = 2, S = 2 and L = 4 it takes 1/32 of G^2.",
        (Check("amplitude of the first round", "E|grad F_k(x) - grad F_k(w)|^2 <= d (mu a)^2", 2 * a**2, "<=", G**2),),
    )


def progressive_error(S: int) -> tuple[Fraction, Fraction]:
    """Both factors of q^2: the printed one, and the mean of the chance to be masked."""
    printed = sum((Fraction(tau**2, S**2) for tau in range(1, S + 1)), Fraction(0)) / S
    return printed, sum((Fraction(tau, S) for tau in range(1, S + 1)), Fraction(0)) / S


def squared_probability() -> Replay:
    """An update of one parameter, kept or doubled by chance: q = 1."""
    claimed, true = progressive_error(2)
    return Replay(
        instance="One parameter, S(x) = 0 or 2x with probability 1/2 each (q = 1), S = 2 local steps: masked with "
        "probability 1/2 in the first, surely in the second.",
        hypotheses=(
            Check(RELATIVE_ERROR, "E S(x)/x", HALF * 0 + HALF * 2, "==", 1),
            Check(RELATIVE_ERROR, "E|S(x) - x|^2/x^2 <= q^2", HALF + HALF, "<=", 1),
            Check(PROGRESSIVE, "chance to be masked in the first step", HALF, "==", HALF),
        ),
        lines=(
            Line("error in the first step: 1/2 of q^2", HALF),
            Line("error in the second step", 1),
            Line("their mean at S = 4", progressive_error(4)[1]),
            Line("the printed one at S = 4", progressive_error(4)[0]),
        ),
        claimed=claimed,
        true=true,
        sides=("mean of (tau/S)^2", "mean of E|S_PM(x) - x|^2/x^2"),
        minimal="fewest local steps",
        smaller=(Smaller("one local step", *progressive_error(1)),),
    )


def one_local_step() -> Replay:
    """With one local step every gradient is taken at a masked model."""
    a = Fraction(2)
    return Replay(
        instance="One client, one parameter, S = 1, eta = 1, G = 1: noise +-2 (Theorem 2's amplitude).",
        hypotheses=(Check(SIGNED, "noise of amplitude a = 2 eta S G", a, "==", 2), Check(AT_START, "u", 0, "==", 0)),
        lines=(
            Line("mean of x - w, with +-2 equally likely", HALF * a - HALF * a),
            Line("E|x - w|^2", signed_error(Fraction(0), a)),
            Line("the same of SignSGD, whose gradient is taken at w", 0),
        ),
        claimed=0,
        true=signed_error(Fraction(0), a),
        sides=("(17) at S = 1", "E|w_bar_t - x_t|^2"),
        minimal="one client, one parameter, one local step",
    )


def slope(w: Fraction) -> Fraction:
    """F': 1 per unit above the minimizer 0 and 1/2 below, nowhere more than 1."""
    return min(w, Fraction(1)) if w >= 0 else max(w / 2, Fraction(-1))


def sides_of_12(N: int, q: int) -> tuple[Fraction, Fraction]:
    """(12) at T = 4 for N = K clients with L = G = S = 1 from the minimizer, and (E w_1)^2/4, at most its left side."""
    mean = -HALF * (slope(Fraction(1)) + slope(Fraction(-1))) / 2
    return Fraction(4 * q**2, N) / 2, mean**2 / 4 / 4


def many_clients_leave_the_minimizer() -> Replay:
    """All clients have one function, whose slope is not the same on both sides of its minimizer."""
    N = 2049
    claimed, true = sides_of_12(N, 1)
    points = [Fraction(k, 4) for k in range(-12, 13)]
    steepest = max(abs(slope(v) - slope(u)) / abs(v - u) for u in points for v in points if u != v)
    return Replay(
        instance=f"{N} clients with one function of one parameter, F' = w for 0 <= w <= 1, w/2 for -2 <= w <= 0, and "
        "1 and -1 beyond; no noise, K = N, S = 1, T = 4, w_0 = 0; L = G = 1, so eta = 1/2 and a = 1; q = 1. For "
        "another q, more than 2048 q^2 clients.",
        hypotheses=(
            Check(LIPSCHITZ, "steepest |F'(v) - F'(u)|/|v - u|", steepest, "<=", 1),
            Check(BELOW, "F(0) = F*", 0, "<=", 0),
            Check(NOISE, "no noise: its variance", 0, "<=", 0),
            Check(MARTINGALE, "no noise: its mean", 0, "==", 0),
            Check(INDEPENDENT_CLIENTS, "no noise: covariance between clients", 0, "==", 0),
            Check(SURE_GRADIENT_BOUND, "largest |F'| <= G", max(map(abs, map(slope, points))), "<=", 1),
            Check(INDEPENDENT_MASKS, "each draws its own: covariances", 0, "==", 0),
            Check(SAMPLING, "weights 1/N, all clients take part: K", N, "==", N),
            Check(SAMPLED, "all of them", N, "<=", N),
            Check(FIXED_MASKS, "a = 2 eta S G", 2 * HALF, "==", 1),
        ),
        lines=(
            Line("mean gradient at w_0 +- a = +-1", (slope(Fraction(1)) + slope(Fraction(-1))) / 2),
            Line("E w_1, of one client as of all together", -HALF * (slope(Fraction(1)) + slope(Fraction(-1))) / 2),
            Line("E F'(w_1)^2 >= (E w_1)^2/4", 4 * true),
        ),
        claimed=claimed,
        true=true,
        sides=("(12), with P = 4 q^2/N and Q = 0", "mean of E F'(w_t)^2, at least"),
        minimal="one parameter, one local step; with as many clients as make both sides equal, this shows nothing",
        smaller=(
            Smaller("2048 clients", *sides_of_12(2048, 1)),
            Smaller("8192 clients at q = 2", *sides_of_12(8192, 2)),
        ),
    )


def value_gap(N: int) -> tuple[Fraction, Fraction]:
    """(54)'s second line as printed, and what it bounds, for centers +-1 (or one at 0), at x_k = w_bar = w* = 0."""
    eta, L = Fraction(1, 4), 1
    Gamma = HALF if N == 2 else Fraction(0)
    turned = 2 * eta * (1 - 2 * L * eta)
    printed = turned * (eta * L - 1) * Gamma + (4 * L * eta**2 + turned * eta * L) * Gamma
    return printed, 4 * L * eta**2 * Gamma


def wrong_minimum() -> Replay:
    """Two clients whose minima are not that of their mean."""
    claimed, true = value_gap(2)
    return Replay(
        instance="F_1 = (w - 1)^2/2, F_2 = (w + 1)^2/2, eta_t = 1/4, L = 1, all models at w* = 0.",
        hypotheses=(
            Check(QUADRATIC_GROWTH, "L = 1 is the second derivative", 1, "<=", 1),
            Check(STRONGLY_CONVEX, "mu = 1 is the second derivative", 1, ">=", 1),
            Check("eta_t <= 1/(4L)", "eta_t", Fraction(1, 4), "<=", Fraction(1, 4)),
        ),
        lines=(Line("Gamma = F* - mean of F_k*", HALF), Line("the same line with F* for F_k*", Fraction(5, 32))),
        claimed=claimed,
        true=true,
        sides=("(54), second line", "C of (52)"),
        minimal="fewest clients",
        smaller=(Smaller("one client", *value_gap(1)),),
    )


def masks_exceed_gradient_bound() -> Argument:
    """Rounds in which all masks point one way."""
    rounds = [Fraction(2, 7 + t) for t in range(1, 6)]
    return Argument(
        "A mask is +a with the chance (1 + u/a)/2, which is 0 only where every gradient of the round is G; as "
        "gradients at w + a and w - a differ, all clients' masks point up together with some chance in every round, "
        "and so they do down. After rounds of the amplitudes a_1, ..., a_R the highest and the lowest model are 2 "
        "sqrt(d) (a_1 + ... + a_R) apart, so by strong convexity one of their gradients is at least mu sqrt(d) (a_1 + "
        "... + a_R), where mu a_r = 2 S G/(gamma + t_0): at least 2 G log((gamma + T)/(gamma + 1)) in T - 1 "
        "iterations. At gamma = 7, d = S = 1, F = w^2/2 and w_1 = 0 the fifth round ends beyond G.",
        (
            Check("as many rounds as G may bound", "(a_1 + ... + a_4)/G", sum(rounds[:4], Fraction(0)), "<=", 1),
            Check("one more", "(a_1 + ... + a_5)/G", sum(rounds, Fraction(0)), ">", 1),
        ),
    )


# --- Supplements ----------------------------------------------------------------------------------------------------


def binary_bias() -> Argument:
    """Half of the noise has the wrong sign."""
    u = HALF
    mean = HALF * u / 1 * 1 + HALF * 0
    return Argument(
        "A coordinate whose noise has the other sign than its update is not moved at all, so with noise of either sign "
        "the mean of a binary mask is u/2: one parameter, noise +-1, u = 1/2.",
        (Check("binary masks", "E S(u) over noise and masks", mean, "==", u / 2),),
    )


def idle_sign() -> Argument:
    """The sign of the noise is lost."""
    u, a = Fraction(1, 3), Fraction(1)
    plus, minus = (u + a) / (2 * a), 1 - (u - a) / (-2 * a)
    return Argument(
        "A signed mask on noise -a is +a with the same probability as one on noise a.",
        (Check("signed masks", "chance of +a under n = a and under n = -a", plus, "==", minus),),
    )


def dimension() -> Argument:
    """The error in d coordinates."""
    d, a = 5, Fraction(1, 2)
    each = signed_error(Fraction(0), a)
    return Argument(
        "At u = 0 the error of signed masks is d a^2 exactly, so every constant that bounds it grows with d.",
        (Check("signed masks", "sum over d = 5 coordinates of a^2", d * each, "==", d * a**2),),
    )
