"""Counterexamples about the rates: Corollaries 3.3 and 4.8, the scaling remark and Table 1."""

from fractions import Fraction
from math import isqrt

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller, exp_above


def sampled(N: int, S: int) -> tuple[Fraction, Fraction]:
    """upsilon^2 and rho^2 of S of N without replacement, independently in each round."""
    return Fraction(N - S, S * N**2), Fraction(1, S)


def sampling_checks(N: int, S: int) -> tuple[Check, ...]:
    """S of N clients with weight 1/S each: weights, mean and variance from the two values that a weight takes."""
    chance, weight = Fraction(S, N), Fraction(1, S)
    mean = chance * weight
    upsilon2, rho2 = sampled(N, S)
    return (
        Check("weights", "|S times 1/S - 1| = 0", abs(S * weight - 1), "==", 0),
        Check("participation-norm", "sum_n (q_t^n)^2 <= rho^2", S * weight**2, "<=", rho2),
        Check("unbiased-sampling", "E q_t^n = 1/N", mean, "==", Fraction(1, N)),
        Check(
            "independent-rounds",
            "Var(q_t^n) = upsilon^2; the rounds are drawn independently",
            chance * (weight - mean) ** 2 + (1 - chance) * mean**2,
            "==",
            upsilon2,
        ),
    )


# --- E10 and its root: Corollaries 3.3 and 4.8 -------------------------------------------------------------------


def step_size_with_a_unit() -> Replay:
    """Corollary 3.3's eta^2 = 144 P^2 L I F/rho^2, a dimensionless number, for one problem with f in two units."""
    P, I, T, rho2 = 1, 1, 8, Fraction(1)

    def squared(L: int, F: Fraction) -> Fraction:
        return 144 * P**2 * L * I * F / rho2

    one, half = squared(1, Fraction(1, 2)), squared(2, Fraction(1))
    return Replay(
        instance="One client, F = x^2/2 in some unit, x_0 = 1: L = 1 and f(x_0) - f* = 1/2. In half that unit L = 2 "
        f"and f(x_0) - f* = 1. P = I = 1, T = {T}; Algorithm 1 with the same gamma times gradient is the same.",
        hypotheses=(
            Check("T >= 4LIP^2F/rho^2", "in the first unit", T, ">=", 4 * 1 * I * P**2 * Fraction(1, 2) / rho2),
            Check("T >= 4LIP^2F/rho^2", "in half the unit", T, ">=", 4 * 2 * I * P**2 * 1 / rho2),
            Check("P <= T/2", "P <= T/2", P, "<=", Fraction(T, 2)),
            Check("participation-norm", "one client with weight 1", 1, "<=", rho2),
        ),
        lines=(
            Line("eta^2 = 144 P^2 L I F/rho^2 in the first unit", one),
            Line("eta^2 in half the unit", half),
            Line("ratio of the two multipliers, squared", half / one),
        ),
        claimed=one,
        true=half,
        sides=("eta^2 in one unit of f =", "eta^2 of the same problem in half that unit ="),
        minimal="one client, one round an interval, one local step",
        smaller=(Smaller("the unit unchanged", one, one),),
    )


def cap_free_of_rounds(N: int = 250, S: int = 10) -> Argument:
    """The largest LF that Corollary 4.8's cap admits at I = 1, for the clients of the paper's experiment."""
    upsilon2, rho2 = sampled(N, S)
    LF = rho2 / (4 * upsilon2**2 * N**5)
    return Argument(
        text="I <= rho/(2 upsilon^2 N^(5/2) sqrt(LF)) has no T. At I = 1 it says LF <= rho^2/(4 upsilon^4 N^5).",
        checks=(
            *sampling_checks(N, S),
            Check("S = 10 of N = 250", "LF is at most (4.17e-4)^2", LF, "<=", Fraction(417, 10**6) ** 2),
            Check("S = 10 of N = 250", "and at least (4.16e-4)^2", LF, ">=", Fraction(416, 10**6) ** 2),
        ),
    )


def interval_is_not_a_whole_number(T: int = 9) -> Replay:
    """N = 2, S = 1, I = 1 and LF = 1/8, Corollary 4.8's cap: T against 4LIP^2F/rho^2 at the next whole number P."""
    upsilon2, rho2 = sampled(2, 1)
    LF = rho2 / (4 * upsilon2**2 * 2**5)

    def sides(rounds: int) -> tuple[Fraction, Fraction]:
        up = isqrt(2 * rounds - 1) + 1
        return Fraction(rounds), 4 * LF * up**2 / rho2

    claimed, needed = sides(T)
    down = isqrt(2 * T)
    return Replay(
        instance=f"S = 1 of N = 2 clients in each round, I = 1, T = {T}, L = 1 and F = 1/8, so I = 1 is at its cap.",
        hypotheses=(
            *sampling_checks(2, 1),
            Check("I <= rho/(2 upsilon^2 N^(5/2) sqrt(LF))", "square of I <= square of the cap", 1, "<=",
                  rho2 / (4 * upsilon2**2 * 2**5 * LF)),
            Check("T >= 4 upsilon^4 I N^5", "T", T, ">=", 4 * upsilon2**2 * 2**5),
        ),
        lines=(
            Line("P^2 = upsilon^4 N^5 I T, not a square", upsilon2**2 * 2**5 * T),
            Line("P rounded up", isqrt(2 * T - 1) + 1),
            Line("4LIP^2F/rho^2, which may be at most T", needed),
            Line("P rounded down", down),
            Line("square of 6 N^2 d^2 upsilon^2/P there, for d = 1", (6 * 4 * upsilon2 / down) ** 2),
            Line("square of 6 d^2/sqrt(N I T), which it should not exceed", Fraction(36, 2 * T)),
        ),
        claimed=claimed,
        true=needed,
        sides=("T =", "rounds that Corollary 3.3 asks for at P rounded up ="),
        minimal="fewest rounds with T >= 4 upsilon^4 I N^5 = 8: at T = 8, P = 4 is whole",
        smaller=(Smaller("T = 8", *sides(8)),),
    )  # fmt: skip


# --- E5: Table 1 and the tails -----------------------------------------------------------------------------------


def lost_weight_variance(N: int = 250, S: int = 10) -> Replay:
    """At Corollary 4.8's P the likely term over d^2 ln(2/c)/sqrt(SIT), squared, is 9 S/(N upsilon^4)."""

    def squared(chosen: int) -> Fraction:
        return 9 * Fraction(chosen, N) / sampled(N, chosen)[0] ** 2

    upsilon2, _ = sampled(N, S)
    return Replay(
        instance=f"S = {S} of N = {N} clients in each round, independently (the paper's experiment), against S = 1; "
        "P = upsilon^2 N^(5/2) sqrt(IT).",
        hypotheses=(
            *sampling_checks(N, S),
            Check("bounded-divergence", "d^2 cancels; d^2 = 1", 1, "<=", 1),
            Check("0 < c < 1", "ln(2/c) cancels; c = 1/10", Fraction(1, 10), "<", 1),
        ),
        lines=(
            Line("upsilon^2", upsilon2),
            Line("6 delta^2 = 3 N^2 d^2 ln(2/c)/P over d^2 ln(2/c)/sqrt(NIT)", 3 / upsilon2),
            *(
                Line(f"squared ratio of the term to d^2 ln(2/c)/sqrt(SIT), S = {chosen} of N = {N}", squared(chosen))
                for chosen in (1, 2, S, 2 * S)
            ),
        ),
        claimed=squared(1),
        true=squared(S),
        sides=("squared factor of ln(2/c)/sqrt(SIT) at S = 1 =", f"squared factor at S = {S} ="),
        minimal="the paper's own numbers; the squared factor is 9 S^3 N^3/(N - S)^2 for every S",
        smaller=(Smaller("S = 1", squared(1), squared(1)),),
    )


def speed_up_ends_at_the_cap(N: int = 2, S: int = 1, T: int = 10**6) -> Argument:
    """The first term at the largest scale that admits I is 16 upsilon^2 N^(5/2) LF sqrt(I/T)."""
    upsilon2, rho2 = sampled(N, S)

    def both(I: int, LF: Fraction) -> tuple[Fraction, Fraction]:
        a2 = rho2 / (4 * upsilon2**2 * N**5 * I**2 * LF)
        return 64 / a2 * rho2 * LF / (I * T), 256 * upsilon2**2 * N**5 * LF**2 * I / T

    return Argument(
        text="The cap admits a <= rho/(2 upsilon^2 N^(5/2) I sqrt(LF)); (8/a) rho sqrt(LF)/sqrt(IT) is least at the "
        "largest a, where its square is 256 upsilon^4 N^5 (LF)^2 I/T: increasing in I.",
        checks=tuple(
            Check("identity", f"square of the term at I = {I}, LF = {LF}", both(I, Fraction(LF))[0], "==",
                  both(I, Fraction(LF))[1])
            for I, LF in ((1, 1), (4, 1), (9, 7))
        ),
    )  # fmt: skip


def smaller_of_two_tails(N: int = 250, S: int = 10) -> Argument:
    """Chebyshev's constant is the smaller one for every c from 7.6e-5 on."""
    upsilon2, _ = sampled(N, S)
    c = Fraction(76, 10**6)
    return Argument(
        text="Both bound one window of one client, so the smaller holds. Chebyshev's upsilon^2/c <= ln(2/c)/2 means "
        "c ln(2/c) >= 2 upsilon^2; the left-hand side rises to c = 2/e and then falls to ln(2) at c = 1.",
        checks=(
            Check("c = 7.6e-5", "exp(2 upsilon^2/c) <= 2/c", exp_above(2 * upsilon2 / c, 60), "<=", 2 / c),
            Check("c = 1", "exp(2 upsilon^2) <= 2", exp_above(2 * upsilon2), "<=", 2),
        ),
        axioms=("Chebyshev's inequality", "Hoeffding 1963, Theorem 2"),
    )
