r"""The invariants of a server that averages the updates of its participants, and their check.

A *server* is any function that computes the next model from the updates of the participants:

    run(model, updates, shares, cohort) -> model (d,)

`updates` (N, d) and `shares` (N,) are those of all clients, and `cohort` (K,) are the participants. It should add
$\sum_{k\in\mathcal C}p_ku_k/\sum_{k\in\mathcal C}p_k$ to the model.

Source: McMahan et al. 2017, *Communication-Efficient Learning of Deep Networks from Decentralized Data*, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.empirical.invariants.cases import as_numbers, check_unchanged
from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.scope import InvariantSides
from fedbounds.empirical.invariants.search import Subject, check

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Server = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class AveragingCase:
    """One step of a server."""

    model: np.ndarray  # (d,)
    updates: np.ndarray  # of all clients, (N, d)
    shares: np.ndarray  # p, positive, (N,); they sum to one
    cohort: np.ndarray  # who takes part, (K,), in ascending order

    def next_model(self, run: Server) -> np.ndarray:
        """What a server makes of this case, (1, d)."""
        given = {"updates": self.updates.copy(), "shares": self.shares.copy(), "cohort": self.cohort.copy()}
        returned = run(self.model.copy(), *given.values())
        check_unchanged("server", given, vars(self))
        return as_numbers(
            [returned], (1, len(self.model)), "the server returned {}; expected a model (d,)",
            "the server returned shape {}; expected (1, d)", "the model {row} is not finite",
        )  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value.tolist()}" for name, value in self.__dict__.items())


Execute = Callable[[AveragingCase], np.ndarray]


def weighted_mean(model: np.ndarray, updates: np.ndarray, shares: np.ndarray, cohort: np.ndarray) -> np.ndarray:
    """The model and the mean of the participants' updates, weighted by their shares among them."""
    return model + shares[cohort] @ updates[cohort] / shares[cohort].sum()


def mean_over_cohorts(execute: Execute, case: AveragingCase) -> InvariantSides:
    """With equal shares, the mean over all cohorts of K clients moves the model by the mean of all updates."""
    N, K = len(case.shares), len(case.cohort)
    even = replace(case, shares=np.full(N, 1 / N))
    found = [execute(replace(even, cohort=np.array(some))) for some in combinations(range(N), K)]
    return InvariantSides(np.mean(found, axis=0), (case.model + case.updates.mean(axis=0))[None], case=even)


def equal_updates(execute: Execute, case: AveragingCase) -> InvariantSides:
    """Shares among the participants sum to one: an update that they all have is what the model moves by."""
    alike = replace(case, updates=np.tile(case.updates[0], (len(case.updates), 1)))
    return InvariantSides(execute(alike), (case.model + case.updates[0])[None], case=alike)


def alone(execute: Execute, case: AveragingCase) -> InvariantSides:
    r"""Who takes part alone moves the model by the own update, whatever the share.

    So a uniform draw of one client moves it by the plain mean of the updates, and not by $\sum_kp_ku_k$.
    """
    one = replace(case, cohort=case.cohort[:1])
    return InvariantSides(execute(one), (case.model + case.updates[case.cohort[0]])[None], case=one)


def absent_clients(execute: Execute, case: AveragingCase) -> InvariantSides:
    """Whoever does not take part does not count, whatever the update would be."""
    updates = 7.0 - 3 * case.updates
    updates[case.cohort] = case.updates[case.cohort]
    other = replace(case, updates=updates)
    return InvariantSides(execute(other), execute(case), case=other, against=case)


def relabeled(execute: Execute, case: AveragingCase) -> InvariantSides:
    """Clients under other numbers are the same clients."""
    N = len(case.shares)
    other = replace(case, updates=case.updates[::-1], shares=case.shares[::-1], cohort=np.sort(N - 1 - case.cohort))
    return InvariantSides(execute(other), execute(case), case=other, against=case)


def repeated(execute: Execute, case: AveragingCase) -> InvariantSides:
    """The same numbers again give the same model."""
    return InvariantSides(execute(replace(case)), execute(case), against=case)


def reference_twin(execute: Execute, case: AveragingCase) -> InvariantSides:
    """The step is the weighted mean."""
    return InvariantSides(execute(case), case.next_model(weighted_mean))


AVERAGING_INVARIANTS: Mapping[str, Callable[[Execute, AveragingCase], InvariantSides]] = {
    held.__name__.replace("_", " "): held
    for held in (mean_over_cohorts, equal_updates, alone, absent_clients, relabeled, repeated, reference_twin)
}
MISREADINGS = (
    Misreading(
        "it does not divide by the shares of those who take part",
        lambda twin, case: (case.model + case.shares[case.cohort] @ case.updates[case.cohort])[None],
    ),
    Misreading("shares do not count", lambda twin, case: (case.model + case.updates[case.cohort].mean(axis=0))[None]),
    Misreading(
        "it divides by the number of all clients",
        lambda twin, case: (case.model + case.updates[case.cohort].sum(axis=0) / len(case.shares))[None],
    ),
)


def check_averaging(
    run: Server,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float | None = None,
) -> Report:
    """Look for cases in which a server that averages updates breaks an invariant.

    Args:
        run: `run(model, updates, shares, cohort)`, which returns the next model (d,); it may change the model in place,
            and nothing else.
        invariants: names of `AVERAGING_INVARIANTS`; all if not given. A server for which all clients count the same
            keeps all but "reference twin".
        examples: how many cases to try: from 50 on, one with a cohort of each size of each number of clients up to 7,
            and one of 11 of 12; the others are small.
        seed: of the search.
        cases: a strategy of `AveragingCase`; `fedbounds.empirical.invariants.strategies.averaging_cases()` if not
            given.
        tolerance: largest difference, relative to the larger of 1 and the largest entry; if not given, 1e-9, or 1e-4
            for a server that returns single precision.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a server that cannot be called as said.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> check_averaging(weighted_mean, examples=20).broken
        ()
        >>> undivided = lambda model, updates, shares, cohort: model + shares[cohort] @ updates[cohort]
        >>> check_averaging(undivided, examples=20).cause
        'it does not divide by the shares of those who take part'
    """
    first = AveragingCase(np.zeros(1), np.array([[1.0], [2.0]]), np.array([0.25, 0.75]), np.array([0, 1]))
    subject = Subject(run, AveragingCase.next_model, weighted_mean, misreadings=MISREADINGS)
    called, cases_of = (
        "run(model, updates, shares, cohort)",
        "fedbounds.empirical.invariants.strategies.averaging_cases",
    )
    return check(subject, first, called, AVERAGING_INVARIANTS, cases_of, invariants, examples, seed, cases, tolerance)
