r"""Counterexamples about rates: the rounds of nonconvex-concave problems, Remark 1, and the origin of the exponents.

Theorem 4 contains $\frac{\bar\Delta}{\Gamma_xT}$, $\Gamma_xL_fG_x^2S$ and $\frac{L_fR}{\Gamma_yS}$, whose product is
$\frac{\bar\Delta L_f^2G_x^2R}{\Gamma_yT}$; a cap on $\Gamma_y$ is a floor of order $T^{-1/3}$ under the sum.
"""

from fractions import Fraction
from math import isqrt

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, NOISE, STRONGLY_CONCAVE
from fedbounds.bounds.papers.fed_norm_sgda.errata_constants import condition_checks, equal_clients
from fedbounds.bounds.papers.fed_norm_sgda.errata_noise import twin_checks
from fedbounds.bounds.papers.fed_norm_sgda.remarks import REMARK_1

ONE = Fraction(1)
CONDITIONS_OF_REMARK_1 = REMARK_1.form("printed").conditions
FULL = "full participation, P = n"
ASCENT_CAP = "2 Gamma_y Lf (n/P) max{(P-1)/(n-1), betaL^2 K} <= 1/8"
SECOND_CAP = "2 Gamma_y Lf (n/P) max{betaG^2, 1} max{betaL^2 Q, dW} <= 1/8"
SAMPLES = "1 <= P <= n clients a round, of equal weights, with sigmaG = 0 unless P = n"
POSITIVE = "R, Gx and the initial gap are positive"
TARGET = "the target epsilon is positive"
LESS_WORK = "n tau <= T, as the proof of Corollary 2.2 has it"
MUCH_WORK = "n tau is of order T, on which O(1/epsilon^4) rests"


def exponents(a: Fraction) -> dict[str, Fraction]:
    r"""Powers of $T$ when $n\tau=T^a$ and $P=n$ is fixed, for the step sizes of Theorem 4 as printed.

    $\Gamma_y=\tau\gamma_y\propto\tau^{3/4}T^{-1/4}$, $\Gamma_x=\tau\gamma_x\propto\tau^{1/4}T^{-3/4}$,
    $S\propto(T/\tau)^{1/2}$; the terms of (48) follow.
    """
    ascent, descent, period = Fraction(3, 4) * a - Fraction(1, 4), a / 4 - Fraction(3, 4), (1 - a) / 2
    return {
        "Gamma_y": ascent,
        "1/(Gamma_x T)": -descent - 1,
        "Gamma_x S": descent + period,
        "1/(Gamma_y S)": -ascent - period,
        "Gamma_y/tau": ascent - a,
    }


def floor_cubed(T: Fraction, cap: Fraction = Fraction(1, 16), constants: tuple[int, int, int] = (1, 1, 1)) -> Fraction:
    r"""The cube of the least $\frac{c_1}{\Gamma_xT}+c_2\Gamma_xS+\frac{c_3}{\Gamma_yS}$ over $\Gamma_x,S>0$ and
    $\Gamma_y\le$ cap: $27\,c_1c_2c_3/(T\,{\rm cap})$, where the three are equal.
    """
    a, b, c = constants
    return 27 * a * b * c / (T * cap)


def uncapped_fourth(T: Fraction, work: Fraction) -> Fraction:
    r"""The fourth power of the least $\frac1{\Gamma_xT}+\Gamma_xS+\frac1{\Gamma_yS}+\Gamma_y/(n\tau)$ over all positive
    numbers: $4^4/(T\,n\tau)$.
    """
    return 256 / (T * work)


def caps_of_a_sample(n: int, P: int) -> tuple[Fraction, Fraction]:
    r"""$c=\frac{n(P-1)}{P(n-1)}$ and $\frac dP$ for clients of equal weight: with $\beta_L=0$ the conditions of Theorem
    4 say $\Gamma_y\max\{c,d/P\}\le\frac1{16L_f}$. As $c+\frac dP=1$, that is $\Gamma_y\le\frac1{8L_f}$ at most.
    """
    return Fraction(n * (P - 1), P * (n - 1)), Fraction(n - P, P * (n - 1))


def rounds_of_theorem_4(hidden: int = 10**6, inverse: int = 100, n: int = 3, P: int = 2) -> Replay:
    """Theorem 4 at T = K/epsilon^4 against epsilon^2, for every admissible choice of step sizes and snapshots."""
    c, share = caps_of_a_sample(n, P)
    epsilon, cap = Fraction(1, inverse), 1 / (16 * max(c, share))
    T = hidden / epsilon**4
    last = isqrt(int(hidden * cap / 27))  # epsilon = 1/last is still allowed by this floor
    return Replay(
        instance=f"n = {n} identical clients of equal weight, P = {P} of them in a round, Lf = R = Gx = 1, initial gap "
        f"1, betaL = 0, any noise and local steps, which only add; every O of (48) with constant 1; epsilon = "
        f"{epsilon} and T = {hidden}/epsilon^4 rounds; any Gamma_x > 0, any S >= 1, any Gamma_y that Theorem 4 admits.",
        hypotheses=(
            Check(SAMPLES, "1 <= P", P, ">=", 1),
            Check(SAMPLES, "P <= n", P, "<=", n),
            Check(SAMPLES, "sigmaG of identical clients", 0, "==", 0),
            Check(ASCENT_CAP, "2 Gamma_y Lf c at the largest Gamma_y", 2 * cap * c, "<=", Fraction(1, 8)),
            Check(SECOND_CAP, "2 Gamma_y Lf d/P there, W = 1/n", 2 * cap * share, "<=", Fraction(1, 8)),
            Check(POSITIVE, "the least of the three", 1, ">", 0),
            Check(TARGET, "epsilon > 0", epsilon, ">", 0),
        ),
        lines=(
            Line("T", T),
            Line("c = (n/P)(P-1)/(n-1)", c),
            Line("(n/P) dW = d/P", share),
            Line("c + d/P, so that the larger is at least 1/2 and Gamma_y at most 1/(8 Lf)", c + share),
            Line("the largest Gamma_y", cap),
            Line("least L_f R/(Gamma_y S), times S", 1 / cap),
            Line("I_1^2 >= Gx^2 (c + F_w), F_w = d/P at equal weights", c + share),
            Line("product of 1/(Gamma_x T), Gamma_x S = Gamma_x + Gamma_x (S - 1), 1/(Gamma_y S), times T", 1 / cap),
            Line("27 times it over T: the cube of three equal terms", floor_cubed(T, cap)),
            Line("the same if all clients take part", floor_cubed(T)),
            Line("the same with the constants 8, 8 and 72 of the paper's own proof", floor_cubed(T, cap, (8, 8, 72))),
            Line("power of T in Gamma_y as printed, if n tau = T", exponents(ONE)["Gamma_y"]),
            Line("largest power of T in n tau that keeps Gamma_y bounded", Fraction(1, 3)),
            Line("power of T in the right-hand side there", exponents(Fraction(1, 3))["1/(Gamma_x T)"]),
            Line("power of 1/epsilon in T from it, for a squared norm of epsilon^2", 2 / Fraction(1, 3)),
        ),
        claimed=epsilon**6,
        true=floor_cubed(T, cap),
        sides=("(epsilon^2)^3 =", "cube of a number that the right-hand side of Theorem 4 is never below ="),
        minimal="no noise, no heterogeneity, one local step are enough; a larger hidden constant K only moves the "
        "failure to a smaller epsilon",
        smaller=(
            Smaller(f"epsilon = 1/{last}", Fraction(1, last) ** 6, floor_cubed(hidden * Fraction(last) ** 4, cap)),
            Smaller("the same epsilon without the cap, n tau = T: 256/T^2 against epsilon^8", epsilon**8,
                    uncapped_fourth(T, T)),
        ),
    )  # fmt: skip


def epsilon_to_the_sixth() -> Argument:
    """What does follow from Theorem 4: T = O(epsilon^-6) rounds and 1/(n epsilon^8) gradients."""

    def terms(root: int) -> tuple[Fraction, ...]:
        T, step, period, work = Fraction(root) ** 3, Fraction(1, root**2), Fraction(root), Fraction(root)
        ascent = Fraction(1, 16)
        return 1 / (step * T), step * period, 1 / (ascent * period), ascent / work

    ten, hundred = terms(10), terms(100)
    rate = Fraction(1, 3)
    return Argument(
        text="Take Gamma_y = 1/(16 Lf), Gamma_x = T^(-2/3), S = T^(1/3), n tau = T^(1/3) and eta = 1/(tau T^(1/6)). "
        "Then every term of (48) is a constant times T^(-1/3): 1/(Gamma_x T), Gamma_x S, 1/(Gamma_y S), the noise "
        "Gamma_y/(n tau) of full participation, and the drift, for which D/tau^2 and C_w/tau^2 are bounded. A squared "
        "norm of epsilon^2 takes T = O(epsilon^-6) rounds, and T tau = O(1/(n epsilon^8)) gradients, as Table 1 says. "
        "Whether the algorithm itself needs fewer rounds is open.",
        checks=(
            *(
                Check(f"term {k}", "ten times smaller at T = 100^3 than at T = 10^3", small * 10, "==", large)
                for k, (large, small) in enumerate(zip(ten, hundred, strict=True), 1)
            ),
            Check("rounds", "power of 1/epsilon in T", 2 / rate, "==", 6),
            Check("gradients", "power of 1/epsilon in T tau = T^(4/3)/n", (1 + rate) * 2 / rate, "==", 8),
        ),
        axioms=("the argument in words",),
    )


def printed_steps(T: int = 16, n: int = 16) -> Replay:
    """gamma_y = P^(3/4)/(tau T)^(1/4) with n tau = T, P = n = 16: Gamma_y = sqrt T."""
    tau = Fraction(T, n)
    root = Fraction(isqrt(T))
    ascent = tau * 8 * 2 / root  # 16^(3/4) = 8, (tau T)^(1/4) = (T^2/16)^(1/4) = sqrt(T)/2
    cap = Fraction(1, 16)
    most = Fraction(T, 16**4)
    return Replay(
        instance=f"P = n = {n} clients, Lf = 1, tau = taueff = T/n = {tau} local steps, T = {T} rounds, gamma_y = "
        "P^(3/4)/(taueff T)^(1/4), the Theta of Theorem 4 with constant 1.",
        hypotheses=(
            Check(FULL, "P = n", n, "==", n),
            Check(LESS_WORK, "n tau <= T", n * tau, "<=", T),
            Check(MUCH_WORK, "n tau >= T", n * tau, ">=", T),
        ),
        lines=(
            Line("(16^(3/4))^4", 8**4),
            Line("16^3", 16**3),
            Line("tau T, whose fourth root is sqrt(T)/2", tau * T),
            Line("(sqrt(T)/2)^4", (root / 2) ** 4),
            Line("Gamma_y = tau gamma_y", ascent),
            Line("Gamma_y/sqrt T", ascent / root),
            Line("cube of the largest n tau with Gamma_y <= 1/16: T/16^4", most),
        ),
        claimed=cap,
        true=ascent,
        sides=("cap of Theorem 4, 1/(16 Lf) =", "Gamma_y ="),
        minimal="fewest rounds with n = 16 clients and whole local steps; with a constant c in the Theta, Gamma_y = c "
        "sqrt T passes the cap for T > 1/(16 c)^2",
        smaller=(
            Smaller("(n tau)^3 = T/16^4: fourth powers of the cap and of Gamma_y, (n tau)^3/T", cap**4, most / T),
        ),
    )


def capped_steps() -> Argument:
    """How much local work the printed choice admits."""
    return Argument(
        text="Gamma_y = (tau P)^(3/4)/T^(1/4) is at most 1/(16 Lf) exactly if T >= (16 Lf)^4 (tau P)^3. So n tau may "
        "grow like T^(1/3) and no faster, and (7) gives T^(-1/3).",
        checks=(
            Check("exponents", "Gamma_y at n tau = T^(1/3)", exponents(Fraction(1, 3))["Gamma_y"], "==", 0),
            Check("exponents", "Gamma_y at n tau = T", exponents(ONE)["Gamma_y"], ">", 0),
            *(
                Check("exponents", f"{name} at n tau = T^(1/3)", power, "==", -Fraction(1, 3))
                for name, power in exponents(Fraction(1, 3)).items()
                if name != "Gamma_y"
            ),
        ),
        axioms=("the argument in words",),
    )


# --- Remark 1 ----------------------------------------------------------------------------------------------------


def gap_of_remark_1(T: int = 1) -> Replay:
    """f_i = x^2/2 - y^2/2 from x_0 = 1 without noise: (6) says that the gradient is already zero."""
    return Replay(
        instance=f"n = P = 2 identical clients f_i = x^2/2 - y^2/2, one local step, no noise, x_0 = 1, y_0 = 0, T "
        f"= {T}.",
        hypotheses=(
            Check(JOINTLY_SMOOTH, "|f''| = 1 <= Lf", 1, "<=", 1),
            Check(STRONGLY_CONCAVE, "-f_yy >= mu", 1, ">=", 1),
            Check(NOISE, "no noise: its variance <= 0", 0, "<=", 0),
            *twin_checks(),
            *condition_checks(REMARK_1.form("printed"), equal_clients(2, 1, Lf=1, T=T), 2),
        ),
        lines=(
            Line("(6): every term has sigmaL or sigmaG", 0),
            Line("Theorem 1's gap Phi(x_0) - min Phi, which (6) drops", Fraction(1, 2)),
            Line("|grad Phi(x_0)|^2 = x_0^2", 1),
        ),
        claimed=0,
        true=Fraction(1, T),
        sides=("right-hand side of (6), whatever its constant =", "average of |grad Phi|^2 >= |grad Phi(x_0)|^2/T ="),
        minimal="one round; for every T the left-hand side is at least 1/T",
        smaller=(Smaller("x_0 = 0, no gap", 0, 0),),
    )


def work_lowers_the_participation_error() -> Argument:
    """The bound of Theorem 1 minimized over Gamma_y: more local steps never hurt it."""

    def least_squared(tau: int) -> Fraction:  # a = 1, noise 1/(n tau), participation 1, all over T
        return 4 * (Fraction(1, 10 * tau) + 1)

    return Argument(
        text="With n, P, T fixed the terms a/(Gamma_y T) + b Gamma_y have least value 2 sqrt(ab/T). b holds the noise, "
        "which falls like 1/tau, and the participation error, which does not depend on tau. That it grows like "
        "sqrt(tau) in (6) comes from the choice gamma_y ~ (tau T)^(-1/2), that is Gamma_y ~ sqrt(tau/T).",
        checks=tuple(
            Check("least value squared", f"tau = {2 * tau} against {tau}", least_squared(2 * tau), "<=",
                  least_squared(tau))
            for tau in (1, 2, 4, 8)
        ),
    )  # fmt: skip


# --- Corollary 1.2 for a sample ----------------------------------------------------------------------------------


def rounds_of_a_sample(hidden: int = 1000, kappa: int = 100, n: int = 2, P: int = 1) -> Replay:
    r"""$\Gamma_y=\tau\gamma_y=\sqrt{P\tau/T}/L_f$ against condition (b), squared, where $P\tau/T$ is a constant."""
    d = Fraction(n - P, n - 1)
    work = Fraction(1, hidden**2)  # P tau/T: kappa^4/epsilon^4 over the square of hidden * kappa^2/epsilon^2

    def needed(condition: int, share: Fraction) -> Fraction:
        return work * (condition * share / P) ** 2

    cap = Fraction(1, 64**2)
    return Replay(
        instance=f"n = {n} clients, P = {P}, w_i = 1/n, tau plain local steps, kappa = {kappa}, betaG = 1; "
        f"{hidden} kappa^2/epsilon^2 rounds and kappa^4/(P epsilon^4) gradients, any epsilon; gamma_y = "
        "sqrt(P/(tau T))/Lf, the Theta of Theorem 1 with constant 1.",
        hypotheses=(
            Check("equal weights and local steps", "n times w_i", n * Fraction(1, n), "==", 1),
            Check("1 <= P < n", "1 <= P", P, ">=", 1),
            Check("1 <= P < n", "P < n", P, "<", n),
            Check("P tau of order T", "P tau/T = (P T tau)/T^2", work, ">", 0),
        ),
        lines=(
            Line("d = (n-P)/(n-1)", d),
            Line("(n/P) d W, W = 1/n", d / P),
            Line("(Gamma_y Lf)^2 = P tau/T", work),
            Line("largest P tau/T that (b) admits", cap / (kappa * d / P) ** 2),
        ),
        claimed=cap,
        true=needed(kappa, d),
        sides=("square of the cap of condition (b), 1/64^2 =", "(Gamma_y kappa Lf betaG^2 (n/P) dW)^2 ="),
        minimal="two clients; a larger hidden constant K only moves the failure to kappa d/P > K/64",
        smaller=(Smaller("P = n: d = 0", cap, needed(kappa, Fraction(0))), Smaller("kappa = 15", cap, needed(15, d))),
    )


def rounds_of_a_sample_repaired() -> Argument:
    """P tau as large as (b) admits."""
    kappa, epsilon = Fraction(10), Fraction(1, 10)
    T = 64 * kappa**3 / epsilon**2  # d = P = 1
    tau = T / (64 * kappa) ** 2
    return Argument(
        text="(b) admits tau <= T P/(64 kappa betaG^2 d)^2. With T tau = kappa^4/(P epsilon^4) that is T >= 64 kappa^3 "
        "betaG^2 d/(P epsilon^2), and T >= kappa^2/epsilon^2 as before.",
        checks=(
            Check("instance", "T tau at kappa = 10, epsilon = 1/10, d = P = 1", T * tau, "==", kappa**4 / epsilon**4),
            Check("instance", "square of (b)'s left side there", tau / T * kappa**2, "==", Fraction(1, 64**2)),
        ),
        axioms=("the argument in words",),
    )
