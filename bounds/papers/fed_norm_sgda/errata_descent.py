r"""Counterexamples about Theorem 1's descent: the lost dual gap, the step in x, and the conditions of Lemma B.5."""

from collections.abc import Mapping
from fractions import Fraction
from math import isqrt

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller, root_above
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import (
    HETEROGENEITY,
    JOINTLY_SMOOTH,
    LOCAL_MAP,
    NOISE,
    SAMPLING,
    STRONGLY_CONCAVE,
)
from fedbounds.bounds.papers.fed_norm_sgda.errata_constants import (
    as_fraction,
    condition_checks,
    equal_clients,
    evaluate_in_fractions,
)
from fedbounds.bounds.papers.fed_norm_sgda.errata_noise import SMOOTHNESS, twin_checks
from fedbounds.bounds.papers.fed_norm_sgda.remarks import REMARK_3
from fedbounds.bounds.papers.fed_norm_sgda.results import THEOREM_1, THEOREM_1_AT_ITS_STEPS

ONE, HALF, ZERO = Fraction(1), Fraction(1, 2), Fraction(0)
PRINTED = THEOREM_1.form("printed")
PRINTED_CONDITIONS = PRINTED.conditions

# --- Theorem 1 at identical clients with one local step ------------------------------------------------------------


def one_step_constants(**given: Fraction | int) -> dict[str, Fraction]:
    """Two clients f = x y - y^2/2 who take one local step, without noise."""
    return equal_clients(2, 1, Lf=SMOOTHNESS, mu=1, etax=HALF, etay=HALF, **given)


def coupled_checks(values: Mapping[str, Fraction], clients: int = 2) -> tuple[Check, ...]:
    """Every hypothesis of Theorem 1 as printed for identical clients f = x y - y^2/2 without noise."""
    return (
        Check(JOINTLY_SMOOTH, "Lf >= (1 + sqrt 5)/2, that is Lf^2 - Lf >= 1", SMOOTHNESS**2 - SMOOTHNESS, ">=", 1),
        Check(STRONGLY_CONCAVE, "-f_yy >= mu", 1, ">=", 1),
        Check(NOISE, "no noise: its variance <= 0", 0, "<=", 0),
        *twin_checks(clients),
        *condition_checks(PRINTED, values, clients),
    )


def descent_ascent(x: Fraction, y: Fraction, descent: Fraction, ascent: Fraction, rounds: int) -> list[Fraction]:
    """|grad Phi(x_t)|^2 = x_t^2 for t < rounds: descent-ascent on x y - y^2/2, which is the algorithm here."""
    found = []
    for _ in range(rounds):
        found.append(x**2)
        x, y = x - descent * y, y + ascent * (x - y)
    return found


def lost_dual_gap(y: Fraction = ONE, clients: int = 64) -> Replay:
    """f = x y - y^2/2 from x_0 = 0, y_0 = 1, T = 4 P and 64 clients: one run refutes (4), (18) and Appendix B.5."""
    T, ascent = 4 * clients, 1 / (2 * SMOOTHNESS)
    descent = ascent / (156 * SMOOTHNESS**2)
    steps = dict(gammax=descent, gammay=ascent, etax=1 / (SMOOTHNESS * isqrt(T)), etay=1 / (SMOOTHNESS * isqrt(T)))
    values = equal_clients(clients, 1, Lf=SMOOTHNESS, **steps, Delta=0, delta0=y**2 / 2, T=T)
    squares = descent_ascent(ZERO, y, descent, ascent, 2)
    repaired = as_fraction(evaluate_in_fractions(THEOREM_1.form("repaired").bound, values, clients))
    claimed = as_fraction(evaluate_in_fractions(PRINTED.bound, values, clients))
    return Replay(
        instance=f"n = P = {clients} identical clients f_i = x y - y^2/2 (envelope x^2/2), no noise, one local step, T "
        f"= {T}; x_0 = 0, y_0 = {y}; the steps of (4): Gamma_y = sqrt(P/T)/Lf = {ascent}, Gamma_x = Gamma_y/(156 "
        f"kappa^2) = {descent}, eta = 1/(Lf sqrt T).",
        hypotheses=(
            *coupled_checks(values, clients),
            *condition_checks(THEOREM_1_AT_ITS_STEPS.form("printed"), values, clients),
            *condition_checks(REMARK_3.form("printed"), values, clients),
        ),
        lines=(
            Line("(Lf Gamma_y)^2 of (4), P/T", Fraction(clients, T)),
            Line("Delta = Phi(x_0) - min Phi", 0),
            Line("delta_0 = Phi(x_0) - F(x_0, y_0) = y_0^2/2", y**2 / 2),
            Line("x_1 = -Gamma_x y_0", -descent * y),
            Line("|grad Phi(x_1)|^2", squares[-1]),
            Line("the repaired bound: 10 kappa^2 delta_0/(Gamma_y T)", repaired),
        ),
        claimed=claimed,
        true=squares[-1] / T,
        sides=("right-hand side of (18), whatever its constants =", "average of |grad Phi|^2 >= |grad Phi(x_1)|^2/T ="),
        minimal="in the first round x is still optimal; (18) alone fails for two clients and two rounds",
        smaller=(
            Smaller("T = 1", 0, squares[0]),
            Smaller("y_0 = y*(x_0) = 0", 0, sum(descent_ascent(ZERO, ZERO, descent, ascent, 2), ZERO) / T),
        ),
    )


def step_in_x_without_a_floor(hidden: int = 1000, T: int = 10**6) -> Replay:
    """f = x y - y^2/2 from x_0 = y_0 = 1 with Gamma_x = 1/(2T): x hardly moves, and (18) does not see it."""
    ascent, descent = 1 / (2 * SMOOTHNESS), Fraction(1, 2 * T)
    values = one_step_constants(gammax=descent, gammay=ascent, Delta=HALF, delta0=0, T=T)
    printed = as_fraction(evaluate_in_fractions(PRINTED.bound, values, 2))
    early = one_step_constants(gammax=Fraction(1, 2 * 200), gammay=ascent, Delta=HALF, delta0=0, T=200)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = x y - y^2/2, no noise, one local step, T = {T}; x_0 = y_0 = 1; "
        f"Gamma_y = {ascent}, Gamma_x = 1/(2T); hidden constant {hidden}.",
        hypotheses=coupled_checks(values),
        lines=(
            Line("kappa^2 Delta/(Gamma_y T)", printed),
            Line("y_(t+1) = (1 - Gamma_y) y_t + Gamma_y x_t lies between y_t and x_t: Gamma_y", ascent),
            Line("so 0 <= y_t <= 1 and x_t >= 1 - Gamma_x T", 1 - descent * T),
            Line("the paper's own first term, 6 Delta/(Gamma_x T)", 6 * HALF / (descent * T)),
            Line("average over the first 12 rounds, by running them",
                 sum(descent_ascent(ONE, ONE, descent, ascent, 12), ZERO) / 12),
        ),
        claimed=hidden * printed,
        true=(1 - descent * T) ** 2,
        sides=(f"{hidden} times the right-hand side of (18) =", "average of |grad Phi(x_t)|^2 >="),
        minimal="two variables, no noise; the larger the hidden constant the more rounds it takes",
        smaller=(Smaller("T = 200", hidden * as_fraction(evaluate_in_fractions(PRINTED.bound, early, 2)), ONE),),
    )  # fmt: skip


def step_in_x_with_a_floor() -> Argument:
    """At the largest step in x the printed term is the right one."""
    return Argument(
        text="The chain ends with 6 Delta/(Gamma_x T) (3 in the repaired one). Only if Gamma_x is at least a constant "
        "times Gamma_y/kappa^2 is it of the printed order kappa^2 Delta/(Gamma_y T): at the cap it is 936 times that.",
        checks=(Check("at the cap", "6 * 156", 6 * 156, "==", 936),),
        axioms=("the proof of Theorem 1, for its first term",),
    )


# --- (38): a coefficient that the conditions of Lemma B.5 do not control -----------------------------------------


def coefficient_sums(s: int) -> tuple[Fraction, Fraction, Fraction]:
    r"""$\|a\|_1$, $\|a\|_2^2$ and the largest entry of $a=(s,1,\dots,1)$ with $s^2$ entries."""
    return Fraction(s + s**2 - 1), Fraction(2 * s**2 - 1), Fraction(s)


def uneven_constants(s: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    r"""$Q$, $K$, $\beta_L^2=\frac1{32Q}$ at the cap (b) for $\Gamma_y=\frac12$, and $D$, for two such clients of
    weight 1/2.
    """
    one, two, largest = coefficient_sums(s)
    Q, K = two / one**2 / 2, largest / one / 2
    growth = 1 / (32 * Q)
    return Q, K, growth, (one - 1) ** 2 + growth * (two - 1)


def needed_by_38(growth: Fraction, coefficient: Fraction) -> Fraction:
    r"""$\Gamma_yL_f(1+2\Gamma_x^2L_f/\Gamma_y)\beta_L^2K$ at $\Gamma_y=\frac12$, $\Gamma_x=\frac1{312}$."""
    return HALF * (1 + 4 * Fraction(1, 312) ** 2) * growth * coefficient


def uneven_steps(s: int = 127) -> Replay:
    """Two clients whose first local step is s times the others: K is far above Q."""
    Q, K, growth, D = uneven_constants(s)
    ascent, descent, eta = HALF, HALF / 156, 1 / (64 * root_above(D, 6))
    _, K_before, growth_before, _ = uneven_constants(s - 1)
    return Replay(
        instance=f"n = P = 2 identical clients f_i = (x^2 - y^2)/2, Lf = mu = kappa = 1, w_i = 1/2, tau_i = {s}^2 "
        f"local steps with coefficients ({s}, 1, ..., 1), noise that multiplies the gradients, sigmaL = 0, betaL^2 = "
        "1/(32 Q); Gamma_y = 1/2, Gamma_x = 1/312.",
        hypotheses=(
            Check(JOINTLY_SMOOTH, "|f''| = 1 <= Lf", 1, "<=", 1),
            Check(STRONGLY_CONCAVE, "-f_yy >= mu", 1, ">=", 1),
            Check(NOISE, "its variance over |grad f_i|^2 <= betaL^2", growth, "<=", growth),
            Check(HETEROGENEITY, "identical clients: spread of the gradients", 0, "<=", 0),
            Check(SAMPLING, "P = n", 2, "==", 2),
            Check(LOCAL_MAP, "variable step sizes: least coefficient", 1, ">=", 0),
            Check("(a)", "2 Gamma_y Lf <= 1", 2 * ascent, "<=", 1),
            Check("(b)", "Gamma_y kappa Lf betaG^2 betaL^2 Q <= 1/64", ascent * growth * Q, "<=", Fraction(1, 64)),
            Check("(c)", "Gamma_x <= Gamma_y/(156 kappa^2)", descent, "<=", ascent / 156),
            Check("(d)", "8 Gamma_x L_Phi betaL^2 K <= 1", 8 * descent * Fraction(3, 2) * growth * K, "<=", 1),
            Check("(e)", "squared: Gamma_x^2 Lf^2 betaL^2 Q <= 1/1600", descent**2 * growth * Q, "<=",
                  Fraction(1, 1600)),
            Check("(f)", "squared: 4096 eta^2 Lf^2 D <= 1, both rates", 4096 * eta**2 * D, "<=", 1),
        ),
        lines=(
            Line("Q = max w_i |a_i|_2^2/|a_i|_1^2", Q),
            Line("K = max w_i a_i^(k)/|a_i|_1", K),
            Line("K/Q, which is 1 for plain steps", K / Q),
            Line("betaL^2", growth),
        ),
        claimed=1,
        true=needed_by_38(growth, K),
        sides=("what (38) needs: Gamma_y Lf (n/P)(1 + 2 Gamma_x^2 Lf/Gamma_y)(dW + betaL^2 K) <=", "its value ="),
        minimal=f"kappa = 1 and fewest steps of this shape: {s - 1}^2 are not enough",
        smaller=(
            Smaller(f"coefficients ({s - 1}, 1, ..., 1)", 1, needed_by_38(growth_before, K_before)),
            Smaller("plain local SGDA, K = Q", 1, needed_by_38(growth, Q)),
        ),
    )  # fmt: skip


def controlled_coefficient() -> Argument:
    """Condition (g), and why plain local SGDA does not need it."""
    return Argument(
        text="Ask for Gamma_y Lf (n/P)(1 + 2 Gamma_x^2 Lf/Gamma_y)(dW + betaL^2 K) <= 1 itself. With K = Q, as for "
        "plain steps, it follows: by (b), with kappa, betaG >= 1, Gamma_y Lf (n/P) dW and Gamma_y Lf (n/P) betaL^2 Q "
        "are each at most 1/64, and by (a) and (c) 2 Gamma_x^2 Lf/Gamma_y <= 2 Gamma_y Lf/156^2 <= 1/156^2.",
        checks=(Check("sum", "2/64 (1 + 1/156^2) <= 1", Fraction(2, 64) * (1 + Fraction(1, 156**2)), "<=", 1),),
    )


# --- (26): norms of coefficients ---------------------------------------------------------------------------------


REMARK_7 = ("0 <= a_i^(j)(k) <= alpha", "|a_i(k)|_1 does not decrease in k", "|a_i(k)|_2 does not decrease in k")


def drift_weights(rows: tuple[tuple[Fraction, ...], ...]) -> tuple[Fraction, Fraction]:
    r"""Both sides of (26) for coefficients $a^{(j)}(k)$, row $k=1..\tau$:
    $\frac1{\|a\|_1}\sum_ka^{(k)}(\tau)\sum_{j<k}[a^{(j)}(k)]^2$ and $\|a\|_2^2-[a^{(\tau-1)}]^2$.
    """
    last = rows[-1]
    left = sum((last[k] * sum((a**2 for a in rows[k - 1]), ZERO) for k in range(1, len(rows))), ZERO) / sum(last)
    return sum((a**2 for a in last[:-1]), ZERO), left


def proximal_rows(tau: int, q: Fraction) -> tuple[tuple[Fraction, ...], ...]:
    """Proximal steps: a^(j)(k) = q^(k-1-j)."""
    return tuple(tuple(q ** (k - 1 - j) for j in range(k)) for k in range(1, tau + 1))


def momentum_rows(tau: int, rho: Fraction) -> tuple[tuple[Fraction, ...], ...]:
    """Heavy-ball momentum: a^(j)(k) = (1 - rho^(k-j))/(1 - rho)."""
    return tuple(tuple((1 - rho ** (k - j)) / (1 - rho) for j in range(k)) for k in range(1, tau + 1))


def shrinking_coefficients(tau: int = 2, q: Fraction = HALF) -> Replay:
    """Proximal local steps with factor 1/2: early gradients count less in the end than on the way."""
    rows = proximal_rows(tau, q)
    claimed, true = drift_weights(rows)
    norms = [(sum(row), sum(a**2 for a in row)) for row in rows]
    return Replay(
        instance=f"tau = {tau} proximal steps, a^(j)(k) = ({q})^(k-1-j): the coefficients are (1), then (1/2, 1).",
        hypotheses=(
            Check(REMARK_7[0], "largest coefficient, alpha = 1", max(map(max, rows)), "<=", 1),
            Check(REMARK_7[1], "|a(1)|_1 <= |a(2)|_1", norms[0][0], "<=", norms[1][0]),
            Check(REMARK_7[2], "|a(1)|_2^2 <= |a(2)|_2^2", norms[0][1], "<=", norms[1][1]),
        ),
        lines=(
            Line("|a|_1", norms[1][0]),
            Line("|a|_2^2", norms[1][1]),
            Line("[a^(0)(1)]^2, on the way", rows[0][0] ** 2),
            Line("[a^(0)(2)]^2, in the end", rows[1][0] ** 2),
        ),
        claimed=claimed,
        true=true,
        sides=("|a|_2^2 - [a^(tau-1)]^2 =", "left-hand side of (26) ="),
        minimal="fewest steps: with one both sides are 0",
        smaller=(
            Smaller("tau = 1", *drift_weights(proximal_rows(1, q))),
            Smaller("factor 1, plain steps", *drift_weights(proximal_rows(tau, ONE))),
        ),
    )


def growing_coefficients() -> Argument:
    """(26) if every coefficient is largest at the end."""
    cases = [rows(tau, q) for rows, q in ((momentum_rows, Fraction(9, 10)), (momentum_rows, HALF)) for tau in (2, 3, 5)]
    most = max(left - right for right, left in map(drift_weights, cases))
    return Argument(
        text="If a^(j)(k) <= a^(j)(tau) for j < k <= tau, then for every k < tau the sum of [a^(j)(k)]^2 over j < k is "
        "at most that of [a^(j)(tau)]^2 over j <= tau - 2, which is |a|_2^2 - [a^(tau-1)]^2; the weights "
        "a^(k)(tau)/|a|_1 sum to 1. Plain steps, variable step sizes and momentum are of this kind.",
        checks=(Check("momentum", "largest left - right for rho = 1/2, 9/10 and tau = 2, 3, 5", most, "<=", 0),),
        axioms=("the argument in words",),
    )
