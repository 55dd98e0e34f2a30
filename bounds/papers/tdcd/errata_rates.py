r"""Counterexamples about rates: Remark 3's order, Remark 5, N silos, and time.

With $f=\frac12x^2$ and noise $\xi=\pm1$ once a round, $x_{r+1}=\rho x_r-(1-\rho)\xi_r$, $\rho=(1-\eta)^Q$: the mean
square stays at $\frac{1-\rho}{1+\rho}$.
"""

from fractions import Fraction
from math import isqrt

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.tdcd.assumptions import UNBIASED_CLIENTS, UNBIASED_SILOS
from fedbounds.bounds.papers.tdcd.errata_algorithm import PARABOLA, cap_check
from fedbounds.bounds.papers.tdcd.results import CAP

ONE_SILO, BOUNDED_GRADIENTS = "N = 1, one client", "stochastic gradients are at most G = 2"
SAME_PROBLEM = "one problem, its parameters divided among N silos"
RESTING = "the step size is chosen anew for every Q, in (14)"


# --- Remark 3 -------------------------------------------------------------------------------------------------------


def stationary_square(eta: Fraction, Q: int) -> Fraction:
    """The mean square that stays, with one draw of the noise for the Q steps of a round."""
    kept = (1 - eta) ** Q
    return (1 - kept) / (1 + kept)


def local_sgd(eta: Fraction, Q: int, R: int) -> tuple[Fraction, Fraction]:
    """The bound of Yu et al. with K = L = sigma = 1, G = 2, and the mean square that stays, where TDCD starts."""
    square = stationary_square(eta, Q)
    return square / (eta * Q * R) + eta + 4 * eta**2 * Q**2 * 4, square


def order_of_local_steps() -> Replay:
    """One client, fifty local steps on one draw of the noise."""
    eta, Q, R = Fraction(1, 10**6), 50, 10**6
    claimed, true = local_sgd(eta, Q, R)
    return Replay(
        instance="One client, f = x^2/2, noise +-1 with probability 1/2, drawn once a round; Q = 50, eta = 10^-6, R "
        "= 10^6; x_0^2 is the mean square that stays.",
        hypotheses=(
            *PARABOLA[:3],
            Check(UNBIASED_CLIENTS, "E noise = 0, E noise^2 = sigma^2", 1, "==", 1),
            cap_check(eta, Q),
            Check(ONE_SILO, "number of clients", 1, "==", 1),
            Check(BOUNDED_GRADIENTS, "|x| never exceeds 1, so that |x + noise| <= 2", 2, "<=", 2),
        ),
        lines=(
            Line("E x_r^2 with noise drawn anew in every step", stationary_square(eta, 1)),
            Line("E x_r^2 with noise drawn once a round of 50", true),
            Line("ratio for 2 local steps", stationary_square(eta, 2) / stationary_square(eta, 1)),
            Line("ratio for 10", stationary_square(eta, 10) / stationary_square(eta, 1)),
            Line("ratio for 50", true / stationary_square(eta, 1)),
        ),
        claimed=claimed,
        true=true,
        sides=("2 Delta/(eta Q R) + eta L sigma^2/K + 4 eta^2 Q^2 L^2 G^2", "average of E|grad f|^2"),
        minimal="with one local step a batch a round is a batch a step; fewer than 50 leave a smaller factor",
        smaller=(Smaller("one local step", *local_sgd(eta, 1, R)),),
    )


# --- Remark 5 -------------------------------------------------------------------------------------------------------


def scaled_step(c: int, R: int = 1) -> tuple[Fraction, Fraction]:
    """Remark 5 without noise, and the average, for f = x^2/2 from 1 with Q = 1 and eta = c/sqrt(R); R is a square."""
    root = isqrt(R)
    average = sum(((1 - Fraction(c, root)) ** (2 * r) for r in range(R)), Fraction(0)) / R
    return Fraction(2, c * root), average


def rounds_that_remark_5_needs() -> Replay:
    """A step size that is too large for so few rounds."""
    claimed, true = scaled_step(3)
    return Replay(
        instance="One client, f = x^2/2, x_0 = 1, no noise, Q = 1, c = 3, R = 1: eta = 3.",
        hypotheses=(
            *PARABOLA[:3],
            Check(UNBIASED_SILOS, "one client, its whole data in every batch: sigma^2", 0, "==", 0),
        ),
        lines=(
            Line("eta = c/(Q sqrt(R))", 3),
            Line("x_1", -2),
            Line("rounds that (14) asks for, 64 c^2 L^2", 64 * 9),
            Line("average over R = 4 rounds with c = 6, the same step size", scaled_step(6, 4)[1]),
        ),
        claimed=claimed,
        true=true,
        sides=("4 Delta/(c sqrt(R))", "average of |grad f|^2"),
        minimal="fewest rounds, and smallest whole c",
        smaller=(Smaller("c = 2", *scaled_step(2)), Smaller("c = 1 and 64 rounds", *scaled_step(1, 64))),
    )


# --- N silos --------------------------------------------------------------------------------------------------------


def linear_in_the_silos() -> Replay:
    """A vector of noise in one block, or in two."""
    first, second = Fraction(1), Fraction(3)
    return Replay(
        instance="Two parameters with independent noise of variances 1 and 3, in one silo or in two.",
        hypotheses=(Check(SAME_PROBLEM, "parameters, divided 2 or 1 + 1", 2, "==", 1 + 1),),
        lines=(
            Line("sum of sigma_j^2 with one silo", first + second),
            Line("sum of sigma_j^2 with two silos", first + second),
        ),
        claimed=first + second,
        true=2 * (first + second),
        sides=("sum of sigma_j^2 with two silos", "twice that with one"),
        minimal="fewest silos",
        smaller=(Smaller("one silo", first + second, first + second),),
    )


# --- Time -----------------------------------------------------------------------------------------------------------


def best_in_time(Q: int) -> Fraction:
    """(15) without noise at its best step size: 32 m Delta/R with the rounds of 3 * 100 + Q that 10^6 holds."""
    return Fraction(32, 10**6 // (300 + Q))


def given_step(Q: int, eta: Fraction = Fraction(1, 10**4)) -> Fraction:
    """(15) with Delta = L = Lmax = S = 1 at this step size, in that time."""
    u = eta * Q
    return 4 / (u * (10**6 // (300 + Q))) + 4 * (u + 4 * u**2 + 8 * u**3)


def time_on_slow_links() -> Replay:
    """A network on which an exchange takes a hundred local steps."""
    return Replay(
        instance="Delta = L = Lmax = 1, S = 0, tcomm = 100, tcomp = 1, W = 10^6; without noise the largest step size "
        "is the best one.",
        hypotheses=(
            Check(RESTING, "eta Q at Q = 1 and at Q = 2", Fraction(1, 8), "==", 2 * Fraction(1, 16)),
            Check(CAP, "eta Q <= 1/(8 max(L, Lmax))", Fraction(1, 8), "<=", Fraction(1, 8)),
        ),
        lines=(
            Line("rounds of one local step in that time", 10**6 // 301),
            Line("rounds of two", 10**6 // 302),
            Line("(15) at its best with 10 local steps", best_in_time(10)),
            Line("(15) at its best with 100", best_in_time(100)),
            Line("at eta = 10^-4 for every Q and with S = 1, one local step", given_step(1)),
            Line("the same with 10 local steps", given_step(10)),
            Line("the same with 100", given_step(100)),
        ),
        claimed=best_in_time(1),
        true=best_in_time(2),
        sides=("(15) at its best step size in the time W, Q = 1", "the same, Q = 2"),
        minimal="fewest local steps",
        smaller=(Smaller("Q = 1", best_in_time(1), best_in_time(1)),),
    )


# --- Supplements ----------------------------------------------------------------------------------------------------


def clients_of_a_silo() -> Argument:
    """What the variance of one client says of the silo's."""
    B, variance = 12, Fraction(5)
    each = {K: variance * K / B for K in (1, 3, 12)}
    return Argument(
        "A batch of B = 12 samples falls to K clients in equal parts: the gradient of one client has the variance v "
        "K/B, that of their mean v/B for every K. With equal Hessians the hubs' models are the same for every K.",
        tuple(Check("independent samples", f"v K/B over K = {K}", v / K, "==", variance / B) for K, v in each.items()),
    )


def unbounded_noise() -> Argument:
    """The noise of sampling one of two samples, at two models."""

    def variance(x: int) -> Fraction:
        gradients = (Fraction(x), Fraction(4 * x))  # features 1 and 2, labels 0
        mean = sum(gradients, Fraction(0)) / 2
        return sum(((g - mean) ** 2 for g in gradients), Fraction(0)) / 2

    return Argument(
        "Samples with the features 1 and 2 and the label 0 have the gradients x and 4x: what sampling one of them adds "
        "grows with x^2. Along a run that stays bounded there is such a sigma_j, and Theorem 1 needs no other.",
        (
            Check("least squares", "variance at x = 1", variance(1), "==", Fraction(9, 4)),
            Check("least squares", "variance at x = 10, over that at 1", variance(10) / variance(1), "==", 100),
        ),
    )


def root_t_rounds() -> Argument:
    """(15) with L = Lmax = Delta = 1 after sqrt(T) rounds of sqrt(T) local steps each, at the largest step size."""

    def bound(root: int, S: Fraction) -> Fraction:
        u = Fraction(1, 8)
        return 4 / (u * root) + 4 * (u + 4 * u**2 + 8 * u**3) * S

    small, large = 10**2, 10**6
    each = {root: bound(root, Fraction(1, root)) * root for root in (small, large)}
    return Argument(
        "At the largest step size (15) is 32 L Delta/R + 13 S/16 for L = Lmax, whatever Q is: sqrt(T) rounds of "
        "sqrt(T) steps leave a multiple of 1/sqrt(T) if S does not exceed one. At a given S that does not vanish, "
        "and Remark 5 has T^(-1/4). K_j and N occur in S alone.",
        (
            *(Check("large batches", f"sqrt(T) times (15), sqrt(T) = {root}", value, "==", 32 + Fraction(13, 16))
              for root, value in each.items()),
            Check("a given S", "(15) at S = 1 for the larger T", bound(large, Fraction(1)), ">=", Fraction(13, 16)),
        ),
    )  # fmt: skip
