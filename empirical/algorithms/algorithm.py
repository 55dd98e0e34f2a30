"""What an algorithm is to the engines: who computes, what they compute, and what the server makes of it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_arguments, check_count
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local import LocalSGD, check_positive
from fedbounds.empirical.algorithms.messages.envelope import OVERHEAD
from fedbounds.empirical.participation import Process
from fedbounds.empirical.problems.problem import Problem, SiloSizes
from fedbounds.empirical.runtime.streams import Streams


@dataclass(frozen=True)
class Pairs:
    """The single updates of one round. A *pair* is one client computing in one seed."""

    seeds: torch.Tensor  # which row of the batch of seeds each pair belongs to, shape (pairs,)
    clients: torch.Tensor  # which client, shape (pairs,)
    weights: torch.Tensor  # its weight $q^n$, shape (pairs,)
    updates: torch.Tensor  # its update $\\Delta_n$, shape (pairs, d)


@dataclass(frozen=True)
class RoundReport:
    """What the server hears in one round, over all seeds.

    Args:
        weighted_sum: $\\sum_n q^n \\Delta_n$, shape (seeds, d); zero where nobody computed.
        cohort: who computed.
        pairs: the single updates, if the algorithm `needs_updates`.
    """

    weighted_sum: torch.Tensor
    cohort: Cohort
    pairs: Pairs | None = None

    def split(self, cohorts: Sequence[Cohort]) -> Sequence[RoundReport]:
        """The parts of the report that are of these cohorts, of which its own is joined."""
        if len(cohorts) == 1:
            return [self]
        sums = self.weighted_sum.split([len(cohort.counts) for cohort in cohorts])
        if self.pairs is None:
            return [RoundReport(total, cohort) for total, cohort in zip(sums, cohorts, strict=True)]
        updates, found = self.pairs.updates.split([len(cohort.clients) for cohort in cohorts]), []
        for total, cohort, own in zip(sums, cohorts, updates, strict=True):
            who = cohort.to_device(own.device)
            pairs = Pairs(who.seeds, who.clients, who.weights.to(own.dtype), own)
            found.append(RoundReport(total, cohort, pairs))
        return found


class Fits(Protocol):
    """What an algorithm must know of a problem to tell whether it can run on it: every `Problem` has it."""

    @property
    def clients(self) -> int: ...

    @property
    def dimension(self) -> int: ...

    @property
    def uncompressed(self) -> int: ...

    @property
    def statistics(self) -> int: ...

    @property
    def ascends(self) -> bool: ...

    @property
    def silos(self) -> int: ...

    @property
    def steps_per_epoch(self) -> np.ndarray | None: ...

    @property
    def silo_sizes(self) -> SiloSizes | None: ...


class LinkLoad(NamedTuple):
    """What a round sends over links of one class: floats, and with all else bytes."""

    floats: int
    bytes: int


class ServerSchedule(NamedTuple):
    r"""How the server moves the models, as exact moments need it."""

    interval: int = 1  # P, in rounds
    multiplier: float = 1.0  # $\eta$, by what the progress over an interval is multiplied
    frozen: bool = False  # whether gradients are taken at the interval's first model


class Algorithm(ABC):
    """A federated algorithm: a client update (`local`) and a server update, nothing else.

    Subclasses are frozen dataclasses of step sizes and intervals. The state is an immutable `NamedTuple` of
    tensors whose first axis is the seeds, so that a seed can be taken out of the batch. The round `t` counts
    from the start of the algorithm's own phase.

    Attributes:
        kind: its name in a specification.
        needs_updates: whether the server must see the single updates.
        ascends: whether it is for minimax problems; all others are for problems that are minimized.
        tiered: whether it is for problems whose parameters are split over silos; no other is.
        own_weights: whether only who takes part counts, not with which weight.
        corrects: whether clients add a `correction` to their gradients.
        averages: whether the models are means of the clients' models, if weights sum to one.
    """

    kind: ClassVar[str]
    needs_updates: ClassVar[bool] = False
    ascends: ClassVar[bool] = False
    tiered: ClassVar[bool] = False
    own_weights: ClassVar[bool] = False
    corrects: ClassVar[bool] = False
    averages: ClassVar[bool] = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        check_arguments(cls.__name__, cls.__init__, args, kwargs)
        return super().__new__(cls)

    @property
    @abstractmethod
    def local(self) -> Any:
        """What a participating client computes from what it is `broadcast`: a `LocalSGD`, or a `LocalDescentAscent`."""

    @property
    def skips_empty_rounds(self) -> bool:
        """Whether a run without its empty rounds is the same run: they change nothing, and nothing counts them."""
        return False

    @abstractmethod
    def init(self, x0: torch.Tensor, clients: int) -> Any:
        """The state before round 0, from the initial models (seeds, d) and the number of clients N."""

    def bind_process(self, process: Process) -> Algorithm:
        """The algorithm that knows what it may know of the participation it will meet: nothing, by default."""
        return self

    def check(self, problem: Fits, rounds: int) -> None:
        """Whether it can run on a problem for T rounds.

        Raises:
            FedboundsError: what does not fit.
        """
        if problem.ascends and not self.ascends:
            raise FedboundsError(
                f"{self.kind} would descend in both blocks of a minimax problem; use an algorithm for such problems, "
                "as fed-norm-sgda or local-sgda"
            )
        if self.ascends and not problem.ascends:
            raise FedboundsError(f"{self.kind} is for minimax problems, and this problem has no player that ascends")
        if problem.silos and not self.tiered:
            raise FedboundsError(
                f"{self.kind} sends every client the whole model, and the problem's parameters are split over "
                f"{problem.silos} silos; use an algorithm for such problems, as tdcd"
            )
        if self.tiered and not problem.silos:
            raise FedboundsError(f"{self.kind} is for problems whose parameters lie in silos, and this has none")
        if problem.statistics and not (self.averages and self.local.oracle == "stochastic"):
            raise FedboundsError(
                f"running statistics of batch normalization are averaged, and found in batches: {self.kind} does not; "
                "use an algorithm such as fedavg, or a network without them"
            )

    def bind_problem(self, problem: Problem) -> Algorithm:
        """The algorithm as it runs on a problem that it fits: itself, by default."""
        return self

    @property
    def schedule(self) -> ServerSchedule | None:
        """How the server moves the models; None, the default, where exact moments are not known."""
        return None

    @property
    def waits(self) -> int | None:
        """The interval in whose last round all clients compute, and none in the others; None by default."""
        return None

    def reweigh_record(self, record: np.ndarray) -> np.ndarray:
        """The weights that it gives the updates in a record of weights, (T, N) to (T, N): as recorded, by default."""
        return record

    def factor_weights(self, process: Process) -> tuple[Process, np.ndarray] | None:
        """A process and constants (N,) whose products are the weights that it gives; None where they are no such."""
        return process, np.ones(process.clients)

    @property
    def plain_steps(self) -> bool:
        """Whether clients take plain steps of SGD, which on quadratics have a closed form."""
        return not (self.ascends or self.corrects) and self.local.plain

    @property
    def draws(self) -> bool:
        """Whether clients draw numbers of their own, beside those of their gradients."""
        return not self.ascends and self.local.worded

    def most_local_steps(self, problem: Fits) -> int:
        """The most local steps that a client ever takes in a round."""
        return int(self.local.steps)

    def message_bytes(self, problem: Fits) -> int | None:
        """How long the message is that a client sends after its local steps; None if that is not always the same.

        By default d numbers of 32 bits in the envelope of `fedbounds.empirical.algorithms.messages`, as
        `FullPrecision` sends.
        """
        return OVERHEAD + 4 * problem.dimension

    def link_loads(self, problem: Fits) -> Mapping[str, LinkLoad]:
        """What a round sends over each class of links; nothing, the default, where clients send a server messages of
        `message_bytes`."""
        return {}

    def round_bytes(self, problem: Fits) -> int | None:
        """What is sent up in a round, over all links together, where that does not depend on who computes.

        None, the default, where every client that computes sends a message of `message_bytes`, and no other does.
        """
        return None

    def begin_round(self, state: Any, t: int, overall: int, streams: Sequence[Streams]) -> Any:
        """The state with which round t begins: unchanged, by default. The models play no role in it (see `cohort`).

        Args:
            state: after the round before.
            t: the round.
            overall: the round counted over all phases, which is a place in the random streams.
            streams: of each seed.
        """
        return state

    def broadcast(self, state: Any) -> torch.Tensor:
        """What the clients receive, (seeds, ...): the models, by default, the same for all; or (seeds, N, d)."""
        return self.model(state)

    def cohort(self, state: Any, t: int, drawn: Cohort, clients: int) -> Cohort:
        """Who computes in round t, with which weights on the updates, when `drawn` is who is present: as drawn.

        On a device other than the processor rounds are planned ahead of their models: who computes may follow from
        what `begin_round` and `record_cohort` keep in the state, not from the models.

        Args:
            state: before the round.
            t: the round.
            drawn: the pairs that are present, with the weights of the participation.
            clients: N.
        """
        return drawn

    def local_work(self, t: int, overall: int, cohort: Cohort, streams: Sequence[Streams]) -> Cohort:
        """The pairs of round t with their local steps and step sizes, where they differ: as they are, by default."""
        return cohort

    def record_cohort(self, state: Any, t: int, cohort: Cohort) -> Any:
        """The state that remembers who computes in round t, before any update is known: unchanged, by default."""
        return state

    def nominal(self, state: Any, t: int, drawn: Cohort) -> Cohort:
        """The drawn with those weights that the theory takes to sum to one: as drawn, by default."""
        return drawn

    def correction(self, state: Any, cohort: Cohort) -> torch.Tensor | None:
        """What each pair adds to every gradient of its local steps, (pairs, d): nothing, by default."""
        return None

    @abstractmethod
    def server_update(self, state: Any, t: int, report: RoundReport) -> Any:
        """The state after round t."""

    def model(self, state: Any) -> torch.Tensor:
        """The global models $x_t$, shape (seeds, d)."""
        return state.model

    def diagnostics(self, state: Any) -> dict[str, torch.Tensor]:
        """What is worth keeping at the end of a run, each (seeds,): counts, or as floats the largest value so far."""
        return {}

    def spec(self) -> dict[str, Any]:
        """The dictionary from which `algorithm_from_spec` makes this algorithm again."""
        return {"kind": self.kind} | dataclasses.asdict(self)  # type: ignore[call-overload]


class Checked(Algorithm):
    """Checks the fields of an algorithm by what they mean: counts by their names in `checks`, the others are > 0."""

    checks: ClassVar[Mapping[str, Callable[[str, object], Any]]] = {
        "local_steps": check_count,
        "interval": check_count,
    }

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            check = self.checks.get(field.name, check_positive)
            object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))


class LocalSteps(Checked):
    """Algorithms whose clients run ordinary local SGD."""

    local_step_size: float
    local_steps: int

    @property
    def local(self) -> LocalSGD:
        return LocalSGD(self.local_step_size, self.local_steps)


class ModelOnly(NamedTuple):
    """The state of an algorithm that remembers nothing but the model (seeds, d)."""

    model: torch.Tensor


class Averaging(Algorithm):
    """Algorithms whose server adds the weighted sum of what it hears, and remembers nothing but the model."""

    averages = True

    def init(self, x0: torch.Tensor, clients: int) -> ModelOnly:
        return ModelOnly(x0)

    def server_update(self, state: ModelOnly, t: int, report: RoundReport) -> ModelOnly:
        return ModelOnly(state.model + report.weighted_sum)
