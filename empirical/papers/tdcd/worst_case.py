"""TDCD with full gradients as a performance-estimation problem: blocks that move at once, each by what it sees."""

from __future__ import annotations

from fedbounds.empirical.worst_case import Estimation, GapTo, Measure, WorstCase, positive, squared_gradients


def tdcd(
    *,
    rounds: int,
    local_step: float,
    local_steps: int = 1,
    silos: int = 2,
    smoothness: float = 1.0,
    gap: float = 1.0,
    gap_to: GapTo = "last",
    measure: Measure = "average",
) -> WorstCase:
    r"""The largest average of $\|\nabla f\|^2$ at the synchronized models over smooth functions of N blocks.

    In a round silo j takes Q steps in its own block with the other blocks held where the round began.

    Args:
        rounds: R.
        local_step: eta.
        local_steps: Q.
        silos: N, the number of blocks.
        smoothness: L of f, which bounds the smoothness of every block too.
        gap: Delta.
        gap_to: whether it is f(x_0) less the last value, or less the infimum.
        measure: the average or the minimum over the R synchronized models.

    Raises:
        FedboundsError: a number outside its domain, or no clean optimum.

    Source:
        Das et al. 2022, Algorithm 1 with one client in each silo.
    """
    positive(rounds=rounds, local_steps=local_steps, silos=silos, local_step=local_step, smoothness=smoothness, gap=gap)
    run = Estimation()
    (f,) = run.functions
    blocks = run.program.declare_block_partition(d=silos)
    x, gradients = run.start, []
    for _ in range(rounds):
        gradient, _ = run.objective(x)
        gradients.append(gradient)
        after = x
        for j in range(silos):
            own, here = x, gradient
            for step in range(local_steps):
                if step:
                    here = f.gradient(own)
                own = own - local_step * smoothness * blocks.get_block(here, j)
            after = after + (own - x)
        x = after
    gradients.append(run.objective(x)[0])
    run.starts(gap_to)
    value, primal = (smoothness * gap * v for v in run.worst(squared_gradients(gradients, measure)))
    constants = {"L": smoothness, "Lmax": smoothness, "S": 0.0, "Q": local_steps, "R": rounds, "eta": local_step}
    constants["Delta" if gap_to == "last" else "Deltainf"] = gap
    words = f"{measure} over rounds of the squared gradient norm of f at the synchronized model"
    return WorstCase("TDCD", words, value, primal, silos == 1 and local_steps == 1, constants)


WORST_CASES = {"tdcd": tdcd}
