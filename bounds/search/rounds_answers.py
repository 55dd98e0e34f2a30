"""What the question for rounds answers: reached, never, the largest value, or the ends between which it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedbounds.bounds.display.plain_text import number_to
from fedbounds.bounds.display.tables import Answer
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.compiled_form import CompiledResult
from fedbounds.bounds.evaluation.evaluate import Evaluation, Value
from fedbounds.bounds.inputs.checks import as_real
from fedbounds.bounds.search.arb_enclosures import available
from fedbounds.bounds.search.effort import EvaluationBudget
from fedbounds.bounds.search.threshold import LARGEST_COUNT

if TYPE_CHECKING:
    from fedbounds.bounds.theory.result import Result

MANY = (2.0**250, 2.0**500)  # rounds at which a bound that still falls falls between the two, and else is at its limit
COMPRESSED = "relative_compression_error"  # a symbol of papers whose clients send something else than numbers


@dataclass(frozen=True)
class Cost:
    """What a number of rounds costs, as far as the constants say; None where they do not.

    Attributes:
        rounds: communication rounds T.
        iterations: local iterations I T of a client that takes part in every round.
        oracle_calls: stochastic gradients of all participants, S I T.
        oracle_calls_per_client: their average over all clients, S I T/N.
        floats: numbers sent and received by all participants, 2 S T d for a model of dimension d.
        bits: 32 for each of them.
    """

    rounds: int
    iterations: float | None = None
    oracle_calls: float | None = None
    oracle_calls_per_client: float | None = None
    floats: float | None = None
    bits: float | None = None


@dataclass(frozen=True)
class Reached(Answer):
    """The smallest number of rounds, its cost, and the bound there.

    Attributes:
        at: the optimized constants, if any.
        proved: whether it is proved, with error bounds, that this number does and no smaller one (else it was searched
            for).
        method: how it was found.
    """

    rounds: int
    epsilon: float
    cost: Cost
    evaluation: Evaluation | None = field(repr=False)
    at: Mapping[str, float] = field(default_factory=dict)
    proved: bool = False
    method: str = ""
    status: ClassVar[str] = "reached"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --json` (without schema and version)."""
        costs = {k: v for k, v in vars(self.cost).items() if k != "rounds"}
        return {
            "status": self.status,
            "rounds": self.rounds,
            **costs,
            "epsilon": self.epsilon,
            "at": dict(self.at),
            "proved": self.proved,
            "method": self.method,
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class Never(Answer):
    """No number of rounds will do, because.

    Attributes:
        why: one line: the floor and the term that stays, or the condition.
        floor: what the bound tends to as the rounds grow.
        terms: the terms that stay, with their limits.
        proved: whether that is proved, with error bounds (else none was found by a search).
    """

    epsilon: float
    why: str
    floor: float
    terms: Mapping[str, float] = field(default_factory=dict)
    proved: bool = False
    status: ClassVar[str] = "never"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --json` (without schema and version)."""
        return {
            "status": self.status,
            "epsilon": self.epsilon,
            "why": self.why,
            "floor": self.floor,
            "terms": dict(self.terms),
            "proved": self.proved,
        }


@dataclass(frozen=True)
class Largest(Answer):
    """The largest value of a constant at which the bound still reaches epsilon: inf for any, None for none.

    Attributes:
        name: the constant.
        value: see above.
        evaluation: the bound there, or at the smallest where any large one will do (None where there is none).
        why: "" or why there is none.
        proved: whether it is proved, with error bounds, that this value does and none that is larger by 1e-13 of it.
        smallest: where any large value will do, the smallest that does (None elsewhere, or if it was not found).
    """

    name: str
    epsilon: float
    value: float | None
    evaluation: Evaluation | None = field(repr=False, default=None)
    why: str = ""
    proved: bool = False
    smallest: float | None = None
    status: ClassVar[str] = "largest"

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --solve --json` (without schema and version)."""
        return {
            "status": self.status,
            "name": self.name,
            "epsilon": self.epsilon,
            "value": self.value,
            "smallest": self.smallest,
            "why": self.why,
            "proved": self.proved,
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }


@dataclass(frozen=True)
class Between(Answer):
    """The search used up its evaluations; the answer lies between these numbers.

    Attributes:
        name: what was asked for: the rounds, or the constant that is solved for.
        low: every smaller number of rounds was excluded (of a constant that is solved for: it reaches epsilon), or None
            where nothing is known.
        high: it reaches epsilon (of a constant that is solved for: every larger value was excluded), or inf.
        why: how far the search came, in one line.
        evaluations: how many it took.
        tried: where none was found that reaches epsilon, how far they were tried (None if that says nothing).
        at: the optimized constants with which `high` reaches epsilon, if any.
        evaluation: the bound there.
    """

    name: str
    epsilon: float
    low: float | None
    high: float
    why: str
    evaluations: int
    tried: float | None = None
    at: Mapping[str, float] = field(default_factory=dict)
    evaluation: Evaluation | None = field(repr=False, default=None)
    status: ClassVar[str] = "between"

    @property
    def words(self) -> str:
        """The ends, in words.

        Example:
            >>> Between("T", 0.1, 1.2e9, 4.1e9, "", 4000).words
            'T between 1.2e+09 and 4.1e+09'
            >>> Between("T", 0.1, 1200, np.inf, "", 4000, 1e6).words
            'T at least 1200, and none found up to 1000000'
        """
        low = None if self.low is None else number_to("below", self.low, 9)
        if np.isfinite(self.high):
            high = number_to("above", self.high, 9)
            return f"{self.name} at most {high}" if low is None else f"{self.name} between {low} and {high}"
        found = f"none found up to {self.tried:.9g}" if self.tried else ""
        if low is None:
            return ": ".join(filter(None, (f"{self.name} undecided", found)))
        return ", and ".join(filter(None, (f"{self.name} at least {low}", found)))

    def to_dict(self) -> dict[str, Any]:
        """The document of `fedbounds rounds --json` (without schema and version)."""
        return {
            "status": self.status,
            "name": self.name,
            "epsilon": self.epsilon,
            "low": self.low,
            "high": self.high,
            "tried": self.tried,
            "why": self.why,
            "evaluations": self.evaluations,
            "at": dict(self.at),
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }


def rounds_between(
    name: str, epsilon: float, low: float, high: float, tried: float, effort: EvaluationBudget
) -> Between:
    """How far a search for rounds came: what is excluded, and what reaches epsilon or how far that was tried."""
    why = f"every {name} below {low:.9g} is excluded" if low > 1 else f"no {name} is excluded"
    if np.isfinite(high):
        why += f", and {high:.9g} reaches it"
    else:
        why += "; none that reaches it was found" + (f" up to {tried:.9g}" if tried else "")
    return Between(name, epsilon, low, high, why, min(effort.spent, effort.allowed), tried or None)


def cost(
    result: Result | CompiledResult,
    constants: Mapping[str, Value],
    count: int,
    dimension: int | None = None,
    counted: str = "rounds",
) -> Cost:
    """What this many rounds (or iterations) cost, as far as the constants give I, S and N (by symbol or concept).

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> cost(load("arbitrary-participation/theorem-3.1"), {"I": 5, "S": 10, "N": 250}, 100, dimension=1000)
        ... # doctest: +ELLIPSIS
        Cost(rounds=100, iterations=500, oracle_calls=5000, oracle_calls_per_client=20.0, floats=2000000, bits=64000000)
    """
    known: dict[str, int] = {}
    for name, value in constants.items():
        quantity = result.notation.resolve(name)
        if quantity is not None and not quantity.shape:
            number = as_real(name, getattr(value, "value", value))
            if number.ndim == 0 and np.isfinite(number) and number == np.floor(number):
                known[quantity.concept] = int(number)
    if dimension is not None and COMPRESSED in {quantity.concept for quantity in result.notation.values()}:
        raise FedboundsError(
            f"{result.key} is about compressed updates, and how many bits they have its constants do not say: leave "
            "dimension out, and take the length of a message from its codec (message_bytes)"
        )
    steps, cohort, clients = (known.get(c) for c in ("local_steps", "participating_clients", "clients"))
    iterations = count if counted == "iterations" else None if steps is None else steps * count
    if counted == "iterations" and steps is not None:
        count = -(-count // steps)
    calls = None if iterations is None or cohort is None else cohort * iterations
    floats = None if dimension is None or cohort is None else 2 * cohort * count * dimension
    return Cost(
        count,
        iterations,
        calls,
        None if calls is None or clients is None else calls / clients,
        floats,
        None if floats is None else 32 * floats,
    )


def search_note(proved: bool) -> str:
    """What is added to a method where nothing was proved, if python-flint, which might, is not installed."""
    return "" if proved or available() else "; python-flint, of the extra audit, might prove it"


def unreachable_reason(name: str, epsilon: float, limits: Mapping[str, float], proved: bool) -> Never:
    """Never, because of the terms that do not fall: their limits for ever more rounds."""
    floor, left = sum(limits.values()), _large(limits)
    verb = "does" if len(left) == 1 else "do"
    why = f"the bound stays above {floor:.6g}: {_list_terms(left)} {verb} not fall with {name}"
    return Never(epsilon, why, floor, left, proved)


def not_one(name: str, epsilon: float, last: Mapping[str, float], proved: bool) -> Never:
    """Never, where nothing is known of what the bound tends to: these are the terms at 2^53."""
    why = f"no {name} reaches it; at 2^53 the bound is {_composition(last)}"
    return Never(epsilon, why, float("nan"), _large(last), proved)


def beyond(name: str, epsilon: float, low: float, last: Mapping[str, float], effort: EvaluationBudget) -> Between:
    """No number up to 2^53 was found that reaches it, and larger ones are not excluded."""
    why = f"not within 2^53 = {LARGEST_COUNT} of {name}; there the bound is {_composition(last)}"
    return Between(name, epsilon, low, np.inf, why, min(effort.spent, effort.allowed))


def _large(terms: Mapping[str, float]) -> dict[str, float]:
    """The terms that are not negligible beside the sum."""
    return {n: v for n, v in terms.items() if v > 1e-4 * sum(terms.values())}


def _composition(terms: Mapping[str, float]) -> str:
    """The sum, and what most of it is."""
    return f"{sum(terms.values()):.6g}, most of it {_list_terms(_large(terms))}"


def _list_terms(terms: Mapping[str, float]) -> str:
    """The terms with their values, the largest first."""
    return ", ".join(f"the {n} ({v:.6g})" for n, v in sorted(terms.items(), key=lambda item: -item[1]))
