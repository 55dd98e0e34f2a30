"""What the clients of silos compute between two exchanges, and how each silo's hub makes one block of their copies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count
from fedbounds.empirical.algorithms.algorithm import Averaging, Fits
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.participation import Full, Process

Average = Literal["clients", "shards", "batches"]
Empty = Literal["refuse", "zero", "drop"]


@dataclass(frozen=True)
class TierSteps:
    r"""Q local steps of the clients of every silo on their copies of its block, and the hub's mean of the copies.

    $$\theta_{k,j}^{q+1}=\theta_{k,j}^q-\eta\,g_{k,j}(\theta_{-j},\theta_{k,j}^q),\quad q<Q,\qquad
    \theta_j^+=\sum_kw_{k,j}\theta_{k,j}^Q$$

    with the other blocks $\theta_{-j}$ and the batch as of the exchange.

    Source: Das et al. 2022, Algorithm 1; shards, batches and empty parts of a batch are not in the paper.
    """

    step_size: float  # $\eta>0$, in units x^2/f
    steps: int  # $Q\ge1$
    # $w_{k,j}$: `"clients"` $1/K_j$; `"shards"` the client's share of the samples; `"batches"` its share of the
    # round's batch
    average: Average = "clients"
    # for a client without a sample of the batch: `"refuse"`, a gradient of `"zero"`, or `"drop"` it from the
    # mean
    empty: Empty = "refuse"
    discards_last: bool = False  # whether the hub averages the copies before the last local step, which is lost
    stale: bool = False  # whether all Q steps use the derivatives of the loss in the embeddings as of the exchange
    worded: ClassVar[bool] = False
    oracle: ClassVar[str] = "stochastic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_size", check_positive("local_step_size", self.step_size))
        object.__setattr__(self, "steps", check_count("local_steps", self.steps))
        check_choice("average", self.average, get_args(Average))
        check_choice("empty", self.empty, get_args(Empty))

    @property
    def plain(self) -> bool:
        """Whether each step is along the gradient where it is taken."""
        return not self.stale


class TieredAlgorithm(Averaging):
    """Algorithms whose clients work on copies of one block each, and whose hubs average them."""

    tiered = True
    own_weights = True
    averages = False

    @property
    @abstractmethod
    def local(self) -> TierSteps:
        """What the clients and the hub of a silo do between two exchanges."""

    @property
    def derivative_exchanges(self) -> int:
        """How often in a round the one silo with the labels returns derivatives; 0, the default, if all have them."""
        return 0

    def bind_process(self, process: Process) -> TieredAlgorithm:
        """Itself, if all clients take part in all rounds."""
        if not isinstance(process, Full):
            raise FedboundsError(
                f"{self.kind} has all clients of all silos in every round: participation must be full, not "
                f"{process.kind}"
            )
        return self

    def message_bytes(self, problem: Fits) -> None:
        """Messages are of several kinds and lengths."""
