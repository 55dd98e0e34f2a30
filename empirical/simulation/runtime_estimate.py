"""How long a run takes at least, estimated before anything is built; what surely never ends is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.algorithms.algorithm import Fits

STEP = 1e-6  # seconds: no local step, and no round, is ever quicker
SPEED = 1e11  # multiplications a second
CUBES = 10  # times d^3, in making and diagonalizing a dense Hessian
YEAR = 365.25 * 86400
PATIENCE = YEAR
UNITS = ((YEAR, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))
DENSE = ("quadratic", "minimax-quadratic")  # kinds of problems whose Hessians are drawn in full


def least_seconds(algorithm: Algorithm, problem: Fits, rounds: int, seeds: int, dimension: int, closed: bool) -> float:
    """Seconds that a run takes at least: its steps one after another, and its numbers."""
    steps = float(algorithm.most_local_steps(problem))
    in_turn = rounds + steps if closed else rounds * steps
    return max(STEP * in_turn, (rounds if closed else in_turn) * seeds * dimension / SPEED)


def check_work(algorithm: Algorithm, problem: Fits, rounds: int, seeds: int, dimension: int, closed: bool) -> float:
    """Refuse a run that surely never ends; `least_seconds` of any other."""
    seconds = least_seconds(algorithm, problem, rounds, seeds, dimension, closed)
    if seconds > PATIENCE:
        raise FedboundsError(
            f"rounds = {rounds}, local_steps = {algorithm.most_local_steps(problem)}, seeds = {seeds}, dimension = "
            f"{dimension} take at least about {format_duration(seconds)}; at most a year is begun"
        )
    return seconds


def may_be_closed(engine: str, affine: bool) -> bool:
    """Whether an engine of this name sums local steps in closed form, if the gradients are affine or not."""
    return affine and str(engine).replace("-", " ") in ("auto", "closed form")


def building_seconds(table: Mapping[str, Any], dimension: int) -> float:
    """Seconds that it takes at least to make the problem of a table with all its defaults."""
    if table.get("kind") not in DENSE or table.get("diagonal", False) or "clients" not in table:
        return 0.0
    many = 1 if table.get("shared", True) else int(table["clients"])
    return CUBES * many * float(dimension) ** 3 / SPEED


def format_duration(seconds: float) -> str:
    """A length of time with two digits.

    Example:
        >>> format_duration(90.0), format_duration(3e15), format_duration(0.5)
        ('1.5 minutes', '9.5e+07 years', '0.5 seconds')
    """
    size, unit = next((one for one in UNITS if seconds >= one[0]), (1.0, "seconds"))
    return f"{seconds / size:.2g} {unit}"
