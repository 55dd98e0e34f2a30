"""Counterexamples about the experiments: how participation is generated, what is sampled, and what the tables say."""

from collections.abc import Sequence
from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Number, Replay, Smaller

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)

# --- (C.6.1): rates above 1 --------------------------------------------------------------------------------------


def mixture(classes: int) -> tuple[Fraction, ...]:
    """Half of the mass on one class, the rest evenly on the others: an inner point of the simplex."""
    return (HALF, *[HALF / (classes - 1)] * (classes - 1))


def rate_above_one(classes: int = 100, mean: Fraction = TENTH) -> Replay:
    """C = 100, mean 1/10: a client with half of its images in the class that half of the participation favors."""

    def rate(kappa: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
        return classes * mean * sum((a * b for a, b in zip(kappa, q, strict=True)), Fraction(0))

    kappa = q = mixture(classes)
    return Replay(
        instance=f"C = {classes} classes (CIFAR-100), mean rate {mean}, kappa_n = q = 1/2 on one class and "
        f"{kappa[1]} on each other.",
        hypotheses=(
            Check("C.6.1", "kappa_n sums to 1", sum(kappa), "==", 1),
            Check("C.6.1", "its least entry is positive, so its Dirichlet density is, nearby too", min(kappa), ">", 0),
            Check("C.6.1", "q sums to 1", sum(q), "==", 1),
            Check("C.6.1", "its least entry is positive", min(q), ">", 0),
        ),
        lines=(
            Line("lambda = 1/(C mu)", 1 / (classes * mean)),
            Line("<kappa_n, q>", rate(kappa, q) / (classes * mean)),
            Line("p_n, after max(p_n, 1/50)", max(rate(kappa, q), Fraction(1, 50))),
            Line("the largest p_n for C = 10, kappa_n = q = one class", 10 * mean),
        ),
        claimed=1,
        true=rate(kappa, q),
        sides=("a probability is at most", "p_n ="),
        minimal="one client; with C mu <= 1, as for ten classes and mean 1/10, <kappa_n, q> <= 1 makes p_n <= 1",
        smaller=(Smaller("C = 10, one class", 1, 10 * mean),),
    )


def capped_rates() -> Argument:
    """min(max(p_n, 0.02), 1) is a probability, and <kappa_n, q> <= 1 makes the cap idle where C mu <= 1."""
    return Argument(
        text="Both vectors are nonnegative and sum to 1, so <kappa_n, q> <= max_c q_c <= 1 and p_n = C mu <kappa_n, q> "
        "<= C mu. Where C mu > 1 the rate is capped at 1, which lowers the mean, as the floor 0.02 raises it.",
        checks=(
            Check("C = 10", "C mu at mean 1/10", 10 * TENTH, "<=", 1),
            Check("C = 100", "C mu at mean 1/10, where a cap is needed", 100 * TENTH, ">", 1),
        ),
    )


# --- The cyclic pattern ------------------------------------------------------------------------------------------


def active_share(active: int, inactive: int, t: int, offsets: Sequence[int]) -> Fraction:
    """The share of starts from which a client is active in round t.

    A start k >= 0 is k rounds of waiting before the first active round; k < 0 is a start within the active rounds.
    """
    cycle = active + inactive
    return Fraction(sum(t >= k and (t - k) % cycle < active for k in offsets), len(offsets))


def cyclic_starts(active: int = 53, inactive: int = 47) -> Argument:
    """A client of rate 0.527, started as in the public code and from anywhere in its cycle."""
    cycle = active + inactive
    coded = [active_share(active, inactive, t, range(inactive)) for t in range(2 * cycle)]
    uniform = [active_share(active, inactive, t, range(1 - cycle, 1)) for t in range(2 * cycle)]
    return Argument(
        text="With 0 .. inactive - 1 rounds to wait the chance of being active in round t depends on t. In round t the "
        "position in the cycle is t plus the offset, modulo the cycle's length: uniform if the offset is, so then the "
        "whole process is stationary and the client is active with probability active/cycle.",
        checks=(
            Check("the code", "Pr(active in round 0), 53 of 100", coded[0], "==", Fraction(1, inactive)),
            Check("the code", "Pr(active in round 50)", coded[50], "==", 1),
            Check("the code", "Pr(active in round 99)", coded[99], "==", 0),
            Check("uniform offset", "least Pr(active in round t) over two cycles", min(uniform), "==",
                  Fraction(active, cycle)),
            Check("uniform offset", "largest", max(uniform), "==", Fraction(active, cycle)),
        ),
    )  # fmt: skip


# --- A.3: fixed-size sampling ------------------------------------------------------------------------------------


def sampling_variance() -> Argument:
    """Without replacement the variance of a sum over the participants is at most N/(N-1) times the Bernoulli one."""
    grid = [(N, S) for N in range(2, 9) for S in range(1, N + 1)]
    wrong = max(
        abs(Fraction(S * (S - 1), N * (N - 1)) - Fraction(S, N) ** 2 + Fraction(S * (N - S), N**2 * (N - 1)))
        for N, S in grid
    )
    return Argument(
        text="With p = S/N the indicators have variance p(1-p) and covariance S(S-1)/(N(N-1)) - p^2 = -p(1-p)/(N-1), "
        "so for any vectors a_n the variance of sum_n 1_n a_n is p(1-p) N/(N-1) (sum_n |a_n|^2 - |sum_n a_n|^2/N), at "
        "most N/(N-1) times p(1-p) sum_n |a_n|^2, that of independent participation. The order of A.3's rate stays.",
        checks=(Check("covariance", "largest error of the covariance over N <= 8, S <= N (both sides times N^2(N-1) "
                      "are -S(N-S))", wrong, "==", 0),),
    )  # fmt: skip


# --- The tables, in percent --------------------------------------------------------------------------------------

SPREAD_OF_TEST_ACCURACY = {  # Table D.3.1
    "FedAU, K to infinity": "11.7", "FedAU, K = 50": "11.2", "Average participating": "11.6", "Average all": "12.2",
}  # fmt: skip
RARE_TEST = {  # Table D.6.1, mean rate 0.1, test accuracy
    "FedAU, K = 50": "75.9", "Average participating": "72.5", "Average all": "71.5", "FedVarp": "59.5", "MIFA": "72.5",
    "Known": "14.9",
}  # fmt: skip


def percent(value: str) -> Fraction:
    """A printed number as a fraction."""
    return Fraction(value)


def column(rows: dict[str, str]) -> tuple[Line, ...]:
    """The entries of a column, as printed."""
    return tuple(Line(name, percent(value)) for name, value in rows.items())


def read(table: str, rows: dict[str, str]) -> tuple[Check, ...]:
    """A column read as it is printed: every entry a percentage."""
    values = [percent(value) for value in rows.values()]
    return (Check(table, "least entry", min(values), ">=", 0), Check(table, "largest entry", max(values), "<=", 100))


def spread_of_test_accuracy() -> Replay:
    """Table D.3.1, test accuracy: FedAU without a cut-off spreads the clients more than averaging participants."""
    rows = SPREAD_OF_TEST_ACCURACY
    averaged = percent(rows["Average participating"])
    return Replay(
        instance="Table D.3.1, standard deviation over the clients of the test accuracy, in percent.",
        hypotheses=read("Table D.3.1", rows),
        lines=column(rows),
        claimed=averaged,
        true=percent(rows["FedAU, K to infinity"]),
        sides=("average participating =", "FedAU, K to infinity ="),
        minimal="the only such entry of the table",
        smaller=(Smaller("K = 50", averaged, percent(rows["FedAU, K = 50"])),),
    )


def spread_with_cut_off() -> Argument:
    """With K = 50 FedAU has the least spread of test accuracy."""
    values = {name: percent(v) for name, v in SPREAD_OF_TEST_ACCURACY.items()}
    return Argument(
        text="The least entry of the column, as printed.",
        checks=(Check("Table D.3.1", "K = 50 is the least", values["FedAU, K = 50"], "==", min(values.values())),),
    )


def mifa_at_mean_rate_one_tenth() -> Replay:
    """Table D.6.1, mean rate 0.1, test accuracy: MIFA is above averaging all and ties with averaging participants."""
    rows = RARE_TEST
    return Replay(
        instance="Table D.6.1, mean rate 0.1, test accuracy in percent.",
        hypotheses=read("Table D.6.1", rows),
        lines=column(rows),
        claimed=percent(rows["Average all"]),
        true=percent(rows["MIFA"]),
        sides=("average all =", "MIFA ="),
        minimal="the only such pair of the column; average participating ties with MIFA",
        smaller=(
            Smaller("FedVarp", percent(rows["Average all"]), percent(rows["FedVarp"])),
            Smaller("known statistics", percent(rows["Average all"]), percent(rows["Known"])),
        ),
    )


def fedau_first_at_mean_rate_one_tenth() -> Argument:
    """What the column does say."""
    values: dict[str, Number] = {name: percent(v) for name, v in RARE_TEST.items()}
    return Argument(
        text="The entries of the column, as printed.",
        checks=(
            Check("Table D.6.1", "FedAU is the best", values["FedAU, K = 50"], "==", max(values.values())),
            Check("Table D.6.1", "average all > FedVarp", values["Average all"], ">", values["FedVarp"]),
            Check("Table D.6.1", "average all > known statistics", values["Average all"], ">", values["Known"]),
        ),
    )
