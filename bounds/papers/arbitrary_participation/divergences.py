"""Inequalities between the divergences of Assumption 3', exact for any record of participation."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from fedbounds.bounds.audit.spreads import (
    MEAN_SQUARE,
    SQUARED_MEAN,
    VARIANCE,
    Group,
    Record,
    Spread,
    Vector,
    norm2,
    weighted_sum,
)

WINDOW = 4  # the rounds of every record are a multiple of it
LARGEST_OFFSET = "|grad F_n - grad f| <= d for every client"


def means(record: Record, interval: int) -> list[list[Fraction]]:
    """The mean weights of the windows that start at multiples of the interval."""
    windows = [record.weights[t : t + interval] for t in range(0, len(record.weights) - interval + 1, interval)]
    return [[sum(column, Fraction(0)) / interval for column in zip(*window, strict=True)] for window in windows]


def mean_offsets(record: Record, interval: int) -> list[list[Fraction]]:
    """sum_n qbar_n v_n for each of these windows."""
    return [weighted_sum(mean, record.offsets) for mean in means(record, interval)]


def cohort2(weights: Vector, offsets: Sequence[Vector]) -> Fraction:
    """The left side of (6) for one round."""
    center = weighted_sum(weights, offsets)
    squares = (norm2([x - y for x, y in zip(v, center, strict=True)]) for v in offsets)
    return sum((w * a for w, a in zip(weights, squares, strict=True)), Fraction(0))


def delta2(record: Record, interval: int) -> Fraction:
    """delta^2(P), eq. (7), over aligned windows."""
    return max(map(norm2, mean_offsets(record, interval)))


def beta2(record: Record) -> Fraction:
    """beta^2, eq. (5)."""
    return max(norm2(weighted_sum(weights, record.offsets)) for weights in record.weights)


def nu2(record: Record) -> Fraction:
    """nu^2, eq. (6)."""
    return max(cohort2(weights, record.offsets) for weights in record.weights)


def d2(record: Record) -> Fraction:
    """d^2, eq. (4)."""
    return max(map(norm2, record.offsets))


def decomposition_sides(record: Record) -> tuple[Fraction, Fraction]:
    """The largest left and right side of (11) over the rounds."""
    lefts = [
        sum((w * norm2(v) for w, v in zip(weights, record.offsets, strict=True)), Fraction(0))
        for weights in record.weights
    ]
    return max(lefts), largest_sum(record)


def largest_sum(record: Record) -> Fraction:
    """The largest sum of the left sides of (5) and (6) in one and the same round."""
    sides = [
        (norm2(weighted_sum(weights, record.offsets)), cohort2(weights, record.offsets)) for weights in record.weights
    ]
    return max(five + six for five, six in sides)


def deviations(record: Record) -> list[Fraction]:
    """qbar_n - 1/N for the first window."""
    mean = means(record, WINDOW)[0]
    return [q - Fraction(1, len(mean)) for q in mean]


def cohorts(record: Record) -> list[Group]:
    """Every round's clients with their weights and offsets."""
    return [Group(weights, record.offsets) for weights in record.weights]


def equal_weight_group(vectors: Sequence[Vector]) -> Group:
    """Vectors of equal weight."""
    return Group([Fraction(1, len(vectors))] * len(vectors), vectors)


def windows_of(length: int, interval: int) -> Callable[[Record], list[Group]]:
    """Every aligned window of `length` rounds as the group of the windows of `interval` rounds inside it."""

    def groups(record: Record) -> list[Group]:
        inside, per_window = mean_offsets(record, interval), length // interval
        return [equal_weight_group(inside[i : i + per_window]) for i in range(0, len(inside), per_window)]

    return groups


def scaled_deviations(record: Record) -> list[Group]:
    """z_n = N (qbar_n - 1/N) v_n for the first window."""
    clients = len(record.offsets)
    shares = zip(deviations(record), record.offsets, strict=True)
    return [equal_weight_group([[clients * a * x for x in v] for a, v in shares])]


ROUND = "w = q_t, z_n = grad F_n - grad f"
SPREADS = (
    Spread(
        "equation-11",
        "sum_n q_n |v_n|^2 = sum_n q_n |v_n - vbar|^2 + |vbar|^2 in every round",
        ROUND,
        cohorts,
        decomposition_sides,
        left=MEAN_SQUARE,
        right=VARIANCE + SQUARED_MEAN,
        op="==",
        axiom="",
        source="eq. (11)",
    ),
    Spread(
        "proposition-4.1-one-round",
        "in one and the same round the left sides of (5) and (6) add up to at most d^2",
        ROUND,
        cohorts,
        lambda r: (largest_sum(r), d2(r)),
        left=VARIANCE + SQUARED_MEAN,
        source="Proposition 4.1",
    ),
    Spread(
        "participation-below-gradient-divergence",
        "beta <= d",
        ROUND,
        cohorts,
        lambda r: (beta2(r), d2(r)),
        source="eqs. (4), (5)",
    ),
    Spread(
        "cohort-below-gradient-divergence",
        "nu <= d",
        ROUND,
        cohorts,
        lambda r: (nu2(r), d2(r)),
        left=VARIANCE,
        source="eqs. (4), (6)",
    ),
    Spread(
        "window-below-participation",
        "delta(P) <= beta",
        "w = 1/P for each round of a window, z_t = sum_n q_t^n v_n",
        windows_of(WINDOW, 1),
        lambda r: (delta2(r, WINDOW), beta2(r)),
        source="eqs. (5), (7)",
    ),
    Spread(
        "window-of-one-round",
        "delta(1) = beta",
        "one weight w = 1, z = sum_n q_t^n v_n",
        windows_of(1, 1),
        lambda r: (delta2(r, 1), beta2(r)),
        op="==",
        axiom="",
        single=True,
        source="eqs. (5), (7)",
    ),
    Spread(
        "longer-aligned-windows",
        "delta(k P) <= delta(P) where the windows start at multiples of their length",
        "w = 1/k for each of the k windows inside a longer one, z = sum_n qbar_n v_n",
        windows_of(WINDOW, WINDOW // 2),
        lambda r: (delta2(r, WINDOW), delta2(r, WINDOW // 2)),
        source="eq. (7)",
    ),
    Spread(
        "equation-15",
        "|sum_n qbar_n v_n|^2 <= N sum_n (qbar_n - 1/N)^2 d^2",
        "w = 1/N, z_n = N (qbar_n - 1/N) v_n, whose mean is sum_n qbar_n v_n because the v_n sum to zero",
        scaled_deviations,
        lambda r: (norm2(mean_offsets(r, WINDOW)[0]), len(r.offsets) * norm2(deviations(r)) * d2(r)),
        axiom=LARGEST_OFFSET,
        source="eq. (15)",
    ),
    Spread(
        "mean-deviation-below-equation-15",
        "(sum_n |qbar_n - 1/N|)^2 <= N sum_n (qbar_n - 1/N)^2",
        "w = 1/N, z_n = N |qbar_n - 1/N|",
        lambda r: [equal_weight_group([[len(r.offsets) * abs(a)] for a in deviations(r)])],
        lambda r: (sum(map(abs, deviations(r)), Fraction(0)) ** 2, len(r.offsets) * norm2(deviations(r))),
        axiom="",
        source="eq. (15)",
    ),
)
