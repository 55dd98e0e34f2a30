"""Counterexamples about noise: products that are dropped in (19), (25) and (34), and Assumption 2 for each block."""

from fractions import Fraction
from itertools import product

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fed_norm_sgda import assumptions as given
from fedbounds.bounds.papers.fed_norm_sgda.errata_constants import (
    as_fraction,
    condition_checks,
    equal_clients,
    evaluate_in_fractions,
)
from fedbounds.bounds.papers.fed_norm_sgda.lemmas import LEMMA_B_2, LEMMA_B_3
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE

ONE, HALF = Fraction(1), Fraction(1, 2)


def twin_checks(n: int = 2) -> tuple[Check, ...]:
    """n identical clients with weights 1/n who all take part, plain local steps."""
    return (
        Check(given.HETEROGENEITY, "identical clients, betaG = 1, sigmaG = 0: spread of the gradients", 0, "<=", 0),
        Check(given.SAMPLING, "P = n: all clients take part in every round", n, "==", n),
        Check(given.LOCAL_MAP, "plain steps: least and largest coefficient", 1, "==", 1),
    )


def sign_noise_checks(total: Fraction, x: Fraction, y: Fraction, sigma2: Fraction) -> tuple[Check, ...]:
    """Noise that is a fixed vector times +1 or -1, drawn anew in every step of every client; betaL = 0."""
    return (
        Check(given.NOISE, "mean of the noise", 0, "==", 0),
        Check(given.NOISE, "its variance in all <= sigmaL^2", total, "<=", sigma2),
        Check(given.BLOCK_NOISE, "variance in x <= sigmaL^2", x, "<=", sigma2),
        Check(given.BLOCK_NOISE, "variance in y <= sigmaL^2", y, "<=", sigma2),
        Check(MARTINGALE, "its mean given the past; every step draws anew", 0, "==", 0),
        Check(INDEPENDENT_CLIENTS, "covariance between clients; each draws its own", 0, "==", 0),
    )


# --- (19) and (25): noise and the gradients after it -------------------------------------------------------------


def local_aggregate(eta: Fraction, noise: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    r"""$g$ and $h$ of a client with $f=-x^2/2$ that starts at 0: means of the noisy and of the exact gradients."""
    x, noisy, exact = Fraction(0), Fraction(0), Fraction(0)
    for xi in noise:
        noisy, exact = noisy - x + xi, exact - x
        x -= eta * (-x + xi)
    return noisy / len(noise), exact / len(noise)


def round_of_noise(eta: Fraction, tau: int, n: int = 2) -> tuple[Fraction, Fraction, Fraction]:
    r"""$\mathbb E|\sum_iw_ig_i|^2$, $\mathbb E|\sum_iw_ih_i|^2$ and
    $\sum_i\frac{w_i^2}{\tau^2}\sum_k\sigma_L^2$ over all paths, $w_i=1/n$.
    """
    first = second = Fraction(0)
    paths = list(product((1, -1), repeat=tau))
    for path in product(paths, repeat=n):
        pairs = [local_aggregate(eta, noise) for noise in path]
        first += (sum((g for g, _ in pairs), Fraction(0)) / n) ** 2
        second += (sum((h for _, h in pairs), Fraction(0)) / n) ** 2
    return first / len(paths) ** n, second / len(paths) ** n, n * Fraction(1, n * tau) ** 2 * tau


def cross_term(tau: int = 2, eta: Fraction = Fraction(1, 8)) -> Replay:
    """f_i = -x^2/2 - y^2/2 at 0, noise +-1 in x, two local steps: the squared update against (14)."""
    true, exact, noise = round_of_noise(eta, tau)
    one = round_of_noise(eta, 1)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = -x^2/2 - y^2/2, w_i = 1/2, noise +1 or -1 in x, none in y; tau_i "
        f"= {tau} plain steps with eta_x = {eta} from x_t = y_t = 0.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "|f''| = 1 <= Lf", 1, "<=", 1),
            Check(given.STRONGLY_CONCAVE, "-f_yy >= mu", 1, ">=", 1),
            *sign_noise_checks(ONE, ONE, Fraction(0), ONE),
            *twin_checks(),
            *condition_checks(LEMMA_B_2.form("printed"), equal_clients(2, tau, Lf=1), 2),
            Check("cap of Lemma B.4, which Lemma B.2 does not even ask for",
                  "squared: 8 (eta Lf tau)^2 <= 1", 8 * (eta * tau) ** 2, "<=", 1),
        ),
        lines=(
            Line("E|sum_i w_i h_i|^2, the exact gradients", exact),
            Line("sum_i w_i^2/|a_i|_1^2 sum_k [a_i^(k)]^2 sigmaL^2, the noise", noise),
            Line("what the sampling adds, n = P", 0),
            Line("twice E(noise)(exact gradients), which is dropped", true - exact - noise),
            Line("the same in closed form for tau = 2, eta Lf sigmaL^2/(2n)", eta / 4),
        ),
        claimed=exact + noise,
        true=true,
        sides=("right-hand side of (14) =", "E|g_x|^2 ="),
        minimal="fewest local steps: after one step no gradient follows the noise; n = P = 2 only because (P-1)/(n-1) "
        "is not defined for one client",
        smaller=(Smaller("tau_i = 1", one[1] + one[2], one[0]),),
    )  # fmt: skip


def saddle_round(
    b: Fraction, mu: Fraction, eta: Fraction, step: Fraction, noise: tuple[Fraction, Fraction], tau: int
) -> tuple[Fraction, Fraction, Fraction]:
    r"""One round of two clients $f=bxy-\frac\mu2y^2$ from the saddle 0, over all paths of the noise (u, v) times +-1:
    $\mathbb E\tilde\Phi(x_1)$, $\mathbb E|\sum_iw_ih_{x,i}|^2$ and $X_0$, with $L_f=1$, $\eta_x=0$ and plain steps.
    """
    paths = list(product((1, -1), repeat=tau))
    locally = []
    for path in paths:
        y, noisy, exact, away = Fraction(0), Fraction(0), Fraction(0), Fraction(0)
        for xi in path:
            noisy, exact, away = noisy + b * y + noise[0] * xi, exact + b * y, away + y**2
            y += eta * (-mu * y + noise[1] * xi)
        locally.append((noisy / tau, exact / tau, away / tau))
    both = len(paths) ** 2
    pairs = list(product(locally, repeat=2))
    envelope = sum((b**2 / (2 * mu) * (step * (one[0] + two[0]) / 2) ** 2 for one, two in pairs), Fraction(0)) / both
    direction = sum((((one[1] + two[1]) / 2) ** 2 for one, two in pairs), Fraction(0)) / both
    return envelope, direction, sum((away for _, _, away in locally), Fraction(0)) / len(paths)


def descent_at_the_saddle(tau: int = 2, step: Fraction = Fraction(10)) -> Replay:
    """f_i = 9/10 xy - y^2/20 at its saddle: noise in y moves the local y, and with it the gradient in x."""
    b, mu, eta, noise = Fraction(9, 10), Fraction(1, 10), Fraction(4), (Fraction(24, 25), Fraction(7, 25))
    form = LEMMA_B_3.form("explicit")

    def sides(tau: int, step: Fraction) -> tuple[Fraction, Fraction, dict[str, Fraction]]:
        true, direction, drift = saddle_round(b, mu, eta, step, noise, tau)
        values = equal_clients(2, tau, Lf=1, mu=mu, etax=0, etay=eta, gammax=step, sigmaL=1, gradsq=0, gap=0) | {
            "direction": direction,
            "drift": drift,
        }
        return as_fraction(evaluate_in_fractions(form.bound, values, 2)), true, values

    claimed, true, values = sides(tau, step)
    terms = {term.name: as_fraction(evaluate_in_fractions(term.expression, values, 2)) for term in form.terms}
    return Replay(
        instance=f"n = P = 2 identical clients f_i = {b} x y - {mu / 2} y^2, w_i = 1/2, kappa = 10, the envelope is "
        f"81/20 x^2; noise ({noise[0]}, {noise[1]}) times +1 or -1; tau_i = {tau} plain steps with eta_x = 0, "
        f"eta_y = {eta}, Gamma_x = {step}, from the saddle x_t = y_t = 0.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "Lf = 1: b^2 <= Lf (Lf - mu), so |f''| <= Lf", b**2, "<=", 1 - mu),
            Check(given.STRONGLY_CONCAVE, "-f_yy >= mu", mu, ">=", mu),
            *sign_noise_checks(noise[0] ** 2 + noise[1] ** 2, noise[0] ** 2, noise[1] ** 2, ONE),
            *twin_checks(),
            Check(given.GROWING, "plain steps: every coefficient is 1, least and largest", 1, "<=", 1),
            Check(given.BOUNDED_BELOW, "the envelope is b^2 x^2/(2 mu): its curvature >= 0", b**2 / mu, ">=", 0),
            *condition_checks(form, values, 2),
        ),
        lines=(
            Line("the largest Gamma_x of Theorem 1, 1/(2 Lf)/(156 kappa^2)", HALF / 156 * mu**2),
            Line("E|sum_i w_i h_i|^2, the exact gradients in x", values["direction"]),
            Line("X_t, the local drift", values["drift"]),
            *(Line(f"(15), {name}", value) for name, value in terms.items()),
        ),
        claimed=claimed,
        true=true,
        sides=("right-hand side of (15) =", "E[Phi(x_(t+1)) - Phi(x_t)] ="),
        minimal="fewest local steps: after one step no gradient follows the noise; n = P = 2 only because (P-1)/(n-1) "
        "is not defined for one client",
        smaller=(Smaller("tau_i = 1", *sides(1, step)[:2]), Smaller("Gamma_x = 1", *sides(tau, ONE)[:2])),
    )


def doubled_squares() -> Argument:
    """(14) with both parts doubled."""
    true, exact, noise = round_of_noise(Fraction(1, 8), 2)
    return Argument(
        text="E|u + v|^2 <= 2 E|u|^2 + 2 E|v|^2 for u = sum over the sample of the noises, v = that of the exact "
        "gradients. The noises are martingale differences, independent between the clients, so E|u|^2 is the first sum "
        "of (14); E|v|^2 is (20) and (21), where only the sample is random. With one local step each, v is known "
        "before the noise, the product has mean zero and (14) holds as printed.",
        checks=(
            Check("|u + v|^2", "2|u|^2 + 2|v|^2 - |u + v|^2 - |u - v|^2 at u = 1, v = eta", 0, "==",
                  2 + 2 * Fraction(1, 8) ** 2 - (1 + Fraction(1, 8)) ** 2 - (1 - Fraction(1, 8)) ** 2),
            Check("instance", "E|g_x|^2 <= twice the right-hand side of (14)", true, "<=", 2 * (exact + noise)),
        ),
        axioms=("orthogonality of martingale differences", "its application, in words"),
    )  # fmt: skip


# --- (34): the ascent step at the new x --------------------------------------------------------------------------

SMOOTHNESS = Fraction(13, 8)  # of x y - y^2/2, whose least one is (1 + sqrt 5)/2


def coupled(x: Fraction, y: Fraction) -> Fraction:
    """f = x y - y^2/2, so mu = 1."""
    return x * y - y**2 / 2


def ascent_sides(
    x_noise: Fraction, y_noise: Fraction, ascent: Fraction, descent: Fraction, shared: bool
) -> tuple[Fraction, Fraction, Fraction]:
    r"""Both sides of (34) from $x=y=0$ and $\mathbb E\langle\nabla_yF(x^+,y),g_y\rangle$, over all signs of two
    clients.
    """
    total = [Fraction(0)] * 3
    draws = list(product((1, -1), repeat=4))
    for a, b, c, d in draws:
        g_x, g_y = x_noise * Fraction(a + b, 2), y_noise * (Fraction(a + b, 2) if shared else Fraction(c + d, 2))
        x, y = -descent * g_x, ascent * g_y
        total[0] += coupled(x, y) + ascent**2 * SMOOTHNESS / 2 * g_y**2  # h_y = 0 at (0, 0)
        total[1] += coupled(x, Fraction(0))
        total[2] += x * g_y
    claimed, true, inner = (value / len(draws) for value in total)
    return claimed, true, inner


def shared_noise(x_noise: Fraction = Fraction(200)) -> Replay:
    """f_i = x y - y^2/2 at 0, one local step, the noise of the two blocks has one sign."""
    kappa, ascent = SMOOTHNESS, 1 / (2 * SMOOTHNESS)
    descent = ascent / (156 * kappa**2)
    claimed, true, inner = ascent_sides(x_noise, ONE, ascent, descent, shared=True)
    apart = ascent_sides(x_noise, ONE, ascent, descent, shared=False)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = x y - y^2/2, w_i = 1/2, one local step, noise ({x_noise}, 1) "
        f"times +1 or -1, x_t = y_t = 0; Gamma_y = {ascent}, Gamma_x = Gamma_y/(156 kappa^2) = {descent}.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "Lf >= (1 + sqrt 5)/2, that is Lf^2 - Lf >= 1", SMOOTHNESS**2 - SMOOTHNESS,
                  ">=", 1),
            Check(given.STRONGLY_CONCAVE, "-f_yy >= mu", 1, ">=", 1),
            *sign_noise_checks(x_noise**2 + 1, x_noise**2, ONE, x_noise**2 + 1),
            *twin_checks(),
            Check("(a)", "2 Gamma_y Lf <= 1", 2 * ascent * SMOOTHNESS, "<=", 1),
            Check("(b)", "n = P and betaL = 0", 0, "<=", Fraction(1, 64)),
            Check("(c)", "gamma_x <= gamma_y/(156 kappa^2)", descent, "<=", ascent / (156 * kappa**2)),
            Check("(d), (e), (f)", "n = P, betaL = 0 and one local step: all are 0", 0, "<=", 1),
        ),
        lines=(
            Line("E<grad_y F(x_(t+1), y_t), h_y>, as h_y = 0 at (0, 0)", 0),
            Line("E<grad_y F(x_(t+1), y_t), g_y>, which it stands for", inner),
            Line("the same in closed form, -Gamma_x Cov of the noises/n", -descent * x_noise / 2),
            Line("Gamma_y^2 Lf E|g_y|^2/2", ascent**2 * SMOOTHNESS / 4),
            Line("E F(x_(t+1), y_(t+1))", claimed - ascent**2 * SMOOTHNESS / 4),
        ),
        claimed=claimed,
        true=true,
        sides=("right-hand side of (34) =", "E F(x_(t+1), y_t) ="),
        minimal="one local step, one dimension each; the noises of the blocks must share something",
        smaller=(Smaller("the blocks draw their noise apart", apart[0], apart[1]),),
    )  # fmt: skip


def ascent_at_the_old_point() -> Argument:
    """(34) with the gradient at x_t, which is known before the round."""
    kappa, ascent, x_noise = SMOOTHNESS, 1 / (2 * SMOOTHNESS), Fraction(200)
    descent = ascent / (156 * kappa**2)
    claimed, true, _ = ascent_sides(x_noise, ONE, ascent, descent, shared=True)
    price = descent * ascent * SMOOTHNESS / 2 * (x_noise**2 + 1) / 2
    return Argument(
        text="By smoothness in y, F(x+, y) <= F(x+, y+) - Gamma_y <grad_y F(x+, y), g_y> + Gamma_y^2 Lf |g_y|^2/2. "
        "Replace grad_y F(x+, y) by grad_y F(x, y): they differ by at most Lf Gamma_x |g_x|, and Lf Gamma_x Gamma_y "
        "|g_x||g_y| <= Lf Gamma_x Gamma_y (|g_x|^2 + |g_y|^2)/2. Since (x, y) is known before the round, E<grad_y "
        "F(x, y), g_y> = E<grad_y F(x, y), sum_i w_i h_y,i>.",
        checks=(
            Check("2uv <= u^2 + v^2", "200^2 + 1 - 2 * 200 = (200 - 1)^2", x_noise**2 + 1 - 2 * x_noise, "==",
                  (x_noise - 1) ** 2),
            Check("instance", "E F(x_(t+1), y_t) <= the repaired right-hand side", true, "<=", claimed + price),
        ),
        axioms=("smoothness", "its application, in words"),
    )  # fmt: skip


# --- Assumption 2 in all, used for each block --------------------------------------------------------------------


def noise_of_one_block(growth: Fraction = ONE, y: Fraction = ONE) -> Replay:
    """f_i = -y^2/2, whose noise grows with |grad_y f| but falls on x."""
    total = growth * y**2  # variance of each client's noise, all in x

    def second_moment(variance: Fraction) -> Fraction:
        signs = list(product((1, -1), repeat=2))
        return sum((variance * Fraction(a + b, 2) ** 2 for a, b in signs), Fraction(0)) / len(signs)

    return Replay(
        instance=f"n = P = 2 identical clients f_i = -y^2/2, w_i = 1/2, one local step, y_t = {y}, betaL = 1, sigmaL = "
        "0; the noise is |grad f_i| = |y| times +1 or -1, all of it in x.",
        hypotheses=(
            Check(given.JOINTLY_SMOOTH, "|f''| = 1 <= Lf", 1, "<=", 1),
            Check(given.STRONGLY_CONCAVE, "-f_yy >= mu", 1, ">=", 1),
            Check(given.NOISE, "mean of the noise", 0, "==", 0),
            Check(given.NOISE, "its variance <= betaL^2 |grad f_i|^2 + sigmaL^2", total, "<=", growth * y**2),
            Check(MARTINGALE, "its mean given the past", 0, "==", 0),
            Check(INDEPENDENT_CLIENTS, "covariance between clients; each draws its own", 0, "==", 0),
            *twin_checks(),
        ),
        lines=(
            Line("grad_x f_i, wherever the client goes", 0),
            Line("|grad f_i|^2 = y^2", y**2),
            Line("right-hand side of (14) if it had |grad f_i|^2 for |grad_x f_i|^2", growth * y**2 / 2),
        ),
        claimed=0,
        true=second_moment(total),
        sides=("right-hand side of (14) =", "E|g_x|^2 ="),
        minimal="one local step, one dimension each, no heterogeneity",
        smaller=(Smaller("betaL = 0: then there is no noise", 0, second_moment(Fraction(0))),),
    )


def block_by_block() -> Argument:
    """What Assumption 2 has to say."""
    return Argument(
        text="If each block's noise is bounded by betaL^2 times that block's squared gradient plus sigmaL^2, the first "
        "sum of (14) is the second moment of the noise in x. The instance is then excluded: its noise in x has "
        "variance 1 where grad_x f_i = 0. With betaL = 0 the printed assumption implies it, as a block's variance is "
        "at most the whole.",
        checks=(
            Check("excluded", "variance in x > betaL^2 |grad_x f_i|^2 + sigmaL^2", 1, ">", 0),
            Check("instance", "E|g_x|^2 <= (14) with the whole gradient", HALF, "<=", HALF),
        ),
        axioms=("orthogonality of martingale differences", "its application, in words"),
    )
