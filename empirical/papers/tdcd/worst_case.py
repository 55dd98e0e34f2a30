"""TDCD as a performance-estimation problem: blocks that move at once, each by what it sees of a mini-batch or of f."""

from collections.abc import Sequence

from PEPit import BlockPartition, Expression, Point
from PEPit.functions import SmoothFunction

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification import worst_case as estimation

THEOREMS = ("tdcd/theorem-1",)


def tdcd(
    *,
    rounds: int,  # R
    blocks: int = 1,  # the run is so many times as long and cut into blocks like this one, as `gap_of_a_block` says
    local_step: float,  # eta
    local_steps: int = 1,  # Q
    silos: int = 2,  # N, the number of blocks
    clients: int = 1,  # K of each silo; several take full gradients
    # the root of S, the mean over the clients of $\|\nabla F_k-\nabla f\|^2$ at synchronized models; of a run in blocks
    # in the mean, as the worst case of a block is concave in its gap and its S
    heterogeneity: float = 0.0,
    smoothness: float = 1.0,  # L of f or of every $F_k$, which bounds the smoothness of every block too
    gap: float = 1.0,  # Delta
    gap_to: estimation.GapTo = "last",  # whether it is f(x_0) less the last value, or less the infimum
    measure: estimation.Measure = "average",  # the average or the minimum over the R synchronized models
    noise: float = 0.0,  # sigma, the root of the variance of every silo's stochastic partial gradient
    block_smoothness: float | None = None,  # Lmax, of what a mini-batch makes of f in each block; L if not given
) -> estimation.WorstCase:
    r"""The largest average of $\mathbb E\|\nabla f\|^2$ at the synchronized models over smooth functions of N blocks.

    In a round silo j takes Q steps in its own block with the other blocks held where the round began, all of them with
    one mini-batch: its partial gradient $g_j(\cdot;\xi)$ has $\mathbb E g_j(x;\xi)=\nabla_jf(x)$ and variance
    $\sigma^2$ where the round begins, and from there on is the gradient of some smooth function of block j, whose mean
    given the model says nothing any more. Or, without noise, f is the mean of K smooth functions, and client k of each
    silo takes its steps with $F_k$ before the hub averages the copies.

    Source: Das et al. 2022, Algorithm 1; every silo deals its samples out to its clients in the same way.
    """
    most = smoothness if block_smoothness is None else block_smoothness
    estimation.whole(rounds=rounds, local_steps=local_steps, silos=silos, clients=clients)
    estimation.positive(local_step=local_step, smoothness=smoothness, block_smoothness=most)
    estimation.nonnegative(noise=noise, heterogeneity=heterogeneity)
    exact, apart = not noise and block_smoothness is None, heterogeneity**2 if clients > 1 else 0.0
    if clients > 1 and not exact:
        raise FedboundsError("several clients of a silo take full gradients: leave noise and block_smoothness out")
    share = smoothness * estimation.gap_of_a_block(gap, blocks, gap_to)
    unit = max(share, apart)  # of squared gradients: the solver needs both to be moderate
    run, deviation, shares = (
        estimation.Estimation(clients),
        noise / unit**0.5,
        dict.fromkeys(range(clients), 1 / clients),
    )
    partition = run.program.declare_block_partition(d=silos)

    def steps(x: Point, first: Sequence[Point], error: Point | None, j: int) -> Point:
        """By how much silo j moves its block from x, in the mean over the copies of its clients."""
        batch = None if exact else run.program.declare_function(SmoothFunction, L=most / smoothness)
        own, here = [x] * clients, [partition.get_block(gradient, j) for gradient in first]
        if error is not None:
            here = [g + deviation * partition.get_block(error, j) for g in here]
        for step in range(local_steps):
            if step:
                seen = [F.gradient(y) if batch is None else Point() for F, y in zip(run.functions, own, strict=True)]
                here = [partition.get_block(g, j) for g in seen]
            if batch is not None:
                batch.add_point((own[0], here[0], Expression()))
            own = [y - local_step * smoothness * g for y, g in zip(own, here, strict=True)]
        return estimation.weighted_points(dict(enumerate(own)), shares) - x

    x = run.start
    for _ in range(rounds):
        gradient = run.record_gradient(x)
        first = [F.gradient(x) for F in run.functions]
        if clients > 1:
            run.at_most(
                estimation.weighted_points({k: (g - gradient) ** 2 for k, g in enumerate(first)}, shares), apart / unit
            )
        error = noise_of_blocks(run, partition, silos) if deviation else None
        for moved in [steps(x, first, error, j) for j in range(silos)]:
            x = x + moved
    run.record_gradient(x)
    value, primal = run.worst_gradients(measure, gap_to, unit, share / unit)
    constants = {"L": smoothness, "Lmax": most, "S": silos * noise**2 + apart, "Q": local_steps}
    constants |= {"R": rounds * blocks, "eta": local_step, "Delta" if gap_to == "last" else "Deltainf": gap}
    attained = exact and silos * clients * local_steps * blocks == 1
    return estimation.WorstCase("TDCD", THEOREMS, measure, value, primal, attained, constants, noise > 0)


def noise_of_blocks(run: estimation.Estimation, partition: BlockPartition, silos: int) -> Point:
    """A mini-batch's error, whose mean given the past is zero in every block, with a variance of at most 1 in each."""
    past, error = list(Point.list_of_leaf_points), Point()
    for part in (partition.get_block(error, j) for j in range(silos)):
        run.unrelated(part, past)
        run.at_most(part**2, 1)
    return error


WORST_CASES = {"tdcd": tdcd}
