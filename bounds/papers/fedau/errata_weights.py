"""Counterexamples about FedAU's weights: what (B.6.8) says of them, the cut-off of Corollary 4, Option 1, and Q."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller, exp_above, exp_below
from fedbounds.bounds.papers.fedau.assumptions import BERNOULLI, FEDAU_WEIGHTS
from fedbounds.bounds.papers.fedau.results import TWO_ROUNDS

HALF = Fraction(1, 2)
OPTION_1 = Fraction(1, 81)
Record = Sequence[int]


def intervals(record: Record, K: int | None) -> list[int]:
    """The completed participation intervals of a record, cut off at K.

    Example:
        >>> intervals((0, 0, 1, 1, 0), 2)
        [2, 1, 1]
    """
    found, since = [], 0
    for present in record:
        since += 1
        if present or since == K:
            found.append(since)
            since = 0
    return found


def weight(record: Record, K: int | None) -> Fraction:
    """The weight of Algorithm 2 after a record: the mean of the completed intervals, 1 where there is none."""
    found = intervals(record, K)
    return Fraction(sum(found), len(found)) if found else Fraction(1)


def records(p: Fraction, rounds: int) -> Iterator[tuple[Record, Fraction]]:
    """Every record of a client of rate p, with its probability."""
    for record in product((0, 1), repeat=rounds):
        yield record, p ** sum(record) * (1 - p) ** (rounds - sum(record))


def weight_moments(p: Fraction, K: int, t: int) -> tuple[Fraction, Fraction]:
    """E omega_t and E(p omega_t - 1)^2 over all records of t rounds."""
    mean = sum((chance * weight(record, K) for record, chance in records(p, t)), Fraction(0))
    return mean, sum((chance * (p * weight(record, K) - 1) ** 2 for record, chance in records(p, t)), Fraction(0))


def interval_moments(p: Fraction, K: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of one interval, from its law (B.6.1)."""
    law = [(k, p * (1 - p) ** (k - 1)) for k in range(1, K)] + [(K, (1 - p) ** (K - 1))]
    mean = sum((k * chance for k, chance in law), Fraction(0))
    return mean, sum((k**2 * chance for k, chance in law), Fraction(0)) - mean**2


def participation_checks(p: Fraction, rounds: int) -> tuple[Check, ...]:
    """Assumption 4: the probabilities of all records make a law with mean p in every round, independent over rounds."""
    every = list(records(p, rounds))
    first = sum((chance for record, chance in every if record[0]), Fraction(0))
    return (
        Check(BERNOULLI, "the probabilities of all records sum to 1", sum(c for _, c in every), "==", 1),
        Check(BERNOULLI, "probability of taking part in round 0", first, "==", p),
    )


def algorithm_checks(K: int, rounds: int) -> tuple[Check, ...]:
    """Algorithm 2: its cut-off is a whole number of rounds, and its intervals add up to the record."""
    most = max(len(r) - sum(intervals(r, K)) for r in product((0, 1), repeat=rounds))
    return (
        Check(FEDAU_WEIGHTS, "K is a whole number >= 1", K, ">=", 1),
        Check(FEDAU_WEIGHTS, "rounds after the last completed interval, at most K - 1", most, "<=", K - 1),
    )


# --- (B.6.8): the mean and the variance of a random number of intervals ------------------------------------------


def mean_of_random_count(p: Fraction = HALF, K: int = 2, t: int = 1) -> Replay:
    """K = 2, p = 1/2: after one round the weight is 1 whatever happened, and an interval has mean 3/2."""
    mean, _ = interval_moments(p, K)
    return Replay(
        instance=f"One client with p = {p}, K = {K}, round t = {t}.",
        hypotheses=(*participation_checks(p, t), *algorithm_checks(K, t)),
        lines=(
            *(Line(f"omega_{t} after the record {record}", weight(record, K)) for record, _ in records(p, t)),
            Line("Pr{S = 1}", p),
            Line("Pr{S = 2}", 1 - p),
            *(Line(f"E omega_{later}, for comparison", weight_moments(p, K, later)[0]) for later in (2, 3, 8)),
        ),
        claimed=weight_moments(p, K, t)[0],
        true=mean,
        sides=(f"E omega_{t} =", "E S ="),
        minimal="fewest clients, least cut-off and first round after the start; in every round t >= K the two agree",
        smaller=(
            Smaller("K = 1", weight_moments(p, 1, t)[0], interval_moments(p, 1)[0]),
            Smaller("t = K = 2", weight_moments(p, K, 2)[0], mean),
        ),
    )


def variance_of_random_count(p: Fraction = HALF, K: int = 2, t: int = 1) -> Replay:
    """K = 2, p = 1/2, t = 1: the mean squared error of the weight against variance plus squared bias of an interval."""

    def sides(cut: int, after: int) -> tuple[Fraction, Fraction]:
        _, variance = interval_moments(p, cut)
        return p**2 * variance / max(after // cut, 1) + (1 - p) ** (2 * cut), weight_moments(p, cut, after)[1]

    claimed, true = sides(K, t)
    some = [(record, chance) for record, chance in records(p, t) if intervals(record, K)]
    within = sum((chance * (p * weight(record, K) - 1) ** 2 for record, chance in some), Fraction(0))
    return Replay(
        instance=f"One client with p = {p}, K = {K}, round t = {t}.",
        hypotheses=(*participation_checks(p, t), *algorithm_checks(K, t)),
        lines=(
            Line("Var S", interval_moments(p, K)[1]),
            Line("p^2 Var S", p**2 * interval_moments(p, K)[1]),
            Line("(1 - p)^(2K)", (1 - p) ** (2 * K)),
            Line("E(p omega_1 - 1)^2 given that an interval is complete", within / sum(c for _, c in some)),
            Line("2K(1 - p)/t + (1 - p)^(2K), which holds in every round t >= 1",
                 2 * K * (1 - p) / t + (1 - p) ** (2 * K)),
        ),
        claimed=claimed,
        true=true,
        sides=("p^2 Var S/max{floor(t/K), 1} + (1 - p)^(2K) =", f"E(p omega_{t} - 1)^2 ="),
        minimal="fewest clients, least cut-off and first round after the start",
        smaller=(Smaller("K = 1", *sides(1, t)), Smaller("t = K = 2", *sides(K, 2))),
    )  # fmt: skip


# --- Corollary 4's cut-off ---------------------------------------------------------------------------------------


def exact_log(T: int, c: Fraction, most: int = 12) -> Fraction:
    """log_c T where T^b = c^a for small a, b.

    Example:
        >>> exact_log(8, Fraction(4))
        Fraction(3, 2)
    """
    return next(Fraction(a, b) for b in range(1, most) for a in range(1, most) if c**a == T**b)


def cut_off_below_one(T: int = 2, p: Fraction = HALF) -> Replay:
    """p = 1/2, T = 2: c = 4 and log_c T = 1/2."""
    c = 1 / (1 - p) ** 2
    return Replay(
        instance=f"One client with p = {p}, T = {T} rounds.",
        hypotheses=(*participation_checks(p, T), Check(TWO_ROUNDS, "T >= 2", T, ">=", 2)),
        lines=(
            Line("c = 1/(1 - min_n p_n)^2", c),
            *(Line(f"log_c T for T = {rounds}", exact_log(rounds, c)) for rounds in (2, 4, 8, 16)),
        ),
        claimed=exact_log(T, c),
        true=1,
        sides=("K = log_c T =", "least cut-off that Algorithm 2 admits ="),
        minimal="one client and fewest rounds, T = 2; for T = 8, log_c T = 3/2 is not a whole number either",
        smaller=(Smaller("T = c = 4", exact_log(4, c), 1),),
    )


LN_2_BELOW, LN_2_ABOVE = Fraction(69, 100), Fraction(694, 1000)


def rarity_without_a_floor(k: int = 73, constant: int = 100) -> Replay:
    """p = 1 - 2^-k and T = c = 4^k, so K = 1: the quotient of log^2(T)/T and R log^2(T)/T is 1/R = 2k log 2."""

    def quotient(exponent: int) -> Fraction:
        return 2 * exponent * LN_2_BELOW

    return Replay(
        instance=f"One client with p = 1 - 2^-{k}, T = c = 4^{k} rounds, so K = log_c T = 1 and R log T = 1; hidden "
        f"constant {constant}.",
        hypotheses=(
            Check(BERNOULLI, "p < 1", 1 - Fraction(1, 2**k), "<", 1),
            Check(FEDAU_WEIGHTS, "K = log_c T is a whole number: T and c", 4**k, "==", (Fraction(1, 2**k)) ** -2),
            Check(TWO_ROUNDS, "T >= 2", 4**k, ">=", 2),
        ),
        lines=(
            Line("a rational above exp(69/100), which is below 2, so log 2 > 69/100", exp_above(LN_2_BELOW)),
            Line("a rational below exp(694/1000), which is above 2, so log 2 < 694/1000", exp_below(LN_2_ABOVE)),
            *(
                Line(f"1/R = log c = 2k log 2 for p = 1 - 2^-{other}, rounded down", quotient(other))
                for other in (1, 8, k, 10 * k)
            ),
        ),
        claimed=constant,
        true=quotient(k),
        sides=("hidden constant in log^2(T)/T <= C R log^2(T)/T", "the constant that it needs, at least"),
        minimal=f"one client; fewest halvings of 1 - p that exceed {constant}; no constant is enough for all p",
        smaller=(Smaller("k = 72, with log 2 < 694/1000", constant, 2 * 72 * LN_2_ABOVE),),
    )


# --- Assumption 5, Option 1 --------------------------------------------------------------------------------------


def nobody_comes(p: Fraction = Fraction(2, 3)) -> Argument:
    """Option 1 fails for any number of clients whose rates are below 1, if K >= 2 and T > K; for K = 2 by counting."""
    K = 2
    worst = max((p * weight(record, K) - 1) ** 2 for record, _ in records(p, K))
    return Argument(
        text="In round 0 every weight is 1, so Option 1 says that the root mean square of 1 - p_n is at most 1/9. With "
        "positive probability nobody takes part in the first K rounds; then all weights are K in round K < T, and by "
        "the triangle inequality the root mean square of p_n K - 1 = (K - 1) - K (1 - p_n) is at least "
        "K - 1 - K/9 = 8K/9 - 1, at least 7/9 for K >= 2, above the 1/9 that Option 1 allows. For one client, K = 2 "
        "and T = 3 the rate 2/3 is best, and then (p omega_2 - 1)^2 is 1/9 on every record.",
        checks=(
            Check("K >= 2", "8K/9 - 1 at K = 2 > 1/9", Fraction(8 * K, 9) - 1, ">", Fraction(1, 9)),
            Check("p = 2/3, K = 2, T = 3", "largest (p omega_2 - 1)^2 over all records > 1/81", worst, ">", OPTION_1),
        ),
        axioms=("Minkowski's inequality", "its application, in words"),
    )


# --- Q, and the average interval ---------------------------------------------------------------------------------


def random_second_moment(p: Fraction = HALF, K: int = 2, T: int = 3) -> Replay:
    """One client, p = 1/2, K = 2, T = 3: Q = max_t p omega_t^2 is 1/2 or 2."""

    def values(rounds: int, cut: int) -> dict[Record, Fraction]:
        return {
            record: max(p * weight(record[:t], cut) ** 2 for t in range(rounds)) for record, _ in records(p, rounds - 1)
        }

    Q = values(T, K)
    return Replay(
        instance=f"One client with p = {p}, K = {K}, T = {T}.",
        hypotheses=(*participation_checks(p, T - 1), *algorithm_checks(K, T - 1)),
        lines=(
            *(Line(f"Q on the record {record}", value) for record, value in Q.items()),
            Line("E p omega_2^2", sum((chance * p * weight(record, K) ** 2 for record, chance in records(p, T - 1)),
                                      Fraction(0))),
            Line("the least sure bound, p min(K, T - 1)^2", p * min(K, T - 1) ** 2),
        ),
        claimed=min(Q.values()),
        true=max(Q.values()),
        sides=("Q on one path =", "Q on another path ="),
        minimal="one client, least cut-off, fewest rounds",
        smaller=(
            Smaller("T = 2", min(values(2, K).values()), max(values(2, K).values())),
            Smaller("K = 1", min(values(T, 1).values()), max(values(T, 1).values())),
        ),
    )  # fmt: skip


def rounds_per_participation(record: Record = (1, 0)) -> Replay:
    """The record 1, 0: two rounds per participation, and an average interval of 1."""
    T, M = len(record), sum(record)
    return Replay(
        instance=f"One client, T = {T} rounds, record {record}, no cut-off.",
        hypotheses=(
            Check("record", "every entry is 0 or 1", max(record), "<=", 1),
            Check("record", "the client takes part at least once", M, ">=", 1),
        ),
        lines=(
            Line("number of participations", M),
            *(Line(f"completed interval {k}", length) for k, length in enumerate(intervals(record, None), 1)),
            Line("rounds after the last participation", T - sum(intervals(record, None))),
        ),
        claimed=weight(record, None),
        true=Fraction(T, M),
        sides=("average interval =", "T over the number of participations ="),
        minimal="fewest rounds",
        smaller=(Smaller("T = 1, record (1,)", weight((1,), None), 1), Smaller("(0, 1)", weight((0, 1), None), 2)),
    )  # fmt: skip


def last_round_counts() -> Argument:
    """T over the participations is the average interval exactly if the client takes part in the last round."""
    wrong = sum(
        (weight(record, None) == Fraction(T, sum(record))) != bool(record[-1])
        for T in range(1, 9)
        for record in product((0, 1), repeat=T)
        if any(record)
    )
    return Argument(
        text="The completed intervals are as many as the participations and add up to the rounds up to and including "
        "the last one, T - s, where s rounds follow it. So their average is (T - s)/M, which is T/M exactly if s = 0; "
        "it differs from T/M by the factor 1 - s/T.",
        checks=(Check("enumeration", "exceptions among all records of up to eight rounds", wrong, "==", 0),),
    )


# --- A fixed cut-off ---------------------------------------------------------------------------------------------


def fixed_cut_off(K: int = 50, p: Fraction = Fraction(1, 50)) -> Argument:
    """The experiments' K = 50 and their rarest clients, p = 0.02."""
    mean, _ = interval_moments(p, K)
    closed = (1 - (1 - p) ** K) / p
    return Argument(
        text="By the law of large numbers for intervals the weight tends to E S = (1 - (1 - p)^K)/p, so the algorithm "
        "minimizes the clients' F_n with weights 1 - (1 - p_n)^K (Theorem 1), and the squared bias of p_n omega_t^n "
        "does not fall below (1 - p_n)^(2K): for p = 0.02 and K = 50 the limit is 31.8 instead of 50, and the floor "
        "0.1326.",
        checks=(
            Check("mean interval", "E S from the law (B.6.1) and in closed form", mean, "==", closed),
            Check("limit", "E S <= 31.8", mean, "<=", Fraction(318, 10)),
            Check("limit", "E S >= 31.7", mean, ">=", Fraction(317, 10)),
            Check("floor", "(1 - p)^(2K) >= 0.1326", (1 - p) ** (2 * K), ">=", Fraction(1326, 10000)),
        ),
        axioms=("law of large numbers", "Theorem 1 in the limit, in words"),
    )
