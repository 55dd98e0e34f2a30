"""FedMRN as it is analyzed, with an unbiased operator, as a performance-estimation problem."""

from PEPit import Point

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification import worst_case as estimation
from fedbounds.empirical.participation import WithoutReplacement

THEOREMS = ("fedmrn/theorem-2",)


def analyzed_fedmrn(
    *,
    iterations: int,  # T
    blocks: int = 1,  # the run is so many times as long and cut into blocks like this one, as `gap_of_a_block` says
    step: float,  # eta, the same in all iterations
    local_steps: int = 1,  # S, after which K clients are averaged
    clients: int = 1,  # N
    participants: int | None = None,  # K of them, drawn without replacement; all if not given
    relative_error: float = 0.0,  # q
    # G, the most that the root mean square of a stochastic gradient is where it is taken
    gradient_bound: float = float("inf"),
    smoothness: float = 1.0,  # L of every client's function
    gap: float = 1.0,  # F(w_0) - F*
    gap_to: estimation.GapTo = "infimum",  # whether it is F(w_0) less the infimum, or less the last expected value
    # the average over t < T, or the least of the expected squared norms for t < T, or for t <= T
    measure: estimation.Measure = "average",
    noise: float = 0.0,  # sigma, the root of the variance of every stochastic gradient
) -> estimation.WorstCase:
    r"""The largest $\frac1T\sum_t\mathbb E\|\nabla F(\bar w_t)\|^2$ of eqs. (13) to (15) over N smooth functions.

    The operator is any with $\mathbb E[\mathcal S(u)\mid u]=u$ and
    $\mathbb E\|\mathcal S(u)-u\|^2\le q^2\|u\|^2$, drawn afresh at every use: of it, too, only second moments count.

    Source: Li et al. 2024, eqs. (13) to (15), Assumptions 2 to 4 squared.
    """
    estimation.whole(iterations=iterations, local_steps=local_steps, clients=clients)
    estimation.positive(step=step, smoothness=smoothness)
    if gradient_bound != float("inf"):
        estimation.positive(gradient_bound=gradient_bound)
    estimation.nonnegative(noise=noise, relative_error=relative_error)
    drawn = clients if participants is None else participants
    if not 1 <= drawn <= clients:
        raise FedboundsError(f"participants = {drawn} must be between 1 and clients = {clients}")
    if blocks > 1 and iterations % local_steps:
        raise FedboundsError(f"iterations = {iterations} of a block must be a multiple of local_steps = {local_steps}")
    process, shares = WithoutReplacement(clients, drawn), dict.fromkeys(range(clients), 1 / clients)
    run, unit = estimation.Estimation(clients=clients), smoothness * estimation.gap_of_a_block(gap, blocks, gap_to)
    bounded, deviation = gradient_bound**2 / unit, noise / unit**0.5

    def compressed(own: estimation.Locally, n: int, update: Point) -> Point:
        return update + own.noise(n, relative_error**2 * update**2) if relative_error else update

    anchor, own = run.start, estimation.Locally(run)
    models = dict.fromkeys(range(clients), anchor)
    for t in range(iterations):
        run.record_gradient(estimation.weighted_points(models, shares))
        begun = t % local_steps == 0
        seen = models if begun else {n: anchor + compressed(own, n, w - anchor) for n, w in models.items()}
        at = own.stochastic_gradients(seen, deviation)
        if bounded < float("inf"):
            for gradient in at.values():
                run.at_most(gradient**2, bounded)
        models = {n: w - step * smoothness * at[n] for n, w in models.items()}
        if (t + 1) % local_steps == 0:
            sent = {n: compressed(own, n, v - anchor) for n, v in models.items()}
            anchor, own = anchor + run.sampled(sent, process.mean(0), process.covariance(0, 0)), estimation.Locally(run)
            models = dict.fromkeys(models, anchor)
    run.record_gradient(estimation.weighted_points(models, shares))
    value, primal = run.worst_gradients(measure, gap_to, unit)
    constants = {
        "L": smoothness,
        "F": gap,
        "N": clients,
        "K": drawn,
        "S": local_steps,
        "T": iterations * blocks,
        "eta": step,
        "G": gradient_bound,
        "q": relative_error,
        "sigma": noise,
    }
    random = noise > 0 or relative_error > 0 or drawn < clients
    attained = clients == blocks == 1 and not random and bounded == float("inf")
    return estimation.WorstCase(
        "FedMRN as it is analyzed", THEOREMS, measure, value, primal, attained, constants, random
    )


WORST_CASES = {"fedmrn-analysis": analyzed_fedmrn}
