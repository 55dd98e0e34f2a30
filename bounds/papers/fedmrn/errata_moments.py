r"""Counterexamples to what the paper infers from first moments, about one client of several, and from curvature above.

First moments: a vector that is $\pm M$ with probability $\frac1{2M}$ each and else 0 has the mean length 1 and the
mean square M.
"""

from __future__ import annotations

from fractions import Fraction

from fedbounds.bounds.assumptions import INDEPENDENT_CLIENTS, MARTINGALE
from fedbounds.bounds.audit.counterexample import Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fedmrn.assumptions import (
    BELOW,
    FALLING_STEPS,
    FIRST_ERROR,
    FIRST_GRADIENT,
    FIRST_NOISE,
    INDEPENDENT_MASKS,
    NOISE,
    QUADRATIC_GROWTH,
    RELATIVE_ERROR,
    SAMPLING,
    STRONGLY_CONVEX,
)
from fedbounds.bounds.papers.fedmrn.results import CURVATURE, SAMPLED, SEVERAL

HALF = Fraction(1, 2)
ALL_TAKEN = (
    Check(SAMPLING, "weights 1/N, and all N clients drawn in every round: K", 2, "==", 2),
    Check(SAMPLED, "2 of 2 clients", 2, "<=", 2),
    Check(SEVERAL, "2 clients", 2, ">=", 2),
)
NO_MASKS = (
    Check(FIRST_ERROR, "S(x) = x: E|S(x) - x| <= q |x| with q = 0", 0, "<=", 0),
    Check(INDEPENDENT_MASKS, "nothing is drawn: covariance of the masks' errors", 0, "==", 0),
)


def peaks(M: int) -> tuple[Check, ...]:
    """Noise +-M with probability 1/(2M) each, drawn anew by every client in every iteration; sigma = 1."""
    return (
        Check(FIRST_NOISE, "E|noise| = M/M <= sigma", Fraction(M, M), "<=", 1),
        Check(INDEPENDENT_CLIENTS, "covariance between clients; each draws its own", 0, "==", 0),
    )


def squared_gap(M: int, steps: list[Fraction]) -> list[Fraction]:
    """E w_t^2 of two clients with F = w^2/2 from the minimizer 0 under these steps and noise."""
    found = [Fraction(0)]
    for step in steps:
        found.append((1 - step) ** 2 * found[-1] + step**2 * Fraction(M, 2))
    return found


def averaged_noise(M: int) -> Replay:
    """Lemma 1 with one client."""
    return Replay(
        instance=f"One client, noise +-{M} with probability 1/{2 * M} each and else 0; sigma = 1, N = 1.",
        hypotheses=(*peaks(M), Check(SAMPLING, "the one client has weight 1 and is always drawn: K", 1, "==", 1)),
        lines=(Line("E|noise|", Fraction(M, M)), Line("E noise^2", Fraction(M * M, M))),
        claimed=1,
        true=Fraction(M * M, M),
        sides=("sigma^2/N", "E|g - g_bar|^2"),
        minimal="fewest values: noise of one size alone has E noise^2 = (E|noise|)^2",
        smaller=(Smaller("noise +-1 always", 1, 1),),
    )


def last_gap(M: int) -> tuple[Fraction, Fraction]:
    """Both sides of (11) at T = 2: mu = L = 1, so gamma = 7, and one step of 1/4 is taken at t = 1."""
    return Fraction(1, 9), squared_gap(M, [Fraction(1, 4)])[-1] / 2


def gap_of_theorem_1() -> Replay:
    """Two clients at the minimizer."""
    M = 8
    claimed, true = last_gap(M)
    path = squared_gap(M, [Fraction(1, 4)])
    return Replay(
        instance="Two clients, F_k = w^2/2, w_1 = w* = 0, no masks (q = 0), K = 2, S = 1, T = 2; noise +-8 with "
        "probability 1/16 each.",
        hypotheses=(
            *peaks(M),
            *ALL_TAKEN,
            *NO_MASKS,
            Check(FIRST_GRADIENT, "E|w_t + noise| <= sqrt(E w_2^2) + 1 <= G = 3/2", path[-1], "<=", Fraction(1, 4)),
            Check(QUADRATIC_GROWTH, "L = 1 is the second derivative", 1, "<=", 1),
            Check(STRONGLY_CONVEX, "mu = 1 is the second derivative", 1, ">=", 1),
            Check(CURVATURE, "mu <= L", 1, "<=", 1),
        ),
        lines=(Line("eta_1 = 2/(mu (gamma + 1))", Fraction(1, 4)), Line("B = sigma^2/2", HALF)),
        claimed=claimed,
        true=true,
        sides=("(11)", "E F(w_2) - F*"),
        minimal="fewest iterations and smallest M",
        smaller=(Smaller("noise +-7", *last_gap(M - 1)),),
    )


def average_gradient(M: int) -> tuple[Fraction, Fraction]:
    """Both sides of (12) at T = 4, L = 1, so that every step is 1/2."""
    return Fraction(1, 4), sum(squared_gap(M, [HALF] * 3), Fraction(0)) / 4


def gradient_of_theorem_2() -> Replay:
    """The same two clients."""
    M = 4
    claimed, true = average_gradient(M)
    return Replay(
        instance="Two clients, F_k = w^2/2, w_0 = 0, no masks (q = 0), K = 2, S = 1, T = 4; noise +-4 with "
        "probability 1/8 each.",
        hypotheses=(
            *peaks(M),
            *ALL_TAKEN,
            *NO_MASKS,
            Check(
                FIRST_GRADIENT, "E|w_t + noise| <= sqrt(E w_3^2) + 1 <= G = 2", squared_gap(M, [HALF] * 3)[-1], "<=", 1
            ),
            Check(QUADRATIC_GROWTH, "L = 1 is the second derivative", 1, "<=", 1),
            Check(BELOW, "F >= 0", 0, ">=", 0),
        ),
        lines=tuple(Line(f"E w_{t}^2", value) for t, value in enumerate(squared_gap(M, [HALF] * 3))),
        claimed=claimed,
        true=true,
        sides=("(12)", "mean of E|grad F(w_t)|^2"),
        minimal="smallest M that is a power of two",
        smaller=(Smaller("noise +-2", *average_gradient(2)),),
    )


def masks_of_lemma_3() -> Replay:
    """One client whose masked update is now and then far off."""

    def sides(M: int) -> tuple[Fraction, Fraction]:
        return Fraction(4), Fraction(M * M, M)

    return Replay(
        instance="One client with F = w, one step of 1, S(x) = (1 +- 8) x with probability 1/16 each and else x; "
        "q = 1, G = 1, N = K = S = 1.",
        hypotheses=(
            Check(FIRST_GRADIENT, "|grad F| <= G", 1, "<=", 1),
            Check(FIRST_ERROR, "E|S(x) - x|/|x| = 8/8 <= q", Fraction(8, 8), "<=", 1),
            Check(SAMPLING, "the one client has weight 1 and is always drawn: K", 1, "==", 1),
            Check(INDEPENDENT_MASKS, "one client, no noise: covariances", 0, "==", 0),
            Check(FALLING_STEPS, "every step is 1", 1, "<=", 2),
            Check(SAMPLED, "1 of 1", 1, "<=", 1),
        ),
        lines=(Line("E|S(x) - x| at |x| = 1", Fraction(8, 8)), Line("E|S(x) - x|^2", Fraction(64, 8))),
        claimed=sides(8)[0],
        true=sides(8)[1],
        sides=("(18)", "E|w_bar_{t+1} - v_bar_{t+1}|^2"),
        minimal="smallest M that is a power of two",
        smaller=(Smaller("S(x) = (1 +- 4) x with probability 1/8 each", *sides(4)),),
    )


# --- Lemma 2 for one client -----------------------------------------------------------------------------------------


def apart(N: int, steps: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Both sides of (17) for a client with gradient 1 among N with gradient -1, before the step after these."""
    walked, last = sum(steps[:-1]), steps[-1]
    mean = Fraction((N - 1) * walked - walked, N)
    return Fraction(4 * last**2 * (len(steps) - 1) ** 2), (mean + walked) ** 2


def drift_of_one_client() -> Replay:
    """One client moves away from the others."""
    claimed, true = apart(3, (2, 1))
    return Replay(
        instance="Three clients with F_1 = w, F_2 = F_3 = -w, no masks (q = 0), S = 2, steps 2 and 1; t = t_0 + 1, "
        "client 1.",
        hypotheses=(
            Check(FIRST_GRADIENT, "|grad F_k| <= G = 1", 1, "<=", 1),
            *NO_MASKS,
            Check(SAMPLING, "weights 1/N, nobody is drawn before t: sum of the weights", 3 * Fraction(1, 3), "==", 1),
            Check(FALLING_STEPS, "2 <= 2 * 1, and 1 in all iterations after", 2, "<=", 2),
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
            Smaller("two clients", *apart(2, (2, 1))),
            Smaller("one local step", *apart(3, (2,))),
            Smaller("equal steps", *apart(3, (1, 1))),
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
            Check(QUADRATIC_GROWTH, "F'' is at most 1 = L", 1, "<=", 1),
            Check(NOISE, "no noise: its variance", 0, "<=", 0),
            Check(MARTINGALE, "no noise: its mean", 0, "==", 0),
            Check(SAMPLING, "the one client has weight 1: sum of the weights", 1, "==", 1),
            Check(INDEPENDENT_MASKS, "one client, no noise: covariances", 0, "==", 0),
            Check(RELATIVE_ERROR, "E S(u)/u", Fraction(7 - 5, 2), "==", 1),
            Check(RELATIVE_ERROR, "E|S(u) - u|^2/u^2 <= q^2", Fraction(36 + 36, 2), "<=", 36),
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
