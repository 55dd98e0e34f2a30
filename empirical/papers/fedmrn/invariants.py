r"""The invariants of a client's round of FedMRN, and the search for cases that break them.

A *masker* is any function that computes one client's round from given numbers, so that nothing in it is random:

    run(gradient, model, noise, chances, coins, step_size, masks) -> masked noise (d,), which is what is uploaded

`gradient(x)` is $\nabla F_k$ at any x, (d,), and is called once in each of S local steps; `model` w and `noise` n are
(d,); `masks` is "binary" or "signed". Where the paper draws, numbers of [0, 1) decide: in local step $\tau$ a mask is 1
where `chances[tau - 1]` is below its probability, and a coordinate is masked at all where `coins[tau - 1]` is below
$\tau/S$; `chances[S]` decides the mask that is uploaded. Rows below are what is added to the model in each local step,
and the upload.

Source: Li et al. 2024, Algorithm 1 (client) and eqs. (6) to (10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.invariants.cases import as_numbers
from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.invariants.report import Report
from fedbounds.empirical.invariants.scope import InvariantSides
from fedbounds.empirical.invariants.search import Subject, check
from fedbounds.empirical.papers.fedmrn.masked_noise import Masks

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Masker = Callable[..., Any]
GRID = 16  # numbers that stand for all of [0, 1)


@dataclass(frozen=True, eq=False)
class MaskCase:
    r"""A client with $\nabla F_k(x)=\lambda\odot(x-c)$, and every number that decides in its round."""

    masks: Masks  # "binary" or "signed"
    curvatures: np.ndarray  # curvatures, center: $\lambda$ and c, (d,)
    center: np.ndarray
    model: np.ndarray  # model, noise: w and n, (d,); no noise is zero
    noise: np.ndarray
    chances: np.ndarray  # chances, coins: in [0, 1), (S + 1, d) and (S, d)
    coins: np.ndarray
    step_size: float  # $\eta$
    exposed: bool = False  # whether a masker gets the arrays themselves, not copies of them

    @property
    def steps(self) -> int:
        """S."""
        return len(self.coins)

    @property
    def other(self) -> np.ndarray:
        """What is uploaded where the mask is not 1."""
        return -self.noise if self.masks == "signed" else 0 * self.noise

    @property
    def arrays(self) -> list[np.ndarray]:
        """What a masker gets besides the gradient and numbers: model, noise, chances and coins."""
        return [self.model, self.noise, self.chances, self.coins]

    def rows(self, run: Masker) -> np.ndarray:
        """What a masker adds to the model in each local step, and its upload, (S + 1, d)."""
        points: list[np.ndarray] = []
        model = self.model.copy()

        def gradient(x: Any) -> np.ndarray:
            points.append(as_numbers([x], (1, len(self.model)), "gradient takes a vector, not {}",
                                     "gradient takes (d,), not {}", "the point {row} is not finite"))  # fmt: skip
            return self.curvatures * (points[-1][0] - self.center)

        arrays = self.arrays if self.exposed else [values.copy() for values in self.arrays]
        returned = run(gradient, *arrays, self.step_size, self.masks)
        if len(points) != self.steps:
            raise FedboundsError(f"the masker took {len(points)} gradients; expected one in each of {self.steps} steps")
        upload = as_numbers(
            [returned], (1, len(self.model)), "the masker returned {}; expected masked noise (d,)",
            "the masker returned shape {}; expected (1, d)", "the upload {row} is not finite",
        )  # fmt: skip
        return np.vstack([np.vstack(points) - model, upload])

    def update(self, rows: np.ndarray) -> np.ndarray:
        """$u_{S+1}$, which gradients at these points lead to."""
        return -self.step_size * (self.curvatures * (self.model + rows[:-1] - self.center)).sum(axis=0)

    def __str__(self) -> str:
        shown = {name: value for name, value in self.__dict__.items() if name != "exposed"}
        return "\n".join(f"{name}: {np.asarray(value).tolist()}" for name, value in shown.items())


Execute = Callable[[MaskCase], np.ndarray]


def masked_round(
    gradient: Callable[[np.ndarray], np.ndarray], model: np.ndarray, noise: np.ndarray, chances: np.ndarray,
    coins: np.ndarray, step_size: float, masks: Masks, *, bounded: bool = False, whole: bool = False,
    random: bool = True, clips: bool = True, straight: bool = True, first: int = 1,
) -> np.ndarray:  # fmt: skip
    """Algorithm 1, the client; what the last six arguments change, the paper does not do.

    Example:
        >>> round_ = partial(masked_round, lambda x: x, np.array([1.0]), np.array([0.5]), coins=np.zeros((1, 1)))
        >>> round_(chances=np.array([[0.4], [0.9]]), step_size=0.1, masks="signed").tolist()
        [-0.5]
    """
    S, u = len(coins), np.zeros_like(model)
    low, high = (-abs(noise), abs(noise)) if masks == "signed" else (np.minimum(0, noise), np.maximum(0, noise))

    def masked(chance: np.ndarray) -> np.ndarray:
        p = u / noise if masks == "binary" else (u + noise) / (2 * noise)
        one = chance < p if random else u * noise > 0
        return np.where(one, noise, -noise if masks == "signed" else 0)

    for tau in range(1, S + 1):
        some = np.where(
            coins[tau - 1] < (tau - 1 + first) / S, masked(chances[tau - 1]), np.clip(u, low, high) if clips else u
        )
        g = gradient(model + (masked(chances[tau - 1]) if whole else some))
        u = u - step_size * np.where(straight | ((low <= u) & (u <= high)), g, 0)
        u = np.clip(u, low, high) if bounded else u
    return masked(chances[S])


def upload_is_masked_noise(execute: Execute, case: MaskCase) -> InvariantSides:
    r"""Every number that is uploaded is n or, where the mask is not 1, -n of signed and 0 of binary masks."""
    return _nearest(case, execute(case)[-1:])


def last_step_masks_everything(execute: Execute, case: MaskCase) -> InvariantSides:
    r"""In the last local step, where $\tau/S=1$, every coordinate is masked."""
    return _nearest(case, execute(case)[-2:-1])


def _nearest(case: MaskCase, got: np.ndarray) -> InvariantSides:
    near = np.abs(got - case.noise) < np.abs(got - case.other)
    return InvariantSides(got, np.where(near, case.noise, case.other))


def first_step(execute: Execute, case: MaskCase) -> InvariantSides:
    r"""At $u=0$ binary masks change nothing, and signed ones put $\pm n$ where a coordinate is masked, else nothing."""
    got = execute(case)[:1]
    expected = np.where(case.coins[0] < 1 / case.steps, _nearest(case, got).expected, 0.0)
    return InvariantSides(got, expected if case.masks == "signed" else 0 * got)


def unmasked_steps_are_plain(execute: Execute, case: MaskCase) -> InvariantSides:
    """Where no coordinate is masked and the noise is far away, all local steps but the last are those of FedAvg."""
    plain = replace(case, masks="signed", noise=1e3 * np.sign(case.noise) * (1 + abs(case.noise) + abs(case.model) +
                    abs(case.center)), coins=np.full_like(case.coins, 1 - 2**-20))  # fmt: skip
    u, expected = np.zeros_like(case.model), []
    for _ in range(case.steps - 1):
        expected.append(u)
        u = u - case.step_size * case.curvatures * (case.model + u - case.center)
    got = execute(plain)[:-1]
    return InvariantSides(got, np.array([*expected, got[-1]]), case=plain)


def straight_through(execute: Execute, case: MaskCase) -> InvariantSides:
    r"""Where the update left the noise, gradients still move it: $u=0,\frac32n,0$ in the first three of four steps."""
    shape = (4, len(case.noise))
    there = replace(case, curvatures=np.ones(shape[1]), center=case.model + case.noise / 2, step_size=3.0,
                    chances=np.resize(case.chances, (5, shape[1])), coins=np.full(shape, 1 - 2**-20))  # fmt: skip
    got = execute(there)[:-2]
    return InvariantSides(got, np.array([0 * case.noise, case.noise, 0 * case.noise]), case=there)


def mean_of_the_upload(execute: Execute, case: MaskCase) -> InvariantSides:
    r"""The mean over masks is the update, cut off at the noise: $E[n\odot m]=\mathrm{clip}(u_{S+1},n)$."""
    uploads, update = [], np.zeros_like(case.model)
    for k in range(GRID):
        chances = case.chances.copy()
        chances[-1] = (k + 0.5) / GRID
        rows = execute(replace(case, chances=chances))
        update = case.update(rows)
        uploads.append(rows[-1])
    got, (low, high) = np.mean(uploads, axis=0), np.sort([case.noise, case.other], axis=0)
    error = np.abs(case.noise) * (2 / GRID)
    mean = np.clip(update, low, high)
    return InvariantSides(got[None], np.clip(got, mean - error, mean + error)[None])


def scaled(execute: Execute, case: MaskCase) -> InvariantSides:
    r"""Model, center and noise twice as large: so is all that is masked."""
    twice = replace(case, model=2 * case.model, center=2 * case.center, noise=2 * case.noise)
    return InvariantSides(execute(twice), 2 * execute(case), case=twice, against=case, via="scaled by 2")


def repeated(execute: Execute, case: MaskCase) -> InvariantSides:
    """The same numbers again give the same round: nothing else is random, nothing is left over."""
    return InvariantSides(execute(replace(case)), execute(case), against=case)


def unchanged_arguments(execute: Execute, case: MaskCase) -> InvariantSides:
    """A masker leaves the arrays that it is given as they are."""
    model, noise, chances, coins = (values.copy() for values in case.arrays)
    exposed = replace(case, model=model, noise=noise, chances=chances, coins=coins, exposed=True)
    execute(exposed)
    return InvariantSides(np.vstack(exposed.arrays), np.vstack(case.arrays))


def reference_twin(execute: Execute, case: MaskCase) -> InvariantSides:
    """The round is that of Algorithm 1."""
    return InvariantSides(execute(case), case.rows(masked_round))


MASK_INVARIANTS: Mapping[str, Callable[[Execute, MaskCase], InvariantSides]] = {
    held.__name__.replace("_", " "): held
    for held in (
        upload_is_masked_noise, last_step_masks_everything, first_step, unmasked_steps_are_plain, straight_through,
        mean_of_the_upload, scaled, repeated, unchanged_arguments,
        reference_twin,
    )
}  # fmt: skip
MISREADINGS = (
    Misreading("it keeps the update within the noise",
               lambda twin, case: case.rows(partial(masked_round, bounded=True))),
    Misreading("it masks every coordinate in every local step",
               lambda twin, case: case.rows(partial(masked_round, whole=True)),
               'if that is meant ("w.o. PM"): leave out "first step", "unmasked steps are plain" and "reference twin"'),
    Misreading("its masks are those of the signs", lambda twin, case: case.rows(partial(masked_round, random=False)),
               'if that is meant ("w.o. SM"): leave out "mean of the upload" and "reference twin"'),
    Misreading("what is not masked is not cut off at the noise",
               lambda twin, case: case.rows(partial(masked_round, clips=False))),
    Misreading("gradients stop where the update is outside the noise",
               lambda twin, case: case.rows(partial(masked_round, straight=False))),
    Misreading("its masks come in a step late, with chance (tau - 1)/S",
               lambda twin, case: case.rows(partial(masked_round, first=0))),
)  # fmt: skip


def check_masking(
    run: Masker,
    *,
    invariants: Sequence[str] | None = None,
    examples: int = 50,
    seed: int = 0,
    cases: SearchStrategy[Any] | None = None,
    tolerance: float | None = None,
) -> Report:
    r"""Look for cases in which an implementation of a client's round of FedMRN breaks an invariant.

    Args:
        run: `run(gradient, model, noise, chances, coins, step_size, masks)`, which returns the masked noise (d,).
        invariants: names of `MASK_INVARIANTS`; all if not given. Masks that are 1 where a number is *above* one minus
            their probability keep all but "reference twin".
        examples: how many cases to try.
        seed: of the search.
        cases: a strategy of `MaskCase`; `strategies.mask_cases()` of this package if not given.
        tolerance: largest difference, relative to the larger of 1 and the largest entry; if not given, 1e-9, or 1e-4
            for a masker that returns single precision.

    Raises:
        FedboundsError: an unknown invariant, a number outside its range, or a masker that cannot be called as said.
        MissingExtra: hypothesis is not installed.

    Example:
        >>> check_masking(masked_round, examples=20).broken
        ()
        >>> halved = lambda *numbers: 0.5 * masked_round(*numbers)
        >>> check_masking(halved, invariants=["upload is masked noise"], examples=20).broken[0].name
        'upload is masked noise'

    Source: Li et al. 2024, Algorithm 1.
    """
    one = np.ones(2)
    first = MaskCase("signed", one, 0 * one, one, one / 2, np.full((3, 2), 0.4), np.full((2, 2), 0.7), 0.1)
    subject = Subject(run, MaskCase.rows, masked_round, misreadings=MISREADINGS)
    called = "run(gradient, model, noise, chances, coins, step_size, masks)"
    cases_of = "fedbounds.empirical.papers.fedmrn.strategies.mask_cases"
    return check(subject, first, called, MASK_INVARIANTS, cases_of, invariants, examples, seed, cases, tolerance)
