"""What an optimization answers: a minimum, an infimum that is not attained, or nothing admissible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fedbounds.bounds.display.tables import Answer as Told
from fedbounds.bounds.evaluation.evaluate import Evaluation


@dataclass(frozen=True)
class Minimum(Told):
    """The least value, where it is taken, and what stops it from being less.

    Attributes:
        value: the bound there.
        at: symbol to value.
        active: the conditions and ends of ranges that hold with equality.
        evaluation: everything else about the bound there.
        method: how it was found.
        note: "" or a remark, e.g. that the minimizer is not unique.
    """

    value: float
    at: Mapping[str, float]
    active: tuple[str, ...]
    evaluation: Evaluation = field(repr=False)
    method: str = ""
    note: str = ""
    status: ClassVar[str] = "minimum"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {
            "status": self.status,
            "key": self.evaluation.result.key,
            "form": self.evaluation.form.name,
            "value": self.value,
            "at": dict(self.at),
            "active": list(self.active),
            "method": self.method,
            "note": self.note,
            "evaluation": self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class NotAttained(Told):
    """There is no best choice: the bound falls for ever in some direction, towards the infimum.

    Attributes:
        infimum: the limit.
        direction: where to, in words.
        at: symbol to value, for every constant that stays where it is on the way.
        terms: the terms that do not vanish on the way, with their limits.
        advice: what to ask instead.
    """

    infimum: float
    direction: str
    terms: Mapping[str, float] = field(default_factory=dict)
    advice: str = ""
    at: Mapping[str, float] = field(default_factory=dict)
    status: ClassVar[str] = "not attained"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {
            "status": self.status,
            "infimum": self.infimum,
            "direction": self.direction,
            "at": dict(self.at),
            "terms": dict(self.terms),
            "advice": self.advice,
        }


@dataclass(frozen=True)
class Infeasible(Told):
    """No choice meets the conditions, because."""

    why: str
    status: ClassVar[str] = "infeasible"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {"status": self.status, "why": self.why}


@dataclass(frozen=True)
class Undecided(Told):
    """The search used up its evaluations, or tried all it could, and found no admissible choice; there may be one."""

    why: str
    status: ClassVar[str] = "undecided"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds optimize --json` (without schema and version)."""
        return {"status": self.status, "why": self.why}


Answer = Minimum | NotAttained | Infeasible | Undecided
