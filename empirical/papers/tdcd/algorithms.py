r"""TDCD on problems whose parameters lie in silos, as corrected, as printed, and with the labels in one silo alone.

It was compared with itself at other numbers of local steps: Q = 1 is the distributed SGD of the paper's figures, N = 1
is local SGD that keeps its batch for a round, $K_j=1$ is vertical federated learning with local steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from fedbounds.bounds.inputs.checks import check_choice
from fedbounds.empirical.algorithms.algorithm import Fits, LinkLoad
from fedbounds.empirical.algorithms.tiers import Average, Empty, TieredAlgorithm, TierSteps
from fedbounds.empirical.papers.tdcd.traffic import LINKS, Traffic

Derivatives = Literal["every step", "once a round"]


class Tiered(TieredAlgorithm):
    """Algorithms whose clients work on copies of one block each, and whose hubs average them."""

    def __post_init__(self) -> None:
        _ = self.local  # which checks the numbers

    def link_loads(self, problem: Fits) -> Mapping[str, LinkLoad]:
        """As `Traffic` counts it; nothing without embeddings."""
        if problem.silo_sizes is None:
            return {}
        traffic = Traffic.of(problem, self)
        return {link: LinkLoad(traffic.floats(link), traffic.bytes(link)) for link in LINKS}

    def round_bytes(self, problem: Fits) -> int | None:
        """What clients send their hubs and hubs each other; None without embeddings."""
        return None if problem.silo_sizes is None else Traffic.of(problem, self).uplink_bytes


@dataclass(frozen=True)
class TDCD(Tiered):
    r"""Tiered decentralized coordinate descent: silos own blocks of the model, their clients copies of one block.

    At the start of a round all hubs draw the same batch, and what the silos' embeddings of its samples sum to is
    exchanged. Client k of silo j then takes Q steps on its own copy, with the batch and the others' embeddings as they
    were:

    $$\theta_{k,j}^{t+1} = \theta_{k,j}^t - \eta\,g_{k,j}(\theta_{-j}^{t_0},\theta_{k,j}^t), \qquad
      \theta_j^{t_0+Q} = \frac1{K_j}\sum_k\theta_{k,j}^{t_0+Q}$$

    Args:
        local_step_size: $\eta>0$, units x^2/f.
        local_steps: $Q\ge1$.
        average: the hub's mean of the copies: `"clients"` weigh the same, as in the paper, whose mean is then not that
            of the objective where shards are unequal; or by their share of the samples, `"shards"`, or of the round's
            batch, `"batches"`, whose first step is along the batch's gradient whatever the shards are.
        empty: what becomes of clients who hold no sample of a batch, of which the paper does not speak: `"refuse"`, a
            gradient of `"zero"`, with which they stay in the mean as in the published code, or `"drop"` them from it.
            With the last two gradients are biased, but if weighed by `"batches"`.

    Raises:
        FedboundsError: a number outside its domain, an unknown choice.

    Example:
        >>> TDCD(0.01, 5).local.steps
        5

    Source: Das et al. 2022, Algorithm 1, with the copies *after* the last local step in line 32, as (13) needs.
    """

    kind = "tdcd"
    local_step_size: float
    local_steps: int
    average: Average = "clients"
    empty: Empty = "refuse"

    @property
    def local(self) -> TierSteps:
        return TierSteps(self.local_step_size, self.local_steps, self.average, self.empty)


@dataclass(frozen=True)
class PrintedTDCD(Tiered):
    r"""Algorithm 1 as printed: line 32 averages $\theta_{k,j}^t$, before the last local step, which is lost.

    With Q = 1 the model never moves, with $Q\ge2$ a round has Q - 1 steps that count. (The loop's one iteration too
    many begins a round that is never averaged; it changes no model.)

    Args:
        local_step_size, local_steps: as in `TDCD`.

    Raises:
        FedboundsError: a number outside its domain.

    Example:
        >>> PrintedTDCD(0.01, 5).local.discards_last
        True

    Source: Das et al. 2022, Algorithm 1 as printed, line 32.
    """

    kind = "tdcd-printed"
    local_step_size: float
    local_steps: int

    @property
    def local(self) -> TierSteps:
        return TierSteps(self.local_step_size, self.local_steps, discards_last=True)


@dataclass(frozen=True)
class LabelPrivateTDCD(Tiered):
    r"""TDCD where one silo alone knows the labels: it gets every silo's embeddings and returns the loss's derivatives.

    Called equivalent to TDCD by the paper. If derivatives come back in every local step it is, at Q exchanges a round;
    if they come back once a round, $\partial\ell$ stays what it was at $t_0$ while the embedding's Jacobian moves, and
    it is another algorithm wherever Q > 1.

    Args:
        local_step_size, local_steps: as in `TDCD`.
        derivatives: `"every step"` or `"once a round"`.
        average, empty: as in `TDCD`.

    Raises:
        FedboundsError: a number outside its domain, an unknown choice.

    Example:
        >>> LabelPrivateTDCD(0.01, 5, "once a round").local.stale
        True

    Source: Das et al. 2022, Remark 2, which leaves open how often.
    """

    kind = "tdcd-label-private"
    local_step_size: float
    local_steps: int
    derivatives: Derivatives = "every step"
    average: Average = "clients"
    empty: Empty = "refuse"

    def __post_init__(self) -> None:
        check_choice("derivatives", self.derivatives, get_args(Derivatives))
        super().__post_init__()

    @property
    def local(self) -> TierSteps:
        stale = self.derivatives == "once a round"
        return TierSteps(self.local_step_size, self.local_steps, self.average, self.empty, stale=stale)

    @property
    def derivative_exchanges(self) -> int:
        return 1 if self.derivatives == "once a round" else self.local.steps


ALGORITHMS = (TDCD, PrintedTDCD, LabelPrivateTDCD)
