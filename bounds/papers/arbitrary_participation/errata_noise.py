"""Counterexamples about the noise (what Theorem 3.1 needs), Lemma C.2, and the toy example.

The clients' functions are F_n(x) = x^2/2 where nothing else is said: L = 1, f* = 0 and no divergence at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fedbounds.bounds.audit.counterexample import (
    Argument,
    Check,
    Line,
    Replay,
    Smaller,
    exp_above,
    root_above,
    root_below,
)

CAPS = ("gamma <= 1/(12LIP)", "gamma eta <= 1/(2LIP)", "P <= T/2")


def theorem_checks(gamma: Fraction, step: Fraction, P: int, T: int, rho2: Fraction, equal: int) -> tuple[Check, ...]:
    """Hypotheses of Theorem 3.1 for F_n = x^2/2, I = 1; step is gamma eta; `equal` clients share a round equally."""
    weight = Fraction(1, equal)
    return (
        Check("smooth", "F_n'' = 1 <= L", 1, "<=", 1),
        Check("participation-divergence", "identical clients: (5)", 0, "<=", 0),
        Check("cohort-divergence", "identical clients: (6)", 0, "<=", 0),
        Check("window-divergence", "identical clients: (7)", 0, "<=", 0),
        Check("weights", "the weights of a round sum to 1", equal * weight, "==", 1),
        Check("participation-norm", "sum_n (q_t^n)^2 <= rho^2", equal * weight**2, "<=", rho2),
        Check("bounded-below", "f = x^2/2 >= 0 = f*", 0, ">=", 0),
        Check(CAPS[0], CAPS[0], gamma, "<=", Fraction(1, 12 * P)),
        Check(CAPS[1], CAPS[1], step, "<=", Fraction(1, 2 * P)),
        Check(CAPS[2], CAPS[2], P, "<=", Fraction(T, 2)),
    )


def theorem_bound(gamma: Fraction, step: Fraction, P: int, T: int, rho2: Fraction, F: Fraction) -> Fraction:
    """Theorem 3.1 with the constants of its proof, L = I = sigma = 1 and no divergence."""
    return 8 * F / (step * T) + 21 * gamma**2 + 18 * gamma**2 * P * rho2 + 4 * step * rho2


# --- E8, U1: noise that the clients share ------------------------------------------------------------------------


def shared_noise(N: int = 7, T: int = 200, rounds: int = 200) -> Replay:
    """q = 1/N, I = P = 1, gamma eta = 1/2, the same unit noise at every client: E x^2 decreases towards 1/3."""
    gamma, a, F = Fraction(1, 1000), Fraction(1, 2), Fraction(1, 2)
    rho2 = Fraction(1, N)
    m, fixed, above = Fraction(1), a / (2 - a), True
    for _ in range(min(T, rounds, 30)):
        above = above and m > fixed
        m = (1 - a) ** 2 * m + a**2
    bound = theorem_bound(gamma, a, 1, T, rho2, F)
    return Replay(
        instance=f"N = {N} clients with F_n = x^2/2, all of them in every round with weight 1/N, I = P = 1, "
        f"gamma = {gamma}, eta = 500, x_0 = 1, T = {T}; each client's gradient carries the same fair +-1 noise.",
        hypotheses=(
            *theorem_checks(gamma, a, 1, T, rho2, N),
            Check("unbiased-noise", "mean of a fair +-1 given everything before", Fraction(1 - 1, 2), "==", 0),
            Check("unbiased-noise", "its variance <= sigma^2 = 1", Fraction(1 + 1, 2), "<=", 1),
        ),
        lines=(
            Line("fixed point a/(2 - a) of m <- (1 - a)^2 m + a^2", fixed),
            Line("E x_t^2 - 1/3 is divided by 4 in every round and stays positive; at t = 30 it is", m - fixed),
            Line("8F/(gamma eta T)", 8 * F / (a * T)),
            Line("4 gamma eta L rho^2 sigma^2", 4 * a * rho2),
        ),
        claimed=bound,
        true=fixed if above else Fraction(0),
        sides=("bound of Theorem 3.1 =", "least E|grad f(x_t)|^2, more than"),
        minimal="fewest clients at gamma eta = 1/2: with six, 4 gamma eta rho^2 alone is 1/3",
        smaller=(Smaller("six clients, T = 10^12", theorem_bound(gamma, a, 1, 10**12, Fraction(1, 6), F), fixed),),
    )


# --- E8, U3: participation that follows the noise ----------------------------------------------------------------


def participation_follows_the_noise(T: int = 1000) -> Replay:
    """Two clients with independent standard normal noise; the one with the larger noise takes part.

    The larger of two normals has mean m = 1/sqrt(pi), so E x_t stays below -m while x_0 < -m: E x_t^2 >= 1/pi > 7/22.
    """
    gamma, x0 = Fraction(1, 50), Fraction(-1)
    m2 = Fraction(7, 22)
    bound = theorem_bound(gamma, gamma, 1, T, Fraction(1), x0**2 / 2)
    return Replay(
        instance=f"Two clients with F_n = x^2/2 and independent standard normal noise; the one with the larger noise "
        f"takes part; I = P = eta = 1, gamma = {gamma}, x_0 = {x0}, T = {T}.",
        hypotheses=(
            *theorem_checks(gamma, gamma, 1, T, Fraction(1), 1),
            Check("unbiased-noise", "mean of each client's noise given x_t", 0, "==", 0),
            Check("unbiased-noise", "its variance <= sigma^2 = 1", 1, "<=", 1),
        ),
        lines=(
            Line("pi is below 22/7, so 1/pi, the square of E max of the two, is above", m2),
            Line("x_0 < -1/sqrt(pi), since x_0^2 = 1 > 1/pi", x0**2),
            Line("E x_t <= -1/sqrt(pi) for all t, hence E x_t^2 is above", m2),
            Line("8F/(gamma eta T)", 8 * x0**2 / 2 / (gamma * T)),
            Line("4 gamma eta L rho^2 sigma^2", 4 * gamma),
        ),
        claimed=bound,
        true=m2,
        sides=("bound of Theorem 3.1 =", "least E|grad f(x_t)|^2, more than"),
        minimal="fewest clients, local steps and rounds an interval: a single client leaves nothing to choose, its "
        "noise has mean zero, and E x_t^2 tends to gamma/(2 - gamma)",
        smaller=(Smaller("one client", bound, gamma / (2 - gamma)),),
    )  # fmt: skip


# --- E8, U2: noise that has mean zero given the current point only ------------------------------------------------

DIGITS = 10**30
Interval = tuple[Fraction, Fraction]


def round_outward(low: Fraction, high: Fraction) -> Interval:
    """The interval with its ends rounded outward to thirty digits."""
    return Fraction(low.numerator * DIGITS // low.denominator, DIGITS), -Fraction(
        -high.numerator * DIGITS // high.denominator, DIGITS
    )


@dataclass(frozen=True)
class Window:
    """One window of the noise that remembers, for every variance V of its start in an interval."""

    ends: Interval  # of the variance of the next window's start
    least: Fraction  # variance of any point inside, at least
    covariance: Fraction  # of noise and point, the largest
    variance: Fraction  # of the noise, the largest


def window_with_memory(V: Interval, P: int, gamma: Fraction, eta: int) -> Window:
    r"""The deviation of $y_j$ is $\alpha_j(x_{t_0}-\mathbb Ex_{t_0})+\beta_j\xi$, carried as two intervals.

    $c_j^2=1/(1+\beta_j^2/(\alpha_j^2V))$ and $e_j=-c_j\beta_j/(\alpha_jV)$ make $\operatorname{Cov}(\xi_j,y_j)=0$ and
    $\operatorname{Var}\xi_j=1$. Here $\alpha_j>0\ge\beta_j$.
    """
    keep, zero = 1 - gamma, Fraction(0)
    (a_low, a_high), (b_low, b_high) = (Fraction(1), Fraction(1)), (zero, zero)
    least, covariance, variance = V[0], zero, zero
    for _ in range(P):
        least = min(least, a_low**2 * V[0] + b_high**2)
        ratio_low, ratio_high = b_high**2 / (a_high**2 * V[1]), b_low**2 / (a_low**2 * V[0])
        c_low, c_high = root_below(1 / (1 + ratio_high), 30), root_above(1 / (1 + ratio_low), 30)
        e_low, e_high = -c_low * b_high / (a_high * V[1]), -c_high * b_low / (a_low * V[0])
        covariance = max(covariance, abs(c_low * b_high + e_low * a_high * V[1]))
        variance = max(variance, c_low**2 * (1 + ratio_high))
        a_low, a_high = round_outward(keep * a_low - gamma * e_high, keep * a_high - gamma * e_low)
        b_low, b_high = round_outward(keep * b_low - gamma * c_high, keep * b_high - gamma * c_low)
    start = (1 + eta * (a_low - 1), 1 + eta * (a_high - 1))  # of x_{t_0} in the amplified point; positive
    ends = round_outward(start[0] ** 2 * V[0] + (eta * b_high) ** 2, start[1] ** 2 * V[1] + (eta * b_low) ** 2)
    return Window(ends if start[0] > 0 else (zero, ends[1]), least, covariance, variance)


LASTING = (Fraction(3, 10), Fraction(7, 20))


def noise_with_memory(P: int = 8, T: int = 10**4) -> Replay:
    r"""F = x^2/2, N = I = 1, eta = 10^5, gamma eta = 1/(2P), x_0 = 1: noise that depends on the window's start.

    From the second window on $\xi_j=c_j\xi+e_j(x_{t_0}-\mathbb Ex_{t_0})$ with one normal $\xi$ per window, and
    $\operatorname{Cov}(\xi_j,y_j)=0$; after three windows the variance stays in [0.3, 0.35].
    """
    eta = 10**5
    step = Fraction(1, 2 * P)
    gamma = step / eta
    keep = 1 - gamma
    shrink = 1 + eta * (keep**P - 1)  # of the mean, in a window
    inside = [keep ** (2 * j) + gamma**2 * sum(keep ** (2 * i) for i in range(j)) for j in range(P)]
    V = round_outward(*[(eta * gamma) ** 2 * sum(keep ** (2 * j) for j in range(P))] * 2)
    average, least = shrink, min(inside)
    starts, windows = [average**2 + V[0]], []
    for _ in range(2):
        windows.append(window_with_memory(V, P, gamma, eta))
        least = min(least, (keep**P * average) ** 2 + windows[-1].least)
        V, average = windows[-1].ends, average * shrink
        starts.append(average**2 + V[0])
    lasting = window_with_memory(LASTING, P, gamma, eta)
    windows.append(lasting)
    lasts = LASTING[0] <= V[0] and V[1] <= LASTING[1] and LASTING[0] <= lasting.ends[0] <= lasting.ends[1] <= LASTING[1]
    true = min(least, *starts, lasting.least) if lasts else Fraction(0)
    smaller = ()
    if P == 8:
        seven = noise_with_memory(7, 10**12)
        smaller = (Smaller("P = 7, T = 10^12", seven.claimed, seven.true),)
    return Replay(
        instance=f"One client, F = x^2/2, I = 1, P = {P}, eta = 10^5, gamma eta = 1/(2P), x_0 = 1, T = {T}; "
        "independent unit noise in the first window, afterwards c_j xi + e_j (x_{t_0} - E x_{t_0}) with one standard "
        "normal xi for the window and c_j, e_j such that the noise is uncorrelated with the current point.",
        hypotheses=(
            *theorem_checks(gamma, step, P, T, Fraction(1), 1),
            Check("unbiased-noise", "Cov(xi_j, y_j) = c_j beta_j + e_j alpha_j V, all normal, so E[xi_j | y_j] = 0",
                  max(w.covariance for w in windows), "<=", 0),
            Check("unbiased-noise", "Var xi_j = c_j^2 (1 + beta_j^2/(alpha_j^2 V)) <= sigma^2 = 1",
                  max(w.variance for w in windows), "<=", 1),
        ),
        lines=(
            *(Line(f"E x^2 at the start of window {k}, rounded down", x) for k, x in enumerate(starts, 1)),
            Line("variance at the start of window 3, rounded down", V[0]),
            Line("a window maps V in [3/10, 7/20] to at least", lasting.ends[0]),
            Line("and to at most", lasting.ends[1]),
            Line("and keeps the variance inside it above", lasting.least),
            Line("8F/(gamma eta T)", 8 * Fraction(1, 2) / (step * T)),
            Line("4 gamma eta L rho^2 sigma^2", 4 * step),
        ),
        claimed=theorem_bound(gamma, step, P, T, Fraction(1), Fraction(1, 2)),
        true=true,
        sides=("bound of Theorem 3.1 =", "least E|grad f(x_t)|^2, more than"),
        minimal="one client, one local step; fewest rounds an interval for noise of this kind",
        smaller=smaller,
    )  # fmt: skip


# --- E12: Lemma C.2 ----------------------------------------------------------------------------------------------


def earlier_rounds_in_lemma_c2(N: int = 2) -> Replay:
    """I = 1, P = 2, all clients in the first round, one in the second: the noise in D at the start of round t_0 + 1."""
    P, rho2 = 2, Fraction(1)

    def sides(first: int, second: int) -> tuple[Fraction, Fraction]:
        made, printed = Fraction(1, first), Fraction(1, second)  # S_t for that many equal weights
        return rho2 + (1 - printed) / (6 * P), rho2 + (1 - made) / (6 * P)

    claimed, true = sides(N, 1)
    return Replay(
        instance=f"N = {N} clients, I = 1, P = 2: all clients in the first round of the window, one in the second.",
        hypotheses=(
            Check("participation-norm", "S_t <= rho^2 in both rounds", max(Fraction(1, N), Fraction(1)), "<=", rho2),
            Check(CAPS[0], "gamma = 1/(12LIP), L = 1", Fraction(1, 12 * P), "<=", Fraction(1, 12 * P)),
        ),
        lines=(
            Line("S_t of the first round", Fraction(1, N)),
            Line("S_t of the second round", 1),
            Line("noise after one step of (C.9) from D = 0, in (gamma sigma)^2", true),
            Line("the unrolled sum for the second round, one step", claimed),
        ),
        claimed=claimed,
        true=true,
        sides=("noise in the unrolled (C.9) =", "noise from the recursion itself ="),
        minimal="fewest clients and rounds a window",
        smaller=(Smaller("one client", *sides(1, 1)), Smaller("the same cohort twice", *sides(N, N))),
    )


def lemma_c2_has_slack(P: int = 2) -> Argument:
    """The unrolled sum with 1 - S <= 1 in every earlier round is still below Lemma C.2's 3 I P (...)."""
    factor = Fraction(9, 5) * (exp_above(Fraction(5, 9)) * root_above(Fraction(19, 9)) - 1)
    return Argument(
        text="The geometric sum is at most k IP with k = (9/5)(exp(5/9) sqrt(19/9) - 1) (L2.9). Each earlier round "
        "adds at most rho^2 + 1/(6P), so it is enough that k (rho^2 + 1/(6P)) <= 3 (rho^2 + (1 - S_t)/(6P)) for all "
        "S_t <= rho^2 <= 1. The difference is least at S_t = rho^2, where it is linear in rho^2: "
        "(3 - k)/(6P) > 0 at rho^2 = 0 and (3 - k) - k/(6P) at rho^2 = 1, which is positive for P >= 2 and grows "
        "with P. For P = 1 no round is crossed.",
        checks=(
            Check("k < 3", "k, rounded up", factor, "<", 3),
            Check("P >= 2", "k/(6P) <= 3 - k at P = 2", factor / (6 * P), "<=", 3 - factor),
        ),
    )


# --- E14: the toy example ----------------------------------------------------------------------------------------

TOY = ((Fraction(-1), Fraction(0)), (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))  # second in units of sqrt 3


def toy_cycle(x: Sequence[Fraction], gamma: Fraction, eta: int) -> tuple[Fraction, ...]:
    """One amplified cycle through the three clients."""
    y = tuple(x)
    for client in TOY:
        y = tuple(a - gamma * (a - z) for a, z in zip(y, client, strict=True))
    return tuple(a + eta * (b - a) for a, b in zip(x, y, strict=True))


def toy_center(gamma: Fraction) -> tuple[Fraction, ...]:
    """Where the cycle rests: the mean of the z_n with weights b^2, b, 1, where b = 1 - gamma."""
    b = 1 - gamma
    weights = (b**2, b, Fraction(1))
    total = sum(weights, Fraction(0))
    return tuple(sum((w * z[i] for w, z in zip(weights, TOY, strict=True)), Fraction(0)) / total for i in (0, 1))


def toy_shift(gamma: Fraction, eta: int) -> Fraction:
    """How far one cycle moves its rest."""
    rest = toy_center(gamma)
    return max(abs(a - b) for a, b in zip(toy_cycle(rest, gamma, eta), rest, strict=True))


def toy_factor(gamma: Fraction) -> Fraction:
    """The largest factor by which a drawn cycle shrinks the distance to its rest."""
    return max(abs(1 - eta * (1 - (1 - gamma) ** 3)) for eta in (1, 2, 5, 10))


def toy_distance2(x: Sequence[Fraction]) -> Fraction:
    """Squared distance to x* = (0, 1/sqrt(3)), in the plane."""
    return x[0] ** 2 + 3 * (x[1] - Fraction(1, 3)) ** 2


def toy_center_is_near(gamma: Fraction = Fraction(1, 20)) -> Argument:
    """The rest is at distance of order gamma, the same for all eta."""
    weights = ((1 - gamma) ** 2, 1 - gamma, Fraction(1))
    return Argument(
        text="A cycle maps x to (1 - eta (1 - b^3)) x + eta gamma (b^2 z_1 + b z_2 + z_3) with b = 1 - gamma; since "
        "1 - b^3 = gamma (1 + b + b^2), its fixed point is the mean of the z_n with weights b^2, b, 1, whatever eta "
        "is. These weights differ from 1/3 by less than gamma, and |z_n| <= sqrt(3), so the distance is below "
        "3 sqrt(3) gamma.",
        checks=(
            *(  # cubics in gamma that agree at four points are equal
                Check("1 - b^3", f"1 - b^3 = gamma (1 + b + b^2) at gamma = {g}", 1 - (1 - g) ** 3, "==",
                      g * (1 + (1 - g) + (1 - g) ** 2))
                for g in (gamma, Fraction(1, 10), Fraction(1, 4), Fraction(1, 2))
            ),
            Check("weights", "largest |weight - 1/3| < gamma",
                  max(abs(w / sum(weights) - Fraction(1, 3)) for w in weights),
                  "<", gamma),
            Check("distance", "squared distance <= 27 gamma^2", toy_distance2(toy_center(gamma)), "<=", 27 * gamma**2),
            *(
                Check("fixed point", f"how far a cycle with eta = {eta} moves it", toy_shift(gamma, eta), "==", 0)
                for eta in (1, 2, 5, 10)
            ),
            Check("convergence", "largest |1 - eta (1 - b^3)| drawn", toy_factor(gamma), "<", 1),
        ),
    )  # fmt: skip
