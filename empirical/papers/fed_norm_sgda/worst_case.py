"""Fed-Norm-SGDA on nonconvex-strongly-concave games as a performance-estimation problem."""

from dataclasses import dataclass

from PEPit import Expression, Point

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification.worst_case import (
    Estimation,
    GapTo,
    Locally,
    Measure,
    WorstCase,
    gap_of_a_block,
    nonnegative,
    positive,
    squared_gradients,
    weighted_points,
    whole,
)
from fedbounds.empirical.participation import WithoutReplacement

THEOREMS = ("fed-norm-sgda/theorem-1",)


def fed_norm_sgda(
    *,
    condition: float,  # kappa > 1
    step: float,  # $\Gamma_x=\tau\gamma_x$
    ascent_step: float,  # $\Gamma_y=\tau\gamma_y$
    local_step: float = 0.0,  # eta_x
    local_ascent_step: float = 0.0,  # eta_y
    local_steps: int = 1,  # tau, of every client
    rounds: int = 1,  # of one block
    blocks: int = 1,  # how many, so that T is their product
    clients: int = 1,  # n
    participants: int | None = None,  # P of them, drawn without replacement; all if not given
    smoothness: float = 1.0,  # L_f
    gap: float = 1.0,  # Delta
    dual_gap: float = 1.0,  # delta_0
    gap_to: GapTo = "last",  # `"last"`, or `"infimum"` of one block
    dual_weight: float | None = None,  # lambda; $\frac94\kappa^2\Gamma_x/\Gamma_y$ if not given
    measure: Measure = "average",  # the average over t < T, or the least of the expected squared norms
    noise: float = 0.0,  # sigma_L of each block of variables
    heterogeneity: float = 0.0,  # sigma_G, with beta_G = 1, at the models of the server and at the maximizers there
) -> WorstCase:
    r"""An upper bound of the average of $\mathbb E\|\nabla\tilde\Phi(x^{(t)})\|^2$, every client with weight 1/n.

    Of functions that are $L_f$-smooth in (x, y) and $\mu$-strongly concave in y no interpolation conditions are known
    that are also sufficient. Used are that smoothness between any two points, strong concavity between any two with
    the same x, and of $\tilde\Phi$ that its curvature is between $-L_f$ and $(1+\kappa)L_f$ and that the maximizer
    moves at most $\kappa$ times as far as x: all necessary. The theorem's steps in x are so small that nothing happens
    in the few rounds of a program: a long run is cut into blocks, each of which has its share of the fall of
    $\tilde\Phi+\lambda(\tilde\Phi-\tilde F)$, and all shares together are at most $\Delta+\lambda\delta_0$.

    Source: Sharma et al. 2023, Algorithm 1 and eq. (12), with local SGDA.
    """
    whole(local_steps=local_steps, rounds=rounds, clients=clients)
    positive(step=step, ascent_step=ascent_step)
    positive(smoothness=smoothness)
    nonnegative(
        local_step=local_step,
        local_ascent_step=local_ascent_step,
        noise=noise,
        heterogeneity=heterogeneity,
        dual_gap=dual_gap,
    )
    drawn = clients if participants is None else participants
    if not condition > 1:
        raise FedboundsError(f"condition = {condition} must be above 1")
    if not 1 <= drawn <= clients:
        raise FedboundsError(f"participants = {drawn} must be between 1 and clients = {clients}")
    unit = smoothness * gap_of_a_block(gap, blocks, gap_to)  # of squared gradients
    weight = 2.25 * condition**2 * step / ascent_step if dual_weight is None else dual_weight
    game = _Game(clients, condition, (step * smoothness) ** -0.5, heterogeneity**2 / unit)
    run, process = game.run, WithoutReplacement(clients, drawn)
    x, y = run.start, Point()
    for _ in range(rounds):
        game.maximizer(x)
        game.at(x, y)
        own, ahead = Locally(run), dict[int, tuple[Point, Point]]()
        for n in range(clients):
            ahead[n] = game.directions(
                n, x, y, own, (local_step * smoothness, local_ascent_step * smoothness), local_steps, noise / unit**0.5
            )
        law = process.mean(0), process.covariance(0, 0)
        x = x - step * smoothness * run.sampled({n: g for n, (g, _) in ahead.items()}, *law)
        y = y + ascent_step * smoothness * run.sampled({n: g for n, (_, g) in ahead.items()}, *law)
    game.maximizer(x)
    game.at(x, y)
    game.interpolate()
    top, dual = game.envelope, game.dual_gaps
    if gap_to == "last":
        fall = top[0].value - top[-1].value + weight * (dual[0] - dual[-1])
        run.at_most(fall, 1 + weight * dual_gap / gap)
    else:
        infimum = Expression()
        for here in top:
            run.at_most(infimum, here.value - here.in_x**2 / (2 * (1 + condition)))
        run.at_most(top[0].value - infimum, 1)
        run.at_most(dual[0], dual_gap / gap)
    scale = step * smoothness  # the largest gradient is about this to the power -1/2
    squares = [scale * s for s in squared_gradients([here.in_x for here in top], measure)]
    value, primal = (unit / scale * v for v in run.worst(squares))
    constants = {
        "Lf": smoothness,
        "kappa": condition,
        "n": clients,
        "P": drawn,
        "T": rounds * blocks,
        "tau": [local_steps] * clients,
        "w": [1 / clients] * clients,
        "p": [1 / clients] * clients,
        "etax": local_step,
        "etay": local_ascent_step,
        "gammax": step / local_steps,
        "gammay": ascent_step / local_steps,
        "sigmaL": noise,
        "betaL": 0.0,
        "sigmaG": heterogeneity,
        "betaG": 1.0,
        "Delta": gap,
        "delta0": dual_gap,
    }
    random = noise > 0 or drawn < clients
    return WorstCase("Fed-Norm-SGDA", THEOREMS, measure, value, primal, False, constants, random)


@dataclass(frozen=True)
class _At:
    """A function at a point: its two gradients and its value."""

    x: Point
    y: Point
    in_x: Point
    in_y: Point
    value: Expression


class _Game:
    """n functions of (x, y) with $L_f=1$, and what is known of them.

    Gradients in x, of about the size `scale`, are written as the first one and their differences from it.
    """

    def __init__(self, clients: int, condition: float, scale: float, apart: float) -> None:
        self.run, self.condition, self.scale, self.apart = Estimation(clients=0), condition, scale, apart
        self.shares = dict.fromkeys(range(clients), 1 / clients)
        self.seen: dict[int, list[_At]] = {n: [] for n in range(clients)}
        self.envelope: list[_At] = []
        self.dual_gaps: list[Expression] = []
        self._first: Point | None = None

    def _in_x(self) -> Point:
        if self._first is None:
            self._first = self.scale * Point()
            return self._first
        return self._first + Point()

    def _see(self, n: int, x: Point, y: Point, in_y: Point) -> _At:
        self.seen[n].append(_At(x, y, self._in_x(), in_y, Expression()))
        return self.seen[n][-1]

    def _mean(self, each: dict[int, _At]) -> _At:
        """The mean of all functions at one point, from which they are not too far."""
        first = each[0]
        mean = _At(
            first.x,
            first.y,
            weighted_points({n: at.in_x for n, at in each.items()}, self.shares),
            weighted_points({n: at.in_y for n, at in each.items()}, self.shares),
            weighted_points({n: at.value for n, at in each.items()}, self.shares),
        )
        if len(each) > 1:
            for squares in (
                {n: (at.in_x - mean.in_x) ** 2 for n, at in each.items()},
                {n: (at.in_y - mean.in_y) ** 2 for n, at in each.items()},
            ):
                self.run.at_most(weighted_points(squares, self.shares), self.apart)
        return mean

    def maximizer(self, x: Point) -> None:
        """The envelope at x: where the mean gradient in y is zero."""
        y = Point()
        free = {n: Point() for n in list(self.shares)[1:]}
        balance = 0 * y if not free else weighted_points(free, dict.fromkeys(free, -1.0))
        self.envelope.append(self._mean({n: self._see(n, x, y, free.get(n, balance)) for n in self.shares}))

    def at(self, x: Point, y: Point) -> None:
        """The mean at a model of the server, whose x was that of the last maximizer."""
        mean = self._mean({n: self._see(n, x, y, Point()) for n in self.shares})
        self.dual_gaps.append(self.envelope[-1].value - mean.value)

    def directions(
        self, n: int, x: Point, y: Point, own: Locally, steps: tuple[float, float], count: int, deviation: float
    ) -> tuple[Point, Point]:
        """The means over a client's local steps from the last model of its stochastic gradients in x and in y."""
        down, up = list[Point](), list[Point]()
        here = self.seen[n][-1]
        for k in range(count):
            if k:
                x, y = x - steps[0] * down[-1], y + steps[1] * up[-1]
                here = self._see(n, x, y, Point())
                own.unrelated(n, here.in_x, here.in_y)
            down.append(here.in_x + deviation * own.noise(n, 1.0) if deviation else here.in_x)
            up.append(here.in_y + deviation * own.noise(n, 1.0) if deviation else here.in_y)
        mean = dict.fromkeys(range(count), 1 / count)
        return weighted_points(dict(enumerate(down)), mean), weighted_points(dict(enumerate(up)), mean)

    def interpolate(self) -> None:
        """What must hold between any two points of a function, and of the envelope."""
        for seen in self.seen.values():
            for one in seen:
                for other in seen:
                    if one is not other:
                        self._smooth(one, other)
        for one in self.envelope:
            for other in self.envelope:
                if one is not other:
                    self._envelope(one, other)

    def _smooth(self, one: _At, other: _At) -> None:
        x, y, in_x, in_y = one.x - other.x, one.y - other.y, one.in_x - other.in_x, one.in_y - other.in_y
        middle = 0.5 * ((one.in_x + other.in_x) * x) + 0.5 * ((one.in_y + other.in_y) * y)
        least = middle + 0.25 * (in_x**2 + in_y**2) - 0.25 * (x**2 + y**2)
        self.run.at_most(other.value + least, one.value)
        if one.x is other.x:
            mu = 1 / self.condition
            bent = in_y**2 + mu * y**2 + 2 * mu * (in_y * y)
            self.run.at_most(one.value + 1 / (2 * (1 - mu)) * bent, other.value + other.in_y * y)

    def _envelope(self, one: _At, other: _At) -> None:
        x, in_x, most = one.x - other.x, one.in_x - other.in_x, 1 + self.condition
        bent = in_x**2 / most - x**2 + 2 / most * (in_x * x)
        self.run.at_most(other.value + other.in_x * x + 1 / (2 * (1 + 1 / most)) * bent, one.value)
        self.run.at_most((one.y - other.y) ** 2, self.condition**2 * x**2)


WORST_CASES = {"fed-norm-sgda": fed_norm_sgda}
