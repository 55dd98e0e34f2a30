r"""What Theorem 3.1 covers beyond its setting: rounds without participants, and objectives with weights.

*Empty rounds.* Algorithm 1 adds $\sum_nq_t^n\Delta_t^n=0$ to the model in a round without participants. For $P=1$, and
for $\eta=1$ with any P, the model then stays where it is, so that the run without these rounds is the same run.

*Weighted objectives.* For $f=\sum_np_nF_n$ with $p_n>0$, $\sum_np_n=1$, and $M>N$ with $Mp_n\ge1$, add $M-N$ clients
that never participate, all with the function $\sum_na_nF_n$, $a_n=\frac{Mp_n-1}{M-N}$. The $a_n$ are weights of a mean,
the mean of all M functions is f, the algorithm is the same, and so are (5) to (7). A mean of smooth functions is as
smooth, and no client is farther from $\nabla f$ than the $F_n$ are.
"""

from fractions import Fraction

from sympy import Integer, Symbol

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.limit_checker import at_most, equal, with_statements
from fedbounds.bounds.audit.spreads import Group, Record, Spread, Vector, norm2, weighted_sum
from fedbounds.bounds.audit.sums import one
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION as n

eta, N = n.eta, n.N
x, anchor, update, slope = (Symbol(name, real=True) for name in ("x_t", "x_{t_0}", "sum_n q_t^n Delta_t^n", "grad F_n"))
others, p, total = Symbol("M - N", positive=True), Symbol("p_n", positive=True), Symbol("sum_n p_n", positive=True)
M = N + others
SHARE = (M * p - 1) / others  # a_n
NOBODY = {update: Integer(0)}

LIMITS = with_statements(
    {
        "a round without participants leaves the model as it is if P = 1": equal(
            "empty-round-one-round-windows",
            one(anchor + eta * (x + update - anchor)),
            one(x),
            at={**NOBODY, anchor: x},
            source="Algorithm 1",
        ),
        "and if eta = 1, for any P": equal(
            "empty-round-no-amplification",
            one(anchor + eta * (x + update - anchor)),
            one(x),
            at={**NOBODY, eta: Integer(1)},
            source="Algorithm 1",
        ),
        "for weights p_n, N clients and M - N that never participate: grad F_n is in the mean of all with weight p_n": (
            equal(
                "weighted-objective-mean",
                one(slope / M + others / M * SHARE * slope),
                one(p * slope),
                source="eq. (1)",
            )
        ),
        "the weights a_n = (M p_n - 1)/(M - N) of their function sum to one": equal(
            "weighted-objective-unit-sum",
            one((M * total - N) / others),
            one(1),
            at={total: Integer(1)},
            source="eq. (1)",
        ),
        "and are at least 0 where M p_n >= 1": at_most(
            "weighted-objective-weights",
            one(0),
            one(SHARE),
            facts=(Relation(Integer(1), M * p),),
            source="eq. (1)",
        ),
    }
)


def client_weights(record: Record) -> Vector:
    """Positive weights p_n of a record's clients."""
    return [(1 + q) / (len(record.offsets) + 1) for q in record.weights[0]]


def other_weights(weights: Vector) -> Vector:
    """a_n with the least M > N for which M p_n >= 1."""
    clients = len(weights)
    total = max(clients + 1, -(-1 // min(weights)))
    return [(total * p - 1) / (total - clients) for p in weights]


def distances(record: Record) -> list[Vector]:
    """grad F_n - sum_m p_m grad F_m."""
    center = weighted_sum(client_weights(record), record.offsets)
    return [[x - y for x, y in zip(v, center, strict=True)] for v in record.offsets]


def other_gradient(record: Record) -> Group:
    """The distances from grad f of the functions of which a client that never participates has a mean."""
    return Group(other_weights(client_weights(record)), distances(record))


def distance_sides(record: Record) -> tuple[Fraction, Fraction]:
    """The squared distance from grad f of the gradient of such a client, and d^2."""
    weights = client_weights(record)
    own, mean = weighted_sum(other_weights(weights), record.offsets), weighted_sum(weights, record.offsets)
    return norm2([x - y for x, y in zip(own, mean, strict=True)]), max(map(norm2, distances(record)))


SPREADS = (
    Spread(
        "weighted-objective-divergence",
        "with weights p_n, no client that never participates is farther from grad f than the farthest of the others",
        "w = a_n = (M p_n - 1)/(M - N), z_n = grad F_n - sum_m p_m grad F_m",
        lambda record: [other_gradient(record)],
        distance_sides,
        source="eqs. (1), (4)",
    ),
)
