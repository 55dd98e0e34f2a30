"""Local step sizes that change from round to round."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from fedbounds.bounds.inputs.checks import check_count, check_number
from fedbounds.empirical.algorithms.local import check_positive
from fedbounds.empirical.runtime.kinds import Registry


class StepSizeSchedule(ABC):
    r"""The local step size of round t, $\gamma_t=c_t\gamma$; t counts from the start of the algorithm's phase."""

    kind: ClassVar[str]

    @abstractmethod
    def multiple(self, t: int) -> float:
        """$c_t>0$, with $c_0=1$."""

    @property
    def most_rounds(self) -> float:
        """The rounds that have a step size: all, by default."""
        return math.inf

    def spec(self) -> dict[str, Any]:
        """The table from which it is made again."""
        return {"kind": self.kind} | dataclasses.asdict(self)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Inverse(StepSizeSchedule):
    r"""$\gamma_t=\gamma\frac{a}{a+t}$.

    Args:
        delay: $a>0$, the rounds after which the step size is half of the first.

    Example:
        >>> [Inverse(2).multiple(t) for t in (0, 2, 6)]
        [1.0, 0.5, 0.25]
    """

    kind = "inverse"
    delay: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", check_positive("delay", self.delay))

    def multiple(self, t: int) -> float:
        return self.delay / (self.delay + t)


@dataclass(frozen=True)
class InverseSqrt(StepSizeSchedule):
    r"""$\gamma_t=\gamma\sqrt{\frac{a}{a+t}}$.

    Args:
        delay: $a>0$, in rounds.

    Example:
        >>> [InverseSqrt().multiple(t) for t in (0, 3, 8)]
        [1.0, 0.5, 0.3333333333333333]
    """

    kind = "inverse-sqrt"
    delay: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", check_positive("delay", self.delay))

    def multiple(self, t: int) -> float:
        return math.sqrt(self.delay / (self.delay + t))


@dataclass(frozen=True)
class Step(StepSizeSchedule):
    r"""$\gamma_t=\gamma c^{\lfloor t/k\rfloor}$.

    Args:
        every: $k\ge1$, the rounds of each step size.
        factor: c in (0, 1].

    Example:
        >>> [Step(2, 0.5).multiple(t) for t in range(5)]
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    kind = "step"
    every: int
    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", check_count("every", self.every))
        object.__setattr__(self, "factor", check_number("factor", check_positive("factor", self.factor), high=1))

    def multiple(self, t: int) -> float:
        return self.factor ** (t // self.every)


@dataclass(frozen=True)
class Cosine(StepSizeSchedule):
    r"""$\gamma_t=\frac\gamma2\big(1+\cos\frac{\pi t}{R}\big)$.

    Args:
        rounds: $R\ge1$, at least the rounds of the run or phase.

    Example:
        >>> [round(Cosine(4).multiple(t), 3) for t in range(4)]
        [1.0, 0.854, 0.5, 0.146]
    """

    kind = "cosine"
    rounds: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", check_count("rounds", self.rounds))

    def multiple(self, t: int) -> float:
        return (1 + math.cos(math.pi * t / self.rounds)) / 2

    @property
    def most_rounds(self) -> float:
        return self.rounds


STEP_SIZE_SCHEDULES: Registry[StepSizeSchedule] = Registry(
    "step size schedule", {each.kind: each for each in (Inverse, InverseSqrt, Step, Cosine)}
)


def check_schedule(value: object) -> StepSizeSchedule | None:
    """The schedule, or the one that a table describes; None for a constant step size."""
    if value is None or isinstance(value, StepSizeSchedule):
        return value
    return STEP_SIZE_SCHEDULES.build(value)
