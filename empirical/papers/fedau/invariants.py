r"""The invariants of FedAU's weights, and the search for records of participation that break them.

An *estimator* is any function that computes the weights that a server uses in the rounds of a record:

    run(participated, cutoff) -> weights (T, N)

`participated` are booleans (T, N); `cutoff` is K, an integer or infinity. Row t is used in round t, and may depend on
the rows before t only. Below, M is how many intervals of a client are complete before round t, and S the rounds since.

Source: Wang & Ji 2024, *A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging*,
Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.empirical.invariants.cases import as_numbers, check_unchanged
from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.scope import InvariantSides, Need, declare_scope
from fedbounds.empirical.invariants.search import Subject, check
from fedbounds.empirical.papers.fedau.pseudocode import fedau_weights

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Estimator = Callable[[np.ndarray, float], ArrayLike]


@dataclass(frozen=True, eq=False)
class WeightCase:
    """A record of participation and a cut-off."""

    participated: np.ndarray  # who took part, booleans (T, N)
    cutoff: float  # K, an integer of at least 1, or infinity

    def weights(self, run: Estimator) -> np.ndarray:
        """What an estimator makes of this case, (T, N)."""
        given = self.participated.copy()
        returned = run(given, self.cutoff)
        check_unchanged("estimator", {"participated": given}, vars(self))
        shape = self.participated.shape
        return as_numbers(
            returned,
            shape,
            "the estimator returned {}; expected weights (T, N)",
            f"the estimator returned shape {{}}; expected that of the record, {shape}",
            "the estimator returned weights {row} in round {t}: not finite",
        )

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """M and S before each round, (T, N): from the lengths of the gaps, not by counting along."""
        shape = self.participated.shape
        complete, since = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
        for (t, n), _ in np.ndenumerate(complete):
            ends = np.flatnonzero(self.participated[:t, n]) + 1
            gaps = np.diff(np.append(0, ends))
            left = t - (ends[-1] if len(ends) else 0)
            pieces, rest = (0, left) if np.isinf(self.cutoff) else divmod(left, int(self.cutoff))
            complete[t, n] = sum(int(-(-gap // self.cutoff)) for gap in gaps) + pieces
            since[t, n] = rest
        return complete, since

    def __str__(self) -> str:
        rows = str(self.participated.astype(int).tolist())
        return f"record:  {rows}\ncut-off: {self.cutoff:g}"


Execute = Callable[[WeightCase], np.ndarray]
FINITE = Need("a finite cut-off", lambda case: not np.isinf(case.cutoff))
_ONE = Need("a cut-off of 1", lambda case: case.cutoff == 1)
_INFINITE = Need("an infinite cut-off", lambda case: np.isinf(case.cutoff))
_EXCEEDED = Need(
    "an interval longer than the cut-off",
    lambda case: np.isinf(case.cutoff) or bool((case.counts()[0][-1] > case.participated[:-1].sum(axis=0)).any()),
    "those of weight_cases() have up to 301 rounds",
)


def first_weights(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""The weights of rounds 0 and 1 are 1.

    $$\omega_0 = \omega_1 = 1$$
    """
    got = execute(case)
    expected = got.copy()
    expected[:2] = 1
    return InvariantSides(got, expected)


def limits(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""A weight is at least 1, and at most the cut-off and the number of rounds so far.

    $$1 \le \omega_t \le \min\{K, t\}, \qquad t \ge 1$$
    """
    got = execute(case)
    most = np.minimum(np.maximum(np.arange(len(got)), 1), case.cutoff)[:, None]
    return InvariantSides(got, np.clip(got, 1, most))


def mean_interval(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""A weight is the mean length of the intervals completed so far, cut-off ones included; 1 before the first.

    $$\omega_t M = t - S \quad (M \ge 1)$$
    """
    complete, since = case.counts()
    rounds = np.arange(len(complete))[:, None]
    return InvariantSides(execute(case), np.where(complete > 0, (rounds - since) / np.maximum(complete, 1), 1.0))


def change_at_the_end_of_an_interval(execute: Execute, case: WeightCase) -> InvariantSides:
    """A weight changes only when an interval of its client ends."""
    got, (complete, _) = execute(case), case.counts()
    expected = got.copy()
    same = complete[1:] == complete[:-1]
    expected[1:][same] = got[:-1][same]
    return InvariantSides(got, expected)


def always_there(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""A client that takes part in every round has weight 1.

    $$\mathbb 1_t = 1 \text{ for all } t \implies \omega_t = 1$$
    """
    return _constant_record(execute, case, True, np.ones(len(case.participated)))


def never_there(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""A client that never takes part has weight 1 before round K, and K from then on.

    $$\mathbb 1_t = 0 \text{ for all } t \implies \omega_t = 1\ (t < K),\ \omega_t = K\ (t \ge K)$$
    """
    t = np.arange(len(case.participated))
    return _constant_record(execute, case, False, np.where(t < case.cutoff, 1.0, case.cutoff))


def _constant_record(execute: Execute, case: WeightCase, value: bool, expected: np.ndarray) -> InvariantSides:
    constant = replace(case, participated=np.full_like(case.participated, value))
    got = execute(constant)
    return InvariantSides(got, np.broadcast_to(expected[:, None], got.shape), case=constant)


@declare_scope(FINITE, _ONE)
def cutoff_of_one(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""With K = 1 every interval has length 1: all weights are 1.

    $$K = 1 \implies \omega_t = 1$$
    """
    one = replace(case, cutoff=1)
    got = execute(one)
    return InvariantSides(got, np.ones_like(got), case=one)


@declare_scope(FINITE, _INFINITE)
def late_cutoff(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""A cut-off that no interval reaches is none: its size plays no role.

    $$K, K' \ge T \implies \omega_t(K) = \omega_t(K')$$
    """
    late = replace(case, cutoff=len(case.participated))
    later = case if np.isinf(case.cutoff) else replace(case, cutoff=10 * len(case.participated))
    return InvariantSides(execute(late), execute(later), case=late, against=later)


def past_only(execute: Execute, case: WeightCase) -> InvariantSides:
    r"""A weight does not depend on participation in its own round, or later.

    $$\omega_t = \omega_t(\mathbb 1_0, \dots, \mathbb 1_{t-1})$$
    """
    expected = []
    for t in range(len(case.participated)):
        changed = case.participated.copy()
        changed[t:] = ~changed[t:]
        expected.append(execute(replace(case, participated=changed))[t])
    return InvariantSides(execute(case), np.stack(expected))


def own_record_only(execute: Execute, case: WeightCase) -> InvariantSides:
    """A client's weight does not depend on who the other clients are and when they take part."""
    alone = [execute(replace(case, participated=column[:, None])) for column in case.participated.T]
    return InvariantSides(execute(case), np.hstack(alone))


def repeated(execute: Execute, case: WeightCase) -> InvariantSides:
    """The same record again gives the same weights: nothing is random, nothing is left over."""
    return InvariantSides(execute(replace(case)), execute(case), against=case)


@declare_scope(_EXCEEDED)
def reference_twin(execute: Execute, case: WeightCase) -> InvariantSides:
    """The weights are those of Algorithm 2 as the paper prints it."""
    return InvariantSides(execute(case), fedau_weights(case.participated, case.cutoff))


WEIGHT_INVARIANTS: Mapping[str, Callable[[Execute, WeightCase], InvariantSides]] = {
    held.__name__.replace("_", " "): held
    for held in (
        first_weights,
        limits,
        mean_interval,
        change_at_the_end_of_an_interval,
        always_there,
        never_there,
        cutoff_of_one,
        late_cutoff,
        past_only,
        own_record_only,
        repeated,
        reference_twin,
    )
}


def _one_round_late(twin: Execute, case: WeightCase) -> np.ndarray:
    """The weights of the round after each: the round's own participation counts."""
    return twin(replace(case, participated=np.vstack([case.participated, case.participated[-1:]])))[1:]


MISREADINGS = (
    Misreading(
        "it ignores the cut-off",
        lambda twin, case: twin(replace(case, cutoff=np.inf)),
        "if it has none: weight_cases(cutoffs=(math.inf,)); if it has one of its own, K: weight_cases(cutoffs=(K,))",
    ),
    Misreading("it cuts off a round late", lambda twin, case: twin(replace(case, cutoff=case.cutoff + 1))),
    Misreading("a round's own participation counts", _one_round_late),
)


def check_weights(
    run: Estimator,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float | None = None,
) -> Report:
    r"""Look for records of participation in which an implementation of FedAU's weights breaks an invariant.

    Args:
        run: a function `run(participated, cutoff)` that returns the weights $\omega_0,\dots,\omega_{T-1}$, (T, N).
        invariants: names of `WEIGHT_INVARIANTS`; all if not given. An exponentially weighted mean keeps all but
            "mean interval" and "reference twin".
        examples: how many records to try: from 50 on, fourteen long ones of up to 143 rounds and 7 clients; the others
            have at most 8 rounds.
        seed: of the search; the same seed tries the same records.
        cases: a strategy of `WeightCase`; `strategies.weight_cases()` of this package if not given.
        tolerance: largest difference, relative to the larger of 1 and the largest entry; if not given, 1e-9, or 1e-4
            for an estimator that returns single precision.

    Returns:
        A verdict for each invariant: held, for so many examples; broken, with the smallest counterexample found; or
        skipped, where it does not apply, with the reason. If something is broken, the likely cause.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or an estimator that cannot be called as
            said or returns something else than weights.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
        >>> report = check_weights(weight_paths, examples=20)
        >>> len(report.verdicts), report.broken
        (12, ())
        >>> def looks_ahead(participated, cutoff):
        ...     return weight_paths(np.vstack([participated[1:], participated[:1]]), cutoff)
        >>> check_weights(looks_ahead, invariants=["past only"])["past only"].status
        'broken'

    Source: Wang & Ji 2024, Algorithm 2.
    """
    first = WeightCase(np.array([[True, False], [False, False], [True, True]]), 2)
    subject = Subject(run, WeightCase.weights, fedau_weights, misreadings=MISREADINGS)
    called, cases_of = "run(participated, cutoff)", "fedbounds.empirical.papers.fedau.strategies.weight_cases"
    return check(subject, first, called, WEIGHT_INVARIANTS, cases_of, invariants, examples, seed, cases, tolerance)
