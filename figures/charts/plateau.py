"""Whether a run has reached its plateau, and the rounds that it would take."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import numpy as np

from fedbounds.figures.charts.significance import ALIKE, LEVEL, Level, error_of_mean

LAST_FIFTH = 0.2  # of a run, over which the judged quantity must stay level
BEGINS = (0.8, 0.876)  # shares of a run to compare the end with; no period divides both distances to the end
SLOWEST = 0.05  # decay of the movement over a whole run; a slower one cannot be extrapolated
SMALL = ALIKE / 2  # of the level: a movement that is too small to matter
FALLS = -0.5  # correlation of the logarithm of the movement with the rounds, at most; else it oscillates


@dataclass(frozen=True)
class Plateau:
    """The movement of the judged quantity over the last fifth of a run.

    Attributes:
        rounds: of the run.
        moved, error: the largest change of the mean over seeds, and its standard error: of the mean or of the change,
            whichever is larger.
        needed: rounds that a plateau takes at least.
        falls: whether the movement falls, so that `needed` is an extrapolation; else it is the least length of a run
            whose last fifth begins where this run ends.
        still: whether no movement is found at level 5 %, and the 95 % interval excludes one of 5 % of the level.
    """

    rounds: int
    moved: float
    error: float
    needed: float
    falls: bool = True
    still: bool = False

    @property
    def reached(self) -> bool:
        """Whether the quantity moved by less than its standard error, or not noticeably.

        Example:
            >>> [Plateau(100, moved, 0.1, 500).reached for moved in (0.0, 0.09, 0.11)]
            [True, True, False]
            >>> Plateau(100, 0.11, 0.1, 100, still=True).reached
            True
        """
        return self.moved <= self.error or self.still


def find_plateau(
    rounds: np.ndarray, values: np.ndarray, window: float, *, shares: bool = False, small: float = SMALL
) -> Plateau:
    r"""The plateau rule: over the last fifth the mean over a window has not moved.

    It has not if it changed by less than its standard error, or if no change is found by a t-test at level 5 % and its
    95 % interval lies within 5 % of the level: of two independent means of a stationary curve, one in three differs by
    more than a standard error.

    The window at the end of the run is compared with two before. If it moved, the rounds needed follow from the
    movements over tenths of the run in its last half: if they fall like $e^{-ct}$, so does the distance to the level,
    and the movement over the last fifth of a longer run, $Ae^{-0.8cT}(1-e^{-0.2cT})$, is below the standard error from
    some T on. Curves that fall like a power take more. A run whose movement does not fall needs a last fifth that
    begins where it ends, at least.

    Args:
        rounds: of the records, (points,).
        values: of the judged quantity, (seeds, points). Seeds that diverged are left out of shares; a loss is infinite
            with one of them, and needs no plateau. Records before the last half (and its window) are not looked at.
        window: the last rounds, over which a level is averaged.
        shares: whether values are shares, such as accuracies: then 5 % of the smaller of both shares counts.
        small: the share of the level that counts instead of 5 %; for a difference all of it, as it would be reversed.

    Example:
        >>> rounds, seeds = np.arange(0, 1001, 10), np.array([[-0.01], [0.01]])
        >>> find_plateau(rounds, 1 / np.sqrt(rounds + 1) + seeds, 50).reached
        True
        >>> slow = find_plateau(rounds, 1 / np.sqrt(rounds + 1) + 0.1 * seeds, 50)
        >>> slow.reached, round(slow.needed, -3)
        (False, 2000.0)
    """
    first, last = float(rounds[0]), float(rounds[-1])
    finite = finite_seeds(rounds, values, window)
    if not len(finite) or (len(finite) < len(values) and not shares):
        return Plateau(int(last), 0.0, 0.0, last)
    if last == first:
        return Plateau(int(last), inf, 0.0, last, False)
    width = _width(rounds, window)

    def level(share: float) -> np.ndarray:
        end = first + share * (last - first)
        return finite[:, (rounds > end - width + 1e-9) & (rounds <= end + 1e-9)].mean(axis=1)

    now = level(1)
    changes = [now - level(begin) for begin in BEGINS]
    moved = max(abs(float(change.mean())) for change in changes)
    error = max(map(error_of_mean, (now, *changes))) if len(finite) > 1 else 0.0
    size = abs(float(now.mean()))
    most = small * (min(size, abs(1 - size)) if shares else size)
    still = all(_is_small(change, most, LEVEL / len(changes)) for change in changes)
    if moved <= error or still:
        return Plateau(int(last), moved, error, last, still=still)
    parts = np.linspace(0.6, 1, 5)
    moves = [abs(float((level(part) - level(part - 0.1)).mean())) for part in parts]
    logarithms = np.log(np.maximum(moves, 1e-300))
    decay = -float(np.polyfit(parts, logarithms, 1)[0])
    falls = np.ptp(logarithms) > 0 and np.corrcoef(parts, logarithms)[0, 1] < FALLS
    least = first + (last - first) / (1 - LAST_FIFTH)
    if not (error and falls and decay > SLOWEST):
        return Plateau(int(last), moved, error, least, False)

    def movement(length: float) -> float:  # over the last fifth of a run of so many times this one's length
        return exp(-(1 - LAST_FIFTH) * decay * length) * (1 - exp(-LAST_FIFTH * decay * length))

    short, long = 1.0, 1.0
    while moved * movement(long) > error * movement(1):
        long *= 2
    while long - short > 1e-3:
        middle = (short + long) / 2
        short, long = (middle, long) if moved * movement(middle) > error * movement(1) else (short, middle)
    return Plateau(int(last), moved, error, max(least, first + (last - first) * long))


def finite_seeds(rounds: np.ndarray, values: np.ndarray, window: float) -> np.ndarray:
    """The seeds of which every value in the last half of a run, and in a window before it, is finite."""
    used = rounds > (rounds[0] + rounds[-1]) / 2 - _width(rounds, window)
    return values[np.isfinite(values[:, used]).all(axis=1)]


def _width(rounds: np.ndarray, window: float) -> float:
    """The width of a window that has a record wherever it ends."""
    return max(window, float(np.diff(rounds).max(initial=0)))


def _is_small(changes: np.ndarray, most: float, chance: float) -> bool:
    """Whether no mean change over seeds is found at level `chance`, and its 95 % interval has nothing above `most`."""
    change = Level.from_values(changes)
    (least, largest), (low, high) = change.interval(chance), change.interval(LEVEL)
    return least <= 0 <= largest and max(-low, high) <= most


def describe_length(needed: float, unit: str = "rounds") -> str:
    """The length of runs that a plateau needs, rounded up to two digits.

    Example:
        >>> describe_length(5123.4), describe_length(87, "iterations")
        ('at least about 5,200 rounds', 'at least about 87 iterations')
    """
    digit = 10 ** max(int(np.floor(np.log10(max(needed, 1)))) - 1, 0)
    return f"at least about {int(-(-needed // digit) * digit):,} {unit}"
