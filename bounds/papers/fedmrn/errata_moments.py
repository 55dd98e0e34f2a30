r"""Counterexamples from a first moment, about one client of several, and from curvature above.

Masks whose relative error is $\pm M$ with probability $\frac1{2M}$ each and else 0 have $E|S(x)-x|=|x|$ and
$E|S(x)-x|^2=M|x|^2$.
"""

from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fedmrn import assumptions as given
from fedbounds.bounds.papers.fedmrn.results import CURVATURE, SAMPLED, SEVERAL
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

HALF = Fraction(1, 2)
NO_MASKS = (
    Check(given.FIRST_ERROR, "S(x) = x: E|S(x) - x| <= q |x| with q = 0", 0, "<=", 0),
    Check(given.INDEPENDENT_MASKS, "nothing is drawn: covariance of the masks' errors", 0, "==", 0),
)


CALM = (
    Check(given.NOISE, "no noise: its variance", 0, "<=", 0),
    Check(INDEPENDENT_CLIENTS, "no noise: covariance between clients", 0, "==", 0),
)


def full_participation_checks(N: int) -> tuple[Check, ...]:
    """All of N clients in every round."""
    return (
        Check(given.SAMPLING, "weights 1/N, and all N clients drawn in every round: K", N, "==", N),
        Check(SAMPLED, "all of them", N, "<=", N),
        Check(SEVERAL, "that many clients", N, ">=", 2),
    )


def rare_masks(M: int) -> tuple[Check, ...]:
    """Masks S(x) = (1 +- M) x with probability 1/(2M) each and else x, drawn by each client for itself; q = 1."""
    return (
        Check(given.FIRST_ERROR, f"E|S(x) - x|/|x| = {M}/{M} <= q", Fraction(M, M), "<=", 1),
        Check(given.INDEPENDENT_MASKS, "each client draws its own: covariances", 0, "==", 0),
    )


def share(N: int) -> Fraction:
    """The paper's c at q = 1 and K = N."""
    return Fraction((N - 1) + N - N, N * (N - 1))


def pair_at_a_synchronization(M: int) -> tuple[Fraction, Fraction]:
    """Both sides of (18) for two clients with the update 1: 4 c, and the variance of the mean of two masks."""
    return 4 * share(2), Fraction(M, 2)


def masks_of_lemma_3() -> Replay:
    """Two clients whose masked updates are now and then far off."""
    claimed, true = pair_at_a_synchronization(8)
    return Replay(
        instance="Two clients with F_k = w, one step of 1, S(x) = (1 +- 8) x with probability 1/16 each and else x; "
        "q = 1, G = 1, N = K = 2, S = 1.",
        hypotheses=(
            Check(given.GRADIENT_BOUND, "|grad F| <= G", 1, "<=", 1),
            *rare_masks(8),
            *full_participation_checks(2),
            Check(given.FALLING_STEPS, "every step is 1", 1, "<=", 2),
        ),
        lines=(
            Line("c = (q^2 (N-1) + N - K)/(K (N-1))", share(2)),
            Line("E|S(x) - x| at |x| = 1", Fraction(8, 8)),
            Line("E|S(x) - x|^2", Fraction(64, 8)),
        ),
        claimed=claimed,
        true=true,
        sides=("(18)", "E|w_bar_{t+1} - v_bar_{t+1}|^2"),
        minimal="smallest M that is a power of two; c needs two clients",
        smaller=(Smaller("S(x) = (1 +- 4) x with probability 1/8 each", *pair_at_a_synchronization(4)),),
    )


def last_gap(M: int) -> tuple[Fraction, Fraction]:
    """Both sides of (11) at T = 2 for minima +-1: mu = L = 1, gamma = 7, one step of 1/4 at t = 1, Gamma = 1/2."""
    B = 6 * HALF + 4 * share(2)
    return 2 * B / 9, Fraction(M, 2) * Fraction(1, 4) ** 2 / 2


def gap_of_theorem_1() -> Replay:
    """Two clients that start at the minimizer of their mean."""
    M = 72
    claimed, true = last_gap(M)
    return Replay(
        instance="Two clients, F_k = (w -+ 1)^2/2, w_1 = w* = 0, no noise, K = 2, S = 1, T = 2, q = 1; S(x) = (1 +- "
        "72) x with probability 1/144 each and else x.",
        hypotheses=(
            *CALM,
            *rare_masks(M),
            *full_participation_checks(2),
            Check(given.GRADIENT_BOUND, "|grad F_k(w_1)|, the only gradients that are taken", 1, "<=", 1),
            Check(given.QUADRATIC_GROWTH, "L = 1 is the second derivative", 1, "<=", 1),
            Check(given.STRONGLY_CONVEX, "mu = 1 is the second derivative", 1, ">=", 1),
            Check(CURVATURE, "mu <= L", 1, "<=", 1),
        ),
        lines=(
            Line("eta_1 = 2/(mu (gamma + 1))", Fraction(1, 4)),
            Line("B = 6 L Gamma + 4 c", 6 * HALF + 4 * share(2)),
            Line("E w_2^2", 2 * true),
        ),
        claimed=claimed,
        true=true,
        sides=("(11)", "E F(w_2) - F*"),
        minimal="fewest iterations and smallest M",
        smaller=(Smaller("M = 71", *last_gap(M - 1)),),
    )


def average_gradient(N: int) -> tuple[Fraction, Fraction]:
    """(12) at T = 4, L = S = q = 1, G = 2 from the minimizer, and a lower bound on its left side; M = 2 N."""
    M = 2 * N
    return 4 * share(N) * 4 / 2, N * Fraction(1, M) * (1 - Fraction(1, M)) ** (N - 1) / 4


def gradient_of_theorem_2() -> Replay:
    """Many clients whose gradients cancel, until one of their masks is far off."""
    N = 128
    claimed, true = average_gradient(N)
    return Replay(
        instance="128 clients, F_k = H +- w, half of them each, H' = max(-1, min(w, 1)); w_0 = 0, no noise, K = N, S = "
        "1, T = 4, eta = 1/2, q = 1, G = 2; S(x) = (1 +- 256) x with probability 1/512 each and else x.",
        hypotheses=(
            *CALM,
            *rare_masks(2 * N),
            *full_participation_checks(N),
            Check(given.GRADIENT_BOUND, "|grad F_k| <= 1 + 1, surely", 2, "<=", 2),
            Check(given.QUADRATIC_GROWTH, "L = 1 is the largest second derivative", 1, "<=", 1),
            Check(given.BELOW, "F = H >= 0", 0, ">=", 0),
        ),
        lines=(
            Line("P = 4 c G^2", 16 * share(N)),
            Line("how far one mask moves the mean model", Fraction(2 * N, N) * HALF),
            Line("chance of exactly one such mask in the first iteration", 4 * true),
        ),
        claimed=claimed,
        true=true,
        sides=("(12)", "mean of E|grad F(w_t)|^2, at least"),
        minimal="fewest clients that are a power of two",
        smaller=(Smaller("64 clients", *average_gradient(64)),),
    )


# --- Lemma 2 for one client -----------------------------------------------------------------------------------------


def drift_sides(N: int, steps: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Both sides of (17) for a client with gradient 1 among N with gradient -1, before the step after these."""
    walked, last = sum(steps[:-1]), steps[-1]
    mean = Fraction((N - 1) * walked - walked, N)
    return Fraction(4 * last**2 * (len(steps) - 1) ** 2), (mean + walked) ** 2


def drift_of_one_client() -> Replay:
    """One client moves away from the others."""
    claimed, true = drift_sides(3, (2, 1))
    return Replay(
        instance="Three clients with F_1 = w, F_2 = F_3 = -w, no masks (q = 0), S = 2, steps 2 and 1; t = t_0 + 1, "
        "client 1.",
        hypotheses=(
            Check(given.GRADIENT_BOUND, "|grad F_k| <= G = 1", 1, "<=", 1),
            *NO_MASKS,
            Check(
                given.SAMPLING, "weights 1/N, nobody is drawn before t: sum of the weights", 3 * Fraction(1, 3), "==", 1
            ),
            Check(given.FALLING_STEPS, "2 <= 2 * 1, and 1 in all iterations after", 2, "<=", 2),
        ),
        lines=(
            Line("w_1^t, from 0", -2),
            Line("w_bar_t", Fraction(2, 3)),
            Line("mean over the clients of |w_bar_t - w_k^t|^2", (true + 2 * (2 - Fraction(2, 3)) ** 2) / 3),
        ),
        claimed=claimed,
        true=true,
        sides=("(17)", "|w_bar_t - x_1^t|^2"),
        minimal="fewest clients and steps",
        smaller=(
            Smaller("two clients", *drift_sides(2, (2, 1))),
            Smaller("one local step", *drift_sides(3, (2,))),
            Smaller("equal steps", *drift_sides(3, (1, 1))),
        ),
    )


# --- Lemma 5 from a bound on the curvature from above ---------------------------------------------------------------


def one_step_down(q: int) -> tuple[Fraction, Fraction, list[Fraction]]:
    """Both sides of (26) for F = -w^2 in the second iteration of a round from 1, L = 1, eta = 1/8, and the points."""
    eta = Fraction(1, 8)
    u = 2 * eta
    w = 1 + u
    points = [w + sign * q * u for sign in (1, -1)]
    after = [w + 2 * eta * x for x in points]
    increase = -sum((x**2 for x in after), Fraction(0)) / 2 + w**2
    drift = (q * u) ** 2
    bound = (
        -eta / 2 * (2 * w) ** 2
        + (eta**2 - eta) / 2 * sum(((2 * x) ** 2 for x in points), Fraction(0)) / 2
        + eta / 2 * drift
    )
    return bound, increase, [1 + u, *points, *after]


def curvature_from_above() -> Replay:
    """A function that curves down by 2 and up by 1 at most."""
    bound, increase, points = one_step_down(6)
    return Replay(
        instance="One client, F = -w^2 for |w| <= 4 and F'' = 1 beyond, L = 1, eta = 1/8 (T = 64), no noise; a round "
        "that starts at 1, in its second iteration; S(u) = (1 +- 6) u with probability 1/2 each (q = 6); no "
        "synchronization at t + 1.",
        hypotheses=(
            Check(given.QUADRATIC_GROWTH, "F'' is at most 1 = L", 1, "<=", 1),
            Check(given.NOISE, "no noise: its variance", 0, "<=", 0),
            Check(MARTINGALE, "no noise: its mean", 0, "==", 0),
            Check(given.SAMPLING, "the one client has weight 1: sum of the weights", 1, "==", 1),
            Check(given.INDEPENDENT_MASKS, "one client, no noise: covariances", 0, "==", 0),
            Check(given.RELATIVE_ERROR, "E S(u)/u", Fraction(7 - 5, 2), "==", 1),
            Check(given.RELATIVE_ERROR, "E|S(u) - u|^2/u^2 <= q^2", Fraction(36 + 36, 2), "<=", 36),
            Check("no point leaves |w| <= 4", "largest |w|", max(map(abs, points)), "<=", 4),
        ),
        lines=(
            Line("w_t", points[0]),
            *(Line(f"x_t where the mask's sign is {s}", x) for s, x in zip("+-", points[1:3], strict=True)),
            Line("largest |F''|, the Lipschitz constant of grad F", 2),
        ),
        claimed=bound,
        true=increase,
        sides=("(26)", "E F(w_{t+1}) - F(w_t)"),
        minimal="smallest whole q",
        smaller=tuple(Smaller(f"q = {q}", *one_step_down(q)[:2]) for q in (0, 1, 5)),
    )
