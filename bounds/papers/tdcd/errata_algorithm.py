r"""Counterexamples about indices, constants and what clients hold, on scalar quadratics: $x_{t+1}=(1-\eta)x_t$."""

from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller
from fedbounds.bounds.papers.tdcd import assumptions
from fedbounds.bounds.papers.tdcd.results import CAP, LEMMA_CAP

HALF = Fraction(1, 2)
SAMPLING_NOISE = "sigma_j^2 is the variance of sampling a batch, around the gradient of the client's own shard"
ALGORITHM = "Algorithm 1: all clients of a silo have the weight 1/K_j"
ONE_EXCHANGE = "the silo with the labels returns derivatives once a round"
PARABOLA = (
    Check(assumptions.SMOOTH_OBJECTIVE, "L = 1 is the second derivative", 1, "<=", 1),
    Check(assumptions.BLOCK_SMOOTH, "Lmax = 1 is the second derivative", 1, "<=", 1),
    Check(assumptions.BOUNDED, "f >= 0 at its minimum", 0, ">=", 0),
    Check(assumptions.UNBIASED_CLIENTS, "one client, its whole data in every batch: sigma^2", 0, "==", 0),
)


def cap_check(eta: Fraction, Q: int, largest: Fraction | int = 1) -> Check:
    """(14)."""
    return Check(CAP, "eta <= 1/(8 Q max(L, Lmax))", eta, "<=", 1 / (8 * Q * Fraction(largest)))


# --- Indices --------------------------------------------------------------------------------------------------------


def first_iterates(Q: int, R: int) -> tuple[Fraction, Fraction]:
    """Both sides of (15) as printed, from x = 1 with the largest step size."""
    kept = (1 - Fraction(1, 8 * Q)) ** 2  # of the square in one step
    fallen = (1 - kept ** (Q * R)) / 2
    return 4 * fallen / (Fraction(1, 8) * R), (1 - kept**R) / (1 - kept) / R


def synchronized_average(Q: int, R: int) -> Fraction:
    """The average over the synchronized iterates of the same run."""
    kept = (1 - Fraction(1, 8 * Q)) ** 2
    return (1 - kept ** (Q * R)) / (1 - kept**Q) / R


def average_over_the_first_iterates() -> Replay:
    """Four local steps, and enough rounds."""
    Q, R = 4, 70
    claimed, true = first_iterates(Q, R)
    return Replay(
        instance="One client, f = x^2/2, x_0 = 1, no noise, Q = 4, eta = 1/32, R = 70.",
        hypotheses=(*PARABOLA, cap_check(Fraction(1, 32), Q)),
        lines=(
            Line("f(x_0) - f(x_T)", claimed * R / 32),
            Line("x_69^2, the last of the first R iterates", (1 - Fraction(1, 32)) ** 138),
            Line("x_276^2, the last of the R synchronized ones", (1 - Fraction(1, 32)) ** 552),
            Line("average over the synchronized iterates", synchronized_average(Q, R)),
        ),
        claimed=claimed,
        true=true,
        sides=("(15)", "average of |grad f(x_t)|^2 over t < R"),
        minimal="fewest local steps, whose ratio tends to 4 Q^2/(16 Q - 1) in R",
        smaller=(Smaller("Q = 3", *first_iterates(3, 1000)), Smaller("Q = 1", *first_iterates(1, 70))),
    )


def literal_descent(Q: int) -> tuple[Fraction, Fraction]:
    """Both sides of (59) at t_0^+ = t_0 + Q - 1, from x = 1 with the largest step size."""
    eta = Fraction(1, 8 * Q)
    gone = sum(((1 - eta) ** s for s in range(Q)), Fraction(0))
    return -eta * gone + (eta * gone) ** 2 / 2, ((1 - eta) ** (2 * (Q - 1)) - 1) / 2


def next_exchange() -> Replay:
    """One local step."""
    claimed, true = literal_descent(1)
    return Replay(
        instance="One client, f = x^2/2, x = 1, Q = 1, eta = 1/8.",
        hypotheses=(PARABOLA[0],),
        lines=(
            Line("G^0", 1),
            Line("t_0^+ - t_0 as printed", 0),
            Line("f at the model after the step, less f before", (Fraction(7, 8) ** 2 - 1) / 2),
            Line("right side for two local steps", literal_descent(2)[0]),
            Line("left side for two", literal_descent(2)[1]),
        ),
        claimed=claimed,
        true=true,
        sides=("right side of (59)", "f(x^{t_0^+}) - f(x^{t_0})"),
        minimal="one client, one parameter, one local step",
    )


def last_step_is_lost() -> Replay:
    """Algorithm 1 with line 32 as it stands, and one local step."""
    eta = Fraction(1, 8)
    return Replay(
        instance="One client, f = x^2/2, x_0 = 1, no noise, Q = 1, eta = 1/8, R = 3; after each round the hub takes "
        "x^t, from before the local step.",
        hypotheses=(*PARABOLA, cap_check(eta, 1)),
        lines=(
            Line("x after the local step", 1 - eta),
            Line("the hub's model after the round", 1),
            Line("f(x_0) - f(x_T)", 0),
        ),
        claimed=0,
        true=1,
        sides=("(15)", "average of |grad f|^2 over the rounds"),
        minimal="one client, one parameter, one local step; with more, one of Q steps is lost",
    )


# --- Which constant is meant ----------------------------------------------------------------------------------------


def drift(curvature: Fraction, eta: Fraction, Q: int, Lmax: Fraction) -> tuple[Fraction, Fraction]:
    """Both sides of (30) for a block with this curvature and first gradient 1."""
    moved = [((1 - eta * curvature) ** s - 1) ** 2 for s in range(Q)]
    return 4 * Q**2 * (1 + Q) * Lmax**2 * eta**2, sum(moved, Fraction(0))


def one_silos_constant() -> Replay:
    """Two silos, one a hundred times as curved as the other."""
    flat, Q, eta = Fraction(1, 100), 2, Fraction(25)
    claimed, true = drift(Fraction(1), eta, Q, flat)
    return Replay(
        instance="Two silos with one client and one parameter each, f = x_1^2/200 + x_2^2/2, at (0, 1); Q = 2, Lmax = "
        "1/100 (silo 1's), eta = 25.",
        hypotheses=(
            Check(assumptions.ONE_BLOCK_SMOOTH, "silo j = 1: its second derivative is at most Lmax", flat, "<=", flat),
            Check(LEMMA_CAP, "eta <= 1/(2 Q Lmax)", eta, "<=", 1 / (2 * Q * flat)),
        ),
        lines=(
            Line("the gradients of silo 2 at the start", 1),
            Line("and after its first local step", 1 - eta),
            Line("right side with the larger of both constants", drift(Fraction(1), eta, Q, Fraction(1))[0]),
        ),
        claimed=claimed,
        true=true,
        sides=("(30)", "sum over local steps and silos of |g^t - g^t_0|^2"),
        minimal="fewest local steps at which anything drifts",
        smaller=(Smaller("one local step", *drift(Fraction(1), 2 * eta, 1, flat)),),
    )


# --- What clients hold ----------------------------------------------------------------------------------------------


def fixed_point(Q: int, second: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Where two clients, (x - 1)^2/2 and second (x + 1)^2/2, bring TDCD to rest; grad f there; their spread there."""
    eta = 1 / (8 * Q * max(second, Fraction(1)))
    a, b = (1 - eta) ** Q, (1 - second * eta) ** Q
    x = (b - a) / (2 - a - b)
    first, other = x - 1, second * (x + 1)
    return x, (first + other) / 2, ((first - other) / 2) ** 2


def shards_are_noise() -> Replay:
    """Two clients whose shards differ in curvature, all samples in every batch."""
    Q, second = 2, Fraction(3)
    eta = Fraction(1, 48)
    x, gradient, spread = fixed_point(Q, second)
    u = eta * Q
    bound = 4 * (u * 2 + 4 * u**2 * 9 + 8 * u**3 * 2 * 9) * spread
    return Replay(
        instance="One silo, two clients with (x - 1)^2/2 and 3 (x + 1)^2/2, all samples in every batch, Q = 2, eta = "
        "1/48; x_0 is where TDCD is at rest.",
        hypotheses=(
            Check(assumptions.SMOOTH_OBJECTIVE, "L = (1 + 3)/2 is the second derivative", 2, "<=", 2),
            Check(assumptions.BLOCK_SMOOTH, "Lmax = 3 is the larger second derivative", 3, "<=", 3),
            Check(SAMPLING_NOISE, "all samples are drawn: sigma^2", 0, "==", 0),
            cap_check(eta, Q, 3),
        ),
        lines=(
            Line("where TDCD is at rest", x),
            Line("the minimizer", Fraction(-1, 2)),
            Line("f(x_0) - f(x_T)", 0),
            Line("variance of the clients' gradients around grad f", spread),
            Line("(15) with that variance", bound),
        ),
        claimed=0,
        true=gradient**2,
        sides=("(15) with the variance of sampling", "average of |grad f|^2"),
        minimal="fewest local steps, and unequal curvatures",
        smaller=(
            Smaller("one local step", 0, fixed_point(1, second)[1] ** 2),
            Smaller("equal curvatures", 0, fixed_point(Q, Fraction(1))[1] ** 2),
        ),
    )


def rest_point(sizes: tuple[int, int], labels: tuple[int, int]) -> tuple[Fraction, Fraction]:
    """Where shards of these sizes and labels bring TDCD to rest with (x - y)^2/2 for each sample; grad f there."""
    x = Fraction(sum(labels), 2)
    return x, x - Fraction(sizes[0] * labels[0] + sizes[1] * labels[1], sum(sizes))


def unequal_shards() -> Replay:
    """Shards of one and of three samples."""
    x, gradient = rest_point((1, 3), (0, 4))
    return Replay(
        instance="One silo, two clients with the labels 0 and 4, 4, 4, loss (x - y)^2/2, all samples in every batch, "
        "Q = 1, eta = 1/8; x_0 = 2.",
        hypotheses=(
            Check(assumptions.SMOOTH_OBJECTIVE, "L = 1 is the second derivative", 1, "<=", 1),
            Check(assumptions.BLOCK_SMOOTH, "Lmax = 1 is the second derivative", 1, "<=", 1),
            Check(ALGORITHM, "sum of the weights 1/2 and 1/2", HALF + HALF, "==", 1),
            cap_check(Fraction(1, 8), 1),
        ),
        lines=(
            Line("client 1 after its step", x - (x - 0) / 8),
            Line("client 2 after its step", x - (x - 4) / 8),
            Line("their mean", x),
            Line("the minimizer of (2)", Fraction(12, 4)),
        ),
        claimed=0,
        true=gradient**2,
        sides=("what is left of |grad f|^2 where TDCD is at rest, without noise", "|grad f|^2 there"),
        minimal="shards of equal sizes refute nothing",
        smaller=(Smaller("two samples each", 0, rest_point((2, 2), (0, 4))[1] ** 2),),
    )


def one_silos_labels(Q: int) -> tuple[Fraction, Fraction]:
    """x_1 after a round of (x_1 + x_2 - 1)^2/2 from 0, with derivatives of each step and of the round's start."""
    eta, x = Fraction(1, 4), Fraction(0)
    for _ in range(Q):
        x -= eta * (x - 1)
    return x, Q * eta


def one_exchange_of_derivatives() -> Replay:
    """Two silos, one sample, two local steps."""
    renewed, once = one_silos_labels(2)
    return Replay(
        instance="Two silos with one parameter each, one sample with features 1 and 1 and label 1, loss (x_1 + x_2 - "
        "1)^2/2, from 0; Q = 2, eta = 1/4.",
        hypotheses=(Check(ONE_EXCHANGE, "exchanges of derivatives in a round", 1, "==", 1),),
        lines=(
            Line("x_1 after the round of TDCD", renewed),
            Line("x_1 with the derivatives of its start", once),
            Line("exchanges it takes to be the same", 2),
        ),
        claimed=0,
        true=(renewed - once) ** 2,
        sides=("squared difference after a round", "measured"),
        minimal="fewest local steps",
        smaller=(Smaller("one local step", 0, (one_silos_labels(1)[0] - one_silos_labels(1)[1]) ** 2),),
    )


def one_exchange_a_step() -> Argument:
    """The label holder adds up what it receives, and differentiates."""
    eta, others, own = Fraction(1, 4), Fraction(0), Fraction(0)
    for _ in range(2):
        own -= eta * (others + own - 1)  # the embedding is sent, the derivative of the loss at the sum comes back
    return Argument(
        "If the derivative is asked for in every local step, it is taken at the same sum of embeddings that a client "
        "with labels would form: the local steps are those of TDCD.",
        (Check("derivatives in every step", "x_1 after two steps", own, "==", one_silos_labels(2)[0]),),
    )
