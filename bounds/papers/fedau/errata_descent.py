"""Counterexamples about one round: the cross term that (B.3.8) drops, Lemmas B.3.3 and B.5.1, and (B.4.4)."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

from fedbounds.bounds.audit.counterexample import Check, Line, Replay, Smaller, format_fraction, root_above
from fedbounds.bounds.papers.fedau.assumptions import BERNOULLI, BOUNDED_DIVERGENCE, OBJECTIVE_WEIGHTS, PAST_WEIGHTS
from fedbounds.bounds.papers.fedau.lemmas import GLOBAL_CAP, LOCAL_CAP
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE, SMOOTH, UNBIASED

ONE, HALF = Fraction(1), Fraction(1, 2)
PRINTED_NOISE = Fraction(17, 16)


def noise_checks(sigma2: Fraction) -> tuple[Check, ...]:
    """Noise that is +sigma or -sigma with probability 1/2, drawn anew in every local step of every client."""
    return (
        Check(UNBIASED, "mean of the noise", 0, "==", 0),
        Check(UNBIASED, "its variance <= sigma^2", sigma2, "<=", sigma2),
        Check(MARTINGALE, "its mean given the past; every step draws anew", 0, "==", 0),
        Check(INDEPENDENT_CLIENTS, "covariance between clients; each draws its own", 0, "==", 0),
    )


def identical_checks(N: int, p: Fraction, sigma2: Fraction) -> tuple[Check, ...]:
    """N identical clients with the same rate p; the weights of the round do not depend on it."""
    return (
        *noise_checks(sigma2),
        Check(BOUNDED_DIVERGENCE, "identical clients: |grad F_n - grad f| <= delta = 0", 0, "<=", 0),
        Check(BERNOULLI, "p > 0, drawn for this round alone", p, ">", 0),
        Check(BERNOULLI, "p <= 1", p, "<=", 1),
        Check(PAST_WEIGHTS, "omega is a constant: what it changes with this round", 0, "==", 0),
        Check(OBJECTIVE_WEIGHTS, "the varphi_n = 1/N sum to 1", N * Fraction(1, N), "==", 1),
    )


def cap_checks(gamma: Fraction, step: Fraction, I: int) -> tuple[Check, ...]:
    """The two caps of Lemma B.3.3 at L = 1; step is gamma eta."""
    return (
        Check(LOCAL_CAP, "squared: 240 (gamma L I)^2 <= 1", 240 * (gamma * I) ** 2, "<=", 1),
        Check(GLOBAL_CAP, "gamma eta <= 1/(2LI)", step, "<=", Fraction(1, 2 * I)),
    )


# --- The dropped cross term of (B.3.8)(a) ------------------------------------------------------------------------


def round_of_noise(gamma: Fraction, I: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    r"""$E|a+V|^2$, $E|a|^2$, $E|V|^2$ and $E\sum_i|\nabla F(y_i)|^2$ over the $2^I$ noise paths of $F=-x^2/2$."""
    totals = [Fraction(0)] * 4
    for noise in product((1, -1), repeat=I):
        y, a, V, squares = Fraction(0), 0, Fraction(0), Fraction(0)
        for xi in noise:
            gradient = -y
            a, V, squares = a + xi, V + gradient, squares + gradient**2
            y -= gamma * (gradient + xi)
        for k, square in enumerate(((a + V) ** 2, a**2, V**2, squares)):
            totals[k] += Fraction(square) / 2**I
    return totals[0], totals[1], totals[2], totals[3]


def dropped_cross_term(I: int = 2, gamma: Fraction = Fraction(1, 40)) -> Replay:
    """One client that always takes part, omega = 1, F = -x^2/2, noise +-1: the squared update, over gamma^2 eta^2."""
    step = Fraction(1, 2 * I)
    both, noise, drift, squares = round_of_noise(gamma, I)
    one = round_of_noise(gamma, 1)
    return Replay(
        instance=f"One client that always takes part, omega = 1, F = -x^2/2 (near x_t = 0), noise +1 or -1 with "
        f"probability 1/2; I = {I}, gamma = {gamma}, gamma eta = {step}, x_t = 0.",
        hypotheses=(
            Check(SMOOTH, "|F''| = 1 <= L", 1, "<=", 1),
            *identical_checks(1, ONE, ONE),
            *cap_checks(gamma, step, I),
        ),
        lines=(
            Line("E|sum of the noise|^2", noise),
            Line("E|sum of the gradients|^2", drift),
            Line("twice E(sum of the noise)(sum of the gradients), which is dropped", both - noise - drift),
            Line("the same in closed form for I = 2, 2 gamma", 2 * gamma),
            Line(
                "last right-hand side of (B.3.8), I sigma^2 + I E sum|grad F(y_i)|^2 + 2 E|sum of the gradients|^2",
                noise + I * squares + 2 * drift,
            ),
        ),
        claimed=noise + drift,
        true=both,
        sides=("E|sum of noise|^2 + E|sum of gradients|^2 =", "E|sum of noise and gradients|^2 ="),
        minimal="one client and fewest local steps: with one step no gradient follows the noise",
        smaller=(Smaller("I = 1", one[1] + one[2], one[0]),),
    )


# --- Lemmas B.3.3 and B.5.1 --------------------------------------------------------------------------------------


def second_moment(gamma: Fraction, I: int) -> Fraction:
    """E|y_I/gamma|^2 for y' = (1 + gamma) y -+ gamma from 0: the largest that a smoothness of 1 allows."""
    return sum(((1 + gamma) ** (2 * j) for j in range(I)), Fraction(0))


def farthest(gamma: Fraction, I: int) -> Fraction:
    """max|y_I|, reached when all noise has one sign."""
    return gamma * sum(((1 + gamma) ** j for j in range(I)), Fraction(0))


def mean_objective(gamma: Fraction, scale: Fraction, I: int) -> Fraction:
    r"""$\mathbb E f(\text{scale}\cdot y_I)$ over all $2^I$ paths, in integers.

    $f=-x^2/2$ for $|x|<r$ and $(|x|-2r)^2/2-r^2$ beyond, $r=\max|y_I|$, so every local step is at curvature -1.
    """
    up, down = gamma.numerator + gamma.denominator, gamma.denominator
    sums = [0]  # of y_I/gamma times down^(I-1)
    for j in range(I):
        term = up**j * down ** (I - 1 - j)
        sums = [s + term for s in sums] + [s - term for s in sums]
    r = max(sums) * scale.denominator
    twice = 0
    for s in sums:
        z = abs(s) * scale.numerator
        twice += -z * z if z < r else (z - 2 * r) ** 2 - 2 * r * r
    unit = gamma / (Fraction(down) ** (I - 1) * scale.denominator)
    return Fraction(twice, 2 * len(sums)) * unit**2


def least_increase(gamma: Fraction, step: Fraction, I: int, p: Fraction) -> Fraction:
    r"""A rational below the same increase, at L = sigma = 1, from $f(z)\ge z^2/2-2r|z|$ and $\mathbb Ey^2$ alone."""
    eta, second = step / gamma, gamma**2 * second_moment(gamma, I)
    return eta**2 / (2 * p) * second - 2 * eta * farthest(gamma, I) * root_above(second)


def printed_step(gamma: Fraction, step: Fraction, I: int, Z: Fraction, noise: Fraction = PRINTED_NOISE) -> Fraction:
    """The right-hand side of (B.3.5) less f(x_t), for L = sigma = N = 1, no divergence, p omega = 1, grad f = 0."""
    return Fraction(5, 2) * gamma**2 * step * I**2 + step**2 * I / 2 * noise * Z


def descent_lemma(
    I: int = 15, gamma: Fraction = Fraction(2, 465), p: Fraction = Fraction(1, 10**5), noise: Fraction = PRINTED_NOISE
) -> Replay:
    r"""One client that seldom takes part, $\omega=1/p$; local steps at curvature -1, then a long step to curvature +1.

    $p\,\mathbb Ef(\frac\eta py_I)$ grows like $\frac{\eta^2}{2p}\mathbb E|y_I|^2$ as $p\to0$, and
    $\mathbb E|y_I|^2/(\gamma^2I)=\frac1I\sum_{j<I}(1+\gamma)^{2j}$, up to $\frac{e^{2\tau}-1}{2\tau}=1.0673$ at the cap
    on $\tau=\gamma LI$, is above 17/16 from $I=15$ on.
    """
    step = Fraction(1, 2 * I)
    eta, Z, r = step / gamma, 1 / p, farthest(gamma, I)
    true = p * mean_objective(gamma, eta / p, I)
    fourteen = Fraction(5, 1084)  # above 1/(4 sqrt(15) 14)
    fifty = Fraction(1, 775), Fraction(1, 100), 50  # below 1/(4 sqrt(15) 50), 1/(2I)
    often = Fraction(1, 1500)
    return Replay(
        instance=f"One client, p = {p}, omega = 1/p, noise +1 or -1; f = -x^2/2 for |x| < r and (|x| - 2r)^2/2 - r^2 "
        f"beyond, r = {format_fraction(r)}; I = {I}, gamma = {gamma}, gamma eta = {step}, x_t = 0.",
        hypotheses=(
            Check(SMOOTH, "f' has slope -1 inside and 1 outside: max|slope| <= L", 1, "<=", 1),
            Check(SMOOTH, "f' is continuous at r: -r and r - 2r", -r, "==", r - 2 * r),
            Check(SMOOTH, "f is continuous at r", -(r**2) / 2, "==", (r - 2 * r) ** 2 / 2 - r**2),
            *identical_checks(1, p, ONE),
            *cap_checks(gamma, step, I),
        ),
        lines=(
            Line("r = max|y_I|, so that every local step is taken where f = -x^2/2", r),
            Line("sum_n p_n (omega_n)^2 = 1/p", Z),
            Line("p_n omega_n/N - varphi_n", p * (1 / p) - 1),
            Line("E|y_I/gamma|^2/I by its recursion", second_moment(gamma, I) / I),
            Line("which the lemma takes to be at most", PRINTED_NOISE),
            Line(f"E f(x_(t+1)) - f(x_t) = p E f(eta/p y_I), by all {2**I} noise paths", true),
            Line(
                "below it, as f(z) >= z^2/2 - 2r|z|: (eta^2/(2p)) E|y_I|^2 - 2 eta r sqrt(E|y_I|^2)",
                least_increase(gamma, step, I, p),
            ),
            Line("5/2 gamma^3 eta I^2", Fraction(5, 2) * gamma**2 * step * I**2),
            Line("17/16 gamma^2 eta^2 I/(2p)", step**2 * I / 2 * PRINTED_NOISE * Z),
            Line("the same with the repaired 9/8", step**2 * I / 2 * Fraction(9, 8) * Z),
            Line(
                "I = 50, gamma = 1/775, p = 1/1500: that lower bound over the right-hand side of the lemma",
                least_increase(*fifty, often) / printed_step(*fifty, 1 / often),
            ),
        ),
        claimed=printed_step(gamma, step, I, Z, noise),
        true=true,
        sides=("right-hand side of (B.3.5) and (B.5.1) =", "E f(x_(t+1)) - f(x_t) ="),
        minimal="one client; fewest local steps where grad f(x_t) = 0: for every f of smoothness 1 with f'(x_t) = 0, "
        "E|y_(i+1)|^2 <= (1 + gamma)^2 E|y_i|^2 + gamma^2, and f(x) - f(x_t) <= |x - x_t|^2/2, at every p and omega",
        smaller=(
            Smaller(
                "I = 14 at gamma = 5/1084, above the cap: 17/16 against the largest E|y_I/gamma|^2/I",
                PRINTED_NOISE,
                second_moment(fourteen, 14) / 14,
            ),
        ),
    )


# --- (B.4.3) to (B.4.4) ------------------------------------------------------------------------------------------


def halved_initial_gap(objectives: Sequence[Fraction] = (ONE, Fraction(0)), squares: Sequence[int] = (8,)) -> Replay:
    """Numbers that satisfy (B.4.3) without error terms, gamma etatilde I = 1: what they add up to over the rounds."""
    T = len(squares)
    H = objectives[0] - min(objectives)
    drops = tuple(b - a for a, b in pairwise(objectives))
    return Replay(
        instance=f"E h(x_t) = {', '.join(map(str, objectives))}, h* = {min(objectives)}, E|grad h(x_t)|^2 = "
        f"{', '.join(map(str, squares))}; gamma etatilde I = 1, sigma = delta = 0, T = {T}, bracket at its cap 1/8.",
        hypotheses=(
            *(
                Check("B.4.3", f"round {t}: E h(x_(t+1)) - E h(x_t) <= (1/8 - 1/4) E|grad h(x_t)|^2", drop, "<=",
                      -Fraction(square, 8))
                for t, (drop, square) in enumerate(zip(drops, squares, strict=True))
            ),
            Check("h*", "min_t E h(x_t) >= h*", min(objectives), ">=", min(objectives)),
        ),
        lines=(
            Line("H = h(x_0) - h*", H),
            Line("8 H/(gamma etatilde I T), which (B.4.3) gives", 8 * H / T),
        ),
        claimed=4 * H / T,
        true=Fraction(sum(squares), T),
        sides=("4 H/(gamma etatilde I T) =", "average of E|grad h(x_t)|^2 ="),
        minimal="one round",
        smaller=(Smaller("no gap: then (B.4.3) leaves no gradient", 0, 0),),
    )  # fmt: skip
